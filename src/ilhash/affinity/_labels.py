"""Labels, one or several per point, as supervision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import check_count
from ilhash._labels import labels_array, missing_labels, plain_labels
from ilhash.affinity._base import (
    Objective,
    TrainingGraph,
    Values,
    WithoutClasses,
    digest_of,
    rows_where,
    with_objective,
)
from ilhash.affinity._similarity import SharedLabels, shared_labels
from ilhash.graph import coupling_graph
from ilhash.objective import coefficients


@dataclass(frozen=True)
class Labels:
    """One label per point: equal labels are similar, different ones dissimilar; -1 in ``codes`` is unknown.

    ``withheld`` are points that no model may be trained on, not even one that does not look at labels. ``focused`` says
    that points with a label are of the few classes that matter, and of others beside them.
    """

    codes: NDArray[np.int32]
    names: NDArray[Any]
    withheld: NDArray[np.int64] | None = None
    focused: bool = False

    @property
    def n_points(self) -> int:
        return len(self.codes)

    @property
    def n_withheld(self) -> int:
        """Points that count neither as labelled nor as unlabelled."""
        return 0 if self.withheld is None else len(self.withheld)

    @property
    def drawable(self) -> NDArray[np.int64] | None:
        return rows_where(self.codes >= 0)

    def arrange(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sort by class: the core draws neighbours from contiguous classes."""
        own = self.codes[rows]
        if len(self.names) < 2**15:
            own = own.astype(np.int16)  # which NumPy sorts by radix, many times faster
        return rows[np.argsort(own, kind="stable")]

    def graph(
        self, rows: NDArray[np.int64], objective: Objective, similar: int, dissimilar: int, seed: int, values: Values
    ) -> TrainingGraph:
        """Draw ``similar`` points of the same class and ``dissimilar`` of others for each, united over both ends."""
        sizes = np.bincount(self.codes[rows], minlength=len(self.names))
        small = np.flatnonzero((sizes > 0) & (sizes - 1 < similar))
        shortages = {f"class {self.names[c]}": int(sizes[c]) for c in small}
        graph = _core.SignedGraph.from_classes(sizes[sizes > 0].tolist(), similar, dissimilar, seed)
        return with_objective(graph, objective, shortages)

    def similarity(self, seed: int, size: int) -> SharedLabels:
        rows = np.flatnonzero(self.codes >= 0)
        own = self.codes[rows]
        ones = np.ones(len(rows), np.float32)
        begins = np.cumsum(np.append(0, self.codes >= 0))
        indicator = scipy.sparse.csr_array((ones, own, begins), shape=(self.n_points, len(self.names)))
        return shared_labels(indicator, rows, own, seed, size)

    def among(self, rows: NDArray[np.int64]) -> Labels:
        return Labels(self.codes[rows], self.names)

    def classes(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.codes[rows]

    def digest(self) -> str:
        return digest_of(self.codes)


@dataclass(frozen=True)
class LabelSets(WithoutClasses):
    """Several labels per point (rows of an indicator matrix): sharing one makes two points similar.

    ``withheld`` are points that no model may be trained on, not even one that does not look at labels. Where it is
    ``graded``, a pair counts by the cosine of its labels, less the median of all pairs that share one (at most 1/2).
    """

    indicator: scipy.sparse.csr_array
    withheld: NDArray[np.int64] | None = None
    graded: bool = False

    @property
    def n_points(self) -> int:
        return int(self.indicator.shape[0])

    @property
    def drawable(self) -> NDArray[np.int64] | None:
        return rows_where(np.diff(self.indicator.indptr) > 0)

    def graph(
        self, rows: NDArray[np.int64], objective: Objective, similar: int, dissimilar: int, seed: int, values: Values
    ) -> TrainingGraph:
        """Draw ``similar`` points that share a label and ``dissimilar`` that share none for each."""
        own = self.indicator[rows]
        members = np.bincount(own.indices, minlength=own.shape[1])
        shortages = {f"label {c}": int(members[c]) for c in np.flatnonzero((members > 0) & (members - 1 < similar))}
        graph = _core.SignedGraph.from_label_sets(
            own.indptr.astype(np.uint32), own.indices.astype(np.uint32), own.shape[1], similar, dissimilar, seed
        )
        if self.graded:
            return TrainingGraph(coupling_graph(_graded(graph, own, objective)), 1.0, shortages)
        return with_objective(graph, objective, shortages)

    def similarity(self, seed: int, size: int) -> SharedLabels:
        rows = np.flatnonzero(np.diff(self.indicator.indptr) > 0)
        return shared_labels(self.indicator, rows, None, seed, size)

    def among(self, rows: NDArray[np.int64]) -> LabelSets:
        return LabelSets(scipy.sparse.csr_array(self.indicator[rows]), graded=self.graded)

    def digest(self) -> str:
        table = self.indicator
        return digest_of(table.indptr.astype(np.int64), table.indices.astype(np.int64))


def _graded(
    graph: _core.SignedGraph, indicator: scipy.sparse.csr_array, objective: Objective
) -> scipy.sparse.csr_array:
    """Return couplings by how much the labels of a pair agree, beyond what they do in half of the pairs that share one.

    Sharing the label that most points share says little: such pairs neither attract nor repel.
    """
    source, target, coupling = graph.triplets()  # both directions of a pair
    alike = np.flatnonzero(coupling > 0)
    i, j = source[alike], target[alike]
    common = np.asarray(indicator[i].multiply(indicator[j]).sum(axis=1), dtype=np.float64).ravel()
    sizes = np.sqrt(np.diff(indicator.indptr).astype(np.float64))
    y = np.zeros(len(coupling))
    y[alike] = common / (sizes[i] * sizes[j])
    y -= min(0.5, float(np.median(y[alike]))) if len(alike) else 0.5
    ends = (source.astype(np.int32), target.astype(np.int32))
    return scipy.sparse.csr_array((-coefficients(objective, y), ends), shape=(graph.n_points, graph.n_points))


def supervision_from_labels(y: Any, n_points: int, unlabeled: Any = -1) -> Labels | LabelSets:
    """Read labels: one per point, sets or lists of them, or an indicator matrix (points x labels) of 0 and 1.

    What was read before is taken as it is. Unknown are None, NaN, the label ``unlabeled``, empty sets, and rows of a
    matrix without any 1.
    """
    n_points = check_count("n_points", n_points, 0)
    if isinstance(y, Labels | LabelSets):
        _same_length(y.n_points, n_points, "y")
        return y
    if scipy.sparse.issparse(y):
        return _label_sets(scipy.sparse.csr_array(y), n_points)
    if _is_collections(y):
        return _label_sets(_indicator_of(y), n_points)
    labels = labels_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim not in (1, 2):
        raise ValueError(f"y must be 1-D labels or a 2-D indicator matrix, got {labels.ndim}-D")
    _same_length(len(labels), n_points, "y")
    if labels.dtype.kind not in "biufSUO":
        raise ValueError(f"y must hold whole numbers or texts, got {labels.dtype}")
    if labels.ndim == 2:
        if labels.dtype.kind not in "biuf":
            raise ValueError(f"y as a matrix must be an indicator of 0 and 1, got {labels.dtype}")
        return _label_sets(scipy.sparse.csr_array(labels), n_points)
    return _one_label_each(labels, unlabeled)


def _is_collections(y: Any) -> bool:
    """Whether the entries are sets or lists of labels; lists of numbers, all of one length, are rows of a matrix."""
    if (isinstance(y, np.ndarray) and y.dtype.kind != "O") or not hasattr(y, "__len__") or not hasattr(y, "__iter__"):
        return False
    entries = list(y)
    several = [isinstance(entry, set | frozenset | list | tuple) for entry in entries]
    if not any(several):
        return False
    if not all(several):
        bad = next(entry for entry, one in zip(entries, several, strict=True) if not one)
        raise ValueError(
            f"y must be sets or lists of labels in every row, got {several.count(False)} of {len(entries)} others such "
            f"as {bad!r}; an empty set means unknown"
        )
    if any(isinstance(entry, set | frozenset) for entry in entries) or len({len(entry) for entry in entries}) > 1:
        return True
    return any(isinstance(value, str) for entry in entries for value in entry)


def _indicator_of(y: Any) -> scipy.sparse.csr_array:
    """Return the indicator matrix of sets or lists of labels; an empty one means unknown."""
    numbers: dict[Any, int] = {}
    indices: list[int] = []
    begins = [0]
    for entry in y:
        try:
            indices += sorted({numbers.setdefault(label, len(numbers)) for label in entry})
        except TypeError:
            raise ValueError(f"y must hold sets or lists of labels, such as text or numbers, got {entry!r}") from None
        begins.append(len(indices))
    ones = np.ones(len(indices), np.int8)
    return scipy.sparse.csr_array((ones, indices, begins), shape=(len(begins) - 1, max(1, len(numbers))))


def without(supervision: Labels | LabelSets, rows: NDArray[np.int64]) -> Labels | LabelSets:
    """Return the labels of all points but some, which are then not trained on; nor are those that were not before."""
    gone = rows if supervision.withheld is None else np.union1d(supervision.withheld, rows)
    if isinstance(supervision, LabelSets):
        kept = np.ones(supervision.n_points, np.int8)
        kept[rows] = 0
        indicator = scipy.sparse.csr_array(supervision.indicator.multiply(kept[:, None]), dtype=np.int8)
        indicator.eliminate_zeros()
        indicator.sort_indices()
        return LabelSets(indicator, gone)
    codes = supervision.codes.copy()
    codes[rows] = -1
    left = np.bincount(codes[codes >= 0], minlength=len(supervision.names)) > 0
    renumber = np.append(np.cumsum(left) - 1, -1).astype(np.int32)  # code -1 stays -1
    return replace(supervision, codes=renumber[codes], names=supervision.names[left], withheld=gone)


def _same_length(got: int, wanted: int, name: str) -> None:
    if got != wanted:
        raise ValueError(f"{name} must have one entry per row of X, got {got} for {wanted} rows")


def _one_label_each(labels: NDArray[Any], unlabeled: Any) -> Labels:
    missing = missing_labels(labels)
    given = plain_labels(labels[~missing], "y")
    if given.dtype.kind == "f":
        given = _integral(given)
    names, own = np.unique(given, return_inverse=True)
    known = names != unlabeled if unlabeled is not None and _comparable(names, unlabeled) else np.ones(len(names), bool)
    if given.dtype.kind in "if" and len(names) == 2 and set(names.tolist()) == {-1, 1} and not known.all():
        raise ValueError(
            "y must not be exactly {-1, +1} while -1 means unlabelled, got these two values: pass unlabeled=None if "
            "-1 is a class, or use 0 and 1"
        )
    if known.sum() < 2:
        found = "1 class" if known.sum() == 1 else "no labelled point"
        raise ValueError(f"y must hold at least 2 classes, got {found} in {len(labels)} sample(s)")
    renumber = np.where(known, np.cumsum(known) - 1, -1).astype(np.int32)
    codes = np.full(len(labels), -1, np.int32)
    codes[~missing] = renumber[own]
    return Labels(codes, names[known])


def _comparable(names: NDArray[Any], unlabeled: Any) -> bool:
    return (names.dtype.kind in "iuf") == isinstance(unlabeled, (int, float, np.integer, np.floating))


def _integral(labels: NDArray[Any]) -> NDArray[np.int64]:
    if np.isinf(labels).any():
        raise ValueError(f"y must hold labels, got infinity in {np.count_nonzero(np.isinf(labels))} entries")
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
