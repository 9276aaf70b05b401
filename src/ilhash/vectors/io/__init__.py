"""Files of users, opened or read whole: ``open_vectors``, ``read_matrix``, ``read_vector``."""

from ilhash.vectors.io._open import open_vectors
from ilhash.vectors.io._read import read_matrix, read_vector

__all__ = ["open_vectors", "read_matrix", "read_vector"]
