"""Vectors as the other rooms see them: checked, read by rows, and taken relative to an origin.

All arithmetic on vectors is done in float32 on x - origin, where the origin is the median of a small seeded sample.
Large offsets thus cost no precision, whatever the input type, and nothing needs a pass over all of X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast, overload

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import as_array
from ilhash.vectors._frames import frame_matrix
from ilhash.vectors._scratch import scratch
from ilhash.vectors._source import VectorSource
from ilhash.vectors._sparse import WAY_OUT, GatheredSparse, SparseRows, as_sparse, gather_sparse

Matrix = NDArray[Any] | VectorSource

_Gather = Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]
_GATHER: dict[str, _Gather] = {"float32": _core.gather_f32, "float64": _core.gather_f64, "uint8": _core.gather_u8}


def as_matrix(X: Any, name: str = "X", *, sparse: bool = False) -> NDArray[Any]:
    """Return X as a 2-D numeric array without copying what is already one; maps and sources stay on disk.

    Parameters
    ----------
    X : array_like, VectorSource, sparse matrix or data frame, vectors
    name : str, default "X", what an error calls it
    sparse : bool, default False, whether a sparse matrix will do, which comes as SparseRows; else it is refused

    Returns
    -------
    array, VectorSource or SparseRows (n, D), numbers, finite or not
    """
    if isinstance(X, VectorSource):
        return cast("NDArray[Any]", X)  # whoever takes a matrix reads it by rows or in chunks, as below
    if isinstance(X, SparseRows) or scipy.sparse.issparse(X):
        if not sparse:
            raise TypeError(f"{name} must be a dense array here, got a sparse matrix of shape {X.shape}: {WAY_OUT}")
        return cast("NDArray[Any]", X if isinstance(X, SparseRows) else as_sparse(X, name))  # the same
    found = frame_matrix(X, name)
    array: NDArray[Any] = as_array(name, X) if found is None else found
    if array.dtype.kind == "O":
        array = _from_objects(array, name)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}: Complex data not supported")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be a 2-D array (rows are vectors), got {array.ndim}-D with shape {array.shape}. Reshape your "
            "data with X.reshape(1, -1) if it is a single vector or X.reshape(-1, 1) if it has a single feature"
        )
    if 0 in array.shape:
        what, got = ("rows", "sample") if array.shape[0] == 0 else ("columns", "feature")
        raise ValueError(
            f"{name} must have {what}, got 0 {got}(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    return array


def _from_objects(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must hold numbers, got an object array that does not convert: {error}") from None


@dataclass(frozen=True)
class GatheredRows:
    """Some rows (and features) of X, as float32 relative to the origin; mean and variance are of each column."""

    with_ones: NDArray[np.float32]  # the values, and a last column of ones
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @property
    def values(self) -> NDArray[np.float32]:
        """The vectors without the column of ones."""
        return self.with_ones[:, :-1]

    def rescaled(self, shift: NDArray[np.floating], factor: NDArray[np.floating]) -> GatheredRows:
        """Return (values - shift) * factor, in the same memory: the unscaled rows are gone."""
        factor32 = factor.astype(np.float32)
        _core.rescale(self.values, shift.astype(np.float32), factor32)
        variance = self.variance * factor32.astype(np.float64) ** 2
        return GatheredRows(self.with_ones, (self.mean - shift) * factor32, variance)

    def copy(self) -> GatheredRows:
        """Return the same rows with memory of their own."""
        return GatheredRows(self.with_ones.copy(), self.mean, self.variance)

    def take(self, positions: NDArray[Any]) -> GatheredRows:
        """Return a copy of the rows at some positions."""
        kept = self.with_ones[positions]
        values = kept[:, :-1].astype(np.float64)
        return GatheredRows(kept, values.mean(axis=0), values.var(axis=0))


@overload
def gather(
    X: Matrix,
    rows: NDArray[np.int64],
    origin: NDArray[np.float32],
    features: NDArray[np.int32] | None = None,
    reuse: bool = False,
) -> GatheredRows: ...
@overload
def gather(
    X: SparseRows,
    rows: NDArray[np.int64],
    origin: NDArray[np.float32],
    features: NDArray[np.int32] | None = None,
    reuse: bool = False,
) -> GatheredSparse: ...
def gather(
    X: Matrix | SparseRows,
    rows: NDArray[np.int64],
    origin: NDArray[np.float32],
    features: NDArray[np.int32] | None = None,
    reuse: bool = False,
) -> GatheredRows | GatheredSparse:
    """Read the drawn rows, and only those, of an array, memory map or sparse matrix.

    Parameters
    ----------
    X : array, VectorSource or SparseRows (n, D), vectors
    rows : int64 array (N,), which rows
    origin : float32 array (D,), what is subtracted
    features : int32 array (d,), optional, which columns; by default all
    reuse : bool, default False, take this thread's scratch memory, which holds until the next such call

    Returns
    -------
    GatheredRows, or GatheredSparse of sparse vectors, the rows, with mean and variance of each column
    """
    if isinstance(X, SparseRows):
        refuse_origin(origin)
        return gather_sparse(X, rows, features)
    n, d = len(rows), X.shape[1] if features is None else len(features)
    out = scratch("rows", (n, d + 1)) if reuse else np.empty((n, d + 1), np.float32)
    out[:, d] = 1.0
    own_origin = origin if features is None else origin[features]
    if isinstance(X, VectorSource):
        distinct, rows = np.unique(rows, return_inverse=True)
        X = X.take(distinct)
    kernel = _GATHER.get(X.dtype.name)
    if kernel is None or not X.dtype.isnative or not _has_contiguous_rows(X):
        X, rows, kernel = np.asarray(X[rows], dtype=np.float64, order="C"), np.arange(n), _core.gather_f64
    total, squares = kernel(np.asarray(X), rows, features, own_origin, out[:, :d])
    if not np.isfinite(squares).all():
        refuse_non_finite(out[:, :d], "the drawn rows of X")
        raise ValueError("X must hold numbers whose squares are finite in float32, got some beyond 1e18; rescale X")
    if not squares.max(initial=0.0) > n * 1e-30 and out[:, :d].any():
        raise ValueError(
            "X must hold numbers whose squares are above zero in float32, got none beyond 1e-15; rescale X"
        )
    mean = total / n
    return GatheredRows(out, mean, np.maximum(squares / n - mean**2, 0.0))


def _has_contiguous_rows(X: NDArray[Any]) -> bool:
    rows, columns = X.strides
    return columns == X.itemsize and rows >= 0 and rows % X.itemsize == 0


def refuse_non_finite(X: NDArray[Any], name: str = "X") -> None:
    """Raise where rows of the array, which the error calls ``name``, hold NaN, infinity or values beyond float32."""
    finite = np.isfinite(X)
    if finite.all():
        return
    bad = int(np.count_nonzero(~finite.all(axis=1)))
    what = "NaN" if np.isnan(X).any() else "infinity or values too large for float32"
    raise ValueError(f"{name} must be finite float32 numbers, got {bad} of {len(X)} rows that hold {what}")


def refuse_origin(origin: NDArray[np.float32]) -> None:
    """Refuse sparse vectors where something else than zero would have to be subtracted."""
    if origin.any():
        raise ValueError(
            "X must be dense for a model that was trained on dense vectors, got a sparse matrix: nothing can be "
            "subtracted from it; train on sparse X, or give blocks of X.toarray()"
        )


def relative(block: Any, origin: NDArray[np.float32], name: str = "X") -> NDArray[np.float32]:
    """Return a block of rows as float32 relative to the origin; refuses what is not finite. Sparse ones stay sparse."""
    if isinstance(block, SparseRows):
        refuse_origin(origin)
        return cast("NDArray[np.float32]", block.as_float32(name))
    with np.errstate(over="ignore", invalid="ignore"):
        # Types that float32 holds exactly are subtracted in it; of others a large offset would leave too little.
        precision: type[np.floating[Any]] = np.float32 if np.can_cast(block.dtype, np.float32) else np.float64
        out = (np.asarray(block, dtype=precision) - origin).astype(np.float32, copy=False)
        total = out.sum()
    if not np.isfinite(total):
        refuse_non_finite(out, name)
    return np.ascontiguousarray(out)


def origin_of(X: Any, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the median (D,) of some rows as float32 numbers, so that subtracting it rounds once in any precision.

    That of sparse vectors is zero.
    """
    if isinstance(X, SparseRows):
        return np.zeros(X.shape[1], np.float32)
    sample = np.asarray(X[rows], dtype=np.float64)
    refuse_non_finite(sample, "the drawn rows of X")
    return np.asarray(np.median(sample, axis=0), dtype=np.float32)


def refuse_non_finite_anywhere(X: Any) -> None:
    """Look at all rows of an array in memory; sums are enough to see whether anything is wrong."""
    if isinstance(X, SparseRows):
        X.refuse_non_finite("X")
        return
    if X.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(X.sum(dtype=np.float64))
    if not fine:
        refuse_non_finite(X)
