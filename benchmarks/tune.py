"""`ilhash.tune` on real data: what it chooses, what it promises, and what that is worth on points it never saw.

python benchmarks/tune.py [--data mnist fashion-mnist cifar10-gist] [--bytes 4 8 16] [--seeds 0 1] [--minutes 5] [-k 10]

1,000 queries are put aside; of the other points one half is given to `tune` (the seen base), the other half (the new
base) to nothing at all, as in `bytes.py`, whose rows stand beside these. A line per run: precision@10, 100, 500 of the
queries among both bases, and what `tune` said of new items, with its standard error and, in brackets, how many standard
errors of the difference it was off.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import ilhash
from bytes import bases_of
from ilhash.evaluation import by_label, distance_histograms

KS = (10, 100, 500)


def precisions(model, base, queries, ks=KS) -> np.ndarray:
    """Return precision at each of ks of each query; base and queries are vectors and labels."""
    codes = [model.transform(part[0]) for part in (base, queries)]
    found = distance_histograms(*codes, by_label(base[1], queries[1]), n_bits=len(model.functions_), n_threads=2)
    return found.precision_at_k(ks)


def run(data: str, n_bytes: int, seed: int, minutes: float, k: int) -> None:
    bases, _ = bases_of(data, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ilhash.tune(*bases.train, n_bytes=n_bytes, k=k, minutes=minutes, random_state=seed)
    values = [precisions(found.model, base, bases.queries) for base in (bases.new, bases.seen)]
    measured = " | ".join(f"{value:.3f}" for one in values for value in one.mean(axis=0))
    said, same = found.reports["new"], values[0][:, KS.index(k)] if k in KS else np.array([np.nan])
    apart = (said.value - same.mean()) / np.hypot(said.error, same.std() / np.sqrt(len(same)))
    promise = f"{said.value:.3f} ± {said.error:.3f} ({apart:+.1f})"
    about = [data, n_bytes, seed, measured, promise, found.name, found.complete, round(found.seconds)]
    print("| " + " | ".join(map(str, about)) + " |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", nargs="+", default=["mnist", "fashion-mnist", "cifar10-gist"])
    options.add_argument("--bytes", nargs="+", type=int, default=[4, 8, 16])
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("-k", type=int, default=10, help="that tune is told of")
    asked = options.parse_args()
    columns = [f"{base}, k = {k}" for base in ("new", "seen") for k in KS]
    names = ["data", "bytes", "seed", *columns, f"tune says (new, k = {asked.k})", "chosen", "complete", "seconds"]
    print(f"| {' | '.join(names)} |")
    print("|" + "---|" * len(names))
    for data in asked.data:
        for n_bytes in asked.bytes:
            for seed in asked.seeds:
                run(data, n_bytes, seed, asked.minutes, asked.k)


if __name__ == "__main__":
    main()
