"""Iterative quantisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash._parameters import count
from ilhash.diversity import seed_for
from ilhash.methods._base import LinearMethod, TrainingSet
from ilhash.rotations import random_rotation, rotate_to_corners


@dataclass(eq=False, repr=False, kw_only=True)
class ITQ(LinearMethod):
    """PCA, then the rotation that brings the vectors closest to the corners of the cube, found by alternation.

    Minimises ``|B - V R|^2`` over codes B in {-1,+1} and rotations R, V being the first b principal components. The
    bits share R: a prefix is not the shorter model.

    Parameters
    ----------
    n_bits : int, default 64, number of bits b, at most the number of directions in which the training points vary
    max_iter : int, default 50, alternations of codes and rotation

    Attributes
    ----------
    report_ : dict, ``loss``, the quantisation loss per point before and after each alternation

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

    renamed: ClassVar[dict[str, str]] = {"iterations": "max_iter"}

    max_iter: int = count(50)

    def _directions(self, training: TrainingSet, seed: int) -> tuple[NDArray[np.floating[Any]], None]:
        variances, axes = self._principal_axes(training, "; LSH has no such limit")
        W = axes[:, : self.n_bits] / np.sqrt(variances[: self.n_bits].mean())
        V = training.centered() @ W.astype(np.float32)
        start = random_rotation(self.n_bits, np.random.default_rng(seed_for(seed, "start")))
        R, self.report_["loss"] = rotate_to_corners(V, start, self.max_iter)
        self.n_iter_ = self.max_iter
        return W @ R, None
