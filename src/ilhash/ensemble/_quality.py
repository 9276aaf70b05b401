"""Cheap checks of a trained model that tell a user what to do; they read, and change nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash.affinity import SharedLabels, SparseAffinity, Supervision
from ilhash.diversity import UniformOrder, seed_for
from ilhash.ensemble._bit import BitReport
from ilhash.parallel import single_threaded_blas
from ilhash.rotations import random_rotation, rotate_to_corners
from ilhash.starts import Judge, judge_of_labels, judge_of_neighbors, judge_of_pairs
from ilhash.vectors import SparseRows, gather, principal_of_sparse, projected_on

FEWEST_BITS = 16
FEWEST_POINTS = 1_000
MOST_BITS = 64  # bits that are compared with as many of ITQ
SAMPLE = 2_000
TURNS = 10  # of ITQ's rotation
SAME = 0.99  # share of points on which two bits agree, or differ, that are nearly the same
NEAR_HALF = 0.6  # accuracy
EDGES = 2.0  # per judged point
WORSE = 0.9  # share of ITQ's score
ERRORS = 3.0  # standard errors that the difference must exceed

Codes = NDArray[np.float32]


class QualityWarning(UserWarning):
    """A model was trained, but something can be done to make it better; ``fit(..., check=False)`` does not look."""


def warn_of_quality(model: Any, X: Any, supervision: Supervision) -> None:
    """Look at a trained ILH and warn of what a user should know."""
    if len(model.functions_) < FEWEST_BITS or supervision.n_points < FEWEST_POINTS:
        return
    with single_threaded_blas():
        found = [*_of_reports(model.bits_), *_of_edges(model, supervision), *_of_codes(model, X, supervision)]
    for sentence in found:
        warnings.warn(sentence, QualityWarning, stacklevel=4)


def _of_reports(reports: list[BitReport]) -> list[str]:
    poor = [report for report in reports if report.accuracy < NEAR_HALF]
    if 2 * len(poor) <= len(reports):
        return []
    mean = np.mean([report.accuracy for report in poor])
    return [
        f"{len(poor)} of {len(reports)} bits cannot be reproduced by their functions (accuracy {mean:.2f} on their "
        "training points): take start='projection', or a stronger hash_function"
    ]


def _of_edges(model: Any, supervision: Supervision) -> list[str]:
    if model.start_["kind"] != "random" or not isinstance(supervision, SparseAffinity):
        return []
    degrees = np.diff(supervision.matrix.indptr)
    per_point = float(degrees[degrees > 0].mean())
    if per_point >= EDGES:
        return []
    return [f"a judged point has {per_point:.1f} pairs on average, too few to cut by: take start='auto'"]


def _of_codes(model: Any, X: Any, supervision: Supervision) -> list[str]:
    pool = UniformOrder(supervision.n_points, supervision.drawable)
    rows = np.sort(pool.take(seed_for(model.seed_, "held out", 3), 0, min(SAMPLE, pool.size)))
    values = gather(X, rows, model.origin_).values
    n_bits = min(MOST_BITS, len(model.functions_))
    short = model[:n_bits]

    def own(vectors: Any) -> Codes:
        dense = not isinstance(vectors, SparseRows)
        return _signs(short._encoder.margins(np.ascontiguousarray(vectors) if dense else vectors))

    found = _of_equal_bits(own(values))
    judge, judged = _judge(model, X, supervision, values)
    if judge is None:
        return found
    other = _itq(values, n_bits, model.seed_)
    if other is None:
        return found
    mine, theirs = (judge.of(codes) for codes in (own, other))
    difference = mine - theirs
    noise = float(np.sqrt(len(difference)) * difference.std())
    what = "pairs" if isinstance(supervision, SparseAffinity) else "points"
    if mine.sum() < WORSE * theirs.sum() and -difference.sum() > ERRORS * noise:
        begin = "" if isinstance(model.start, str) and model.start == "auto" else "start='auto', "
        found.append(
            f"these codes retrieve worse than ITQ of the same length on {judged} of the {what} "
            f"({mine.sum():.3f} against {theirs.sum():.3f}, {n_bits} bits): take {begin}more n_train, or "
            "Mix([ILH(...), ITQ(...)])"
        )
    return found


def _of_equal_bits(codes: Codes) -> list[str]:
    agreement = np.abs(codes.T @ codes) / len(codes)  # 1 where two bits are the same, or opposite
    repeats = np.count_nonzero((np.tril(agreement, -1) > 2.0 * SAME - 1.0).any(axis=1))
    if 2 * repeats <= codes.shape[1]:
        return []
    return [
        f"{repeats} of {codes.shape[1]} bits are nearly the same as an earlier one: take fewer n_bits, or "
        "start='projection'"
    ]


def _judge(model: Any, X: Any, supervision: Supervision, values: Any) -> tuple[Judge | None, int]:
    """Return a small retrieval among vectors relative to the origin, and how many points or pairs it is by."""
    seed = seed_for(model.seed_, "held out", 4)
    similarity = supervision.similarity(seed, SAMPLE)
    if similarity is None and model.start_["kind"] == "projection":
        return None, 0  # these are ITQ's directions
    if similarity is None:
        judge = judge_of_neighbors(values, seed)
    else:
        own = gather(X, similarity.rows, model.origin_).values
        if isinstance(similarity, SharedLabels):
            judge = judge_of_labels(similarity, own, values, supervision.n_points, seed)
        else:
            judge = judge_of_pairs(similarity, own, values, seed)
    return judge, 0 if judge is None else len(judge.weights)


def _itq(values: Any, n_bits: int, seed: int) -> Callable[[Any], Codes] | None:
    """Learn ITQ from a few points; None where they vary in too few directions."""
    if isinstance(values, SparseRows):
        return _itq_of_sparse(values, n_bits, seed)
    mean = values.mean(axis=0)
    centered = values - mean
    d = centered.shape[1]
    if d < n_bits:
        return None
    covariance = (centered.T @ centered).astype(np.float64)
    variances, axes = scipy.linalg.eigh(covariance, subset_by_index=[d - n_bits, d - 1])
    if variances[0] <= 1e-10 * variances[-1]:
        return None
    directions = _turned(centered @ axes.astype(np.float32), axes, seed)
    return lambda vectors: _signs((vectors - mean) @ directions)


def _itq_of_sparse(values: SparseRows, n_bits: int, seed: int) -> Callable[[Any], Codes] | None:
    mean = (values.matrix.sum(axis=0) / len(values)).astype(np.float32)
    variances, axes = principal_of_sparse(values, mean, n_bits, seed_for(seed, "held out", 6) % 2**63)
    if len(variances) < n_bits:
        return None
    directions = _turned(projected_on(values, mean, axes), axes, seed)
    return lambda vectors: _signs(projected_on(vectors, mean, directions))


def _turned(projected: NDArray[np.float32], axes: NDArray[Any], seed: int) -> NDArray[np.float32]:
    """Return directions along the axes, rotated so that the points come closest to the corners of the cube."""
    n_bits = projected.shape[1]
    projected /= np.sqrt(np.mean(projected**2))
    start = random_rotation(n_bits, np.random.default_rng(seed_for(seed, "held out", 5)))
    return np.asarray((axes @ rotate_to_corners(projected, start, TURNS)[0]).astype(np.float32))


def _signs(margins: NDArray[np.float32]) -> Codes:
    return np.where(margins > 0, np.float32(1.0), np.float32(-1.0))
