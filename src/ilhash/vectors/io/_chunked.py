"""HDF5 and Zarr: matrices stored in chunks of rows, read chunk by chunk."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.vectors import VectorSource

from ._directory import runs
from ._formats import Array, decoding, h5_dataset, pick, reader

BLOCK_BYTES = 32 << 20  # what is read at once, in whole chunks
SPARSE = 4  # chunks per wanted chunk from which on a call for each is better than one for all


class ChunkedSource(VectorSource):
    """The 2-D array ``key`` of a library that reads slices of rows, and reads whole chunks to do so."""

    _array: Any = None  # of the library, once it is open in this process

    def __init__(self, path: Path, key: str, shape: tuple[int, int], dtype: np.dtype[Any], chunk_rows: int) -> None:
        super().__init__()
        self.path, self.key, self.shape, self.dtype = path, key, shape, dtype
        whole = max(1, BLOCK_BYTES // max(1, shape[1] * dtype.itemsize))
        self.rows_per_read = chunk_rows * max(1, whole // chunk_rows)  # so that no chunk is decoded twice
        self.chunk_rows = chunk_rows

    def __str__(self) -> str:
        return f"{self.path}::{self.key}" if self.key else str(self.path)

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
        for begin, end in runs(rows // self.rows_per_read):
            own = rows[begin:end]
            chunks = own // self.chunk_rows
            # One call for all where most chunks in between are wanted too; else one for each chunk that is.
            n_chunks, spread = len(np.unique(chunks)), int(chunks[-1] - chunks[0]) + 1
            for low, high in [(0, len(own))] if SPARSE * n_chunks >= spread else runs(chunks):
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
        return reader("h5py", self.path).File(self.path, "r")[self.key]


class ZarrSource(ChunkedSource):
    """An array of a Zarr store, of format 2 or 3."""

    def _open(self) -> Any:
        store = reader("zarr", self.path).open(str(self.path), mode="r")
        return store[self.key] if self.key else store


def open_h5(path: Path, key: str | None) -> VectorSource | Array:
    """Open a 2-D dataset: as a memory map where it lies in the file in one piece, else as a source."""
    with h5_dataset(path, key, (2,)) as (name, dataset):
        shape, dtype, offset = dataset.shape, dataset.dtype, dataset.id.get_offset()
        if dataset.ndim != 2 or reader("h5py", path).check_string_dtype(dtype) is not None or 0 in shape:
            return np.empty(shape, "U1" if dtype.kind == "O" else dtype)  # which is refused like that of any format
        if offset is not None and dataset.external is None:
            return np.memmap(path, dtype, "r", offset, shape)
        chunk_rows = dataset.chunks[0] if dataset.chunks else 1
    return HDF5Source(path, name, shape, dtype, chunk_rows)


def open_zarr(path: Path, key: str | None) -> VectorSource | Array:
    """Open a 2-D array of a Zarr store."""
    zarr = reader("zarr", path)
    inner = None if key is None else key.strip("/")
    with decoding(path):
        store = zarr.open(str(path), mode="r")
        is_array = hasattr(store, "chunks")
        arrays = {} if is_array else dict(store.arrays())
        if inner is not None and not is_array and inner in store:
            arrays[inner] = store[inner]
        names = [name for name, array in arrays.items() if array.ndim == 2]
    if is_array and key is not None:
        raise ValueError(f"{path} must be given without a key, because it is one array, got {key!r}")
    if not is_array:
        key = pick(path, inner, names, "2-D array")
    with decoding(path):
        array = store[key] if key is not None else store
        shape, dtype, chunks = array.shape, np.dtype(array.dtype), array.chunks
    if len(shape) != 2 or 0 in shape:
        return np.empty(shape, dtype)
    return ZarrSource(path, key or "", (int(shape[0]), int(shape[1])), dtype, _rows_of_a_chunk(array, chunks))


def _rows_of_a_chunk(array: Any, chunks: tuple[int, ...]) -> int:
    shards = getattr(array, "shards", None)  # of format 3: what is read from the file at once may be larger
    return math.lcm(chunks[0], shards[0]) if shards else int(chunks[0])
