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
from ilhash.affinity._base import AsDrawn, Objective, TrainingGraph, Values, digest_of, rows_where, with_objective


@dataclass(frozen=True)
class Labels:
    """One label per point: equal labels are similar, different ones dissimilar; -1 in ``codes`` is unknown.

    ``withheld`` are points that no model may be trained on, not even one that does not look at labels.
    """

    codes: NDArray[np.int32]
    names: NDArray[Any]
    withheld: NDArray[np.int64] | None = None

    @property
    def n_points(self) -> int:
        return len(self.codes)

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

    def digest(self) -> str:
        return digest_of(self.codes)


@dataclass(frozen=True)
class LabelSets(AsDrawn):
    """Several labels per point (rows of an indicator matrix): sharing one makes two points similar.

    ``withheld`` are points that no model may be trained on, not even one that does not look at labels.
    """

    indicator: scipy.sparse.csr_array
    withheld: NDArray[np.int64] | None = None

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
        return with_objective(graph, objective, shortages)

    def digest(self) -> str:
        table = self.indicator
        return digest_of(table.indptr.astype(np.int64), table.indices.astype(np.int64))


def supervision_from_labels(y: Any, n_points: int, unlabeled: Any = -1) -> Labels | LabelSets:
    """Read labels: one per point, or an indicator matrix (points x labels) of 0 and 1; or take what was read before.

    Unknown are None, NaN, the label ``unlabeled``, and rows of a matrix without any 1.
    """
    n_points = check_count("n_points", n_points, 0)
    if isinstance(y, Labels | LabelSets):
        _same_length(y.n_points, n_points, "y")
        return y
    if scipy.sparse.issparse(y):
        return _label_sets(scipy.sparse.csr_array(y), n_points)
    try:
        labels = labels_array(y)
    except ValueError:
        raise ValueError(
            "y must be one label per row or an indicator matrix of 0 and 1, got rows of different lengths; "
            "sklearn.preprocessing.MultiLabelBinarizer makes the matrix"
        ) from None
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


def without(supervision: Labels | LabelSets, rows: NDArray[np.int64]) -> Labels | LabelSets:
    """Return the labels of all points but some, which are then not trained on."""
    if isinstance(supervision, LabelSets):
        kept = np.ones(supervision.n_points, np.int8)
        kept[rows] = 0
        indicator = scipy.sparse.csr_array(supervision.indicator.multiply(kept[:, None]), dtype=np.int8)
        indicator.eliminate_zeros()
        indicator.sort_indices()
        return LabelSets(indicator, rows)
    codes = supervision.codes.copy()
    codes[rows] = -1
    left = np.bincount(codes[codes >= 0], minlength=len(supervision.names)) > 0
    renumber = np.append(np.cumsum(left) - 1, -1).astype(np.int32)  # code -1 stays -1
    return replace(supervision, codes=renumber[codes], names=supervision.names[left], withheld=rows)


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
