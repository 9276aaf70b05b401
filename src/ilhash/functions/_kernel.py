"""Kernel hash functions: a linear SVM on radial basis functions exp(-|x - c|^2 / s) around some of the points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.functions._base import Fitted, HashFunction, Margins, standardisation
from ilhash.functions._svm import fit_squared_hinge
from ilhash.vectors import Rows

__all__ = ["KernelExpansions", "KernelFunction", "KernelLearner", "RadialBasis", "in_one_kernel", "share_common_basis"]


Array = NDArray[np.float32]
KernelExpansions = tuple[Array | list[Array], Array | list[Array], float]  # coefficients, centres, width


@dataclass(frozen=True, eq=False)
class RadialBasis:
    """phi_j(x) = exp(-|factor * (x - origin) - c_j|^2 / s).

    Attributes
    ----------
    centers : float32 (m, d), already scaled by ``factor``
    factor : float32 (d,), the scale of each feature
    width : s
    features : the features it looks at, or None for all
    common : whether all bits of a model share it
    """

    centers: NDArray[np.float32]
    factor: NDArray[np.float32]
    width: float
    features: NDArray[np.int32] | None = None
    common: bool = False

    @classmethod
    def around(
        cls,
        rows: Rows,
        centers: NDArray[np.int64],
        scaling: str,
        width: float | None,
        features: NDArray[np.int32] | None = None,
        common: bool = False,
    ) -> RadialBasis:
        """Centre on some of the rows; by default s is half the mean squared distance from the rows to the centres."""
        factor = standardisation(rows, scaling)[1].astype(np.float32)
        basis = cls(rows.values[centers] * factor, factor, 1.0, features, common)
        if width is None:
            width = 0.5 * float(basis.squared_distances(rows.values).mean(dtype=np.float64))
        return cls(basis.centers, factor, width if width > 0 else 1.0, features, common)

    def squared_distances(self, values: Array, out: Array | None = None) -> Array:
        """Squared distances of rows (own features only) to the centres."""
        scaled = values * self.factor
        out = np.matmul(scaled, (np.float32(-2.0) * self.centers).T, out=out)
        out += np.einsum("ij,ij->i", scaled, scaled)[:, None]
        out += np.einsum("ij,ij->i", self.centers, self.centers)
        return np.maximum(out, np.float32(0.0), out=out)

    def evaluate(self, values: Array, out: Array) -> None:
        """Write phi of rows (own features only) into ``out``."""
        self.squared_distances(values, out)
        out *= np.float32(-1.0 / self.width)
        np.exp(out, out=out)

    def of(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return phi of rows with all features."""
        out = np.empty((len(X), len(self.centers)), np.float32)
        self.evaluate(X if self.features is None else X[:, self.features], out)
        return out


@dataclass(frozen=True, eq=False)
class KernelFunction:
    """h(x) = w'phi(x) + bias."""

    kind: ClassVar[str] = "kernel"
    basis: RadialBasis
    weights: NDArray[np.float32]
    bias: np.float32

    @property
    def features(self) -> NDArray[np.int32] | None:
        """The features the basis looks at."""
        return self.basis.features

    def margins(self, X: NDArray[np.float32]) -> Margins:
        """Return the margin of every row."""
        return np.asarray(self.basis.of(X) @ self.weights + self.bias, dtype=np.float32)


@dataclass(frozen=True)
class KernelLearner:
    """Kernel SVM with its centres drawn from the bit's own points (private) or given (common).

    ``common_sample`` holds seeded rows of X with all features; its first ``n_centers`` rows are the common centres.
    """

    C: float = 10.0
    n_centers: int = 500
    scaling: str = "columns"
    width: float | None = None
    common_sample: Rows | None = None

    def fit(self, rows: Rows, z: NDArray[np.int8], features: NDArray[np.int32] | None, seed: int) -> Fitted:
        """Fit to bits z in {-1,+1}."""
        basis = self._basis(rows, features, seed)
        phi = np.ones((len(z), len(basis.centers) + 1), np.float32)
        basis.evaluate(rows.values, phi[:, :-1])
        solution, margins = fit_squared_hinge(phi, z.astype(np.float32), self.C)
        function = KernelFunction(basis, solution[:-1].copy(), np.float32(solution[-1]))
        return Fitted(function, margins, z)

    def _basis(self, rows: Rows, features: NDArray[np.int32] | None, seed: int) -> RadialBasis:
        if self.common_sample is None:
            count = min(self.n_centers, len(rows.values))
            centers = _core.permuted(len(rows.values), seed, 0, count)
            return RadialBasis.around(rows, centers, self.scaling, self.width, features)
        sample = self.common_sample
        if features is not None:
            columns = np.append(features, sample.with_ones.shape[1] - 1)
            sample = Rows(sample.with_ones[:, columns], sample.mean[features], sample.variance[features])
        centers = np.arange(min(self.n_centers, len(sample.values)))
        return RadialBasis.around(sample, centers, self.scaling, self.width, features, common=features is None)


def share_common_basis(functions: list[HashFunction]) -> list[HashFunction]:
    """Let all functions of a common basis hold one and the same object: workers return copies of it."""
    first = next((f.basis for f in functions if isinstance(f, KernelFunction) and f.basis.common), None)
    return [
        replace(f, basis=first) if first is not None and isinstance(f, KernelFunction) and f.basis.common else f
        for f in functions
    ]


def in_one_kernel(functions: Sequence[HashFunction]) -> KernelExpansions:
    """Return coefficients and centres of kernel functions, and the width s of one kernel exp(-|x - c|^2 / s) for all.

    With a common basis these are arrays (b, m) and (m, d), else lists of one array per function. Functions with private
    centres have scales and widths of their own, estimated from their own points; they are put under the mean scale and
    width, which is exact where these agree.
    """
    own: list[KernelFunction] = []
    for bit, function in enumerate(functions):
        if not isinstance(function, KernelFunction):
            raise ValueError(f"all functions must be kernel functions, got bit {bit} of kind {function.kind!r}")
        own.append(function)
    bases, weights = [function.basis for function in own], [function.weights for function in own]
    if all(basis is bases[0] for basis in bases):
        return np.stack(weights), bases[0].centers, bases[0].width
    if any(not np.array_equal(_columns(basis), _columns(bases[0])) for basis in bases):
        raise ValueError("kernel functions must see the same features to share a kernel, got different feature subsets")
    factor = np.mean([basis.factor for basis in bases], axis=0)
    # A feature that was constant among a bit's points has factor 0: its centres are at the origin there, and stay so.
    centers = [
        basis.centers * np.divide(factor, basis.factor, out=np.zeros_like(factor), where=basis.factor > 0)
        for basis in bases
    ]
    return weights, centers, float(np.mean([basis.width for basis in bases]))


def _columns(basis: RadialBasis) -> NDArray[np.int32]:
    return np.arange(len(basis.factor), dtype=np.int32) if basis.features is None else basis.features
