"""Pairs and sparse signed matrices as supervision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import as_array, check_count
from ilhash._parameters import MOST
from ilhash.affinity._base import Objective, TrainingGraph, Values, WithoutClasses, digest_of, rows_where
from ilhash.affinity._joined import joined_classes
from ilhash.affinity._labels import Labels
from ilhash.affinity._similarity import SimilarPairs, similar_pairs
from ilhash.graph import coupling_graph
from ilhash.objective import coefficients, couplings


@dataclass(frozen=True)
class SparseAffinity(WithoutClasses):
    """A symmetric sparse matrix of affinities y_nm: > 0 similar, < 0 dissimilar, absent unknown.

    Where it is ``thinned``, a training set draws at most as many pairs as neighbours are wanted, similar and dissimilar
    ones apart: its cost is that of labels, however many pairs there are.
    """

    matrix: scipy.sparse.csr_array
    thinned: bool = False

    @property
    def n_points(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def drawable(self) -> NDArray[np.int64] | None:
        return rows_where(np.diff(self.matrix.indptr) > 0)

    def graph(
        self, rows: NDArray[np.int64], objective: Objective, similar: int, dissimilar: int, seed: int, values: Values
    ) -> TrainingGraph:
        """Return the part of the graph that lies among the rows."""
        own = scipy.sparse.csr_array(self.matrix[rows][:, rows])
        if self.thinned:
            own = _thinned(own, similar * len(rows), dissimilar * len(rows), seed)
        if own.nnz:
            own.data = -coefficients(objective, own.data)
        return TrainingGraph(coupling_graph(own))

    def similarity(self, seed: int, size: int) -> SimilarPairs | None:
        return similar_pairs(self.matrix, seed, size)

    def implied(self) -> Labels | None:
        """Return the classes that pairs imply (:func:`joined_classes`), None where they imply none."""
        codes = joined_classes(self.matrix)
        return None if codes is None else Labels(codes, np.arange(codes.max() + 1))

    def among(self, rows: NDArray[np.int64]) -> SparseAffinity:
        return SparseAffinity(scipy.sparse.csr_array(self.matrix[rows][:, rows]), self.thinned)

    def without(self, pairs: NDArray[np.int64]) -> SparseAffinity:
        """Return all that is known but of some pairs (m, 2)."""
        i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
        gone = scipy.sparse.csr_array((np.ones(len(i), np.int8), (i, j)), shape=self.matrix.shape)
        left = scipy.sparse.csr_array(self.matrix - self.matrix.multiply(gone.astype(bool)))
        left.eliminate_zeros()
        left.sort_indices()
        return SparseAffinity(left, self.thinned)

    def digest(self) -> str:
        y = self.matrix
        return digest_of(y.indptr.astype(np.int64), y.indices.astype(np.int64), y.data)


def _thinned(matrix: scipy.sparse.csr_array, similar: int, dissimilar: int, seed: int) -> scipy.sparse.csr_array:
    """Draw at most so many of the similar and of the dissimilar pairs of a symmetric matrix."""
    if matrix.nnz <= 2 * min(similar, dissimilar):
        return matrix
    upper = scipy.sparse.triu(matrix, 1).tocoo()
    positive, negative = np.flatnonzero(upper.data > 0), np.flatnonzero(upper.data < 0)
    kept = [
        pairs[_core.permuted(len(pairs), seed, 0, most)] if len(pairs) > most else pairs
        for pairs, most in ((positive, similar), (negative, dissimilar))
    ]
    some = np.sort(np.concatenate(kept))
    half = scipy.sparse.csr_array((upper.data[some], (upper.row[some], upper.col[some])), shape=matrix.shape)
    return scipy.sparse.csr_array(half + half.T)


def affinity_from_matrix(
    matrix: Any, n_points: int, objective: Objective = "laplacian", similar_only: bool = False
) -> SparseAffinity:
    """Check a sparse signed matrix: square, symmetric, finite, with dissimilar pairs unless they may be missing."""
    if not scipy.sparse.issparse(matrix):
        raise TypeError(
            f"affinity must be a scipy sparse matrix of signed weights, got {type(matrix).__name__}; a dense matrix "
            "grows with the square of the number of points (scipy.sparse.csr_array converts a small one)"
        )
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise ValueError(f"affinity must be a matrix of real numbers, got {matrix.ndim}-D {matrix.dtype}")
    y = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
    n_points = check_count("n_points", n_points, 0, MOST)
    if y.shape != (n_points, n_points):
        raise ValueError(f"affinity must be {n_points} x {n_points}, one row and column per row of X, got {y.shape}")
    y.sum_duplicates()
    if not np.isfinite(y.data).all():
        bad = int(np.count_nonzero(~np.isfinite(y.data)))
        raise ValueError(f"affinity must be finite, got {bad} of {y.nnz} entries that are not")
    y.setdiag(0.0)  # a point's affinity to itself adds a constant to the objective
    y.eliminate_zeros()
    y.sort_indices()
    asymmetric = abs(y - y.T)
    if asymmetric.nnz and asymmetric.max() > 1e-9 * abs(y).max():
        bad = int(np.count_nonzero(asymmetric.data > 1e-9 * abs(y).max())) // 2
        raise ValueError(
            f"affinity must be symmetric, got {bad} pairs with two different weights; (A + A.T) / 2 makes it so"
        )
    y = scipy.sparse.csr_array((y + y.T) / 2.0)  # what was equal up to rounding is equal from here on
    y.sort_indices()
    if y.nnz == 0:
        raise ValueError("affinity must relate some points, got no entry off the diagonal")
    if not (similar_only and (y.data > 0).all()):
        couplings(objective, y.data)
    return SparseAffinity(y)


def affinity_from_pairs(
    pairs: Any, n_points: int, objective: Objective = "laplacian", similar_only: bool = False
) -> SparseAffinity:
    """Build a symmetric matrix from rows (i, j, weight) or a tuple of index pairs (m, 2) and weights (m,)."""
    n_points = check_count("n_points", n_points, 0, MOST)
    first, second, weight = _pair_columns(pairs)
    outside = (np.minimum(first, second) < 0) | (np.maximum(first, second) >= n_points)
    if outside.any():
        raise ValueError(
            f"pairs must name rows 0 to {n_points - 1} of X, got {int(outside.sum())} of {len(first)} out of range, "
            f"such as ({first[outside][0]}, {second[outside][0]})"
        )
    if (first == second).any():
        raise ValueError(
            f"pairs must join two different points, got {int((first == second).sum())} of a point with itself"
        )
    if not np.isfinite(weight).all() or (weight == 0).any():
        raise ValueError("pairs must have finite weights other than 0: > 0 similar, < 0 dissimilar")
    key = np.minimum(first, second) * n_points + np.maximum(first, second)
    unique, position, group = np.unique(key, return_index=True, return_inverse=True)
    contradictory = np.unique(key[weight != weight[position][group]])
    if contradictory.size:
        one, other = divmod(int(contradictory[0]), n_points)
        raise ValueError(
            f"pairs must not contradict each other, got {contradictory.size} pairs with two different weights, such as "
            f"({one}, {other})"
        )
    i, j, w = unique // n_points, unique % n_points, weight[position]
    both = (np.concatenate([w, w]), (np.concatenate([i, j]), np.concatenate([j, i])))
    square = scipy.sparse.csr_array(both, shape=(n_points, n_points))
    return affinity_from_matrix(square, n_points, objective, similar_only)


def _pair_columns(pairs: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    parts = pairs if isinstance(pairs, tuple) and len(pairs) == 2 else (pairs,)
    given = [np.asarray(as_array("pairs", part)) for part in parts]
    if len(given) == 1 and given[0].ndim == 2 and given[0].shape[1] == 3:
        given = [given[0][:, :2], given[0][:, 2]]
    shapes = [part.shape for part in given]
    rows = shapes[0][0] if shapes[0] else 0
    if rows == 0 or shapes != [(rows, 2), (rows,)] or any(part.dtype.kind not in "iuf" for part in given):
        got = " and ".join(f"{part.shape} {part.dtype}" for part in given)
        raise ValueError(
            "pairs must be an array of rows (i, j, weight), or a tuple of index pairs (m, 2) and weights (m,), with at "
            f"least one pair, got {got}"
        )
    index, weight = given[0], given[1].astype(np.float64)
    whole = np.round(index)
    if not np.isfinite(index).all() or (whole != index).any():
        raise ValueError("pairs must name rows by whole numbers, got fractions")
    if (np.abs(whole.astype(np.float64)) >= 2.0**62).any():
        raise ValueError(f"pairs must name rows of X, got numbers such as {whole.ravel()[np.abs(whole).argmax()]}")
    return whole[:, 0].astype(np.int64), whole[:, 1].astype(np.int64), weight
