"""HDF5: datasets whose values are in the file itself, behind filters that the library has built in.

A dataset may be told to keep its values in any other file (external storage), or to be put together of other files
(virtual datasets); a filter may be a library that is loaded when it is met. None of that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ilhash.vectors import VectorSource

from ._chunked import ChunkedSource
from ._formats import (
    Array,
    Declared,
    decoding,
    in_one_line,
    open_users_file,
    pick,
    reader,
    refuse_expansion,
    refuse_large_chunk,
)
from ._rows import RowsInFile

# Numbers of the filters that HDF5 and h5py bring along.
HEAP = b"GCOL\x01\x00\x00\x00"  # how a heap of texts begins
SMALLEST_HEAP = 4096  # bytes of one that the library takes for a heap
FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf"}


class HDF5Source(ChunkedSource):
    """A dataset of an HDF5 file that is stored in chunks."""

    def _open(self) -> Any:
        dataset = reader("h5py", self.path).File(self.path, "r")[self.key]
        refuse_elsewhere(self.path, self.key, dataset)
        return dataset


def open_h5(path: Path, key: str | None) -> VectorSource | Array | Declared:
    """Open a 2-D dataset: read by rows where it lies in the file in one piece, else by chunks."""
    with h5_dataset(path, key, (2,)) as (name, dataset):
        with decoding(path):
            shape, dtype, offset = dataset.shape, dataset.dtype, dataset.id.get_offset()
            chunks = dataset.chunks
        if len(shape) != 2 or dtype.kind not in "biuf" or 0 in shape:
            text = dtype.kind == "O" and reader("h5py", path).check_string_dtype(dtype) is not None
            return Declared(shape, np.dtype("U1") if text else dtype)
        if offset is not None:
            return RowsInFile(path, int(offset), (int(shape[0]), int(shape[1])), dtype)
    return HDF5Source(path, name, (int(shape[0]), int(shape[1])), dtype, chunks[0] if chunks else 1)


def read_h5(path: Path, key: str | None, ndims: Sequence[int]) -> Array | Declared:
    """Read the dataset `key`, or the only one with the first of `ndims` that occurs."""
    with h5_dataset(path, key, ndims) as (_, dataset), decoding(path):
        is_text = reader("h5py", path).check_string_dtype(dataset.dtype) is not None
        if not is_text and dataset.dtype.kind not in "biufS":
            return Declared(dataset.shape, dataset.dtype)
        if dataset.dtype.kind == "O":
            _refuse_endless_heap(path, dataset)
        array: Array = (dataset.asstr() if is_text else dataset)[()]
    return np.array(array, dtype=np.str_) if is_text else array


def _refuse_endless_heap(path: Path, dataset: Any) -> None:
    """Refuse heaps, where texts of any length are kept, with free space of no length: the library would never end."""
    if dataset.file.id.get_create_plist().get_sizes() != (8, 8):
        raise ValueError("lengths of another size than 8 bytes")
    with open_users_file(path) as file:
        data = file.read()
    begin = data.find(HEAP)
    while begin >= 0:
        size = int.from_bytes(data[begin + 8 : begin + 16], "little")
        place, end = begin + 16, begin + size
        while size >= SMALLEST_HEAP and place + 16 <= min(end, len(data)):
            number = int.from_bytes(data[place : place + 2], "little")
            length = int.from_bytes(data[place + 8 : place + 16], "little")
            if number == 0 and length < 16:
                raise ValueError("a heap with free space of no length")
            place += length if number == 0 else 16 + (length + 7) // 8 * 8
        begin = data.find(HEAP, begin + 1)


@contextmanager
def h5_dataset(path: Path, key: str | None, ndims: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """Open the dataset meant by `key`, or the only one with the first of `ndims` that occurs; give its name, too."""
    h5py = reader("h5py", path)
    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: Any, item: Any) -> None:
        # A null dataspace has no shape and no values; a name that is not UTF-8 comes as bytes.
        if isinstance(name, str) and isinstance(item, h5py.Dataset) and item.shape is not None:
            shapes[name] = item.shape

    open_users_file(path).close()
    with decoding(path):
        file = h5py.File(path, "r")
    with file:
        with decoding(path):
            file.visititems(note)  # by hard links alone: soft and external ones are not followed
        name = _h5_name(path, key, shapes, ndims)
        with decoding(path):
            dataset = file[name]
        refuse_elsewhere(path, name, dataset)
        yield name, dataset


def _h5_name(path: Path, key: str | None, shapes: dict[str, tuple[int, ...]], ndims: Sequence[int]) -> str:
    if key is not None:
        return pick(path, key.strip("/"), list(shapes), "dataset")
    for ndim in ndims:
        names = [name for name, shape in shapes.items() if len(shape) == ndim]
        if names:
            return pick(path, None, names, f"{ndim}-D dataset")
    got = in_one_line([f"{name} {shape}" for name, shape in shapes.items()]) or "none"
    raise ValueError(f"{path} must hold a {' or '.join(f'{n}-D' for n in ndims)} dataset, got: {got}")


def refuse_elsewhere(path: Path, name: str, dataset: Any) -> None:
    """Refuse a dataset whose values are in other files, behind other code, or not there at all."""
    with decoding(path):
        made = dataset.id.get_create_plist()
        elsewhere = made.get_external_count() > 0 or dataset.is_virtual
        filters = [made.get_filter(i)[0] for i in range(made.get_nfilters())]
        stored, n_bytes = dataset.id.get_storage_size(), prod(dataset.shape) * dataset.dtype.itemsize
        chunk = prod(dataset.chunks) * dataset.dtype.itemsize if dataset.chunks else 0
    if elsewhere:
        kind = "a virtual dataset" if dataset.is_virtual else "external storage"
        raise ValueError(f"{path} must hold the values of {name!r} itself, got {kind}, which reads other files")
    unknown = [number for number in filters if number not in FILTERS]
    if unknown:
        known = ", ".join(FILTERS.values())
        raise ValueError(f"{path} must hold {name!r} behind filters of {known} alone, got filter number {unknown[0]}")
    refuse_large_chunk(path, chunk)
    refuse_expansion(path, f"dataset {name!r}", n_bytes, stored)
