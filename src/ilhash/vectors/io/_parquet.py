"""Parquet: row groups are found by metadata, and only those that are needed are decoded, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.vectors import VectorSource

from ._directory import Begins
from ._formats import Array, decoding, feature_columns, open_parquet, reader, table_array

BATCH_BYTES = 16 << 20  # of values, as an array


class ParquetSource(VectorSource):
    """The numeric columns of a Parquet file, or its one column of lists of equal length."""

    _file: Any = None  # of the library, once it is open in this process

    def __init__(self, path: Path, key: str | None) -> None:
        super().__init__()
        self.path = path
        file = self._opened()
        schema = file.schema_arrow
        columns = self.feature_columns = feature_columns(path, schema, key)
        self.groups = Begins([file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)])
        n = int(self.groups.rows[-1])
        self.dtype, width = np.dtype(np.float64), 0
        first = next(self._decoded(0, 1), None) if n else table_array(path, schema.empty_table().select(columns))
        if first is not None and first.ndim == 2:
            self.dtype, width = first.dtype, first.shape[1]
        self.shape = (n, width)

    def __str__(self) -> str:
        return str(self.path)

    def _opened(self) -> Any:
        if self._file is None:
            self._file = open_parquet(self.path)
        return self._file

    def _decoded(self, group: int, step: int) -> Iterator[Array]:
        """Give the rows of one row group in batches."""
        pyarrow = reader("pyarrow", self.path)
        with decoding(self.path):
            batches = self._opened().iter_batches(batch_size=step, row_groups=[group], columns=self.feature_columns)
        while True:
            with decoding(self.path):
                batch = next(batches, None)
            if batch is None:
                return
            yield table_array(self.path, pyarrow.Table.from_batches([batch]))

    def _checked(self, group: int, step: int) -> Iterator[Array]:
        for block in self._decoded(group, step):
            width = self.shape[1]
            if block.shape[1] != width:
                raise ValueError(f"{self.path} must hold lists of one length, got {width} and {block.shape[1]} numbers")
            yield np.asarray(block, dtype=self.dtype)

    @property
    def _rows_per_batch(self) -> int:
        return max(1, BATCH_BYTES // max(1, self.shape[1] * self.dtype.itemsize))

    def _pick(self, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
        for group, own in self.groups.of_rows(rows):
            yield from self._of_group(group, own)

    def _of_group(self, group: int, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
        """Give rows of one row group, whose numbers count from its beginning; stop after the last of them."""
        first = done = 0
        for block in self._checked(group, self._rows_per_batch):
            until = int(np.searchsorted(rows, first + len(block)))
            yield block[rows[done:until] - first]
            first, done = first + len(block), until
            if done == len(rows):
                return

    def _blocks(self, first: int, last: int, step: int) -> Iterator[Array]:
        for group, low, high in self.groups.of_stretch(first, last):
            done = 0
            for block in self._checked(group, min(step, self._rows_per_batch)):
                wanted = block[max(0, low - done) : max(0, high - done)]
                if len(wanted):
                    yield wanted
                done += len(block)
