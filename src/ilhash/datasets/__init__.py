"""Known datasets, checked byte by byte, and readers for a user's own files.

Six doors::

    load("mnist")          a published dataset from the folder ILHASH_DATA, its SHA-256 verified
    read_matrix("X.npy")   a user's vectors (.npy .npz .csv .parquet .h5); read_vector for the labels
    open_vectors("X.zarr") the same without reading it, for vectors that fit in no memory; also directories of files
    InfiniteDigits()       endless deformed digits, any slice of them made on demand
    gist(images)           descriptors of a user's images, 320 numbers each
    read_edge_histograms("features_edgehistogram")   descriptors of MIRFLICKR-1M

Nothing is downloaded: a missing file says what to put where. The rooms behind the doors::

    _registry   what is known: files, checksums, sizes, licences
    _files      where the files are, and whether they are the right ones
    _loaders    bytes -> Dataset
    _computed   features of a known dataset, computed once and kept
    _catalogue  load, available
    _formats    .npy .npz .parquet .h5 -> array
    _text       .csv .txt -> array
    _matrix     read_matrix, read_vector: one contract over all formats
    _infinite   InfiniteDigits: image i from (seed, i)
    _gist       gist: images -> descriptors
    _edge_histograms   read_edge_histograms
    _blocks     a .npy file written in blocks
    _threads    the parameter n_threads
    _open       open_vectors: what is read by rows; _chunked, _parquet and _parts are its formats
"""

from ._catalogue import DatasetInfo, available, load
from ._computed import cache_home
from ._edge_histograms import read_edge_histograms
from ._files import data_home
from ._gist import gist
from ._infinite import InfiniteDigits
from ._loaders import Dataset
from ._matrix import read_matrix, read_vector
from ._open import open_vectors

__all__ = [
    "Dataset",
    "DatasetInfo",
    "InfiniteDigits",
    "available",
    "cache_home",
    "data_home",
    "gist",
    "load",
    "open_vectors",
    "read_edge_histograms",
    "read_matrix",
    "read_vector",
]
