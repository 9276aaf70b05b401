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
        # In turns, so that a change of the machine's speed meets all of them.
        runs = {("one worker", 1, "threading"): [], ("2 threads", 2, "threading"): [], ("2 processes", 2, "loky"): []}
        weights = {}
        limits = []
        for _ in range(4):
            for key, times in runs.items():
                spent, weights[key] = seconds(mapped, y, key[1], key[2])
                times.append(spent)
            limits.append(machine_limit())
        told = ", ".join(f"{limit:.2f}x" for limit in sorted(limits))
        print(f"what two cores are to one for products in cache, which share nothing: {told}")
        one = min(runs["one worker", 1, "threading"])
        for key, times in runs.items():
            same = "same bytes" if weights[key] == weights["one worker", 1, "threading"] else "OTHER BYTES"
            print(f"{key[0]:>12}: {min(times):6.2f} s  {one / min(times):.2f}x (wanted 1.8x)  {same}")


if __name__ == "__main__":
    main()
