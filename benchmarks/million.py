"""A million digits on two cores: 200 bits with N = 5,000, encode, evaluate at k = 10,000; seconds and private memory.

X is memory-mapped (1,000,000 x 784 bytes of infinite digits). Making it is shown apart.

python benchmarks/million.py [folder]
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import ilhash
from private_memory import Peak

ROWS, QUERIES, N_BITS, N_TRAIN, K = 1_000_000, 10_000, 200, 5_000, 10_000


@contextmanager
def stage(name: str, table: list[tuple[str, float, float]]):
    with Peak() as peak:
        begin = time.perf_counter()
        yield
        seconds = time.perf_counter() - begin
    table.append((name, seconds, peak.megabytes))
    print(f"{name:<34} {seconds:>8.1f} s {peak.megabytes:>9.0f} MB", flush=True)


def digits(folder: Path, part: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Make digits once; return them as maps."""
    if not (folder / "y.npy").exists():
        ilhash.datasets.InfiniteDigits("mnist", part=part).write(folder, n, n_threads=2)
    return np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")


def measure(folder: Path) -> None:
    print(f"{ROWS:,} x 784 infinite digits, {N_BITS} bits, N = {N_TRAIN:,}, two threads")
    print(f"{'stage':<34} {'time':>10} {'private memory':>15}")
    made: list[tuple[str, float, float]] = []
    table: list[tuple[str, float, float]] = []
    with stage("make (not counted)", made):
        X, y = digits(folder / "base", "train", ROWS)
        queries, query_labels = digits(folder / "queries", "test", QUERIES)
    with stage("fit", table):
        model = ilhash.ILH(n_bits=N_BITS, n_train=N_TRAIN, scaling="whole", C=0.1, n_jobs=2).fit(X, y)
    with stage("encode", table):
        codes, asked = model.transform(X), model.transform(queries)
    with stage(f"evaluate {QUERIES:,} queries, k = {K:,}", table):
        precision = ilhash.evaluation.precision_at_k(codes, y, asked, query_labels, k=K, n_threads=2)
    total, most = sum(row[1] for row in table), max(row[2] for row in table)
    print(f"{'total':<34} {total:>8.1f} s {most:>9.0f} MB at most (wanted: under 2048 MB)")
    print(f"precision@{K:,}: {precision:.3f}")


def main() -> None:
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory(dir=".") as folder:
        measure(Path(folder))


if __name__ == "__main__":
    main()
