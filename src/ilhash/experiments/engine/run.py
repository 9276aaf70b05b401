"""Cells over worker processes: stored as they finish, stopped at their limits, with the time left."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ilhash.experiments.engine.cells import TIME_LIMIT, Cell, Outcome
from ilhash.experiments.engine.store import Results
from ilhash.parallel import single_threaded_blas

TICK = 0.5  # seconds between looks at the limits


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : cells
    seconds_left : if cells go on to take what they took so far
    current : what has just finished; of a comparison, what is running
    """

    done: int
    total: int
    seconds_left: float
    current: str


@dataclass
class Summary:
    """What a run did.

    Attributes
    ----------
    computed : cells that finished
    left : cells that were not begun because the time was up
    failed : cells that broke, with their messages; nothing is stored of them
    """

    computed: int = 0
    left: int = 0
    failed: list[tuple[Cell, str]] = field(default_factory=list)


def _end_with_parent() -> None:
    """End this process when the one that stores its cell has gone, however that went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(pipe: Connection, scale_name: str, folder: Path) -> None:
    """Compute what comes through the pipe until it is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from ilhash.experiments.engine.tasks import Context, compute

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that stores; it ends this one
    context = Context(scale_name, folder)
    while True:
        try:
            cell = pipe.recv()
        except (EOFError, OSError):
            return
        answer: tuple[str, Any]
        try:
            with single_threaded_blas():
                answer = ("outcome", compute(cell, context))
        except Exception as error:  # whatever a cell breaks on is reported, and the others go on
            answer = ("error", f"{type(error).__name__}: {' '.join(str(error).split())}")
        try:
            pipe.send(answer)
        except OSError:
            return


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let a process that starts meanwhile keep BLAS to one thread, whenever it loads it."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Worker:
    """A process that computes one cell at a time."""

    def __init__(self, scale_name: str, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, scale_name, folder), daemon=True)
        with _one_thread_each():
            self.process.start()
        theirs.close()
        self.cell: Cell | None = None
        self.used = 0.0
        self.seen = 0.0

    def begin(self, cell: Cell) -> None:
        self.cell, self.used, self.seen = cell, 0.0, time.monotonic()
        self.pipe.send(cell)

    @property
    def overdue(self) -> bool:
        """Whether its limit is used up; time in which this process slept, a paused machine for one, does not count."""
        now = time.monotonic()
        self.used += min(now - self.seen, 2 * TICK)
        self.seen = now
        limit = None if self.cell is None else self.cell.limit
        return limit is not None and self.used > limit

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def run_cells(
    cells: Sequence[Cell],
    results: Results,
    *,
    n_jobs: int = 1,
    seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Compute and store the cells that are not stored yet.

    Parameters
    ----------
    cells : sequence of Cell, in the order in which they are wanted; those that must be alone come last
    results : Results, where they are stored
    n_jobs : int, default 1, worker processes
    seconds : float, optional, after which no further cell is begun; nor is one begun that is expected to end later
    progress : callable, optional, called as cells finish

    Returns
    -------
    Summary, what was computed, what is left, what failed
    """
    return _Run(cells, results, n_jobs, seconds, progress).go()


class _Run:
    """One call of run_cells."""

    def __init__(self, cells: Sequence[Cell], results: Results, n_jobs: int, seconds: Any, progress: Any) -> None:
        self.results, self.total, self.progress = results, len(cells), progress
        self.pending = sorted((cell for cell in cells if not results.has(cell)), key=lambda cell: cell.alone)
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.n_jobs = min(n_jobs, max(1, len(self.pending)))
        self.left = sum(cell.cost for cell in self.pending)  # seconds that are expected of all that has not ended
        self.expected = self.taken = 0.0  # seconds of what has ended
        self.summary = Summary()
        self.folder = results.path / "data"
        self.folder.mkdir(exist_ok=True)
        self.workers = [self._worker() for _ in range(self.n_jobs)] if self.pending else []

    def _worker(self) -> _Worker:
        return _Worker(self.results.scale.name, self.folder)

    @property
    def _pace(self) -> float:
        # What was expected counts as ten cells of a second: the first ones must not decide alone.
        return (self.taken + 10.0) / (self.expected + 10.0)

    def _finished(self, cell: Cell, seconds: float) -> None:
        self.left -= cell.cost
        self.expected += cell.cost
        self.taken += seconds

    @property
    def _busy(self) -> list[_Worker]:
        return [worker for worker in self.workers if worker.cell is not None]

    def go(self) -> Summary:
        self._tell()
        try:
            self._assign()
            while self._busy:
                self._collect()
                self._assign()
        finally:
            for worker in self.workers:
                worker.stop()
        self.summary.left = len(self.pending)
        return self.summary

    def _assign(self) -> None:
        for worker in self.workers:
            if worker.cell is not None or not self.pending:
                continue
            if any(busy.cell is not None and busy.cell.alone for busy in self._busy):
                return
            if self.pending[0].alone and self._busy:
                return
            chosen = self._next()
            if chosen is not None:
                worker.begin(chosen)

    def _next(self) -> Cell | None:
        """Take the first cell that fits into the time."""
        for place, cell in enumerate(self.pending):
            if time.monotonic() + cell.cost * self._pace < self.deadline:
                return self.pending.pop(place)
        return None

    def _collect(self) -> None:
        ready = wait([worker.pipe for worker in self._busy], timeout=TICK)
        for place, worker in enumerate(self.workers):
            cell = worker.cell
            if cell is None:
                continue
            if worker.pipe in ready:
                self._take(place, worker, cell)
            elif worker.overdue:
                worker.stop()
                reason = f"stopped after its limit of {cell.limit:g} seconds"
                self._keep(cell, Outcome(status=TIME_LIMIT, reason=reason, seconds=float(cell.limit or 0.0)))
                self.workers[place] = self._worker()

    def _take(self, place: int, worker: _Worker, cell: Cell) -> None:
        try:
            kind, content = worker.pipe.recv()
        except (EOFError, OSError):
            worker.stop()
            self.workers[place] = self._worker()
            kind, content = "error", f"its process ended with code {worker.process.exitcode}"
        worker.cell = None
        if kind == "outcome":
            self._keep(cell, content)
        else:
            self.summary.failed.append((cell, content))
            self._finished(cell, worker.used)

    def _keep(self, cell: Cell, outcome: Outcome) -> None:
        self.results.write(cell, outcome)
        self.summary.computed += 1
        self._finished(cell, outcome.seconds)
        self._tell(cell)

    def _tell(self, cell: Cell | None = None) -> None:
        if self.progress is not None:
            done = self.total - len(self.pending) - len(self._busy) - len(self.summary.failed)
            name = "" if cell is None else f"{cell.task} {cell.params.get('data', '')} {cell.params.get('method', '')}"
            self.progress(Progress(done, self.total, self.left * self._pace / self.n_jobs, name.strip()))
