"""Points, and perhaps whole classes, that no bit is trained on: some choose bits, others say how good the choice is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import as_array, check_count, is_whole
from ilhash.affinity import Labels, LabelSets, supervision_from_labels, without
from ilhash.diversity import seed_for
from ilhash.ensemble._data import data_fingerprint

Rows = NDArray[np.int64]

MOST_QUERIES = 500  # that choose, and as many at most that report


@dataclass(frozen=True, eq=False)
class ValidationSet:
    """A small retrieval: rows of X that are searched for, rows that are searched, and what is relevant to what."""

    queries: Rows
    base: Rows
    relevant: NDArray[np.bool_]


@dataclass(frozen=True)
class HoldOut:
    """Which points of a dataset are kept from training; drawn from the seed and the labels alone.

    Parameters
    ----------
    n_queries : int, optional
        Points that are held out to be searched for; None: 500, or a fifth of the points where there are fewer than
        2,500.
    n_base : int, default 20000
        Points that are searched, at most; they may be training points, as they are when a model is used.
    classes : int or list of labels, default 0
        Whole classes that are held out too, as if they were unknown: how many, or a list of labels.
    seed : int, default 0, of the draws
    n_report : int, optional
        Further points that are held out, which choose nothing: precision on them is what the choice is worth, where
        precision on those that chose is too high. None: 500, or a tenth of fewer than 5,000; 0: none.

    Examples
    --------
    >>> y = np.repeat([0, 1, 2], 20)
    >>> held_out = HoldOut(n_queries=4, classes=[2])
    >>> labels = held_out.labels(y)  # what fit takes in place of y
    >>> int((labels.codes < 0).sum()), labels.names  # 20 of a class, 4 that choose, 4 that report
    (28, array([0, 1]))
    """

    n_queries: int | None = None
    n_base: int = 20_000
    classes: int | Sequence[Any] = 0
    seed: int = 0
    n_report: int | None = None

    def __post_init__(self) -> None:
        if self.n_queries is not None:
            check_count("n_queries", self.n_queries)
        if self.n_report is not None:
            check_count("n_report", self.n_report, 0)
        check_count("n_base", self.n_base)
        check_count("seed", self.seed, 0)
        if is_whole(self.classes):
            check_count("classes", self.classes, 0)
        elif not isinstance(self.classes, Sequence | np.ndarray) or isinstance(self.classes, str | bytes):
            raise ValueError(f"classes must be how many to hold out, or a list of labels, got {self.classes!r}")

    def labels(self, y: Any, unlabeled: Any = -1) -> Labels | LabelSets:
        """Return the labels without those of the points held out: ``fit`` takes them in place of y.

        Every kind of model then leaves these points alone, also one that does not look at labels.

        Parameters
        ----------
        y : array (n,) or (n, L), labels, or an indicator matrix
        unlabeled : label or None, default -1, the label that means unknown

        Returns
        -------
        Labels or LabelSets, what is left to learn from
        """
        supervision = read_labels(y, None, unlabeled)
        seen, unseen = self._sides(supervision)
        queries, report, _ = self._draw(seen, 0)
        left = without(supervision, np.sort(np.concatenate([queries, report, unseen])))
        n_left = len(left.names) if isinstance(left, Labels) else len(np.unique(left.indicator.indices))
        if n_left < 2:
            raise ValueError(f"the points held out must leave at least 2 classes to learn from, got {n_left}")
        return left

    def validation_sets(self, y: Any, unlabeled: Any = -1) -> list[ValidationSet]:
        """Return the retrievals that choose: among seen classes and, where classes are held out, among these.

        Parameters
        ----------
        y : array (n,) or (n, L), labels, or an indicator matrix
        unlabeled : label or None, default -1, the label that means unknown

        Returns
        -------
        list of ValidationSet, one or two of them
        """
        return [_retrieval(supervision, queries, base) for supervision, (queries, _, base) in self._drawn(y, unlabeled)]

    def report_sets(self, y: Any, unlabeled: Any = -1) -> list[ValidationSet]:
        """Return the same retrievals for points that choose nothing.

        Parameters
        ----------
        y, unlabeled : as in :meth:`validation_sets`

        Returns
        -------
        list of ValidationSet, as many as by :meth:`validation_sets`, or none where no point is held out for this
        """
        drawn = self._drawn(y, unlabeled)
        return [_retrieval(supervision, report, base) for supervision, (_, report, base) in drawn if len(report)]

    def _drawn(self, y: Any, unlabeled: Any) -> list[tuple[Labels | LabelSets, tuple[Rows, Rows, Rows]]]:
        supervision = read_labels(y, None, unlabeled)
        sides = [side for side in self._sides(supervision) if len(side)]
        return [(supervision, self._draw(side, number)) for number, side in enumerate(sides)]

    def _sides(self, supervision: Labels | LabelSets) -> tuple[Rows, Rows]:
        """Split the labelled points into those of seen classes and those of held-out ones."""
        everything = np.arange(supervision.n_points)
        labelled = everything if supervision.drawable is None else supervision.drawable
        none = not self.classes if is_whole(self.classes) else len(self.classes) == 0  # type: ignore[arg-type]
        if none:
            return labelled, np.empty(0, np.int64)
        if isinstance(supervision, LabelSets):
            raise ValueError("classes must be 0 where points have several labels, got classes to hold out")
        unseen = np.isin(supervision.codes[labelled], self._classes(supervision.names))
        return labelled[~unseen], labelled[unseen]

    def _classes(self, names: NDArray[Any]) -> NDArray[np.int64]:
        """Return the numbers of the classes held out."""
        if is_whole(self.classes):
            wanted = int(self.classes)  # type: ignore[arg-type]
            if wanted > len(names) - 2:
                raise ValueError(f"classes must leave at least 2 of the {len(names)} to learn from, got {wanted}")
            return _core.permuted(len(names), seed_for(self.seed, "held out", 2), 0, wanted)
        known = {name: number for number, name in enumerate(names.tolist())}
        chosen = np.asarray(self.classes).tolist()
        unknown = [label for label in chosen if label not in known]
        if unknown:
            raise ValueError(f"classes must be labels of y, got {len(unknown)} others such as {unknown[0]!r}")
        return np.array([known[label] for label in chosen], np.int64)

    def _draw(self, rows: Rows, side: int) -> tuple[Rows, Rows, Rows]:
        """Return points that choose, points that report, and points that are searched."""
        n_queries = min(MOST_QUERIES, len(rows) // 5) if self.n_queries is None else self.n_queries
        n_report = min(MOST_QUERIES, len(rows) // 10) if self.n_report is None else self.n_report
        if not 0 < n_queries < len(rows) - n_report:
            beside = f" beside the {n_report} that report" if n_report else ""
            raise ValueError(
                f"n_queries must leave points to search among the {len(rows)} labelled{beside}, got {n_queries}"
            )
        order = rows[_core.permuted(len(rows), seed_for(self.seed, "held out", side), 0, len(rows))]
        # From the end, so that the points that choose, and are searched, are what they are without a report.
        order, report = np.split(order, [len(order) - n_report])
        return np.sort(order[:n_queries]), np.sort(report), np.sort(order[n_queries : n_queries + self.n_base])


def hold_out(given: Any) -> HoldOut:
    """Return what is held out, by default some points."""
    if given is not None and not isinstance(given, HoldOut):
        raise TypeError(f"held_out must be a HoldOut or None, got {given!r}")
    return HoldOut() if given is None else given


def read_labels(y: Any, n_points: int | None, unlabeled: Any) -> Labels | LabelSets:
    """Return labels that were given, one entry for each of ``n_points`` (None: as many as there are)."""
    if y is None:
        raise ValueError("y must be labels, which tell what is relevant to the points held out, got None")
    if n_points is None:
        n_points = y.n_points if isinstance(y, Labels | LabelSets) else _n_rows(y)
    return supervision_from_labels(y, n_points, unlabeled)


def _retrieval(supervision: Labels | LabelSets, queries: Rows, base: Rows) -> ValidationSet:
    if isinstance(supervision, LabelSets):
        shared = (supervision.indicator[queries].astype(np.int32) @ supervision.indicator[base].astype(np.int32).T) > 0
        return ValidationSet(queries, base, np.asarray(shared.toarray(), dtype=np.bool_))
    relevant = supervision.codes[queries][:, None] == supervision.codes[base]
    return ValidationSet(queries, base, relevant)


def refuse_training_points(model: Any, X: NDArray[Any], y: Any, held_out: HoldOut) -> None:
    """Raise if an ILH was trained on these vectors without holding these points out."""
    trained_on = model.fingerprint_.partition("-")[0]
    now = data_fingerprint(X, held_out.labels(y, model.unlabeled))
    if trained_on != now.partition("-")[0] or model.fingerprint_ == now:
        return
    if held_out.n_report != 0 and model.fingerprint_ == data_fingerprint(
        X, replace(held_out, n_report=0).labels(y, model.unlabeled)
    ):
        raise ValueError(
            "model must not have been trained on the points that report, got one for which only those that choose were "
            "held out, as by earlier versions: fit it with held_out.labels(y), or take n_report=0 (--report 0)"
        )
    raise ValueError(
        "model must not have been trained on the points it is judged by, got one that was fitted on this X without "
        "holding them out: fit it with held_out.labels(y) (ilhash fit --hold-out) in place of y, or give other X"
    )


def _n_rows(y: Any) -> int:
    shape = y.shape if scipy.sparse.issparse(y) else np.shape(as_array("y", y))
    if not shape:
        raise ValueError("y must be one label per row or an indicator matrix, got a single value")
    return int(shape[0])
