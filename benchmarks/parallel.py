"""Speed-up of two workers over one: threads, and warm processes on a memory-mapped X (128 bits, N = 20,000).

python benchmarks/parallel.py
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from features import standardised_320
from ilhash import ILH

N_BITS, N_TRAIN = 128, 20_000


def seconds(X: np.ndarray, y: np.ndarray, workers: int, backend: str, bits: int = N_BITS) -> tuple[float, list[bytes]]:
    """Fit once; return wall-clock seconds and the weights as bytes."""
    begin = time.perf_counter()
    with joblib.parallel_config(backend=backend):
        model = ILH(n_bits=bits, n_train=N_TRAIN, sampling="random", n_jobs=workers).fit(X, y)
    return time.perf_counter() - begin, [function.weights.tobytes() for function in model.functions_]


def products(count: int) -> float:
    """Seconds for some matrix products that stay in this core's cache."""
    block = np.ones((512, 320), np.float32)
    with threadpool_limits(1):
        begin = time.perf_counter()
        for _ in range(count):
            block.T @ block
        return time.perf_counter() - begin


def machine_limit(count: int = 2_000) -> float:
    """How much two cores get done in the time of one where they share nothing, not even memory."""
    alone = products(count)
    return 2.0 * alone / max(joblib.Parallel(n_jobs=2)(joblib.delayed(products)(count) for _ in range(2)))


def main() -> None:
    warnings.simplefilter("ignore")
    X, y, origin = standardised_320()
    print(f"{N_BITS} bits, N = {N_TRAIN:,}, 320-d features: {origin}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        mapped = np.load(path, mmap_mode="r")
        begin = time.perf_counter()
        seconds(mapped, y, 2, "loky", bits=2)
        print(f"start of two processes: {time.perf_counter() - begin:.2f} s (not counted below)")
        seconds(mapped, y, 1, "threading", bits=2)
        # Round by round, because what two cores are to one changes from minute to minute on a shared machine.
        print(f"{'one worker':>12} {'2 threads':>18} {'2 processes':>18} {'limit':>8}   (wanted: 1.80x)")
        ratios = []
        for _ in range(4):
            one, wanted = seconds(mapped, y, 1, "threading")
            threads, by_threads = seconds(mapped, y, 2, "threading")
            processes, by_processes = seconds(mapped, y, 2, "loky")
            ratios.append((one / threads, one / processes, machine_limit()))
            print(
                f"{one:>10.2f} s {threads:>9.2f} s {ratios[-1][0]:.2f}x {processes:>10.2f} s {ratios[-1][1]:.2f}x "
                f"{ratios[-1][2]:>7.2f}x   {'same bytes' if wanted == by_threads == by_processes else 'OTHER BYTES'}",
                flush=True,
            )
        middle = np.median(ratios, axis=0)
        print(f"medians: threads {middle[0]:.2f}x, processes {middle[1]:.2f}x, limit {middle[2]:.2f}x")
        print("limit: two processes of matrix products in cache, which share nothing, to one")


if __name__ == "__main__":
    main()
