"""Periodic hash functions: the sign of a cosine of a linear function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ilhash.storage import Values

from ._base import Floats, RowFunction, affine, stacked_fields
from ._kinds import register


@register
@dataclass(frozen=True, eq=False)
class CosineFunction(RowFunction):
    """h(x) = cos(w'x + phase)."""

    kind: ClassVar[str] = "cosine"
    row: ClassVar[tuple[str, ...]] = ("weights", "phase")
    schema: ClassVar[dict[str, Values]] = {
        "weights": Values("float32", ("bits", "D")),
        "phase": Values("float32", ("bits",)),
    }
    weights: Floats
    phase: np.float32

    def margins(self, X: Floats) -> Floats:
        return np.asarray(np.cos(X @ self.weights + self.phase), dtype=np.float32)

    @classmethod
    def stacked(cls, functions: Sequence[CosineFunction], n_features: int) -> Callable[[Floats], Floats]:
        own = stacked_fields(functions, *cls.row)
        angles = affine(own["weights"], own["phase"])

        def margins(X: Floats) -> Floats:
            out = angles(X)
            return np.cos(out, out=out)

        return margins

    def storage_group(self) -> object:
        """All are stored and computed together."""
        return None
