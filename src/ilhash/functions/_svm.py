"""Linear SVM with squared hinge loss: min_w |w|^2 / 2 + C sum_n max(0, 1 - y_n w'x_n)^2, in the primal, by Newton.

The bias is the weight of a column of ones and is regularised with the rest (LIBLINEAR's convention). The objective is
piecewise quadratic, so Newton's method with an exact line search ends after a handful of steps. Its cost is the Hessian
H = I + 2C X_a'X_a of the active rows a (those inside the margin), which is therefore formed as rarely as possible: the
Newton system is solved by conjugate gradients, preconditioned with the Hessian of every few rows. Where that is slow
(few rows per feature, rare features) the exact Hessian is formed for every step, by adding the rows that became active
and subtracting those that ceased to be; conjugate gradients then end at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash import _core
from ilhash.vectors import scratch

from ._base import Floats

_SYRK_ROWS = 2048  # rows gathered at a time for a Hessian update: their block stays in cache
_MAX_STEPS = 60  # more than this means that single precision is not enough
_MAX_CG = 8  # conjugate gradient iterations per Newton step
_CG_REDUCTION = 0.1  # of the squared residual: more would be lost again when the active set changes
_FEW_CHANGED = 0.25  # share of rows up to which gathering them is cheaper than a pass over all
_NOISE = 1e-8  # share of the objective below which a drop cannot be seen in single precision
_CG_SLOW = 0.75  # a worse reduction per iteration than this is not worth going on with


def squared_hinge_objective(
    X: NDArray[np.floating], y: NDArray[np.floating], w: NDArray[np.floating], C: float
) -> float:
    """Return the objective value in double precision."""
    w64 = np.asarray(w, dtype=np.float64)
    slack = np.maximum(0.0, 1.0 - y * (np.asarray(X, dtype=np.float64) @ w64))
    return float(0.5 * w64 @ w64 + C * slack @ slack)


def fit_squared_hinge(
    X: Floats, y: Floats, C: float, tolerance: float = 2e-5, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the weights of the SVM and its margins X w, for y of -1 and +1.

    One of the columns of X is ones if a bias is wanted; the objective may stay above its minimum by the share
    ``tolerance`` of it. ``start`` are weights that another search ended with, for which conjugate gradients were slow.
    """
    n, d = X.shape
    if d > n:
        # In the coordinates of the rows' own span the problem has n unknowns instead of d, and the same solution.
        basis, coordinates = scipy.linalg.qr(X.T, mode="economic", check_finite=False)
        inner, margins = fit_squared_hinge(np.ascontiguousarray(coordinates.T), y, C, tolerance)
        return (basis @ inner).astype(np.float32), margins
    solved = _newton(X, y, C, tolerance, start)
    if solved is None:
        # Single precision can fail on ill-conditioned data under a very large C; double precision takes longer.
        weights = fit_squared_hinge_float64(X, y, C)
        return weights, X @ weights
    return solved


