"""Tie-aware retrieval measures from histograms of distances: no sorting, any k.

All base items at one distance from a query are a tie group. With N items (R relevant) before it, a group of n items
(r relevant) takes the places N + 1 .. N + n of the ranking, in an order that nothing decides. ``ties`` says which:

- ``"expected"``: the mean over all orders. Every place of the group holds a relevant item with probability r / n, and
  where it does, the expected number of relevant ones before it in the group is (j - 1) (r - 1) / (n - 1) at the j-th.
- ``"optimistic"``: relevant items first, the highest value that any order gives.
- ``"pessimistic"``: relevant items last, the lowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

Ties = Literal["expected", "optimistic", "pessimistic"]
TIES: tuple[Ties, ...] = ("expected", "pessimistic", "optimistic")

Values = NDArray[np.float64]
Whole = int | Sequence[int] | NDArray[Any]


def check_ties(ties: str) -> None:
    """Refuse a rule that does not exist."""
    if not isinstance(ties, str) or ties not in TIES:
        raise ValueError(f"ties must be 'expected', 'optimistic' or 'pessimistic', got {ties!r}")


def check_empty(empty: Any) -> None:
    """Refuse a rule that does not exist."""
    if not isinstance(empty, int | str) or isinstance(empty, bool) or empty not in (0, "skip"):
        raise ValueError(f"empty must be 0 or 'skip', got {empty!r}")


def mean_defined(values: Values) -> Values:
    """Return the mean over the queries (rows) for which a value is defined; NaN where it is for none."""
    defined = ~np.isnan(values)
    count = defined.sum(axis=0)
    total = np.where(defined, values, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0))


@dataclass(frozen=True, eq=False)
class Curves:
    """Means over queries for every k at once.

    Attributes
    ----------
    precision, recall : float64 array (n_base,), at k = 1, 2, ...; recall over queries that have a relevant item, or NaN
    """

    precision: Values
    recall: Values


@dataclass(frozen=True, eq=False)
class Histograms:
    """Base items by distance, for each query; made by :func:`distance_histograms`.

    Its methods return values for each query, in the order of the queries: an array (n_queries,) for one k or radius,
    and (n_queries, how many) for a sequence of them. NaN stands where a value is undefined (recall and average
    precision of a query that has no relevant item).

    Attributes
    ----------
    counts, hits : int64 array (n_queries, n_bits + 1), base items at each distance, and relevant ones among them

    Examples
    --------
    >>> two_tied = Histograms(np.array([[0, 2, 1]]), np.array([[0, 1, 0]]))
    >>> two_tied.precision_at_k(1), two_tied.precision_at_k(1, "optimistic")
    (array([0.5]), array([1.]))
    >>> two_tied.average_precision()
    array([0.75])
    """

    counts: NDArray[np.int64]
    hits: NDArray[np.int64]

    def __post_init__(self) -> None:
        counts, hits = self.counts, self.hits
        if counts.ndim != 2 or counts.shape != hits.shape or counts.dtype != np.int64 or hits.dtype != np.int64:
            got = f"{counts.shape} {counts.dtype} and {hits.shape} {hits.dtype}"
            raise ValueError(f"counts and hits must be two int64 tables of one shape, got {got}")
        if len(counts) == 0:
            raise ValueError("there must be at least one query, got none")
        if (hits < 0).any() or (hits > counts).any() or len(np.unique(counts.sum(axis=1))) > 1:
            raise ValueError("hits must be between 0 and counts, and all rows of counts have one sum, got others")

    def __add__(self, other: Histograms) -> Histograms:
        """Return the histograms of both bases at once, for the same queries."""
        return Histograms(self.counts + other.counts, self.hits + other.hits)

    def without_itself(self, own: NDArray[np.bool_], relevant: NDArray[np.bool_]) -> Histograms:
        """Take queries off that are in the base themselves, where each is at distance 0.

        Parameters
        ----------
        own, relevant : bool array (n_queries,), whether a query is in the base, and whether it is relevant to itself

        Returns
        -------
        Histograms, of the other items
        """
        counts, hits = self.counts.copy(), self.hits.copy()
        counts[:, 0] -= own
        hits[:, 0] -= own & relevant
        return Histograms(counts, hits)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.counts)

    @property
    def n_bits(self) -> int:
        """The largest distance."""
        return int(self.counts.shape[1]) - 1

    @property
    def n_base(self) -> int:
        """Number of base items."""
        return int(self.counts[0].sum())

    @property
    def n_relevant(self) -> NDArray[np.int64]:
        """Relevant base items of each query."""
        return np.asarray(self.hits.sum(axis=1))

    def precision_at_k(self, k: Whole, ties: Ties = "expected") -> Values:
        """Return the share of relevant items among the k nearest.

        Parameters
        ----------
        k : int or sequence of int, numbers of neighbours
        ties : {"expected", "optimistic", "pessimistic"}, default "expected", the order of the ties

        Returns
        -------
        float64 array (n_queries,), or (n_queries, number of k), of each query
        """
        ks = self._ks(k)
        return _like(k, self._hits_at(ks, ties) / ks)

    def recall_at_k(self, k: Whole, ties: Ties = "expected") -> Values:
        """Return the share of the relevant items that is among the k nearest.

        Parameters
        ----------
        k, ties : as in :meth:`precision_at_k`

        Returns
        -------
        float64 array (n_queries,), or (n_queries, number of k), of each query
        """
        return _like(k, _share(self._hits_at(self._ks(k), ties), self.n_relevant[:, None]))

    def _ks(self, k: Whole) -> NDArray[Any]:
        ks = np.atleast_1d(np.asarray(k))
        if ks.ndim != 1 or ks.dtype.kind not in "iu" or (ks < 1).any() or (ks > self.n_base).any():
            raise ValueError(f"k must be whole numbers between 1 and the {self.n_base} codes of the base, got {k!r}")
        return ks

    def _places(self, ties: Ties) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places, from one on and up to another, that the relevant items of each group may take."""
        check_ties(ties)
        before = _before(self.counts)
        if ties == "optimistic":
            return before, before + self.hits
        after = before + self.counts
        return (before if ties == "expected" else after - self.hits), after

    def _hits_at(self, ks: NDArray[Any], ties: Ties) -> Values:
        begin, end = self._places(ties)
        after, hits_before, queries = self.counts.cumsum(axis=1), _before(self.hits), np.arange(self.n_queries)
        out = np.empty((self.n_queries, len(ks)))
        for column, k in enumerate(ks):
            edge = (after >= k).argmax(axis=1)  # the distance among whose ties the k-th place falls
            first, last, hits = (table[queries, edge] for table in (begin, end, self.hits))
            taken = hits * np.clip(k - first, 0, last - first) / np.maximum(last - first, 1)
            out[:, column] = hits_before[queries, edge] + taken
        return out

    def curves(self, ties: Ties = "expected") -> Curves:
        """Return mean precision and recall for every k from 1 to n_base, in O(n_queries * n_bits + n_base).

        Parameters
        ----------
        ties : {"expected", "optimistic", "pessimistic"}, default "expected", the order of the ties

        Returns
        -------
        Curves, means over the queries
        """
        relevant = self.n_relevant
        n_defined = np.count_nonzero(relevant)
        share = np.divide(1.0, relevant * n_defined, out=np.zeros(self.n_queries), where=relevant > 0)
        precision = self._hits_curve(np.full(self.n_queries, 1.0 / self.n_queries), ties)
        precision /= np.arange(1, self.n_base + 1)
        recall = self._hits_curve(share, ties) if n_defined else np.full(self.n_base, np.nan)
        return Curves(precision, recall)

    def _hits_curve(self, weights: Values, ties: Ties) -> Values:
        """Return the weighted sum of hits at every k: linear between group borders, so borders are all that is kept."""
        begin, end = self._places(ties)
        slope = self.hits / np.maximum(end - begin, 1)
        bends = (slope * weights[:, None]).ravel()
        up, down = (np.bincount(at.ravel(), bends, self.n_base + 1) for at in (begin, end))
        return np.asarray((up - down)[:-1].cumsum().cumsum())

    def average_precision(self, k: int | None = None, ties: Ties = "expected") -> Values:
        """Return the average precision of each query, of the whole ranking or of its first k places.

        It is the sum, over the places that hold a relevant item, of the precision at that place, divided by the number
        of relevant items; at k the sum ends at place k and is divided by min(k, relevant items), the largest it can be.
        (Divided by the hits among the first k, as in some published code, one early hit would count as perfect.)

        Parameters
        ----------
        k : int, optional, where the ranking ends
        ties : {"expected", "optimistic", "pessimistic"}, default "expected", the order of the ties

        Returns
        -------
        float64 array (n_queries,), of each query
        """
        if k is not None and np.ndim(k):
            raise ValueError(f"k must be one number here, got {k!r}")
        last = self.n_base if k is None else int(self._ks(k)[0])
        begin, end = self._places(ties)
        places, chance = np.clip(last - begin, 0, end - begin), self.hits / np.maximum(end - begin, 1)
        # The expected number of relevant items up to the j-th place, if that holds one, is start + step * j.
        step = np.ones(self.hits.shape)
        if ties == "expected":
            step = np.divide(self.hits - 1, self.counts - 1, out=np.zeros(step.shape), where=self.counts > 1)
        start = _before(self.hits) + 1 - step
        # The sum over j = 1 .. places of (start + step * j) / (begin + j), by a difference of harmonic numbers.
        harmonic = digamma(begin + places + 1.0) - digamma(begin + 1.0)
        total = (chance * (step * places + (start - step * begin) * harmonic)).sum(axis=1)
        return _share(total, np.minimum(self.n_relevant, last))

    def precision_within(self, radius: Whole, empty: int | str = 0) -> Values:
        """Return the share of relevant items among those within each radius.

        Over the radii 0 .. n_bits, with :meth:`recall_within`, this is the precision-recall curve by radius.

        Parameters
        ----------
        radius : int or sequence of int, the largest distances that are still a result
        empty : {0, "skip"}, default 0, what an empty result counts: 0, or NaN, which means leave out

        Returns
        -------
        float64 array (n_queries,), or (n_queries, number of radii), of each query
        """
        check_empty(empty)
        radii = self._radii(radius)
        shares = _share(self.hits.cumsum(axis=1)[:, radii], self.counts.cumsum(axis=1)[:, radii])
        return _like(radius, shares if empty == "skip" else np.nan_to_num(shares, nan=0.0))

    def recall_within(self, radius: Whole) -> Values:
        """Return the share of the relevant items that is within each radius.

        Parameters
        ----------
        radius : as in :meth:`precision_within`

        Returns
        -------
        float64 array (n_queries,), or (n_queries, number of radii), of each query
        """
        return _like(radius, _share(self.hits.cumsum(axis=1)[:, self._radii(radius)], self.n_relevant[:, None]))

    def empty_within(self, radius: Whole) -> NDArray[np.bool_]:
        """Return whether nothing is within each radius.

        Parameters
        ----------
        radius : as in :meth:`precision_within`

        Returns
        -------
        bool array (n_queries,), or (n_queries, number of radii), of each query
        """
        return _like(radius, self.counts.cumsum(axis=1)[:, self._radii(radius)] == 0)

    def _radii(self, radius: Whole) -> NDArray[Any]:
        radii = np.atleast_1d(np.asarray(radius))
        if radii.ndim != 1 or radii.dtype.kind not in "iu" or (radii < 0).any():
            raise ValueError(f"radius must be whole numbers of at least 0, got {radius!r}")
        return np.asarray(np.minimum(radii, self.n_bits))


def _like(asked: Whole, values: NDArray[Any]) -> NDArray[Any]:
    """Return one value for each query where one number was asked for, and a column for each of several."""
    return values if np.ndim(asked) else values[:, 0]


def _before(table: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(table.cumsum(axis=1) - table)


def _share(part: NDArray[Any], whole: NDArray[Any]) -> Values:
    whole = np.broadcast_to(whole, part.shape)
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))
