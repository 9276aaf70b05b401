"""The start of a bit: the value that every point of its training set has before the z-step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash.zstep import random_start

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Features = NDArray[np.int32] | None  # None: all

PULL = 0.2  # what holds a point at a projected start, as a share of the mean pull of the graph on a point


@dataclass(frozen=True)
class RandomStart:
    """The paper's: a coin for every point."""

    uses_graph: bool = True
    pull: float = 0.0
    kind: str = "random"

    def sides(self, bit: int, seed: int, rows: Rows, values: Floats, features: Features) -> NDArray[np.int8]:
        """Return -1 or +1 for every row of a bit's training set."""
        return random_start(len(rows), seed)


@dataclass(frozen=True)
class ProjectedStart:
    """The sides of a hyperplane through the median of the training set.

    Attributes
    ----------
    first : int, number of the bit that the first direction is of
    directions : float32 array (bits, D)
    mean : float32 array (D,), what vectors are taken relative to, for the sake of rounding
    uses_graph : bool, whether the z-step may move the start at all
    pull : float, what holds a point at its start
    """

    first: int
    directions: NDArray[np.float32]
    mean: NDArray[np.float32]
    uses_graph: bool = True
    pull: float = PULL
    kind: str = "projection"

    def sides(self, bit: int, seed: int, rows: Rows, values: Floats, features: Features) -> NDArray[np.int8]:
        """Return -1 or +1 for every row of a bit's training set; as many of the one as of the other."""
        own = slice(None) if features is None else features
        along = (values - self.mean[own]) @ self.directions[bit - self.first][own]
        return np.where(along > np.median(along), 1, -1).astype(np.int8)


@dataclass(frozen=True)
class GivenStart:
    """A start that the user gives: -1 or +1 for every point, for all bits or in a column for each."""

    table: NDArray[np.int8]
    uses_graph: bool = True
    pull: float = 0.0
    kind: str = "given"

    def sides(self, bit: int, seed: int, rows: Rows, values: Floats, features: Features) -> NDArray[np.int8]:
        """Return -1 or +1 for every row of a bit's training set."""
        return np.ascontiguousarray(self.table[rows] if self.table.ndim == 1 else self.table[rows, bit])


Start = RandomStart | ProjectedStart | GivenStart
