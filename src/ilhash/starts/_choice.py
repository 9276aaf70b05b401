"""Which directions: a short list of shapes, judged by points or pairs that the directions were not learnt from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity import Labels, LabelSets, SharedLabels, SimilarPairs, Supervision
from ilhash.diversity import UniformOrder, seed_for
from ilhash.rotations import random_rotation, rotate_to_corners
from ilhash.starts._judging import judge_of_labels, judge_of_neighbors, judge_of_pairs
from ilhash.starts._moments import Matrix, Moments, Shape, Values, directions
from ilhash.vectors import gather

SAMPLE = 10_000  # points, or similar pairs, that directions are learnt from
SPACE = 256  # leading principal directions of all points, in which everything else is done
ROTATED = 4_000  # points that rotations are fitted to
TURNS = 20  # alternations of a rotation
JUDGED_TURNS = 8  # the same while shapes are compared
JUDGED_BITS = 64

PRINCIPAL = Shape(None, "excess", 64)
SHRINKAGES = (0.01, 0.1, 0.3, 0.6)
SCALES = ("agreement", "excess")
WIDTHS = (32, 16)


@dataclass(frozen=True)
class Basis:
    """Directions that are rotated together, one rotation for each group of as many bits.

    Attributes
    ----------
    columns : float64 array (D, m), the directions
    sample : float32 array (n, m), points of the sample along them, of unit mean variance
    seed : int, of the rotations
    """

    columns: Matrix
    sample: Values
    seed: int

    def rotated(self, group: int) -> NDArray[np.float32]:
        """Return the directions of a group of bits as rows, (m, D)."""
        turned = self.columns @ rotation(self.sample, seed_for(self.seed, "rotation", group), TURNS)
        return np.ascontiguousarray(turned.T, dtype=np.float32)


@dataclass(frozen=True)
class Projection:
    """Directions of all bits that a model may have.

    Attributes
    ----------
    shape : Shape, the one that was taken
    scores : dict of str to float, what held-out points or pairs said of the best shape and of principal directions
    mean : float32 array (D,), the mean of the sample, relative to the model's origin
    bases : tuple of Basis, bits take them in turn
    """

    shape: Shape
    scores: dict[str, Any]
    mean: NDArray[np.float32]
    bases: tuple[Basis, ...]

    def directions_of(self, bits: range) -> NDArray[np.float32]:
        """Return the directions of some bits, (bits, D), the same ones whichever bits are asked for with them."""
        rotated: dict[tuple[int, int], NDArray[np.float32]] = {}
        out = np.empty((len(bits), len(self.mean)), np.float32)
        for place, bit in enumerate(bits):
            turn, which = divmod(bit, len(self.bases))
            group, column = divmod(turn, self.bases[which].columns.shape[1])
            if (which, group) not in rotated:
                rotated[which, group] = self.bases[which].rotated(group)
            out[place] = rotated[which, group][column]
        return out

    def about(self) -> dict[str, Any]:
        """Describe the choice in plain JSON."""
        widths = [int(basis.columns.shape[1]) for basis in self.bases]
        return {**asdict(self.shape), "directions": widths, **self.scores}


def rotation(sample: Values, seed: int, turns: int) -> Matrix:
    """Draw a rotation and bring the sample closest to the corners of the cube from there."""
    start = random_rotation(sample.shape[1], np.random.default_rng(seed))
    return rotate_to_corners(sample, start, turns)[0]


def learn_projection(X: Any, supervision: Supervision, origin: NDArray[np.float32], seed: int) -> Projection | None:
    """Learn directions from a bounded sample; None where the points do not vary."""
    rows = np.sort(_pool(supervision).take(seed_for(seed, "directions"), 0, min(SAMPLE, _pool(supervision).size)))
    points = gather(X, rows, origin)
    mean = points.mean.astype(np.float32)
    variances, axes = _principal(np.asarray(points.values - mean))
    if not len(variances):
        return None
    projected = np.asarray(points.values - mean) @ axes.astype(np.float32)
    similarity = supervision.similarity(seed_for(seed, "directions", 0), SAMPLE)
    own = projected
    if similarity is not None and not np.array_equal(similarity.rows, rows):
        own = np.asarray(gather(X, similarity.rows, origin).values - mean) @ axes.astype(np.float32)
    shape, scores = choose(similarity, own, projected, np.diag(variances), supervision.n_points, seed)
    moments = None if shape.shrinkage is None or similarity is None else Moments.of(similarity, own)
    shapes = [shape]
    if moments is not None and similarity is not None and few_judged(supervision):
        shapes.append(PRINCIPAL)
    total, some = np.diag(variances), projected[_some(len(projected), seed, ROTATED)]
    bases = []
    for number, one in enumerate(shapes):
        inner = directions(moments, total, one)
        sample = _unit(some @ inner.astype(np.float32))
        bases.append(Basis(axes @ inner, sample, seed_for(seed, "directions", 2 + number) % 2**63))
    return Projection(shape, scores, mean, tuple(bases))


def few_judged(supervision: Supervision) -> bool:
    """Whether less than half of the points have a label or a neighbour: what is not judged is found by distance."""
    drawable = supervision.drawable
    return drawable is not None and 2 * len(drawable) < supervision.n_points


def choose(
    similarity: SharedLabels | SimilarPairs | None, own: Values, points: Values, total: Matrix, n_points: int, seed: int
) -> tuple[Shape, dict[str, Any]]:
    """Return the shape that held-out points or pairs find best, and what they say.

    Principal directions are left only for what is better by more than two standard errors of the difference.
    """
    judging_seed = seed_for(seed, "directions", 1)
    if similarity is None:
        judge, moments = judge_of_neighbors(points, judging_seed), None
    elif isinstance(similarity, SharedLabels):
        judge, moments = judge_of_labels(similarity, own, n_points, judging_seed)
    else:
        judge, moments = judge_of_pairs(similarity, own, points, judging_seed)
    if judge is None:
        return PRINCIPAL, {"judged": 0}
    fitted_to = points[_some(len(points), judging_seed, ROTATED)]

    def scores_of(shape: Shape) -> NDArray[np.float64]:
        inner = directions(moments, total, shape).astype(np.float32)
        return judge.scores(_trial_codes(inner, fitted_to, judging_seed), judge.weights)

    tried: dict[Shape, NDArray[np.float64]] = {}

    def best_of(shapes: list[Shape]) -> Shape:
        for shape in shapes:
            if shape not in tried:
                tried[shape] = scores_of(shape)
        return max(shapes, key=lambda shape: tried[shape].sum())

    shapes = [PRINCIPAL]
    if moments is not None:
        shapes += [Shape(a, scale, PRINCIPAL.width) for a in SHRINKAGES for scale in SCALES]
    best = best_of(shapes)
    best = best_of([best, *(Shape(best.shrinkage, best.scale, width) for width in WIDTHS)])
    gain = tried[best] - tried[PRINCIPAL]
    noise = np.sqrt(len(gain)) * gain.std()
    chosen = best if gain.sum() > 2.0 * noise else PRINCIPAL
    about = {"judged": len(gain), "score": float(tried[chosen].sum()), "principal": float(tried[PRINCIPAL].sum())}
    return chosen, about


def _trial_codes(inner: NDArray[np.float32], fitted_to: Values, seed: int) -> Any:
    """Return what gives the trial codes of some points: a few groups of rotated directions."""
    along = fitted_to @ inner
    sample, size = _unit(along), inner.shape[1]
    groups = -(-JUDGED_BITS // size)
    turns = [rotation(sample, seed_for(seed % 2**63, "rotation", group), JUDGED_TURNS) for group in range(groups)]
    turned = inner @ np.concatenate(turns, axis=1)[:, :JUDGED_BITS].astype(np.float32)
    middle = np.median(fitted_to @ turned, axis=0)
    return lambda values: np.where(values @ turned > middle, np.float32(1.0), np.float32(-1.0))


def _pool(supervision: Supervision) -> UniformOrder:
    """Return all points but those that no model may be trained on."""
    withheld = supervision.withheld if isinstance(supervision, Labels | LabelSets) else None
    if withheld is None:
        return UniformOrder(supervision.n_points)
    return UniformOrder(supervision.n_points, np.setdiff1d(np.arange(supervision.n_points), withheld))


def _principal(centered: Values) -> tuple[NDArray[np.float64], Matrix]:
    """Return the variances of the leading principal directions, largest first, and the directions as columns."""
    n, d = centered.shape
    covariance = (centered.T @ centered).astype(np.float64) / n
    least = max(0, d - SPACE)
    variances, axes = scipy.linalg.eigh(covariance, subset_by_index=[least, d - 1])
    kept = variances > 1e-10 * max(variances[-1], 0.0)
    return variances[kept][::-1], np.ascontiguousarray(axes[:, kept][:, ::-1])


def _unit(values: Values) -> Values:
    size = np.sqrt(np.mean(values.astype(np.float64) ** 2))
    return np.asarray(values / np.float32(max(size, 1e-30)))


def _some(n: int, seed: int, size: int) -> NDArray[np.int64]:
    return np.sort(_core.permuted(n, seed, 0, min(n, size)))
