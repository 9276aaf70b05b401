"""Gradient boosted trees: features are put into bins, once for all bits of the same rows or by edges of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import check_count, check_positive
from ilhash._parameters import MOST
from ilhash.vectors import GatheredRows, as_matrix

from ._base import Features, Floats
from ._kinds import register
from ._learner import Fitted, Learner, LearnerSettings
from ._trees import TreeFunction

MOST_BINS = 64  # of a feature; with 255 a bit took a quarter longer and tested .729 instead of .725 on single bits
PENALTY = 0.1  # on the square of a leaf's value, in the Newton step that sets it
BIN_SAMPLE = 4096  # rows that the edges of a model's bins are taken from


@dataclass(frozen=True)
class Bins:
    """Edges that part the values of each feature: bin b of a value is the number of edges below it.

    Attributes
    ----------
    begin : uint32 (d + 1,), where the edges of each feature begin
    edges : float64, ascending within a feature
    """

    begin: NDArray[np.uint32]
    edges: NDArray[np.float64]

    @classmethod
    def of(cls, values: Floats, most_bins: int = MOST_BINS) -> Bins:
        """Return bins of about the same number of rows of ``values`` (n, d) each."""
        edges = [bin_edges(column, most_bins) for column in np.ascontiguousarray(values.T)]
        return cls(np.cumsum([0, *map(len, edges)], dtype=np.uint32), np.concatenate(edges))

    def only(self, features: Features) -> Bins:
        """Return the bins of some of the features, None for all."""
        if features is None:
            return self
        edges = [self.edges[self.begin[j] : self.begin[j + 1]] for j in features]
        return Bins(np.cumsum([0, *map(len, edges)], dtype=np.uint32), np.concatenate(edges))

    def place(self, values: Floats) -> NDArray[np.uint8]:
        """Return the bins (d, n) of rows (n, d)."""
        out = np.empty(values.shape[::-1], np.uint8)
        _core.place_in_bins(values, self.begin, self.edges, out)
        return out


class TreeBooster:
    """Fits trees to the logistic loss of bits, one bit after the other.

    Every node looks at the square root of the number of features, drawn at random, and at more only while none of them
    splits it.

    Parameters
    ----------
    values : float32 (N, d), finite
    n_trees : int, trees of a bit
    depth : int, of the trees
    learning_rate : float, share of each tree that is added
    most_bins : int, bins of a feature, from 2 to 256; fewer where it has fewer values
    """

    def __init__(
        self, values: NDArray[np.float32], *, n_trees: int, depth: int, learning_rate: float, most_bins: int = MOST_BINS
    ) -> None:
        self.n_trees, self.depth = check_count("n_trees", n_trees, 0, MOST), check_count("depth", depth, 0, MOST)
        self.learning_rate = check_positive("learning_rate", learning_rate)
        check_count("most_bins", most_bins, 2, 256)
        rows = np.ascontiguousarray(as_matrix(values, "values"), dtype=np.float32)
        if not np.isfinite(rows).all():
            raise ValueError("values must be finite, got NaN or infinity")
        self._bins = Bins.of(rows, most_bins)
        self._placed = self._bins.place(rows)

    def fit(self, z: NDArray[np.int8], seed: int) -> Fitted:
        """Fit trees to bits z in {-1,+1}; the same seed gives the same bytes on every machine."""
        settings = self.n_trees, self.depth, self.learning_rate
        return _boosted(self._bins, self._placed, np.ascontiguousarray(z), *settings, seed)


@dataclass(frozen=True)
class TreeLearner(Learner):
    """Boosted trees on bins of a model, whose edges are those of seeded rows of X, or else on bins of the bit's own.

    The features that nodes look at are drawn from one seed for all bits, so that the letters of diversity alone make
    bits different.
    """

    n_trees: int = 200
    depth: int = 6
    learning_rate: float = 0.2
    bins: Bins | None = None

    @classmethod
    def from_settings(cls, settings: LearnerSettings) -> TreeLearner:
        """Return the learner that a model's parameters mean."""
        sample = settings.sample(BIN_SAMPLE)
        bins = None if sample is None else Bins.of(sample.values)
        return cls(settings.n_trees, settings.tree_depth, settings.learning_rate, bins)

    def fit(self, rows: GatheredRows, z: NDArray[np.int8], features: Features, seed: int) -> Fitted:
        bins = Bins.of(rows.values) if self.bins is None else self.bins.only(features)
        settings = self.n_trees, self.depth, self.learning_rate
        return _boosted(bins, bins.place(rows.values), np.ascontiguousarray(z), *settings, seed, features)


register(TreeFunction, TreeLearner.from_settings)


def _boosted(
    bins: Bins,
    placed: NDArray[np.uint8],
    z: NDArray[np.int8],
    n_trees: int,
    depth: int,
    rate: float,
    seed: int,
    features: Features = None,
) -> Fitted:
    rows, n_tried = (placed, bins.begin, bins.edges, z), math.isqrt(len(placed))
    found = _core.boosted_trees(*rows, n_trees, depth, n_tried, rate, PENALTY, seed)
    return Fitted(TreeFunction(*found[:7], features), found[7].astype(np.float32), z)


def bin_edges(column: NDArray[np.float32], most_bins: int) -> NDArray[np.float64]:
    """Return ascending edges that part a feature's values into bins of about the same number of rows.

    Edges lie halfway between two values that follow one another, so that none is ever on an edge.
    """
    ordered = np.sort(column)
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1  # rows at which a new value begins
    if len(starts) >= most_bins:
        wanted = len(ordered) * np.arange(1, most_bins) / most_bins
        nearest = np.minimum(np.searchsorted(starts, wanted), len(starts) - 1)
        starts = starts[np.unique(nearest)]
    return (ordered[starts - 1].astype(np.float64) + ordered[starts]) / 2
