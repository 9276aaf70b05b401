"""Euclidean neighbours where there is no supervision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity._base import Objective, TrainingGraph, Values, WithoutClasses, with_objective
from ilhash.vectors import nearest_other_rows


@dataclass(frozen=True)
class EuclideanNeighbors(WithoutClasses):
    """Pseudo-labels (appendix C): nearest neighbours are similar, random others dissimilar.

    Both are searched among the points of the bit's own training set.
    """

    n_points: int
    drawable: None = None

    def graph(
        self, rows: NDArray[np.int64], objective: Objective, similar: int, dissimilar: int, seed: int, values: Values
    ) -> TrainingGraph:
        """Join each point to its ``similar`` nearest neighbours and to ``dissimilar`` random others."""
        most = max(1, (len(rows) - 1) // 3)  # in a small set the rest must be left to be dissimilar
        shortages = {"the whole training set": len(rows)} if similar > most else {}
        nearest = nearest_other_rows(values(), min(similar, most))
        graph = _core.SignedGraph.from_neighbours(nearest, dissimilar, seed)
        return with_objective(graph, objective, shortages)

    def similarity(self, seed: int, size: int) -> None:
        return None

    def among(self, rows: NDArray[np.int64]) -> EuclideanNeighbors:
        return EuclideanNeighbors(len(rows))

    def digest(self) -> str:
        return f"euclidean-{self.n_points}"
