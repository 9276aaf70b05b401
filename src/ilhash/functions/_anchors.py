"""Hash functions on an anchor graph: a point is a mixture of its nearest anchors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.storage import Values

from ._base import Floats, HashFunction, Stored, stacked_fields
from ._kernel import RadialBasis
from ._kinds import register


@dataclass(frozen=True, eq=False)
class Anchors:
    """z(x): exp(-|x - u_j|^2 / s) for the nearest anchors u_j, 0 for the others, and together 1."""

    basis: RadialBasis  # around the anchors
    nearest: int  # number of anchors that a point is a mixture of

    def of(self, X: Floats) -> tuple[NDArray[np.intp], Floats]:
        """Return the nearest anchors of every row, (n, nearest), and their shares."""
        distances = self.basis.squared_distances(X)
        count = min(self.nearest, distances.shape[1])
        which = np.argpartition(distances, count - 1, axis=1)[:, :count]
        near = np.take_along_axis(distances, which, axis=1)
        near -= near.min(axis=1, keepdims=True)  # shares stay what they are, and far from all anchors none vanishes
        share = np.exp(near * np.float32(-1.0 / self.basis.width))
        return which, share / share.sum(axis=1, keepdims=True)


@register
@dataclass(frozen=True, eq=False)
class AnchorFunction(HashFunction):
    """h(x) = w'z(x); or, with cuts, what is beyond them: h - upper where h > 0, lower - h elsewhere."""

    kind: ClassVar[str] = "anchors"
    schema: ClassVar[dict[str, Values]] = {
        **RadialBasis.schema,
        "weights": Values("float32", ("bits", "m")),
        "cuts": Values("float32", ("bits", 2), finite=False),  # both NaN where a function has none
        "nearest": Values("int32", (1,), least=1),
    }
    anchors: Anchors
    weights: Floats
    cuts: Floats | None = None  # (upper, lower)

    def margins(self, X: Floats) -> Floats:
        which, share = self.anchors.of(X)
        return self.folded(np.einsum("ns,ns->n", share, self.weights[which]))

    def folded(self, values: Floats) -> Floats:
        """Turn w'z into margins: the second layer looks at both sides of the first."""
        if self.cuts is None:
            return values
        return np.asarray(np.where(values > 0, values - self.cuts[0], self.cuts[1] - values))

    def numbers_per_row(self, n_bits: int) -> int:
        return max(len(self.anchors.basis.centers), self.anchors.nearest * n_bits)

    @classmethod
    def stacked(cls, functions: Sequence[AnchorFunction], n_features: int) -> Callable[[Floats], Floats]:
        anchors = functions[0].anchors
        weights = np.stack([function.weights for function in functions], axis=1)

        def margins(X: Floats) -> Floats:
            which, share = anchors.of(X)
            values = np.einsum("ns,nsb->nb", share, weights[which])
            return np.stack([function.folded(values[:, bit]) for bit, function in enumerate(functions)], axis=1)

        return margins

    def storage_group(self) -> object:
        return id(self.anchors)

    @classmethod
    def to_stored(cls, functions: Sequence[AnchorFunction]) -> Stored:
        anchors = functions[0].anchors
        no_cuts = (np.nan, np.nan)
        own = {
            "cuts": np.array([no_cuts if f.cuts is None else f.cuts for f in functions], np.float32),
            "nearest": np.array([anchors.nearest], np.int32),
        }
        return Stored(own | stacked_fields(functions, "weights") | anchors.basis.to_arrays())

    @classmethod
    def from_stored(cls, stored: Stored) -> list[AnchorFunction]:
        arrays = stored.arrays
        basis, nearest, none = RadialBasis.from_arrays(arrays), int(arrays["nearest"][0]), np.isnan(arrays["cuts"])
        if nearest > len(basis.centers):
            raise stored.damaged(f"have at most its {len(basis.centers)} anchors for the nearest, got {nearest}")
        if (none.any(axis=1) != none.all(axis=1)).any() or np.isinf(arrays["cuts"]).any():
            raise stored.damaged("have two finite cuts for each bit or none, got others")
        anchors = Anchors(basis, nearest)
        cuts = [None if nothing.all() else pair for pair, nothing in zip(arrays["cuts"], none, strict=True)]
        return [cls(anchors, *own) for own in zip(arrays["weights"], cuts, strict=True)]
