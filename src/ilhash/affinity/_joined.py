"""Classes that pairs imply: what is similar to the same is similar, unless a dissimilar pair says otherwise."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

MEMBERS = 20  # points of a class, at least
COVERED = 0.9  # share of the judged points that must be in such classes
CONTRADICTED = 0.01  # dissimilar pairs within classes, as a share of those that chance would put there
EXPECTED = 100  # dissimilar pairs that chance would put there, without which nothing is known


def joined_classes(matrix: scipy.sparse.csr_array) -> NDArray[np.int32] | None:
    """Return the classes that the similar pairs of a symmetric matrix join points to, -1 for points of none.

    None unless the classes, of 20 points or more, hold nine tenths of the judged points, every two of them are told
    apart by a dissimilar pair, and of the dissimilar pairs hardly any lies within a class (a hundredth of what chance
    would put there, which must be a hundred pairs at least).
    """
    joined = _components(matrix)
    sizes = np.bincount(joined[joined >= 0])
    judged = np.count_nonzero(np.diff(matrix.indptr))
    if len(sizes) < 2 or sizes.sum() < COVERED * judged:
        return None
    upper = scipy.sparse.triu(matrix, 1).tocoo()
    apart = upper.data < 0
    first, second = joined[upper.row[apart]], joined[upper.col[apart]]
    known = (first >= 0) & (second >= 0)
    first, second = first[known], second[known]
    share = np.bincount(np.append(first, second), minlength=len(sizes)) / max(2 * len(first), 1)
    expected = len(first) * float(np.sum(share**2))
    if expected < EXPECTED or np.count_nonzero(first == second) > CONTRADICTED * expected:
        return None
    smaller, larger = np.minimum(first, second), np.maximum(first, second)
    told_apart = np.unique(np.stack([smaller, larger])[:, smaller != larger], axis=1).shape[1]
    return joined if told_apart == len(sizes) * (len(sizes) - 1) // 2 else None


def _components(matrix: scipy.sparse.csr_array) -> NDArray[np.int32]:
    """Return the component of similar pairs that each point is in, numbered from 0, -1 for those in small ones."""
    similar = scipy.sparse.csr_array(matrix > 0)
    _, own = connected_components(similar, directed=False)
    large = np.bincount(own)[own] >= MEMBERS
    joined = np.full(matrix.shape[0], -1, np.int32)
    joined[large] = np.unique(own[large], return_inverse=True)[1]
    return joined
