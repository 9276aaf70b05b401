"""What can be asked of an index: exact search among the codes of its segments."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import check_choice, check_count, check_threads
from ilhash._fingerprints import Bits, fingerprint_of, refuse_another
from ilhash._ids import as_ids
from ilhash.search import _merging as merging
from ilhash.search._hits import Hits, RangeHits
from ilhash.search._ids import Rows
from ilhash.search._margins import MarginScale, as_margins, rescored_by_margins
from ilhash.search._schema import Settings
from ilhash.search._segment import Segment

Codes = NDArray[np.uint8]


class Searchable(ABC):
    """Codes of items, of which ``HammingIndex`` says where they are; arrays that are returned are the caller's own."""

    @property
    @abstractmethod
    def _settings(self) -> Settings:
        """Bits, kind of ids, margins and model as they are now."""

    @property
    def n_bits(self) -> int:
        """Bits per code."""
        return self._settings.n_bits

    @property
    def model(self) -> str | None:
        """Fingerprint of the model that made the codes; None where it is not known."""
        return self._settings.model

    @property
    def bit_fingerprints(self) -> Bits | None:
        """Fingerprints of that model's bits; None where they are not known."""
        return self._settings.bits

    @property
    def _scale(self) -> MarginScale | None:
        return self._settings.scale

    @property
    @abstractmethod
    def _segments(self) -> tuple[Segment, ...]:
        """The segments as they are now: a search takes them once, whatever is changed meanwhile."""

    @property
    def _kind(self) -> str | None:
        """The kind of ids, None while it is open."""
        return self._settings.kind

    # -------------------------------------------------------------------------------------------- what is in it

    def __len__(self) -> int:
        return sum([segment.n_alive for segment in self._segments])

    def __contains__(self, item: object) -> bool:
        if isinstance(item, bool) or not isinstance(item, str if self._kind == "str" else int | np.integer):
            return False
        try:
            ids = as_ids([item], 1, self._kind)
        except ValueError:  # a number or a text that no id can be
            return False
        return any((segment.find(ids) >= 0).any() for segment in self._segments)

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
    def id_kind(self) -> str | None:
        """The kind of ids, "int" or "str"; None while it is open."""
        return self._kind

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
        out = np.empty((len(wanted), packed.bytes_per_code(self.n_bits)), np.uint8)
        for segment, rows in self._rows_of(wanted):
            here = rows >= 0
            out[here] = segment.codes(rows[here])
        return out

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

    def check_model(self, model: Any) -> None:
        """Refuse a model that is not the one whose codes the index holds; where that is not known, by its bits alone.

        Parameters
        ----------
        model : a fitted model, or the fingerprint of one
        """
        if hasattr(model, "functions_") and len(model.functions_) != self.n_bits:
            raise ValueError(f"model must have the {self.n_bits} bits of the index, got {len(model.functions_)}")
        refuse_another(self.model, fingerprint_of(model), "codes")

    def search_vectors(
        self, model: Any, X: Any, k: int = 10, *, order: str = "hamming", n_threads: int = 1, allowed: Any = None
    ) -> Hits:
        """Return the k nearest items of each vector, by the codes that the index's own model gives it.

        Parameters
        ----------
        model : the fitted model whose codes the index holds, or one with some of its bits; another one is refused
        X : array (n_queries, D), vectors, also what ilhash.open_vectors gives
        order : {"hamming", "asymmetric", "margins"}, default "hamming", as in :meth:`search`,
            :meth:`search_asymmetric` or :meth:`search_margins`
        k, n_threads, allowed : as in :meth:`search`

        Returns
        -------
        Hits, ids and distances of that order
        """
        check_choice("order", order, ("hamming", "asymmetric", "margins"))
        index = self.of_model(model)
        if order == "hamming":
            return index.search(model.transform(X), k, n_threads=n_threads, allowed=allowed)
        search = index.search_asymmetric if order == "asymmetric" else index.search_margins
        return search(model.decision_function(X), k, n_threads=n_threads, allowed=allowed)

    @abstractmethod
    def of_model(self, model: Any) -> Searchable:
        """Return what codes of a model can be searched in.

        Parameters
        ----------
        model : fitted model, or codes in files

        Returns
        -------
        Searchable, this or a part of it
        """

    # -------------------------------------------------------------------------------------------- input

    def _at_most(self, name: str, value: Any, least: int = 1) -> int:
        """Return a number of answers that is wanted: of fewer items all are answers."""
        return min(check_count(name, value, least), max(least, len(self)))

    def _queries(self, codes: Any) -> Codes:
        return np.ascontiguousarray(packed.check(codes, self.n_bits))

    def _known(self, ids: Any) -> NDArray[Any]:
        # Arrays of more axes are refused below, as they are: a copy of one may not fit into memory.
        given = ids if isinstance(ids, list | tuple) or np.ndim(ids) >= 1 else [ids]
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
        segments = self._segments
        if allowed is None:
            return segments
        ids = self._known(allowed)
        rows = [segment.find(ids) for segment in segments]
        return tuple(s.only(r[r >= 0]) for s, r in zip(segments, rows, strict=True) if (r >= 0).any())
