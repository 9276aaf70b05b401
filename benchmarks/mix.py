"""Seen against unseen classes: ILHt and ITQ bits side by side, 128 in all, and 128 pruned from a mixed pool.

python benchmarks/mix.py [--data mnist fashion-mnist cifar10] [--splits 5] [--points 20000] [--figure mix.png]
                        [--results mix.json]

For each split of the classes, on 20,000 points (of pixels 160 principal components of the training points): 3 of the 10
classes are held out of training altogether; precision@10 of 1,000 queries among the seen classes and of 1,000 among the
unseen ones. ILHt: linear, N = 2,000; ITQ: N = 5,000. The pool is 128 + 128 bits, trained without 2 more classes, which
play the unseen part when 128 bits are chosen (weight 1/2); "retrained" takes as many bits of each family as were chosen
there, trained on all seen classes. The picture shows all datasets of the file of results, which a run adds to.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import joblib
import numpy as np

from features import principal_components
from ilhash import ILH, HoldOut, Mix, codes, prune
from ilhash.evaluation import UnseenClasses
from ilhash.experiments.comparison import euclidean_precision
from ilhash.experiments.engine.tasks import code_precision
from ilhash.methods import ITQ
from prune import load

BITS = 128
K = 10
SHARES = (0, 32, 64, 96, 128)  # bits of ILHt
FLOATS, PRUNED, RETRAINED = "floats", "128 pruned from 128 + 128", "retrained in these numbers"


def families(random_state: int, supervised: int, unsupervised: int) -> list:
    return [
        ILH(n_bits=supervised, n_train=2_000, random_state=random_state),
        ITQ(n_bits=unsupervised, n_train=5_000, random_state=random_state),
    ]


def precision_of(encode, X, y, split) -> list[float]:
    """Precision among seen and among unseen classes."""
    return [code_precision(encode, X, y, side, BITS, K) for side in (split.seen, split.unseen)]


def one_split(X, y, n_points: int, seed: int) -> tuple[dict[str, list[float]], int]:
    """Return precision among seen and unseen classes of every kind of code, and the ILHt bits among the pruned."""
    some = np.random.default_rng(seed).permutation(len(X))[:n_points]
    X, y = X[some], y[some]
    split = UnseenClasses(n_queries=1_000, k=K, held_out=3, seed=seed).split(y)
    X = principal_components(X, split.train)
    train, labels = X[split.train], y[split.train]
    ilh = families(seed, BITS, 1)[0].fit(train, labels)
    encoders = {n: families(seed, 1, n)[1].fit(train) for n in (32, 64, 96, 128)}

    def mixed(of_ilh: int, itq):
        """Return what a Mix would do; here the ILHt bits, whose prefixes are the shorter models, are trained once."""

        def encode(part):
            bits = [ilh.decision_function(part)[:, :of_ilh] > 0] if of_ilh else []
            return codes.pack(np.concatenate([*bits, *([itq.decision_function(part) > 0] if itq else [])], axis=1))

        return encode

    found = {
        FLOATS: [
            euclidean_precision(X[side.base], y[side.base], X[side.queries], y[side.queries], K)
            for side in (split.seen, split.unseen)
        ]
    }
    for share in SHARES:
        found[f"{share} + {BITS - share}"] = precision_of(mixed(share, encoders.get(BITS - share)), X, y, split)
    held_out = HoldOut(classes=2, seed=seed, n_report=0)
    pool = Mix(families(seed, BITS, BITS)).fit(train, held_out.labels(labels))
    pruned = prune(pool, train, labels, BITS, k=K, held_out=held_out).model
    found[PRUNED] = precision_of(pruned.transform, X, y, split)
    of_ilh = sum(isinstance(pruned.families_[f], ILH) for f in pruned.family_)
    itq = families(seed, 1, BITS - of_ilh)[1].fit(train) if of_ilh < BITS else None
    found[RETRAINED] = precision_of(mixed(of_ilh, itq), X, y, split)
    return found, of_ilh


def draw(results: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(results), 4.6), layout="constrained")
    for axes, (what, found) in zip(np.atleast_1d(figure.subplots(1, len(results))), results.items(), strict=True):
        mixes = np.stack([found[f"{share} + {BITS - share}"].mean(axis=0) for share in SHARES])
        axes.plot(mixes[:, 1], mixes[:, 0], "-o", color="tab:blue", label="ILHt + ITQ bits")
        for share, (seen, unseen) in zip(SHARES, mixes, strict=True):
            name = {0: "ITQ", BITS: "ILHt"}.get(share, f"{share} + {BITS - share}")
            axes.annotate(name, (unseen, seen), (6, 5), textcoords="offset points", fontsize=9)
        for name, marker, colour in (
            (PRUNED, "*", "tab:red"),
            (RETRAINED, "P", "tab:orange"),
            (FLOATS, "s", "0.4"),
        ):
            seen, unseen = found[name].mean(axis=0)
            axes.plot(unseen, seen, marker, ms=11, color=colour, label=name, ls="none")
        axes.set(title=what, xlabel=f"precision@{K}, unseen classes", ylabel=f"precision@{K}, seen classes")
        axes.margins(0.14)
        axes.grid(alpha=0.25)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="*", default=["mnist", "fashion-mnist", "cifar10"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--figure", type=Path, default=Path("mix.png"))
    parser.add_argument("--results", type=Path, default=Path("mix.json"))
    wanted = parser.parse_args()
    kept = json.loads(wanted.results.read_text()) if wanted.results.exists() else {}
    results = {what: {key: np.array(values) for key, values in found.items()} for what, found in kept.items()}
    for name in wanted.data:
        try:
            X, y, what = load(name)
        except FileNotFoundError as missing:
            print(f"skipped: {missing}")
            continue
        one = joblib.delayed(one_split)
        runs = joblib.Parallel(n_jobs=-1)(one(X, y, wanted.points, seed) for seed in range(wanted.splits))
        results[what] = {key: np.array([found[key] for found, _ in runs]) for key in runs[0][0]}
        print(f"\n{what}, {wanted.splits} class splits, precision@{K} (mean and standard deviation)\n")
        print("| ILHt + ITQ bits | seen | unseen |\n|---|---|---|")
        for key, values in results[what].items():
            cells = (f"{values[:, side].mean():.3f} ± {values[:, side].std(ddof=1):.3f}" for side in (0, 1))
            print(f"| {key} | " + " | ".join(cells) + " |")
        print(f"\nILHt bits among the 128 pruned: {', '.join(str(of_ilh) for _, of_ilh in runs)}", flush=True)
        kept = {what: {key: values.tolist() for key, values in found.items()} for what, found in results.items()}
        wanted.results.write_text(json.dumps(kept, indent=1))
    if results:
        draw(results, wanted.figure)
        print(f"\npicture in {wanted.figure}")


if __name__ == "__main__":
    main()
