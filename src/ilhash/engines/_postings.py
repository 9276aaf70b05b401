"""Libraries that keep an index of codes in a file, and nothing of items: the items stand beside it.

::

    <file>                          the library's own index, over distinct codes, numbered from 0
    <file>.items/<SHA-256>          ids, ascending, and the number of each one's code, sealed
    <file>.items/lock               of the one writer

The name of the items is the SHA-256 of the index that they belong to. A change writes them first, then puts the new
index in the place of the old one by one rename, and then drops the old items: a process that is killed leaves the old
pair or the new one. An index that was altered has no items of its name, which is how it is noticed: the libraries
themselves load flipped bits without a word.

Codes that no item has any more stay in the index until they are a quarter of it: graphs cannot forget one by one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash.engines._contract import Codes, Columns, Engine, EngineError, Filter, Ids, Settings, absent, taken
from ilhash.engines._places import path_of
from ilhash.search import Hits, RangeHits
from ilhash.storage import (
    TEMPORARY,
    DamagedFileError,
    Record,
    SealedArrays,
    WriterLock,
    checked_array,
    make_folder,
    open_file,
    parse_json,
    read_file,
    reading,
    sha256_of,
    stage,
    sync_folder,
    temporary_in,
)

FORMAT = 1
ITEMS = SealedArrays("about")
NAMES = re.compile("[0-9a-f]{64}")
DEAD = 4  # one code in so many may be without items
MOST_READS = 20  # of a pair that another process keeps changing
Rows = NDArray[np.int64]
Found = tuple[Rows, NDArray[Any]]  # which codes, and how far


class Scan(Protocol):
    """Exact search over some codes, by the library."""

    def nearest(self, queries: Codes, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return distances and rows (n_queries, k), distances ascending, any of those that tie; k codes are there."""

    def within(self, query: Codes, radius: int) -> Found:
        """Return the rows of all codes within a radius of one query (1, bytes), in any order."""


# ------------------------------------------------------------------------------------------------ what is held


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
        keys = _keys(self.codes)
        order = np.argsort(keys)
        return keys[order], order.astype(np.int32)

    def numbered(self, codes: Codes) -> tuple[NDArray[np.int32], Shelf]:
        """Return the numbers of codes, and a shelf that holds those that are new; items are as they were."""
        keys, order = self._ranked
        wanted, where = np.unique(_keys(codes), return_inverse=True)
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


def _keys(codes: Codes) -> NDArray[Any]:
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


# ------------------------------------------------------------------------------------------------ files


def _to_arrays(shelf: Shelf) -> dict[str, NDArray[Any]]:
    if shelf.ids.dtype != object:
        return {"ids": shelf.ids, "numbers": shelf.numbers}
    texts = [text.encode() for text in shelf.ids.tolist()]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return {"id_text": np.frombuffer(b"".join(texts), np.uint8), "id_ends": ends, "numbers": shelf.numbers}


def _ids_in(arrays: dict[str, NDArray[Any]], kind: str, where: str) -> Ids:
    """Return the ids of a file of items, which must ascend."""
    if kind == "int":
        ids = checked_array(arrays.get("ids"), f"ids of {where}", np.int64, (None,))
    else:
        text = checked_array(arrays.get("id_text"), f"id_text of {where}", np.uint8, (None,)).tobytes()
        ends = checked_array(arrays.get("id_ends"), f"id_ends of {where}", np.int64, (None,), least=0).tolist()
        ids = np.empty(max(len(ends) - 1, 0), object)
        with reading(f"{where} must hold ids that are texts"):
            ids[:] = [text[begin:end].decode() for begin, end in pairwise(ends)]
    if not (ids[:-1] < ids[1:]).all():
        raise DamagedFileError(f"ids of {where} must ascend, got some that do not")
    return ids


class Pair:
    """The two files, and how they change together."""

    def __init__(self, path: Path, engine: str) -> None:
        self.path, self.engine = path, engine
        self.folder = path.with_name(f"{path.name}.items")

    def read(self) -> tuple[bytes, Settings, str, Ids, NDArray[np.int32]]:
        """Return the bytes of the index, settings, mode, ids and numbers, all of the same moment."""
        seen = ""
        for _ in range(MOST_READS):
            data = read_file(self.path, most=2**62)
            name = sha256_of([data])
            with contextlib.suppress(FileNotFoundError):  # a writer was quicker: its new pair is there
                return data, *self._items(name)
            if name == seen:
                break
            seen = name
        raise DamagedFileError(self._without_items())

    def _without_items(self) -> str:
        rule = f"{self.path} must be an index that ilhash wrote, with its items in {self.folder.name}"
        if any(NAMES.fullmatch(name) for name in self.names()):
            return f"{rule}, got a file that they do not belong to: it was altered, truncated or replaced"
        return f"{rule}, got a file without items"

    def names(self) -> list[str]:
        """Return the names of the files beside the index."""
        return os.listdir(self.folder) if self.folder.is_dir() else []

    def _items(self, name: str) -> tuple[Settings, str, Ids, NDArray[np.int32]]:
        file = self.folder / name
        arrays, text = ITEMS.read(file, place=name)
        about = Record(parse_json(text.encode(), file, "a file of items"), str(file))
        about.whole("format", FORMAT, FORMAT)
        about.one_of("engine", (self.engine,))
        model = None if about.document.get("model") is None else about.text("model")
        settings = Settings(about.whole("n_bits", 1, 65_535), about.one_of("ids", ("int", "str")), model)
        ids = _ids_in(arrays, settings.ids, str(file))
        numbers = checked_array(arrays.get("numbers"), f"numbers of {file}", np.int32, (len(ids),), least=0)
        return settings, about.text("mode"), ids, numbers

    def write(self, index: Any, shelf: Shelf, settings: Settings, mode: str) -> None:
        """Put a new pair in the place of the old one; it is durable when this returns."""
        name = sha256_of([index])
        about = {"format": FORMAT, "engine": self.engine, "mode": mode, **asdict(settings)}
        ITEMS.write(self.folder / name, _to_arrays(shelf), json.dumps(about), place=name)
        temporary = temporary_in(self.folder)
        try:
            stage(temporary, [index])
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(self.path.parent)
        self.sweep(name)

    def sweep(self, name: str) -> None:
        """Drop items of other indexes, and what a killed process left; only for the one writer."""
        for other in self.names():
            if other != name and (NAMES.fullmatch(other) or other.startswith(TEMPORARY)):
                with contextlib.suppress(OSError):  # a reader may hold it on Windows: the next writer drops it
                    (self.folder / other).unlink()

    def refuse_remains(self) -> None:
        """Refuse to begin anew where items are left of an index that is gone."""
        for name in filter(NAMES.fullmatch, self.names()):
            _, _, ids, _ = self._items(name)
            if len(ids):
                raise EngineError(f"{self.path} must be there for the {len(ids)} items in {self.folder}, got no file")


# ------------------------------------------------------------------------------------------------ the engine


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
            raise DamagedFileError(pair._without_items())
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
            self._read()
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
        distinct, where = np.unique(_keys(codes), return_inverse=True)  # of one bit there are two codes alone
        some = np.frombuffer(distinct.tobytes(), np.uint8).reshape(-1, codes.shape[1])
        _, read = self._loaded(bytes(self._dumped(self._built(self._kind, some))), self._kind)
        far, which = self._scan(some).nearest(query, len(some))
        distances = np.empty(len(some), np.int64)
        distances[which[0]] = far[0]
        return read[where.ravel()], distances[where.ravel()].tolist()
