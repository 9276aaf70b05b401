"""One bit from beginning to end, from its number alone: draw, graph, z-step, hash function."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.affinity import Supervision, TrainingGraph
from ilhash.diversity import Draw, Plan
from ilhash.functions import Fitted, HashFunction, Learner
from ilhash.objective import Loss
from ilhash.starts import WAYS, Hyperplane, ProjectedStart, RandomStart, Start, sides_of_classes, sides_of_points
from ilhash.storage import Record
from ilhash.vectors import GatheredRows, SparseRows, gather, in_memory, kept_map, opened, portable
from ilhash.zstep import ZStep, minimize, stays

STARTED = ("random", "projection", "given")  # what a z-step may begin with
ATTEMPTS = 10  # draws of a bit before one-sided bits are given up


@dataclass(frozen=True)
class BitReport:
    """What is known of a bit's training.

    Attributes
    ----------
    bit : int, its number
    seed : int, of its start, drawn from (random_state, bit)
    n_points : int, size of its training set; points without a neighbour are not counted
    n_features : int, number of features it sees
    n_blocks, sweeps, converged : int, int and bool, of the z-step
    energies : list of float, e(z) at the start and after each sweep
    nested_energy : float, optional
        E(h(X)), the objective at what the hash function outputs on its training set (with MAC only).
    balance : float, share of training points with z = +1
    accuracy : float, share of training points on which the hash function equals z
    attempts : int, draws it took to get both values of z (1 almost always)
    shortages : dict of str to int, classes too small for the wanted number of neighbours, with their sizes
    seconds : dict of str to float, by stage: gather, affinity, zstep, function
    start : {"random", "projection", "given"}, what the z-step began with
    moved : float, optional, share of training points that the z-step moved from a start that follows the data
    way : {"hyperplane", "classes", "graph"}, what became of the start
    """

    bit: int
    seed: int
    n_points: int
    n_features: int
    n_blocks: int
    sweeps: int
    converged: bool
    energies: list[float]
    nested_energy: float | None
    balance: float
    accuracy: float
    attempts: int
    shortages: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    start: str = "random"
    moved: float | None = None
    way: str = "graph"

    @classmethod
    def from_record(cls, record: Record) -> BitReport:
        """Return the report that a file holds.

        Parameters
        ----------
        record : Record, of the file, of which every value is checked

        Returns
        -------
        BitReport
        """
        counts = {name: record.whole(name) for name in ("bit", "n_points", "n_features", "n_blocks", "sweeps")}
        shortages, seconds = record.record("shortages"), record.record("seconds")
        return cls(
            **counts,
            seed=record.whole("seed", most=2**64 - 1),
            converged=record.truth("converged"),
            energies=record.all_of("energies", float, int),
            nested_energy=None if record.document.get("nested_energy") is None else record.number("nested_energy"),
            balance=record.number("balance", 0.0, 1.0),
            accuracy=record.number("accuracy", 0.0, 1.0),
            attempts=record.whole("attempts", 1),
            shortages={name: shortages.whole(name) for name in shortages.document},
            seconds={name: seconds.number(name) for name in seconds.document},
            start=record.completed({"start": "random"}).one_of("start", STARTED),
            moved=None if record.document.get("moved") is None else record.number("moved", 0.0, 1.0),
            way=record.completed({"way": "graph"}).one_of("way", WAYS),
        )


@dataclass(frozen=True)
class TrainedBit:
    """A hash function and how it came about."""

    function: HashFunction
    report: BitReport


class _Stopwatch:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside for ``name``, without that of stages nested in it."""
        begin, counted = time.perf_counter(), sum(self.seconds.values())
        yield
        nested = sum(self.seconds.values()) - counted
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin - nested


@dataclass(frozen=True)
class _Problem:
    """One bit's training set after its z-step: z and vectors of the points that a function is fitted to.

    From a random start these are the points with a neighbour. ``graph`` is None where the start was to be left alone,
    and ``plane`` is what its sides are of, where they are the points' own.
    """

    draw: Draw
    graph: TrainingGraph | None
    step: ZStep
    connected: NDArray[np.bool_]
    vectors: GatheredRows
    z: NDArray[np.int8]
    moved: float | None
    attempts: int
    way: str = "graph"
    plane: Hyperplane | None = None

    @property
    def two_sided(self) -> bool:
        return len(self.z) > 0 and abs(int(self.z.sum(dtype=np.int64))) < len(self.z)


@dataclass(frozen=True)
class _NestedFit:
    """A fit to some z, what the function outputs on all points of the graph, and E at these outputs."""

    fitted: Fitted
    outputs: NDArray[np.int8]
    nested_energy: float


