"""Principal axes, and other orthogonal directions, each with the same sign wherever it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash.vectors import GatheredRows

_CHUNK = 4096  # rows in double precision at a time
NEGLIGIBLE = 1e-10  # variance, as a share of the largest, that is rounding


def covariance(rows: GatheredRows) -> NDArray[np.float64]:
    """Return the covariance matrix (D, D), added up in double precision."""
    total = np.zeros((rows.values.shape[1],) * 2)
    for first in range(0, len(rows.values), _CHUNK):
        chunk = rows.values[first : first + _CHUNK] - rows.mean
        total += chunk.T @ chunk
    return total / len(rows.values)


def principal_axes(rows: GatheredRows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the variances of all axes along which the rows vary, largest first, and the axes as columns."""
    n, d = rows.values.shape
    if d <= n:
        variances, axes = scipy.linalg.eigh(covariance(rows), driver="evd")
    else:  # the same axes from the smaller matrix of inner products
        centred = rows.values - rows.mean
        variances, axes = scipy.linalg.eigh(centred @ centred.T / n, driver="evd")
    kept = variances > NEGLIGIBLE * max(variances[-1], 0.0)
    variances, axes = variances[kept][::-1], axes[:, kept][:, ::-1]
    if d > n:
        axes = centred.T @ axes / np.sqrt(n * variances)
    return variances, one_way_round(axes)


def one_way_round(axes: NDArray[Any]) -> NDArray[Any]:
    """Turn columns so that their largest entry is positive: eigenvectors come with either sign."""
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0))
