"""One bit from beginning to end, from its number alone: draw, graph, z-step, hash function."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.affinity import Supervision, TrainingGraph
from ilhash.diversity import Draw, Plan
from ilhash.functions import Fitted, HashFunction, Learner
from ilhash.objective import Loss
from ilhash.storage import Record
from ilhash.vectors import GatheredRows, gather, in_memory, kept_map, opened, portable
from ilhash.zstep import ZStep, minimize, random_start

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
    """One bit's training set after its z-step: only points with a neighbour are left in z and vectors."""

    draw: Draw
    graph: TrainingGraph
    step: ZStep
    connected: NDArray[np.bool_]
    vectors: GatheredRows
    attempts: int

    @property
    def z(self) -> NDArray[np.int8]:
        return self.step.z[self.connected]

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

    @functools.cached_property
    def _portable_X(self) -> Any:
        return portable(self.X)

    def __getstate__(self) -> dict[str, Any]:
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "X": self._portable_X}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, X=kept_map(state["X"]))

    def files(self) -> Any:
        """Return what a worker must open by itself, or None where X travels as an array."""
        return None if isinstance(self._portable_X, np.ndarray) else self._portable_X

    def in_memory(self) -> BitTrainer:
        """Return a trainer whose X travels as an array."""
        return replace(self, X=in_memory(self.X))

    def __call__(self, bit: int) -> TrainedBit:
        """Train bit number ``bit``."""
        watch = _Stopwatch()
        for attempt in range(ATTEMPTS):
            problem = self._pose(self.plan.draw(bit, attempt), attempt + 1, watch)
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
                fitted, nested = learner.fit(problem.vectors, problem.z, problem.draw.features, seed), None
        return TrainedBit(fitted.function, _report(bit, problem, fitted, nested, watch.seconds))

    def _pose(self, draw: Draw, attempts: int, watch: _Stopwatch) -> _Problem:
        rows = self.supervision.arrange(draw.rows)
        vectors: list[GatheredRows] = []

        def read() -> GatheredRows:
            # Late, after the z-step if the supervision does not need vectors: they are still in cache when the hash
            # function is fitted.
            if not vectors:
                with watch.stage("gather"):
                    vectors.append(gather(opened(self.X), rows, self.origin, draw.features, reuse=True))
            return vectors[0]

        with watch.stage("affinity"):
            graph = self.supervision.graph(
                rows, self.objective, draw.similar, draw.dissimilar, draw.graph, lambda: read().values
            )
        with watch.stage("zstep"):
            step = self._minimize(graph, draw, random_start(len(rows), draw.start))
        connected = graph.graph.degrees() > 0
        own = read() if connected.all() else read().take(np.flatnonzero(connected))
        return _Problem(draw, graph, step, connected, own, attempts)

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
        mean_pull, z = problem.graph.graph.mean_pull(), problem.step.z
        best = current = self._nested_fit(problem, z, learner, seed, watch)
        for mu in self.penalties:
            pull = np.where(problem.connected, mu * mean_pull * current.outputs, 0.0)
            with watch.stage("zstep"):
                z = self._minimize(problem.graph, problem.draw, z, pull).z
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
        return _NestedFit(fitted, outputs, problem.graph.graph.energy(outputs) * problem.graph.scale)


def _report(bit: int, problem: _Problem, fitted: Fitted, nested: float | None, seconds: dict[str, float]) -> BitReport:
    z = problem.z
    return BitReport(
        bit=bit,
        seed=problem.draw.start,
        n_points=len(z),
        n_features=problem.vectors.values.shape[1],
        n_blocks=problem.step.n_blocks,
        sweeps=problem.step.sweeps,
        converged=problem.step.converged,
        energies=(problem.step.energies * problem.graph.scale).tolist(),
        nested_energy=nested,
        balance=float(np.count_nonzero(z > 0) / len(z)),
        accuracy=float(np.count_nonzero((fitted.margins > 0) == (fitted.targets > 0)) / len(z)),
        attempts=problem.attempts,
        shortages=problem.graph.shortages,
        seconds=seconds,
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