@dataclass(frozen=True)
class BitTrainer:
    """Trains any bit of a model; everything it needs travels with it to a worker, files by name."""

    X: Any  # an array, a source, or in a worker the name of a memory map
    origin: NDArray[np.float32]
    supervision: Supervision
    plan: Plan
    objective: str | Loss
    learners: Sequence[Learner]
    max_sweeps: int
    penalties: Sequence[float] = ()
    start: Start = field(default_factory=RandomStart)

    @functools.cached_property
    def _portable_X(self) -> Any:
        return portable(self.X)

    def __getstate__(self) -> dict[str, Any]:
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "X": self._portable_X}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, X=kept_map(state["X"]))

    def files(self) -> Any:
        """Return what a worker must open by itself, or None where X travels as an array or sparse matrix."""
        return None if isinstance(self._portable_X, np.ndarray | SparseRows) else self._portable_X

    def in_memory(self) -> BitTrainer:
        """Return a trainer whose X travels as an array."""
        return replace(self, X=in_memory(self.X))

    def __call__(self, bit: int) -> TrainedBit:
        """Train bit number ``bit``."""
        watch = _Stopwatch()
        for attempt in range(ATTEMPTS):
            problem = self._pose(self.plan.draw(bit, attempt), attempt + 1, bit, watch)
            if problem.two_sided:
                break
        else:
            raise ValueError(
                f"bit {bit} must get training points on both sides, got one side only in {ATTEMPTS} draws of "
                f"{self.plan.n_train} points: too few dissimilar pairs among them; raise n_train or give more of them"
            )
        learner = self.learners[bit % len(self.learners)]
        seed: int = getattr(problem.draw, learner.seed_from)
        if self.penalties:
            fitted, nested = self._auxiliary_coordinates(problem, learner, seed, watch)
        else:
            with watch.stage("function"):
                fitted, nested = _fitted(learner, problem, seed), None
        return TrainedBit(fitted.function, _report(bit, self.start.kind, problem, fitted, nested, watch.seconds))

    def _pose(self, draw: Draw, attempts: int, bit: int, watch: _Stopwatch) -> _Problem:
        rows = self.supervision.arrange(draw.rows)
        everything = np.concatenate([rows, draw.others])
        vectors: list[GatheredRows] = []

        def read() -> GatheredRows:
            # Late, after the z-step if neither start nor supervision need vectors: they are still in cache when the
            # hash function is fitted.
            if not vectors:
                with watch.stage("gather"):
                    vectors.append(gather(opened(self.X), everything, self.origin, draw.features, reuse=True))
            return vectors[0]

        start = self.start
        if not isinstance(start, ProjectedStart):
            before = functools.partial(start.sides, bit, draw.start, rows)
            return self._pose_by_graph(draw, rows, read, before, attempts, watch)
        way = start.way(bit)
        with watch.stage("zstep"):
            along = start.along(bit, read().values, draw.features)
        if way == "hyperplane":
            plane, z = start.hyperplane(bit, along, draw.features), sides_of_points(along)
            return _Problem(draw, None, stays(z), np.ones(len(z), bool), read(), z, 0.0, attempts, way, plane)
        if way == "classes":
            z = sides_of_classes(along, self.supervision.classes(everything))
            moved = float(np.mean(z != sides_of_points(along)))
            return _Problem(draw, None, stays(z), np.ones(len(z), bool), read(), z, moved, attempts, way)
        return self._pose_near_start(draw, rows, read, sides_of_points(along), start.pull, attempts, watch)

    def _pose_near_start(
        self,
        draw: Draw,
        rows: NDArray[np.int64],
        read: Callable[[], GatheredRows],
        start: NDArray[np.int8],
        pull: float,
        attempts: int,
        watch: _Stopwatch,
    ) -> _Problem:
        """Let the graph move a start to which every point is held; points that it does not touch stay."""
        graph = self._graph(draw, rows, lambda: read().values[: len(rows)], watch)
        with watch.stage("zstep"):
            known = start[: len(rows)]
            step = self._minimize(graph, draw, known, pull * graph.graph.mean_pull() * known.astype(np.float64))
        z = np.concatenate([step.z, start[len(rows) :]])
        if abs(int(z.sum(dtype=np.int64))) == len(z):
            z = start  # all on one side: the graph has nothing to say here
        return _Problem(draw, graph, step, np.ones(len(rows), bool), read(), z, float(np.mean(z != start)), attempts)

    def _pose_by_graph(
        self,
        draw: Draw,
        rows: NDArray[np.int64],
        read: Callable[[], GatheredRows],
        start: Callable[[], NDArray[np.int8]],
        attempts: int,
        watch: _Stopwatch,
    ) -> _Problem:
        """Let the graph alone decide; points that it does not touch are left out."""
        graph = self._graph(draw, rows, lambda: read().values, watch)
        with watch.stage("zstep"):
            step = self._minimize(graph, draw, start())
        connected = graph.graph.connected().view(np.bool_)
        own = read() if connected.all() else read().take(np.flatnonzero(connected))
        return _Problem(draw, graph, step, connected, own, step.z[connected], None, attempts)

    def _graph(
        self, draw: Draw, rows: NDArray[np.int64], values: Callable[[], NDArray[np.float32]], watch: _Stopwatch
    ) -> TrainingGraph:
        with watch.stage("affinity"):
            return self.supervision.graph(rows, self.objective, draw.similar, draw.dissimilar, draw.graph, values)

    def _minimize(
        self, graph: TrainingGraph, draw: Draw, start: NDArray[np.int8], pull: NDArray[np.float64] | None = None
    ) -> ZStep:
        order = self.plan.block_order
        return minimize(graph.graph, start, seed=draw.order, block_order=order, max_sweeps=self.max_sweeps, field=pull)

    def _auxiliary_coordinates(
        self, problem: _Problem, learner: Learner, seed: int, watch: _Stopwatch
    ) -> tuple[Fitted, float]:
        """Alternate z-step and classifier under the penalty mu |z - h(X)|^2 with growing mu.

        mu (z - h)^2 is linear in z, so the same min-cut solves the z-step. The fit with the lowest nested objective
        E(h(X)) is kept, beginning with that of two-step training.
        """
        graph, z = self._graph_of(problem), problem.step.z
        mean_pull = graph.graph.mean_pull()
        best = current = self._nested_fit(problem, z, learner, seed, watch)
        for mu in self.penalties:
            pull = np.where(problem.connected, mu * mean_pull * current.outputs, 0.0)
            with watch.stage("zstep"):
                z = self._minimize(graph, problem.draw, z, pull).z
            if abs(int(z[problem.connected].sum(dtype=np.int64))) == np.count_nonzero(problem.connected):
                break  # a large penalty on one-sided outputs: nothing to fit any more
            current = self._nested_fit(problem, z, learner, seed, watch)
            best = min(best, current, key=lambda fit: fit.nested_energy)
            if (current.outputs == z)[problem.connected].all():
                break
        return best.fitted, best.nested_energy

    def _nested_fit(
        self, problem: _Problem, z: NDArray[np.int8], learner: Learner, seed: int, watch: _Stopwatch
    ) -> _NestedFit:
        with watch.stage("function"):
            fitted = learner.fit(problem.vectors.copy(), z[problem.connected], problem.draw.features, seed)
        outputs = z.copy()
        outputs[problem.connected] = np.where(fitted.margins > 0, 1, -1)
        graph = self._graph_of(problem)
        return _NestedFit(fitted, outputs, graph.graph.energy(outputs) * graph.scale)

    @staticmethod
    def _graph_of(problem: _Problem) -> TrainingGraph:
        if problem.graph is None:
            raise TypeError("a start that is left alone must not be alternated with, got no graph")
        return problem.graph


