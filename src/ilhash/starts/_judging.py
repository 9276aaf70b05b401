"""How well codes find what is similar, by points or pairs held out of what directions are learnt from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity import SharedLabels, SimilarPairs
from ilhash.starts._moments import Moments, Values
from ilhash.vectors import nearest_other_rows

Codes = Callable[[Values], NDArray[np.float32]]

QUERIES = 1_000
BASE = 4_000
FEWEST = 60  # points or pairs held out, below which nothing is judged
NEAREST = 10  # neighbours, among all points, that a user is taken to look at
RANKS = (0.001, 0.003, 0.01, 0.03, 0.1)  # shares of the base, within which the other of a pair counts as found
HELD_PAIRS = 10_000  # at most
PAIRS_OF_POINTS = 500  # held-out points must have, among themselves, to be judged by
AMONG = 2_000  # points that the other of a pair is to be found among
HITS = 400  # pairs that must be found within a share for it to be judged by


@dataclass(frozen=True)
class Judge:
    """A small retrieval, and what was not held out for it.

    Attributes
    ----------
    scores : callable, gives the share of the score of each query or pair, which add up to it
    weights : float64 array, of queries or pairs, of sum 1
    learnt : SharedLabels or SimilarPairs, optional, what may be learnt from; None without supervision
    places : int64 array, its points among those that were given
    held : int64 array (m, 2), pairs of rows of X that may not be learnt from, other than those of points held out
    """

    scores: Callable[[Codes, NDArray[np.float64]], NDArray[np.float64]]
    weights: NDArray[np.float64]
    learnt: SharedLabels | SimilarPairs | None = None
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    held: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), np.int64))

    def of(self, codes: Codes) -> NDArray[np.float64]:
        """Return the shares of the score that codes have."""
        return self.scores(codes, self.weights)

    def moments(self, values: Values) -> Moments | None:
        """Return the moments of what may be learnt from, given the values of all points."""
        return None if self.learnt is None else Moments.of(self.learnt, values[self.places])


def beaten_by(one: NDArray[np.float64], other: NDArray[np.float64], errors: float) -> bool:
    """Whether the shares of the other score are more, by so many standard errors of the difference."""
    gain = other - one
    return bool(gain.sum() > errors * np.sqrt(len(gain)) * gain.std())


def judge_of_labels(similarity: SharedLabels, values: Values, points: Values, n_points: int, seed: int) -> Judge | None:
    """Hold a third of the labelled points out: they are searched for, and searched, as new points are.

    So many of the nearest count as are to the points held out what ten are to all. Where whole classes were drawn, the
    points held out are not among as many others as they should be: there it counts which of their pairs are found among
    a sample of all points.
    """
    n = len(similarity.rows)
    order = _core.permuted(n, seed, 0, n)
    held, rest = order[: n // 3][: BASE + QUERIES], np.sort(order[n // 3 :])  # the first held out are the queries
    learnt, judged = similarity.take(rest), similarity.take(held)
    queries = np.flatnonzero(judged.degrees > 0)[:QUERIES]
    if len(queries) < FEWEST or not learnt.degrees.any():
        return None
    if similarity.whole:
        pairs = judged.pairs(queries)
        pairs = pairs[_core.permuted(len(pairs), seed, 0, min(len(pairs), HELD_PAIRS))]
        return Judge(_found_among(pairs, values[held], _base(points, seed)), _alike(len(pairs)), learnt, rest)
    everything = np.arange(len(held))
    gains = judged.gains(queries, everything)
    k = max(1, round(NEAREST * len(held) / n_points))
    own = values[held]

    def scores(codes: Codes, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        found = codes(own)
        agreement = found[queries] @ found.T
        agreement[np.arange(len(queries)), queries] = -np.inf
        return weights * mean_gain(agreement, gains, k)

    return Judge(scores, _shares(judged.take(queries)), learnt, rest)


def _shares(queries: SharedLabels) -> NDArray[np.float64]:
    """Return how much queries count: alike, but those of a class of more than half of them not more than all others."""
    share = np.full(len(queries.rows), 1.0 / len(queries.rows))
    largest = int(queries.sizes.argmax())
    of_largest = queries.indicator[:, [largest]].toarray().ravel() > 0
    one_label_each = queries.indicator.nnz == len(queries.rows)
    if one_label_each and of_largest.mean() > 0.5 and not of_largest.all():
        share[of_largest] = 0.5 / np.count_nonzero(of_largest)
        share[~of_largest] = 0.5 / np.count_nonzero(~of_largest)
    return share


def judge_of_pairs(similarity: SimilarPairs, values: Values, points: Values, seed: int) -> Judge | None:
    """Hold a quarter of the points out, and see whether one end of their pairs finds the other among a sample.

    As many pairs of the points that are left are held out, too: pairs are known of points that are there, and of those
    more is wanted. Where hardly any pair has both ends among the points held out, a third of the pairs is held out.
    """
    n, m = len(similarity.rows), len(similarity.pairs)
    base = _base(points, seed)
    new = np.zeros(n, bool)
    new[_core.permuted(n, seed, 0, n // 4)] = True
    ends_new = new[similarity.pairs].sum(axis=1)
    held = np.flatnonzero(ends_new == 2)
    if len(held) >= PAIRS_OF_POINTS:
        held = held[_core.permuted(len(held), seed, 0, min(len(held), HELD_PAIRS))]
        left = np.flatnonzero(ends_new == 0)
        left = left[_core.permuted(len(left), seed, 0, len(left))]
        also, learnt_from = left[: min(len(held), len(left) // 3)], np.sort(left[min(len(held), len(left) // 3) :])
        some, known = similarity.pairs[np.append(held, also)], np.flatnonzero(~new)
        learnt, gone = similarity.among(known, learnt_from), similarity.rows[similarity.pairs[also]]
        return Judge(_found_among(some, values, base), _alike(len(some)), learnt, known, gone)
    order = _core.permuted(m, seed, 0, m)
    held = order[: m // 3][:HELD_PAIRS]
    if len(held) < FEWEST:
        return None
    learnt = similarity.among(np.arange(n), np.sort(order[m // 3 :]))
    some = similarity.pairs[held]
    return Judge(_found_among(some, values, base), _alike(len(some)), learnt, np.arange(n), similarity.rows[some])


def _base(points: Values, seed: int) -> Values:
    return points[_core.permuted(len(points), seed, 0, min(len(points), AMONG))]


def _alike(n: int) -> NDArray[np.float64]:
    return np.full(n, 1.0 / n)


def _found_among(
    pairs: NDArray[np.int64], values: Values, base: Values
) -> Callable[[Codes, NDArray[np.float64]], NDArray[np.float64]]:
    """Return what tells of which pairs one end is nearer to the other than all but a small share of a base."""
    limits: list[float] = []

    def scores(codes: Codes, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        ends, others = codes(values), codes(base)
        ranks = np.empty(len(pairs))
        for first in range(0, len(pairs), QUERIES):
            some = pairs[first : first + QUERIES]
            own = np.einsum("ij,ij->i", ends[some[:, 0]], ends[some[:, 1]])[:, None]
            agreement = ends[some[:, 0]] @ others.T
            ranks[first : first + QUERIES] = (agreement > own).mean(axis=1) + 0.5 * (agreement == own).mean(axis=1)
        if not limits:  # of the first that is judged, principal directions
            limits.append(next((share for share in RANKS if np.count_nonzero(ranks <= share) >= HITS), RANKS[-1]))
        return weights * (ranks <= limits[0])

    return scores


def judge_of_neighbors(points: Values, seed: int) -> Judge | None:
    """Without supervision, see whether the nearest hundredth of a sample are found."""
    base = points[_core.permuted(len(points), seed, 0, min(len(points), BASE))]
    n = len(base)
    k = n // 100
    if k < 3:
        return None
    queries = np.arange(min(QUERIES, n))
    gains = np.zeros((len(queries), n), np.float32)
    np.put_along_axis(gains, nearest_other_rows(base, k)[queries].astype(np.int64), 1.0, axis=1)

    def scores(codes: Codes, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        found = codes(base)
        agreement = found[queries] @ found.T
        agreement[queries, queries] = -np.inf
        return weights * mean_gain(agreement, gains, k)

    return Judge(scores, np.full(len(queries), 1.0 / len(queries)))


def mean_gain(agreement: NDArray[np.float32], gains: NDArray[np.float32], k: int) -> NDArray[np.float64]:
    """Return the mean gain of the k that agree most with each query; ties share the places that are left."""
    k = min(k, agreement.shape[1] - 1)
    limit = -np.partition(-agreement, k - 1, axis=1)[:, k - 1 : k]
    above, equal = agreement > limit, agreement == limit
    left = (k - above.sum(axis=1)) / equal.sum(axis=1)
    total = np.where(above, gains, 0.0).sum(axis=1) + left * np.where(equal, gains, 0.0).sum(axis=1)
    return np.asarray(total / k, dtype=np.float64)
