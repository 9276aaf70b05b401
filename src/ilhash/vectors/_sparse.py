"""Vectors most of whose numbers are zero: rows of a CSR matrix, taken by rows and never made dense as a whole.

Nothing is subtracted from them: the origin of sparse vectors is zero, or they would not be sparse any more.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MOST_COLUMNS = 1 << 24  # a model has a weight per column and bit; a small file could ask for any number
WAY_OUT = "ILH takes it with linear functions; for all else reduce it, as by sklearn.decomposition.TruncatedSVD"


class SparseRows:
    """A sparse matrix that is read as an array is: ``len``, rows by slices or numbers, columns by numbers, ``@``.

    Parameters
    ----------
    matrix : scipy.sparse.csr_array (n, D), of real numbers, indices in order, each once

    Attributes
    ----------
    matrix : scipy.sparse.csr_array, the same
    shape, dtype : (int, int) and dtype, of the matrix
    """

    ndim = 2

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.matrix.dtype
        return dtype

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept of the matrix."""
        matrix = self.matrix
        return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __repr__(self) -> str:
        return f"SparseRows of shape {self.shape}, {self.dtype}, {self.matrix.nnz} numbers that are kept"

    def __getitem__(self, which: Any) -> SparseRows:
        return SparseRows(self.matrix[which])

    def __matmul__(self, other: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.matrix @ other)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        raise TypeError(f"X must be a dense array here, got a sparse matrix of shape {self.shape}: {WAY_OUT}")

    def dense(self) -> Floats:
        """Return a few rows as an array."""
        return np.asarray(self.matrix.toarray(), dtype=np.float32)

    def squared_norms(self) -> Floats:
        """Return the sum of squares of every row."""
        squares = self.matrix.data.astype(np.float64) ** 2
        return np.bincount(self._rows(), squares, len(self)).astype(np.float32)

    def as_float32(self, name: str) -> SparseRows:
        """Return the rows in single precision; errors call them by the name."""
        with np.errstate(over="ignore"):
            own = SparseRows(self.matrix.astype(np.float32, copy=False))
        own.refuse_non_finite(name)
        return own

    def refuse_non_finite(self, name: str) -> None:
        """Raise where rows hold NaN, infinity or values beyond float32."""
        data = self.matrix.data
        if data.dtype.kind != "f":
            return
        with np.errstate(over="ignore"):
            finite = np.isfinite(data.astype(np.float32, copy=False))
        if finite.all():
            return
        bad = len(np.unique(self._rows()[~finite]))
        what = "NaN" if np.isnan(data).any() else "infinity or values too large for float32"
        raise ValueError(f"{name} must be finite float32 numbers, got {bad} of {len(self)} rows that hold {what}")

    def fingerprint(self) -> str:
        """Identify the vectors by shape, type, how many numbers are kept, and up to 64 rows spread over them."""
        digest = hashlib.sha256(f"sparse {self.shape} {self.dtype.str} {self.matrix.nnz}".encode())
        some = self.matrix[np.unique(np.linspace(0, len(self) - 1, 64).astype(np.int64))]
        for part in (some.indptr.astype(np.int64), some.indices.astype(np.int64), some.data):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def _rows(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self)), np.diff(self.matrix.indptr))


