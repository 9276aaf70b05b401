"""Supervised discrete hashing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash._parameters import count, positive
from ilhash.diversity import seed_for
from ilhash.methods._base import KernelMethod, TrainingSet
from ilhash.methods._signs import cyclic_descent

Floats = NDArray[np.float64]


def _ridge(A: Floats, target: Floats, weight: float) -> Floats:
    """Return argmin_W |target - A W|^2 + weight |W|^2."""
    gram = A.T @ A
    gram.flat[:: len(gram) + 1] += weight
    return np.asarray(scipy.linalg.solve(gram, A.T @ target, assume_a="pos"))


@dataclass(eq=False, repr=False, kw_only=True)
class SDH(KernelMethod):
    """Codes from which a linear classifier predicts the labels, found bit by bit without relaxation.

    Minimises ``|Y - B W|^2 + lambda |W|^2 + nu (|B - Phi P|^2 + delta |P|^2)`` over codes B in {-1,+1} (N, b), the
    classifier W (b, L) and the weights P of the hash functions sign(P'phi(x)), Y being the labels' indicator and phi
    radial basis functions around anchors and a constant. W and P are ridge regressions, B comes from discrete cyclic
    coordinate descent: the objective never rises.

    Parameters
    ----------
    max_iter : int, default 5, rounds of W, P and B; it ends sooner where B does not change
    lam, nu : float, default 1 and 1e-5, weights lambda and nu
    ridge : float, default 0.01
        Weight delta; the original has none, which fails where there are more anchors than points.

    Attributes
    ----------
    report_ : dict, ``objective`` before and after each round

    References
    ----------
    F. Shen, C. Shen, W. Liu and H. T. Shen, Supervised discrete hashing, CVPR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) + np.repeat([[0], [3]], 50, axis=0)
    >>> model = SDH(n_bits=4, n_centers=20).fit(X, np.repeat([0, 1], 50))
    >>> model.report_["objective"][-1] <= model.report_["objective"][0]
    True
    """

    renamed: ClassVar[dict[str, str]] = {"iterations": "max_iter"}

    max_iter: int = count(5)
    lam: float = positive(1.0)
    nu: float = positive(1e-5)
    ridge: float = positive(0.01)

    def _weights(self, phi: NDArray[np.float32], training: TrainingSet, seed: int) -> tuple[Floats, Floats]:
        Phi = np.column_stack([phi, np.ones(len(phi))]).astype(np.float64)
        Y = training.labels.astype(np.float64)
        rng = np.random.default_rng(seed_for(seed, "start"))
        B = rng.choice([-1.0, 1.0], (len(Y), self.n_bits))
        W, P = _ridge(B, Y, self.lam), _ridge(Phi, B, self.ridge)
        course = [self._objective(Y, Phi, B, W, P)]
        for _ in range(self.max_iter):
            before = B
            B = cyclic_descent(B, Y @ W.T + self.nu * (Phi @ P), W @ W.T)
            W, P = _ridge(B, Y, self.lam), _ridge(Phi, B, self.ridge)
            course.append(self._objective(Y, Phi, B, W, P))
            if np.array_equal(B, before):
                break
        self.report_["objective"] = course
        self.n_iter_ = len(course) - 1
        return P[:-1], P[-1]

    def _objective(self, Y: Floats, Phi: Floats, B: Floats, W: Floats, P: Floats) -> float:
        fit = np.sum((Y - B @ W) ** 2) + self.lam * np.sum(W**2)
        return float(fit + self.nu * (np.sum((B - Phi @ P) ** 2) + self.ridge * np.sum(P**2)))
