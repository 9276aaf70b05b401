"""Everything that differs between bits, drawn from (random_state, bit) alone.

The letters are the paper's: i (initialisation), t (training sets), f (feature subsets). What a letter does not name
depends on random_state alone and is the same for every bit. One kind of diversity has no letter: the random order of
the blocks in the z-step, which differs from bit to bit unless ``block_order="fixed"``.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash import _core

__all__ = ["ClassOrder", "Draw", "NeighborhoodOrder", "Plan", "RowOrder", "UniformOrder", "drawn_others", "drawn_rows"]
__all__ += ["seed_for"]

# One number per thing that is drawn; never renumber them, models would change.
_STREAMS = {
    "rows": 1,
    "features": 2,
    "start": 3,
    "graph": 4,
    "order": 5,
    "centers": 6,
    "classifier": 7,
    "neighbours": 8,
    "sample": 9,
    "direction": 10,
    "held out": 11,
    "directions": 12,
    "rotation": 13,
    "others": 14,
    "tuning": 15,
    "generation": 16,
    "feedback": 20,
    "contrast": 21,
}

Range = int | tuple[int, int]


def seed_for(random_state: int, stream: str, bit: int | None = None, attempt: int = 0) -> int:
    """Derive the seed of one thing that is drawn, for one bit or (bit None) for all of them."""
    key = [random_state, _STREAMS[stream], 0 if bit is None else bit + 1, attempt]
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])


class RowOrder(typing.Protocol):
    """Seeded orders of the points that may be drawn."""

    @property
    def size(self) -> int:
        """Number of points that may be drawn."""

    def take(self, seed: int, start: int, count: int) -> NDArray[np.int64]:
        """Entries start .. start + count of the order."""

    def bootstrap(self, seed: int, count: int) -> NDArray[np.int64]:
        """Draw with replacement."""


@dataclass(frozen=True)
class UniformOrder:
    """All points, or those of a pool, in a seeded random order that is never written down."""

    n_points: int
    pool: NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        """Number of points that may be drawn."""
        return self.n_points if self.pool is None else len(self.pool)

    def take(self, seed: int, start: int, count: int) -> NDArray[np.int64]:
        """Entries start .. start + count of the order."""
        return self._at(_core.permuted(self.size, seed, start, count))

    def bootstrap(self, seed: int, count: int) -> NDArray[np.int64]:
        """Draw with replacement."""
        return self._at(np.random.default_rng(seed).integers(0, self.size, count))

    def _at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return positions if self.pool is None else self.pool[positions]


@dataclass(frozen=True)
class NeighborhoodOrder:
    """Points of a graph in a seeded order of neighbourhoods: a point, then its neighbours that have not come yet.

    A uniform draw of a few thousand points would keep almost no edge of a sparse graph; this keeps most of them, and
    slices of the order are still disjoint. Points without neighbours never come.
    """

    row_begin: NDArray[np.int64]
    columns: NDArray[np.int32]

    @property
    def size(self) -> int:
        """Number of points that have a neighbour."""
        return int(np.count_nonzero(np.diff(self.row_begin)))

    def take(self, seed: int, start: int, count: int) -> NDArray[np.int64]:
        """Entries start .. start + count of the order."""
        return _core.neighbourhood_order(self.row_begin, self.columns, seed, start + count)[start:]

    def bootstrap(self, seed: int, count: int) -> NDArray[np.int64]:
        """Draw with replacement from ``count`` points of whole neighbourhoods, so that edges survive."""
        return np.random.default_rng(seed).choice(self.take(seed, 0, count), count)


@dataclass(frozen=True)
class ClassOrder:
    """Points in a seeded order of whole classes: where classes are many and small, each point comes with its like.

    ``members`` are the points that may be drawn, class by class, and ``begins`` where each class begins among them.
    """

    members: NDArray[np.int64]
    begins: NDArray[np.int64]

    @classmethod
    def of(cls, classes: NDArray[np.int32]) -> ClassOrder:
        """Return the orders of points of some classes, -1 where a point may not be drawn."""
        known = np.flatnonzero(classes >= 0)
        own = classes[known]
        members = known[np.argsort(own, kind="stable")]
        sizes = np.bincount(own)
        return cls(members, np.append(0, np.cumsum(sizes[sizes > 0])))

    @property
    def size(self) -> int:
        """Number of points that may be drawn."""
        return len(self.members)

    def take(self, seed: int, start: int, count: int) -> NDArray[np.int64]:
        """Entries start .. start + count of the order; only the first and the last class may be cut."""
        classes = _core.permuted(len(self.begins) - 1, seed, 0, len(self.begins) - 1)
        ends = np.cumsum(self.begins[classes + 1] - self.begins[classes])
        first, last = np.searchsorted(ends, [start, start + count - 1], side="right")
        some = classes[first : last + 1]
        drawn = np.concatenate([self.members[self.begins[c] : self.begins[c + 1]] for c in some])
        skipped = start - (ends[first - 1] if first else 0)
        return drawn[skipped : skipped + count]

    def bootstrap(self, seed: int, count: int) -> NDArray[np.int64]:
        """Draw with replacement from ``count`` points of whole classes."""
        return np.random.default_rng(seed).choice(self.take(seed, 0, count), count)


def drawn_rows(
    order: RowOrder, random_state: int, letters: str, sampling: str, n_train: int, bit: int, attempt: int = 0
) -> NDArray[np.int64]:
    """Return the rows of the training set that a bit draws; ``attempt`` is the number of the draw.

    Without the letter t all bits share one training set; with it, ``sampling`` says how training sets differ.
    """
    own_set = "t" in letters
    seed = seed_for(random_state, "rows", bit if own_set else None, attempt)
    if own_set and sampling == "bootstrap":
        return order.bootstrap(seed, n_train)
    if not own_set or sampling == "random" or attempt > 0:
        return order.take(seed, 0, n_train)
    # Disjoint: slice `bit` of one permutation; when it is used up, of the next.
    turn, slot = divmod(bit, order.size // n_train)
    return order.take(seed_for(random_state, "rows", None, turn), slot * n_train, n_train)


def drawn_others(order: RowOrder | None, random_state: int, letters: str, count: int, bit: int) -> NDArray[np.int64]:
    """Return rows without supervision that a bit draws, own ones under the letter t."""
    if order is None or count == 0:
        return np.empty(0, np.int64)
    return order.take(seed_for(random_state, "others", bit if "t" in letters else None), 0, count)


@dataclass(frozen=True)
class Draw:
    """What one bit drew: rows and features (None: all), seeds of five things, and numbers of neighbours.

    ``others`` are rows that nothing is known of, which are in the training set all the same.
    """

    rows: NDArray[np.int64]
    others: NDArray[np.int64]
    features: NDArray[np.int32] | None  # sorted
    start: int
    graph: int
    order: int
    centers: int
    classifier: int
    similar: int
    dissimilar: int


@dataclass(frozen=True)
class Plan:
    """How bits draw; the same plan gives the same draw for the same bit, in any process and order."""

    random_state: int
    letters: str
    sampling: str
    n_train: int
    n_features: int
    n_features_drawn: int
    similar: Range
    dissimilar: Range
    block_order: str
    row_order: RowOrder
    n_others: int = 0
    other_order: RowOrder | None = None

    @property
    def n_disjoint(self) -> int:
        """Number of disjoint training sets before a fresh permutation begins."""
        return self.row_order.size // self.n_train

    def draw(self, bit: int, attempt: int = 0) -> Draw:
        """Draw everything for one bit; ``attempt`` > 0 draws anew what may be drawn anew."""
        own = {letter: bit if letter in self.letters else None for letter in "itf"}
        graph_of = bit if "t" in self.letters or isinstance(self.similar, tuple | list) else None
        if isinstance(self.dissimilar, tuple | list):
            graph_of = bit
        return Draw(
            rows=drawn_rows(self.row_order, self.random_state, self.letters, self.sampling, self.n_train, bit, attempt),
            others=drawn_others(self.other_order, self.random_state, self.letters, self.n_others, bit),
            features=self._features(own["f"]),
            start=seed_for(self.random_state, "start", own["i"], attempt),
            graph=seed_for(self.random_state, "graph", graph_of, attempt),
            order=seed_for(self.random_state, "order", bit if self.block_order == "random" else None, attempt),
            centers=seed_for(self.random_state, "centers", bit),
            classifier=seed_for(self.random_state, "classifier"),
            similar=self._number(self.similar, bit, 0),
            dissimilar=self._number(self.dissimilar, bit, 1),
        )

    def _features(self, bit: int | None) -> NDArray[np.int32] | None:
        if "f" not in self.letters or self.n_features_drawn == self.n_features:
            return None
        seed = seed_for(self.random_state, "features", bit)
        return np.sort(_core.permuted(self.n_features, seed, 0, self.n_features_drawn)).astype(np.int32)

    def _number(self, wanted: Range, bit: int, which: int) -> int:
        if isinstance(wanted, int):
            return wanted
        rng = np.random.default_rng(seed_for(self.random_state, "neighbours", bit, which))
        return int(rng.integers(wanted[0], wanted[1] + 1))
