"""Directions refined by what is similar: codes of similar points are to be nearer than those of all others.

Directions that second moments give say where similar points agree; where the cuts lie between them only the points can
say. A few hundred steps of gradient descent turn all directions of a group together: of a batch of similar pairs, each
point is to find its own partner among the partners of all (cross-entropy of the agreement of soft signs), those that
are known to be similar, too, left out. It lasts as long for a million points as for a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash.affinity import SharedLabels, SimilarPairs
from ilhash.starts._moments import Matrix, Values

STEPS = (100, 300, 600)  # how long it may last; held-out points or pairs decide
NOISES = (0.0, 0.5)  # what is added to points, in standard deviations of each coordinate; they decide that, too
ROUNDS = 50  # through the points or pairs, at most
BATCH = 512  # pairs, at most
PARTS = 8  # of the points or pairs, that a batch takes one of where they are few
RATE = 0.01  # of a step, as a share of the mean size of a weight
TEMPERATURE = 0.25  # times the root of the number of bits: what one bit more in common is worth
MOMENTUM, MEMORY = 0.9, 0.99  # of gradients and of their squares
TINY = 1e-12


@dataclass(frozen=True)
class Contrast:
    """Points and who of them is similar, that directions are refined by.

    Attributes
    ----------
    values : float32 array (n, d)
    similarity : SharedLabels or SimilarPairs, of these points; each has one label at most
    """

    values: Values
    similarity: SharedLabels | SimilarPairs

    def lengths(self) -> tuple[int, ...]:
        """Return how many steps may be tried."""
        most = max(1, ROUNDS * _known(self.similarity) // _batch_size(self.similarity))
        return tuple(sorted({min(steps, most) for steps in STEPS}))

    def refined(self, directions: Matrix, seed: int, steps: tuple[int, ...], noise: float) -> list[Matrix]:
        """Return directions (d, m) for those given, after so many steps; a function of the arguments alone."""
        rng = np.random.default_rng(seed)
        margins = self.values @ directions.astype(np.float32)
        size = float(np.sqrt(np.mean(margins.astype(np.float64) ** 2)))
        weights = (directions / max(size, TINY)).astype(np.float32)
        rate = RATE * float(np.abs(weights).mean())
        spread = np.float32(noise) * self.values.std(axis=0)
        mean, square = np.zeros_like(weights), np.zeros_like(weights)
        out = []
        for step in range(1, steps[-1] + 1):
            first, second, alike = _batch(self.similarity, rng)
            one, other = self.values[first], self.values[second]
            if noise:
                one, other = (near + spread * _normal(rng, near.shape) for near in (one, other))
            slope = contrast_slope(one, other, weights, alike)
            mean += np.float32(1.0 - MOMENTUM) * (slope - mean)
            square += np.float32(1.0 - MEMORY) * (slope * slope - square)
            moved = mean / np.float32(1.0 - MOMENTUM**step)
            scale = np.sqrt(square / np.float32(1.0 - MEMORY**step)) + np.float32(TINY)
            weights = weights - np.float32(rate) * (moved / scale)
            if step in steps:
                out.append(weights.astype(np.float64))
        return out


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    return rng.standard_normal(shape, dtype=np.float32)


def contrast_slope(
    first: Values, second: Values, weights: NDArray[np.float32], alike: NDArray[np.bool_] | None
) -> NDArray[np.float32]:
    """Return the gradient (d, m) of the mean cross-entropy of finding the partner of each of n first points.

    The chance of partner j is softmax over j of tanh(W'first)'tanh(W'second_j) / (TEMPERATURE sqrt(m)); those that are
    ``alike``, (n, n), do not count.
    """
    n, m = len(first), weights.shape[1]
    one, other = np.tanh(first @ weights), np.tanh(second @ weights)
    sharpness = np.float32(1.0 / (TEMPERATURE * np.sqrt(m)))
    chances = one @ other.T * sharpness
    if alike is not None:
        chances[alike] = -np.inf
    chances -= chances.max(axis=1, keepdims=True)
    np.exp(chances, out=chances)
    chances /= chances.sum(axis=1, keepdims=True)
    chances.flat[:: n + 1] -= np.float32(1.0)
    chances *= sharpness / np.float32(n)
    of_one = (chances @ other) * (np.float32(1.0) - one * one)
    of_other = (chances.T @ one) * (np.float32(1.0) - other * other)
    return np.asarray(first.T @ of_one + second.T @ of_other)


def can_contrast(similarity: SharedLabels | SimilarPairs) -> bool:
    """Whether it is known of any two points if they are similar: several labels are so by degrees."""
    return isinstance(similarity, SimilarPairs) or similarity.indicator.nnz == len(similarity.rows)


def _known(similarity: SharedLabels | SimilarPairs) -> int:
    return len(similarity.pairs if isinstance(similarity, SimilarPairs) else similarity.rows)


def _batch_size(similarity: SharedLabels | SimilarPairs) -> int:
    return max(2, min(BATCH, _known(similarity) // PARTS))


def _batch(
    similarity: SharedLabels | SimilarPairs, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]:
    """Draw similar pairs: the first points, the second, and which of the second are similar to others of the first."""
    if isinstance(similarity, SimilarPairs):
        drawn = similarity.pairs[rng.integers(len(similarity.pairs), size=_batch_size(similarity))]
        turned = rng.random(len(drawn)) < 0.5
        first, second = np.where(turned, drawn[:, 1], drawn[:, 0]), np.where(turned, drawn[:, 0], drawn[:, 1])
        alike = (first[:, None] == first[None, :]) | (first[:, None] == second[None, :])
        alike |= second[:, None] == second[None, :]
        np.fill_diagonal(alike, False)
        return first, second, alike
    first, second = _of_one_class(similarity, rng)
    own = similarity.indicator.indices
    alike = own[first][:, None] == own[second][None, :]
    np.fill_diagonal(alike, False)
    return first, second, alike


def _of_one_class(similarity: SharedLabels, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw points that are not alone in their class, and another of the class of each."""
    own = similarity.indicator.indices
    sizes = np.bincount(own)
    order = np.argsort(own, kind="stable")
    begins = np.cumsum(sizes) - sizes
    places = np.flatnonzero(sizes[own[order]] > 1)  # in that order
    drawn = places[rng.integers(len(places), size=_batch_size(similarity))]
    classes = own[order[drawn]]
    step = 1 + (rng.random(len(drawn)) * (sizes[classes] - 1)).astype(np.int64)
    others = begins[classes] + (drawn - begins[classes] + step) % sizes[classes]
    return order[drawn], order[others]
