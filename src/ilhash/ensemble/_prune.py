"""The bits of a pool that retrieve best together, chosen one by one on held-out points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ilhash._checks import check_count, check_fraction
from ilhash.cards import Measured
from ilhash.ensemble._holdout import HoldOut, ValidationSet, hold_out, read_labels, refuse_training_points
from ilhash.ensemble._ilh import ILH
from ilhash.ensemble._mix import Mix
from ilhash.evaluation import PrecisionBitByBit
from ilhash.hasher import Hasher
from ilhash.vectors import as_matrix, has_named_features, named_columns, take_rows, without_columns

Curve = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pruning:
    """What came of pruning.

    Attributes
    ----------
    model : ILH, Mix or another method
        Of the chosen bits, in the order in which they were chosen: ``model[:16]`` is what 16 bits would have given.
    chosen : list of int, numbers of these bits in the pool
    curve : float64 array (n_bits,)
        The score of the first 1, 2, ... chosen bits on the points that chose them: higher than it will be on others.
    seen, unseen : float64 array (n_bits,)
        Precision@k among seen and held-out classes, which make the score; ``unseen`` is None where no class was held
        out.
    report_seen, report_unseen : float64 array (n_bits,)
        The same on points that chose nothing, what the choice is worth; None where no point was held out for it.
    k : int, nearest items that were looked at
    """

    model: Any
    chosen: list[int]
    curve: Curve
    seen: Curve
    unseen: Curve | None
    report_seen: Curve | None = None
    report_unseen: Curve | None = None
    k: int | None = None

    def results(self) -> list[Measured]:
        """Return what the model is worth, as it remembers it.

        Returns
        -------
        list of Measured
        """
        curves = {"points that chose nothing": self.report_seen, "unseen classes": self.report_unseen}
        return [
            Measured(name, f"precision@{self.k}", float(curve[-1]), protocol="prune", curve=curve.tolist())
            for name, curve in curves.items()
            if curve is not None
        ]


def prune(
    model: Any,
    X: Any,
    y: Any,
    n_bits: int,
    *,
    k: int = 100,
    held_out: HoldOut | None = None,
    unseen_weight: float = 0.5,
    n_threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Pruning:
    """Keep the bits that retrieve best together on held-out points, by greedy forward selection on exact counts.

    Each step adds the bit with which tie-aware precision@k becomes highest, of equal ones the first.

    Parameters
    ----------
    model : ILH, Mix or another method, a trained pool of bits: an ILH, a Mix, or another method
    X, y : as in fit, vectors and labels: those that the model was trained on without the points held out, or others
    n_bits : int, how many bits to keep
    k : int, default 100, of the precision
    held_out : HoldOut, optional
        The points that judge; default ``HoldOut()``. With ``classes``, those that the model has not seen.
    unseen_weight : float, default 0.5
        The share w in the score (1 - w) * precision among seen classes + w * precision among held-out classes.
    n_threads : int, default 1, threads; the result is the same for any number
    progress : callable, optional, called with (bits chosen, bits wanted)

    Returns
    -------
    Pruning, the model of the chosen bits, and the course of the choice

    Examples
    --------
    >>> from ilhash import datasets
    >>> digits = datasets.load("digits")
    >>> pool = ILH(n_bits=24, n_similar=30).fit(digits.X, HoldOut().labels(digits.y))
    >>> pruning = prune(pool, digits.X, digits.y, 8)
    >>> len(pruning.model.functions_), bool(np.all(np.diff(pruning.curve) > 0))
    (8, True)
    """
    held_out = hold_out(held_out)
    X, y, _ = named_columns(X, y, None)
    X = without_columns(X, getattr(model, "left_out_", ()))
    X = X if has_named_features(X) else as_matrix(X, sparse=True)
    y = _checked(model, X, y, n_bits, held_out, unseen_weight)
    trials = _trials(model, X, held_out.validation_sets(y), k, unseen_weight, n_threads)
    chosen, values = chosen_one_by_one(trials, len(model.functions_), n_bits, progress)
    curve = values @ np.array([trial.weight for trial in trials])
    unseen = values[:, 1] if len(trials) > 1 else None
    reports = [
        trial.course(chosen) for trial in _trials(model, X, held_out.report_sets(y), k, unseen_weight, n_threads)
    ]
    # Bits of a jointly learnt method are no shorter model of that method; as a choice of functions they will do.
    by_report = dict(zip(("report_seen", "report_unseen"), reports, strict=False))
    pruning = Pruning(model._with_bits(chosen), chosen, curve, values[:, 0], unseen, k=k, **by_report)
    pruning.model.remember(pruning)
    return pruning


def chosen_one_by_one(
    trials: Sequence[Trial], n_pool: int, n_bits: int, progress: Callable[[int, int], None] | None
) -> tuple[list[int], NDArray[np.float64]]:
    """Choose bits of a pool by greedy forward selection; return their numbers and each trial's course."""
    available = np.ones(n_pool, np.bool_)
    chosen: list[int] = []
    values = np.empty((n_bits, len(trials)))
    for step in range(n_bits):
        score = sum(trial.weight * trial.of_each() for trial in trials)
        best = int(np.argmax(np.where(available, score, -1.0)))
        available[best] = False
        chosen.append(best)
        for trial in trials:
            trial.add(best)
        values[step] = [trial.precision.value for trial in trials]
        if progress is not None:
            progress(step + 1, n_bits)
    return chosen, values


