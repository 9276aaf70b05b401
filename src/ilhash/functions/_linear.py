"""Linear hash functions: the sign of w'x + bias, trained as linear SVMs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.functions._base import Fitted, HashFunction, Margins, standardisation
from ilhash.functions._svm import fit_squared_hinge
from ilhash.vectors import Rows

__all__ = ["LinearFunction", "LinearLearner", "padded_weights"]


@dataclass(frozen=True, eq=False)
class LinearFunction:
    """h(x) = w'x + bias on all features, or on a subset of d."""

    kind: ClassVar[str] = "linear"
    weights: NDArray[np.float32]
    bias: np.float32
    features: NDArray[np.int32] | None = None

    def margins(self, X: NDArray[np.float32]) -> Margins:
        """Return the margin of every row."""
        own = X if self.features is None else X[:, self.features]
        return np.asarray(own @ self.weights + self.bias, dtype=np.float32)


def padded_weights(functions: Sequence[HashFunction], n_features: int) -> NDArray[np.float32]:
    """Return one row of weights per function, with zeros for the features it does not see; biases are left out."""
    out = np.zeros((len(functions), n_features), np.float32)
    for row, function in enumerate(functions):
        if not isinstance(function, LinearFunction):
            raise ValueError(f"all functions must be linear to have weights, got bit {row} of kind {function.kind!r}")
        out[row, slice(None) if function.features is None else function.features] = function.weights
    return out


@dataclass(frozen=True)
class LinearLearner:
    """Linear SVM on standardised features; the standardisation is folded into the weights."""

    C: float = 0.01
    scaling: str = "columns"

    def fit(self, rows: Rows, z: NDArray[np.int8], features: NDArray[np.int32] | None, seed: int) -> Fitted:
        """Fit to bits z in {-1,+1}."""
        shift, factor = standardisation(rows, self.scaling)
        scaled = rows.rescaled(shift, factor)
        solution, margins = fit_squared_hinge(scaled.with_ones, z.astype(np.float32), self.C)
        weights = solution[:-1] * factor
        function = LinearFunction(weights.astype(np.float32), np.float32(solution[-1] - weights @ shift), features)
        return Fitted(function, margins, z)
