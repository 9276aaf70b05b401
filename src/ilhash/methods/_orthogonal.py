"""Orthogonal projections as close to binary as they can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash._parameters import count, one_of
from ilhash.diversity import seed_for
from ilhash.methods._axes import covariance
from ilhash.methods._base import LinearMethod, TrainingSet
from ilhash.methods._signs import signs
from ilhash.rotations import random_rotation, rotate_to_corners

_ROTATIONS = 50  # alternations of ITQ, where it is the start


def project_to_corners(
    X: NDArray[np.float32], W: NDArray[np.float64], C: NDArray[np.float64], max_iter: int
) -> tuple[NDArray[np.float64], list[float]]:
    """Alternate B = sign(X W) and a step of W that lowers |B - X W|^2 / N and keeps its columns orthonormal.

    With fewer projections than features the best W has no closed form (|X W| is not constant, as it is for ITQ's
    rotation). But tr W'(C - c I)W is concave in W, c being the largest eigenvalue of C = X'X / N, and replacing it by
    its tangent gives an upper bound that an orthogonal Procrustes problem minimises: W = U V' from the singular value
    decomposition of X'B / N + (c I - C) W.

    Returns W and the objective at the start and after each step, never increasing.
    """
    n = len(X)
    largest = float(scipy.linalg.eigvalsh(C, subset_by_index=(len(C) - 1, len(C) - 1))[0])
    course = []
    for iteration in range(max_iter + 1):
        B = signs(X @ W.astype(np.float32))
        XB = (X.T @ B).astype(np.float64) / n
        CW = C @ W
        course.append(float(W.shape[1] - 2.0 * np.sum(XB * W) + np.sum(CW * W)))
        if iteration < max_iter:
            left, _, right = scipy.linalg.svd(XB + largest * W - CW, full_matrices=False)
            W = left @ right
    return W, course


@dataclass(eq=False, repr=False, kw_only=True)
class OrthogonalProjection(LinearMethod):
    """Orthonormal projections that come as close to -1 and +1 as they can, begun from PCA or ITQ.

    Minimises ``|B - W X|^2`` over codes B in {-1,+1} and W (b, D) with orthonormal rows: the last equation of the ILH
    paper's discussion. It holds nothing about neighbours or reconstruction but what the start brings. X is centred and
    scaled by one factor, so that its first b principal components have variance 1 on average.

    Parameters
    ----------
    n_bits : int, default 64, number of bits b, at most the number of directions in which the training points vary
    init : {"itq", "pca"}, default "itq", projections to begin with
    max_iter : int, default 50, alternations of codes and projections

    Attributes
    ----------
    report_ : dict, ``objective``, ``|B - W X|^2 / N`` at the start and after each alternation

    References
    ----------
    M. Rastegari, C. Keskin, P. Kohli and S. Izadi, Computationally bounded retrieval, CVPR 2015.
    Y. Xia, K. He, P. Kohli and J. Sun, Sparse projections for high-dimensional binary codes, CVPR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> model = OrthogonalProjection(n_bits=4).fit(X)
    >>> model.report_["objective"][-1] <= model.report_["objective"][0]
    True
    """

    renamed: ClassVar[dict[str, str]] = {"start": "init", "iterations": "max_iter"}

    init: str = one_of("itq", "pca")
    max_iter: int = count(50)

    def _directions(self, training: TrainingSet, seed: int) -> tuple[NDArray[np.floating[Any]], None]:
        variances, axes = self._principal_axes(training, "; LSH has no such limit")
        factor = 1.0 / np.sqrt(variances[: self.n_bits].mean())
        X = training.centered() * np.float32(factor)
        W = axes[:, : self.n_bits]
        if self.init == "itq":
            first = random_rotation(self.n_bits, np.random.default_rng(seed_for(seed, "start")))
            W = W @ rotate_to_corners(X @ W.astype(np.float32), first, _ROTATIONS)[0]
        W, self.report_["objective"] = project_to_corners(X, W, covariance(training.rows) * factor**2, self.max_iter)
        self.n_iter_ = self.max_iter
        return W, None