class Trial:
    """One retrieval, the bits of the pool on its points, and what it weighs."""

    def __init__(self, model: Hasher, X: Any, validation: ValidationSet, k: int, weight: float, n_threads: int) -> None:
        self.weight = weight
        self.base, self.queries = (
            model.decision_function(take_rows(X, rows)) > 0 for rows in (validation.base, validation.queries)
        )
        self.precision = PrecisionBitByBit(validation.relevant, k, n_threads=n_threads)
        self._pool = self.precision.pack(self.base, self.queries)

    def of_each(self) -> Curve:
        return self.precision.of_each_packed(*self._pool)

    def add(self, bit: int) -> None:
        self.precision.add(self.base[:, bit], self.queries[:, bit])

    def course(self, chosen: list[int]) -> Curve:
        """Return precision with the first 1, 2, ... of some bits."""
        values = []
        for bit in chosen:
            self.add(bit)
            values.append(self.precision.value)
        return np.array(values)


def _checked(model: Any, X: Any, y: Any, n_bits: int, held_out: HoldOut, unseen_weight: float) -> Any:
    """Return the labels, once everything has been looked at."""
    if not isinstance(model, Hasher):
        raise TypeError(f"model must be a trained model of ilhash, got {type(model).__name__}")
    check_is_fitted(model)
    available = len(model.functions_)
    if check_count("n_bits", n_bits) > available:
        raise ValueError(f"n_bits must be at most the {available} bits of the pool, got {n_bits}")
    check_fraction("unseen_weight", unseen_weight, "a number")
    y = read_labels(y, len(X), getattr(model, "unlabeled", -1))
    for ensemble in generations_of(model):
        refuse_training_points(ensemble, as_matrix(X, sparse=True), y, held_out)
    return y


def generations_of(model: Any) -> list[ILH]:
    """Return the ensembles within a model, each of one generation."""
    families = model.families_ if isinstance(model, Mix) else [model]
    return [part for family in families if isinstance(family, ILH) for part in family.generations]


def _trials(
    model: Any, X: Any, validations: list[ValidationSet], k: int, unseen_weight: float, n_threads: int
) -> list[Trial]:
    weights = [1.0 - unseen_weight, unseen_weight] if len(validations) == 2 else [1.0] * len(validations)
    return [
        Trial(model, X, validation, k, weight, n_threads)
        for validation, weight in zip(validations, weights, strict=True)
    ]
