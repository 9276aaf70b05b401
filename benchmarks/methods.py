"""All methods beside ILHt: tie-aware precision@500 and seconds of training, every method at the same N.

python benchmarks/methods.py [--data mnist|cifar10] [--bits 32 64] [--train 5000] [--only ITQ STH ...]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from features import standardised_320
from ilhash import ILH, datasets, methods
from ilhash.evaluation import precision_at_k
from ilhash.parallel import single_threaded_blas

SEED = 0


def _data(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    if name == "cifar10":
        return standardised_320()
    mnist = datasets.load("mnist")
    return mnist.X, mnist.y, "MNIST pixels"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--train", type=int, default=5_000, help="N of every method")
    parser.add_argument("--base", type=int, default=20_000, help="points that are searched")
    parser.add_argument("--data", choices=["mnist", "cifar10"], default="mnist", help="cifar10: 320 oriented gradients")
    parser.add_argument("--only", nargs="*", help="names of methods")
    wanted = parser.parse_args()
    X, y, what = _data(wanted.data)
    order = np.random.default_rng(SEED).permutation(len(X))
    queries, training, base = order[:2_000], order[2_000:], order[2_000 : 2_000 + wanted.base]
    print(f"{what}, N = {wanted.train}, {len(base)} base points, {len(queries)} queries, seed {SEED}, one thread")
    print(f"{'method':16}{'bits':>5}{'precision@500':>15}{'seconds':>9}{'x ILHt':>8}")
    for bits in wanted.bits:
        reference = 0.0
        for name in ["ILH", *(wanted.only or methods.available())]:
            model = (ILH if name == "ILH" else methods.get(name))(n_bits=bits, n_train=wanted.train, random_state=SEED)
            begin = time.perf_counter()
            with single_threaded_blas():
                model.fit(X[training], y[training])
            seconds = time.perf_counter() - begin
            reference = reference or seconds
            score = precision_at_k(model.transform(X[base]), y[base], model.transform(X[queries]), y[queries], 500)[0]
            print(f"{name:16}{bits:5}{score:15.3f}{seconds:9.2f}{seconds / reference:8.2f}", flush=True)


if __name__ == "__main__":
    main()
