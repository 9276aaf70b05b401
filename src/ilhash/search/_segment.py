"""Items that were added together: distinct codes in tiles, posting lists, ids. Immutable but for what was removed.

Rows are ranks of ids, and the distinct codes stand in the order of their first rows; so the order (distance, row) of
the scan is the order (distance, id).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash import codes as packed
from ilhash.search._ids import Ids, IntIds, Rows, StrIds, ids_from_arrays

PIVOTS_FROM = 131_072  # distinct codes; fewer are looked at faster than they are thought about
GATHER_BELOW = 0.05  # share of allowed items below which their codes are taken out rather than all looked at


Arrays = Mapping[str, NDArray[Any]]


class Found(NamedTuple):
    """Answers of one segment, one query behind the other."""

    offsets: NDArray[np.int64]
    rows: Rows
    distances: NDArray[Any]


class Postings(NamedTuple):
    """Which rows have which code; without offsets each code has one row, and without rows, code c is row c."""

    offsets: NDArray[np.uint32] | None
    rows: NDArray[np.uint32] | None
    ordered: bool  # do the first rows ascend from code to code, and is no list empty?

    def only(self, alive: NDArray[np.bool_]) -> Postings:
        """Return the lists without the rows that are not alive."""
        keep = alive if self.rows is None else alive[self.rows]
        rows = np.flatnonzero(alive).astype(np.uint32) if self.rows is None else self.rows[keep]
        before = np.concatenate([[0], np.cumsum(keep)]).astype(np.uint32)
        return Postings(before if self.offsets is None else before[self.offsets], rows, ordered=False)

    def reordered(self, order: NDArray[np.uint32]) -> Postings:
        """Return the lists of the codes in another order."""
        if self.offsets is None or self.rows is None:
            return Postings(None, order, ordered=False)
        old = self.offsets.astype(np.int64)
        lengths = np.diff(old)[order]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        begins = np.repeat(old[:-1][order] - offsets[:-1], lengths)
        rows = self.rows[begins + np.arange(len(self.rows))]
        return Postings(offsets.astype(np.uint32), rows, ordered=False)


class Body:
    """What never changes of a segment: its arrays, by the names that files give them, and what is derived of them.

    ``name`` is that of the file, or "" in memory.
    """

    def __init__(self, n_bits: int, n_rows: int, n_codes: int, arrays: Arrays, kind: str, name: str = "") -> None:
        self.n_bits, self.n_rows, self.n_codes = n_bits, n_rows, n_codes
        self.arrays, self.kind, self.name = arrays, kind, name

    @cached_property
    def ids(self) -> Ids:
        """Ids in the order of the rows."""
        return ids_from_arrays(self.arrays, self.kind)

    @cached_property
    def postings(self) -> Postings:
        """Lists of all rows, dead ones included."""
        return Postings(self.arrays.get("offsets"), self.arrays.get("rows"), ordered="rings" not in self.arrays)

    @cached_property
    def _code_of_row(self) -> NDArray[np.uint32]:
        numbers, lists = np.arange(self.n_codes, dtype=np.uint32), self.postings
        if lists.rows is None:
            return numbers
        codes = np.empty(self.n_rows, np.uint32)
        codes[lists.rows] = numbers if lists.offsets is None else np.repeat(numbers, np.diff(lists.offsets))
        return codes

    def codes(self, rows: Rows) -> NDArray[np.uint8]:
        """Return the packed codes of rows."""
        tiles = self.arrays["tiles"]
        out = np.empty((len(rows), tiles.shape[1]), np.uint8)
        _core.from_tiles(tiles, self._code_of_row[rows], out)
        return out


class Segment:
    """Items of a body that are alive: all but those that were removed, or just some that one search allows.

    Made by :meth:`build` from codes, or on a body. ``removed`` are the rows that are dead, ascending.
    """

    def __init__(self, body: Body, removed: Rows | None = None, *, allowed: Rows | None = None) -> None:
        self.body = body
        self.removed: Rows = np.zeros(0, np.int64) if removed is None else removed
        self._allowed = allowed

    @classmethod
    def build(
        cls, codes: NDArray[np.uint8], n_bits: int, ids: NDArray[Any], margins: NDArray[np.int8] | None = None
    ) -> Segment:
        """Bring equal codes together. The ids must be distinct."""
        sort = IntIds.sorted if ids.dtype == np.int64 else StrIds.sorted
        sorted_ids, order = sort(ids)
        if order is not None:
            codes = codes[order]
            margins = margins if margins is None else margins[order]
        codes = np.ascontiguousarray(codes)
        first_rows, offsets, rows = _core.group_codes(codes)
        postings = Postings(offsets, rows, ordered=True) if len(rows) else Postings(None, None, ordered=True)
        arrays = sorted_ids.to_arrays()  # the first array has one entry per row
        if len(first_rows) >= PIVOTS_FROM:
            nearby, pivots, ranges = _core.order_by_pivots(codes, first_rows, n_bits)
            if len(nearby):
                first_rows, postings = first_rows[nearby], postings.reordered(nearby)
                # Files call the ranges of distances "rings".
                arrays |= {"pivots": pivots.reshape(-1, codes.shape[1]), "rings": ranges.reshape(-1, 3)}
        arrays["tiles"] = packed.to_tiles(codes, first_rows)
        lists = {"offsets": postings.offsets, "rows": postings.rows}
        arrays |= {name: values for name, values in lists.items() if values is not None}
        if margins is not None:
            arrays["margins"] = margins
        return cls(Body(n_bits, len(codes), len(first_rows), arrays, sorted_ids.kind))

    @property
    def arrays(self) -> Arrays:
        """Arrays by the names that files give them, of dead rows too."""
        return self.body.arrays

    @property
    def ids(self) -> Ids:
        """Ids in the order of the rows."""
        return self.body.ids

    @property
    def n_rows(self) -> int:
        """Number of items, dead ones included."""
        return self.body.n_rows

    @property
    def n_codes(self) -> int:
        """Number of distinct codes, dead ones included."""
        return self.body.n_codes

    @property
    def n_alive(self) -> int:
        """Number of items that were not removed."""
        return self.n_rows - len(self.removed) if self._allowed is None else len(self._allowed)

    @cached_property
    def _alive(self) -> NDArray[np.bool_]:
        if self._allowed is not None:
            alive = np.zeros(self.n_rows, np.bool_)
            alive[self._allowed] = True
        else:
            alive = np.ones(self.n_rows, np.bool_)
            alive[self.removed] = False
        return alive

    @property
    def rows_alive(self) -> Rows:
        """Rows that were not removed, ascending."""
        return np.flatnonzero(self._alive) if self._allowed is None else self._allowed

    @cached_property
    def _postings(self) -> Postings:
        return self.body.postings.only(self._alive) if self.n_alive < self.n_rows else self.body.postings

    def without(self, rows: Rows) -> Segment:
        """Return the same items, some more of them dead. The body is shared."""
        return Segment(self.body, np.union1d(self.removed, rows))

    def only(self, rows: Rows) -> Segment:
        """Return a segment in which just these living rows are alive, for one search."""
        return Segment(self.body, allowed=np.unique(rows))

    def find(self, ids: NDArray[Any]) -> Rows:
        """Return the row of each id, -1 where there is none alive."""
        rows = self.ids.find(ids)
        return np.where((rows >= 0) & self._alive[rows], rows, -1) if len(self.removed) else rows

    def n_shared(self, other: Segment) -> int:
        """Return how many living items have an id that a living item of another segment has."""
        rows = self.ids.find_all(other.ids)
        there = (rows >= 0) & other._alive
        return int(np.count_nonzero(self._alive[rows[there]]))

    def codes(self, rows: Rows) -> NDArray[np.uint8]:
        """Return the packed codes of rows."""
        return self.body.codes(rows)

    def nearest(self, queries: NDArray[np.uint8], k: int, max_distance: int, n_threads: int) -> Found:
        """Return the k nearest living items of each query within a distance."""
        if self.n_alive < GATHER_BELOW * self.n_rows:
            return self._among_few(lambda few: few.nearest(queries, k, max_distance, n_threads))
        pivots = self.arrays.get("pivots"), self.arrays.get("rings")
        return Found(*_core.nearest(*self._scanned, queries, k, max_distance, n_threads, *pivots))

    def nearest_weighted(
        self, queries: NDArray[np.uint8], weights: NDArray[np.float32], k: int, n_threads: int
    ) -> Found:
        """Return the k nearest living items where bit j counts ``weights[q, j]``."""
        if self.n_alive < GATHER_BELOW * self.n_rows:
            return self._among_few(lambda few: few.nearest_weighted(queries, weights, k, n_threads))
        return Found(*_core.nearest_weighted(*self._scanned, queries, weights, k, n_threads))

    @property
    def _scanned(self) -> tuple[Any, int, int, Any, Any, bool]:
        return self.arrays["tiles"], self.body.n_codes, self.body.n_bits, *self._postings

    def _among_few(self, search: Callable[[Segment], Found]) -> Found:
        """Search a small segment of the living rows alone; its row numbers count among them."""
        rows = self.rows_alive
        found = search(Segment.build(self.codes(rows), self.body.n_bits, rows))
        return found._replace(rows=rows[found.rows])
