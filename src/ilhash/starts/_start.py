"""The start of a bit: the value that every point of its training set has before the z-step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash.vectors import projected_on
from ilhash.zstep import random_start

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Features = NDArray[np.int32] | None  # None: all

# How a projected start becomes a bit: the hyperplane is the hash function, where that can be; or a function is fitted
# to the sides of class means; or to what the z-step makes of the points' own sides.
WAYS = ("hyperplane", "classes", "graph")
PULL = 0.2  # what holds a point at a projected start, as a share of the mean pull of the graph on a point


@dataclass(frozen=True)
class RandomStart:
    """The paper's: a coin for every point."""

    kind: str = "random"

    def sides(self, bit: int, seed: int, rows: Rows) -> NDArray[np.int8]:
        """Return -1 or +1 for every row of a bit's training set."""
        return random_start(len(rows), seed)


@dataclass(frozen=True)
class GivenStart:
    """A start that the user gives: -1 or +1 for every point, for all bits or in a column for each."""

    table: NDArray[np.int8]
    kind: str = "given"

    def sides(self, bit: int, seed: int, rows: Rows) -> NDArray[np.int8]:
        """Return -1 or +1 for every row of a bit's training set."""
        return np.ascontiguousarray(self.table[rows] if self.table.ndim == 1 else self.table[rows, bit])


@dataclass(frozen=True)
class Hyperplane:
    """weights'x + bias, of the features that a bit sees; of mean 1 in absolute value over the training set."""

    weights: NDArray[np.float32]
    bias: float


@dataclass(frozen=True)
class ProjectedStart:
    """The sides of a hyperplane through the median of the training set.

    Attributes
    ----------
    first : int, number of the bit that the first direction is of
    directions : float32 array (bits, D)
    mean : float32 array (D,), what vectors are taken relative to, for the sake of rounding
    ways : tuple of WAYS, what becomes of the sides; bits take them in turn
    pull : float, what holds a point at its start against the graph
    """

    first: int
    directions: NDArray[np.float32]
    mean: NDArray[np.float32]
    ways: tuple[str, ...] = ("graph",)
    pull: float = PULL
    kind: str = "projection"

    def way(self, bit: int) -> str:
        """Return what becomes of the sides of a bit."""
        return self.ways[bit % len(self.ways)]

    def along(self, bit: int, values: Floats, features: Features) -> Floats:
        """Return where the points of a training set lie along the direction of a bit."""
        own = slice(None) if features is None else features
        return projected_on(values, self.mean[own], self.directions[bit - self.first][own])

    def hyperplane(self, bit: int, along: Floats, features: Features) -> Hyperplane:
        """Return the hyperplane of a bit, given where the points of its training set lie."""
        own = slice(None) if features is None else features
        direction, middle = self.directions[bit - self.first][own].astype(np.float64), float(np.median(along))
        size = max(float(np.mean(np.abs(along - np.float32(middle)))), 1e-30)
        bias = -(middle + float(self.mean[own].astype(np.float64) @ direction)) / size
        return Hyperplane((direction / size).astype(np.float32), bias)


def sides_of_points(along: Floats) -> NDArray[np.int8]:
    """Return the side of the median for every point; as many of the one as of the other."""
    return np.where(along > np.median(along), 1, -1).astype(np.int8)


def sides_of_classes(along: Floats, classes: NDArray[np.int32]) -> NDArray[np.int8]:
    """Return the side of the mean of its class for every point, those of unknown class (-1) their own.

    The cut is between the two class means that come closest to as many points on the one side as on the other.
    """
    known = classes >= 0
    names, own = np.unique(classes[known], return_inverse=True)
    if len(names) < 2:
        return sides_of_points(along)
    sizes = np.bincount(own)
    means = np.bincount(own, along[known].astype(np.float64)) / sizes
    order = np.argsort(means, kind="stable")
    below = np.cumsum(sizes[order])[:-1]
    last = int(np.argmin(np.abs(2 * below - len(own))))  # of the classes below the cut
    cut = (means[order[last]] + means[order[last + 1]]) / 2.0
    above = np.zeros(len(names), bool)
    above[order[last + 1 :]] = True
    sides = along > cut
    sides[known] = above[own]
    return np.where(sides, 1, -1).astype(np.int8)


Start = RandomStart | ProjectedStart | GivenStart
