"""Rotations of directions: drawn at random, or brought closest to the corners of the cube."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

__all__ = ["random_rotation", "rotate_to_corners"]


def random_rotation(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw an orthogonal matrix from the uniform (Haar) distribution."""
    q, r = np.linalg.qr(rng.standard_normal((size, size)))
    return np.asarray(q * np.sign(np.diag(r)))


def rotate_to_corners(
    V: NDArray[np.float32], R: NDArray[np.float64], max_iter: int
) -> tuple[NDArray[np.float64], list[float]]:
    """Alternate B = sign(V R) and the rotation R that brings V closest to B (orthogonal Procrustes).

    V is (N, c) and R (c, b) with orthonormal rows, c <= b. Returns R and the quantisation loss |B - V R|^2 / N of the R
    given and of each one after it.
    """
    losses = []
    size = float(np.einsum("ij,ij->", V, V, dtype=np.float64)) + len(V) * R.shape[1]  # |V R|^2 + |B|^2 for any R and B
    one = V.dtype.type(1.0)
    for iteration in range(max_iter + 1):
        B = np.where(V @ R.astype(np.float32) > 0, one, -one)
        fit = (V.T @ B).astype(np.float64)
        losses.append((size - 2.0 * float(np.sum(fit * R))) / len(V))
        if iteration < max_iter:
            left, _, right = scipy.linalg.svd(fit, full_matrices=False)
            R = left @ right
    return R, losses
