"""Euclidean neighbours where there is no supervision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity._base import AsDrawn, Objective, TrainingGraph, Values, with_objective

__all__ = ["EuclideanNeighbours", "euclidean_neighbours"]


@dataclass(frozen=True)
class EuclideanNeighbours(AsDrawn):
    """Pseudo-labels (appendix C): nearest neighbours are similar, random others dissimilar.

    Both are searched among the points of the bit's own training set.
    """

    n_points: int
    drawable: None = None

    def graph(
        self,
        rows: NDArray[np.int64],
        objective: Objective,
        similar: int,
        dissimilar: int,
        seed: int,
        values: Values,
    ) -> TrainingGraph:
        """Join each point to its ``similar`` nearest neighbours and to ``dissimilar`` random others."""
        most = max(1, (len(rows) - 1) // 3)  # in a small set the rest must be left to be dissimilar
        shortages = {"the whole training set": len(rows)} if similar > most else {}
        nearest = euclidean_neighbours(values(), min(similar, most))
        graph = _core.SignedGraph.from_neighbours(nearest, dissimilar, seed)
        return with_objective(graph, objective, shortages)

    def digest(self) -> str:
        """Return a fingerprint: there is nothing but the number of points."""
        return f"euclidean-{self.n_points}"


def euclidean_neighbours(values: NDArray[np.float32], k: int) -> NDArray[np.uint32]:
    """Return the k nearest other rows of every row, in blocks of rows."""
    n = len(values)
    if k >= n:
        raise ValueError(f"k must be below the number of rows, got k={k} for {n} rows")
    norms = np.einsum("ij,ij->i", values, values)
    out = np.empty((n, k), np.uint32)
    block = max(1, min(512, (64 << 20) // (4 * n)))
    for first in range(0, n, block):
        part = values[first : first + block]
        distances: NDArray[np.float32] = np.matmul(np.float32(-2.0) * part, values.T)
        distances += norms
        distances[np.arange(len(part)), np.arange(first, first + len(part))] = np.inf
        out[first : first + block] = _smallest(distances, k)
    return out


def _smallest(distances: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the columns of the k smallest numbers of every row; partitioning values is faster than their places."""
    within = distances <= np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    places = np.flatnonzero(within)
    if len(places) == k * len(distances):
        return np.asarray(places % distances.shape[1]).reshape(-1, k)
    return np.argpartition(distances, k - 1, axis=1)[:, :k]  # ties at the end: any of them
