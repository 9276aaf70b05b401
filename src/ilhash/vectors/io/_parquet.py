"""Parquet: row groups are found by metadata, and only those that are needed are decoded, batch by batch.

A column of one value repeated takes a few bytes however long it is, so what the metadata declare is compared with what
a file can explain wherever it would have to be in memory at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.vectors import VectorSource

from ._directory import Begins
from ._formats import Array, decoding, in_one_line, open_users_file, pick, reader, refuse_expansion, refuse_large_chunk

BATCH_BYTES = 16 << 20  # of values, as an array
MOST_ROWS = 2**48


def read_parquet(path: Path, key: str | None, *, nulls: bool = False) -> Array:
    """Read numeric columns (n, d), one column of lists (n, d), or one column of strings (n,).

    ``nulls`` lets one column of numbers or strings hold some: they come as None among objects.
    """
    with open_parquet(path) as file:
        names = feature_columns(path, file, key)
        declared = 8 * sum(_rows_of_groups(path, file)) * _width(path, file, names)
        refuse_expansion(path, "its columns", declared, path.stat().st_size)
        with decoding(path):
            table = file.read(columns=names)
    if nulls and table.num_columns == 1 and 0 < table.column(0).null_count < table.num_rows:
        return _with_nulls(path, table)
    return table_array(path, table)


def _with_nulls(path: Path, table: Any) -> Array:
    with decoding(path):
        valid = table.column(0).is_valid()
        there, known = valid.to_numpy(), table.filter(valid)
    found = np.full(len(there), None, object)
    found[there] = table_array(path, known).ravel().tolist()
    return found


def open_parquet(path: Path) -> Any:
    """Open a file, of which only the metadata are read."""
    parquet = reader("pyarrow.parquet", path)
    open_users_file(path).close()
    with decoding(path):
        return parquet.ParquetFile(path)


def feature_columns(path: Path, file: Any, key: str | None, without: Sequence[str] = ()) -> list[str]:
    """Name the column `key`, or all but those left out and those in which pandas keeps an index: no features."""
    with decoding(path):
        schema = file.schema_arrow
        names, metadata = list(schema.names), schema.pandas_metadata if key is None else None
    if key is not None:
        return [pick(path, key, names, "column")]
    index = metadata.get("index_columns", []) if isinstance(metadata, dict) else []
    return [name for name in names if name not in without and not (isinstance(index, list) and name in index)]


def _rows_of_groups(path: Path, file: Any) -> list[int]:
    """Return the rows that each row group declares.

    What it declares of its columns is not asked for: pyarrow ends the process where that is wrong.
    """
    with decoding(path):
        rows = [int(file.metadata.row_group(group).num_rows) for group in range(file.metadata.num_row_groups)]
    if min(rows, default=0) < 0 or sum(rows) >= MOST_ROWS:
        raise ValueError(f"{path} must declare from 0 to {MOST_ROWS} rows, got {sum(rows)}")
    return rows


def _width(path: Path, file: Any, names: list[str]) -> int:
    """Return the values of a row, as far as the schema says: one for a list of any length."""
    types = importlib.import_module("pyarrow.types")
    with decoding(path):
        kinds = [field.type for field in file.schema_arrow if field.name in names]
        return sum(kind.list_size if types.is_fixed_size_list(kind) else 1 for kind in kinds)


def _kind(arrow_type: Any) -> str:
    types = importlib.import_module("pyarrow.types")
    if types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type):
        return "list" if _kind(arrow_type.value_type) == "number" else "other"
    if types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_boolean(arrow_type):
        return "number"
    return "string" if types.is_string(arrow_type) or types.is_large_string(arrow_type) else "other"


def _plain(table: Any) -> Any:
    """Undo dictionary encoding, in which pandas writes its categories."""
    types = importlib.import_module("pyarrow.types")
    for j, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(field.type.value_type))
    return table


def table_array(path: Path, table: Any) -> Array:
    """Return numeric columns (n, d), one column of lists (n, d), or one column of strings (n,)."""
    with decoding(path):
        table = _plain(table)
    kinds = [_kind(column.type) for column in table.columns]
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise ValueError(f"{path} must hold no nulls, got {column.null_count} in column {name!r}")
    if kinds and set(kinds) == {"number"}:
        with decoding(path):
            return _number_columns(table)
    if kinds == ["list"]:
        return _list_column(path, table.column_names[0], table.column(0))
    if kinds == ["string"]:
        with decoding(path):
            return np.array(table.column(0).to_pylist(), dtype=np.str_)
    got = in_one_line([f"{field.name} ({field.type})" for field in table.schema]) or "no column"
    raise ValueError(
        f"{path} must hold only numeric columns or one column of numeric lists (choose it with "
        f"{path.name}::column), got: {got}"
    )


def _number_columns(table: Any) -> Array:
    columns = [column.to_numpy() for column in table.columns]
    matrix = np.empty((table.num_rows, len(columns)), np.result_type(*columns))
    for j, column in enumerate(columns):
        matrix[:, j] = column
    return matrix


def _list_column(path: Path, name: str, column: Any) -> Array:
    compute = importlib.import_module("pyarrow.compute")
    with decoding(path):
        widths = compute.unique(compute.list_value_length(column)).to_pylist()
    if len(widths) > 1:
        raise ValueError(
            f"{path} must hold lists of one length in column {name!r}, got lengths {min(widths)} to {max(widths)}"
        )
    # Chunk by chunk: joined list offsets may not fit their 32 bits.
    parts = []
    for chunk in column.chunks:
        with decoding(path):
            values = chunk.flatten()
        if values.null_count:
            raise ValueError(f"{path} must hold no nulls, got {values.null_count} in the lists of {name!r}")
        with decoding(path):
            parts.append(values.to_numpy(zero_copy_only=False).reshape(len(chunk), *widths))
    return np.concatenate(parts) if widths else np.empty((0, 0))


class ParquetSource(VectorSource):
    """The numeric columns of a Parquet file, or its one column of lists of equal length."""

    _file: Any = None  # of the library, once it is open in this process

    def __init__(self, path: Path, key: str | None, without: Sequence[str] = ()) -> None:
        super().__init__()
        self.path = path
        file = self._opened()
        columns = self.feature_columns = feature_columns(path, file, key, without)
        rows = _rows_of_groups(path, file)
        refuse_large_chunk(path, 8 * _width(path, file, columns))  # a row is decoded whole
        self.groups, n = Begins(rows), sum(rows)
        self.dtype, width = np.dtype(np.float64), 0
        with decoding(path):
            empty = file.schema_arrow.empty_table().select(columns)
        filled = next((group for group, own in enumerate(rows) if own), None)
        first = table_array(path, empty) if filled is None else next(self._decoded(filled, 1), None)
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
            for block in self._checked(group, self._rows_per_batch):
                wanted = block[max(0, low - done) : max(0, high - done)]
                yield from (wanted[begin : begin + step] for begin in range(0, len(wanted), step))
                done += len(block)
                if done >= high:
                    break
