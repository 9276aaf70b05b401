"""Brute force in Euclidean space: the K nearest rows, ties included, in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._checks import check_count
from ilhash.vectors._matrix import as_matrix, refuse_non_finite
from ilhash.vectors._sparse import SparseRows

_BLOCK = 4 << 20  # distances held at a time
_BASE_ROWS = 4096  # rows of the base in one product

Doubles = NDArray[np.float64]
Pairs = tuple[NDArray[Any], NDArray[Any]]  # queries and rows


def nearest_rows(base: Any, queries: Any, n_neighbors: int, *, ranked: bool = False) -> NDArray[Any]:
    """Return the K nearest base rows of each query, of equally distant ones those of lower numbers.

    The base is read twice for each block of queries: once for the K-th distance, once for the rows within it. Distances
    come from products, |b|^2 - 2 b'q + |q|^2, whose error is bounded; the few rows that the bound cannot place on one
    side of the K-th distance are placed by sums of squared differences, equal ones by their number.

    Parameters
    ----------
    base, queries : arrays (n, D) and (n_queries, D), may be memory maps
    n_neighbors : int, K
    ranked : bool, whether they stand nearest first, by sums of squared differences; else by their numbers

    Returns
    -------
    int array (n_queries, K)
    """
    base, queries = as_matrix(base, "base_vectors"), as_matrix(queries, "query_vectors")
    if base.shape[1] != queries.shape[1]:
        raise ValueError(
            f"query_vectors must have the columns of base_vectors, got {queries.shape[1]} and {base.shape[1]}"
        )
    k = check_count("n_neighbors", n_neighbors)
    if k > len(base):
        raise ValueError(f"n_neighbors must be at most the {len(base)} base vectors, got {k}")
    out = np.empty((len(queries), k), np.int32 if len(base) < 2**31 else np.int64)
    step = max(1, _BLOCK // (k + _BASE_ROWS))
    origin = _doubles(base[:1], "base_vectors[0:1]")[0]  # any point among them: it takes large offsets away
    points = _doubles(queries, "query_vectors")
    for first in range(0, len(queries), step):
        block = _Block(base, points[first : first + step], origin)
        out[first : first + step] = block.nearest(k)
    if ranked:
        for query, rows in enumerate(out):
            distances = ((np.asarray(base[rows], dtype=np.float64) - points[query]) ** 2).sum(axis=1)
            out[query] = rows[np.argsort(distances, kind="stable")]
    return out


class _Block:
    """A block of queries against the whole base."""

    def __init__(self, base: NDArray[Any], queries: Doubles, origin: Doubles) -> None:
        self.base, self.queries, self.origin = base, queries, origin
        self.centred = queries - origin
        self.squares = _squared_norms(self.centred, "query_vectors")
        self.largest = 0.0  # squared norm of the base, known after the first pass

    def nearest(self, k: int) -> NDArray[np.int64]:
        """Return the k nearest rows of each query."""
        edge = self._kth_distance(k)
        # Twice the error of a product in any order of summation: beyond it on either side there is no doubt.
        unit = np.finfo(np.float64).eps
        doubt = 2.0 * (self.base.shape[1] + 8) * unit * 4.0 * (self.squares + self.largest)
        surely: list[Pairs] = []
        perhaps: list[Pairs] = []
        for first, distances in self._distances():
            query, row = np.nonzero(distances <= (edge + doubt)[:, None])
            inside = distances[query, row] < (edge - doubt)[query]
            surely.append((query[inside], first + row[inside]))
            perhaps.append((query[~inside], first + row[~inside]))
            if sum(len(pairs[0]) for pairs in perhaps) > _BLOCK:  # very many ties: more than k of a query are too many
                perhaps = [self._best(_joined(perhaps), np.full(len(self.queries), k))]
        certain = _joined(surely)
        missing = k - np.bincount(certain[0], minlength=len(self.queries))
        query, row = _joined([certain, self._best(_joined(perhaps), missing)])
        return row[np.lexsort((row, query))].reshape(len(self.queries), k)

    def _best(self, pairs: Pairs, wanted: NDArray[Any]) -> Pairs:
        """Keep as many pairs of each query as are wanted, by distance and then by row."""
        query, row = pairs
        exact = np.empty(len(query))
        for first in range(0, len(query), _BASE_ROWS):
            part = slice(first, first + _BASE_ROWS)
            differences = np.asarray(self.base[row[part]], dtype=np.float64) - self.queries[query[part]]
            exact[part] = (differences**2).sum(axis=1)
        order = np.lexsort((row, exact, query))
        query, row = query[order], row[order]
        place = np.arange(len(query)) - np.searchsorted(query, query)
        kept = place < wanted[query]
        return query[kept], row[kept]

    def _kth_distance(self, k: int) -> Doubles:
        pool = np.empty((len(self.queries), 0))
        for _, distances in self._distances():
            pool = np.concatenate([pool, distances], axis=1)
            if pool.shape[1] > k:
                pool = np.partition(pool, k - 1, axis=1)[:, :k]
        return np.asarray(pool.max(axis=1))

    def _distances(self) -> Iterator[tuple[int, Doubles]]:
        for first in range(0, len(self.base), _BASE_ROWS):
            part = _doubles(self.base[first : first + _BASE_ROWS], f"base_vectors[{first}:{first + _BASE_ROWS}]")
            part = part - self.origin
            squares = _squared_norms(part, "base_vectors")
            self.largest = max(self.largest, float(squares.max()))
            distances = self.centred @ part.T
            distances *= -2.0
            distances += squares
            distances += self.squares[:, None]
            yield first, distances


def _doubles(vectors: NDArray[Any], name: str) -> Doubles:
    array = np.asarray(vectors, dtype=np.float64)
    refuse_non_finite(array, name)
    return array


def _joined(parts: list[Pairs]) -> Pairs:
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _squared_norms(vectors: Doubles, name: str) -> Doubles:
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
    if not np.isfinite(squares).all():
        bad = np.count_nonzero(~np.isfinite(squares))
        raise ValueError(
            f"{name} must have finite squared norms, got {bad} of {len(squares)} rows beyond; rescale them"
        )
    return np.asarray(squares)


# ------------------------------------------------------------------------------------------------ of each other


def nearest_other_rows(values: Any, k: int) -> NDArray[np.uint32]:
    """Return the k nearest other rows of every row, by float32 products: fast, for training sets.

    Of rows whose rounded distances are equal, those of lower numbers are taken. Of sparse rows, only a block is dense.
    """
    n = len(values)
    if k >= n:
        raise ValueError(f"k must be below the number of rows, got k={k} for {n} rows")
    sparse = isinstance(values, SparseRows)
    norms = values.squared_norms() if sparse else np.einsum("ij,ij->i", values, values)
    out = np.empty((n, k), np.uint32)
    block = max(1, min(512, (64 << 20) // (4 * max(n, values.shape[1] if sparse else 0))))
    for first in range(0, n, block):
        part = values[first : first + block]
        if sparse:
            distances: NDArray[np.float32] = np.ascontiguousarray((values @ part.dense().T).T) * np.float32(-2.0)
        else:
            distances = np.matmul(np.float32(-2.0) * part, values.T)
        distances += norms
        distances[np.arange(len(part)), np.arange(first, first + len(part))] = np.inf
        out[first : first + block] = _smallest(distances, k)
    return out


def _smallest(distances: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the columns of the k smallest numbers of every row; partitioning values is faster than their places."""
    edge = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    within = distances <= edge
    crowded = np.flatnonzero(within.sum(axis=1) > k)
    if len(crowded):
        tied = distances[crowded] == edge[crowded]
        free = k - (within[crowded] & ~tied).sum(axis=1, keepdims=True)
        within[crowded] &= ~tied | (tied.cumsum(axis=1) <= free)
    return np.asarray(np.flatnonzero(within) % distances.shape[1]).reshape(-1, k)
