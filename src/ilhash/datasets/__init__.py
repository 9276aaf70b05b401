"""Named datasets, checked byte by byte; the files of users are opened by ``ilhash.vectors.io``.

Six doors::

    load("mnist")          a published dataset from the folder ILHASH_DATA, its SHA-256 verified
    get("mnist")           its files, from where they are published
    InfiniteDigits()       endless deformed digits, any slice of them made on demand
    gist(images)           descriptors of a user's images, 320 numbers each
    edge_histograms(images)   the same, 150 numbers each
    read_edge_histograms("features_edgehistogram")   descriptors of MIRFLICKR-1M

Only ``get`` asks a server; elsewhere a missing file says what to put where. The rooms behind the doors::

    _registry   what is known: files, checksums, sizes, licences
    _files      where the files are, and whether they are the right ones
    _sources    where files are offered, with published checksums
    _download   one file, which goes on where it broke off; _unpacking archives; _getting get
    _loaders    bytes -> Dataset
    _computed   features of a known dataset, computed once and kept
    _catalogue  load, available
    _infinite   InfiniteDigits: image i from (seed, i)
    _images     what descriptors of images have in common
    _gist       gist
    _edge_histograms   edge_histograms
    _mirflickr  read_edge_histograms
"""

from ._catalogue import DatasetInfo, available, load
from ._computed import cache_home
from ._edge_histograms import edge_histograms
from ._files import data_home
from ._getting import get, offered
from ._gist import gist
from ._infinite import InfiniteDigits
from ._loaders import Dataset
from ._mirflickr import read_edge_histograms

__all__ = ["Dataset", "DatasetInfo", "InfiniteDigits", "available", "get", "load"]
__all__ += ["cache_home", "data_home", "edge_histograms", "gist", "offered", "read_edge_histograms"]
