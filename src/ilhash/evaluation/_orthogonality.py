"""Orthogonality of codes and of hash functions, as in section 4 and appendix B of the paper.

C holds the normalised dot products of all pairs of bits, b x b, ones on the diagonal: of their values on N points
(C_Z = Z'Z / N with Z in {-1,+1}), or of their weight vectors (C_W = WW' with rows of norm 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes
from ilhash._checks import as_numbers, check_choice, check_count, check_positive
from ilhash._parameters import MOST

Matrix = NDArray[np.float64]

_BLOCK_ROWS = 1 << 15  # sums over a block are whole numbers that float32 holds exactly


def code_dot_products(packed: Any, n_bits: int) -> Matrix:
    """Return C_Z = Z'Z / N for N codes: 1 minus twice the share of codes in which two bits differ.

    Parameters
    ----------
    packed : uint8 array (N, ceil(n_bits / 8)), packed codes
    n_bits : int, bits of a code

    Returns
    -------
    float64 array (n_bits, n_bits), ones on the diagonal

    Examples
    --------
    >>> code_dot_products(np.array([[0b00000000], [0b11000000], [0b10000000], [0b01000000]], np.uint8), 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    packed = codes.check(packed, n_bits)
    if len(packed) == 0:
        raise ValueError("codes must have rows to compare their bits, got none")
    blocks = (packed[first : first + _BLOCK_ROWS] for first in range(0, len(packed), _BLOCK_ROWS))
    return np.asarray(sum(_products_of_signs(block, n_bits) for block in blocks) / len(packed))


def _products_of_signs(packed: NDArray[np.uint8], n_bits: int) -> Matrix:
    signs = np.unpackbits(packed, axis=1, count=n_bits).astype(np.float32)
    signs *= 2.0
    signs -= 1.0
    return np.asarray(signs.T @ signs, dtype=np.float64)


def weight_dot_products(weights: Any) -> Matrix:
    """Return C_W = WW' of linear functions, one weight vector per row, without its bias; rows are normalised here.

    Functions of a feature subset have zeros elsewhere: ``model.weights()`` gives such rows. Weights are in units of the
    features; multiply them by the features' standard deviations to compare functions of standardised features.

    Parameters
    ----------
    weights : array (b, D), one row per function

    Returns
    -------
    float64 array (b, b), ones on the diagonal

    Examples
    --------
    >>> weight_dot_products([[3.0, 0.0], [3.0, -4.0]]).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """
    table = as_numbers("weights", weights)
    if table.ndim != 2:
        raise ValueError(f"weights must be a 2-D array, one row per bit, got shape {table.shape}")
    bad = int(np.count_nonzero(~np.isfinite(table).all(axis=1)))
    if bad:
        raise ValueError(f"weights must be finite, got {bad} of {len(table)} rows that hold NaN or infinity")
    largest = np.abs(table).max(axis=1, initial=0.0)
    _refuse_zero(largest, "weights")
    table = table / largest[:, None]  # so that no square overflows or vanishes
    return _normalised(table @ table.T)


def kernel_dot_products(coefficients: Any, centers: Any, width: float) -> Matrix:
    """Return C_W of kernel functions ``f(x) = sum_j a_j exp(-|x - c_j|^2 / s)``: their dot products in their space.

    There the dot product of two functions is a'Ka' with the kernel K between the centres of one and of the other.

    Parameters
    ----------
    coefficients : array (b, m), or sequence of b arrays (m_i,), by common centres, or by those of each function
    centers : array (m, d), or sequence of b arrays (m_i, d), common to all functions, or of each
    width : float, s; one kernel for all, or there is no space in which to compare them

    Returns
    -------
    float64 array (b, b), ones on the diagonal

    Examples
    --------
    >>> kernel_dot_products([[1.0, 0.0], [1.0, 1.0]], [[0.0], [10.0]], width=1.0).round(3).tolist()
    [[1.0, 0.707], [0.707, 1.0]]
    """
    check_positive("width", width)
    rows = [as_numbers("coefficients", row) for row in _listed("coefficients", coefficients)]
    listed = _listed("centers", centers)
    common = (isinstance(centers, np.ndarray) and centers.ndim == 2) or (bool(listed) and np.ndim(listed[0]) == 1)
    parts = [as_numbers("centers", part) for part in ([centers] * len(rows) if common else listed)]
    if len(parts) != len(rows):
        raise ValueError(f"centers must be one array per function, got {len(parts)} for {len(rows)} functions")
    for bit, (row, part) in enumerate(zip(rows, parts, strict=True)):
        _check_function(row, part, bit)
    if common:
        weights = np.stack(rows)
        products = weights @ _kernel(parts[0], parts[0], width) @ weights.T
    else:
        products = _private(rows, parts, width)
    _refuse_zero(np.diag(products), "coefficients")
    return _normalised(products)


def _listed(name: str, arrays: Any) -> list[Any]:
    numbers = not isinstance(arrays, np.ndarray) or (arrays.ndim > 1 and arrays.dtype.kind in "biufO")
    if (
        not isinstance(arrays, Sequence | np.ndarray)
        or isinstance(arrays, str | bytes)
        or not numbers
        or not len(arrays)
    ):
        raise ValueError(f"{name} must be an array or one array per function, got {type(arrays).__name__}")
    return list(arrays)


def _check_function(coefficients: Matrix, centers: Matrix, bit: int) -> None:
    if coefficients.ndim != 1 or centers.ndim != 2 or len(coefficients) != len(centers):
        got = f"shape {coefficients.shape} for centres of shape {centers.shape} (function {bit})"
        raise ValueError(f"coefficients must be one number per centre, got {got}")
    if not np.isfinite(coefficients).all() or not np.isfinite(centers).all():
        raise ValueError(f"coefficients and centers must be finite, got NaN or infinity (function {bit})")


def _private(coefficients: Sequence[Matrix], centers: Sequence[Matrix], width: float) -> Matrix:
    out = np.empty((len(centers), len(centers)))
    for i, (a, own) in enumerate(zip(coefficients, centers, strict=True)):
        for j in range(i, len(centers)):
            out[i, j] = out[j, i] = a @ _kernel(own, centers[j], width) @ coefficients[j]
    return out


def _kernel(a: Matrix, b: Matrix, width: float) -> Matrix:
    distances = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b) - 2.0 * (a @ b.T)
    return np.asarray(np.exp(np.maximum(distances, 0.0) / -width))


