"""As many bits as help: train some at a time, look at held-out points after each, stop when they stop helping."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ilhash._checks import check_count, check_fraction
from ilhash.affinity import Labels, LabelSets
from ilhash.cards import Measured
from ilhash.ensemble._data import data_fingerprint
from ilhash.ensemble._holdout import HoldOut, ValidationSet, hold_out, read_labels
from ilhash.ensemble._ilh import ILH
from ilhash.evaluation import PrecisionBitByBit
from ilhash.functions import Encoder, HashFunction
from ilhash.parallel import run
from ilhash.vectors import SparseRows, as_matrix, gather, named_columns, without_columns

# Bits [8i, 8i + 8) are encoded together, and vectors in chunks of this many, whatever the number of workers: products
# of other shapes may round a margin of zero to the other side.
BITS_TOGETHER = 8
ROWS_TOGETHER = 2048

Curve = Sequence[float]


@dataclass(frozen=True, eq=False)
class Growth:
    """What came of growing.

    Attributes
    ----------
    model : ILH, the ILH of the chosen number of bits, trained without the points held out
    n_bits : int, how many these are
    curve : float64 array
        Tie-aware precision@k of the first 1, 2, ... bits on the points that chose their number, up to where it ended.
    stopped : bool, whether more bits had stopped helping; False: ``max_bits`` came first
    pool : ILH, the ILH of all bits of the curve, for :func:`ilhash.prune`
    labels : Labels or LabelSets, what the bits were trained with; ``model.add_bits(n, X, labels)`` goes on
    k, patience, tolerance : int, int and float, of the rule
    report : float64 array, optional
        The curve on points that chose nothing, what the bits are worth; None where no point was held out for it.
    """

    model: ILH
    n_bits: int
    curve: NDArray[np.float64]
    stopped: bool
    pool: ILH
    labels: Labels | LabelSets
    k: int
    patience: int
    tolerance: float
    report: NDArray[np.float64] | None = None

    def results(self) -> list[Measured]:
        """Return what the model is worth, as it remembers it.

        Returns
        -------
        list of Measured
        """
        curves = {"points that chose the number of bits": self.curve, "points that chose nothing": self.report}
        return [
            Measured(name, f"precision@{self.k}", float(curve[self.n_bits - 1]), protocol="grow", curve=curve.tolist())
            for name, curve in curves.items()
            if curve is not None
        ]


def stopping_point(curve: Curve, patience: int, tolerance: float) -> tuple[int, int | None]:
    """Return the chosen number of bits, and the number at which that became clear (None: not yet).

    A number of bits is better than the best so far if its precision is higher by more than ``tolerance``. When
    ``patience`` numbers in a row have not been better, the best so far is chosen.

    Examples
    --------
    >>> stopping_point([0.2, 0.5, 0.505, 0.51, 0.4, 0.9], patience=3, tolerance=0.02)
    (2, 5)
    >>> stopping_point([0.2, 0.5, 0.505], patience=3, tolerance=0.02)
    (2, None)
    """
    best = 1
    for n_bits in range(2, len(curve) + 1):
        if curve[n_bits - 1] > curve[best - 1] + tolerance:
            best = n_bits
        elif n_bits - best >= patience:
            return best, n_bits
    return best, None


def grow(
    model: ILH,
    X: Any,
    y: Any,
    *,
    max_bits: int = 256,
    k: int = 100,
    patience: int = 32,
    tolerance: float = 0.002,
    held_out: HoldOut | None = None,
    step: int | None = None,
    progress: Callable[[Curve], None] | None = None,
) -> Growth:
    """Train bits until precision on held-out points stops rising; the answer does not depend on ``step``.

    Parameters
    ----------
    model : ILH
        An ILH; its ``n_bits`` is not looked at. One that was trained with the same points held out is grown further.
    X : array (n, D), also a memory map
    y : array (n,) or (n, L), labels, or an indicator matrix
    max_bits : int, default 256, where to stop at the latest
    k : int, default 100, of the precision
    patience, tolerance : int, default 32, and float, default 0.002
        Stop when ``patience`` more bits have not raised precision by more than ``tolerance``.
    held_out : HoldOut, optional, which points are kept from training and judged by; default ``HoldOut()``
    step : int, optional
        Bits trained at a time, the paper's P; default as many as there are workers (``model.n_jobs``).
    progress : callable, optional, called with the curve so far, as it grows

    Returns
    -------
    Growth, the model and the course of its growth

    Examples
    --------
    >>> from ilhash import datasets
    >>> digits = datasets.load("digits")
    >>> growth = grow(ILH(n_similar=30), digits.X, digits.y, max_bits=40, patience=8, tolerance=0.01)
    >>> growth.n_bits == len(growth.model.functions_) < 40
    True
    """
    rule = _checked_rule(model, max_bits, k, patience, tolerance)
    held_out = hold_out(held_out)
    workers = max(1, joblib.effective_n_jobs(model.n_jobs))
    step = workers if step is None else check_count("step", step)
    X, y, names = named_columns(X, y, None)
    X, names = without_columns(X, model.left_out_), [*model.left_out_, *names]
    matrix = as_matrix(X, sparse=True)
    known = read_labels(y, len(matrix), model.unlabeled)
    labels, (validation, *_) = held_out.labels(known), held_out.validation_sets(known)
    precision = PrecisionBitByBit(validation.relevant, k, n_threads=workers)
    curve: list[float] = []
    with _each_warning_once():
        pool = _first_bits(model, X, labels, min(step, max_bits), max_bits)
        judge = _Judge(pool, matrix, validation, workers)
        while True:
            judge.extend(curve, pool.functions_, precision, final=len(pool.functions_) == max_bits)
            if progress is not None and curve:
                progress(curve)
            chosen, clear = stopping_point(curve, patience, tolerance) if curve else (0, None)
            if clear is not None or len(curve) >= max_bits:
                break
            pool.add_bits(min(step, max_bits - len(pool.functions_)), X, labels)
    pool.leave_out(names)
    end = clear or max_bits
    values = np.array(curve[:end])
    report = _report(pool, end, matrix, held_out.report_sets(known), k, workers)
    growth = Growth(pool[:chosen], chosen, values, clear is not None, pool[:end], labels, *rule, report)
    growth.model.remember(growth)
    return growth


def _report(
    pool: ILH, n_bits: int, X: NDArray[Any], sets: list[ValidationSet], k: int, workers: int
) -> NDArray[np.float64] | None:
    """Return the curve of the first bits on points that chose nothing."""
    if not sets:
        return None
    curve: list[float] = []
    precision = PrecisionBitByBit(sets[0].relevant, k, n_threads=workers)
    _Judge(pool, X, sets[0], workers).extend(curve, pool.functions_[:n_bits], precision, final=True)
    return np.array(curve)


@contextmanager
def _each_warning_once() -> Iterator[None]:
    """Keep warnings until the end, and of those that begin alike only the first: every few bits would say the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    first: dict[str, Any] = {}
    for warning in caught:
        first.setdefault(str(warning.message).partition(":")[0], warning)
    for warning in first.values():
        warnings.warn(warning.message, warning.category, stacklevel=4)


