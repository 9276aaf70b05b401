"""The index: exact search among codes that come and go, in memory or in a durable folder."""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import check_count, check_threads
from ilhash.search import _merging as merging
from ilhash.search._hits import Hits, RangeHits
from ilhash.search._ids import IntIds, Rows, StrIds, as_ids, refuse_repeated
from ilhash.search._margins import MarginScale, as_margins, rescored_by_margins
from ilhash.search._segment import Segment
from ilhash.search._snapshot import StoredSegment
from ilhash.search._store import Store
from ilhash.search._verify import Report
from ilhash.storage import new_folder

Codes = NDArray[np.uint8]


SEGMENT_ROWS = 1 << 22  # codes in memory while blocks are added


class HammingIndex:
    """Exact nearest neighbours in Hamming space, in the order (distance, id).

    Equal codes are kept once, with the list of their items: a million items on 300,000 distinct codes cost 300,000
    distances. Items can be added, replaced and removed at any time. An index lives in memory; ``open`` gives one that
    lives in a folder, where every change is on disk when the call returns.

    Parameters
    ----------
    codes : uint8 array (n, ceil(n_bits / 8)), optional, packed codes, see :mod:`ilhash.codes`; without, it is empty
    n_bits : int, bits per code
    ids : array_like, optional, n whole numbers or texts, each once; by default the items are numbered from 0 on
    margins : float array (n, n_bits), optional, ``model.decision_function(X)``, kept in 8 bits for ``search_margins``

    Examples
    --------
    >>> index = HammingIndex(np.array([[0b0000], [0b0001], [0b0111]], np.uint8), n_bits=8, ids=["a", "b", "c"])
    >>> hits = index.search(np.array([[0b0011]], np.uint8), k=2)
    >>> hits.ids.tolist(), hits.distances.tolist(), hits.exact
    ([['b', 'c']], [[1, 1]], True)
    >>> index.remove(["b"])
    >>> [ids.tolist() for ids, distances in index.within(np.array([[0b0011]], np.uint8), radius=2)]
    [['c', 'a']]
    """

    def __init__(self, codes: Any = None, *, n_bits: int, ids: Any = None, margins: Any = None) -> None:
        self._width = packed.bytes_per_code(n_bits)
        self.n_bits = int(n_bits)
        self._segments: tuple[Segment, ...] = ()
        self._kind: str | None = None
        self._scale: MarginScale | None = None
        self._store: Store | None = None
        self._mutex = threading.RLock()
        if codes is None:
            if ids is not None or margins is not None:
                raise ValueError("ids and margins must come with codes, got them without")
            return
        if margins is not None:
            self._scale = MarginScale.of(as_margins(margins, self.n_bits, len(codes)))
        self.add(codes, ids, margins=margins)

    # -------------------------------------------------------------------------------------------- what is in it

    def __len__(self) -> int:
        return sum(segment.n_alive for segment in self._segments)

    def __contains__(self, item: object) -> bool:
        ids = np.asarray([item])
        kind = "int" if ids.dtype.kind in "iu" else "str"
        return kind == self._kind and any((s.find(as_ids(ids, 1, kind)) >= 0).any() for s in self._segments)

    def __iter__(self) -> Iterator[tuple[int | str, Codes]]:
        """Yield (id, code) of every item, ids ascending."""

        def items(segment: Segment, block: int = 4096) -> Iterator[tuple[Any, Codes]]:
            rows = segment.rows_alive
            for first in range(0, len(rows), block):
                some = rows[first : first + block]
                yield from zip(segment.ids.at(some).tolist(), segment.codes(some), strict=True)

        return heapq.merge(*map(items, self._segments), key=lambda item: item[0])

    @property
    def ids(self) -> NDArray[Any]:
        """All ids, ascending: int64, or str objects."""
        parts = [segment.ids.at(segment.rows_alive) for segment in self._segments]
        return np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)

    @property
    def n_distinct(self) -> int:
        """Number of distinct codes that a search looks at."""
        return sum(segment.n_codes for segment in self._segments)

    @property
    def bytes_per_item(self) -> dict[str, float]:
        """Bytes that an item takes on average: for codes, posting lists, ids and margins."""
        kinds = {"ids": "ids", "id_ends": "ids", "id_text": "ids", "tiles": "codes", "margins": "margins"}
        total = dict.fromkeys(["codes", "lists", "ids", "margins"], 0.0)
        for segment in self._segments:
            for name, array in segment.arrays.items():
                total[kinds.get(name, "lists")] += array.nbytes / max(1, len(self))
        return total

    def codes(self, ids: Any) -> Codes:
        """Return the packed codes of items.

        Parameters
        ----------
        ids : array_like, ids of items that are there

        Returns
        -------
        uint8 array (n, ceil(n_bits / 8)), in the order of the ids
        """
        wanted = self._known(ids)
        out = np.empty((len(wanted), self._width), np.uint8)
        for segment, rows in self._rows_of(wanted):
            here = rows >= 0
            out[here] = segment.codes(rows[here])
        return out

    def __repr__(self) -> str:
        where = f" in {self._store.path}" if self._store else ""
        return f"<HammingIndex of {len(self):,} items, {self.n_bits} bits{where}>"

    # -------------------------------------------------------------------------------------------- search

    def search(self, codes: Any, k: int = 10, *, n_threads: int = 1, allowed: Any = None) -> Hits:
        """Return the k nearest items of each code (all items where there are fewer than k).

        Parameters
        ----------
        codes : uint8 array (n_queries, ceil(n_bits / 8)), the queries
        k : int, default 10, how many
        n_threads : int, default 1, threads to use; -1 for all cores
        allowed : array_like, optional, ids that may be answers, whether the index holds them or not; by default all

        Returns
        -------
        Hits, ids and Hamming distances
        """
        queries, k, n_threads = self._queries(codes), self._at_most("k", k), check_threads(n_threads)
        segments = self._allowed(allowed)
        found = [s.nearest(queries, k, self.n_bits, n_threads) for s in segments]
        return merging.nearest(segments, found, len(queries), k, np.int32, self._kind)

    def within(self, codes: Any, radius: int, *, n_threads: int = 1, allowed: Any = None) -> RangeHits:
        """Return all items whose distance is at most ``radius``.

        Parameters
        ----------
        codes, n_threads, allowed : as in :meth:`search`
        radius : int, the largest distance that is still an answer

        Returns
        -------
        RangeHits, ids and Hamming distances, query by query
        """
        queries, n_threads = self._queries(codes), check_threads(n_threads)
        radius = min(check_count("radius", radius, 0), self.n_bits)
        segments = self._allowed(allowed)
        found = [s.nearest(queries, s.n_alive, radius, n_threads) for s in segments]
        return merging.within(segments, found, len(queries), self._kind)

    def search_asymmetric(self, margins: Any, k: int = 10, *, n_threads: int = 1, allowed: Any = None) -> Hits:
        """Return the k nearest items where a bit that differs counts as much as the query was sure of it.

        The query keeps its margins, the base stays binary: the distance is the sum of ``abs(margin)`` over the bits in
        which query and item differ. Exact in that distance.

        Parameters
        ----------
        margins : float array (n_queries, n_bits), ``model.decision_function(queries)``
        k, n_threads, allowed : as in :meth:`search`

        Returns
        -------
        Hits, ids and weighted distances
        """
        margins = as_margins(margins, self.n_bits, None)
        k, n_threads = self._at_most("k", k), check_threads(n_threads)
        queries, weights = packed.pack(margins > 0), np.abs(margins)
        segments = self._allowed(allowed)
        found = [s.nearest_weighted(queries, weights, k, n_threads) for s in segments]
        return merging.nearest(segments, found, len(queries), k, np.float32, self._kind)

    def search_margins(
        self, margins: Any, k: int = 10, *, shortlist: int | None = None, n_threads: int = 1, allowed: Any = None
    ) -> Hits:
        """Return k of the items nearest in Hamming space, ordered by the margins that the index keeps in 8 bits.

        The order is that of the angle between the margins of query and item (the distances are those between margins
        scaled to length 1). It tells items of one code apart, too. Not exact: an item outside the shortlist cannot be
        found.

        Parameters
        ----------
        margins : float array (n_queries, n_bits), ``model.decision_function(queries)``
        shortlist : int, optional, how many items are taken from the Hamming search; by default 10 k, at least 1,000
        k, n_threads, allowed : as in :meth:`search`

        Returns
        -------
        Hits, ids and distances between margins
        """
        if self._scale is None:
            raise ValueError("margins must have been given to the index at its start, got an index of codes alone")
        margins = as_margins(margins, self.n_bits, None)
        k, n_threads = self._at_most("k", k), check_threads(n_threads)
        size = max(1000, 10 * k) if shortlist is None else self._at_most("shortlist", shortlist, k)
        segments = self._allowed(allowed)
        queries = packed.pack(margins > 0)
        found = [s.nearest(queries, size, self.n_bits, n_threads) for s in segments]
        nearest = zip(segments, merging.shortlist(segments, found, len(queries), size), strict=True)
        rescored = [rescored_by_margins(f, margins, s.arrays["margins"], self._scale) for s, f in nearest]
        hits = merging.within(segments, rescored, len(queries), self._kind)  # each query has the same number of them
        shape = len(queries), len(hits.ids) // max(1, len(queries))
        distances = hits.distances.astype(np.float32).reshape(shape)
        all_in = size >= sum(s.n_alive for s in segments)
        return Hits(distances[:, :k], hits.ids.reshape(shape)[:, :k], exact=all_in)

    # -------------------------------------------------------------------------------------------- change

    def add(self, codes: Any, ids: Any = None, *, margins: Any = None) -> NDArray[Any]:
        """Add items and return their ids; without ids, they are numbered on from the largest that is there.

        Parameters
        ----------
        codes : uint8 array (n, ceil(n_bits / 8)), packed codes
        ids : array_like, optional, new ones, each once
        margins : float array (n, n_bits), optional, for an index that keeps margins

        Returns
        -------
        array (n,), the ids
        """
        with self._mutex:
            new = packed.check(codes, self.n_bits)
            names = self._new_ids(ids, len(new))
            segment = self._built(new, names, margins)
            if len(names):
                self._refuse_taken(names)
                self._change(segment, {})
            return names

    def add_blocks(self, blocks: Iterable[Any], ids: Any = None) -> int:
        """Add codes that come in blocks, all in one step or none, in bounded memory.

        Blocks are brought together to segments of some million codes; if there is one, it is merged as by :meth:`add`.

        Parameters
        ----------
        blocks : iterable of uint8 arrays (n, ceil(n_bits / 8)), such as the shards of ``ilhash.open_codes``
        ids : sequence, optional, of all items in the order of the blocks; by default as in :meth:`add`

        Returns
        -------
        int, how many items were added
        """
        with self._mutex:
            before, large = len(self), _large_blocks(packed.check(block, self.n_bits) for block in blocks)
            first = list(islice(large, 2))
            if len(first) == 1:
                return len(self.add(first[0], ids))
            names = None if ids is None else as_ids(ids, len(ids), self._kind)
            if names is not None:
                refuse_repeated(names)
                self._refuse_taken(names)
            self._put(self._built_one_by_one(chain(first, large), names), self._segments, (), {})
            return len(self) - before

    def _built_one_by_one(self, blocks: Iterable[Codes], ids: NDArray[Any] | None) -> Iterator[Segment]:
        done, next_id = 0, self._next_id() if ids is None else 0
        for new in blocks:
            own = np.arange(next_id + done, next_id + done + len(new)) if ids is None else ids[done : done + len(new)]
            done += len(new)
            if ids is not None and done > len(ids):
                break
            yield self._built(new, own, None)
        if ids is not None and done != len(ids):
            at_least = "at least " if done > len(ids) else ""
            raise ValueError(f"ids must be one per code, got {len(ids)} for {at_least}{done} codes")

    def remove(self, ids: Any) -> None:
        """Remove items.

        Parameters
        ----------
        ids : array_like, ids of items that are there
        """
        with self._mutex:
            self._change(None, self._dead(self._known(ids)))

    def update(self, codes: Any, ids: Any, *, margins: Any = None) -> None:
        """Give items that are there other codes, in one step.

        Parameters
        ----------
        codes, margins : as in :meth:`add`
        ids : array_like, ids of items that are there
        """
        with self._mutex:
            new = packed.check(codes, self.n_bits)
            names = self._new_ids(ids, len(new))
            self._change(self._built(new, names, margins), self._dead(names))

    def compact(self) -> None:
        """Put everything into one segment, without what was removed. Answers do not change; searches get faster."""
        with self._mutex:
            if len(self._segments) > 1 or any(len(s.removed) for s in self._segments):
                united = merging.merged(self._segments)
                self._put([united] if united.n_rows else [], self._segments, range(len(self._segments)), {})

    def _dead(self, ids: NDArray[Any]) -> dict[int, Rows]:
        refuse_repeated(ids)
        found = [rows[rows >= 0] for _, rows in self._rows_of(ids)]
        return {number: rows for number, rows in enumerate(found) if len(rows)}

    def _built(self, codes: Codes, ids: NDArray[Any], margins: Any) -> Segment:
        refuse_repeated(ids)
        if (margins is None) != (self._scale is None):
            rule = "come with every item of this index" if self._scale else "be given to the index at its start"
            raise ValueError(f"margins must {rule}, got {'none' if margins is None else 'some'}")
        kept = None if self._scale is None else self._scale.quantise(as_margins(margins, self.n_bits, len(codes)))
        return Segment.build(codes, self.n_bits, ids, kept)

    def _change(self, new: Segment | None, dead: Mapping[int, Rows]) -> None:
        """Add a segment and let rows of the others die; merge what has become small or sparse."""
        if new is None and not dead:
            return
        now = [s.without(dead[number]) if number in dead else s for number, s in enumerate(self._segments)]
        sparse = [number for number, s in enumerate(now) if s.n_alive < s.n_rows / 2]
        size, first = new.n_rows if new else 0, len(now)
        # Each item is so written again a logarithmic number of times, and the number of segments stays logarithmic.
        while new and first and now[first - 1].n_alive <= 2 * size:
            first -= 1
            size += now[first].n_alive
        chosen = sorted({*sparse, *range(first, len(now))})
        parts = [now[number] for number in chosen] + ([new] if new else [])
        united = [merging.merged(parts)] if chosen else parts
        rest = {now[n].name: rows for n, rows in dead.items() if n not in chosen}
        self._put([segment for segment in united if segment.n_rows], now, chosen, rest)

    def _put(
        self, new: Iterable[Segment], now: Sequence[Segment], gone: Sequence[int], dead: Mapping[str, Rows]
    ) -> None:
        """Append segments to those that are there now, with more dead rows, without those whose numbers are gone."""
        if self._store:
            dropped = [now[number].name for number in gone]
            self._store.commit(add=(segment.arrays for segment in new), remove=dead, drop=dropped)
            self._take_segments()
            return
        self._segments = (*(s for number, s in enumerate(now) if number not in gone), *new)
        self._kind = self._segments[-1].kind if self._segments else self._kind

    # -------------------------------------------------------------------------------------------- folder

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        n_bits: int | None = None,
        ids: str = "int",
        margins: Any = None,
        writable: bool = True,
    ) -> HammingIndex:
        """Open the index in a folder, or make one there where there is none and ``n_bits`` is given.

        One process at a time may have it open with ``writable=True``; any number may read. What ``add``, ``remove`` and
        ``update`` have done is on disk when they return. Use it in a ``with`` statement, or ``close`` it.

        Parameters
        ----------
        path : path-like, the folder
        n_bits : int, optional, of a new index; of an existing one it is checked
        ids : {"int", "str"}, default "int", the kind of ids of a new index
        margins : float array (n, n_bits), optional, of a new index with margins: a sample that the 8 bits are to span
        writable : bool, default True, false reads a snapshot, which ``refresh`` renews, and takes no lock

        Returns
        -------
        HammingIndex, the index in the folder
        """
        if (Path(path) / "manifest.json").exists() or n_bits is None:
            store = Store.open(path, writable=writable)
        elif not writable:
            raise ValueError(f"path must hold an index to be read, got {path}, which holds none")
        else:
            store = Store.create(path, cls._empty(n_bits, ids, margins)._settings)
        try:
            return cls._on(store, n_bits)
        except BaseException:
            store.close()
            raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index into a new folder, from which ``open`` makes it again; wholly or not at all.

        Parameters
        ----------
        path : path-like, a folder that is not there yet
        """
        with new_folder(Path(path)) as folder, Store.create(folder, self._settings) as store:
            united = merging.merged(self._segments) if self._segments else None
            if united and united.n_rows:
                store.commit(add=[united.arrays])

    @classmethod
    def _empty(cls, n_bits: int, ids: str, margins: Any) -> HammingIndex:
        index = cls(n_bits=n_bits)
        if ids not in ("int", "str"):
            raise ValueError(f"ids must be 'int' or 'str', the kind of ids of a new index, got {ids!r}")
        index._kind = ids
        index._scale = None if margins is None else MarginScale.of(as_margins(margins, index.n_bits, None))
        return index

    @property
    def _settings(self) -> dict[str, Any]:
        """What a store keeps beside the segments."""
        scale = {"margin_scale": self._scale.factor.tolist()} if self._scale else {}
        return {"n_bits": self.n_bits, "ids": self._kind or "int", **scale}

    @classmethod
    def _on(cls, store: Store, n_bits: int | None) -> HammingIndex:
        settings = store.settings
        if not {"n_bits", "ids"} <= set(settings):
            raise ValueError(f"path must hold an index, got a store of something else in {store.path}")
        if n_bits is not None and n_bits != settings["n_bits"]:
            raise ValueError(f"n_bits must be that of the index ({settings['n_bits']}), got {n_bits}")
        index = cls(n_bits=settings["n_bits"])
        index._kind, index._store = settings["ids"], store
        if "margin_scale" in settings:
            index._scale = MarginScale(np.array(settings["margin_scale"], np.float32))
        index._take_segments()
        return index

    def _take_segments(self) -> None:
        """Take over what the store holds; what was there before keeps its arrays."""
        known = {segment.name: segment for segment in self._segments}
        stored = self._folder("this").segments
        self._segments = tuple(self._segment_of(segment, known.get(segment.name)) for segment in stored)

    def _segment_of(self, stored: StoredSegment, segment: Segment | None) -> Segment:
        if segment is None:
            kind = self._kind or "int"
            n_rows = stored.n_rows - (kind == StrIds.kind)  # ends of texts: one more than there are
            segment = Segment(self.n_bits, n_rows, stored.arrays, kind, stored.name)
        return segment.without(stored.removed) if len(stored.removed) > len(segment.removed) else segment

    def refresh(self) -> bool:
        """Move to the newest state of the folder.

        Returns
        -------
        bool, whether it is another one
        """
        with self._mutex:
            changed = self._folder("refresh").refresh()
            if changed:
                self._take_segments()
            return changed

    def verify(self) -> Report:
        """Read every byte of the folder and report all damages.

        Returns
        -------
        Report, what was read, and what is wrong with it
        """
        return self._folder("verify").verify()

    def close(self) -> None:
        """Let go of the folder. An index in memory has nothing to let go of."""
        if self._store:
            self._store.close()

    def __enter__(self) -> HammingIndex:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _folder(self, what: str) -> Store:
        if self._store is None:
            raise ValueError(f"{what} must be asked of an index in a folder (HammingIndex.open), got one in memory")
        return self._store

    # -------------------------------------------------------------------------------------------- input

    def _at_most(self, name: str, value: Any, least: int = 1) -> int:
        """Return a number of answers that is wanted: of fewer items all are answers."""
        return min(check_count(name, value, least), max(least, len(self)))

    def _queries(self, codes: Any) -> Codes:
        return np.ascontiguousarray(packed.check(codes, self.n_bits))

    def _new_ids(self, ids: Any, n: int) -> NDArray[Any]:
        return np.arange(n, dtype=np.int64) + self._next_id() if ids is None else as_ids(ids, n, self._kind)

    def _next_id(self) -> int:
        if self._kind == "str":
            raise ValueError("ids must be given to an index whose ids are texts, got none")
        last = [int(s.ids.values[-1]) for s in self._segments if isinstance(s.ids, IntIds) and s.n_rows]
        return max(last) + 1 if last else 0

    def _refuse_taken(self, ids: NDArray[Any]) -> None:
        taken = sum(np.count_nonzero(s.find(ids) >= 0) for s in self._segments)
        if taken:
            raise ValueError(f"ids must be new, got {taken} of {len(ids)} that are in the index; see update")

    def _known(self, ids: Any) -> NDArray[Any]:
        given = ids if np.ndim(ids) == 1 else [ids]
        return as_ids(given, len(given), self._kind)

    def _rows_of(self, ids: NDArray[Any]) -> list[tuple[Segment, Rows]]:
        """Where ids are, segment by segment (-1: elsewhere); all of them must be somewhere."""
        found = [(segment, segment.find(ids)) for segment in self._segments]
        missing = np.logical_and.reduce([rows < 0 for _, rows in found]) if found else np.ones(len(ids), np.bool_)
        if missing.any():
            got = f"{missing.sum()} of {len(ids)} that are not, first {ids[missing][0]!r}"
            raise ValueError(f"ids must be in the index, got {got}")
        return found

    def _allowed(self, allowed: Any) -> tuple[Segment, ...]:
        if allowed is None:
            return self._segments
        ids = self._known(allowed)
        rows = [segment.find(ids) for segment in self._segments]
        return tuple(s.only(r[r >= 0]) for s, r in zip(self._segments, rows, strict=True) if (r >= 0).any())


def _large_blocks(blocks: Iterable[Codes]) -> Iterator[Codes]:
    """Give the same codes in fewer blocks, none of them empty."""
    waiting: list[Codes] = []
    for block in blocks:
        if waiting and sum(map(len, waiting)) + len(block) > SEGMENT_ROWS:
            yield np.concatenate(waiting)
            waiting = []
        waiting += [block] if len(block) else []
    if waiting:
        yield np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
