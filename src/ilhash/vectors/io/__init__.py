"""Files of users, opened or read whole: ``open_vectors``, ``read_matrix``, ``read_vector``, ``read_sparse``."""

from ilhash.vectors.io._npy import read_sparse
from ilhash.vectors.io._open import open_vectors, read_column
from ilhash.vectors.io._read import feature_names, read_matrix, read_vector, split_key
from ilhash.vectors.io._text import read_lines

__all__ = ["feature_names", "open_vectors", "read_column", "read_lines", "read_matrix", "read_sparse", "read_vector"]
__all__ += ["split_key"]