def _refuse_zero(sizes: NDArray[Any], name: str) -> None:
    zero = int(np.count_nonzero(sizes <= 0))
    if zero:
        raise ValueError(f"{name} must not be all zero for a bit, got {zero} of {len(sizes)} such: it has no direction")


def _normalised(products: Matrix) -> Matrix:
    norms = np.sqrt(np.diag(products))
    out = np.clip(products / norms[:, None] / norms, -1.0, 1.0)
    np.fill_diagonal(out, 1.0)
    return out


def orthogonality(C: Any) -> float:
    """Return the paper's measure ``|I - C|_F^2 / (b (b - 1))``: the mean squared entry off the diagonal.

    It lies between 0 (orthogonal) and 1 (all bits equal up to sign) and does not change when bits are negated, as
    Hamming distances do not. It is undefined for one bit.

    Parameters
    ----------
    C : array (b, b), normalised dot products

    Returns
    -------
    float, the mean squared entry off the diagonal

    Examples
    --------
    >>> orthogonality([[1.0, -0.5], [-0.5, 1.0]])
    0.25
    """
    return float(np.mean(_off_diagonal(C) ** 2))


def _off_diagonal(C: Any) -> NDArray[np.float64]:
    """Entries above the diagonal; C is symmetric."""
    table = as_numbers("C", C)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"C must be a square matrix, bits by bits, got shape {table.shape}")
    if len(table) < 2:
        raise ValueError(f"C must be of at least 2 bits: orthogonality is undefined for fewer, got {len(table)}")
    if not np.allclose(table, table.T, atol=1e-6) or not np.allclose(np.diag(table), 1.0, atol=1e-6):
        raise ValueError("C must be symmetric with ones on its diagonal, got another matrix: normalise the vectors")
    if np.abs(table).max() > 1.0 + 1e-6:
        raise ValueError(f"C must have entries between -1 and 1, got {np.abs(table).max():.3g}")
    return np.asarray(table[np.triu_indices(len(table), 1)])


