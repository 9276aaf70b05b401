"""Distinct codes and the items that name theirs, in memory, and exact answers out of them.

Codes that no item has any more stay until they are a quarter: graphs cannot forget one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ilhash.engines._settings import Codes, Ids

DEAD = 4  # one code in so many may be without items
Rows = NDArray[np.int64]
Found = tuple[Rows, NDArray[Any]]  # which codes, and how far


class Scan(Protocol):
    """Exact search over some codes, by the library."""

    def nearest(self, queries: Codes, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return distances and rows (n_queries, k), distances ascending, any of those that tie; k codes are there."""

    def within(self, query: Codes, radius: int) -> Found:
        """Return the rows of all codes within a radius of one query (1, bytes), in any order."""


@dataclass(frozen=True)
class Shelf:
    """Distinct codes, and items that name theirs; never changed, only replaced.

    Attributes
    ----------
    codes : uint8 array (m, bytes), each code once
    ids : array (n,), ascending
    numbers : int32 array (n,), which code each item has
    """

    codes: Codes
    ids: Ids
    numbers: NDArray[np.int32]

    def find(self, ids: Ids) -> Rows:
        """Return the row of each id, -1 where there is none."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        rows = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[rows] == ids, rows, -1)

    @cached_property
    def _ranked(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        keys = keys_of(self.codes)
        order = np.argsort(keys)
        return keys[order], order.astype(np.int32)

    def numbered(self, codes: Codes) -> tuple[NDArray[np.int32], Shelf]:
        """Return the numbers of codes, and a shelf that holds those that are new; items are as they were."""
        keys, order = self._ranked
        wanted, where = np.unique(keys_of(codes), return_inverse=True)
        places = np.searchsorted(keys, wanted)
        known = np.zeros(len(wanted), np.bool_)
        if len(keys):
            known = keys[np.minimum(places, len(keys) - 1)] == wanted
        numbers = np.empty(len(wanted), np.int32)
        numbers[known] = order[places[known]]
        numbers[~known] = np.arange(len(keys), len(keys) + np.count_nonzero(~known))
        fresh = np.frombuffer(wanted[~known].tobytes(), np.uint8).reshape(-1, self.codes.shape[1])
        grown = Shelf(np.concatenate([self.codes, fresh]), self.ids, self.numbers)
        ranked = (np.insert(keys, places[~known], wanted[~known]), np.insert(order, places[~known], numbers[~known]))
        grown.__dict__["_ranked"] = ranked  # in the room of the cached property: sorting all again would cost most
        return numbers[where.ravel()], grown

    def with_items(self, ids: Ids, numbers: NDArray[np.int32]) -> Shelf:
        """Return the same codes with other items."""
        other = Shelf(self.codes, ids, numbers)
        if "_ranked" in self.__dict__:
            other.__dict__["_ranked"] = self._ranked
        return other

    def swept(self) -> Shelf:
        """Return a shelf without codes that no item has, numbered anew; this one where they are few."""
        used = np.bincount(self.numbers, minlength=len(self.codes)) > 0
        if DEAD * np.count_nonzero(~used) <= len(used):
            return self
        new = np.cumsum(used, dtype=np.int32) - np.int32(1)
        return Shelf(self.codes[used], self.ids, new[self.numbers])


def keys_of(codes: Codes) -> NDArray[Any]:
    """Return codes as one value each, which NumPy orders by its bytes."""
    return np.ascontiguousarray(codes).view(f"V{codes.shape[1]}").ravel()


class Lists:
    """Items by code: those of the shelf, or of some rows of it, and a scan over the codes that they have."""

    def __init__(self, shelf: Shelf, rows: Rows | None, scan: Any) -> None:
        numbers = shelf.numbers if rows is None else shelf.numbers[rows]
        order = np.argsort(numbers, kind="stable")  # within a code by row, which is by id
        self.ids = shelf.ids
        self.rows = order if rows is None else rows[order]
        self.distinct, self.begin, self.sizes = np.unique(numbers[order], return_index=True, return_counts=True)
        self.scan: Scan = scan(shelf.codes[self.distinct])

    def items(self, which: Rows, far: NDArray[Any], k: int | None = None) -> tuple[Ids, NDArray[Any]]:
        """Return the items of codes, or the first k of them, in the order (distance, id)."""
        sizes = self.sizes[which]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        rows = self.rows[np.arange(total) + np.repeat(self.begin[which] - ends + sizes, sizes)]
        distances = np.repeat(np.asarray(far, np.int32), sizes)
        order = np.lexsort((rows, distances))[:k]
        return self.ids[rows[order]], distances[order]

    def nearest(self, queries: Codes, k: int) -> list[tuple[Ids, NDArray[Any]]]:
        """Return the k nearest items of each query: all codes up to the distance of the k-th, then their items."""
        width = min(k, len(self.distinct))
        if width == 0:
            return [(self.ids[:0], np.zeros(0, np.int32))] * len(queries)
        out = []
        for row, (far, which) in enumerate(zip(*self.scan.nearest(queries, width), strict=True)):
            enough = int(np.searchsorted(np.cumsum(self.sizes[which]), k))
            edge = far[min(enough, width - 1)]
            if edge == far[-1] and width < len(self.distinct):  # others may be as far as the last: bring all of them
                which, far = self.scan.within(queries[row : row + 1], int(edge))
            near = far <= edge
            out.append(self.items(which[near], far[near], k))
        return out

    def within(self, queries: Codes, radius: int) -> list[tuple[Ids, NDArray[Any]]]:
        """Return all items within a radius of each query."""
        if not len(self.distinct):
            return [(self.ids[:0], np.zeros(0, np.int32))] * len(queries)
        return [self.items(*self.scan.within(queries[row : row + 1], radius)) for row in range(len(queries))]
