"""`ilhash.tune` on real data: what it chooses, what it promises, and what that is worth on points it never saw.

python benchmarks/tune.py [--data mnist fashion-mnist cifar10-gist] [--bytes 4 8 16] [--seeds 0 1] [--minutes 5] [-k 10]
                         [--cores 0.5]
python benchmarks/tune.py --draws 24 [--data ...] [--seeds 0]

1,000 queries are put aside; of the other points one half is given to `tune` (the seen base), the other half (the new
base) to nothing at all, as in `bytes.py`, whose rows stand beside these. A line per run: precision@10, 100, 500 of the
queries among both bases, and what `tune` said of new items, with its standard error and, in brackets, how many standard
errors of the difference it was off.

With --cores the clock is the processor time of this process, so many seconds of it a second: a machine that gives so
many cores, whatever else it does.

With --draws nothing is tuned: codes of ITQ and CCAITQ (8 bytes) are told of by so many draws of held-out points as
`tune` makes one of, one in eight of its points. A line per code: precision@10 of 1,000 queries among all new items,
what the draws tell on average and how much they vary, and the standard error that `tune` states beside one that took
queries for independent. The data may be any of `ilhash data list` with labels.
"""

from __future__ import annotations

import argparse
import time
import warnings
from types import SimpleNamespace

import numpy as np

import ilhash
from bytes import bases_of
from ilhash.evaluation import by_label, distance_histograms
from ilhash.methods import CCAITQ, ITQ
from ilhash.tuning import _course, _tune

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


def count_cores(cores: float) -> None:
    """Let the clock of `tune` go by the processor time of this process."""
    clock, budget = lambda: time.process_time() / cores, _course.Budget
    _course.time = SimpleNamespace(monotonic=clock)
    _tune.Budget = lambda seconds, workers: budget(seconds, workers, begin=clock())


def draws(data: str, seed: int, n_draws: int, k: int = 10) -> None:
    """Print what draws of held-out points tell of codes that are always the same."""
    from ilhash.tuning._measured import further
    from ilhash.tuning._parts import SHARE, Retrieval

    bases, _ = bases_of(data, seed)
    X, y = bases.new
    size = len(X) // SHARE
    for kind in (ITQ, CCAITQ):
        model = kind(64).fit(*bases.train)
        codes, told = model.transform(X), []
        for number in range(n_draws):
            rows = np.random.default_rng(number).permutation(len(X))[:size]
            relevance, near = by_label(y[rows], y[rows]), max(1, round(k / SHARE))
            once, both = (
                Retrieval.among(np.arange(size), relevance, near, further=weight).measured(codes[rows], 64)
                for weight in (0.0, further(k, near, 1 / SHARE))
            )
            told.append((once.mean(), both.mean(), both.error, both.values.std() / np.sqrt(size)))
        plain, mean, error, alone = np.mean(told, axis=0)
        # One in eight is drawn, so draws have points in common and vary less than fresh ones.
        spread = np.std([one[1] for one in told], ddof=1) / np.sqrt(1 - 1 / SHARE)
        measured = precisions(model, bases.new, bases.queries).mean(axis=0)[0]
        figures = (measured, plain, mean, spread, error, alone)
        print(f"| {data} | {kind.__name__} | {' | '.join(f'{one:.4f}' for one in figures)} |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", nargs="+", default=["mnist", "fashion-mnist", "cifar10-gist"])
    options.add_argument("--bytes", nargs="+", type=int, default=[4, 8, 16])
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("-k", type=int, default=10, help="that tune is told of")
    options.add_argument("--draws", type=int, help="draws of held-out points that tell of the same codes")
    options.add_argument("--cores", type=float, help="that the machine gives, by processor time instead of the clock")
    asked = options.parse_args()
    if asked.cores:
        count_cores(asked.cores)
    if asked.draws:
        names = (
            "data",
            "codes",
            "precision@10",
            "told by the nearest",
            "told",
            "spread",
            "stated error",
            "if independent",
        )
        print(f"| {' | '.join(names)} |\n" + "|" + "---|" * len(names))
        for data in asked.data:
            draws(data, asked.seeds[0], asked.draws)
        return
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
