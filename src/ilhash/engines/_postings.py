"""Libraries that keep an index of codes in a file, and nothing of items: the items stand beside it.

Everything is in memory (``_shelf.py``); a change writes both files anew (``_pair.py``).
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash.engines._bits import BitChange
from ilhash.engines._contract import Engine
from ilhash.engines._pair import Pair
from ilhash.engines._places import path_of
from ilhash.engines._settings import BLOCK, Codes, Columns, EngineError, Filter, Ids, Settings, absent, taken
from ilhash.engines._shelf import Lists, Rows, Scan, Shelf, keys_of
from ilhash.search import Hits, RangeHits
from ilhash.storage import DamagedFileError, WriterLock, make_folder, open_file, reading


class PostingsEngine(Engine):
    """Common part; an engine brings the library's index, and a scan."""

    def __init__(self, pair: Pair, mode: str, writable: bool) -> None:
        self.pair, self.mode = pair, mode
        self.lock: WriterLock | None = None
        self._index: Any = None
        self._stale = False  # whether the files may hold something else than memory
        if writable:
            make_folder(pair.folder)
            self.lock = WriterLock(pair.folder / "lock")

    # -------------------------------------------------------------------------------------------- hooks

    @abstractmethod
    def _built(self, mode: str, codes: Codes) -> Any:
        """Return the library's index of a mode over codes, numbered from 0."""

    @abstractmethod
    def _grown(self, index: Any, mode: str, codes: Codes, first: int) -> Any:
        """Return the index with the codes from number ``first`` on added, the same or a new one."""

    @abstractmethod
    def _dumped(self, index: Any) -> Any:
        """Return the bytes of the library's file."""

    @abstractmethod
    def _loaded(self, data: bytes, mode: str) -> tuple[Any, Codes]:
        """Return the index of a file, and its codes by number; ``reading`` is around it."""

    @abstractmethod
    def _asked(self, index: Any, queries: Codes, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Ask an approximate index: numbers (n_queries, k), -1 where there is none, and distances."""

    @abstractmethod
    def _scan(self, codes: Codes) -> Scan:
        """Return an exact search over codes, at least one."""

    # -------------------------------------------------------------------------------------------- places

    @classmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> Engine:
        """Open the pair of files, or make it."""
        pair = Pair(path_of(url), cls.name)
        there = os.path.lexists(pair.path)
        if not there and (new is None or not writable):
            raise FileNotFoundError(f"{pair.path} must be an index of {cls.name}, or n_bits be given, got no file")
        if there and not pair.names():
            open_file(pair.path).close()  # which refuses what is no file
            raise DamagedFileError(pair.without_items())
        engine = cls(pair, mode, writable)
        try:
            engine._open(new, there)
        except BaseException:
            engine.close()
            raise
        return engine

    def _open(self, new: Settings | None, there: bool) -> None:
        if there:
            self._read()
            self.self_check()
        elif new is not None:
            self.pair.refuse_remains()
            self.settings, self._kind = new, self.mode
            self.self_check()
            codes = np.zeros((0, packed.bytes_per_code(new.n_bits)), np.uint8)
            self._hold(Shelf(codes, np.zeros(0, self._id_type), np.zeros(0, np.int32)))
            self._index = self._built(self.mode, codes)
            self._write(self._shelf)
        if self.mode not in ("exact", self._kind):  # exact searches need no graph, and leave the one that is there
            self._kind, self._index = self.mode, self._built(self.mode, self._shelf.codes)
            if self.lock is not None:
                self._write(self._shelf)

    def _read(self) -> None:
        data, self.settings, self._kind, ids, numbers = self.pair.read()
        where = f"{self.pair.path} must be an index of {self.name}"
        with reading(where, (ValueError, TypeError, LookupError, RuntimeError, MemoryError, OverflowError)):
            self._index, codes = self._loaded(data, self._kind)
        wanted = (int(numbers.max(initial=-1)) + 1, packed.bytes_per_code(self.n_bits))
        if len(codes) < wanted[0] or codes.shape[1] != wanted[1]:
            raise DamagedFileError(f"{where} with {wanted[0]} codes of {wanted[1]} bytes or more, got {codes.shape}")
        self._hold(Shelf(packed.check(codes, self.n_bits), ids, numbers))
        self._stale = False

    def _hold(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._lists: Lists | None = None

    def _write(self, shelf: Shelf) -> None:
        self._stale = True  # until both files are there: whatever stops this leaves one of two pairs
        self.pair.write(self._dumped(self._index), shelf, self.settings, self._kind)
        self._stale = False

    def close(self) -> None:
        """Let go of the files."""
        if self.lock is not None:
            self.lock.release()

    def count(self) -> int:
        """Return the number of items."""
        return len(self._shelf.ids)

    def describe(self) -> dict[str, Any]:
        """Say what this is."""
        return {**super().describe(), "index": self._kind, "distinct codes": len(self._everything.distinct)}

    def _largest_id(self) -> int:
        ids = self._shelf.ids
        return int(ids[-1]) if len(ids) else -1

    def _codes(self, ids: Ids) -> tuple[Ids, Codes]:
        rows = self._shelf.find(ids)
        rows = rows[rows >= 0]
        return self._shelf.ids[rows], self._shelf.codes[self._shelf.numbers[rows]]

    def _blocks(self, size: int) -> Iterator[tuple[Ids, Codes]]:
        shelf = self._shelf
        for first in range(0, len(shelf.ids), size):
            some = slice(first, first + size)
            yield shelf.ids[some].copy(), shelf.codes[shelf.numbers[some]]

    # -------------------------------------------------------------------------------------------- changes

    def _changed(self) -> Shelf:
        """Return what is held, where it may be changed."""
        if self.lock is None or not self.lock.held:
            got = "one that is read only" if self.lock is None else "one that was closed"
            raise EngineError(f"{self.pair.path} must be open for writing to be changed, got {got}")
        if self._stale:
            before = self.settings
            self._read()
            if self.settings != before:  # what was checked by the old ones is not right any more
                raise EngineError(f"{self.pair.path} must have the bits that were known, got {self.n_bits}; try again")
        return self._shelf

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        shelf = self._changed()
        known = int(np.count_nonzero(shelf.find(ids) >= 0))
        if known:
            raise taken(known, len(ids))
        numbers, shelf = shelf.numbered(codes)
        order = np.argsort(ids)
        places = np.searchsorted(shelf.ids, ids[order])
        all_ids, all_numbers = (
            np.insert(shelf.ids, places, ids[order]),
            np.insert(shelf.numbers, places, numbers[order]),
        )
        self._replace(shelf.with_items(all_ids, all_numbers))

    def _update(self, codes: Codes, ids: Ids) -> None:
        rows = self._there(ids)
        new, shelf = self._shelf.numbered(codes)
        numbers = shelf.numbers.copy()
        numbers[rows] = new
        self._replace(shelf.with_items(shelf.ids, numbers))

    def _remove(self, ids: Ids) -> None:
        rows = self._there(ids)
        shelf = self._shelf
        self._replace(shelf.with_items(np.delete(shelf.ids, rows), np.delete(shelf.numbers, rows)))

    def _there(self, ids: Ids) -> Rows:
        rows = self._changed().find(ids)
        missing = int(np.count_nonzero(rows < 0))
        if missing:
            raise absent(missing, len(ids))
        return rows

    def _replace(self, shelf: Shelf) -> None:
        first, swept = len(self._shelf.codes), shelf.swept()
        self._stale = True  # a graph that has grown in memory alone is no longer that of the file
        if swept is not shelf:
            self._index = self._built(self._kind, swept.codes)
        elif len(shelf.codes) > first:
            self._index = self._grown(self._index, self._kind, shelf.codes, first)
        self._write(swept)
        self._hold(swept)

    def _recode(self, change: BitChange) -> None:
        ids, before = self._changed().ids, self.settings
        empty = np.zeros((0, packed.bytes_per_code(change.settings.n_bits)), np.uint8)
        codes = np.concatenate([empty, *(change.recoded(*block) for block in self._blocks(BLOCK))])
        change.finish()
        numbers, shelf = Shelf(empty, ids[:0], np.zeros(0, np.int32)).numbered(codes)
        self._stale, self.settings = True, change.settings
        try:
            self._index = self._built(self._kind, shelf.codes)
            self._write(shelf.with_items(ids, numbers))
        except BaseException:
            self.settings = before  # of what is held; the next change looks at the files
            raise
        self._hold(shelf.with_items(ids, numbers))

    # -------------------------------------------------------------------------------------------- search

    @property
    def _everything(self) -> Lists:
        if self._lists is None:
            self._lists = Lists(self._shelf, None, self._scan)
        return self._lists

    def _wanted(self, wanted: Filter) -> Lists:
        if wanted.allowed is None:
            return self._everything
        rows = self._shelf.find(wanted.allowed)  # ascending, as the ids are
        return Lists(self._shelf, rows[rows >= 0], self._scan)

    def _nearest(self, queries: Codes, k: int, wanted: Filter) -> Hits:
        if wanted or self.mode == "exact" or self._stale:
            return self._hits(self._wanted(wanted).nearest(queries, k), k, exact=True)
        return self._hits(self._approximate(queries, k), k, exact=False)

    def _within(self, queries: Codes, radius: int, wanted: Filter) -> RangeHits:
        return self._range_hits(self._wanted(wanted).within(queries, radius))

    def _approximate(self, queries: Codes, k: int) -> list[tuple[Ids, NDArray[Any]]]:
        """Ask the graph for codes, for more of them where they bring fewer than k items, and bring the items."""
        lists, n_codes = self._everything, len(self._shelf.codes)
        place = np.full(n_codes, -1)  # of a number among the codes that have items
        place[lists.distinct] = np.arange(len(lists.distinct))
        out: list[Any] = [None] * len(queries)
        left, width = np.arange(len(queries)), min(k, n_codes)
        while len(left):
            numbers, far = self._asked(self._index, queries[left], width)
            which = np.where(numbers >= 0, place[numbers], -1)
            for row, some, distances in zip(left, which, far, strict=True):
                out[row] = lists.items(some[some >= 0], distances[some >= 0], k)
            full = width >= n_codes or (numbers < 0).any(axis=1)  # the graph has no more to give
            left = left[[len(out[row][0]) < k for row in left] & ~np.asarray(full)]
            width = min(2 * width, n_codes)
        return out

    def _measured(self, codes: Codes, query: Codes) -> tuple[Codes, Sequence[int]]:
        distinct, where = np.unique(keys_of(codes), return_inverse=True)  # of one bit there are two codes alone
        some = np.frombuffer(distinct.tobytes(), np.uint8).reshape(-1, codes.shape[1])
        _, read = self._loaded(bytes(self._dumped(self._built(self._kind, some))), self._kind)
        far, which = self._scan(some).nearest(query, len(some))
        distances = np.empty(len(some), np.int64)
        distances[which[0]] = far[0]
        return read[where.ravel()], distances[where.ravel()].tolist()
