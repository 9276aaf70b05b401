"""Supervised discrete hashing."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash._parameters import check_count, check_positive
from ilhash.diversity import seed_for
from ilhash.methods._base import KernelMethod, TrainingSet

__all__ = ["SDH", "cyclic_descent"]

_MAX_CYCLES = 100  # of coordinate descent over the bits; a handful is what it takes

Floats = NDArray[np.float64]


def cyclic_descent(B: Floats, Q: Floats, G: Floats) -> Floats:
    """Lower |B W|^2 - 2 tr(B'Q), G = W W', over B in {-1,+1}, one column (bit) at a time, until nothing changes.

    A bit given the others is optimal in closed form, b = sign(q - B' g') with the bit itself left out; where both
    values are equally good it stays.
    """
    B = B.copy(order="F")
    for _ in range(_MAX_CYCLES):
        changed = False
        for bit in range(B.shape[1]):
            others = G[:, bit].copy()
            others[bit] = 0.0
            pull = Q[:, bit] - B @ others
            new = np.where(pull == 0, B[:, bit], np.where(pull > 0, 1.0, -1.0))
            changed |= not np.array_equal(new, B[:, bit])
            B[:, bit] = new
        if not changed:
            break
    return B


def _ridge(A: Floats, target: Floats, weight: float) -> Floats:
    """Return argmin_W |target - A W|^2 + weight |W|^2."""
    gram = A.T @ A
    gram.flat[:: len(gram) + 1] += weight
    return np.asarray(scipy.linalg.solve(gram, A.T @ target, assume_a="pos"))


class SDH(KernelMethod):
    """Codes from which a linear classifier predicts the labels, found bit by bit without relaxation.

    Minimises |Y - B W|^2 + lambda |W|^2 + nu (|B - Phi P|^2 + delta |P|^2) over codes B in {-1,+1} (N, b), the
    classifier W (b, L) and the weights P of the hash functions sign(P'phi(x)), Y being the labels' indicator and phi
    radial basis functions around anchors and a constant. W and P are ridge regressions, B comes from discrete cyclic
    coordinate descent: the objective never rises.

    Parameters
    ----------
    n_bits : int, default 64
        Number of bits b.
    iterations : int, default 5
        Rounds of W, P and B; it ends sooner where B does not change.
    lam, nu : float, default 1 and 1e-5
        Weights lambda and nu.
    ridge : float, default 0.01
        Weight delta; the original has none, which fails where there are more anchors than points.
    n_centers, kernel_width, scaling : as in ILH
        Number of anchors, the width of the kernel, and the scale of the features.
    n_train : int or "auto", default "auto"
        Training points N; "auto" is up to 5,000.
    unlabeled : label or None, default -1
        The label that means unknown.
    random_state : int, RandomState, Generator or None, default 0
        Training points, anchors, and the codes to begin with.

    Attributes
    ----------
    report_ : ``objective`` before and after each round

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

    def __init__(
        self,
        n_bits: int = 64,
        *,
        iterations: int = 5,
        lam: float = 1.0,
        nu: float = 1e-5,
        ridge: float = 0.01,
        n_centers: int = 500,
        kernel_width: float | None = None,
        scaling: str = "columns",
        n_train: int | str = "auto",
        unlabeled: Any = -1,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_bits,
            n_centers=n_centers,
            kernel_width=kernel_width,
            scaling=scaling,
            n_train=n_train,
            unlabeled=unlabeled,
            random_state=random_state,
        )
        self.iterations = iterations
        self.lam = lam
        self.nu = nu
        self.ridge = ridge

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("iterations", self.iterations)
        for name in ("lam", "nu", "ridge"):
            check_positive(name, getattr(self, name))

    def _weights(self, phi: NDArray[np.float32], training: TrainingSet, seed: int) -> tuple[Floats, Floats]:
        Phi = np.column_stack([phi, np.ones(len(phi))]).astype(np.float64)
        Y = training.labels.astype(np.float64)
        rng = np.random.default_rng(seed_for(seed, "start"))
        B = rng.choice([-1.0, 1.0], (len(Y), self.n_bits))
        W, P = _ridge(B, Y, self.lam), _ridge(Phi, B, self.ridge)
        course = [self._objective(Y, Phi, B, W, P)]
        for _ in range(self.iterations):
            before = B
            B = cyclic_descent(B, Y @ W.T + self.nu * (Phi @ P), W @ W.T)
            W, P = _ridge(B, Y, self.lam), _ridge(Phi, B, self.ridge)
            course.append(self._objective(Y, Phi, B, W, P))
            if np.array_equal(B, before):
                break
        self.report_["objective"] = course
        return P[:-1], P[-1]

    def _objective(self, Y: Floats, Phi: Floats, B: Floats, W: Floats, P: Floats) -> float:
        fit = np.sum((Y - B @ W) ** 2) + self.lam * np.sum(W**2)
        return float(fit + self.nu * (np.sum((B - Phi @ P) ** 2) + self.ridge * np.sum(P**2)))