def _fitted(learner: Learner, problem: _Problem, seed: int) -> Fitted:
    """Return the function of a bit: the hyperplane itself where a function can be it."""
    vectors, features, plane = problem.vectors, problem.draw.features, problem.plane
    exact = None if plane is None else learner.exactly(plane.weights, plane.bias, vectors, features)
    return learner.fit(vectors, problem.z, features, seed) if exact is None else exact


def _report(
    bit: int, start: str, problem: _Problem, fitted: Fitted, nested: float | None, seconds: dict[str, float]
) -> BitReport:
    z = problem.z
    return BitReport(
        bit=bit,
        seed=problem.draw.start,
        n_points=len(z),
        n_features=problem.vectors.values.shape[1],
        n_blocks=problem.step.n_blocks,
        sweeps=problem.step.sweeps,
        converged=problem.step.converged,
        energies=(problem.step.energies * (1.0 if problem.graph is None else problem.graph.scale)).tolist(),
        nested_energy=nested,
        balance=float(np.count_nonzero(z > 0) / len(z)),
        accuracy=float(np.count_nonzero((fitted.margins > 0) == (fitted.targets > 0)) / len(z)),
        attempts=problem.attempts,
        shortages={} if problem.graph is None else problem.graph.shortages,
        seconds=seconds,
        start=start,
        moved=problem.moved,
        way=problem.way,
    )


def warn_of_shortages(reports: Sequence[BitReport], wanted: Any) -> None:
    """Say once, for all bits, which classes had too few points."""
    smallest: dict[str, tuple[int, int]] = {}
    for report in reports:
        for name, size in report.shortages.items():
            if name not in smallest or size < smallest[name][0]:
                smallest[name] = (size, report.bit)
    if not smallest:
        return
    listed = [f"{name} ({size} points for bit {bit})" for name, (size, bit) in list(smallest.items())[:3]]
    more = f" and {len(smallest) - 3} more" if len(smallest) > 3 else ""
    warnings.warn(
        f"too few points for n_similar={wanted} similar neighbours each: {', '.join(listed)}{more}; their points got "
        "fewer neighbours",
        stacklevel=6,
    )
