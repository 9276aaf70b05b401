"""Supervision: who is similar to whom, and the signed graph that one bit's training set gets from it.

Four kinds share one contract (:class:`Supervision`): labels, sets of labels, a sparse signed matrix (also made from
pairs), and, without any supervision, Euclidean neighbours. Graphs are sparse always; nothing here is N x N.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core
from ilhash.objective import Loss, couplings
from ilhash.zstep import coupling_graph, graph_couplings

__all__ = [
    "EuclideanNeighbours",
    "LabelSets",
    "Labels",
    "SparseAffinity",
    "Supervision",
    "TrainingGraph",
    "affinity_from_matrix",
    "affinity_from_pairs",
    "euclidean_neighbours",
    "supervision_from_labels",
]

Objective = str | Loss
Values = Callable[[], NDArray[np.float32]]


@dataclass(frozen=True)
class TrainingGraph:
    """Couplings between the points of one training set.

    Attributes
    ----------
    graph : the couplings, divided by ``scale``
    scale : what an energy of ``graph`` is multiplied by to be in units of the objective
    shortages : classes (or other groups) too small for the wanted number of neighbours, with their sizes
    """

    graph: _core.SignedGraph
    scale: float = 1.0
    shortages: dict[str, int] = field(default_factory=dict)


class Supervision(Protocol):
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
        self,
        rows: NDArray[np.int64],
        objective: Objective,
        similar: int,
        dissimilar: int,
        seed: int,
        values: Values,
    ) -> TrainingGraph:
        """Draw the graph of one training set; ``values()`` gives its vectors to those who need them."""

    def digest(self) -> str:
        """Return a fingerprint of the supervision."""


def _with_objective(
    graph: _core.SignedGraph, objective: Objective, shortages: dict[str, int] | None = None
) -> TrainingGraph:
    """Turn a graph of affinities +1 and -1 into couplings."""
    attraction, repulsion = (float(w) for w in couplings(objective, np.array([1.0, -1.0])))
    if attraction > 0 and repulsion == -attraction:
        return TrainingGraph(graph, attraction, shortages or {})
    y = graph_couplings(graph)
    y.data = np.where(y.data > 0, attraction, repulsion)
    return TrainingGraph(coupling_graph(y), 1.0, shortages or {})


# ------------------------------------------------------------------------------------------------ labels


@dataclass(frozen=True)
class Labels:
    """One label per point: equal labels are similar, different ones dissimilar; -1 in ``codes`` is unknown."""

    codes: NDArray[np.int32]
    names: NDArray[Any]

    @property
    def n_points(self) -> int:
        """Number of points, labelled or not."""
        return len(self.codes)

    @property
    def drawable(self) -> NDArray[np.int64] | None:
        """The labelled points."""
        known = self.codes >= 0
        return None if known.all() else np.flatnonzero(known).astype(np.int64)

    def arrange(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sort by class: the core draws neighbours from contiguous classes."""
        return rows[np.argsort(self.codes[rows], kind="stable")]

    def graph(
        self,
        rows: NDArray[np.int64],
        objective: Objective,
        similar: int,
        dissimilar: int,
        seed: int,
        values: Values,
    ) -> TrainingGraph:
        """Draw ``similar`` points of the same class and ``dissimilar`` of others for each, united over both ends."""
        sizes = np.bincount(self.codes[rows], minlength=len(self.names))
        small = np.flatnonzero((sizes > 0) & (sizes - 1 < similar))
        shortages = {str(self.names[c]): int(sizes[c]) for c in small}
        graph = _core.SignedGraph.from_classes(sizes[sizes > 0].tolist(), similar, dissimilar, seed)
        return _with_objective(graph, objective, shortages)

    def digest(self) -> str:
        """Return a fingerprint of the labels."""
        return hashlib.sha256(np.ascontiguousarray(self.codes).tobytes()).hexdigest()


