"""A cluster that is not here: P = 1 to 1,000 workers, simulated from the measured times of real tasks, with stragglers.

Tasks are the 256 bits of a fit (N = 5,000 and 20,000, 500 dimensions) and the 1,000 shards of a billion vectors. Their
times are drawn from what was measured here; a free worker takes the next task, as dask does. A worker is slow by a
random factor of its own, and a few of them by much. The figure is written beside docs/scaling.md.

python benchmarks/cluster.py [figure.png]
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

import ilhash
from ilhash.parallel import run
from scaling import COLUMNS, vectors

WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000)
ROUNDS = 200
SPREAD = 0.1  # standard deviation of the logarithm of a worker's speed
SLOW_SHARE, SLOW_FACTOR = 0.02, 5.0  # stragglers: 2 % of the workers take five times as long
FIGURE = Path(__file__).parent.parent / "docs" / "scaling.png"


@dataclass(frozen=True)
class Job:
    """A number of tasks, the measured seconds that one takes, and what is paid before and for each task."""

    title: str
    n_tasks: int
    measured: np.ndarray
    per_task: float  # in the scheduler, one after the other
    start: float  # until the first worker begins: connect, and the data by name


def bit_seconds(n_train: int, bits: int = 48) -> np.ndarray:
    """Seconds of real bits, one at a time; their sum is that of the processor, so that other processes do not count."""
    X, y = vectors(100_000)
    model = ilhash.ILH(n_bits=1, n_train=n_train, sampling="random").fit(X, y)
    in_all = processor_seconds(lambda: model.add_bits(bits, X, y))
    by_clock = np.array([sum(report.seconds.values()) for report in model.bits_[1:]])
    return by_clock * (in_all / by_clock.sum())


def processor_seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def shard_seconds(rows: int = 20_000, shards: int = 24) -> np.ndarray:
    """Seconds to encode a million vectors to 64 bits, from pieces of 20,000."""
    X, _ = vectors(rows)
    model = ilhash.methods.LSH(n_bits=64).fit(X[:2_000])
    return np.array([processor_seconds(lambda: model.transform(X)) for _ in range(shards)]) * (1_000_000 / rows)


def dask_overhead(tasks: int = 400) -> tuple[float, float]:
    """Processor seconds per empty task in client and scheduler, and seconds until a connected client's first result."""
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        run(abs, range(2), client=client)
        begin = time.perf_counter()
        run(abs, range(1), client=client)
        first = time.perf_counter() - begin
        return processor_seconds(lambda: run(abs, range(tasks), client=client)) / tasks, first


def makespan(job: Job, workers: int, rng: np.random.Generator, stragglers: bool) -> float:
    """Seconds until the last task is done, where a free worker takes the next."""
    slowness = np.exp(SPREAD * rng.normal(size=workers))
    if stragglers:
        slowness[rng.random(workers) < SLOW_SHARE] *= SLOW_FACTOR
    free = [(job.start, worker) for worker in range(workers)]
    last = 0.0
    for number, seconds in enumerate(rng.choice(job.measured, job.n_tasks)):
        at, worker = heapq.heappop(free)
        handed_out = max(at, job.start + number * job.per_task)
        done = handed_out + seconds * slowness[worker]
        last = max(last, done)
        heapq.heappush(free, (done, worker))
    return last


def simulate(job: Job) -> np.ndarray:
    """Median seconds without and with stragglers, and the 95th percentile with them, for every P."""
    print(f"\n{job.title}: {job.n_tasks} tasks of {1e3 * np.median(job.measured):.4g} ms (median measured)")
    print(f"{'P':>6} {'even':>10} {'stragglers':>11} {'95 %':>10} {'speed-up':>9} {'of P':>6}")
    rng = np.random.default_rng(0)
    rows, alone = [], job.n_tasks * job.measured.mean()
    for workers in WORKERS:
        even = np.median([makespan(job, workers, rng, False) for _ in range(ROUNDS)])
        slow = [makespan(job, workers, rng, True) for _ in range(ROUNDS)]
        rows.append((even, np.median(slow), np.percentile(slow, 95)))
        gain = alone / rows[-1][1]
        print(
            f"{workers:>6,} {rows[-1][0]:>8.2f} s {rows[-1][1]:>9.2f} s {rows[-1][2]:>8.2f} s {gain:>8.1f}x "
            f"{gain / workers:>6.2f}"
        )
    return np.array(rows)


def draw(jobs: list[Job], results: list[np.ndarray], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(jobs), 3.6), layout="constrained")
    for axes, job, rows in zip(figure.subplots(1, len(jobs)), jobs, results, strict=True):
        axes.loglog(WORKERS, job.n_tasks * job.measured.mean() / np.array(WORKERS), "k:", label="P times faster")
        axes.loglog(WORKERS, rows[:, 0], label="even workers")
        axes.loglog(WORKERS, rows[:, 1], label="with stragglers")
        axes.fill_between(WORKERS, rows[:, 1], rows[:, 2], alpha=0.2, label="to the 95th percentile")
        axes.set(title=job.title, xlabel="workers P")
    figure.axes[0].set_ylabel("seconds")
    figure.axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURE
    per_task, start = dask_overhead()
    print(f"dask: {1e3 * per_task:.2f} ms per task in the scheduler, {start:.2f} s until a first result; D = {COLUMNS}")
    with threadpool_limits(1):
        jobs = [
            Job("256 bits, N = 5,000", 256, bit_seconds(5_000), per_task, start),
            Job("256 bits, N = 20,000", 256, bit_seconds(20_000, 24), per_task, start),
            Job("a billion vectors to 64 bits", 1_000, shard_seconds(), per_task, start),
        ]
    print(
        f"workers' speeds: log-normal, {SPREAD:.0%}; stragglers: {SLOW_SHARE:.0%} of them {SLOW_FACTOR:g} times slower"
    )
    results = [simulate(job) for job in jobs]
    draw(jobs, results, path)
    print(f"\nfigure: {path}")


if __name__ == "__main__":
    main()
