"""What all kinds of supervision have in common."""

from __future__ import annotations

import hashlib
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity._similarity import SharedLabels, SimilarPairs
from ilhash.graph import coupling_graph, graph_couplings
from ilhash.objective import Loss, couplings

Objective = str | Loss
Values = Callable[[], NDArray[np.float32]]


@dataclass(frozen=True)
class TrainingGraph:
    """Couplings between the points of one training set, divided by ``scale``.

    ``shortages`` are classes (or other groups) too small for the wanted number of neighbours, with their sizes.
    """

    graph: _core.SignedGraph
    scale: float = 1.0  # what an energy of the graph is multiplied by to be in units of the objective
    shortages: dict[str, int] = field(default_factory=dict)


class Supervision(typing.Protocol):
    """Knows which points may be drawn and how the drawn ones are related."""

    @property
    def n_points(self) -> int:
        """Number of points, drawable or not."""

    @property
    def drawable(self) -> NDArray[np.int64] | None:
        """The points that a training set may hold; None: all of them."""

    def arrange(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of a training set in the order in which their graph is built."""

    def graph(
        self, rows: NDArray[np.int64], objective: Objective, similar: int, dissimilar: int, seed: int, values: Values
    ) -> TrainingGraph:
        """Draw the graph of one training set; ``values()`` gives its vectors to those who need them."""

    def similarity(self, seed: int, size: int) -> SharedLabels | SimilarPairs | None:
        """Draw at most ``size`` points or pairs of what is known to be similar; None: nothing is."""

    def among(self, rows: NDArray[np.int64]) -> Supervision:
        """Return what is known of some points alone, which are numbered anew."""

    def classes(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the classes of some points, -1 where a point is not of one class."""

    def digest(self) -> str:
        """Return a fingerprint of the supervision."""


class WithoutClasses:
    """Points that are not of one class each; those of a training set stay in the order in which they were drawn."""

    def arrange(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows

    def classes(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        return np.full(len(rows), -1, np.int32)


def rows_where(usable: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return the usable rows, or None if all are."""
    return None if usable.all() else np.flatnonzero(usable).astype(np.int64)


def digest_of(*arrays: NDArray[Any]) -> str:
    """Return a fingerprint of some arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def with_objective(
    graph: _core.SignedGraph, objective: Objective, shortages: dict[str, int] | None = None
) -> TrainingGraph:
    """Turn a graph of affinities +1 and -1 into couplings."""
    attraction, repulsion = (float(w) for w in couplings(objective, np.array([1.0, -1.0])))
    if attraction > 0 and repulsion == -attraction:
        return TrainingGraph(graph, attraction, shortages or {})
    y = graph_couplings(graph)
    y.data = np.where(y.data > 0, attraction, repulsion)
    return TrainingGraph(coupling_graph(y), 1.0, shortages or {})
