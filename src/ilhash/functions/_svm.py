"""Linear SVM with squared hinge loss: min_w |w|^2 / 2 + C sum_n max(0, 1 - y_n w'x_n)^2, in the primal, by Newton.

The bias is the weight of a column of ones and is regularised with the rest (LIBLINEAR's convention). The objective is
piecewise quadratic, so Newton's method with an exact line search ends after a handful of steps; its cost is the Hessian
I + 2C X_a'X_a of the active rows (those inside the margin). Two things keep that low: the first step uses the Hessian of a
strided subset, because from w = 0 every row is active and the step only has to be good; and later Hessians are updated
by the rows that entered or left the active set.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash import _core

__all__ = ["fit_squared_hinge", "fit_squared_hinge_float64", "squared_hinge_objective"]

Floats = NDArray[np.float32]

_SYRK_ROWS = 2048  # rows gathered at a time for a Hessian update: their block stays in cache
_MAX_STEPS = 60


def squared_hinge_objective(X: NDArray[np.floating], y: NDArray[np.floating], w: NDArray[np.floating], C: float) -> float:
    """Return the objective value in double precision."""
    w64 = np.asarray(w, dtype=np.float64)
    slack = np.maximum(0.0, 1.0 - y * (np.asarray(X, dtype=np.float64) @ w64))
    return float(0.5 * w64 @ w64 + C * slack @ slack)


def fit_squared_hinge(X: Floats, y: Floats, C: float, tolerance: float = 1e-5) -> Floats:
    """Return the weights of the SVM.

    Parameters
    ----------
    X : float32 (N, D), one of its columns being ones if a bias is wanted
    y : float32 (N,) of -1 and +1
    C : the weight of the loss
    tolerance : stops when the next step would lower the objective by a smaller share than this
    """
    n, d = X.shape
    if d > n:
        # In the coordinates of the rows' own span the problem has n unknowns instead of d, and the same solution.
        basis, coordinates = scipy.linalg.qr(X.T, mode="economic", check_finite=False)
        inner = fit_squared_hinge(np.ascontiguousarray(coordinates.T), y, C, tolerance)
        return (basis @ inner).astype(np.float32)
    weights = _newton(X, y, C, tolerance)
    # Single precision can fail on ill-conditioned data under a very large C; double precision is slower but does not.
    return fit_squared_hinge_float64(X, y, C, tolerance) if weights is None else weights


def _newton(X: Floats, y: Floats, C: float, tolerance: float) -> Floats | None:
    """Return the weights, or None where float32 is not enough."""
    n, d = X.shape
    w, margins = np.zeros(d, np.float32), np.zeros(n, np.float32)
    slack, pull = np.empty(n, np.float32), np.empty(n, np.float32)
    active = np.empty(n, np.uint8)
    hessian: _ActiveHessian | None = None
    for step in range(_MAX_STEPS):
        loss = _core.hinge(margins, y, slack, pull, active)
        objective = 0.5 * float(w @ w) + C * loss
        gradient = w + np.float32(2.0 * C) * (pull @ X)
        if step == 0:
            system = _first_system(X, C)
        else:
            hessian = hessian or _ActiveHessian(X)
            system = hessian.system(active.view(np.bool_), C)
        direction = _solve(system, -gradient)
        if direction is None:
            return None
        predicted_drop = -0.5 * float(gradient @ direction)
        if step > 0 and predicted_drop <= tolerance * objective:
            return w + direction  # the last step needs no search: the model is exact this close
        along = X @ direction
        t = _exact_step(slack, y, along, float(w @ direction), float(direction @ direction), C)
        w = w + np.float32(t) * direction
        margins += np.float32(t) * along
    return None


def _first_system(X: Floats, C: float) -> Floats:
    """Hessian at w = 0, where all rows are active, from every few rows if there are many."""
    n, d = X.shape
    stride = max(1, min(4, n // (3 * d)))
    rows = np.ascontiguousarray(X[::stride])
    system = rows.T @ rows
    system *= np.float32(2.0 * C * stride)
    system.flat[:: d + 1] += np.float32(1.0)
    return system


class _ActiveHessian:
    """X_a'X_a of the active rows a, kept up to date by the rows that change sides."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        self.gram: Floats = np.zeros((X.shape[1], X.shape[1]), np.float32)
        self.active = np.zeros(len(X), np.bool_)

    def system(self, active: NDArray[np.bool_], C: float) -> Floats:
        entered, left = np.flatnonzero(active & ~self.active), np.flatnonzero(self.active & ~active)
        if len(entered) + len(left) > np.count_nonzero(active):
            self.gram[:] = 0.0
            entered, left = np.flatnonzero(active), left[:0]
        self._add(entered, 1.0)
        self._add(left, -1.0)
        self.active = active.copy()
        system = self.gram * np.float32(2.0 * C)
        system.flat[:: len(system) + 1] += np.float32(1.0)
        return system

    def _add(self, rows: NDArray[np.intp], sign: float) -> None:
        for first in range(0, len(rows), _SYRK_ROWS):
            chunk = self.X[rows[first : first + _SYRK_ROWS]]
            if sign > 0:
                self.gram += chunk.T @ chunk
            else:
                self.gram -= chunk.T @ chunk


def _solve(system: Floats, right: Floats) -> Floats | None:
    try:
        factor = scipy.linalg.cho_factor(system.T, lower=False, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    solution: Floats = scipy.linalg.cho_solve(factor, right, check_finite=False)
    return solution if np.isfinite(solution).all() else None


def _exact_step(slack: Floats, y: Floats, along: Floats, w_p: float, p_p: float, C: float) -> float:
    """Minimise the objective along w + t p over t: a convex, piecewise quadratic function of one variable."""
    t = 1.0
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
        direction = -scipy.linalg.solve(np.eye(len(w)) + 2.0 * C * rows.T @ rows, gradient, assume_a="pos")
        if -gradient @ direction <= tolerance * objective:
            break
        step, trial = 1.0, squared_hinge_objective(X64, y64, w + direction, C)
        while trial > objective + 1e-4 * step * (gradient @ direction) and step > 1e-12:
            step /= 2.0
            trial = squared_hinge_objective(X64, y64, w + step * direction, C)
        w, objective = w + step * direction, trial
    return w.astype(np.float32)
