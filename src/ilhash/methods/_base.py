"""The contract of a method: what it is given, what it gives back, and the classes that do the rest for it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ilhash._checks import resolve_seed
from ilhash._parameters import bits, count, one_of, positive, training_points
from ilhash.affinity import Labels, LabelSets, supervision_from_labels
from ilhash.diversity import UniformOrder, seed_for
from ilhash.functions import HashFunction, KernelFunction, LinearFunction, RadialBasis
from ilhash.hasher import Given, Hasher, Progress
from ilhash.methods._axes import principal_axes
from ilhash.methods._docs import completed
from ilhash.parallel import single_threaded_blas
from ilhash.storage import Record
from ilhash.vectors import GatheredRows, gather, on_disk, origin_of, refuse_non_finite_anywhere

ORIGIN_SAMPLE = 1000  # rows that the origin is taken from

Own = TypeVar("Own", bound="Method")


class UndefinedError(ValueError):
    """A method is not defined on these data: it cannot give so many bits, or there is nothing to learn from."""


@dataclass(frozen=True)
class TrainingSet:
    """The points that a method learns from.

    Attributes
    ----------
    rows : GatheredRows, vectors relative to the origin, with mean and variance of each feature
    indicator : float32 array (N, L), optional
        1 where a point has a label; None for methods that do not look at labels.
    numbers : int64 array (N,), optional, which rows of X these are
    """

    rows: GatheredRows
    indicator: NDArray[np.float32] | None = None
    numbers: NDArray[np.int64] | None = None

    def centered(self) -> NDArray[np.float32]:
        """Return the vectors relative to their mean."""
        return np.asarray(self.rows.values - self.rows.mean.astype(np.float32))

    @property
    def labels(self) -> NDArray[np.float32]:
        """The indicator, of a method that cannot do without."""
        if self.indicator is None:
            raise TypeError("labels must be there for a supervised method, got a training set without")
        return self.indicator


@dataclass(frozen=True)
class TrainingData:
    """Where training sets come from: X, the rows that may be drawn, and what is known of them."""

    X: NDArray[Any]
    supervision: Labels | LabelSets | None
    pool: UniformOrder
    origin: NDArray[np.float32]
    n_train: int
    seed: int

    def training_set(self, rows: NDArray[np.int64] | None = None) -> TrainingSet:
        """Read some rows; by default the ``n_train`` ones that random_state alone draws."""
        if rows is None:
            rows = drawn_once(self.pool, self.seed, self.n_train)
        return TrainingSet(gather(self.X, rows, self.origin), _indicator(self.supervision, rows), rows)


def drawn_once(pool: UniformOrder, seed: int, n_train: int) -> NDArray[np.int64]:
    """Return the one training set of a method, ascending rows."""
    return np.sort(pool.take(seed_for(seed, "rows"), 0, n_train))


def _indicator(supervision: Labels | LabelSets | None, rows: NDArray[np.int64]) -> NDArray[np.float32] | None:
    if supervision is None:
        return None
    if isinstance(supervision, LabelSets):
        return np.asarray(supervision.indicator[rows].toarray(), dtype=np.float32)
    return np.asarray(supervision.codes[rows, None] == np.arange(len(supervision.names)), dtype=np.float32)


@dataclass(eq=False, repr=False)
class Method(Hasher):
    """A hashing method: draws training points once and learns all its functions from them.

    A method sets the class attributes below and writes ``_learn``; further parameters are fields of a dataclass, as
    ``ilhash._parameters`` shows.

    Parameters
    ----------
    n_bits : int, default 64, number of bits b
    n_train : int or "auto", default "auto", training points N, drawn at random; "auto" is up to 50,000
    random_state : int, RandomState, Generator or None, default 0
        Which points are drawn, where there are more than N, and all else that is random.

    Attributes
    ----------
    n_train_ : int, training points
    n_iter_ : int, rounds that were made, of methods with ``max_iter``; of several bits the most
    report_ : dict, what the method has to tell of its training, for example the course of its objective; plain JSON
    """

    nested: ClassVar[bool] = False
    supervised: ClassVar[bool] = False  # whether it learns from labels
    auto_train: ClassVar[int] = 50_000
    _kept: ClassVar[dict[str, Callable[[Record, str], Any]]] = {
        "n_train": Record.whole,
        "n_rows": Record.whole_or_none,
        "n_drawable": Record.whole_or_none,
        "report": Record.shallow,
        "n_iter": Record.whole,
    }

    n_bits: int = bits(64)
    _: KW_ONLY
    n_train: int | str = training_points()
    random_state: Any = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = completed(cls.__doc__, (base.__doc__ for base in cls.__bases__))

    @abstractmethod
    def _learn(self, data: TrainingData) -> list[HashFunction]:
        """Return one function per bit; whatever else is worth knowing goes to ``report_``."""

    def _fit(self, X: Any, y: Any, graph: Given, means: Given, progress: Progress | None) -> None:
        self._refuse(graph, self._learns_from())
        self._refuse(means, "its bits are learnt in one piece")
        with single_threaded_blas():
            self._check_parameters()
            X = self._read(X, reset=True)
            if len(X) < 2:
                raise ValueError(f"X must have at least 2 rows to compare, got n_samples={len(X)}, 1 sample")
            if not on_disk(X):
                refuse_non_finite_anywhere(X)
            self.seed_ = resolve_seed(self.random_state)
            supervision = self._supervision(len(X), y)
            pool = UniformOrder(len(X), self._trainable(len(X), supervision, y))
            self.n_rows_: int | None = len(X)
            self.n_drawable_: int | None = pool.size
            self.n_train_ = self._training_size(pool.size)
            sample = pool.take(seed_for(self.seed_, "sample"), 0, min(ORIGIN_SAMPLE, pool.size))
            self.origin_ = origin_of(X, sample)
            self.report_: dict[str, Any] = {}
            self.functions_ = self._learn(TrainingData(X, supervision, pool, self.origin_, self.n_train_, self.seed_))
            self._prepare_encoder()
        if progress is not None:
            progress(len(self.functions_), len(self.functions_))

    def _learns_from(self) -> str:
        if self.supervised:
            return "it learns from labels (y), one or several per point"
        return "it learns from vectors alone, also beside ILH in a Mix"

    def _refuse(self, given: Given, reason: str) -> None:
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{name} must be None for {type(self).__name__}, got {type(value).__name__}: {reason}; ILH takes it"
                )

    def _rows_of_bit(self, bit: int, X: Any, y: Any, graph: Given) -> NDArray[np.int64]:
        return drawn_once(self._pool_again(X, y, graph), self.seed_, self.n_train_)

    def _pool_again(self, X: Any, y: Any, graph: Given) -> UniformOrder:
        """Return what training sets were drawn from."""
        self._refuse(graph, self._learns_from())
        if X is None and (self.n_rows_ is None or self.n_drawable_ != self.n_rows_):
            raise ValueError(
                f"X and y must be given again, since {type(self).__name__} knows only where all rows could be drawn, "
                "got no X"
            )
        if X is None:
            return UniformOrder(int(self.n_rows_ or 0))
        n_rows = len(self._read(X, reset=False))
        pool = UniformOrder(n_rows, self._trainable(n_rows, self._supervision(n_rows, y), y))
        if self.n_rows_ is not None and (n_rows, pool.size) != (self.n_rows_, self.n_drawable_):
            raise ValueError(
                f"X and y must be the data that the model was fitted on, {self.n_drawable_} of {self.n_rows_} rows to "
                f"draw from, got {pool.size} of {n_rows}"
            )
        return pool

    def _supervision(self, n_points: int, y: Any) -> Labels | LabelSets | None:
        return None

    def _drawable(self, supervision: Labels | LabelSets | None) -> NDArray[np.int64] | None:
        return None if supervision is None else supervision.drawable

    def _trainable(self, n_points: int, supervision: Labels | LabelSets | None, y: Any) -> NDArray[np.int64] | None:
        """Return the rows that may be drawn: never those that y withholds, also where labels are not looked at."""
        drawable = self._drawable(supervision)
        withheld = y.withheld if isinstance(y, Labels | LabelSets) else None
        if withheld is None or drawable is not None:  # what is withheld has no label
            return drawable
        return np.setdiff1d(np.arange(n_points), withheld)

    def _training_size(self, available: int) -> int:
        if isinstance(self.n_train, str):
            return min(self.auto_train, available)
        if self.n_train > available:
            warnings.warn(
                f"n_train={self.n_train} is more than the {available} points that can be drawn: all of them are used",
                stacklevel=4,
            )
        return int(min(self.n_train, available))

    def _refuse_bits_beyond(self, limit: int, reason: str) -> None:
        """Refuse more bits than the method can give; the reason says what there are only ``limit`` of."""
        if self.n_bits > limit:
            raise UndefinedError(
                f"n_bits must be at most {limit} for {type(self).__name__} on these data, {reason}, got {self.n_bits}"
            )

    def _principal_axes(self, training: TrainingSet, hint: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return variances and axes of the training points; refuse more bits than there are axes."""
        variances, axes = principal_axes(training.rows)
        directions = f"one per direction in which the {self.n_train_} training points vary"
        self._refuse_bits_beyond(len(variances), directions + hint)
        return variances, axes

    def __getitem__(self: Own, which: Any) -> Own:
        """Return a model of some of the bits, where bits do not depend on how many there are."""
        check_is_fitted(self)
        if not self.nested:
            raise TypeError(
                f"bits of {type(self).__name__} must be kept together: they are learnt jointly, and the first of them "
                f"are not the shorter model; fit one with fewer n_bits, got {which!r}"
            )
        return super().__getitem__(which)

    def _read_own_document(self, record: Record) -> None:
        self.n_train_ = record.whole("n_train")
        super()._read_own_document(record.completed({"n_rows": None, "n_drawable": None}))  # not kept earlier