def _checked_rule(model: Any, max_bits: Any, k: Any, patience: Any, tolerance: Any) -> tuple[int, int, float]:
    if not isinstance(model, ILH):
        raise TypeError(f"model must be an ILH, whose bits are trained one by one, got {type(model).__name__}")
    if hasattr(model, "functions_") and len(model.generations) > 1:
        raise ValueError(f"model must be of one generation to grow, got {len(model.generations)}; extend trains more")
    check_count("max_bits", max_bits)
    check_fraction("tolerance", tolerance, "a precision")
    return check_count("k", k), check_count("patience", patience), float(tolerance)


def _first_bits(model: ILH, X: Any, labels: Labels | LabelSets, n_bits: int, max_bits: int) -> ILH:
    """Return a model of its own: the bits that there are, or the first ones."""
    if not hasattr(model, "functions_"):
        first: ILH = clone(model).set_params(n_bits=n_bits)
        return first.fit(X, labels)
    if model.fingerprint_ != data_fingerprint(as_matrix(X, sparse=True), labels):
        raise ValueError(
            "model must be untrained, or trained on this X with the same points held out, got one that was fitted on "
            "other data or on the points it is to be judged by"
        )
    return model[:max_bits]


class _Judge:
    """Encodes the points of the validation, a few bits and vectors at a time."""

    def __init__(self, model: ILH, X: NDArray[Any], validation: ValidationSet, workers: int) -> None:
        rows = np.concatenate([validation.base, validation.queries])
        self._n_base = len(validation.base)
        values: Any = gather(X, rows, model.origin_).values
        self._vectors = values if isinstance(values, SparseRows) else np.ascontiguousarray(values)
        self._workers = workers

    def extend(
        self, curve: list[float], functions: list[HashFunction], precision: PrecisionBitByBit, final: bool
    ) -> None:
        """Carry the curve on to the last bit of which there is a whole group, or to the last of all."""
        ready = len(functions) if final else len(functions) // BITS_TOGETHER * BITS_TOGETHER
        for first in range(len(curve), ready, BITS_TOGETHER):
            bits = self._bits(functions[first : min(first + BITS_TOGETHER, ready)])
            for column in bits.T:
                precision.add(column[: self._n_base], column[self._n_base :])
                curve.append(precision.value)

    def _bits(self, functions: list[HashFunction]) -> NDArray[np.bool_]:
        encoder = Encoder(functions, self._vectors.shape[1])

        def encode(first: int) -> NDArray[np.bool_]:
            return encoder.margins(self._vectors[first : first + ROWS_TOGETHER]) > 0

        with joblib.parallel_config(backend="threading"):  # the vectors need not travel
            return np.concatenate(run(encode, range(0, len(self._vectors), ROWS_TOGETHER), n_jobs=self._workers))
