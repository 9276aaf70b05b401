"""Kernel hash functions: a linear SVM on radial basis functions exp(-|x - c|^2 / s) around some of the points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.storage import Values
from ilhash.vectors import GatheredRows, scratch

from ._base import (
    ONE_SUBSET,
    Arrays,
    Features,
    Floats,
    HashFunction,
    RowFunction,
    Stored,
    affine,
    features_in,
    own_columns,
    stacked_fields,
)
from ._kinds import register
from ._learner import Fitted, Learner, LearnerSettings, standardization
from ._preconditioner import ACTIVE, MOST_FEATURES, SAMPLE, Preconditioner, inverted, search
from ._svm import fit_squared_hinge

KernelExpansions = tuple[Floats | list[Floats], Floats | list[Floats], float]  # coefficients, centres, width
BLOCK = 256  # rows whose basis functions are computed at a time
WIDTH_SAMPLE = 1000  # rows that the width of common kernels is taken from
MEAN_BLOCK = 1024  # rows whose products are added up at a time
OTHERS = 1.5  # rows beside the centres, per centre, that a Hessian is estimated from
POOL = 3  # centres of a pool, as a multiple of those that a bit uses
# Weights of pooled functions as one matrix: a larger one, which a small file could ask for, is never made.
DENSE_BELOW = 1 << 24


@dataclass(frozen=True, eq=False)
class RadialBasis:
    """phi_j(x) = exp(-|factor * (x - origin) - c_j|^2 / s).

    Attributes
    ----------
    centers : float32 (m, d), already scaled by ``factor``
    factor : float32 (d,), the scale of each feature
    width : float, s
    features : int32 (d,), optional, the features it looks at; by default all
    common : bool, whether all bits of a model share it
    """

    schema: ClassVar[dict[str, Values]] = {
        "centers": Values("float32", ("m", "d")),
        "factor": Values("float32", ("d",), least=0),
        "width": Values("float64", (1,), least=np.finfo(np.float64).smallest_subnormal),
        "common": Values("uint8", (1,), most=1),
    }
    centers: Floats
    factor: Floats
    width: float
    features: Features = None
    common: bool = False

    @classmethod
    def around(
        cls,
        rows: GatheredRows,
        centers: NDArray[np.int64],
        scaling: str,
        width: float | None,
        features: Features = None,
        common: bool = False,
    ) -> RadialBasis:
        """Return a basis that is centred on some of the rows (own features only).

        The width is by default half the mean squared distance from the rows to the centres.
        """
        factor = standardization(rows, scaling)[1].astype(np.float32)
        own = rows.values[centers] * factor
        if width is None:
            width = 0.5 * _mean_squared_distance(rows, factor, own)
        return cls(own, factor, width if width > 0 else 1.0, features, common)

    def squared_distances(self, values: Floats, out: Floats | None = None) -> Floats:
        """Return the squared distances of rows (own features only) to the centres."""
        scaled = values * self.factor
        out = np.matmul(scaled, (np.float32(-2.0) * self.centers).T, out=out)
        out += np.einsum("ij,ij->i", scaled, scaled)[:, None]
        out += np.einsum("ij,ij->i", self.centers, self.centers)
        return np.maximum(out, np.float32(0.0), out=out)

    def evaluate(self, values: Floats, out: Floats) -> None:
        """Write phi of rows (own features only) into ``out``."""
        # exp of 2 x'c / s - |x|^2 / s - |c|^2 / s, in blocks that stay in cache from the product to the exponential.
        columns = np.ascontiguousarray((self.centers * np.float32(2.0 / self.width)).T)
        offset = np.einsum("ij,ij->i", self.centers, self.centers) / np.float32(self.width)
        for first in range(0, len(values), BLOCK):
            block = out[first : first + BLOCK]
            scaled = values[first : first + BLOCK] * self.factor
            np.matmul(scaled, columns, out=block)
            block -= (np.einsum("ij,ij->i", scaled, scaled) / np.float32(self.width))[:, None]
            block -= offset
            np.minimum(block, np.float32(0.0), out=block)
            np.exp(block, out=block)

    def of(self, X: Floats) -> Floats:
        """Return phi of rows with all features."""
        out = np.empty((len(X), len(self.centers)), np.float32)
        self.evaluate(own_columns(X, self.features), out)
        return out

    def products(self, X: Floats, weights: Floats, bias: Floats) -> Floats:
        """Return phi @ weights.T + bias (n, b) of rows with all features; phi is never whole in memory."""
        product = affine(weights, bias)
        values = own_columns(X, self.features)
        out = np.empty((len(X), len(weights)), np.float32)
        phi = np.empty((min(BLOCK, len(X)), len(self.centers)), np.float32)
        for first in range(0, len(X), BLOCK):
            some = values[first : first + BLOCK]
            self.evaluate(some, phi[: len(some)])
            out[first : first + BLOCK] = product(phi[: len(some)])
        return out

    def same_as(self, other: RadialBasis) -> bool:
        """Whether both are the same in all they hold."""
        mine, others = self.to_arrays(), other.to_arrays()
        return self is other or (
            mine.keys() == others.keys() and all(np.array_equal(mine[name], others[name]) for name in mine)
        )

    def to_arrays(self) -> Arrays:
        """Return what a file is to hold of it."""
        own: Arrays = {
            "centers": self.centers,
            "factor": self.factor,
            "width": np.array([self.width], np.float64),
            "common": np.array([self.common], np.uint8),
        }
        return own | stacked_fields([self], "features")

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> RadialBasis:
        """Do the inverse of :meth:`to_arrays`."""
        width, common = float(arrays["width"][0]), bool(arrays["common"][0])
        return cls(arrays["centers"], arrays["factor"], width, features_in(arrays), common)


@dataclass(frozen=True, eq=False)
class KernelFunction(RowFunction):
    """h(x) = w'phi(x) + bias, with a weight per centre of the basis phi."""

    kind: ClassVar[str] = "kernel"
    row: ClassVar[tuple[str, ...]] = ("weights", "bias")
    schema: ClassVar[dict[str, Values]] = {
        **RadialBasis.schema,
        "features": ONE_SUBSET,
        "weights": Values("float32", ("bits", "m")),
        "bias": Values("float32", ("bits",)),
    }
    basis: RadialBasis
    weights: Floats
    bias: np.float32

    @property
    def features(self) -> Features:  # type: ignore[override]  # nothing of a function can be set
        return self.basis.features

    def margins(self, X: Floats) -> Floats:
        return self.basis.products(X, self.weights[None], np.asarray([self.bias], np.float32))[:, 0]

    @classmethod
    def stacked(cls, functions: Sequence[KernelFunction], n_features: int) -> Callable[[Floats], Floats]:
        basis, own = functions[0].basis, stacked_fields(functions, *cls.row)
        return lambda X: basis.products(X, own["weights"], own["bias"])

    def storage_group(self) -> object:
        return id(self.basis)

    def shared_arrays(self) -> Arrays:
        return self.basis.to_arrays()

    @classmethod
    def shared_from(cls, stored: Stored) -> tuple[RadialBasis]:
        return (RadialBasis.from_arrays(stored.arrays),)