def _newton(
    X: Floats, y: Floats, C: float, tolerance: float, start: Floats | None = None
) -> tuple[Floats, Floats] | None:
    """Return weights and margins, or None where float32 is not enough."""
    n, d = X.shape
    w = np.zeros(d, np.float32) if start is None or not np.isfinite(start).all() else start.copy()
    margins = np.zeros(n, np.float32) if start is None else X @ w
    slack, pull, active = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.uint8)
    objective = 0.5 * float(w @ w) + C * _core.hinge(margins, y, slack, pull, active)
    hessian = _Hessian(X, C)
    hessian.exact = start is not None
    if not (hessian.form(active.view(np.bool_)) if hessian.exact else hessian.of_every_few_rows()):
        return None
    gradient = w + np.float32(2.0 * C) * (pull @ X)
    full_step_before = False
    for _ in range(_MAX_STEPS):
        step = hessian.newton_step(gradient, active.view(np.bool_))
        if step is None:
            return None
        t = _exact_step(slack, y, step.along, float(w @ step.direction), float(step.direction @ step.direction), C)
        w += np.float32(t) * step.direction
        margins += np.float32(t) * step.along
        before, was_active = objective, active.copy()
        objective = 0.5 * float(w @ w) + C * _core.hinge(margins, y, slack, pull, active)
        # Close to the minimum the predicted drop is what was missing to it; what the step did not bring still is.
        missing = step.predicted_drop - max(0.0, before - objective) + step.left_over
        # A model that is right asks for whole steps; where steps are cut short, its predictions mean little.
        full_step = 0.75 < t < 1.25
        # Where Hessians had to be formed the data are badly conditioned for single precision: be stricter there.
        enough = (1.0 if hessian.exact else 10.0) * tolerance
        small = step.predicted_drop <= enough * before and missing <= tolerance * objective
        # Below the precision of the objective the length of a step is noise. H >= I: |gradient|^2 / 2 is an upper bound
        # of what was missing, whatever became of the step.
        nothing_left = step.predicted_drop <= _NOISE * before and 0.5 * float(gradient @ gradient) <= tolerance * before
        if nothing_left or (small and full_step and full_step_before):
            return w, margins
        full_step_before = full_step
        changed = np.flatnonzero(active != was_active)
        if hessian.exact or len(changed) > _FEW_CHANGED * n:
            gradient = w + np.float32(2.0 * C) * (pull @ X)
        else:
            # The model is exact but for the rows that became active or ceased to be: only these have to be read.
            modelled = -y[changed] * slack[changed] * was_active[changed]
            correction = (pull[changed] - modelled) @ X[changed]
            gradient = step.gradient_at(t, gradient) + np.float32(2.0 * C) * correction
    return None


@dataclass(frozen=True)
class _Step:
    """A step towards the minimum of the quadratic model.

    ``along`` is X @ direction; ``residual`` minus the model's gradient at the end of the whole step; ``predicted_drop``
    what the model loses by it, ``left_over`` what it could still lose.
    """

    direction: Floats
    along: Floats
    residual: Floats
    predicted_drop: float
    left_over: float

    def gradient_at(self, t: float, before: Floats) -> Floats:
        """Return the model's gradient after t times the step."""
        return np.float32(1.0 - t) * before - np.float32(t) * self.residual


