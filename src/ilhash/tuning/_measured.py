"""What points say of a model: of a larger base than theirs, and how much other points would say otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.evaluation import EqualLabels, Histograms, Relevance

Values = NDArray[np.float64]

GROUPS = 16  # of points that are left out in turn
MOST_FURTHER = 1.0  # more of it would be noise


@dataclass(frozen=True, eq=False)
class Measured:
    """What points say of a model.

    Attributes
    ----------
    values : float64 array (n_queries,), of each query
    error : float, standard error of their mean: how much it would vary with other queries and other items
    """

    values: Values
    error: float

    @classmethod
    def of(cls, values: Values, jackknife: float) -> Measured:
        """Take the error between two that are known to be too small and too large.

        Queries taken for independent do not tell how the items vary; what is left out as queries and as items counts
        twice what is special to pairs of them.
        """
        alone = float(values.var() / len(values))
        return cls(values, math.sqrt((alone + jackknife**2) / 2) if math.isfinite(jackknife) else math.sqrt(alone))

    def mean(self) -> float:
        """Return what the model is worth."""
        return float(self.values.mean())


def further(k: int, near: int, share: float) -> float:
    """Return the weight w by which (1 + w) P(near) - w P(2 near) among a share of all items is P(k) among all.

    The nearest of one item in eight are farther away than the ten nearest of all: their ranks among all are 8 on
    average, not 5.5. The weight is right for a precision that falls off exponentially, by a factor of e in k ranks.

    Parameters
    ----------
    k : int, nearest items that are looked at among all
    near : int, the same among those that there are
    share : float, these as a share of all
    """
    if near >= k:
        return 0.0
    falls = math.exp(-1.0 / k)
    falls_here = share * falls / (1.0 - (1.0 - share) * falls)
    wanted, once, twice = (_mean(x, n) for x, n in ((falls, k), (falls_here, near), (falls_here, 2 * near)))
    return min(max(0.0, (wanted - once) / (once - twice)), MOST_FURTHER)


def _mean(x: float, n: int) -> float:
    """Return the mean of x, x^2, ..., x^n."""
    return x * (1.0 - x**n) / (n * (1.0 - x))


def left_out(n: int) -> NDArray[np.int64]:
    """Return which of the groups each of n items is in, at random but always the same."""
    return np.random.default_rng(0).permutation(n) % min(GROUPS, n)


def sum_of(tables: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return the sum of tables of counts."""
    total = np.zeros(tables[0].shape, np.int64)
    for table in tables:
        total += table
    return total


def jackknife_error(
    whole: Histograms, parts: Sequence[Sequence[NDArray[np.int32]]], own: NDArray[np.int64], value: Any
) -> float:
    """Return the standard error of a mean over queries, which are searched for among items that are random too.

    Values of queries are not independent: many are near the same items. So queries and items are left out by groups.

    Parameters
    ----------
    whole : Histograms, of all queries among all items
    parts : list of (counts, hits), the same among each group of items
    own : int array (n_queries,), the group of each query
    value : callable, returns the values of the queries of histograms
    """
    means = []
    for group, (counts, hits) in enumerate(parts):
        rest = own != group
        values = value(Histograms(whole.counts[rest] - counts[rest], whole.hits[rest] - hits[rest]))
        means.append(np.nanmean(values) if np.isfinite(values).any() else np.nan)
    known = np.array(means)[np.isfinite(means)]
    if len(known) < 2:
        return float("nan")
    return float(np.sqrt((len(known) - 1) * known.var()))


@dataclass(frozen=True, eq=False)
class Some:
    """What is relevant among some of the items.

    Parameters
    ----------
    relevance : Relevance, among all
    places : int64 array, which of them
    """

    relevance: Relevance
    places: NDArray[np.int64]

    @property
    def n_base(self) -> int:
        """Number of items."""
        return len(self.places)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.relevance.n_queries

    def rows(self, query: int) -> NDArray[np.int64]:
        """Return those that are relevant to a query."""
        return np.flatnonzero(np.isin(self.places, self.relevance.rows(query)))


def among_some(relevance: Relevance, places: NDArray[np.int64]) -> Relevance:
    """Return what is relevant among some of the items.

    Parameters
    ----------
    relevance : Relevance, among all
    places : int64 array, which of them, ascending
    """
    if not isinstance(relevance, EqualLabels):
        return Some(relevance, places)
    new = np.full(relevance.n_base, -1)
    new[places] = np.arange(len(places))
    order = new[relevance.order]
    before = np.append(0, np.cumsum(order >= 0))
    return EqualLabels(order[order >= 0], before[relevance.begin], before[relevance.end])