def as_sparse(X: Any, name: str) -> SparseRows:
    """Return a sparse matrix of any format as rows; what is CSR in good order is not copied, and X stays as it is."""
    kind = np.dtype(X.dtype).kind
    if kind == "c":
        raise ValueError(f"{name} must be real numbers, got {X.dtype}: Complex data not supported")
    if kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, got dtype {X.dtype}")
    if X.ndim != 2 or 0 in X.shape:
        what, got = ("rows", "sample") if X.shape[0] == 0 else ("columns", "feature")
        raise ValueError(f"{name} must have {what}, got 0 {got}(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"{name} must have at most {MOST_COLUMNS} columns, got {X.shape[1]}: hash them to fewer")
    given = X.tocsr()
    matrix = scipy.sparse.csr_array((given.data, given.indices, given.indptr), shape=given.shape)
    try:
        matrix.check_format(full_check=True)  # an index beyond the matrix would be read as one within
    except ValueError as error:
        raise ValueError(f"{name} must be a sparse matrix whose indices lie within it, got another: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return SparseRows(matrix)


@dataclass(frozen=True)
class GatheredSparse:
    """Some rows (and features) of a sparse X, as float32; mean and variance are of each column, zeros included."""

    values: SparseRows
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    def copy(self) -> GatheredSparse:
        """Return the same rows: nobody writes to them."""
        return self

    def take(self, positions: NDArray[Any]) -> GatheredSparse:
        """Return the rows at some positions."""
        return _measured(self.values[positions])

    def ranges(self) -> NDArray[np.float64]:
        """Return the most that each column lies from its mean."""
        matrix = self.values.matrix
        highest, lowest = (np.asarray(one.toarray(), np.float64).ravel() for one in (matrix.max(0), matrix.min(0)))
        return np.asarray(np.maximum(highest - self.mean, self.mean - lowest))


def gather_sparse(X: SparseRows, rows: NDArray[np.int64], features: NDArray[np.int32] | None) -> GatheredSparse:
    """Take some rows and columns."""
    own = X[rows] if features is None else X[rows][:, features]
    return _measured(own.as_float32("the drawn rows of X"))


def _measured(values: SparseRows) -> GatheredSparse:
    matrix, (n, d) = values.matrix, values.shape
    data = matrix.data.astype(np.float64)
    mean = np.bincount(matrix.indices, data, d) / n
    squares = np.bincount(matrix.indices, data**2, d) / n
    if squares.max(initial=0.0) > 1e36:
        raise ValueError("X must hold numbers whose squares are finite in float32, got some beyond 1e18; rescale X")
    if not squares.max(initial=0.0) > 1e-30 and data.any():
        raise ValueError(
            "X must hold numbers whose squares are above zero in float32, got none beyond 1e-15; rescale X"
        )
    return GatheredSparse(values, mean, np.maximum(squares - mean**2, 0.0))


# ------------------------------------------------------------------------------------------------ directions

OVERSAMPLED = 64  # directions beyond those that are wanted, which make the last of them right
PASSES = 4  # over the rows
FAINT = 1e-6  # share of the largest variance below which single precision sees none


def projected_on(values: Any, mean: NDArray[np.float32], axes: Floats) -> Floats:
    """Return (values - mean) @ axes, of rows of an array or of sparse ones, which stay sparse."""
    if isinstance(values, SparseRows):
        return np.asarray(values @ axes - mean @ axes)
    return np.asarray(np.asarray(values - mean) @ axes)


def principal_of_sparse(
    values: SparseRows, mean: NDArray[np.float32], k: int, seed: int
) -> tuple[NDArray[np.float64], Floats]:
    """Return the variances of the k leading principal directions, largest first, and the directions as columns.

    By a randomised range finder (Halko, Martinsson and Tropp, 2011) with a few passes over the rows, of which the mean
    is subtracted from the products. The leading directions are exact to single precision, the last ones nearly.
    """
    n, d = values.shape
    width = min(k + OVERSAMPLED, n, d)
    across = values.matrix.T

    def transposed(sketch: Floats) -> Floats:
        product = np.asarray(across @ sketch)
        product -= mean[:, None] * sketch.sum(axis=0)
        return product

    # Orthonormal among the points, of which there are fewer than columns.
    sketch = np.random.default_rng(seed).standard_normal((n, width), dtype=np.float32)
    for _ in range(PASSES):
        sketch = _orthonormal(projected_on(values, mean, transposed(sketch)))
    inside = transposed(sketch)
    squares, turns = scipy.linalg.eigh((inside.T @ inside).astype(np.float64))
    kept = np.flatnonzero(squares > FAINT * max(squares[-1], 0.0))[::-1][:k]
    return squares[kept] / n, np.asarray(inside @ (turns[:, kept] / np.sqrt(squares[kept])).astype(np.float32))


def _orthonormal(columns: NDArray[Any]) -> Floats:
    return np.asarray(scipy.linalg.qr(columns, mode="economic", check_finite=False)[0], dtype=np.float32)
