"""How well codes find what is similar, by points or pairs held out of what directions are learnt from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity import SharedLabels, SimilarPairs
from ilhash.starts._moments import Moments, Values
from ilhash.vectors import nearest_other_rows

Codes = Callable[[Values], NDArray[np.float32]]

QUERIES = 500
BASE = 4_000
FEWEST = 60  # points or pairs held out, below which nothing is judged
NEAREST = 10  # neighbours, among all points, that a user is taken to look at
RANKS = (0.001, 0.003, 0.01, 0.03, 0.1)  # shares of the base, within which the other of a pair counts as found
HITS = 100  # pairs that must be found within a share for it to be judged by


@dataclass(frozen=True)
class Judge:
    """A small retrieval; ``scores`` gives the share of the score of each query, which add up to it."""

    scores: Callable[[Codes, NDArray[np.float64]], NDArray[np.float64]]
    weights: NDArray[np.float64]


def judge_of_labels(
    similarity: SharedLabels, values: Values, n_points: int, seed: int
) -> tuple[Judge | None, Moments | None]:
    """Hold a third of the labelled points out: they are searched for, and searched, as new points are.

    So many of the nearest count as are to the points held out what ten are to all.
    """
    n = len(similarity.rows)
    order = _core.permuted(n, seed, 0, n)
    held, rest = np.sort(order[: n // 3][: BASE + QUERIES]), np.sort(order[n // 3 :])
    learnt, judged = similarity.take(rest), similarity.take(held)
    weights = judged.degrees
    queries = np.flatnonzero(weights > 0)[:QUERIES]
    if len(queries) < FEWEST or not learnt.degrees.any():
        return None, None
    everything = np.arange(len(held))
    gains = judged.gains(queries, everything)
    k = max(1, round(NEAREST * len(held) / n_points))
    own = values[held]

    def scores(codes: Codes, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        found = codes(own)
        agreement = found[queries] @ found.T
        agreement[np.arange(len(queries)), queries] = -np.inf
        return weights * mean_gain(agreement, gains, k)

    share = weights[queries] / weights[queries].sum()
    return Judge(scores, share), Moments.of(learnt, values[rest])


def judge_of_pairs(
    similarity: SimilarPairs, values: Values, points: Values, seed: int
) -> tuple[Judge | None, Moments | None]:
    """Hold a third of the similar pairs out, and see whether one end finds the other among a sample of points."""
    m = len(similarity.pairs)
    order = _core.permuted(m, seed, 0, m)
    held, rest = similarity.pairs[order[: m // 3]], similarity.take(np.sort(order[m // 3 :]))
    if len(held) < FEWEST:
        return None, None
    base = points[_core.permuted(len(points), seed, 0, min(len(points), BASE))]
    limits: list[float] = []

    def scores(codes: Codes, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        ends, others = codes(values), codes(base)
        ranks = np.empty(len(held))
        for first in range(0, len(held), QUERIES):
            pairs = held[first : first + QUERIES]
            own = np.einsum("ij,ij->i", ends[pairs[:, 0]], ends[pairs[:, 1]])[:, None]
            agreement = ends[pairs[:, 0]] @ others.T
            ranks[first : first + QUERIES] = (agreement > own).mean(axis=1) + 0.5 * (agreement == own).mean(axis=1)
        if not limits:  # of the first that is judged, principal directions
            limits.append(next((share for share in RANKS if np.count_nonzero(ranks <= share) >= HITS), RANKS[-1]))
        return weights * (ranks <= limits[0])

    return Judge(scores, np.full(len(held), 1.0 / len(held))), Moments.of(rest, values)


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
