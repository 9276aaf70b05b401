"""Linear hash functions: the sign of w'x + bias, trained as linear SVMs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.storage import Values
from ilhash.vectors import GatheredRows, GatheredSparse, SparseRows

from ._base import SUBSETS, Features, Floats, HashFunction, RowFunction, affine, own_columns, stacked_fields
from ._kinds import register
from ._learner import Fitted, Learner, LearnerSettings, standardization
from ._preconditioner import SAMPLE, Preconditioner, search
from ._sparse_svm import fit_squared_hinge_sparse
from ._svm import fit_squared_hinge

# Functions of d out of D features: below this share of features, and from this number of vectors on, it is faster to
# gather features than to multiply by a matrix that is mostly zeros (measured: benchmarks/encode.py).
GATHER_BELOW = 0.25
GATHER_ROWS = 64
GATHER_ABOVE = 1 << 24  # entries of that matrix: a larger one, which a small file could ask for, is never made


@dataclass(frozen=True, eq=False)
class LinearFunction(RowFunction):
    """h(x) = w'x + bias on all features, or on a subset of d."""

    kind: ClassVar[str] = "linear"
    takes_sparse: ClassVar[bool] = True
    row: ClassVar[tuple[str, ...]] = ("weights", "bias", "features")
    schema: ClassVar[dict[str, Values]] = {
        "weights": Values("float32", ("bits", "d")),
        "bias": Values("float32", ("bits",)),
        "features": SUBSETS,
    }
    weights: Floats
    bias: np.float32
    features: Features = None

    def margins(self, X: Any) -> Floats:
        return np.asarray(own_columns(X, self.features) @ self.weights + self.bias, dtype=np.float32)

    def encoding_group(self, n_features: int) -> object:
        """Functions of few features are gathered, by their number; all others are one product."""
        return len(self.weights) if self._sees_few(n_features) else None

    def _sees_few(self, n_features: int) -> bool:
        return self.features is not None and len(self.features) < GATHER_BELOW * n_features

    @classmethod
    def stacked(cls, functions: Sequence[LinearFunction], n_features: int) -> Callable[[Floats], Floats]:
        bias = stacked_fields(functions, "bias")["bias"]
        few = functions[0]._sees_few(n_features)
        product = None
        if not few or len(functions) * n_features <= GATHER_ABOVE:
            product = affine(padded_weights(functions, n_features), bias)
        if product is not None and not few:
            return product
        own = stacked_fields(functions, *cls.row)

        def margins(X: Any) -> Floats:
            if product is not None and (len(X) < GATHER_ROWS or isinstance(X, SparseRows)):
                return product(X)
            if isinstance(X, SparseRows):
                return np.stack([function.margins(X) for function in functions], axis=1)
            out = np.empty((len(X), len(functions)), np.float32)
            _core.project_subsets(X, own["weights"], own["features"], bias, out)
            return out

        return margins

    def storage_group(self) -> object:
        return len(self.weights), self.features is None


def padded_weights(functions: Sequence[HashFunction], n_features: int) -> Floats:
    """Return the weights of linear functions of all features or subsets as one matrix; biases are left out.

    Parameters
    ----------
    functions : sequence of LinearFunction
    n_features : int, number of features D

    Returns
    -------
    float32 (len(functions), D), zero for the features that a function does not see
    """
    out = np.zeros((len(functions), n_features), np.float32)
    for row, function in enumerate(functions):
        if not isinstance(function, LinearFunction):
            raise ValueError(f"all functions must be linear to have weights, got bit {row} of kind {function.kind!r}")
        out[row, slice(None) if function.features is None else function.features] = function.weights
    return out


@dataclass(frozen=True)
class LinearLearner(Learner):
    """Linear SVM, C the weight of its loss, on standardised features; that is folded into the weights.

    Where C is to be found ``automatic``, that of sparse rows is 1 over the mean of their squared lengths: rows of very
    many columns, which tell nearly any bits apart, would otherwise be learnt by heart.
    """

    C: float = 0.01
    scaling: str = "columns"
    automatic: bool = False
    preconditioner: Preconditioner | None = None

    @classmethod
    def from_settings(cls, settings: LearnerSettings) -> LinearLearner:
        """Return the learner that a model's parameters mean."""
        C = settings.cost(cls.C)
        sample = settings.sample(SAMPLE) if settings.n_train else None
        preconditioner = None
        if isinstance(sample, GatheredRows):
            preconditioner = Preconditioner.of(sample, settings.scaling, C, settings.n_train)
        return cls(C, settings.scaling, settings.C == "auto", preconditioner)

    def fit(self, rows: GatheredRows | GatheredSparse, z: NDArray[np.int8], features: Features, seed: int) -> Fitted:
        shift, factor = standardization(rows, self.scaling)
        if isinstance(rows, GatheredSparse):
            return self._fit_sparse(rows, z, features, factor)
        y = z.astype(np.float32)
        solution, margins = self._preconditioned(rows, shift, factor, y, features)
        weights = solution[:-1] * factor
        function = LinearFunction(weights.astype(np.float32), np.float32(solution[-1] - weights @ shift), features)
        return Fitted(function, margins, z)

    def _preconditioned(
        self,
        rows: GatheredRows,
        shift: NDArray[np.float64],
        factor: NDArray[np.float64],
        y: Floats,
        features: Features,
    ) -> tuple[Floats, Floats]:
        """Return the SVM of standardised rows and its margins, by the model's preconditioner as far as that leads."""
        inverse = None if self.preconditioner is None else self.preconditioner.inverse(features)
        start = None
        if inverse is not None:
            start, margins, solved = search(rows.with_ones, y, self.C, inverse, shift, factor)
            if solved:
                return start, margins
        return fit_squared_hinge(rows.rescaled(shift, factor).with_ones, y, self.C, start=start)

    def _fit_sparse(
        self, rows: GatheredSparse, z: NDArray[np.int8], features: Features, factor: NDArray[np.float64]
    ) -> Fitted:
        """Fit to sparse rows, which are scaled and not shifted: the bias is all that moves the hyperplane."""
        seen = np.flatnonzero(factor)
        matrix = rows.values.matrix[:, seen].astype(np.float64)
        matrix.data *= factor[seen][matrix.indices]
        lengths = float(matrix.data @ matrix.data) / matrix.shape[0]
        C = 1.0 / lengths if self.automatic and lengths > 0 else self.C
        solution, bias, margins = fit_squared_hinge_sparse(matrix, z.astype(np.float64), C)
        weights = np.zeros(len(factor), np.float32)
        weights[seen] = solution * factor[seen]
        return Fitted(LinearFunction(weights, np.float32(bias), features), margins.astype(np.float32), z)

    def exactly(self, weights: Floats, bias: float, rows: GatheredRows | GatheredSparse, features: Features) -> Fitted:
        function = LinearFunction(weights, np.float32(bias), features)
        margins = np.asarray(rows.values @ weights + function.bias, dtype=np.float32)
        return Fitted(function, margins, np.where(margins > 0, 1, -1).astype(np.int8))


register(LinearFunction, LinearLearner.from_settings)
