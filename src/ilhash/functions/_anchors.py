"""Hash functions on an anchor graph: a point is a mixture of its nearest anchors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.functions._base import Margins
from ilhash.functions._kernel import RadialBasis

__all__ = ["AnchorFunction", "Anchors"]


@dataclass(frozen=True, eq=False)
class Anchors:
    """z(x): exp(-|x - u_j|^2 / s) for the nearest anchors u_j, 0 for the others, and together 1.

    Attributes
    ----------
    basis : the anchors as radial basis functions
    nearest : number of anchors that a point is a mixture of
    """

    basis: RadialBasis
    nearest: int

    def of(self, X: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return the nearest anchors of every row, (n, nearest), and their shares."""
        distances = self.basis.squared_distances(X)
        count = min(self.nearest, distances.shape[1])
        which = np.argpartition(distances, count - 1, axis=1)[:, :count]
        near = np.take_along_axis(distances, which, axis=1)
        near -= near.min(axis=1, keepdims=True)  # shares stay what they are, and far from all anchors none vanishes
        share = np.exp(near * np.float32(-1.0 / self.basis.width))
        return which, share / share.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class AnchorFunction:
    """h(x) = w'z(x); or, with cuts (upper, lower), what is beyond them: h - upper where h > 0, lower - h elsewhere."""

    kind: ClassVar[str] = "anchors"
    features: ClassVar[None] = None
    anchors: Anchors
    weights: NDArray[np.float32]
    cuts: NDArray[np.float32] | None = None

    def margins(self, X: NDArray[np.float32]) -> Margins:
        """Return the margin of every row."""
        which, share = self.anchors.of(X)
        return self.folded(np.einsum("ns,ns->n", share, self.weights[which]))

    def folded(self, values: NDArray[np.float32]) -> Margins:
        """Turn w'z into margins: the second layer looks at both sides of the first."""
        if self.cuts is None:
            return values
        return np.asarray(np.where(values > 0, values - self.cuts[0], self.cuts[1] - values))