@dataclass(frozen=True, eq=False)
class PoolFunction(RowFunction):
    """h(x) = w'phi(x)[chosen] + bias: some centres of a basis that all bits of a model share."""

    kind: ClassVar[str] = "pool"
    row: ClassVar[tuple[str, ...]] = ("chosen", "weights", "bias")
    schema: ClassVar[dict[str, Values]] = {
        **RadialBasis.schema,
        "centers": Values("float32", ("pool", "d")),
        "features": ONE_SUBSET,
        "chosen": Values("int32", ("bits", "m"), least=0, below="pool", ascending=True),
        "weights": Values("float32", ("bits", "m")),
        "bias": Values("float32", ("bits",)),
    }
    basis: RadialBasis
    chosen: NDArray[np.int32]
    weights: Floats
    bias: np.float32

    @property
    def features(self) -> Features:  # type: ignore[override]  # nothing of a function can be set
        return self.basis.features

    def margins(self, X: Floats) -> Floats:
        own = replace(self.basis, centers=self.basis.centers[self.chosen])
        return own.products(X, self.weights[None], np.asarray([self.bias], np.float32))[:, 0]

    def numbers_per_row(self, n_bits: int) -> int:
        return max(n_bits, len(self.basis.centers))

    @classmethod
    def stacked(cls, functions: Sequence[PoolFunction], n_features: int) -> Callable[[Floats], Floats]:
        basis, own = functions[0].basis, stacked_fields(functions, *cls.row)
        if len(functions) * len(basis.centers) <= DENSE_BELOW:
            dense = np.zeros((len(functions), len(basis.centers)), np.float32)
            np.put_along_axis(dense, own["chosen"].astype(np.int64), own["weights"], axis=1)
            return lambda X: basis.products(X, dense, own["bias"])

        def margins(X: Floats) -> Floats:
            phi, out = basis.of(X), np.empty((len(X), len(functions)), np.float32)
            for column, function in enumerate(functions):
                out[:, column] = phi[:, function.chosen] @ function.weights + function.bias
            return out

        return margins

    def storage_group(self) -> object:
        return id(self.basis), len(self.chosen)

    def encoding_group(self, n_features: int) -> object:
        return id(self.basis), len(self.chosen)

    def shared_arrays(self) -> Arrays:
        return self.basis.to_arrays()

    @classmethod
    def shared_from(cls, stored: Stored) -> tuple[RadialBasis]:
        return (RadialBasis.from_arrays(stored.arrays),)

    def on_whole_pool(self) -> KernelFunction:
        """Return the same function with a weight for every centre of the pool."""
        weights = np.zeros(len(self.basis.centers), np.float32)
        weights[self.chosen] = self.weights
        return KernelFunction(self.basis, weights, self.bias)


