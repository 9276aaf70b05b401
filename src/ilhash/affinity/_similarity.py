"""A bounded sample of what is known to be similar: what directions are learnt from, and judged by.

Both kinds answer the same questions: how much each point of the sample counts, the differences of similar points, and
a part of the sample, to be kept for judging.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core

Values = NDArray[np.float32]


@dataclass(frozen=True)
class SharedLabels:
    """Points that are similar through labels, each pair as often as it shares one.

    A label counts with the square root of the number of its points: a class of 90 % does not drown the others, and one
    of two points does not count like one of thousands.

    Attributes
    ----------
    rows : int64 array (n,), rows of X
    indicator : sparse float32 array (n, L), 1 where a point has a label
    whole : bool, whether whole classes were drawn, so that there are more of the same class than in a uniform draw
    """

    rows: NDArray[np.int64]
    indicator: scipy.sparse.csr_array
    whole: bool = False

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Number of points of each label."""
        return np.bincount(self.indicator.indices, minlength=self.indicator.shape[1]).astype(np.float64)

    @property
    def pair_weights(self) -> NDArray[np.float64]:
        """Weight of a pair for each label: all pairs of a point with others of the label count n^-1/2 together."""
        sizes = self.sizes
        return np.where(sizes > 1, np.maximum(sizes, 1.0) ** -0.5 / np.maximum(sizes - 1.0, 1.0), 0.0)

    @property
    def degrees(self) -> NDArray[np.float64]:
        """How much each point counts, (n,)."""
        return np.asarray(self.indicator @ (self.pair_weights * np.maximum(self.sizes - 1.0, 0.0)))

    def scatter(self, values: Values) -> NDArray[np.float64]:
        """Return the weighted sum of (x - x')(x - x')' over similar pairs, (d, d)."""
        each = np.asarray(self.indicator @ (self.pair_weights * self.sizes))
        sums = np.asarray(self.indicator.T @ values) * np.sqrt(self.pair_weights)[:, None].astype(np.float32)
        scaled = values * np.sqrt(each)[:, None].astype(np.float32)
        return np.asarray((scaled.T @ scaled).astype(np.float64) - (sums.T @ sums).astype(np.float64))

    def take(self, positions: NDArray[np.int64]) -> SharedLabels:
        """Return some of the points."""
        return SharedLabels(self.rows[positions], scipy.sparse.csr_array(self.indicator[positions]), self.whole)

    def pairs(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the pairs (m, 2) of different points, the first at some positions, that share a label."""
        shared = scipy.sparse.coo_array(self.indicator[positions] @ self.indicator.T)
        first, second = positions[shared.row], shared.col.astype(np.int64)
        return np.asarray(np.stack([first, second], axis=1)[first != second])

    def gains(self, queries: NDArray[np.int64], base: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how similar points are, from 0 to 1: the cosine of their labels, rare ones counting more."""
        weighted = scipy.sparse.csr_array(self.indicator.multiply(np.maximum(self.sizes, 1.0)[None, :] ** -0.25))
        norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
        shared = (weighted[queries] @ weighted[base].T).toarray()
        return np.asarray(shared / np.maximum(norms[queries][:, None] * norms[base], 1e-12), dtype=np.float32)


@dataclass(frozen=True)
class SimilarPairs:
    """Points that are similar by pairs.

    Attributes
    ----------
    rows : int64 array (n,), rows of X
    pairs : int64 array (m, 2), positions among the rows
    weights : float64 array (m,), how similar, above 0
    """

    rows: NDArray[np.int64]
    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def degrees(self) -> NDArray[np.float64]:
        """How much each point counts, (n,)."""
        both = np.concatenate([self.weights, self.weights])
        return np.asarray(np.bincount(self.pairs.T.ravel(), both, len(self.rows)), dtype=np.float64)

    def scatter(self, values: Values) -> NDArray[np.float64]:
        """Return the weighted sum of (x - x')(x - x')' over similar pairs, (d, d)."""
        difference = values[self.pairs[:, 0]] - values[self.pairs[:, 1]]
        difference *= np.sqrt(self.weights)[:, None].astype(np.float32)
        return (difference.T @ difference).astype(np.float64)

    def among(self, points: NDArray[np.int64], pairs: NDArray[np.int64]) -> SimilarPairs:
        """Return some of the pairs, by their numbers, of some of the points, by their positions in ascending order."""
        return SimilarPairs(self.rows[points], np.searchsorted(points, self.pairs[pairs]), self.weights[pairs])


def shared_labels(
    indicator: scipy.sparse.csr_array, rows: NDArray[np.int64], groups: NDArray[np.int32] | None, seed: int, size: int
) -> SharedLabels:
    """Draw at most ``size`` of the labelled rows; whole classes where a uniform draw would leave few of each.

    ``groups`` are the classes of the rows, None where points have several labels.
    """
    whole = False
    if len(rows) > size:
        if groups is not None and groups.max() + 1 > size // 20:
            whole = True
            rank = _core.permuted(int(groups.max()) + 1, seed, 0, int(groups.max()) + 1)
            rows = rows[np.argsort(rank[groups], kind="stable")[:size]]
        else:
            rows = rows[_core.permuted(len(rows), seed, 0, size)]
    rows = np.sort(rows)
    own = scipy.sparse.csr_array(indicator[rows], dtype=np.float32)
    used = np.unique(own.indices)
    return SharedLabels(rows, scipy.sparse.csr_array(own[:, used]), whole)


def similar_pairs(matrix: scipy.sparse.csr_array, seed: int, size: int) -> SimilarPairs | None:
    """Draw at most ``size`` of the similar pairs of a symmetric matrix; None where there is none."""
    upper = scipy.sparse.triu(matrix, 1).tocoo()
    positive = np.flatnonzero(upper.data > 0)
    if len(positive) == 0:
        return None
    if len(positive) > size:
        positive = np.sort(positive[_core.permuted(len(positive), seed, 0, size)])
    ends = np.stack([upper.row[positive], upper.col[positive]], axis=1).astype(np.int64)
    rows, places = np.unique(ends, return_inverse=True)
    return SimilarPairs(rows, places.reshape(-1, 2), np.asarray(upper.data[positive], dtype=np.float64))
