"""Three parts of the data: what is trained on, what chooses, and what reports and has chosen nothing."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity import Labels, LabelSets, SparseAffinity
from ilhash.diversity import seed_for
from ilhash.evaluation import (
    Histograms,
    Relevance,
    RowLists,
    by_label,
    by_neighbors,
    by_shared_labels,
    distance_histograms,
)
from ilhash.tuning._measured import Measured, among_some, further, jackknife_error, left_out, sum_of
from ilhash.vectors import SelectedRows, nearest_other_rows, on_disk, take_rows

Rows = NDArray[np.int64]
Values = NDArray[np.float64]

MOST = 6_000  # points of a part
SHARE = 8  # one in so many points is in each of the parts that are held out
FEWEST = 10  # points of a part, below which nothing is told
CLASSES = 5  # one in so many classes is held out where unseen ones count
PAIRS = 500  # that points held out must have among themselves; else pairs are held out instead
_DRAWS = ("parts", "classes", "unseen", "pairs", "base")  # each has a seed of its own
WIDE = 32  # bytes of a code from which on distances are counted with nothing to prepare for each query
NEAREST = 0.01  # without supervision, the share of points that are relevant to a query


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Some points are searched for among others, and so many of the nearest are looked at.

    Attributes
    ----------
    rows : int64 array, rows of X that are encoded, each once
    queries, base : int64 array, places among them
    relevance : Relevance, of the base to the queries
    k : int, nearest that are looked at
    own : bool array (n_queries,), whether the query is itself in the base, where it does not count
    counted : bool, whether the query itself is among what is relevant to it
    finds : bool, whether the share of the relevant that is found counts, or that of the found that is relevant
    further : float, how much what is farther away says of what is nearer in a larger base: see ``further``
    """

    rows: Rows
    queries: Rows
    base: Rows
    relevance: Relevance
    k: int
    own: NDArray[np.bool_]
    counted: bool
    finds: bool = False
    further: float = 0.0

    @classmethod
    def among(
        cls,
        rows: Rows,
        relevance: Relevance,
        k: int,
        *,
        counted: bool = True,
        finds: bool = False,
        further: float = 0.0,
    ) -> Retrieval:
        """Search for every point among all others."""
        places = np.arange(len(rows))
        return cls(rows, places, places, relevance, k, np.ones(len(rows), bool), counted, finds, further)

    @classmethod
    def apart(cls, queries: Rows, base: Rows, relevance: Relevance, k: int, *, further: float = 0.0) -> Retrieval:
        """Search for points among points that they are not of."""
        rows, places = np.concatenate([queries, base]), np.arange(len(queries) + len(base))
        here, there = np.split(places, [len(queries)])
        return cls(rows, here, there, relevance, k, np.zeros(len(queries), bool), counted=False, further=further)

    def of_codes(self, codes: NDArray[np.uint8], n_bits: int, n_threads: int = 1) -> Values:
        """Return the value of each query, given the codes of ``rows``."""
        wide = _widened(codes)
        found = distance_histograms(wide[self.base], wide[self.queries], self.relevance, n_threads=n_threads)
        found = Histograms(*(table[:, : n_bits + 1] for table in (found.counts, found.hits)))
        left = found.without_itself(self.own, np.full(len(self.own), self.counted))
        values = left.recall_at_k(self.k) if self.finds else left.precision_at_k(self.k)
        return np.asarray(values[~np.isnan(values)])

    def measured(self, codes: NDArray[np.uint8], n_bits: int, n_threads: int = 1) -> Measured:
        """Return what is told of codes: of a base as large as that of k, with its standard error.

        Choosing does without: all models have the same bias, and a correction adds noise.
        """
        groups = left_out(max(len(self.queries), len(self.base)))
        asked, searched = groups[: len(self.queries)], groups[: len(self.base)]
        wide = _widened(codes)
        queries, parts = wide[self.queries], []
        for group in range(int(groups.max()) + 1):
            places = np.flatnonzero(searched == group)
            some = among_some(self.relevance, places)
            found = distance_histograms(wide[self.base[places]], queries, some, n_threads=n_threads)
            itself = self.own & (asked == group)
            found.counts[:, 0] -= itself
            found.hits[:, 0] -= itself & self.counted
            parts.append(tuple(table[:, : n_bits + 1].astype(np.int32) for table in (found.counts, found.hits)))
        whole = Histograms(*(sum_of([part[which] for part in parts]) for which in (0, 1)))
        values = self._corrected(whole)
        return Measured.of(values[~np.isnan(values)], jackknife_error(whole, parts, asked, self._corrected))

    def _corrected(self, found: Histograms) -> Values:
        if self.finds:
            return np.asarray(found.recall_at_k(self.k))
        if not self.further or 2 * self.k >= found.n_base:
            return np.asarray(found.precision_at_k(self.k))
        once, twice = found.precision_at_k((self.k, 2 * self.k)).T
        return np.asarray((1.0 + self.further) * once - self.further * twice)

    def of_vectors(self, X: Any) -> float | None:
        """Return the mean value of the vectors themselves, where all points are searched for among all others."""
        if not self.own.all() or len(self.queries) != len(self.base):
            return None
        nearest = nearest_other_rows(np.asarray(take_rows(X, self.rows), np.float32), self.k)
        found = [np.isin(nearest[q], self.relevance.rows(q)).sum() for q in range(len(nearest))]
        if not self.finds:
            return float(np.mean(found) / self.k)
        wanted = [len(self.relevance.rows(q)) for q in range(len(nearest))]
        return float(np.mean([f / w for f, w in zip(found, wanted, strict=True) if w]))


