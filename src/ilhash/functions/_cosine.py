"""Hash functions that swing: the sign of a cosine of a linear function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.functions._base import Margins

__all__ = ["CosineFunction"]


@dataclass(frozen=True, eq=False)
class CosineFunction:
    """h(x) = cos(w'x + phase)."""

    kind: ClassVar[str] = "cosine"
    features: ClassVar[None] = None
    weights: NDArray[np.float32]
    phase: np.float32

    def margins(self, X: NDArray[np.float32]) -> Margins:
        """Return the margin of every row."""
        return np.asarray(np.cos(X @ self.weights + self.phase), dtype=np.float32)
