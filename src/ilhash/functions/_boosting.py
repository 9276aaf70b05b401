"""Gradient boosted trees for many bits of the same rows, whose features are put into bins only once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import check_count, check_positive
from ilhash._parameters import MOST
from ilhash.vectors import as_matrix

from ._learner import Fitted
from ._trees import TreeFunction

MOST_BINS = 64  # of a feature; with 255 a bit took a quarter longer and tested .729 instead of .725 on single bits
PENALTY = 0.1  # on the square of a leaf's value, in the Newton step that sets it


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
        columns = np.ascontiguousarray(as_matrix(values, "values").T, dtype=np.float32)
        if not np.isfinite(columns).all():
            raise ValueError("values must be finite, got NaN or infinity")
        edges = [bin_edges(column, most_bins) for column in columns]
        self._begin = np.cumsum([0, *map(len, edges)], dtype=np.uint32)
        self._edges = np.concatenate(edges)
        self._bins = np.empty(columns.shape, np.uint8)
        for own, column, bins in zip(edges, columns, self._bins, strict=True):
            bins[:] = np.searchsorted(own, column)  # x <= edge exactly where the bin is at most the edge's number

    def fit(self, z: NDArray[np.int8], seed: int) -> Fitted:
        """Fit trees to bits z in {-1,+1}; the same seed gives the same bytes on every machine."""
        rows = self._bins, self._begin, self._edges, np.ascontiguousarray(z)
        size = self.n_trees, self.depth, math.isqrt(len(self._bins))
        found = _core.boosted_trees(*rows, *size, self.learning_rate, PENALTY, seed)
        return Fitted(TreeFunction(*found[:7]), found[7].astype(np.float32), z)


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