@dataclass(eq=False, repr=False, kw_only=True)
class SupervisedMethod(Method):
    """A method that learns from labels.

    Parameters
    ----------
    n_train : int or "auto", default "auto", training points N, drawn at random; "auto" is up to 5,000
    unlabeled : label or None, default -1, the label that means unknown; None: there is no such label
    """

    supervised: ClassVar[bool] = True
    auto_train: ClassVar[int] = 5_000

    unlabeled: Any = -1

    def _supervision(self, n_points: int, y: Any) -> Labels | LabelSets:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: it learns from labels"
            )
        return supervision_from_labels(y, n_points, self.unlabeled)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class LinearMethod(Method):
    """A method whose bits are w'(x - mean) > threshold."""

    @abstractmethod
    def _directions(
        self, training: TrainingSet, seed: int
    ) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]] | None]:
        """Return the directions w, (D, n_bits), and the thresholds, (n_bits,) or None where they are 0."""

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        training = data.training_set()
        return linear_functions(training.rows, *self._directions(training, data.seed))


def linear_functions(
    rows: GatheredRows, directions: NDArray[np.floating[Any]], thresholds: NDArray[np.floating[Any]] | None = None
) -> list[HashFunction]:
    """Turn directions and thresholds on x - mean into functions of x - origin."""
    weights = np.ascontiguousarray(directions.T, dtype=np.float32)
    bias = -(weights @ rows.mean) - (0.0 if thresholds is None else thresholds)
    return [LinearFunction(w, np.float32(b)) for w, b in zip(weights, bias, strict=True)]


