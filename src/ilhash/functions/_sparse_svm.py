"""Linear SVM with squared hinge loss on sparse rows: the objective of ``_svm``, without a Hessian.

min |w|^2 / 2 + b^2 / 2 + C sum_n max(0, 1 - y_n (w'x_n + b))^2 by Newton's method: conjugate gradients, preconditioned
with the diagonal of the Hessian, take one product with X and one with its transpose each, and the line search is exact.
The Hessian is at least the identity, so what is missing to the minimum is at most |gradient|^2 / 2 (which is also the
gap to the dual): the solver stops where that is small enough, and knows that it is.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

Doubles = NDArray[np.float64]

_MAX_STEPS = 200
_MAX_CG = 500  # products for one step
_REDUCTION = 0.1  # of the residual: more would be lost again when rows enter or leave the margin


def fit_squared_hinge_sparse(X: Any, y: Doubles, C: float, tolerance: float = 2e-5) -> tuple[Doubles, float, Doubles]:
    """Return the weights of the SVM, its bias, and its margins X w + b, for y of -1 and +1.

    Parameters
    ----------
    X : scipy.sparse.csr_array (n, d), float64
    y : float64 array (n,), -1 and +1
    C : float, weight of the loss
    tolerance : float, share of the objective by which it may stay above its minimum

    Returns
    -------
    weights, bias, margins : float64 array (d,), float, float64 array (n,)
    """
    problem = _Problem(X, C)
    w, margins = np.zeros(X.shape[1] + 1), np.zeros(len(y))
    for _ in range(_MAX_STEPS):
        slack = 1.0 - y * margins
        active = slack > 0
        pull = np.where(active, slack, 0.0)
        objective = 0.5 * (w @ w) + C * (pull @ pull)
        gradient = w - 2.0 * C * problem.transposed(y * pull)
        if 0.5 * (gradient @ gradient) <= tolerance * objective:
            return w[:-1], float(w[-1]), margins
        direction, along = problem.newton_direction(gradient, active)
        t = _exact_step(slack, y * along, float(w @ direction), float(direction @ direction), C)
        w += t * direction
        margins += t * along
    missing = 0.5 * (gradient @ gradient) / objective
    warnings.warn(
        f"a linear function on sparse X stopped after {_MAX_STEPS} steps, within {missing:.0e} of its minimum: lower C",
        ConvergenceWarning,
        stacklevel=2,
    )
    return w[:-1], float(w[-1]), margins


class _Problem:
    """Products with X and a column of ones, and with the Hessian of the rows within the margin."""

    def __init__(self, X: Any, C: float) -> None:
        self.X, self.across, self.C = X, X.T, C
        self.squares = X.multiply(X).T

    def product(self, w: Doubles) -> Doubles:
        return np.asarray(self.X @ w[:-1] + w[-1])

    def transposed(self, v: Doubles) -> Doubles:
        return np.append(self.across @ v, v.sum())

    def newton_direction(self, gradient: Doubles, active: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        """Solve H p = -gradient roughly; return p, along which the objective falls however roughly, and X p."""
        weight = np.where(active, 2.0 * self.C, 0.0)
        diagonal = 1.0 + np.append(self.squares @ weight, weight.sum())
        direction, along = np.zeros_like(gradient), np.zeros(len(active))
        residual = -gradient
        search = residual / diagonal
        size = residual @ search
        enough = _REDUCTION**2 * (residual @ residual)
        for _ in range(_MAX_CG):
            product = self.product(search)
            image = search + self.transposed(weight * product)
            rate = size / (search @ image)
            direction += rate * search
            along += rate * product
            residual -= rate * image
            if residual @ residual <= enough:
                break
            conditioned = residual / diagonal
            new_size = residual @ conditioned
            search = conditioned + (new_size / size) * search
            size = new_size
        return direction, along


def _exact_step(slack: Doubles, moved: Doubles, w_p: float, p_p: float, C: float) -> float:
    """Minimise the objective along w + t p over t > 0, where slacks are slack - t moved.

    Its slope is a line between the places where a row leaves the margin or enters it; the lines of all stretches come
    from sums over these places in order.
    """
    inside = (slack > 0) | ((slack == 0) & (moved < 0))
    turning = np.flatnonzero(((slack > 0) & (moved > 0)) | ((slack < 0) & (moved < 0)))
    places = slack[turning] / moved[turning]
    order = np.argsort(places, kind="stable")
    turning, ends = turning[order], np.append(places[order], np.inf)
    s, u = slack[turning], moved[turning]
    leaves = np.sign(u)  # rows that enter are counted the other way round
    at_zero = w_p - 2.0 * C * (moved[inside] @ slack[inside])
    slope = p_p + 2.0 * C * (moved[inside] @ moved[inside])
    heights = at_zero + 2.0 * C * np.append(0.0, np.cumsum(leaves * u * s))
    slopes = np.maximum(slope - 2.0 * C * np.append(0.0, np.cumsum(leaves * u * u)), p_p)
    roots = -heights / slopes
    return float(roots[np.argmax(roots <= ends)])
