"""Bits without labels: what the numbers of similar and dissimilar neighbours and of sweeps do to ILHt.

python benchmarks/unlabeled.py [--data glove-6b-100d cifar10-gist cifar10-edges] [--points 20000]

Relevant are the nearest 1 % of the base in Euclidean space, which are also the number retrieved; 500 queries, 64 bits,
linear, N = 5,000, seed 0. "alike" is the mean absolute dot product of two bits over the base: 1 where all are the same.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from ilhash import ILH, datasets
from ilhash.evaluation import by_neighbors, code_dot_products, distance_histograms
from ilhash.methods import ITQ, LSH

BITS, N_QUERIES = 64, 500
MODELS = {
    "LSH": LSH(n_bits=BITS),
    "ILH by default": ILH(n_bits=BITS),
    "ITQ": ITQ(n_bits=BITS),
    "ILHt, 100 similar and 100 dissimilar": ILH(n_bits=BITS, start="random"),
    "the same, one sweep": ILH(n_bits=BITS, start="random", max_sweeps=1),
    "10 similar and 10 dissimilar": ILH(n_bits=BITS, start="random", n_similar=10, n_dissimilar=10),
    "10 similar and 100 dissimilar": ILH(n_bits=BITS, start="random", n_similar=10, n_dissimilar=100),
    "10 similar and 200 dissimilar": ILH(n_bits=BITS, start="random", n_similar=10, n_dissimilar=200),
    "5 similar and 100 dissimilar": ILH(n_bits=BITS, start="random", n_similar=5, n_dissimilar=100),
    "100 and 100, a tenth of the features": ILH(n_bits=BITS, start="random", diversity="tf", n_features=0.1),
}


def show(name: str, n_points: int) -> None:
    X = datasets.load(name).X
    rows = np.random.default_rng(0).permutation(len(X))[: n_points + N_QUERIES]
    base, queries = (np.asarray(X[part], np.float32) for part in (rows[:n_points], rows[n_points:]))
    k = n_points // 100
    nearest = by_neighbors(base, queries, k)
    print(f"{name}, {n_points:,} x {X.shape[1]}\n\n| | precision@{k} | alike |\n|---|---|---|")
    for title, model in MODELS.items():
        packed = model.fit(base).transform(base)
        found = distance_histograms(packed, model.transform(queries), nearest, n_bits=BITS).precision_at_k(k).mean()
        dots = np.abs(code_dot_products(packed, BITS))
        alike = (dots.sum() - BITS) / (BITS * (BITS - 1))
        print(f"| {title} | {found:.3f} | {alike:.2f} |", flush=True)
    print()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", nargs="+", default=["glove-6b-100d", "cifar10-gist", "cifar10-edges"])
    options.add_argument("--points", type=int, default=20_000)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.data:
        show(name, chosen.points)


if __name__ == "__main__":
    main()
