"""The contract of a method: what it is given, what it gives back, and the classes that do the rest for it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ilhash._parameters import check_choice, check_count, check_positive, chosen_bits, resolve_seed
from ilhash.affinity import Labels, LabelSets, supervision_from_labels
from ilhash.diversity import UniformRows, seed_for
from ilhash.functions import HashFunction, KernelFunction, LinearFunction, RadialBasis
from ilhash.hasher import Hasher
from ilhash.parallel import single_threaded_blas
from ilhash.vectors import Rows, gather, on_disk, origin_of, refuse_non_finite_anywhere

__all__ = ["KernelMethod", "LinearMethod", "Method", "Source", "SupervisedMethod", "TrainingSet"]

ORIGIN_SAMPLE = 1000  # rows that the origin is taken from

Own = TypeVar("Own", bound="Method")


@dataclass(frozen=True)
class TrainingSet:
    """The points that a method learns from.

    Attributes
    ----------
    rows : vectors relative to the origin, with mean and variance of each feature
    indicator : float32 (N, L), 1 where a point has a label; None for methods that do not look at labels
    numbers : which rows of X these are
    """

    rows: Rows
    indicator: NDArray[np.float32] | None = None
    numbers: NDArray[np.int64] | None = None

    def centred(self) -> NDArray[np.float32]:
        """Return the vectors relative to their mean."""
        return np.asarray(self.rows.values - self.rows.mean.astype(np.float32))

    @property
    def labels(self) -> NDArray[np.float32]:
        """The indicator, of a method that cannot do without."""
        if self.indicator is None:
            raise TypeError("labels must be there for a supervised method, got a training set without")
        return self.indicator


@dataclass(frozen=True)
class Source:
    """Where training sets come from: X, the rows that may be drawn, and what is known of them."""

    X: NDArray[Any]
    supervision: Labels | LabelSets | None
    pool: UniformRows
    origin: NDArray[np.float32]
    n_train: int
    seed: int

    def training_set(self, rows: NDArray[np.int64] | None = None) -> TrainingSet:
        """Read some rows; by default the ``n_train`` ones that random_state alone draws."""
        if rows is None:
            rows = np.sort(self.pool.take(seed_for(self.seed, "rows"), 0, self.n_train))
        return TrainingSet(gather(self.X, rows, self.origin), _indicator(self.supervision, rows), rows)


def _indicator(supervision: Labels | LabelSets | None, rows: NDArray[np.int64]) -> NDArray[np.float32] | None:
    if supervision is None:
        return None
    if isinstance(supervision, LabelSets):
        return np.asarray(supervision.indicator[rows].toarray(), dtype=np.float32)
    return np.asarray(supervision.codes[rows, None] == np.arange(len(supervision.names)), dtype=np.float32)


class Method(Hasher):
    """A hashing method: draws training points once and learns all its functions from them.

    A method sets the class attributes below and writes ``_learn``; one with more parameters than these also
    ``__init__`` and ``_check_parameters``.

    Parameters
    ----------
    n_bits : int, default 64
        Number of bits b.
    n_train : int or "auto", default "auto"
        Training points N, drawn at random from X; "auto" is all of them up to a number that the method can bear.
    random_state : int, RandomState, Generator or None, default 0
        What is random depends on it and the data alone.

    Attributes
    ----------
    n_train_ : training points
    report_ : what the method has to tell of its training, for example the course of its objective; plain JSON
    """

    nested: ClassVar[bool] = False  # whether the first bits of a longer model are the shorter model
    supervised: ClassVar[bool] = False  # whether it learns from labels
    auto_train: ClassVar[int] = 50_000

    def __init__(self, n_bits: int = 64, *, n_train: int | str = "auto", random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.n_train = n_train
        self.random_state = random_state

    @abstractmethod
    def _learn(self, source: Source) -> list[HashFunction]:
        """Return one function per bit; whatever else is worth knowing goes to ``report_``."""

    def fit(self: Own, X: Any, y: Any = None) -> Own:
        """Learn from vectors (n, D), also a memory map, and where the method is supervised from their labels.

        Parameters
        ----------
        X : array (n, D); only the rows that are drawn are read of a memory map
        y : labels (n,), or an indicator matrix (n, L); not looked at by unsupervised methods
        """
        with self._all_or_nothing(), single_threaded_blas():
            self._check_parameters()
            X = self._read(X, reset=True)
            if len(X) < 2:
                raise ValueError(f"X must have at least 2 rows to compare, got n_samples={len(X)}, 1 sample")
            if not on_disk(X):
                refuse_non_finite_anywhere(X)
            self.seed_ = resolve_seed(self.random_state)
            supervision = self._supervision(len(X), y)
            pool = UniformRows(len(X), self._trainable(len(X), supervision, y))
            self.n_train_ = self._training_size(pool.size)
            sample = pool.take(seed_for(self.seed_, "sample"), 0, min(ORIGIN_SAMPLE, pool.size))
            self.origin_ = origin_of(X, sample)
            self.report_: dict[str, Any] = {}
            self.functions_ = self._learn(Source(X, supervision, pool, self.origin_, self.n_train_, self.seed_))
            self._prepare_encoder()
        return self

    def _check_parameters(self) -> None:
        self._check_bits()
        if not isinstance(self.n_train, str):
            check_count("n_train", self.n_train, 2)
        elif self.n_train != "auto":
            raise ValueError(f"n_train must be 'auto' or a whole number of at least 2, got {self.n_train!r}")

    def _check_bits(self) -> None:
        check_count("n_bits", self.n_bits)

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
                stacklevel=3,
            )
        return int(min(self.n_train, available))

    def _refuse_bits_beyond(self, limit: int, reason: str) -> None:
        """Refuse more bits than the method can give; the reason says what there are only ``limit`` of."""
        if self.n_bits > limit:
            raise ValueError(
                f"n_bits must be at most {limit} for {type(self).__name__} on these data, {reason}, got {self.n_bits}"
            )

    def __getitem__(self: Own, which: Any) -> Own:
        """Return a model of some of the bits, where bits do not depend on how many there are."""
        check_is_fitted(self)
        if not self.nested:
            raise TypeError(
                f"bits of {type(self).__name__} must be kept together: they are learnt jointly, and the first of them "
                f"are not the shorter model; fit one with fewer n_bits, got {which!r}"
            )
        return self._with_bits(chosen_bits(which, len(self.functions_)))

    def _own_document(self) -> dict[str, Any]:
        return {"n_train": self.n_train_, "report": self.report_}

    def _read_own_document(self, document: dict[str, Any]) -> None:
        self.n_train_ = document["n_train"]
        self.report_ = document["report"]


class SupervisedMethod(Method):
    """A method that learns from labels.

    Parameters
    ----------
    unlabeled : label or None, default -1
        The label that means unknown; None: there is no such label.
    """

    supervised: ClassVar[bool] = True
    auto_train: ClassVar[int] = 5_000

    def __init__(
        self, n_bits: int = 64, *, n_train: int | str = "auto", unlabeled: Any = -1, random_state: Any = 0
    ) -> None:
        super().__init__(n_bits, n_train=n_train, random_state=random_state)
        self.unlabeled = unlabeled

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

    def _learn(self, source: Source) -> list[HashFunction]:
        training = source.training_set()
        return linear_functions(training.rows, *self._directions(training, source.seed))


def linear_functions(
    rows: Rows, directions: NDArray[np.floating[Any]], thresholds: NDArray[np.floating[Any]] | None = None
) -> list[HashFunction]:
    """Turn directions and thresholds on x - mean into functions of x - origin."""
    weights = np.ascontiguousarray(directions.T, dtype=np.float32)
    bias = -(weights @ rows.mean) - (0.0 if thresholds is None else thresholds)
    return [LinearFunction(w, np.float32(b)) for w, b in zip(weights, bias, strict=True)]


class KernelMethod(SupervisedMethod):
    """A supervised method whose bits are w'phi(x) + bias > 0, phi_j(x) = exp(-|x - c_j|^2 / s).

    Parameters
    ----------
    n_centers : int, default 500
        Number of radial basis functions m, centred on training points.
    kernel_width : float, optional
        s, on features scaled as ``scaling`` says; default half the mean squared distance.
    scaling : {"columns", "whole"}, default "columns"
        Whether each feature is standardised on its own, or all by one factor (pixels).
    """

    def __init__(
        self,
        n_bits: int = 64,
        *,
        n_centers: int = 500,
        kernel_width: float | None = None,
        scaling: str = "columns",
        n_train: int | str = "auto",
        unlabeled: Any = -1,
        random_state: Any = 0,
    ) -> None:
        super().__init__(n_bits, n_train=n_train, unlabeled=unlabeled, random_state=random_state)
        self.n_centers = n_centers
        self.kernel_width = kernel_width
        self.scaling = scaling

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_centers", self.n_centers)
        check_choice("scaling", self.scaling, ("columns", "whole"))
        if self.kernel_width is not None:
            check_positive("kernel_width", self.kernel_width)

    @abstractmethod
    def _weights(
        self, phi: NDArray[np.float32], training: TrainingSet, seed: int
    ) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """Return weights (m, n_bits) and bias (n_bits,) on phi (N, m) of the training points."""

    def _learn(self, source: Source) -> list[HashFunction]:
        training = source.training_set()
        basis = radial_basis(training.rows, self.n_centers, self.scaling, self.kernel_width, source.seed)
        weights, bias = self._weights(basis.of(training.rows.values), training, source.seed)
        return kernel_functions(basis, weights, bias)


def radial_basis(rows: Rows, n_centers: int, scaling: str, width: float | None, seed: int) -> RadialBasis:
    """Centre radial basis functions on some of the rows."""
    n = len(rows.values)
    centers = UniformRows(n).take(seed_for(seed, "centers"), 0, min(n_centers, n))
    return RadialBasis.around(rows, centers, scaling, width, common=True)


def kernel_functions(
    basis: RadialBasis, weights: NDArray[np.floating[Any]], bias: NDArray[np.floating[Any]]
) -> list[HashFunction]:
    """Turn weights (m, n_bits) and biases into functions that share one basis."""
    rows = np.ascontiguousarray(weights.T, dtype=np.float32)
    return [KernelFunction(basis, w, np.float32(b)) for w, b in zip(rows, bias, strict=True)]
