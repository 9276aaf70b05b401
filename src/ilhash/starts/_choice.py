"""Which directions: a short list of shapes, judged by points or pairs that the directions were not learnt from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity import JudgedAffinity, Labels, LabelSets, SharedLabels, SparseAffinity, Supervision
from ilhash.diversity import UniformOrder, seed_for
from ilhash.rotations import random_rotation, rotate_to_corners
from ilhash.starts._contrast import NOISES, Contrast, can_contrast
from ilhash.starts._judging import Codes, Judge, beaten_by, judge_of_labels, judge_of_neighbors, judge_of_pairs
from ilhash.starts._moments import Matrix, Moments, Shape, Values, directions, judged_directions
from ilhash.vectors import SparseRows, gather, principal_of_sparse, projected_on

SAMPLE = 10_000  # points that directions are learnt from
PAIRS = 50_000  # similar pairs, the same
SPACE = 256  # leading principal directions of all points, in which everything else is done
ROTATED = 10_000  # points that rotations are fitted to
TURNS = 30  # alternations of a rotation
JUDGED_POINTS = 4_000  # the same while shapes are compared
JUDGED_TURNS = 8
JUDGED_BITS = FIRST_BITS = 64
ERRORS = 1.0  # standard errors by which other directions must be better than principal ones

PRINCIPAL = Shape(None, "excess", 64)
SHRINKAGES = (0.01, 0.1, 0.3, 0.6)
SCALES = ("agreement", "excess")
WIDTHS = (32, 16)
JUDGED_SPACE = {"within": 32, "contrast": 64}  # leading principal directions, where few pairs are judged
JUDGED_WIDTH = {"within": 32, "contrast": 16}


@dataclass(frozen=True)
class Basis:
    """Directions that are rotated together, one rotation for each group of as many bits.

    The first bits take the leading ``width`` directions; after two bits for each, the next ones take twice as many, and
    so on: what is left to say is in the directions that come after.

    Attributes
    ----------
    axes : float array (D, d), principal directions of the points
    inner : float64 array (d, m), the directions among them, the leading ones first
    sample : float32 array (n, m), points of the sample along them
    width : int, directions that the first bits take
    seed : int, of the rotations
    contrast : Contrast, optional, what each group, of 64 bits then, is refined by after its rotation
    refinement : (int, float), for how many steps and with how much noise
    """

    axes: NDArray[Any]
    inner: Matrix
    sample: Values
    width: int
    seed: int
    contrast: Contrast | None = None
    refinement: tuple[int, float] = (0, 0.0)

    def place(self, turn: int) -> tuple[int, int, int]:
        """Return how many directions bit number ``turn`` of this basis takes, the first bit of its group, its place."""
        if self.contrast is not None:
            return min(FIRST_BITS, self.inner.shape[1]), turn // FIRST_BITS * FIRST_BITS, turn % FIRST_BITS
        width, begin = min(self.width, self.inner.shape[1]), 0
        while width < self.inner.shape[1] and turn >= begin + max(2 * width, FIRST_BITS):
            begin += max(2 * width, FIRST_BITS)
            width = min(2 * width, self.inner.shape[1])
        group, column = divmod(turn - begin, width)
        return width, begin + group * width, column

    def rotated(self, width: int, first: int) -> NDArray[np.float32]:
        """Return the directions of the group of bits that begins with number ``first`` as rows, (bits, D)."""
        turns = 0 if first else TURNS  # all that are brought closest to corners end up alike
        bits = width if self.contrast is None else FIRST_BITS
        turned = rotation(_unit(self.sample[:, :width]), seed_for(self.seed, "rotation", first), turns, bits)
        if self.contrast is None:
            columns = self.axes @ self.inner.astype(self.axes.dtype)
            return np.ascontiguousarray((columns[:, :width] @ turned).T, dtype=np.float32)
        steps, noise = self.refinement
        seed = seed_for(self.seed, "contrast", first)
        among = self.contrast.refined(self.inner[:, :width] @ turned, seed, (steps,), noise)[0]
        return np.ascontiguousarray((self.axes @ among.astype(self.axes.dtype)).T, dtype=np.float32)


@dataclass(frozen=True)
class Trial:
    """Points, directions and a judge by which one may see what becomes of starts.

    Attributes
    ----------
    judge : Judge, of codes of values as below
    rows : int64 array (n,), rows of X that may be learnt from
    values : float32 array (n, d), their coordinates along principal directions
    directions : float32 array (JUDGED_BITS, d), of trial bits, among these coordinates
    principal : float32 array (JUDGED_BITS, d), optional, the same of principal directions; None where those are such
    """

    judge: Judge
    rows: NDArray[np.int64]
    values: Values
    directions: NDArray[np.float32]
    principal: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Projection:
    """Directions of all bits that a model may have.

    Attributes
    ----------
    shape : Shape, the one that was taken
    scores : dict of str to float, what held-out points or pairs said of the best shape and of principal directions
    mean : float32 array (D,), the mean of the sample, relative to the model's origin
    bases : tuple of Basis, the second, if there is one, of principal directions
    shared : bool, whether bits take both in turn whatever becomes of starts, since most points are not judged
    trial : Trial, optional, None where too little is known to hold any of it out
    """

    shape: Shape
    scores: dict[str, Any]
    mean: NDArray[np.float32]
    bases: tuple[Basis, ...]
    trial: Trial | None
    shared: bool = False

    def directions_of(self, bits: range, n_bases: int = 1) -> NDArray[np.float32]:
        """Return the directions of some bits, (bits, D), the same ones whichever bits are asked for with them.

        Bits take the first bases in turn, as many as are wanted.
        """
        rotated: dict[tuple[int, int, int], NDArray[np.float32]] = {}
        out = np.empty((len(bits), len(self.mean)), np.float32)
        for place, bit in enumerate(bits):
            turn, which = divmod(bit, n_bases)
            width, first, column = self.bases[which].place(turn)
            if (which, width, first) not in rotated:
                rotated[which, width, first] = self.bases[which].rotated(width, first)
            out[place] = rotated[which, width, first][column]
        return out

    def about(self, n_bases: int = 1) -> dict[str, Any]:
        """Describe the choice in plain JSON."""
        widths = [basis.place(0)[0] for basis in self.bases[:n_bases]]
        return {**asdict(self.shape), "directions": widths, **self.scores}


def rotation(sample: Values, seed: int, turns: int, bits: int | None = None) -> Matrix:
    """Draw a rotation and bring the sample closest to the corners of the cube from there.

    With more bits than directions it is part of one: rows are orthonormal.
    """
    d = sample.shape[1]
    start = random_rotation(bits or d, np.random.default_rng(seed))[:d]
    return rotate_to_corners(sample, start, turns)[0]


def learn_projection(X: Any, supervision: Supervision, origin: NDArray[np.float32], seed: int) -> Projection | None:
    """Learn directions from a bounded sample; None where the points do not vary."""
    rows = np.sort(_pool(supervision).take(seed_for(seed, "directions"), 0, min(SAMPLE, _pool(supervision).size)))
    points = gather(X, rows, origin)
    mean = points.mean.astype(np.float32)
    variances, axes = _principal(points.values, mean, seed)
    if not len(variances):
        return None
    projected = projected_on(points.values, mean, axes.astype(np.float32))
    if isinstance(supervision, JudgedAffinity):
        return _of_judged(X, supervision, origin, seed, mean, variances, axes, projected)
    size = PAIRS if isinstance(supervision, SparseAffinity) else SAMPLE
    known = supervision.implied() if isinstance(supervision, SparseAffinity) else None
    similarity = (known or supervision).similarity(seed_for(seed, "directions", 0), size if known is None else SAMPLE)
    own = projected
    if similarity is not None and not np.array_equal(similarity.rows, rows):
        own = projected_on(gather(X, similarity.rows, origin).values, mean, axes.astype(np.float32))
    total = np.diag(variances)
    judge = _judge(similarity, own, projected, supervision.n_points, seed)
    shape, scores = (PRINCIPAL, {"judged": 0}) if judge is None else choose(judge, own, projected, total, seed)
    moments = None if shape.shrinkage is None or similarity is None else Moments.of(similarity, own)
    refinement, turned = (0, 0.0), None
    if judge is not None and judge.learnt is not None:
        turned, refinement, scores = refine(judge, own, projected, total, shape, scores, seed)
    shapes = [shape] if shape.shrinkage is None and not refinement[0] else [shape, PRINCIPAL]
    some = projected[_some(len(projected), seed_for(seed, "directions"), ROTATED)]
    bases = []
    for number, one in enumerate(shapes):
        inner = directions(moments, total, replace(one, width=SPACE))
        sample = np.asarray(some @ inner.astype(np.float32))
        contrast = Contrast(own, similarity) if refinement[0] and similarity is not None and number == 0 else None
        rotating = seed_for(seed, "directions", 2 + number) % 2**63
        bases.append(Basis(axes, inner, sample, one.width, rotating, contrast, refinement))
    trial = None
    if judge is not None and judge.learnt is not None and turned is not None:
        others = np.flatnonzero(~_judged(supervision)[rows])
        learnt = np.concatenate([judge.learnt.rows, rows[others]])
        values = np.concatenate([own[judge.places], projected[others]])
        plain = _trial_directions(directions(None, total, PRINCIPAL), projected, seed).T.copy() if bases[1:] else None
        trial = Trial(judge, learnt, values, turned.T.copy(), plain)
    return Projection(shape, scores, mean, tuple(bases), trial, few_judged(supervision) and len(bases) > 1)


def _of_judged(
    X: Any,
    judged: JudgedAffinity,
    origin: NDArray[np.float32],
    seed: int,
    mean: NDArray[np.float32],
    variances: NDArray[np.float64],
    axes: Matrix,
    projected: Values,
) -> Projection:
    """Learn directions from a few judged pairs; how they are made is given."""
    rows, pairs, weights = judged.differences()
    d = min(JUDGED_SPACE[judged.view], len(variances))
    own = np.asarray(gather(X, rows, origin).values - mean) @ axes[:, :d].astype(np.float32)
    differences = own[pairs[:, 0]] - own[pairs[:, 1]]
    inner = judged_directions(differences, weights, variances[:d], judged.view, judged.shrinkage)
    width = min(JUDGED_WIDTH[judged.view], inner.shape[1])
    inner = inner[:, :width]
    some = projected[_some(len(projected), seed_for(seed, "directions"), ROTATED)][:, :d]
    sample = np.asarray(some @ inner.astype(np.float32))
    basis = Basis(axes[:, :d], inner, sample, width, seed_for(seed, "directions", 2) % 2**63)
    shape = Shape(float(judged.shrinkage), "agreement" if judged.view == "within" else "excess", width)
    return Projection(shape, {"judged": 0}, mean, (basis,), None)


def _judge(similarity: Any, own: Values, points: Values, n_points: int, seed: int) -> Judge | None:
    judging_seed = seed_for(seed, "directions", 1)
    if similarity is None:
        return judge_of_neighbors(points, judging_seed)
    if isinstance(similarity, SharedLabels):
        return judge_of_labels(similarity, own, points, n_points, judging_seed)
    return judge_of_pairs(similarity, own, points, judging_seed)


def _judged(supervision: Supervision) -> NDArray[np.bool_]:
    """Return which points have a label or a neighbour."""
    known = np.ones(supervision.n_points, bool)
    if supervision.drawable is not None:
        known[:] = False
        known[supervision.drawable] = True
    return known


def few_judged(supervision: Supervision) -> bool:
    """Whether less than half of the points have a label or a neighbour: what is not judged is found by distance."""
    drawable = supervision.drawable
    return drawable is not None and 2 * len(drawable) < supervision.n_points


def choose(judge: Judge, own: Values, points: Values, total: Matrix, seed: int) -> tuple[Shape, dict[str, Any]]:
    """Return the shape that held-out points or pairs find best, and what they say.

    Principal directions are left only for what is better by more than the standard error of the difference.
    """
    moments = judge.moments(own)
    tried: dict[Shape, NDArray[np.float64]] = {}

    def best_of(shapes: list[Shape]) -> Shape:
        for shape in shapes:
            if shape not in tried:
                turned = _trial_directions(directions(moments, total, shape), points, seed)
                tried[shape] = judge.of(_trial_codes(turned, points, seed))
        return max(shapes, key=lambda shape: tried[shape].sum())

    shapes = [PRINCIPAL]
    if moments is not None:
        shapes += [Shape(a, scale, PRINCIPAL.width) for a in SHRINKAGES for scale in SCALES]
    best = best_of(shapes)
    best = best_of([best, *(Shape(best.shrinkage, best.scale, width) for width in WIDTHS)])
    chosen = best if beaten_by(tried[PRINCIPAL], tried[best], ERRORS) else PRINCIPAL
    scores = {"score": float(tried[chosen].sum()), "principal": float(tried[PRINCIPAL].sum())}
    return chosen, {"judged": len(tried[chosen]), **scores}


def refine(
    judge: Judge, own: Values, points: Values, total: Matrix, shape: Shape, scores: dict[str, Any], seed: int
) -> tuple[NDArray[np.float32], tuple[int, float], dict[str, Any]]:
    """Return trial directions of a shape, refined by what is similar where held-out points or pairs find that better.

    Also for how many steps (0: not at all) and with how much noise, and the scores with the best of refined ones.
    """
    moments = judge.moments(own)
    plain = _trial_directions(directions(moments, total, shape), points, seed)
    if judge.learnt is None or not can_contrast(judge.learnt):
        return plain, (0, 0.0), scores
    inner = directions(moments, total, replace(shape, width=FIRST_BITS)).astype(np.float32)
    sample = _unit(points[_some(len(points), seed, JUDGED_POINTS)] @ inner)
    turned = inner @ rotation(sample, seed_for(seed, "rotation", 0), JUDGED_TURNS, JUDGED_BITS)
    contrast = Contrast(own[judge.places], judge.learnt)
    tried: dict[tuple[int, float], NDArray[np.float32]] = {}
    for noise in NOISES:
        for steps, one in zip(
            contrast.lengths(),
            contrast.refined(turned, seed_for(seed, "contrast", 0), contrast.lengths(), noise),
            strict=True,
        ):
            tried[steps, noise] = one.astype(np.float32)
    shares = {which: judge.of(_trial_codes(one, points, seed)) for which, one in tried.items()}
    best = max(shares, key=lambda which: shares[which].sum())
    scores = {**scores, "refined": float(shares[best].sum()), "steps": 0}
    if not beaten_by(judge.of(_trial_codes(plain, points, seed)), shares[best], ERRORS):
        return plain, (0, 0.0), scores
    return tried[best], best, {**scores, "steps": best[0], "noise": best[1]}


def _trial_directions(inner: Matrix, points: Values, seed: int) -> NDArray[np.float32]:
    """Return a few groups of rotated directions as columns, (d, JUDGED_BITS)."""
    narrow = inner.astype(np.float32)
    sample = _unit(points[_some(len(points), seed, JUDGED_POINTS)] @ narrow)
    groups = -(-JUDGED_BITS // narrow.shape[1])
    seeds = [seed_for(seed_for(seed, "directions", 1) % 2**63, "rotation", group) for group in range(groups)]
    turns = [rotation(sample, one, JUDGED_TURNS) for one in seeds]
    return narrow @ np.concatenate(turns, axis=1)[:, :JUDGED_BITS].astype(np.float32)


def _trial_codes(turned: NDArray[np.float32], points: Values, seed: int) -> Codes:
    """Return what gives the trial codes of some points."""
    middle = np.median(points[_some(len(points), seed, JUDGED_POINTS)] @ turned, axis=0)
    return lambda values: np.where(values @ turned > middle, np.float32(1.0), np.float32(-1.0))


def _pool(supervision: Supervision) -> UniformOrder:
    """Return all points but those that no model may be trained on."""
    withheld = supervision.withheld if isinstance(supervision, Labels | LabelSets) else None
    if withheld is None:
        return UniformOrder(supervision.n_points)
    return UniformOrder(supervision.n_points, np.setdiff1d(np.arange(supervision.n_points), withheld))


def _principal(values: Any, mean: NDArray[np.float32], seed: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the variances of the leading principal directions, largest first, and the directions as columns."""
    if isinstance(values, SparseRows):
        return principal_of_sparse(values, mean, SPACE, seed_for(seed, "directions", 5) % 2**63)
    centered = np.asarray(values - mean)
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
