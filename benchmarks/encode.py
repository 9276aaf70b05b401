"""Encoding speed, and what feature subsets save: d/D of one product, gathered or not (paper, end of section 3).

python benchmarks/encode.py
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from features import standardised_320
from ilhash import core_simd
from ilhash.functions import Encoder, LinearFunction
from ilhash.functions import _linear as linear_module

N_BITS = 64


def functions(n_features: int, d: int) -> list[LinearFunction]:
    """Random linear functions of d features each."""
    rng = np.random.default_rng(0)
    return [
        LinearFunction(
            rng.normal(size=d).astype(np.float32),
            np.float32(0),
            np.sort(rng.permutation(n_features)[:d]).astype(np.int32),
        )
        for _ in range(N_BITS)
    ]


def milliseconds(X: np.ndarray, d: int, gather_below: float, repeats: int) -> float:
    """Time the margins of X with the encoder forced to gather (1) or to multiply (0)."""
    kept = linear_module.GATHER_BELOW, linear_module.GATHER_ROWS
    linear_module.GATHER_BELOW, linear_module.GATHER_ROWS = gather_below, 0
    try:
        encoder = Encoder(functions(X.shape[1], d), X.shape[1])
        encoder.margins(X)
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            encoder.margins(X)
            times.append(time.perf_counter() - begin)
    finally:
        linear_module.GATHER_BELOW, linear_module.GATHER_ROWS = kept
    return 1e3 * float(np.median(times))


def main() -> None:
    X, _, _ = standardised_320()
    print(f"{N_BITS} bits, D = {X.shape[1]}, one thread, core {core_simd()}; milliseconds, medians")
    with threadpool_limits(1):
        for rows, repeats in ((1, 2000), (20_000, 9)):
            batch = np.ascontiguousarray(X[:rows])
            whole = milliseconds(batch, X.shape[1], 0.0, repeats)
            print(f"\n{rows:,} vectors at once; all features: {whole:.4g}")
            print(f"{'d/D':>6} {'gathered':>10} {'product':>10} {'chosen':>10} {'of all features':>16}")
            for fraction in (0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75):
                d = max(1, round(fraction * X.shape[1]))
                gathered, product = (milliseconds(batch, d, below, repeats) for below in (1.1, 0.0))
                many = rows >= linear_module.GATHER_ROWS
                chosen = gathered if many and fraction < linear_module.GATHER_BELOW else product
                print(f"{fraction:>6} {gathered:>10.4g} {product:>10.4g} {chosen:>10.4g} {chosen / whole:>15.2f}x")


if __name__ == "__main__":
    main()