@dataclass(frozen=True, eq=False)
class Parts:
    """What models are trained on, and the retrievals that choose and report.

    Attributes
    ----------
    X : array or VectorSource, the vectors that may be trained on
    given : mapping, what ``fit`` of ILH gets beside them: y, or affinity, or nothing
    everything : mapping, the same beside all vectors
    choosing, reporting : mapping of str to Retrieval, by the base that is searched: "new", "seen", "unseen classes"
    weights : mapping of str to float, what each of ``choosing`` counts
    n_items : int, points that k is of
    held : str, what was held out, in words
    """

    X: Any
    given: Mapping[str, Any]
    everything: Mapping[str, Any]
    choosing: Mapping[str, Retrieval]
    reporting: Mapping[str, Retrieval]
    weights: Mapping[str, float]
    n_items: int
    held: str


def parts_of(X: Any, supervision: Any, k: int, *, base: str, unseen: float, seed: int) -> Parts:
    """Divide the data.

    Parameters
    ----------
    X : array or VectorSource (n, D)
    supervision : Labels, LabelSets, SparseAffinity or None, of all points
    k : int, nearest points that a user looks at, among all of X
    base : {"new", "seen"}, whether what is searched while choosing was kept from training too
    unseen : float, what classes that training has not seen count
    seed : int, of the draws

    Returns
    -------
    Parts
    """
    if unseen > 0 and not isinstance(supervision, Labels):
        raise ValueError(f"unseen must be 0 unless there is one label per point, got {unseen}: no class to hold out")
    if isinstance(supervision, SparseAffinity):
        return _of_pairs(X, supervision, k, seed)
    return _of_points(X, supervision, k, base, unseen, seed)


