"""All pairs of points at once: their similarities as a product of small factors instead of an N x N matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

_NEGLIGIBLE = 1e-10  # eigenvalues, as a share of the largest, that are rounding


@dataclass(frozen=True)
class AllPairs:
    """y_nm = +1 where points n and m share a label and -1 where they do not, for all n and m: y = F diag(sign) F'.

    Points with the same labels have the same row of F, so that the factors come from a matrix as large as there are
    different sets of labels: for L exclusive labels F is (N, L).
    """

    F: NDArray[np.float64]  # (N, r)
    sign: NDArray[np.float64]  # (r,) of -1 and +1

    @classmethod
    def of_labels(cls, indicator: NDArray[np.float32]) -> AllPairs:
        """Factor the similarities of points with labels (N, L)."""
        kinds, kind = np.unique(indicator, axis=0, return_inverse=True)
        values, vectors = scipy.linalg.eigh(np.where(kinds @ kinds.T > 0, 1.0, -1.0))
        kept = np.abs(values) > _NEGLIGIBLE * np.abs(values).max()
        factors = vectors[:, kept] * np.sqrt(np.abs(values[kept]))
        return cls(np.ascontiguousarray(factors[kind.ravel()]), np.sign(values[kept]))

    def loss(self, Z: NDArray[np.floating]) -> float:
        """Return the mean over all pairs of (z_n'z_m / b - y_nm)^2, KSH's loss, for codes Z (N, b) of -1 and +1."""
        n, b = Z.shape
        products = np.sum((Z.T @ Z).astype(np.float64) ** 2) / b**2
        agreement = float(self.sign @ np.sum((self.F.T @ Z) ** 2, axis=1)) / b
        return float((products - 2.0 * agreement) / n**2 + 1.0)
