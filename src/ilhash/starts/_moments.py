"""Second moments of points and of similar pairs, and the directions that they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash.affinity import SharedLabels, SimilarPairs

Values = NDArray[np.float32]
Matrix = NDArray[np.float64]

LEAST_RATIO = 1.0 + 1e-3  # of variance, total to within: directions below say nothing of what is similar


@dataclass(frozen=True)
class Shape:
    """How directions are made from moments.

    Attributes
    ----------
    shrinkage : float, optional
        Share a of a sphere in S = (1 - a) S_similar + a tr(S_similar) / d; None: principal directions of all points.
    scale : {"agreement", "excess"}
        How a direction of total variance r, in units of S, counts: by the root of the correlation 1 - 1/r of two
        similar points, all directions having the same variance before; or by the root of r - 1.
    width : int, leading directions that are rotated together
    """

    shrinkage: float | None
    scale: str
    width: int


@dataclass(frozen=True)
class Moments:
    """Covariance of the points, and of half the differences of similar ones."""

    total: Matrix
    similar: Matrix

    @classmethod
    def of(cls, similarity: SharedLabels | SimilarPairs, values: Values) -> Moments:
        """Measure both, points counting as often as they are similar to others."""
        weights = similarity.degrees
        share = weights / weights.sum()
        mean = (share @ values).astype(np.float32)
        scaled = (values - mean) * np.sqrt(share)[:, None].astype(np.float32)
        similar = similarity.scatter(values) / weights.sum()
        return cls((scaled.T @ scaled).astype(np.float64), (similar + similar.T) / 2.0)


def directions(moments: Moments | None, total: Matrix, shape: Shape) -> Matrix:
    """Return at most ``shape.width`` directions as columns (d, m), scaled by how much they count.

    ``total`` is the covariance of all points, which principal directions are of.
    """
    d = len(total)
    if shape.shrinkage is None or moments is None:
        variances, axes = scipy.linalg.eigh(total, subset_by_index=[max(0, d - shape.width), d - 1])
        kept = variances > 1e-10 * max(variances[-1], np.finfo(float).tiny)
        return np.ascontiguousarray(axes[:, kept][:, ::-1])
    sphere = max(np.trace(moments.similar) / d, 1e-6 * np.trace(moments.total) / d, np.finfo(float).tiny)
    within = (1.0 - shape.shrinkage) * moments.similar + shape.shrinkage * sphere * np.eye(d)
    ratios, axes = scipy.linalg.eigh(moments.total, within, subset_by_index=[max(0, d - shape.width), d - 1])
    ratios, axes = ratios[::-1], axes[:, ::-1]  # axes have variance 1 within
    useful = ratios > LEAST_RATIO
    useful[0] = True  # labels may say nothing of the vectors
    ratios, axes = np.maximum(ratios[useful], LEAST_RATIO), axes[:, useful]
    weight = np.sqrt(ratios - 1.0) if shape.scale == "excess" else np.sqrt(1.0 - 1.0 / ratios)
    return np.ascontiguousarray(axes * (weight / np.sqrt(ratios)))


def judged_directions(
    differences: Values, weights: NDArray[np.float64], variances: NDArray[np.float64], view: str, shrinkage: float
) -> Matrix:
    """Return directions as columns (d, m) from the differences of judged pairs, along principal directions.

    "within": M = S^-1, S the moments of similar pairs' differences shrunk towards the covariance of all points: the
    columns are the axes of M scaled by its roots, leading ones first. "contrast": generalised eigenvectors of the
    moments of dissimilar pairs against those of similar ones, both shrunk towards a sphere, scaled by the root of how
    much their ratio exceeds 1. Without similar pairs, or without dissimilar ones, those of random pairs are taken.
    """
    total = np.diag(variances)
    of_similar, of_others = (_second_moments(differences, sign * weights, total) for sign in (1.0, -1.0))
    d = len(variances)
    if view == "within":
        scaled = total * (np.trace(of_similar) / max(np.trace(total), np.finfo(float).tiny))
        shrunk = (1.0 - shrinkage) * of_similar + shrinkage * scaled
        values, axes = scipy.linalg.eigh(shrunk)  # smallest first: the leading axes of the inverse
        kept = values > 1e-10 * values[-1]
        return np.ascontiguousarray(axes[:, kept] / np.sqrt(values[kept]))
    sphere = np.trace(of_similar + of_others) / (2.0 * d) * np.eye(d)
    near, far = ((1.0 - shrinkage) * one + shrinkage * sphere for one in (of_similar, of_others))
    ratios, axes = scipy.linalg.eigh(far, near)
    ratios, axes = ratios[::-1], axes[:, ::-1]
    useful = ratios > LEAST_RATIO
    useful[0] = True
    return np.ascontiguousarray(axes[:, useful] * np.sqrt(np.maximum(ratios[useful], LEAST_RATIO) - 1.0))


def _second_moments(differences: Values, weights: NDArray[np.float64], total: Matrix) -> Matrix:
    """Return the mean of dd' over the pairs of positive weight; of random pairs where there are none."""
    some = np.flatnonzero(weights > 0)
    if not len(some):
        return 2.0 * total
    share = weights[some] / weights[some].sum()
    scaled = differences[some].astype(np.float64) * np.sqrt(share)[:, None]
    return np.asarray(scaled.T @ scaled)
