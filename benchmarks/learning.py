"""Codes that keep learning: labels of new classes come later, and digits that drift.

python benchmarks/learning.py classes [--data mnist fashion-mnist cifar10] [--splits 5] [--points 30000] [--json file]
python benchmarks/learning.py few [--data mnist cifar10] [--splits 2] [--points 10000]
python benchmarks/learning.py drift [--steps 10] [--points 6000] [--splits 3] [--figure drift.png] [--json file]

classes: a model of 64 bits is trained on seven of ten classes; then labels of the other three come, for the items that
are there already. Precision@10 of 1,000 queries apart among all items, by whether the query is of an old or a new
class. Seconds are those of training, encoding all items (only new bits where the others stay) and changing the index
in memory, one thread. "again" is a model trained on everything from the beginning.
few: one class is new and has few items, beside all the others; precision@10 of 500 queries of it, and of 500 others.
drift: infinite digits that are turned by ten degrees more in each step. Every step the model meets items and queries of
its day: one that stays, one that is refreshed at constant bytes (64 bits, 32 new ones trained), one trained again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import rotate

import ilhash
from ilhash import ILH, HammingIndex
from ilhash.evaluation import precision_at_k

BITS, K, QUERIES = 64, 10, 1_000
FEATURES = {"cifar10": "cifar10-gist"}


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return processor time, since other work may be on the machine."""
    begin = time.process_time()
    result = action()
    return time.process_time() - begin, result


# ------------------------------------------------------------------------------------------------ new classes


