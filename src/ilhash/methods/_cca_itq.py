"""Supervised iterative quantisation: canonical correlations with the labels instead of principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash._parameters import count, positive
from ilhash.diversity import seed_for
from ilhash.methods._axes import covariance, one_way_round
from ilhash.methods._base import LinearMethod, SupervisedMethod, TrainingSet, UndefinedError
from ilhash.rotations import random_rotation, rotate_to_corners

_UNCORRELATED = 1e-6  # canonical correlations below this are rounding


def canonical_directions(
    training: TrainingSet, regularization: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the directions w of canonical correlation with the labels, as columns, and their correlations.

    They solve S_xy S_yy^+ S_yx w = r^2 S_xx w, scaled to w'S_xx w = 1, where S_xx has ``regularization`` times its
    mean diagonal added to the diagonal. There are at most L - 1 of them for L exclusive labels.
    """
    sxx = covariance(training.rows)
    sxx.flat[:: len(sxx) + 1] += regularization * max(np.trace(sxx) / len(sxx), np.finfo(float).tiny)
    Y = training.labels - training.labels.mean(axis=0, dtype=np.float64)
    sizes, axes = scipy.linalg.eigh(Y.T @ Y / len(Y))
    kept = sizes > 1e-10 * sizes[-1]
    whitened = (Y @ (axes[:, kept] / np.sqrt(sizes[kept]))).astype(np.float32)
    sxy = (training.centered().T @ whitened).astype(np.float64) / len(Y)
    half = scipy.linalg.cholesky(sxx, lower=True)
    left, correlations, _ = scipy.linalg.svd(scipy.linalg.solve_triangular(half, sxy, lower=True), full_matrices=False)
    some = correlations > _UNCORRELATED
    directions = scipy.linalg.solve_triangular(half.T, left[:, some], lower=False)
    return one_way_round(directions), correlations[some]


@dataclass(eq=False, repr=False, kw_only=True)
class CCAITQ(LinearMethod, SupervisedMethod):
    """Directions correlated with the labels (CCA), then the rotation that brings points closest to the cube's corners.

    Each canonical direction is weighted by its correlation, as in the paper. L labels give at most L - 1 directions of
    any correlation; all others would have weight 0. So with more bits than directions (c of them) the bits are b
    hyperplanes in the c-dimensional space: the rotation becomes a (c, b) matrix with orthonormal rows, learnt by the
    same alternation. Bits then repeat each other more and more, which bounds what many bits can bring.

    Parameters
    ----------
    max_iter : int, default 50, alternations of codes and rotation
    regularization : float, default 1e-4
        What is added to the diagonal of the covariance of X, as a share of its mean (the paper's rho).
    n_train : int or "auto", default "auto", training points N; "auto" is up to 50,000

    Attributes
    ----------
    report_ : dict
        ``correlations`` of the directions used, ``loss``, the quantisation loss before and after each alternation.

    References
    ----------
    Y. Gong, S. Lazebnik, A. Gordo and F. Perronnin, Iterative quantization: a Procrustean approach to learning binary
    codes for large-scale image retrieval, IEEE TPAMI 35(12), 2013, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = CCAITQ(n_bits=6).fit(X, np.arange(100) % 3)
    >>> len(model.report_["correlations"])
    2
    """

    auto_train: ClassVar[int] = 50_000
    renamed: ClassVar[dict[str, str]] = {"iterations": "max_iter", "regularisation": "regularization"}

    max_iter: int = count(50)
    regularization: float = positive(1e-4)

    def _directions(self, training: TrainingSet, seed: int) -> tuple[NDArray[np.floating[Any]], None]:
        directions, correlations = canonical_directions(training, self.regularization)
        if not len(correlations):
            raise UndefinedError("X must be correlated with the labels, got vectors that say nothing about them")
        W = directions[:, : self.n_bits] * correlations[: self.n_bits]
        self.report_["correlations"] = correlations[: self.n_bits].tolist()
        V = training.centered() @ W.astype(np.float32)
        start = random_rotation(self.n_bits, np.random.default_rng(seed_for(seed, "start")))[: V.shape[1]]
        R, self.report_["loss"] = rotate_to_corners(V, start, self.max_iter)
        self.n_iter_ = self.max_iter
        return W @ R, None
