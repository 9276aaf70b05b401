"""Iterative quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash._parameters import check_count
from ilhash.diversity import seed_for
from ilhash.methods._axes import principal_axes, random_rotation
from ilhash.methods._base import LinearMethod, TrainingSet

__all__ = ["ITQ", "rotate_to_corners"]


def rotate_to_corners(
    V: NDArray[np.float32], R: NDArray[np.float64], iterations: int
) -> tuple[NDArray[np.float64], list[float]]:
    """Alternate B = sign(V R) and the rotation R that brings V closest to B (orthogonal Procrustes).

    V is (N, c) and R (c, b) with orthonormal rows, c <= b. Returns R and the quantisation loss |B - V R|^2 / N of the R
    given and of each one after it.
    """
    losses = []
    size = float(np.einsum("ij,ij->", V, V, dtype=np.float64)) + len(V) * R.shape[1]  # |V R|^2 + |B|^2 for any R and B
    for iteration in range(iterations + 1):
        B = np.where(V @ R.astype(np.float32) > 0, np.float32(1.0), np.float32(-1.0))
        fit = (V.T @ B).astype(np.float64)
        losses.append((size - 2.0 * float(np.sum(fit * R))) / len(V))
        if iteration < iterations:
            left, _, right = scipy.linalg.svd(fit, full_matrices=False)
            R = left @ right
    return R, losses


class ITQ(LinearMethod):
    """PCA, then the rotation that brings the vectors closest to the corners of the cube, found by alternation.

    Minimises |B - V R|^2 over codes B in {-1,+1} and rotations R, V being the first b principal components. The bits
    share R: a prefix is not the shorter model.

    Parameters
    ----------
    n_bits : int, default 64
        Number of bits b, at most the number of directions in which the training points vary.
    iterations : int, default 50
        Alternations of codes and rotation.
    n_train : int or "auto", default "auto"
        Training points N; "auto" is up to 50,000.
    random_state : int, RandomState, Generator or None, default 0
        The first rotation, and which points are drawn where there are more than N.

    Attributes
    ----------
    report_ : ``loss``, the quantisation loss per point before and after each alternation

    References
    ----------
    Y. Gong, S. Lazebnik, A. Gordo and F. Perronnin, Iterative quantization: a Procrustean approach to learning binary
    codes for large-scale image retrieval, IEEE TPAMI 35(12), 2013.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = ITQ(n_bits=4).fit(X)
    >>> model.report_["loss"][-1] <= model.report_["loss"][0]
    True
    """

    def __init__(
        self, n_bits: int = 64, *, iterations: int = 50, n_train: int | str = "auto", random_state: Any = 0
    ) -> None:
        super().__init__(n_bits, n_train=n_train, random_state=random_state)
        self.iterations = iterations

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("iterations", self.iterations)

    def _directions(self, training: TrainingSet, seed: int) -> tuple[NDArray[np.floating[Any]], None]:
        variances, axes = principal_axes(training.rows)
        self._refuse_bits_beyond(
            len(variances),
            f"one per direction in which the {self.n_train_} training points vary; LSH has no such limit",
        )
        W = axes[:, : self.n_bits] / np.sqrt(variances[: self.n_bits].mean())
        V = training.centred() @ W.astype(np.float32)
        start = random_rotation(self.n_bits, np.random.default_rng(seed_for(seed, "start")))
        R, self.report_["loss"] = rotate_to_corners(V, start, self.iterations)
        return W @ R, None
