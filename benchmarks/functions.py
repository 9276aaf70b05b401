"""What stronger functions of ILH give and cost: kernels with other centres, boosted trees.

python benchmarks/functions.py [--data cifar10-gist mnist] [--bits 16 32] [--n-train 5000] [--seed 0] [-k 500]

1,000 queries; half of the other points are trained on (seen items), the other half is not (new items). Precision@k of
both, CPU seconds to train a bit, microseconds to encode a vector to the most bits on one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from ilhash import ILH, datasets
from ilhash.evaluation import precision_at_k
from tune import split

KERNELS = {
    "500 common centres": {"n_centers": 500},
    "500 of a pool of 1,500": {"n_centers": 500, "centers": "pool"},
    "500 private": {"n_centers": 500, "centers": "private"},
    "1,000 common": {"n_centers": 1_000},
    "1,500 common": {"n_centers": 1_500},
}
TREES = {
    "200 trees of depth 6, rate .2": {},
    "100 trees": {"n_trees": 100},
    "400 trees": {"n_trees": 400},
    "400 trees, rate .1": {"n_trees": 400, "learning_rate": 0.1},
    "depth 4": {"tree_depth": 4},
    "depth 8": {"tree_depth": 8},
}
CHOICES = {"linear": {"hash_function": "linear"}}
CHOICES |= {name: {"hash_function": "kernel", **own} for name, own in KERNELS.items()}
CHOICES |= {name: {"hash_function": "trees", **own} for name, own in TREES.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", nargs="+", default=["cifar10-gist", "mnist"])
    options.add_argument("--bits", nargs="+", type=int, default=[16, 32])
    options.add_argument("--n-train", type=int, default=5_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("-k", type=int, default=500)
    options.add_argument("--only", nargs="+", default=list(CHOICES), choices=list(CHOICES))
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    bits = " / ".join(map(str, asked.bits))
    print(f"| data | functions | new, {bits} bits | seen | CPU s a bit | us/vector |\n|---|---|---|---|---|---|")
    for data in asked.data:
        dataset = datasets.load(data)
        for name in asked.only:
            row(dataset, name, asked)


def row(dataset: datasets.Dataset, name: str, asked: argparse.Namespace) -> None:
    X, y = dataset.X, np.asarray(dataset.y)
    queries, seen, new = split(len(X), asked.seed)
    begin = time.process_time()
    model = ILH(max(asked.bits), n_train=asked.n_train, random_state=asked.seed, **CHOICES[name])
    model.fit(X[seen], y[seen], check=False)
    trained = (time.process_time() - begin) / max(asked.bits)
    begin = time.process_time()
    for _ in model.encode_blocks(X[new], n_threads=1):
        pass
    encoded = (time.process_time() - begin) / len(new) * 1e6
    values = []
    for base in (new, seen):
        parts = [(part.transform(X[base]), part.transform(X[queries])) for part in (model[:n] for n in asked.bits)]
        found = [precision_at_k(codes, y[base], wanted, y[queries], k=asked.k) for codes, wanted in parts]
        values.append(" / ".join(f"{value:.3f}" for value in found))
    print(f"| {dataset.name} | {name} | {' | '.join(values)} | {trained:.2f} | {encoded:.0f} |", flush=True)


if __name__ == "__main__":
    main()