register(PoolFunction)


@dataclass(frozen=True)
class KernelLearner(Learner):
    """Kernel SVM with its centres drawn from the bit's own points (private), given (common), or drawn from a pool.

    ``common_sample`` are seeded rows of X with all features, of which the first ``n_centers``, or three times as many
    where they are a ``pool``, are the centres.
    """

    seed_from: ClassVar[Literal["centers"]] = "centers"
    C: float = 10.0
    n_centers: int = 500
    scaling: str = "columns"
    width: float | None = None
    common_sample: GatheredRows | None = None
    pool: bool = False
    common: RadialBasis | None = None  # around the sample's rows, all features
    preconditioner: Preconditioner | None = None  # of functions on it

    @classmethod
    def from_settings(cls, settings: LearnerSettings) -> KernelLearner:
        """Return the learner that a model's parameters mean."""
        own = settings.n_centers, settings.scaling, settings.kernel_width
        pool = settings.centers == "pool"
        n_common = settings.n_centers * (POOL if pool else 1)
        sample = None if settings.centers == "private" else settings.sample(max(WIDTH_SAMPLE, n_common))
        learner = cls(settings.cost(cls.C), *own, sample, pool)
        if sample is None:
            return learner
        basis = learner._around(sample, None)
        shared = settings.sample(SAMPLE) if settings.n_train > n_common < MOST_FEATURES else None
        if shared is None or len(shared.values) <= n_common:
            return replace(learner, common=basis)
        gram = _mean_products(basis, shared.values)
        preconditioner = Preconditioner.of_gram(gram, learner.C, settings.n_train)
        return replace(learner, common=basis, preconditioner=preconditioner)

    def fit(self, rows: GatheredRows, z: NDArray[np.int8], features: Features, seed: int) -> Fitted:
        own_centers = None if self.common_sample is not None else self._own_centers(len(rows.values), seed)
        whole = self._basis(rows, own_centers, features)
        chosen = self._chosen(len(whole.centers), seed)
        basis = whole if chosen is None else replace(whole, centers=whole.centers[chosen])
        phi = scratch("radial basis", (len(z), len(basis.centers) + 1))
        phi[:, -1] = 1.0
        basis.evaluate(rows.values, phi[:, :-1])
        inverse = None
        if own_centers is not None:
            inverse = _own_inverse(phi, own_centers, self.C)
        elif self.preconditioner is not None and features is None:
            inverse = self.preconditioner.inverse(chosen)
        solution, margins = self._solve(phi, z.astype(np.float32), inverse)
        weights, bias = solution[:-1].copy(), np.float32(solution[-1])
        if chosen is None or features is not None:  # a basis of the bit's own needs no more than the bit uses
            return Fitted(KernelFunction(basis, weights, bias), margins, z)
        return Fitted(PoolFunction(whole, chosen, weights, bias), margins, z)

    def _solve(self, phi: Floats, y: Floats, inverse: Floats | None) -> tuple[Floats, Floats]:
        start = None
        if inverse is not None:
            start, margins, solved = search(phi, y, self.C, inverse)
            if solved:
                return start, margins
        return fit_squared_hinge(phi, y, self.C, start=start)

    def _own_centers(self, n_rows: int, seed: int) -> NDArray[np.int64]:
        return _core.permuted(n_rows, seed, 0, min(self.n_centers, n_rows))

    def _chosen(self, n_pool: int, seed: int) -> NDArray[np.int32] | None:
        """Return the centres of a pool that a bit uses; None: there is no pool, or the bit uses all."""
        if not self.pool or n_pool <= self.n_centers:
            return None
        return np.sort(_core.permuted(n_pool, seed, 0, self.n_centers)).astype(np.int32)

    def _basis(self, rows: GatheredRows, own_centers: NDArray[np.int64] | None, features: Features) -> RadialBasis:
        sample = self.common_sample
        if own_centers is not None or sample is None:
            centers = np.arange(0) if own_centers is None else own_centers
            return RadialBasis.around(rows, centers, self.scaling, self.width, features)
        if features is None:
            return self._around(sample, None) if self.common is None else self.common
        columns = np.append(features, sample.with_ones.shape[1] - 1)
        part = GatheredRows(sample.with_ones[:, columns], sample.mean[features], sample.variance[features])
        return self._around(part, features)

    def _around(self, sample: GatheredRows, features: Features) -> RadialBasis:
        """Return the basis around the first of the common sample's rows."""
        centers = np.arange(min(self.n_centers * (POOL if self.pool else 1), len(sample.values)))
        return RadialBasis.around(sample, centers, self.scaling, self.width, features, common=features is None)