@dataclass(eq=False, repr=False, kw_only=True)
class KernelMethod(SupervisedMethod):
    """A supervised method whose bits are ``w'phi(x) + bias > 0``, ``phi_j(x) = exp(-|x - c_j|^2 / s)``.

    Parameters
    ----------
    n_centers : int, default 500, number of radial basis functions m, centred on training points
    kernel_width : float, optional, s, on features scaled as ``scaling`` says; default half the mean squared distance
    scaling : {"columns", "whole"}, default "columns"
        Whether each feature is standardised on its own, or all by one factor (pixels).
    """

    n_centers: int = count(500)
    kernel_width: float | None = positive(None)
    scaling: str = one_of("columns", "whole")

    @abstractmethod
    def _weights(
        self, phi: NDArray[np.float32], training: TrainingSet, seed: int
    ) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """Return weights (m, n_bits) and bias (n_bits,) on phi (N, m) of the training points."""

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        training = data.training_set()
        basis = radial_basis(training.rows, self.n_centers, self.scaling, self.kernel_width, data.seed)
        weights, bias = self._weights(basis.of(training.rows.values), training, data.seed)
        return kernel_functions(basis, weights, bias)


def radial_basis(rows: GatheredRows, n_centers: int, scaling: str, width: float | None, seed: int) -> RadialBasis:
    """Centre radial basis functions on some of the rows."""
    n = len(rows.values)
    centers = UniformOrder(n).take(seed_for(seed, "centers"), 0, min(n_centers, n))
    return RadialBasis.around(rows, centers, scaling, width, common=True)


def kernel_functions(
    basis: RadialBasis, weights: NDArray[np.floating[Any]], bias: NDArray[np.floating[Any]]
) -> list[HashFunction]:
    """Turn weights (m, n_bits) and biases into functions that share one basis."""
    rows = np.ascontiguousarray(weights.T, dtype=np.float32)
    return [KernelFunction(basis, w, np.float32(b)) for w, b in zip(rows, bias, strict=True)]
