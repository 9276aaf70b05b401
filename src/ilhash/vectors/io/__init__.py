"""Files of users, opened or read whole: ``open_vectors``, ``read_matrix``, ``read_vector``."""

from ilhash.vectors.io._open import open_vectors
from ilhash.vectors.io._read import feature_names, read_matrix, read_vector, split_key

__all__ = ["feature_names", "open_vectors", "read_matrix", "read_vector", "split_key"]