def _mean_squared_distance(rows: GatheredRows, factor: Floats, centers: Floats) -> float:
    """Return the mean over rows x and centres c of |factor * x - c|^2, from means and variances alone."""
    scale, own = factor.astype(np.float64), centers.astype(np.float64)
    mean = scale * rows.mean
    spread = float(scale**2 @ rows.variance)
    return spread + float(np.mean(np.sum((own - mean) ** 2, axis=1)))


def _mean_products(basis: RadialBasis, values: Floats) -> Floats:
    """Return the mean of x x' over rows, x being their basis functions and a one."""
    total = np.zeros((len(basis.centers) + 1,) * 2, np.float32)
    phi = np.ones((min(MEAN_BLOCK, len(values)), len(total)), np.float32)
    for first in range(0, len(values), MEAN_BLOCK):
        some = values[first : first + MEAN_BLOCK]
        basis.evaluate(some, phi[: len(some), :-1])
        total += phi[: len(some)].T @ phi[: len(some)]
    return total / np.float32(len(values))


def _own_inverse(phi: Floats, centers: NDArray[np.int64], C: float) -> Floats | None:
    """Return about the inverse of the Hessian where centres are some of the rows; None where it would cost too much.

    Other rows stand for one another, so some of them do. Those at the centres do not: each of them is the only row that
    is so near to its centre.
    """
    n, d = phi.shape
    others = np.ones(n, np.bool_)
    others[centers] = False
    rest = np.flatnonzero(others)
    if len(rest) < OTHERS * d:
        return None
    some = rest[:: max(1, int(len(rest) / (OTHERS * d)))]
    at_centers, at_others = phi[centers], phi[some]
    hessian = np.asarray(at_others.T @ at_others)
    hessian *= np.float32(len(rest) / len(some))
    hessian += at_centers.T @ at_centers
    hessian *= np.float32(2.0 * C * ACTIVE)
    hessian.flat[:: d + 1] += np.float32(1.0)
    return inverted(hessian)


register(KernelFunction, KernelLearner.from_settings)


def share_common_basis(functions: list[HashFunction]) -> list[HashFunction]:
    """Let all functions of a common basis hold one and the same object: workers and files return copies of it.

    Parameters
    ----------
    functions : list of HashFunction, of any kinds

    Returns
    -------
    list of HashFunction, the same functions in the same order
    """
    common = [f.basis for f in functions if isinstance(f, KernelFunction | PoolFunction) and f.basis.common]

    def shared(function: HashFunction) -> HashFunction:
        if not isinstance(function, KernelFunction | PoolFunction) or not function.basis.common:
            return function
        return replace(function, basis=common[0]) if function.basis.same_as(common[0]) else function

    return [shared(function) for function in functions]


def in_one_kernel(functions: Sequence[HashFunction]) -> KernelExpansions:
    """Put kernel functions under one kernel exp(-|x - c|^2 / s).

    Functions with private centres have scales and widths of their own, estimated from their own points; they are put
    under the mean scale and width, which is exact where these agree.

    Parameters
    ----------
    functions : sequence of KernelFunction or PoolFunction

    Returns
    -------
    coefficients : float32 (b, m), or a list of one array per function where centres are private
    centers : float32 (m, d), or such a list
    width : float, s
    """
    own: list[KernelFunction] = []
    for bit, function in enumerate(functions):
        if isinstance(function, PoolFunction):
            function = function.on_whole_pool()
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
