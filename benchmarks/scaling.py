"""A cost model from measurements: per bit, per vector, per query and per byte; then a billion vectors by arithmetic.

Everything is measured with one thread on 500-dimensional float32 vectors, in seconds of its processor (not of the
clock: other processes do not count), so that a cluster's time is the sum over its cores. What is multiplied out, and
under which assumptions, stands in docs/scaling.md.

python benchmarks/scaling.py
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import ilhash

COLUMNS, BILLION = 500, 1_000_000_000
SIZES = (2_000, 5_000, 10_000, 20_000)
BITS = (64, 256)
STAGES = ("gather", "affinity", "zstep", "function")
FITTED = 24


def vectors(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten overlapping classes in 500 dimensions."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    centres = rng.normal(size=(10, COLUMNS)).astype(np.float32) * 0.3
    return centres[y] + rng.normal(size=(n, COLUMNS)).astype(np.float32), y


def median_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    work()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return float(np.median(times))


def per_bit(X: np.ndarray, y: np.ndarray) -> dict[int, float]:
    print(f"\ntraining one bit, D = {COLUMNS} (milliseconds, mean over {FITTED} bits)")
    print(f"{'N':>8} {'gather':>8} {'affinity':>9} {'z-step':>8} {'function':>9} {'all':>8}")
    found = {}
    for n in SIZES:
        model = ilhash.ILH(n_bits=2, n_train=n, sampling="random").fit(X, y)
        begin = time.process_time()
        model.add_bits(FITTED, X, y)
        found[n] = (time.process_time() - begin) / FITTED
        by_clock = [[bit.seconds[name] for bit in model.bits_[2:]] for name in STAGES]
        shown = 1e3 * found[n] * np.sum(by_clock, axis=1) / np.sum(by_clock)
        print(f"{n:>8,} {shown[0]:>8.1f} {shown[1]:>9.1f} {shown[2]:>8.1f} {shown[3]:>9.1f} {1e3 * found[n]:>8.1f}")
    return found


def per_vector(X: np.ndarray) -> dict[int, float]:
    print("\nencoding one vector of 500 floats (microseconds), and codes as bytes")
    found = {}
    for bits in BITS:
        model = ilhash.methods.LSH(n_bits=bits).fit(X[:2_000])
        found[bits] = median_seconds(lambda model=model: model.transform(X)) / len(X)
        print(f"{bits:>8} bits {1e6 * found[bits]:>8.3f} us   {bits // 8:>3} bytes")
    return found


def per_query(n: int = 4_000_000, queries: int = 64) -> dict[int, float]:
    print(
        f"\nexact search, {n:,} random codes, k = 100, batches of {queries} (picoseconds per byte of codes and query)"
    )
    found = {}
    rng = np.random.default_rng(1)
    for bits in BITS:
        codes = rng.integers(0, 256, (n, bits // 8), np.uint8)
        index = ilhash.HammingIndex(codes, n_bits=bits)
        asked = rng.integers(0, 256, (queries, bits // 8), np.uint8)
        seconds = median_seconds(lambda index=index, asked=asked: index.search(asked, 100), 3)
        found[bits] = seconds / (queries * codes.nbytes)
        print(f"{bits:>8} bits {1e12 * found[bits]:>8.1f} ps   {1e-9 / found[bits]:>6.1f} GB/s")
    return found


def per_byte(megabytes: int = 1_024) -> tuple[float, float]:
    block = np.random.default_rng(2).integers(0, 256, 1 << 26, np.uint8)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "bytes"
        begin = time.perf_counter()
        with path.open("wb") as file:
            for _ in range(megabytes >> 6):
                file.write(block.data)
            file.flush()
            os.fsync(file.fileno())
        write = (time.perf_counter() - begin) / (megabytes << 20)
        begin = time.perf_counter()
        mapped = np.memmap(path, np.uint64, "r")
        int(mapped.max())
        read = (time.perf_counter() - begin) / (megabytes << 20)
    print("\ndisk, in sequence (GB/s): a file written and flushed; the same read through a map, from the page cache")
    print(f"    write {1e-9 / write:.2f}   read {1e-9 / read:.2f}")
    return write, read


def extrapolate(bit: dict[int, float], vector: dict[int, float], query: dict[int, float], read: float) -> None:
    print(f"\none billion vectors x {COLUMNS} float32 ({4 * COLUMNS * BILLION / 1e12:.0f} TB), by multiplication")
    print(f"{'':<44} {'1 core':>12} {'100 cores':>12} {'1,000 cores':>12}")

    def row(title: str, seconds: float, tasks: int) -> None:
        shown = [readable(seconds / tasks * math.ceil(tasks / cores)) for cores in (1, 100, 1_000)]
        print(f"{title:<44} {shown[0]:>12} {shown[1]:>12} {shown[2]:>12}")

    for n in (5_000, 20_000):
        row(f"train 256 bits, N = {n:,}", 256 * bit[n], 256)
    for bits in BITS:
        row(f"encode to {bits} bits ({bits // 8 * BILLION / 1e9:.0f} GB of codes)", BILLION * vector[bits], 100_000)
    row("read 2 TB as fast as this machine reads", 4 * COLUMNS * BILLION * read, 100_000)
    for bits in BITS:
        row(f"one query in a batch, {bits} bits, exact", query[bits] * (bits // 8) * BILLION, 100_000)


def readable(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{1e3 * seconds:.3g} ms"


def main() -> None:
    print(f"one thread, core {ilhash.core_simd()}")
    X, y = vectors(100_000)
    with threadpool_limits(1):
        bit, vector, query = per_bit(X, y), per_vector(X), per_query()
        _, read = per_byte()
    extrapolate(bit, vector, query, read)


if __name__ == "__main__":
    main()
