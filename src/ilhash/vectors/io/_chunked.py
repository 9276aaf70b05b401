"""Matrices stored in chunks of rows, as HDF5 and Zarr do, read chunk by chunk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.vectors import VectorSource

from ._directory import runs
from ._formats import LARGEST_CHUNK, Array, decoding

BLOCK_BYTES = 32 << 20  # what is read at once, in whole chunks
SPARSE = 4  # chunks per wanted chunk from which on a call for each is better than one for all


class ChunkedSource(VectorSource):
    """The 2-D array ``key`` of a library that reads slices of rows, and reads whole chunks to do so."""

    _array: Any = None  # of the library, once it is open in this process

    def __init__(self, path: Path, key: str, shape: tuple[int, int], dtype: np.dtype[Any], chunk_rows: int) -> None:
        super().__init__()
        self.path, self.key, self.shape, self.dtype = path, key, shape, dtype
        row_bytes = max(1, shape[1] * dtype.itemsize)
        # Chunks of a few columns and very many rows are decoded again and again rather than kept all at once.
        self.chunk_rows = min(chunk_rows, max(1, LARGEST_CHUNK // row_bytes))
        whole = max(1, BLOCK_BYTES // row_bytes)
        self.rows_per_read = self.chunk_rows * max(1, whole // self.chunk_rows)  # so that no chunk is decoded twice

    def __str__(self) -> str:
        return f"{self.path}::{self.key}" if self.key else str(self.path)

    @abstractmethod
    def _open(self) -> Any:
        """Return the library's array."""

    def library_array(self) -> Any:
        """Return the library's array, opened once in this process."""
        if self._array is None:
            with decoding(self.path):
                self._array = self._open()
        return self._array

    def _read(self, first: int, last: int) -> Array:
        array = self.library_array()
        with decoding(self.path):
            block: Array = np.asarray(array[first:last])
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
