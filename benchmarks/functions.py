"""What stronger functions of ILH give and cost: kernels with other centres, boosted trees.

python benchmarks/functions.py [--data cifar10-gist mnist] [--bits 16 32] [--n-train 5000] [--seed 0] [-k 500]

1,000 queries; half of the other points are trained on (seen items), the other half is not (new items). Precision@k of
both, CPU seconds to train a bit, microseconds to encode a vector to the most bits on one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings

from bytes import bases_of
from ilhash import ILH
from ilhash.experiments.equal_bytes import Bases
from tune import precisions

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
        bases, _ = bases_of(data, asked.seed)
        for name in asked.only:
            row(data, bases, name, asked)


def row(data: str, bases: Bases, name: str, asked: argparse.Namespace) -> None:
    begin = time.process_time()
    model = ILH(max(asked.bits), n_train=asked.n_train, random_state=asked.seed, **CHOICES[name])
    model.fit(*bases.train, check=False)
    trained = (time.process_time() - begin) / max(asked.bits)
    begin = time.process_time()
    for _ in model.encode_blocks(bases.new[0], n_threads=1):
        pass
    encoded = (time.process_time() - begin) / len(bases.new[0]) * 1e6
    values = []
    for base in (bases.new, bases.seen):
        found = [precisions(model[:n_bits], base, bases.queries, asked.k).mean() for n_bits in asked.bits]
        values.append(" / ".join(f"{value:.3f}" for value in found))
    print(f"| {data} | {name} | {' | '.join(values)} | {trained:.2f} | {encoded:.0f} |", flush=True)


if __name__ == "__main__":
    main()
