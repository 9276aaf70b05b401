"""HDF5 and Zarr: matrices stored in chunks of rows, read chunk by chunk."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.sources import VectorSource

from ._formats import Array, decoding, find_h5, pick, require

BLOCK_BYTES = 32 << 20  # what is read at once, in whole chunks


SPARSE = 4  # chunks per wanted chunk from which on a call for each is better than one for all


def _runs(numbers: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return begin and end of every run of equal numbers."""
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    return list(pairwise([*begins, len(numbers)]))


class ChunkedSource(VectorSource):
    """A 2-D array of a library that reads slices of rows, and reads whole chunks to do so.

    Attributes
    ----------
    path, key : of the file, and of the array in it
    rows_per_read : a multiple of a chunk's rows, so that no chunk is decoded twice
    """

    def __init__(self, path: Path, key: str, shape: tuple[int, int], dtype: np.dtype[Any], chunk_rows: int) -> None:
        super().__init__()
        self.path, self.key, self.shape, self.dtype = path, key, shape, dtype
        whole = max(1, BLOCK_BYTES // max(1, shape[1] * dtype.itemsize))
        self.rows_per_read = chunk_rows * max(1, whole // chunk_rows)
        self.chunk_rows = chunk_rows
        self._array: Any = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._array = None

    def __str__(self) -> str:
        return f"{self.path}::{self.key}"

    @abstractmethod
    def _open(self) -> Any:
        """Return the library's array."""

    def _read(self, first: int, last: int) -> Array:
        with decoding(self.path):
            if self._array is None:
                self._array = self._open()
            block: Array = np.asarray(self._array[first:last])
        if block.shape != (last - first, self.shape[1]):
            raise ValueError(f"{self} must stay as it is while it is read, got another shape")
        return block

    def _pick(self, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
        for begin, end in _runs(rows // self.rows_per_read):
            own = rows[begin:end]
            chunks = own // self.chunk_rows
            # One call for all where most chunks in between are wanted too; else one for each chunk that is.
            n_chunks, spread = len(np.unique(chunks)), int(chunks[-1] - chunks[0]) + 1
            for low, high in [(0, len(own))] if SPARSE * n_chunks >= spread else _runs(chunks):
                wanted = own[low:high]
                yield self._read(int(wanted[0]), int(wanted[-1]) + 1)[wanted - wanted[0]]

    def _blocks(self, first: int, last: int, step: int) -> Iterator[Array]:
        while first < last:
            until = min(last, (first // self.rows_per_read + 1) * self.rows_per_read)
            block = self._read(first, until)
            for begin in range(0, len(block), step):
                yield block[begin : begin + step]
            first = until


class HDF5Source(ChunkedSource):
    """A dataset of an HDF5 file that is stored in chunks."""

    def _open(self) -> Any:
        return require("h5py", self.path).File(self.path, "r")[self.key]


class ZarrSource(ChunkedSource):
    """An array of a Zarr store, of format 2 or 3."""

    def _open(self) -> Any:
        store = require("zarr", self.path).open(str(self.path), mode="r")
        return store[self.key] if self.key else store

    def __str__(self) -> str:
        return f"{self.path}::{self.key}" if self.key else str(self.path)


def open_h5(path: Path, key: str | None) -> VectorSource | Array:
    """Open a 2-D dataset: as a memory map where it lies in the file in one piece, else as a source."""
    h5py = require("h5py", path)
    with decoding(path):
        file = h5py.File(path, "r")
    with file:
        name = find_h5(h5py, path, file, key, (2,))
        dataset = file[name]
        shape, dtype, offset = dataset.shape, dataset.dtype, dataset.id.get_offset()
        if dataset.ndim != 2 or h5py.check_string_dtype(dtype) is not None or 0 in shape:
            return np.empty(shape, "U1" if dtype.kind == "O" else dtype)  # which is refused like that of any format
        if offset is not None and dataset.external is None:
            return np.memmap(path, dtype, "r", offset, shape)
        chunk_rows = dataset.chunks[0] if dataset.chunks else 1
    return HDF5Source(path, name, shape, dtype, chunk_rows)


def open_zarr(path: Path, key: str | None) -> VectorSource | Array:
    """Open a 2-D array of a Zarr store."""
    zarr = require("zarr", path)
    with decoding(path):
        store = zarr.open(str(path), mode="r")
        is_array = hasattr(store, "chunks")
        arrays = {} if is_array else {name: array.ndim for name, array in store.arrays()}
        if key is not None and not is_array and key.strip("/") in store:
            arrays[key.strip("/")] = store[key.strip("/")].ndim
    if is_array and key is not None:
        raise ValueError(f"{path} must be given without a key, because it is one array, got {key!r}")
    if not is_array:
        names = [name for name, ndim in arrays.items() if ndim == 2]
        key = pick(path, None if key is None else key.strip("/"), names, "2-D array")
    with decoding(path):
        array = store[key] if key is not None else store
        shape, dtype, chunks = array.shape, np.dtype(array.dtype), array.chunks
    if len(shape) != 2 or 0 in shape:
        return np.empty(shape, dtype)
    return ZarrSource(path, key or "", (int(shape[0]), int(shape[1])), dtype, _rows_of_a_chunk(array, chunks))


def _rows_of_a_chunk(array: Any, chunks: tuple[int, ...]) -> int:
    shards = getattr(array, "shards", None)  # of format 3: what is read from the file at once may be larger
    return math.lcm(chunks[0], shards[0]) if shards else int(chunks[0])
