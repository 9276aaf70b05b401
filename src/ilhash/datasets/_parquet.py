"""Parquet: row groups are found by metadata, and only those that are needed are decoded, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.sources import VectorSource

from ._formats import Array, decoding, feature_columns, pick, require, table_array

BATCH_BYTES = 16 << 20  # of values, as an array


class ParquetSource(VectorSource):
    """The numeric columns of a Parquet file, or its one column of lists of equal length.

    Attributes
    ----------
    path : of the file
    feature_columns : that make a vector
    groups : the first row of every row group, and the number of all rows
    """

    def __init__(self, path: Path, key: str | None) -> None:
        super().__init__()
        self.path = path
        self._file: Any = None
        file = self._opened()
        schema = file.schema_arrow
        self.feature_columns = feature_columns(schema) if key is None else [pick(path, key, schema.names, "column")]
        sizes = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
        self.groups = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.dtype, width = np.dtype(np.float64), 0
        first = next(self._decoded(0, 1), None) if self.groups[-1] else self._nothing(schema)
        if first is not None and first.ndim == 2:
            self.dtype, width = first.dtype, first.shape[1]
        self.shape = (int(self.groups[-1]), width)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._file = None

    def __str__(self) -> str:
        return str(self.path)

    def _opened(self) -> Any:
        if self._file is None:
            parquet = require("pyarrow.parquet", self.path)
            with decoding(self.path):
                self._file = parquet.ParquetFile(self.path)
        return self._file

    def _nothing(self, schema: Any) -> Array:
        return table_array(self.path, schema.empty_table().select(self.feature_columns))

    def _decoded(self, group: int, step: int) -> Iterator[Array]:
        """Give the rows of one row group in batches."""
        pyarrow = require("pyarrow", self.path)
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
            if block.shape[1] != self.shape[1]:
                raise ValueError(
                    f"{self.path} must hold lists of one length, got {self.shape[1]} and {block.shape[1]} numbers"
                )
            yield np.asarray(block, dtype=self.dtype)

    @property
    def _rows_per_batch(self) -> int:
        return max(1, BATCH_BYTES // max(1, self.shape[1] * self.dtype.itemsize))

    def _pick(self, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
        group_of = np.searchsorted(self.groups, rows, side="right") - 1
        for group in np.unique(group_of):
            begin, end = np.searchsorted(group_of, [group, group + 1])
            yield from self._of_group(int(group), rows[begin:end] - self.groups[group])

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
        for group in range(len(self.groups) - 1):
            begin, end = int(self.groups[group]), int(self.groups[group + 1])
            if end <= first or begin >= last:
                continue
            for block in self._checked(group, min(step, self._rows_per_batch)):
                yield from _not_empty(block[max(0, first - begin) : max(0, last - begin)])
                begin += len(block)


def _not_empty(block: Array) -> Iterator[Array]:
    if len(block):
        yield block
