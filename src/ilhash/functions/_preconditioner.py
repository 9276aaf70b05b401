"""What makes linear SVMs of one model fast: the inverse of a typical Hessian, made once for all of its bits."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash import _core
from ilhash.vectors import GatheredRows

from ._base import Features, Floats
from ._learner import standardization

SAMPLE = 8_000  # rows of X that it is made of
MOST_FEATURES = 4_096  # of which products are kept: 64 MiB
TOLERANCE = 7e-6  # share of an SVM's objective that it may stay above the minimum, as far as steps tell
ACTIVE = 0.7  # share of rows inside the margin, typically; that it is .5 or 1 costs half a step


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """About the inverse of the Hessians I + 2C X_a'X_a of a model's bits, X_a their standardised rows in the margin.

    It depends on X, the seed, C and N alone, so bits stay independent of one another.

    Attributes
    ----------
    gram : float32 (D + 1, D + 1), X'X / n of standardised sample rows and a column of ones
    weight : float, what the Hessian of a bit has in its place of 1 / n: 2 C N times the share of rows in the margin
    """

    gram: Floats
    weight: float

    @classmethod
    def of(cls, sample: GatheredRows, scaling: str, C: float, n_train: int) -> Preconditioner | None:
        """Return that of seeded rows, which are overwritten; None where it would not be worth its price."""
        n, d = sample.values.shape
        if d > MOST_FEATURES or d >= min(n, n_train):
            return None
        shift, factor = standardization(sample, scaling)
        X = sample.rescaled(shift, factor).with_ones
        gram = np.asarray((X.T @ X) / np.float32(n))
        # A feature that the sample does not show may vary among the rows of a bit, and has unit variance then.
        hidden = np.flatnonzero(factor == 0)
        gram[hidden, hidden] = 1.0
        return cls.of_gram(gram, C, n_train)

    @classmethod
    def of_gram(cls, gram: Floats, C: float, n_train: int) -> Preconditioner:
        """Return that of the mean of x x' over some rows, with its inverse, so that it travels to workers."""
        made = cls(gram, 2.0 * C * n_train * ACTIVE)
        made.inverse(None)
        return made

    @functools.cached_property
    def _of_all(self) -> Floats | None:
        return self._inverse(self.gram)

    def inverse(self, features: Features) -> Floats | None:
        """Return the inverse (d + 1, d + 1) for some features, None for all; None where there is none in float32."""
        if features is None:
            return self._of_all
        own = np.append(features, len(self.gram) - 1)
        return self._inverse(self.gram[np.ix_(own, own)])

    def _inverse(self, gram: Floats) -> Floats | None:
        hessian = gram * np.float32(self.weight)
        hessian.flat[:: len(hessian) + 1] += np.float32(1.0)
        return inverted(hessian)


def inverted(matrix: Floats) -> Floats | None:
    """Return the inverse of a symmetric matrix, None if it is not positive definite in single precision."""
    factor, failed = scipy.linalg.lapack.spotrf(matrix, lower=1)
    if failed:
        return None
    lower, failed = scipy.linalg.lapack.spotri(factor, lower=1, overwrite_c=1)
    if failed or not np.isfinite(lower).all():
        return None
    whole = np.ascontiguousarray(lower + lower.T)  # what is not in the lower half is zero
    whole.flat[:: len(whole) + 1] *= np.float32(0.5)
    return whole


def search(
    X: Floats,
    y: Floats,
    C: float,
    inverse: Floats,
    shift: NDArray[np.floating] | None = None,
    factor: NDArray[np.floating] | None = None,
) -> tuple[Floats, Floats, bool]:
    """Return weights of the SVM of (X - shift) * factor and a column of ones, its margins, and whether they will do.

    Parameters
    ----------
    X : float32 (N, d + 1), rows, the last column ones
    y : float32 (N,), targets -1 and +1
    C : float, weight of the loss
    inverse : float32 (d + 1, d + 1), about the inverse of the Hessian
    shift, factor : array (d,), optional, how the columns are standardised; by default they are left alone
    """
    d = X.shape[1] - 1
    own_shift = np.zeros(d, np.float32) if shift is None else shift.astype(np.float32)
    own_factor = np.ones(d, np.float32) if factor is None else factor.astype(np.float32)
    weights, margins, _, solved = _core.solve_squared_hinge(X, own_shift, own_factor, y, C, inverse, TOLERANCE)
    return weights, margins, solved
