"""The best bits of a pool against its first bits, and how long choosing them takes.

python benchmarks/prune.py [--data mnist cifar10] [--pool 200] [--seeds 5] [--no-speed]

For each seed: 2,000 queries are drawn, the rest is the base (of pixels 160 principal components); 500 points of the
base are held out of training; a pool of ILHt bits (linear, N = 5,000) is trained on the others and pruned by
precision@100 of the held-out points. The queries are looked at once, at the end.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from features import cifar_features, principal_components
from ilhash import ILH, HoldOut, datasets, prune
from ilhash.evaluation import Protocol
from ilhash.experiments.engine.problems import Problem
from ilhash.experiments.engine.tasks import pruned

BITS = (16, 32, 64)
KS = (100, 500)


def load(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    if name == "cifar10":
        return cifar_features()
    data = datasets.load(name)
    return data.X, data.y, f"{name} pixels"


def one_seed(X, y, seed: int, pool_bits: int) -> np.ndarray:
    """Return precision (first or pruned, bits, k)."""
    split = Protocol(n_queries=2_000, k=KS, seed=seed).split(len(X))
    X = principal_components(X, split.base)
    base, queries = ((X[rows], y[rows]) for rows in (split.base, split.queries))
    problem = Problem.labeled(base, queries, KS, k=KS[-1])
    measured = pruned(problem, pool_bits, {"n_train": 5_000, "n_jobs": -1}, BITS, seed)[1]
    return np.stack([measured[order].precision for order in ("first", "chosen")])


def compare(name: str, pool_bits: int, seeds: int) -> None:
    X, y, what = load(name)
    results = np.stack([one_seed(X, y, seed, pool_bits) for seed in range(seeds)])
    mean, spread = results.mean(axis=0), results.std(axis=0, ddof=1)
    gain = results[:, 1] - results[:, 0]
    print(f"\n{what}, pool of {pool_bits} bits, {seeds} seeds (mean and standard deviation)\n")
    print("| bits | k | first bits | pruned | gain | least gain |\n|---|---|---|---|---|---|")
    for column, bits in enumerate(BITS):
        for at, k in enumerate(KS):
            first, best = (f"{mean[w, column, at]:.3f} ± {spread[w, column, at]:.3f}" for w in (0, 1))
            own = gain[:, column, at]
            print(f"| {bits} | {k} | {first} | {best} | {own.mean():+.3f} ± {own.std(ddof=1):.3f} | {own.min():+.3f} |")


def speed() -> None:
    """200 of 512 bits, 500 validation queries against 20,000 points; bits of small training sets, to have them soon."""
    X, y, what = cifar_features()
    held_out = HoldOut(n_report=0)
    begin = time.perf_counter()
    pool = ILH(n_bits=512, n_train=1_000, n_similar=50, n_jobs=-1).fit(X, held_out.labels(y))
    trained = time.perf_counter() - begin
    print(f"\n200 of 512 bits, 500 queries x 20,000 points, {what} (training took {trained:.0f} s)")
    for threads in (2, 1):
        begin, busy = time.perf_counter(), time.process_time()
        prune(pool, X, y, 200, held_out=held_out, n_threads=threads)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - busy
        print(f"{threads} threads: {seconds:.1f} s ({cpu:.1f} s of processor time)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="*", default=["mnist", "cifar10"])
    parser.add_argument("--pool", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--no-speed", action="store_true")
    wanted = parser.parse_args()
    for name in wanted.data:
        try:
            compare(name, wanted.pool, wanted.seeds)
        except FileNotFoundError as missing:
            print(f"skipped: {missing}")
    if not wanted.no_speed:
        speed()


if __name__ == "__main__":
    main()
