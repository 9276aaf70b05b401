"""The index: exact search among codes that come and go, in memory or in a durable folder."""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._files import new_folder
from ilhash.search import _merging as merging
from ilhash.search._arguments import refuse_repeated, threads, whole
from ilhash.search._folder import segment_from, settings_of
from ilhash.search._hits import Hits, RangeHits
from ilhash.search._ids import IntIds, Rows, as_ids
from ilhash.search._margins import MarginScale, as_margins, rescored_by_margins
from ilhash.search._segment import Segment
from ilhash.search._store import Report, Store

__all__ = ["HammingIndex"]

Codes = NDArray[np.uint8]


class HammingIndex:
    """Exact nearest neighbours in Hamming space, in the order (distance, id).

    Equal codes are kept once, with the list of their items: a million items on 300,000 distinct codes cost 300,000
    distances. Items can be added, replaced and removed at any time. An index lives in memory; ``open`` gives one that
    lives in a folder, where every change is on disk when the call returns.

    Parameters
    ----------
    codes : uint8 (n, ceil(n_bits / 8)), most significant bit first, padding zero; None for an empty index
    n_bits : bits per code
    ids : n whole numbers or texts, each once; None numbers the items from 0 on
    margins : float (n, n_bits), optional: ``model.decision_function(X)``, kept in 8 bits each for ``search_margins``

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
        """Return the packed codes of items."""
        wanted = self._known(ids)
        out = np.empty((len(wanted), self._width), np.uint8)
        for segment, rows in self._rows_of(wanted, "ids"):
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
        codes : uint8 (n_queries, ceil(n_bits / 8))
        k : how many
        n_threads : threads to use; -1 for all cores
        allowed : ids that may be answers; None: all. Ids that the index does not hold are no answers.
        """
        queries, k, n_threads = self._queries(codes), whole("k", k, 1), threads(n_threads)
        segments = self._allowed(allowed)
        found = [s.nearest(queries, k, self.n_bits, n_threads) for s in segments]
        return merging.nearest(segments, found, len(queries), k, np.int32, self._kind)

    def within(self, codes: Any, radius: int, *, n_threads: int = 1, allowed: Any = None) -> RangeHits:
        """Return all items whose distance is at most ``radius``."""
        queries, radius, n_threads = self._queries(codes), whole("radius", radius, 0), threads(n_threads)
        segments = self._allowed(allowed)
        found = [s.nearest(queries, s.n_alive, radius, n_threads) for s in segments]
        return merging.within(segments, found, len(queries), self._kind)

    def search_asymmetric(self, margins: Any, k: int = 10, *, n_threads: int = 1, allowed: Any = None) -> Hits:
        """Return the k nearest items where a bit that differs counts as much as the query was sure of it.

        The query keeps its margins, the base stays binary: the distance is the sum of ``abs(margin)`` over the bits in
        which query and item differ. Exact in that distance.

        Parameters
        ----------
        margins : float (n_queries, n_bits), ``model.decision_function(queries)``
        """
        margins = as_margins(margins, self.n_bits, None)
        k, n_threads = whole("k", k, 1), threads(n_threads)
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
        margins : float (n_queries, n_bits), ``model.decision_function(queries)``
        shortlist : how many items are taken from the Hamming search; None: 10 k, at least 1,000
        """
        if self._scale is None:
            raise ValueError("margins must have been given to the index at its start, got an index of codes alone")
        margins = as_margins(margins, self.n_bits, None)
        k, n_threads = whole("k", k, 1), threads(n_threads)
        size = max(1000, 10 * k) if shortlist is None else whole("shortlist", shortlist, k)
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
        """Add items and return their ids; without ids, they are numbered on from the largest that is there."""
        with self._mutex:
            new = self._checked(codes)
            names = self._new_ids(ids, len(new))
            segment = self._built(new, names, margins)
            if len(names):
                taken = sum(np.count_nonzero(s.find(names) >= 0) for s in self._segments)
                if taken:
                    raise ValueError(f"ids must be new, got {taken} of {len(names)} that are in the index; see update")
                self._change(segment, {})
            return names

    def remove(self, ids: Any) -> None:
        """Remove items."""
        with self._mutex:
            self._change(None, self._dead(self._known(ids)))

    def update(self, codes: Any, ids: Any, *, margins: Any = None) -> None:
        """Give items that are there other codes, in one step."""
        with self._mutex:
            new = self._checked(codes)
            names = self._new_ids(ids, len(new))
            self._change(self._built(new, names, margins), self._dead(names))

    def compact(self) -> None:
        """Put everything into one segment, without what was removed. Answers do not change; searches get faster."""
        with self._mutex:
            if len(self._segments) > 1 or any(len(s.removed) for s in self._segments):
                self._replace(self._segments, merging.merged(self._segments), {})

    def _dead(self, ids: NDArray[Any]) -> dict[int, Rows]:
        refuse_repeated(ids)
        found = [rows[rows >= 0] for _, rows in self._rows_of(ids, "ids")]
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
        old = list(self._segments)
        now = [s.without(dead[number]) if number in dead else s for number, s in enumerate(old)]
        sparse = [number for number, s in enumerate(now) if s.n_alive < s.n_rows / 2]
        size, first = new.n_rows if new else 0, len(now)
        # Each item is so written again a logarithmic number of times, and the number of segments stays logarithmic.
        while new and first and now[first - 1].n_alive <= 2 * size:
            first -= 1
            size += now[first].n_alive
        chosen = sorted({*sparse, *range(first, len(now))})
        parts = [now[number] for number in chosen] + ([new] if new else [])
        together = new if new and not chosen else merging.merged(parts) if parts else None
        rest = {old[n].name: rows for n, rows in dead.items() if n not in chosen}
        self._replace([old[n] for n in chosen], together, rest, now)

    def _replace(
        self,
        gone: Sequence[Segment],
        new: Segment | None,
        dead: Mapping[str, Rows],
        now: Sequence[Segment] | None = None,
    ) -> None:
        new = new if new and new.n_rows else None
        if self._store:
            added = [new.arrays] if new else []
            self._store.commit(add=added, remove=dead, drop=[segment.name for segment in gone])
            self._take_segments()
            return
        gone_numbers = {number for number, s in enumerate(self._segments) if any(s is other for other in gone)}
        kept = [s for number, s in enumerate(now or self._segments) if number not in gone_numbers]
        self._segments = (*kept, new) if new else tuple(kept)
        if new:
            self._kind = new.kind

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
        path : folder
        n_bits : of a new index; of an existing one it is checked
        ids : "int" or "str", the kind of ids of a new index
        margins : float (n, n_bits): a sample of margins that the 8 bits are to span, for a new index with margins
        writable : False reads a snapshot, which ``refresh`` renews, and takes no lock
        """
        if (Path(path) / "manifest.json").exists() or n_bits is None:
            store = Store.open(path, writable=writable)
        elif not writable:
            raise ValueError(f"path must hold an index to be read, got {path}, which holds none")
        else:
            store = Store.create(path, settings_of(n_bits, ids, margins))
        try:
            return cls._on(store, n_bits)
        except BaseException:
            store.close()
            raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index into a new folder, from which ``open`` makes it again; wholly or not at all."""
        settings = {"n_bits": self.n_bits, "ids": self._kind or "int"}
        if self._scale:
            settings["margin_scale"] = self._scale.to_list()
        with new_folder(Path(path)) as folder, Store.create(folder, settings) as store:
            together = merging.merged(self._segments) if self._segments else None
            if together and together.n_rows:
                store.commit(add=[together.arrays])

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
            index._scale = MarginScale.from_list(settings["margin_scale"])
        index._take_segments()
        return index

    def _take_segments(self) -> None:
        """Take over what the store holds; what was there before keeps its arrays."""
        store = self._folder("this")
        before = {segment.name: segment for segment in self._segments}
        self._segments = tuple(segment_from(s, self.n_bits, self._kind or "int", before) for s in store.segments)

    def refresh(self) -> bool:
        """Move to the newest state of the folder; return whether it is another one."""
        with self._mutex:
            changed = self._folder("refresh").refresh()
            if changed:
                self._take_segments()
            return changed

    def verify(self) -> Report:
        """Read every byte of the folder and report all damages."""
        return self._folder("verify").verify()

    def close(self) -> None:
        """Let go of the folder. An index in memory has nothing to let go of."""
        if self._store:
            self._store.close()

    def __enter__(self) -> HammingIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _folder(self, what: str) -> Store:
        if self._store is None:
            raise ValueError(f"{what} must be asked of an index in a folder (HammingIndex.open), got one in memory")
        return self._store

    # -------------------------------------------------------------------------------------------- input

    def _checked(self, codes: Any) -> Codes:
        return packed.check(codes, self.n_bits, "codes")

    def _queries(self, codes: Any) -> Codes:
        return np.ascontiguousarray(self._checked(codes))

    def _new_ids(self, ids: Any, n: int) -> NDArray[Any]:
        if ids is not None:
            return as_ids(ids, n, self._kind)
        if self._kind == "str":
            raise ValueError("ids must be given to an index whose ids are texts, got none")
        last = [
            segment.ids.values[-1] for segment in self._segments if isinstance(segment.ids, IntIds) and segment.n_rows
        ]
        return np.arange(n, dtype=np.int64) + (max(last) + 1 if last else 0)

    def _known(self, ids: Any) -> NDArray[Any]:
        given = ids if np.ndim(ids) == 1 else [ids]
        return as_ids(given, len(given), self._kind)

    def _rows_of(self, ids: NDArray[Any], name: str) -> list[tuple[Segment, Rows]]:
        """Where ids are, segment by segment (-1: elsewhere); all of them must be somewhere."""
        found = [(segment, segment.find(ids)) for segment in self._segments]
        missing = np.logical_and.reduce([rows < 0 for _, rows in found]) if found else np.ones(len(ids), np.bool_)
        if missing.any():
            first = ids[missing][0]
            raise ValueError(
                f"{name} must be in the index, got {missing.sum()} of {len(ids)} that are not, first {first!r}"
            )
        return found

    def _allowed(self, allowed: Any) -> tuple[Segment, ...]:
        if allowed is None:
            return self._segments
        ids = self._known(allowed)
        rows = [segment.find(ids) for segment in self._segments]
        return tuple(s.only(r[r >= 0]) for s, r in zip(self._segments, rows, strict=True) if (r >= 0).any())