def _of_points(X: Any, supervision: Labels | LabelSets | None, k: int, base: str, unseen: float, seed: int) -> Parts:
    everything = np.arange(len(X))
    known = everything if supervision is None or supervision.drawable is None else supervision.drawable
    _check_classes(supervision)
    known, others = _without_classes(known, supervision, unseen, seed)
    order = _permuted(known, seed, "parts")
    size = min(MOST, len(order) // SHARE)
    if size < FEWEST:
        raise ValueError(f"there must be at least {FEWEST * SHARE} points that can be judged, got {len(order)}")
    n_items = len(known) + len(others)
    near, beyond = _scaled(k, size, n_items)
    chooses, reports = np.sort(order[:size]), np.sort(order[size : 2 * size])
    held = [chooses, reports]
    seen = np.sort(order[2 * size : 3 * size])
    relevant = _Relevance(X, supervision, near, beyond)
    choosing = {"new": relevant.among(chooses), "seen": relevant.apart(chooses, seen)}
    reporting = {"new": relevant.among(reports), "seen": relevant.apart(reports, seen)}
    weights = {base: 1.0 - unseen}
    if len(others):
        halves = np.split(_permuted(others, seed, "unseen"), [len(others) // 2])
        of_unseen = [np.sort(half[:MOST]) for half in halves]
        relevant = _Relevance(X, supervision, *_scaled(k, len(of_unseen[0]), n_items))
        choosing["unseen classes"], reporting["unseen classes"] = (relevant.among(rows) for rows in of_unseen)
        weights["unseen classes"] = unseen
        held.append(others)
    train = np.setdiff1d(everything, np.concatenate(held))
    words = f"{size:,} points that choose and {size:,} that report" + (
        f", {len(others):,} points of classes as if unseen" if len(others) else ""
    )
    kept = {name: choosing[name] for name in weights}
    given, of_all = (
        {} if supervision is None else {"y": _labels_of(supervision, rows)} for rows in (train, everything)
    )
    return Parts(_selected(X, train), given, of_all, kept, reporting, weights, n_items, words)


@dataclass(frozen=True, eq=False)
class _Relevance:
    """Makes retrievals of points with the same label, a shared one, or near each other."""

    X: Any
    supervision: Labels | LabelSets | None
    k: int
    further: float

    def among(self, rows: Rows) -> Retrieval:
        if self.supervision is None:
            vectors = np.asarray(take_rows(self.X, rows), np.float32)
            wanted = min(len(rows) - 1, max(self.k, round(NEAREST * len(rows))))
            near = nearest_other_rows(vectors, wanted)
            offsets = np.arange(len(rows) + 1) * near.shape[1]
            return Retrieval.among(rows, RowLists(offsets, near.ravel(), len(rows)), self.k, counted=False)
        return Retrieval.among(rows, self._by_label(rows, rows), self.k, further=self.further)

    def apart(self, queries: Rows, base: Rows) -> Retrieval:
        if self.supervision is None:
            searched, asked = (np.asarray(take_rows(self.X, rows), np.float32) for rows in (base, queries))
            wanted = min(len(base), max(self.k, round(NEAREST * len(base))))
            return Retrieval.apart(queries, base, by_neighbors(searched, asked, wanted), self.k)
        return Retrieval.apart(queries, base, self._by_label(base, queries), self.k, further=self.further)

    def _by_label(self, base: Rows, queries: Rows) -> Relevance:
        if isinstance(self.supervision, Labels):
            return by_label(self.supervision.codes[base], self.supervision.codes[queries])
        assert self.supervision is not None
        indicator = self.supervision.indicator
        return by_shared_labels(indicator[base], indicator[queries])


def _check_classes(supervision: Labels | LabelSets | None) -> None:
    if not isinstance(supervision, Labels):
        return
    sizes = np.bincount(supervision.codes[supervision.codes >= 0], minlength=len(supervision.names))
    alone = np.flatnonzero(sizes == 1)
    if len(alone) == len(sizes):
        raise ValueError(
            f"y must have classes of at least two points to be found by one another, got {len(sizes)} of one each"
        )
    if len(alone):
        names = ", ".join(repr(name) for name in supervision.names[alone[:3]].tolist())
        more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
        warnings.warn(
            f"a class must have at least two points to be found by one another, got one of {names}{more}: these "
            "points count as not found",
            stacklevel=5,  # whoever called tune
        )


def _without_classes(known: Rows, supervision: Any, unseen: float, seed: int) -> tuple[Rows, Rows]:
    """Return points of the classes that may be learnt, and those of classes held out."""
    if unseen == 0:
        return known, np.empty(0, np.int64)
    n_classes = len(supervision.names)
    wanted = max(1, n_classes // CLASSES)
    if wanted > n_classes - 2:
        raise ValueError(f"y must have at least 3 classes for unseen={unseen}, one to hold out, got {n_classes}")
    held = _core.permuted(n_classes, seed_for(seed, "tuning", _DRAWS.index("classes")), 0, wanted)
    out = np.isin(supervision.codes[known], held)
    if np.count_nonzero(out) < 2 * FEWEST:
        raise ValueError(
            f"classes held out must have at least {2 * FEWEST} points for unseen={unseen}, got {np.count_nonzero(out)}"
        )
    return known[~out], known[out]


def _of_pairs(X: Any, supervision: SparseAffinity, k: int, seed: int) -> Parts:
    """Hold points out with the pairs among them, or pairs alone where these would be too few."""
    n = len(X)
    order = _permuted(np.arange(n), seed, "parts")
    size = min(MOST, n // SHARE)
    chooses, reports = np.sort(order[:size]), np.sort(order[size : 2 * size])
    matrix = supervision.matrix
    if size >= FEWEST and min(_n_similar(matrix, rows) for rows in (chooses, reports)) >= PAIRS:
        near, _ = _scaled(k, size, n)
        new = [
            Retrieval.among(rows, _partners(matrix, rows), near, counted=False, finds=True)
            for rows in (chooses, reports)
        ]
        train = np.setdiff1d(np.arange(n), np.concatenate([chooses, reports]))
        words = f"{size:,} points that choose and {size:,} that report, with the pairs among them"
        given = {"affinity": scipy.sparse.csr_array(matrix[train][:, train])}
        of_all = {"affinity": matrix}
        return Parts(_selected(X, train), given, of_all, {"new": new[0]}, {"new": new[1]}, {"new": 1.0}, n, words)
    upper = scipy.sparse.triu(matrix, 1).tocoo()
    similar = np.flatnonzero(upper.data > 0)
    share = min(MOST, len(similar) // SHARE)
    if share < FEWEST:
        raise ValueError(f"there must be at least {FEWEST * SHARE} similar pairs to choose by, got {len(similar)}")
    drawn = _permuted(similar, seed, "pairs")
    held = [
        np.column_stack([upper.row[some], upper.col[some]]).astype(np.int64) for some in np.split(drawn[: 2 * share], 2)
    ]
    sides = [_pairs_held(pairs, n, k, seed) for pairs in held]
    left = supervision.without(np.concatenate(held)).matrix
    words = f"{share:,} pairs that choose and {share:,} that report"
    given, of_all = {"affinity": left}, {"affinity": matrix}
    return Parts(X, given, of_all, {"seen": sides[0]}, {"seen": sides[1]}, {"seen": 1.0}, n, words)


def _pairs_held(pairs: Rows, n: int, k: int, seed: int) -> Retrieval:
    """Search for one end of each pair, so that the other is found among the ends of all and a sample of the rest."""
    ends = np.unique(pairs)
    others = np.setdiff1d(_permuted(np.arange(n), seed, "base")[:MOST], ends)
    rows = np.concatenate([ends, others])
    both = np.concatenate([pairs, pairs[:, ::-1]])
    places = np.searchsorted(ends, both)
    table = scipy.sparse.csr_array((np.ones(len(both), np.int8), places.T), shape=(len(ends), len(rows)))
    here = np.arange(len(rows))
    relevance = RowLists(table.indptr, table.indices, len(rows))
    own = np.ones(len(ends), bool)
    near, _ = _scaled(k, len(rows), n)
    return Retrieval(rows, here[: len(ends)], here, relevance, near, own, counted=False, finds=True)


def _n_similar(matrix: scipy.sparse.csr_array, rows: Rows) -> int:
    return int(np.count_nonzero(matrix[rows][:, rows].data > 0)) // 2


def _partners(matrix: scipy.sparse.csr_array, rows: Rows) -> RowLists:
    own = scipy.sparse.csr_array(matrix[rows][:, rows] > 0)
    own.eliminate_zeros()
    return RowLists(own.indptr, own.indices, len(rows))


def _labels_of(supervision: Labels | LabelSets, rows: Rows) -> Any:
    """Return what ``fit`` takes for these rows; unknown stays unknown."""
    if isinstance(supervision, LabelSets):
        return supervision.indicator[rows]
    names, codes = supervision.names, supervision.codes[rows]
    out = np.empty(len(rows), object)
    out[codes >= 0] = names[codes[codes >= 0]]
    return out


def _selected(X: Any, rows: Rows) -> Any:
    return SelectedRows(X, rows) if on_disk(X) else take_rows(X, rows)


def _permuted(rows: Rows, seed: int, what: str) -> Rows:
    return rows[_core.permuted(len(rows), seed_for(seed, "tuning", _DRAWS.index(what)), 0, len(rows))]


def _widened(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.pad(codes, ((0, 0), (0, max(0, WIDE - codes.shape[1]))))


def _scaled(k: int, size: int, n_items: int) -> tuple[int, float]:
    """Return how many of the nearest of ``size`` points are to them what k are to all, and what is left to correct."""
    near = min(max(1, round(k * size / n_items)), size - 1)
    return near, further(k, near, size / n_items)