def random_dot_products(n_bits: int, dimension: int, kind: str, seed: int = 0) -> Matrix:
    """Return C of random vectors, the paper's control.

    Parameters
    ----------
    n_bits : int, number of vectors, b
    dimension : int, d: the number of points N for codes, of features D for weights
    kind : {"codes", "weights"}, fair coins in {-1,+1}, or components uniform in [-1,1] that are then normalised
    seed : int, default 0, of the draw

    Returns
    -------
    float64 array (n_bits, n_bits), ones on the diagonal

    Examples
    --------
    >>> C = random_dot_products(50, 10_000, "codes")
    >>> bool(abs(orthogonality(C) - 1 / 10_000) < 1e-5)
    True
    """
    width = codes.bytes_per_code(n_bits)
    check_count("dimension", dimension, 1, MOST)
    check_choice("kind", kind, ("codes", "weights"))
    rng = np.random.default_rng(check_count("seed", seed, 0))
    if kind == "weights":
        return weight_dot_products(rng.uniform(-1.0, 1.0, (n_bits, dimension)))
    if kind != "codes":
        raise ValueError(f"kind must be 'codes' or 'weights', got {kind!r}")
    total = np.zeros((n_bits, n_bits))
    for first in range(0, dimension, _BLOCK_ROWS):
        rows = min(_BLOCK_ROWS, dimension - first)
        total += _products_of_signs(rng.integers(0, 256, (rows, width), np.uint8), n_bits)
    return total / dimension


@dataclass(frozen=True, eq=False)
class DotProducts:
    """Entries of C above its diagonal, beside those of random vectors of the same dimension.

    In theory (appendix B) entries of random vectors have mean 0 and variance 1 / d.

    Attributes
    ----------
    edges : float64 array (bins + 1,), the borders of the bins over [-1, 1]
    counts, random_counts : int64 array (bins,), entries in each bin
    mean, variance, random_mean, random_variance : float, of the entries (variance about the mean)
    orthogonality, random_orthogonality : float, the paper's measure, the mean square
    dimension : int, d
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    random_counts: NDArray[np.int64]
    mean: float
    variance: float
    random_mean: float
    random_variance: float
    orthogonality: float
    random_orthogonality: float
    dimension: int

    @property
    def theoretical_mean(self) -> float:
        """Of the dot product of random vectors: 0."""
        return 0.0

    @property
    def theoretical_variance(self) -> float:
        """Of the dot product of random vectors: 1 / d."""
        return 1.0 / self.dimension


def compare_with_random(C: Any, dimension: int, kind: str, *, bins: int = 100, seed: int = 0) -> DotProducts:
    """Return histograms of the off-diagonal entries of C and of a random control.

    Parameters
    ----------
    C : array (b, b), normalised dot products
    dimension, kind, seed : int, str and int, as in :func:`random_dot_products`
    bins : int, default 100, bins over [-1, 1]

    Returns
    -------
    DotProducts, both histograms, with mean and variance

    Examples
    --------
    >>> C = code_dot_products(np.array([[0], [64], [128], [192], [192]], np.uint8), 2)
    >>> found = compare_with_random(C, 5, "codes", bins=4)
    >>> found.counts, found.theoretical_variance
    (array([0, 0, 1, 0]), 0.2)
    """
    entries = _off_diagonal(C)
    control = _off_diagonal(random_dot_products(len(np.asarray(C)), dimension, kind, seed))
    edges = np.linspace(-1.0, 1.0, check_count("bins", bins, 1, 10**6) + 1)
    return DotProducts(
        edges=edges,
        counts=np.histogram(np.clip(entries, -1.0, 1.0), edges)[0],
        random_counts=np.histogram(control, edges)[0],
        mean=float(entries.mean()),
        variance=float(entries.var()),
        random_mean=float(control.mean()),
        random_variance=float(control.var()),
        orthogonality=float(np.mean(entries**2)),
        random_orthogonality=float(np.mean(control**2)),
        dimension=dimension,
    )