def one_split(X: np.ndarray, y: np.ndarray, n_points: int, seed: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[: n_points + QUERIES]
    queries, base = rows[:QUERIES], rows[QUERIES:]
    late = rng.permutation(np.unique(y))[:3]
    items, labels = X[base], y[base]
    known = ~np.isin(labels, late)
    first = ILH(n_bits=BITS, random_state=seed).fit(items[known], labels[known], check=False)
    before = HammingIndex(first.transform(items), n_bits=BITS, model=first)

    def judged(model: Any) -> dict[str, float]:
        codes, asked = model.transform(items), model.transform(X[queries])
        new = np.isin(y[queries], late)
        sides = {"old": ~new, "new": new, "all": np.ones(QUERIES, bool)}
        return {
            side: float(precision_at_k(codes, labels, asked[some], y[queries][some], k=K, n_bits=model.n_bits))
            for side, some in sides.items()
        }

    def follow(model: Any) -> Any:
        index = copy_of(before)
        return timed(lambda: index.follow(model, items))[0]

    def again(n_bits: int) -> tuple[float, Any]:
        def build() -> Any:
            model = ILH(n_bits=n_bits, random_state=seed).fit(items, labels, check=False)
            HammingIndex(model.transform(items), n_bits=n_bits)
            return model

        return timed(build)

    found = {"before": {**judged(first), "seconds": 0.0}}
    for n in (16, 32):
        took, model = timed(lambda n=n: first[:].extend(n, items, labels, check=False))
        found[f"extend by {n}"] = {**judged(model), "seconds": took + follow(model)}
        took, model = timed(lambda n=n: first[:].extend(n, items, labels, focus=late, check=False))
        found[f"extend by {n}, focus"] = {**judged(model), "seconds": took + follow(model)}
    took, refreshed = timed(lambda: ilhash.refresh(first, items, labels, n_new=32, focus=late))
    found["refresh, 64 bits"] = {**judged(refreshed.model), "seconds": took + follow(refreshed.model)}
    for n in (64, 80, 96):
        took, model = again(n)
        found[f"again, {n} bits"] = {**judged(model), "seconds": took}
    return found


def copy_of(index: HammingIndex) -> HammingIndex:
    """Return an index of its own, of the same bits; ``select_bits`` of one would change the other."""
    twin = HammingIndex(n_bits=index.n_bits)
    twin._held = index._held
    return twin


def classes(given: argparse.Namespace) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in given.data:
        data = ilhash.datasets.load(FEATURES.get(name, name))  # a dataset that is missing is an error, not another one
        X, y = np.asarray(data.X, np.float32), data.y
        splits = [one_split(X, y, given.points, seed) for seed in range(given.splits)]
        mean = {
            how: {what: float(np.mean([one[how][what] for one in splits])) for what in splits[0][how]}
            for how in splits[0]
        }
        out[name] = {"mean": mean, "splits": splits}
        print(f"\n{name}, {given.splits} splits, {given.points:,} items, precision@{K}\n", flush=True)
        print("| | old classes | new classes | all | seconds |\n|---|---|---|---|---|")
        for how, one in mean.items():
            spread = {side: np.std([s[how][side] for s in splits]) for side in ("old", "new", "all")}
            cells = [f"{one[side]:.3f} ± {spread[side]:.3f}" for side in ("old", "new", "all")]
            print(f"| {how} | {' | '.join(cells)} | {one['seconds']:.2f} |", flush=True)
        gain = {how: one["new"] - mean["before"]["new"] for how, one in mean.items()}
        for n in (64, 96):
            share = gain["extend by 32, focus"] / gain[f"again, {n} bits"]
            cost = mean["extend by 32, focus"]["seconds"] / mean[f"again, {n} bits"]["seconds"]
            print(f"extend by 32, focus: {share:.0%} of the gain of training {n} bits again, {cost:.0%} of the time")
    return out


# ------------------------------------------------------------------------------------------ a class with few items


def few_of(X: np.ndarray, y: np.ndarray, n_points: int, members: int, seed: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    late = rng.permutation(np.unique(y))[:1]
    rows = rng.permutation(len(X))
    new, old = rows[y[rows] == late[0]], rows[y[rows] != late[0]]
    queries = {"new": new[:500], "old": old[:500]}
    base = np.concatenate([old[500 : 500 + n_points], new[500 : 500 + members]])
    items, labels = X[base], y[base]
    known = labels != late[0]
    first = ILH(n_bits=BITS, random_state=seed).fit(items[known], labels[known], check=False)
    models = {
        "before": first,
        "extend by 16": first[:].extend(16, items, labels, check=False),
        "extend by 16, focus": first[:].extend(16, items, labels, focus=late, check=False),
    }
    found = {}
    for how, model in models.items():
        base_codes, n_bits = model.transform(items), model.n_bits
        found[how] = {
            side: float(precision_at_k(base_codes, labels, model.transform(X[some]), y[some], k=K, n_bits=n_bits))
            for side, some in queries.items()
        }
    return found


def few(given: argparse.Namespace) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # that a class has few points
    out: dict[str, Any] = {}
    print("| | items of the new class | before | extend by 16 | extend by 16, focus |\n|---|---|---|---|---|")
    for name in given.data:
        data = ilhash.datasets.load(FEATURES.get(name, name))
        X, y = np.asarray(data.X, np.float32), data.y
        for members in (60, 300, 1000):
            splits = [few_of(X, y, given.points, members, seed) for seed in range(given.splits)]
            out[f"{name} {members}"] = splits
            cells = [
                " / ".join(f"{np.mean([one[how][side] for one in splits]):.3f}" for side in ("new", "old"))
                for how in splits[0]
            ]
            print(f"| {name} | {members} | {' | '.join(cells)} |", flush=True)
    return out


# ------------------------------------------------------------------------------------------------ drift


def turned(images: np.ndarray, degrees: float) -> np.ndarray:
    return rotate(images.reshape(-1, 28, 28), degrees, axes=(1, 2), reshape=False, order=1).reshape(len(images), -1)


def drift_of(seed: int, steps: int, n_points: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"stays": [], "refreshed": [], "trained again": []}
    stays = model = None
    for step in range(steps):
        first = 2 * n_points * (step + steps * seed)
        pieces = [slice(first, first + n_points), slice(first + n_points, first + n_points + 500)]
        source = ilhash.datasets.InfiniteDigits("mnist", part="train")
        (items, y), (asked, wanted) = (
            (turned(images, 10.0 * step), labels) for images, labels in (source[piece] for piece in pieces)
        )
        fresh = ILH(n_bits=BITS, random_state=seed).fit(items, y, check=False)
        if stays is None:
            stays = model = fresh
        else:
            model = ilhash.refresh(model, items, y, n_new=32).model
        for name, one in (("stays", stays), ("refreshed", model), ("trained again", fresh)):
            codes = one.transform(items), y, one.transform(asked), wanted
            found[name].append(float(precision_at_k(*codes, k=K, n_bits=BITS)))
    return found


def drift(given: argparse.Namespace) -> dict[str, Any]:
    runs = [drift_of(seed, given.steps, given.points) for seed in range(given.splits)]
    mean = {name: np.mean([one[name] for one in runs], axis=0).tolist() for name in runs[0]}
    print("| degrees | " + " | ".join(mean) + " |\n|---|" + "---|" * len(mean))
    for step in range(given.steps):
        print(f"| {10 * step} | " + " | ".join(f"{mean[name][step]:.3f}" for name in mean) + " |")
    if given.figure:
        draw(mean, given.figure)
    return {"mean": mean, "runs": runs}


def draw(mean: dict[str, list[float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, values in mean.items():
        axes.plot(10 * np.arange(len(values)), values, marker="o", label=name)
    axes.set(xlabel="digits are turned by, degrees", ylabel=f"precision@{K}", ylim=(0, 1))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("classes", "few", "drift"))
    parser.add_argument("--data", nargs="*", default=["mnist", "fashion-mnist", "cifar10"])
    parser.add_argument("--splits", type=int)
    parser.add_argument("--points", type=int)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    what, splits, points = {"classes": (classes, 5, 30_000), "few": (few, 2, 10_000), "drift": (drift, 3, 6_000)}[
        given.what
    ]
    given.splits, given.points = given.splits or splits, given.points or points
    found = what(given)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
