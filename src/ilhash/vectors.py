"""Vectors as the other rooms see them: checked, read by rows, and taken relative to an origin.

All arithmetic on vectors is done in float32 on x - origin, where the origin is the median of a small seeded sample.
Large offsets thus cost no precision, whatever the input type, and nothing needs a pass over all of X.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core
from ilhash._scratch import scratch
from ilhash.sources import VectorSource, fingerprint

__all__ = [
    "Rows",
    "as_matrix",
    "chunks",
    "fingerprint",
    "gather",
    "kept_map",
    "on_disk",
    "origin_of",
    "refuse_non_finite",
    "refuse_non_finite_anywhere",
]

Matrix = NDArray[Any] | VectorSource

CHUNK_BYTES = 8 << 20  # of float32 input per step of a streamed computation

_Gather = Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]
_GATHER: dict[str, _Gather] = {
    "float32": _core.gather_f32,
    "float64": _core.gather_f64,
    "uint8": _core.gather_u8,
}


def as_matrix(X: Any, name: str = "X") -> NDArray[Any]:
    """Return X as a 2-D numeric array without copying what is already one; maps and sources stay on disk."""
    if isinstance(X, VectorSource):
        return cast("NDArray[Any]", X)  # whoever takes a matrix reads it by rows or in chunks, as below
    if scipy.sparse.issparse(X):
        raise TypeError(
            f"{name} must be a dense array, got a sparse matrix of shape {X.shape}: sparse input is not supported, "
            "use X.toarray()"
        )
    array: NDArray[Any] = np.asanyarray(X)
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
    if array.shape[0] == 0:
        raise ValueError(
            f"{name} must have rows, got 0 sample(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    if array.shape[1] == 0:
        raise ValueError(
            f"{name} must have columns, got 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    return array


def _from_objects(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold numbers, got an object array that does not convert: {error}") from None


@dataclass(frozen=True)
class Rows:
    """Some rows (and features) of X, as float32 relative to the origin.

    Attributes
    ----------
    values : float32 (N, d)
    with_ones : the same memory with a last column of ones, (N, d + 1)
    mean, variance : of each column of ``values``
    """

    with_ones: NDArray[np.float32]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @property
    def values(self) -> NDArray[np.float32]:
        """The vectors without the column of ones."""
        return self.with_ones[:, :-1]

    def rescaled(self, shift: NDArray[np.floating], factor: NDArray[np.floating]) -> Rows:
        """Return (values - shift) * factor, in the same memory: the unscaled rows are gone."""
        factor32 = factor.astype(np.float32)
        _core.rescale(self.values, shift.astype(np.float32), factor32)
        return Rows(self.with_ones, (self.mean - shift) * factor32, self.variance * factor32.astype(np.float64) ** 2)

    def copy(self) -> Rows:
        """Return rows with memory of their own."""
        return Rows(self.with_ones.copy(), self.mean, self.variance)

    def take(self, positions: NDArray[Any]) -> Rows:
        """Return the rows at some positions."""
        kept = self.with_ones[positions]
        values = kept[:, :-1].astype(np.float64)
        return Rows(kept, values.mean(axis=0), values.var(axis=0))


def gather(
    X: Matrix,
    rows: NDArray[np.int64],
    origin: NDArray[np.float32],
    features: NDArray[np.int32] | None = None,
    reuse: bool = False,
) -> Rows:
    """Read the drawn rows, and only those, of an array or memory map.

    With ``reuse`` the memory is this thread's scratch: it holds until the next such call.
    """
    n, d = len(rows), X.shape[1] if features is None else len(features)
    out = scratch("rows", (n, d + 1)) if reuse else np.empty((n, d + 1), np.float32)
    out[:, d] = 1.0
    own_origin = origin if features is None else origin[features]
    if isinstance(X, VectorSource):
        X, rows = X.take(rows), np.arange(n)
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
    return Rows(out, mean, np.maximum(squares / n - mean**2, 0.0))


def _has_contiguous_rows(X: NDArray[Any]) -> bool:
    rows, columns = X.strides
    return columns == X.itemsize and rows >= 0 and rows % X.itemsize == 0


def refuse_non_finite(X: NDArray[Any], name: str = "X") -> None:
    """Raise where rows hold NaN, infinity or values beyond float32; count them."""
    finite = np.isfinite(X).all(axis=1)
    if finite.all():
        return
    bad = int(np.count_nonzero(~finite))
    what = "NaN" if np.isnan(X).any() else "infinity or values too large for float32"
    raise ValueError(f"{name} must be finite float32 numbers, got {bad} of {len(X)} rows that hold {what}")


def chunks(X: Matrix, origin: NDArray[np.float32]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Stream all rows of X as float32 relative to the origin, in bounded memory; refuses what is not finite."""
    step = max(1, CHUNK_BYTES // (4 * X.shape[1]))
    first = 0
    for part in _parts(X, step):
        rows, first = slice(first, first + len(part)), first + len(part)
        with np.errstate(over="ignore", invalid="ignore"):
            # Types that float32 holds exactly are subtracted in it; of others a large offset would leave too little.
            precision: type[np.floating[Any]] = np.float32 if np.can_cast(part.dtype, np.float32) else np.float64
            chunk = (np.asarray(part, dtype=precision) - origin).astype(np.float32, copy=False)
            total = chunk.sum()
        if not np.isfinite(total):
            refuse_non_finite(chunk, f"X[{rows.start}:{rows.stop}]" if len(X) > step else "X")
        yield rows, np.ascontiguousarray(chunk)


def _parts(X: Matrix, step: int) -> Iterator[NDArray[Any]]:
    if isinstance(X, VectorSource):
        return X.blocks(step)
    return (X[first : first + step] for first in range(0, len(X), step))


def origin_of(X: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the median of some rows, as float32 numbers, so that subtracting it rounds once in any precision."""
    sample = np.asarray(X[rows], dtype=np.float64)
    if not np.isfinite(sample).all():
        refuse_non_finite(sample, "the drawn rows of X")
    return np.asarray(np.median(sample, axis=0), dtype=np.float32)


def on_disk(X: NDArray[Any]) -> bool:
    """Whether X is a source, a memory map, or a view of one."""
    array: Any = X
    if isinstance(array, VectorSource):
        return True
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def refuse_non_finite_anywhere(X: NDArray[Any]) -> None:
    """Look at all rows of an array in memory; sums are enough to see whether anything is wrong."""
    if X.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(X.sum(dtype=np.float64))
    if not fine:
        refuse_non_finite(X)


_kept_map: list[tuple[Any, NDArray[Any]]] = []


def kept_map(X: NDArray[Any]) -> NDArray[Any]:
    """Return the memory map that this process already has of the same part of the same file, or keep this one.

    A worker process receives a new map of X with every bit, and each would read all its pages in anew.
    """
    if not isinstance(X, np.memmap) or X.filename is None:
        return X
    file = os.stat(X.filename)  # a file that was written anew since is another file
    key = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, X.offset, X.shape, X.strides, X.dtype.str)
    if not _kept_map or _kept_map[0][0] != key:
        _kept_map[:] = [(key, X)]
    return _kept_map[0][1]
