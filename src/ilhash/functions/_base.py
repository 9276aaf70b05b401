"""What every hash function has in common, and what each kind says of itself: how to group, stack, store and load."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ilhash.storage import DamagedFileError, Values

Floats = NDArray[np.float32]
Features = NDArray[np.int32] | None  # the features that a function sees; None for all
Arrays = dict[str, NDArray[Any]]

# Features within those of a vector, by function: one row for each, or one for all.
SUBSETS = Values("int32", ("bits", "d"), least=0, below="D", ascending=True, optional=True)
ONE_SUBSET = Values("int32", (1, "d"), least=0, below="D", ascending=True, optional=True)

Own = TypeVar("Own", bound="HashFunction")
OwnRow = TypeVar("OwnRow", bound="RowFunction")


@dataclass(frozen=True)
class Stored:
    """What a file holds of functions that are stored together.

    Attributes
    ----------
    arrays : dict of str to ndarray, by name; the name "bits" is taken
    blob : bytes, optional, a file of its own, for what is not arrays
    n_features : int, of the vectors, when it is read
    trusted : sequence of str, types that a blob may bring, when it is read
    where : str, what is read, for sentences
    """

    arrays: Arrays
    blob: bytes | None = None
    n_features: int = 0
    trusted: Sequence[str] = ()
    where: str = ""

    def damaged(self, must: str) -> DamagedFileError:
        """Return the error that says what the functions must be."""
        return DamagedFileError(f"{self.where} must {must}")


class HashFunction(ABC):
    """A trained bit: a margin for every vector; the bit is margin > 0.

    A kind is a subclass that :func:`ilhash.functions.register` was told of. By default each function stands alone; a
    kind whose functions share work or files says which do, and how. ``kind`` is its name, also in files, ``features``
    those that a function sees.

    ``schema`` is what the arrays of a file must be: whoever made the file, :meth:`from_stored` gets no others. Lengths
    that are known by name are ``bits``, the functions that are stored together, ``D``, the features of a vector, and
    ``d``, those that a function sees.
    """

    kind: ClassVar[str]
    schema: ClassVar[Mapping[str, Values]]
    inner: ClassVar[str | None] = None  # beginning of the names of arrays that are functions, which check themselves
    takes_sparse: ClassVar[bool] = False  # whether margins can be had of sparse rows
    features: Features = None

    @abstractmethod
    def margins(self, X: Floats) -> Floats:
        """Return the margin of every row of X (n, D), which is relative to the model's origin and has all features."""

    def storage_group(self) -> object:
        """Return a key: functions of one kind and equal keys are stored together."""
        return object()  # equal to no other

    def encoding_group(self, n_features: int) -> object:
        """Return a key: functions of one kind and equal keys are computed together."""
        return self.storage_group()

    def numbers_per_row(self, n_bits: int) -> int:
        """Return how many numbers it takes at once for each row to compute n_bits such functions together."""
        return n_bits

    @classmethod
    @abstractmethod
    def to_stored(cls: type[Own], functions: Sequence[Own]) -> Stored:
        """Return what a file is to hold of functions of one storage group."""

    @classmethod
    @abstractmethod
    def from_stored(cls: type[Own], stored: Stored) -> list[Own]:
        """Do the inverse of :meth:`to_stored`; the arrays are what ``schema`` says, and all else is to be checked."""

    @classmethod
    def stacked(cls: type[Own], functions: Sequence[Own], n_features: int) -> Callable[[Floats], Floats]:
        """Return what computes the margins (n, len(functions)) of functions of one encoding group."""

        def margins(X: Floats) -> Floats:
            out = np.empty((len(X), len(functions)), np.float32)
            for column, function in enumerate(functions):
                out[:, column] = function.margins(X)
            return out

        return margins


class RowFunction(HashFunction):
    """A function that is one row of the arrays that ``row`` names, behind a field that all of a group share, if any."""

    row: ClassVar[tuple[str, ...]]

    @classmethod
    def to_stored(cls: type[OwnRow], functions: Sequence[OwnRow]) -> Stored:
        return Stored(stacked_fields(functions, *cls.row) | functions[0].shared_arrays())

    @classmethod
    def from_stored(cls: type[OwnRow], stored: Stored) -> list[OwnRow]:
        shared, arrays = cls.shared_from(stored), stored.arrays
        fields = [arrays[name] for name in cls.row if name != "features" or name in arrays]
        return [cls(*shared, *own) for own in zip(*fields, strict=True)]

    def shared_arrays(self) -> Arrays:
        """Return what a file is to hold of the field that is shared."""
        return {}

    @classmethod
    def shared_from(cls, stored: Stored) -> tuple[Any, ...]:
        """Do the inverse of :meth:`shared_arrays`."""
        return ()


def grouped(
    functions: Sequence[HashFunction], key: Callable[[HashFunction], object]
) -> list[tuple[list[int], list[HashFunction]]]:
    """Return the bits and functions of each kind and key, in the order in which groups begin."""
    groups: dict[object, list[int]] = {}
    for bit, function in enumerate(functions):
        groups.setdefault((function.kind, key(function)), []).append(bit)
    return [(bits, [functions[bit] for bit in bits]) for bits in groups.values()]


def own_columns(X: Floats, features: Features) -> Floats:
    """Return the columns of the features that a function sees."""
    return X if features is None else X[:, features]


def stacked_fields(functions: Sequence[Any], *names: str) -> Arrays:
    """Return each field of all functions as one array; none for a field that is None, in all of them alike."""
    given = [name for name in names if getattr(functions[0], name) is not None]
    return {name: np.stack([getattr(function, name) for function in functions]) for name in given}


def features_in(arrays: Arrays) -> Features:
    """Return the features of the one function or basis that the arrays are of."""
    return arrays["features"][0] if "features" in arrays else None


def affine(weights: Floats, offset: Floats) -> Callable[[Floats], Floats]:
    """Return X -> X @ weights.T + offset, of one row of weights per function."""
    columns = np.ascontiguousarray(weights.T)

    def values(X: Floats) -> Floats:
        out = X @ columns
        out += offset
        return np.asarray(out)

    return values
