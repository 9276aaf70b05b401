"""Thresholded PCA."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.methods._base import LinearMethod, TrainingSet


class TPCA(LinearMethod):
    """Signs of the principal components, largest variance first; as many bits as the data have dimensions.

    Parameters
    ----------
    n_bits : int, default 64, number of bits b, at most the number of directions in which the training points vary

    References
    ----------
    X.-J. Wang, L. Zhang, F. Jing and W.-Y. Ma, AnnoSearch: image auto-annotation by search, CVPR 2006.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> TPCA(n_bits=4).fit(X).transform(X).shape
    (100, 1)
    """

    nested: ClassVar[bool] = True

    def _directions(self, training: TrainingSet, seed: int) -> tuple[NDArray[np.floating[Any]], None]:
        variances, axes = self._principal_axes(training, "; LSH, SH and BaggedTPCA have no such limit")
        self.report_["variances"] = variances[: self.n_bits].tolist()
        return axes[:, : self.n_bits], None
