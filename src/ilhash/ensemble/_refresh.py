"""A model that keeps up with its data: new bits are trained, and the best of old and new ones stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ilhash._checks import check_count, check_fraction
from ilhash.ensemble._generations import check_name
from ilhash.ensemble._holdout import HoldOut, ValidationSet, hold_out, read_labels, refuse_training_points
from ilhash.ensemble._ilh import ILH
from ilhash.ensemble._mix import Mix
from ilhash.ensemble._prune import Trial, chosen_one_by_one, generations_of
from ilhash.vectors import as_matrix, has_named_features, named_columns, without_columns


@dataclass(frozen=True, eq=False)
class Refreshed:
    """What came of :func:`refresh`; unpacks as ``model, kept``.

    Attributes
    ----------
    model : ILH or Mix, the old bits that stayed, in their order, then the new ones that joined
    kept : list of int, numbers of the old bits that stayed
    n_new : int, how many new bits joined
    before, after : float, precision@k of the old and the new model on recent points that chose nothing
    old_before, old_after : float, optional, the same on old points; None where none were given
    """

    model: Any
    kept: list[int]
    n_new: int
    before: float
    after: float
    old_before: float | None = None
    old_after: float | None = None

    def __iter__(self) -> Iterator[Any]:
        yield self.model
        yield self.kept


def refresh(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_new: int = 32,
    n_bits: int | None = None,
    old: tuple[Any, Any] | None = None,
    old_weight: float = 0.5,
    k: int = 10,
    held_out: HoldOut | None = None,
    focus: Any = None,
    name: str | None = None,
    n_threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Refreshed:
    """Train new bits on recent data, and keep of old and new ones those that retrieve best on held-out points.

    Nothing happens to the model that is given, nor to the functions of the bits that stay: an index follows by
    ``index.follow(refreshed.model, X)``, which encodes the new bits alone.

    Parameters
    ----------
    model : ILH, or Mix with a family that is ILH, trained
    X, y : as in fit, recent vectors and labels
    n_new : int, default 32, how many bits are trained
    n_bits : int, optional, how many bits stay in all; by default as many as there were
    old : tuple (X, y), optional, old vectors and labels that are to be found as well, which no bit was trained on
    old_weight : float, default 0.5, what old points count: the score is (1 - w) * recent precision + w * old precision
    k : int, default 10, of the precision
    held_out : HoldOut, optional, which recent points choose, and which report
    focus : sequence of labels, optional, classes that the new bits are for, as in ``ILH.extend``
    name : str, optional, what to call the new generation
    n_threads : int, default 1, threads; the result is the same for any number
    progress : callable, optional, called with (bits trained, bits to train)

    Returns
    -------
    Refreshed, ``model, kept = refresh(...)`` and what the choice is worth

    Examples
    --------
    >>> from ilhash import datasets
    >>> digits = datasets.load("digits")
    >>> few = digits.y < 7
    >>> model = ILH(n_bits=16, n_similar=30).fit(digits.X[few], digits.y[few])
    >>> refreshed = refresh(model, digits.X, digits.y, n_new=16)
    >>> refreshed.model.n_bits, refreshed.after > refreshed.before
    (16, True)
    """
    _check(model, n_new, n_bits, old, old_weight)
    X, y = _features(model, X, y)
    held_out, unlabeled = hold_out(held_out), getattr(model, "unlabeled", -1)
    y = read_labels(y, len(as_matrix(X, sparse=True)), unlabeled)
    for part in generations_of(model):
        refuse_training_points(part, as_matrix(X, sparse=True), y, held_out)
    means = {"focus": focus, "name": check_name(name), "progress": progress}
    grown = model[:].extend(n_new, X, held_out.labels(y, unlabeled), **means)
    recent = (X, held_out.validation_sets(y, unlabeled), held_out.report_sets(y, unlabeled))
    bases = [(*recent, 1.0 if old is None else 1.0 - old_weight)]
    if old is not None:
        bases.append((*_of_old(model, old, held_out, unlabeled), old_weight))
    trials = [Trial(grown, data, sets[0], k, weight, n_threads) for data, sets, _, weight in bases]
    before, wanted = len(model.functions_), n_bits or len(model.functions_)
    chosen, _ = chosen_one_by_one(trials, before + n_new, wanted, None)
    stay = sorted(chosen)
    kept = [bit for bit in stay if bit < before]
    found: list[float] = []
    for data, sets, reports, weight in bases:
        judged = (reports or sets)[0]
        for bits in (range(before), stay):
            found.append(_precision(grown, data, judged, list(bits), k, weight, n_threads))
    return Refreshed(grown[stay], kept, len(stay) - len(kept), *found)


def _features(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return vectors and labels; of a frame the columns that were features when the model was trained."""
    X, y, _ = named_columns(X, y, None)
    X = without_columns(X, model.left_out_)
    return (X if has_named_features(X) else as_matrix(X, sparse=True)), y


def _precision(
    model: Any, X: Any, judged: ValidationSet, bits: list[int], k: int, weight: float, n_threads: int
) -> float:
    return float(Trial(model, X, judged, k, weight, n_threads).course(bits)[-1])


def _of_old(model: Any, old: tuple[Any, Any], held_out: HoldOut, unlabeled: Any) -> tuple[Any, Any, Any]:
    X, labels = _features(model, *old)
    y = read_labels(labels, len(as_matrix(X, sparse=True)), unlabeled)
    for part in generations_of(model):
        refuse_training_points(part, as_matrix(X, sparse=True), y, held_out)
    return X, held_out.validation_sets(y, unlabeled), held_out.report_sets(y, unlabeled)


def _check(model: Any, n_new: Any, n_bits: Any, old: Any, old_weight: Any) -> None:
    if not isinstance(model, ILH | Mix):
        raise TypeError(f"model must be an ILH or a Mix with one, whose bits can leave, got {type(model).__name__}")
    check_is_fitted(model)
    pool = len(model.functions_) + check_count("n_new", n_new)
    if n_bits is not None and check_count("n_bits", n_bits) > pool:
        raise ValueError(f"n_bits must be at most the {pool} bits that there are with the new ones, got {n_bits}")
    check_fraction("old_weight", old_weight, "a number")
    if old is not None and not (isinstance(old, tuple | list) and len(old) == 2):
        raise ValueError(f"old must be a pair (X, y) of old vectors and labels, got {type(old).__name__}")
