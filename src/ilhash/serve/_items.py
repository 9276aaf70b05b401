"""The items of a service: what the log holds of each, found by its id."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.serve._item_log import (
    FILE,
    ROWS,
    Block,
    Label,
    Records,
    block,
    first_block,
    new_log,
    read_blocks,
    read_first,
)
from ilhash.storage import append_to_file, cut_file, make_folder, open_file, sync_folder, write_file
from ilhash.vectors import VectorSource

Rows = NDArray[np.int64]
WASTE = 4 << 20  # bytes of records that count no more below which a log is left as it is


class Items:
    """A log of items, opened: one writer, many readers in this process and in others.

    Rows only grow: whoever knows one may read it without a lock while others are added.

    Parameters
    ----------
    folder : Path, where the log is; ``create`` makes one
    dimension : int, numbers of a vector, 0 where no vectors are kept
    """

    def __init__(self, folder: Path, dimension: int) -> None:
        self.path, self.dimension = folder / FILE, dimension
        self._read_all()

    @staticmethod
    def create(folder: Path, parts: Iterable[Records]) -> None:
        """Make a log of many items."""
        make_folder(folder)
        log = new_log()

        def chunks() -> Iterator[Any]:
            yield first_block(log)
            for number, part in enumerate(parts, 1):
                yield from block(log, number, part)

        write_file(folder / FILE, chunks())

    # -------------------------------------------------------------------------------------------- reading

    def _read_all(self) -> None:
        with open_file(self.path) as file:
            self.log, self.size = read_first(file, self.path)
            self._file = os.fstat(file.fileno()).st_ino
        self._number = 1
        self._rows: dict[int | str, int] = {}
        self._starts = np.zeros(1024, np.int64)  # of the vector of each row, in numbers from the file's beginning
        self._n = 0
        self._labels: list[Label] = []
        self._texts: list[str | None] = []
        self._map: NDArray[np.float32] = np.zeros(0, np.float32)
        self.last: Records | None = None  # the last change, which the index may not have yet
        self.has_labels = self.has_texts = False
        self._read_on()

    def refreshed(self) -> Items:
        """Read what the writer has added; return the items, others where the log was written anew."""
        if os.stat(self.path).st_ino != self._file:
            return Items(self.path.parent, self.dimension)
        self._read_on()
        return self

    def _read_on(self) -> None:
        for one in read_blocks(self.path, self.log, self._number, self.size):
            self._take(one)

    def _take(self, one: Block) -> None:
        if self.dimension and one.dimension not in (0, self.dimension):
            raise ValueError(f"{self.path} must have vectors of {self.dimension} numbers, got {one.dimension}")
        records, n = one.records, one.n_rows
        while self._n + n > len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros(len(self._starts), np.int64)])
        with_vectors = bool(one.dimension)
        first = one.vectors_at // 4
        self._starts[self._n : self._n + n] = (first + np.arange(n) * one.dimension) if with_vectors else -1
        self._labels += records.labels or [None] * n
        self._texts += records.texts or [None] * n
        self.has_labels |= records.labels is not None
        self.has_texts |= records.texts is not None
        if with_vectors:
            self._map = np.memmap(self.path, np.dtype("<f4"), "r", shape=(one.end // 4,))
        for row, name in enumerate(records.ids, self._n):  # last, so that whoever finds a row can read it
            self._rows[name] = row
        self._n += n
        self._number, self.size, self.last = self._number + 1, one.end, records

    def __len__(self) -> int:
        """Return how many records there are, also those that count no more."""
        return self._n

    def rows(self, ids: Iterable[Any]) -> Rows:
        """Return the row of each id, -1 where the log has none."""
        found = self._rows
        return np.array([found.get(name, -1) for name in ids], np.int64)

    def with_vectors(self, rows: Rows) -> NDArray[np.bool_]:
        """Say which rows, -1 among them, have vectors."""
        starts = self._starts
        return np.asarray((rows >= 0) & (starts[np.maximum(rows, 0)] >= 0))

    def vectors(self, rows: Rows) -> NDArray[np.float32]:
        """Return the vectors of rows that have some."""
        starts, dimension = self._starts[rows], self.dimension
        if len(rows) == 0:
            return np.zeros((0, dimension), np.float32)
        mapped = self._map
        if (np.diff(starts) == dimension).all():
            return np.array(mapped[starts[0] : starts[0] + len(rows) * dimension]).reshape(-1, dimension)
        return np.asarray(mapped[starts[:, None] + np.arange(dimension)])

    def source(self, rows: Rows) -> StoredVectors:
        """Return the vectors of rows as what is read by rows."""
        return StoredVectors(self, rows)

    def label(self, row: int) -> Label:
        """Return the label of a row, None for the row -1."""
        return self._labels[row] if row >= 0 else None

    def text(self, row: int) -> str | None:
        """Return the text of a row, None for the row -1."""
        return self._texts[row] if row >= 0 else None

    # -------------------------------------------------------------------------------------------- writing

    def settle(self) -> None:
        """Cut off what a writer left that was killed, and make all that was read durable."""
        cut_file(self.path, self.size)
        sync_folder(self.path.parent)

    def append(self, records: Records) -> None:
        """Add a change; it is on disk when this returns, wholly or not at all."""
        completed = self._completed(records)
        append_to_file(self.path, self.size, block(self.log, self._number, completed))
        self._read_on()

    def _completed(self, records: Records) -> Records:
        """Return records that hold all that is known: an update leaves as it was what it does not name."""
        if not records.update:
            return records
        rows = self.rows(records.ids)
        labels = records.labels or [self.label(row) for row in rows.tolist()]
        texts = records.texts or [self.text(row) for row in rows.tolist()]
        return records._replace(labels=labels, texts=texts)

    def wasteful(self, n_alive: int) -> bool:
        """Say whether most of a log that is worth it counts no more."""
        return self._n > 2 * n_alive and self.size * (self._n - n_alive) > WASTE * max(1, self._n)

    def compacted(self, ids: Iterable[Any]) -> Items:
        """Write the log anew with the records of these ids alone, and return what it holds then."""
        names = [name for name in ids if name in self._rows]
        rows = self.rows(names)
        self.create(self.path.parent, self._parts(names, rows))
        return Items(self.path.parent, self.dimension)

    def _parts(self, names: list[Any], rows: Rows) -> Iterator[Records]:
        has = self.with_vectors(rows)
        for kind in (True, False):
            chosen = np.flatnonzero(has == kind)
            for first in range(0, len(chosen), ROWS):
                some = chosen[first : first + ROWS]
                own = rows[some]
                labels, texts = [self.label(row) for row in own.tolist()], [self.text(row) for row in own.tolist()]
                yield Records([names[place] for place in some], self.vectors(own) if kind else None, labels, texts)


class StoredVectors(VectorSource):
    """Vectors of some items in the order that was asked for, read from the log."""

    by_row = True

    def __init__(self, items: Items, rows: Rows) -> None:
        super().__init__()
        self._items, self._chosen = items, rows
        self.shape, self.dtype = (len(rows), items.dimension), np.dtype(np.float32)

    def __str__(self) -> str:
        return f"the vectors of {len(self)} items"

    def _pick(self, rows: Rows) -> Iterator[NDArray[np.float32]]:
        for first in range(0, len(rows), ROWS):
            yield self._items.vectors(self._chosen[rows[first : first + ROWS]])

    def _blocks(self, first: int, last: int, step: int) -> Iterator[NDArray[np.float32]]:
        for begin in range(first, last, step):
            yield self._items.vectors(self._chosen[begin : min(begin + step, last)])