class _Hessian:
    """H = I + 2C X_a'X_a, and the factor of one that was formed before, for some rows."""

    def __init__(self, X: Floats, C: float) -> None:
        self.X, self.C = X, C
        self.gram: Floats = np.zeros((X.shape[1], X.shape[1]), np.float32)
        self.rows = np.zeros(len(X), np.bool_)  # that are in gram
        self.factor: tuple[Floats, bool] | None = None
        self.exact = False  # whether a Hessian is formed for every step

    def of_every_few_rows(self) -> bool:
        """Form the Hessian of a subset, scaled to the size of the whole; False if it cannot be factored."""
        n, d = self.X.shape
        stride = max(1, min(4, n // (3 * d)))
        subset = np.zeros(n, np.bool_)
        subset[::stride] = True
        return self.form(subset, weight=stride)

    def form(self, rows: NDArray[np.bool_], weight: float = 1.0) -> bool:
        """Form and factor the Hessian of some rows; False if it is not positive definite in single precision."""
        entered, left = np.flatnonzero(rows & ~self.rows), np.flatnonzero(self.rows & ~rows)
        if len(entered) + len(left) > np.count_nonzero(rows):
            self.gram[:] = 0.0
            entered, left = np.flatnonzero(rows), left[:0]
        self._add(entered, np.add)
        self._add(left, np.subtract)
        self.rows = rows.copy()
        matrix = self.gram * np.float32(2.0 * self.C * weight)
        matrix.flat[:: len(matrix) + 1] += np.float32(1.0)
        try:
            # The transpose is the same matrix in the order that LAPACK overwrites without a copy.
            self.factor = scipy.linalg.cho_factor(matrix.T, lower=False, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return False
        return True

    def _add(self, rows: NDArray[np.intp], combine: np.ufunc) -> None:
        for first in range(0, len(rows), _SYRK_ROWS):
            some = rows[first : first + _SYRK_ROWS]
            chunk = scratch("svm rows", (len(some), self.X.shape[1]))
            np.take(self.X, some, axis=0, out=chunk, mode="clip")  # clip: numpy buffers the output otherwise
            combine(self.gram, chunk.T @ chunk, out=self.gram)

    def newton_step(self, gradient: Floats, active: NDArray[np.bool_]) -> _Step | None:
        """Return the step for the active rows: with the factor of a subset of rows as long as that does."""
        if not self.exact:
            step = self._conjugate_gradients(gradient, active)
            if step is not None:
                return step
            self.exact = True
        return self._conjugate_gradients(gradient, active) if self.form(active) else None

    def _conjugate_gradients(self, gradient: Floats, active: NDArray[np.bool_]) -> _Step | None:
        """Solve H p = -gradient roughly; None if the factor at hand makes it slow."""
        X, weight = self.X, active * np.float32(2.0 * self.C)
        direction, along = np.zeros_like(gradient), np.zeros(len(X), np.float32)
        image, product = np.empty_like(gradient), np.empty_like(along)
        drop = largest_rate = 0.0
        residual = -gradient
        search = self._precondition(residual)
        size = first_size = float(residual @ search)
        if size == 0.0:  # the gradient vanishes: this is the minimum
            return _Step(direction, along, residual, 0.0, 0.0)
        for iteration in range(1, _MAX_CG + 1):
            # One pass over X where BLAS takes two: with 320 features a fifth faster up to N = 10,000, and close
            # to twice as fast at 20,000, where X no longer fits the cache.
            _core.gram_times(X, search, weight, product, image)
            image += search
            rate = size / float(search @ image)
            direction += np.float32(rate) * search
            along += np.float32(rate) * product
            drop += 0.5 * rate * size
            largest_rate = max(largest_rate, rate)
            residual -= np.float32(rate) * image
            conditioned = self._precondition(residual)
            new_size = float(residual @ conditioned)
            if not np.isfinite(new_size):
                return None
            if new_size <= _CG_REDUCTION * first_size:
                # 1 / rate is a Rayleigh quotient of the preconditioned Hessian: a hint at its smallest eigenvalue.
                return _Step(direction, along, residual, drop, max(new_size, 0.0) * largest_rate)
            if new_size > _CG_SLOW**iteration * first_size:
                return None
            search = conditioned + np.float32(new_size / size) * search
            size = new_size
        return None

    def _precondition(self, residual: Floats) -> Floats:
        return np.asarray(scipy.linalg.cho_solve(self.factor, residual, check_finite=False))


def _exact_step(slack: Floats, y: Floats, along: Floats, w_p: float, p_p: float, C: float) -> float:
    """Minimise the objective along w + t p over t: a convex, piecewise quadratic function of one variable."""
    t = 1.0
    if p_p == 0.0:
        return t
    for _ in range(20):
        slope, curvature = _core.hinge_slope(slack, y, along, t)
        change = (w_p + t * p_p + 2.0 * C * slope) / (p_p + 2.0 * C * curvature)
        t -= change
        if abs(change) <= 1e-3 * abs(t):
            break
    return t


def fit_squared_hinge_float64(
    X: NDArray[np.floating], y: NDArray[np.floating], C: float, tolerance: float = 1e-10
) -> Floats:
    """Do the same in double precision with nothing clever: the obvious twin of :func:`fit_squared_hinge`."""
    X64, y64 = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    w = np.zeros(X64.shape[1])
    objective = squared_hinge_objective(X64, y64, w, C)
    for _ in range(200):
        slack = 1.0 - y64 * (X64 @ w)
        rows = X64[slack > 0]
        gradient = w - 2.0 * C * rows.T @ (y64 * slack)[slack > 0]
        # By least squares: under an enormous C even double precision cannot tell the matrix from a singular one.
        direction = -np.linalg.lstsq(np.eye(len(w)) + 2.0 * C * rows.T @ rows, gradient, rcond=None)[0]
        if -gradient @ direction <= tolerance * objective:
            break
        step, trial = 1.0, squared_hinge_objective(X64, y64, w + direction, C)
        while trial > objective + 1e-4 * step * (gradient @ direction) and step > 1e-12:
            step /= 2.0
            trial = squared_hinge_objective(X64, y64, w + step * direction, C)
        w, objective = w + step * direction, trial
    return w.astype(np.float32)