@dataclass(frozen=True)
class LabelSets:
    """Several labels per point (rows of an indicator matrix): sharing one makes two points similar."""

    indicator: scipy.sparse.csr_array

    @property
    def n_points(self) -> int:
        """Number of points, labelled or not."""
        return int(self.indicator.shape[0])

    @property
    def drawable(self) -> NDArray[np.int64] | None:
        """The points with at least one label."""
        known = np.diff(self.indicator.indptr) > 0
        return None if known.all() else np.flatnonzero(known).astype(np.int64)

    def arrange(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep the order."""
        return rows

    def graph(
        self,
        rows: NDArray[np.int64],
        objective: Objective,
        similar: int,
        dissimilar: int,
        seed: int,
        values: Values,
    ) -> TrainingGraph:
        """Draw ``similar`` points that share a label and ``dissimilar`` that share none for each."""
        own = self.indicator[rows]
        members = np.bincount(own.indices, minlength=own.shape[1])
        shortages = {f"label {c}": int(members[c]) for c in np.flatnonzero((members > 0) & (members - 1 < similar))}
        graph = _core.SignedGraph.from_label_sets(
            own.indptr.astype(np.uint32),
            own.indices.astype(np.uint32),
            own.shape[1],
            similar,
            dissimilar,
            seed,
        )
        return _with_objective(graph, objective, shortages)

    def digest(self) -> str:
        """Return a fingerprint of the indicator matrix."""
        digest = hashlib.sha256(str(self.indicator.shape).encode())
        digest.update(self.indicator.indptr.astype(np.int64).tobytes())
        digest.update(self.indicator.indices.astype(np.int64).tobytes())
        return digest.hexdigest()


def supervision_from_labels(y: Any, n_points: int, unlabeled: Any = -1) -> Labels | LabelSets:
    """Read labels: one per point, or an indicator matrix (points x labels) of 0 and 1."""
    if scipy.sparse.issparse(y):
        return _label_sets(scipy.sparse.csr_array(y), n_points)
    try:
        labels = np.asarray(y)
    except ValueError:
        raise ValueError(
            "y must be one label per row or an indicator matrix of 0 and 1, got rows of different lengths; "
            "sklearn.preprocessing.MultiLabelBinarizer makes the matrix"
        ) from None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim == 2:
        return _label_sets(scipy.sparse.csr_array(labels), n_points)
    if labels.ndim != 1:
        raise ValueError(f"y must be 1-D labels or a 2-D indicator matrix, got {labels.ndim}-D")
    _same_length(len(labels), n_points, "y")
    return _one_label_each(labels, unlabeled)


def _same_length(got: int, wanted: int, name: str) -> None:
    if got != wanted:
        raise ValueError(f"{name} must have one entry per row of X, got {got} for {wanted} rows")


def _one_label_each(labels: NDArray[Any], unlabeled: Any) -> Labels:
    if labels.dtype.kind == "f":
        labels = _integral(labels)
    if labels.dtype.kind == "O" and any(label is None or label != label for label in labels.tolist()):
        raise ValueError("y must hold labels, got None or NaN among them; mark unknown ones with `unlabeled`")
    names, codes = np.unique(labels, return_inverse=True)
    codes = codes.astype(np.int32)
    known = names != unlabeled if unlabeled is not None and _comparable(names, unlabeled) else np.ones(len(names), bool)
    if labels.dtype.kind in "if" and len(names) == 2 and set(names.tolist()) == {-1, 1} and not known.all():
        raise ValueError(
            "y must not be exactly {-1, +1} while -1 means unlabelled, got these two values: pass unlabeled=None if "
            "-1 is "
            "a class, or use 0 and 1"
        )
    if known.sum() < 2:
        found = "1 class" if known.sum() == 1 else "no labelled point"
        raise ValueError(f"y must hold at least 2 classes, got {found} in {len(labels)} sample(s)")
    renumber = np.where(known, np.cumsum(known) - 1, -1).astype(np.int32)
    return Labels(renumber[codes], names[known])


def _comparable(names: NDArray[Any], unlabeled: Any) -> bool:
    return (names.dtype.kind in "iuf") == isinstance(unlabeled, (int, float, np.integer, np.floating))


def _integral(labels: NDArray[Any]) -> NDArray[np.int64]:
    if not np.isfinite(labels).all():
        bad = int(np.count_nonzero(~np.isfinite(labels)))
        raise ValueError(f"y must hold labels, got NaN or infinity in {bad} of {len(labels)} entries")
    if (labels != np.round(labels)).any():
        raise ValueError(
            f"y must hold class labels, got continuous numbers such as {labels[labels != np.round(labels)][0]!r}: "
            "Unknown label type"
        )
    return labels.astype(np.int64)


def _label_sets(indicator: scipy.sparse.csr_array, n_points: int) -> LabelSets:
    _same_length(indicator.shape[0], n_points, "y")
    if not np.isin(indicator.data, (0, 1)).all():
        raise ValueError("y with several columns must be an indicator matrix of 0 and 1, got other values")
    indicator = indicator.astype(np.int8)
    indicator.eliminate_zeros()
    indicator.sort_indices()
    sets = LabelSets(indicator)
    if np.unique(indicator.indices).size < 2:
        raise ValueError(f"y must use at least 2 labels, got {np.unique(indicator.indices).size}")
    return sets


# ------------------------------------------------------------------------------------------------ pairs and graphs


@dataclass(frozen=True)
class SparseAffinity:
    """A symmetric sparse matrix of affinities y_nm: > 0 similar, < 0 dissimilar, absent unknown."""

    matrix: scipy.sparse.csr_array

    @property
    def n_points(self) -> int:
        """Number of points, with or without a neighbour."""
        return int(self.matrix.shape[0])

    @property
    def drawable(self) -> NDArray[np.int64] | None:
        """The points that have a neighbour."""
        connected = np.diff(self.matrix.indptr) > 0
        return None if connected.all() else np.flatnonzero(connected).astype(np.int64)

    def arrange(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep the order."""
        return rows

    def graph(
        self,
        rows: NDArray[np.int64],
        objective: Objective,
        similar: int,
        dissimilar: int,
        seed: int,
        values: Values,
    ) -> TrainingGraph:
        """Return the part of the graph that lies among the rows."""
        own = scipy.sparse.csr_array(self.matrix[rows][:, rows])
        if own.nnz:
            own.data = -_coefficients(objective, own.data)
        return TrainingGraph(coupling_graph(own))

    def digest(self) -> str:
        """Return a fingerprint of the matrix."""
        digest = hashlib.sha256(str(self.matrix.shape).encode())
        for part in (self.matrix.indptr, self.matrix.indices):
            digest.update(part.astype(np.int64).tobytes())
        digest.update(self.matrix.data.astype(np.float64).tobytes())
        return digest.hexdigest()


def _coefficients(objective: Objective, y: NDArray[np.float64]) -> NDArray[np.float64]:
    from ilhash.objective import coefficients

    return coefficients(objective, y)


def affinity_from_matrix(matrix: Any, n_points: int, objective: Objective = "laplacian") -> SparseAffinity:
    """Check a sparse signed matrix: square, symmetric, finite, with similar and dissimilar pairs."""
    if not scipy.sparse.issparse(matrix):
        raise TypeError(
            f"affinity must be a scipy sparse matrix of signed weights, got {type(matrix).__name__}; a dense matrix "
            f"grows "
            "with the square of the number of points (scipy.sparse.csr_array converts a small one)"
        )
    y = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
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
    couplings(objective, y.data)
    return SparseAffinity(y)


def affinity_from_pairs(pairs: Any, n_points: int, objective: Objective = "laplacian") -> SparseAffinity:
    """Build a symmetric matrix from rows (i, j, weight) or a tuple of index pairs (m, 2) and weights (m,)."""
    first, second, weight = _pair_columns(pairs)
    outside = (np.minimum(first, second) < 0) | (np.maximum(first, second) >= n_points)
    if outside.any():
        raise ValueError(
            f"pairs must name rows 0 to {n_points - 1} of X, got {int(outside.sum())} of {len(first)} out of range, "
            f"such as "
            f"({first[outside][0]}, {second[outside][0]})"
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
    return affinity_from_matrix(scipy.sparse.csr_array(both, shape=(n_points, n_points)), n_points, objective)


def _pair_columns(pairs: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    if isinstance(pairs, tuple) and len(pairs) == 2:
        index, weight = np.asarray(pairs[0]), np.asarray(pairs[1], dtype=np.float64)
        table_ok = index.ndim == 2 and index.shape[1] == 2 and weight.shape == (len(index),)
    else:
        table = np.asarray(pairs)
        table_ok = table.ndim == 2 and table.shape[1] == 3 and table.dtype.kind in "iuf"
        index, weight = (table[:, :2], table[:, 2].astype(np.float64)) if table_ok else (table, table)
    if not table_ok or index.dtype.kind not in "iuf" or len(index) == 0:
        raise ValueError(
            "pairs must be an array of rows (i, j, weight), or a tuple of index pairs (m, 2) and weights (m,), with at "
            f"least one pair, got {np.shape(pairs[0]) if isinstance(pairs, tuple) else np.shape(pairs)}"
        )
    whole = np.round(index)
    if not np.isfinite(index).all() or (whole != index).any():
        raise ValueError("pairs must name rows by whole numbers, got fractions")
    return whole[:, 0].astype(np.int64), whole[:, 1].astype(np.int64), weight


# ------------------------------------------------------------------------------------------------ no labels


@dataclass(frozen=True)
class EuclideanNeighbours:
    """Pseudo-labels (appendix C): nearest neighbours are similar, random others dissimilar.

    Both are searched among the points of the bit's own training set.
    """

    n_points: int
    drawable: None = None

    def arrange(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep the order."""
        return rows

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
        return _with_objective(graph, objective, shortages)

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
        distances = norms - 2.0 * (part @ values.T)
        distances[np.arange(len(part)), np.arange(first, first + len(part))] = np.inf
        out[first : first + block] = np.argpartition(distances, k - 1, axis=1)[:, :k]
    return out
