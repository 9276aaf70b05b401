"""What judgements of users are worth: simulated users on a notion that no label named, and dependencies in portions.

python benchmarks/feedback.py [--tasks fashion:none ...] [--judgements 100 300 1000 3000] [--seeds 5] [--points 15000]
                              [--wrong 0.1] [--plot docs/feedback.png] [--json feedback.json]
python benchmarks/feedback.py --dependencies [--seeds 2] [--bits 8] [--plot docs/dependencies.png]

Users: a model of 64 bits is trained on the base, without labels (none) or with labels that name two classes together
(coarse). A user takes an item of the base, sees the ten nearest by the codes, and judges one of them by a notion that
no label named: superclasses (none), or the single classes (coarse); a tenth of the judgements is wrong. ilhash.learn
gets them through a log of feedback. Precision@10 by that notion, 1,000 queries apart from the base, before and after.

Dependencies: those of debian-packages arrive in ten portions; after each the model is extended by as many bits, learnt
from all pairs so far and as many random ones. The share of 2,000 dependencies, which are in no portion, among the 50
nearest; beside it the model as it was, and one of the same length trained again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ilhash import ILH, Feedback, codes, datasets, learn
from ilhash.affinity import with_random_dissimilar
from ilhash.evaluation import precision_at_k

NAMES = {"mnist": "mnist", "fashion": "fashion-mnist", "cifar": "cifar10-gist"}
# By class, in the datasets' order: shirts, trousers and dresses, shoes, bags; digits by their holes and strokes; what
# flies or swims, cars, animals with and without hoofs.
NOTIONS = {
    "fashion": [0, 1, 0, 1, 0, 2, 0, 2, 3, 2],
    "mnist": [0, 1, 2, 2, 3, 2, 0, 1, 0, 3],
    "cifar": [0, 1, 2, 2, 3, 2, 2, 3, 0, 1],
}
TASKS = [f"{name}:{start}" for start in ("none", "coarse") for name in NAMES]
N_BITS = 64
N_QUERIES = 1_000
SHOWN = 10  # results that a user sees
N_PORTIONS = 10
NEAREST = 50


def judged(model: Any, X: np.ndarray, notion: np.ndarray, n: int, wrong: float, rng: np.random.Generator) -> list[Any]:
    """Return queries, items and judgements of simulated users."""
    bits = np.where(codes.unpack(model.transform(X), model.n_bits), 1.0, -1.0).astype(np.float32)
    queries = rng.choice(len(X), n, replace=False)
    agreement = bits[queries] @ bits.T
    agreement[np.arange(n), queries] = -np.inf
    shown = np.argpartition(-agreement, SHOWN, axis=1)[:, :SHOWN]
    items = shown[np.arange(n), rng.integers(0, SHOWN, n)]
    similar = (notion[queries] == notion[items]) ^ (rng.random(n) < wrong)
    return [queries, items, similar]


def simulate(task: str, seed: int, asked: Any) -> list[dict[str, Any]]:
    """Return precision before and after so many judgements."""
    name, start = task.split(":")
    rng = np.random.default_rng(seed)
    data = datasets.load(NAMES[name])
    order = rng.permutation(len(data.X))[: N_QUERIES + asked.points]
    X, y = np.asarray(data.X[order], np.float32), np.asarray(data.y)[order].astype(np.int64)
    base, queries = X[N_QUERIES:], X[:N_QUERIES]
    notion = y if start == "coarse" else np.array(NOTIONS[name])[y]
    given = {"y": y[N_QUERIES:] // 2} if start == "coarse" else {}
    model = ILH(n_bits=N_BITS, random_state=seed).fit(base, **given, check=False)

    def precision(one: Any) -> float:
        sides = (one.transform(base), notion[N_QUERIES:], one.transform(queries), notion[:N_QUERIES])
        return float(precision_at_k(*sides, k=10, n_bits=one.n_bits))

    before, rows = precision(model), []
    if asked.without:
        more = model[:].extend(asked.without, base, check=False)
        rows.append({"task": task, "seed": seed, "judgements": 0, "before": before, "after": precision(more)})
        rows[0] |= {"n_new": asked.without, "seconds": 0.0}
        print(json.dumps(rows[0]), flush=True)
    for n in asked.judgements:
        with tempfile.TemporaryDirectory() as folder, Feedback.open(folder) as log:
            log.add(*judged(model, base, notion[N_QUERIES:], n, asked.wrong, rng))
            begin = time.perf_counter()
            found = learn(model, base, log.pairs(np.arange(len(base))), random_state=seed)
            took = time.perf_counter() - begin
        row = {"task": task, "seed": seed, "judgements": n, "before": before, "after": precision(found.model)}
        row |= {"n_new": found.n_new, "held_out_before": found.before, "held_out_after": found.after, "seconds": took}
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def report(rows: list[dict[str, Any]]) -> None:
    """Print a table of means over seeds, and the worst change of all."""
    print(
        "| task | judgements | before | after | change, each seed | new bits | seconds |\n|---|---|---|---|---|---|---|"
    )
    for task, n in dict.fromkeys((row["task"], row["judgements"]) for row in rows):
        own = [row for row in rows if (row["task"], row["judgements"]) == (task, n)]
        before, after, seconds = (np.mean([row[key] for row in own]) for key in ("before", "after", "seconds"))
        changes = " ".join(f"{row['after'] - row['before']:+.3f}" for row in own)
        new = " ".join(str(row["n_new"]) for row in own)
        print(f"| {task} | {n:,} | {before:.3f} | {after:.3f} | {changes} | {new} | {seconds:.1f} |")
    print(f"worst change: {min(row['after'] - row['before'] for row in rows):+.4f}")


def dependencies(seed: int, n_bits: int) -> list[dict[str, Any]]:
    """Return the share of held-out dependencies that is found, after each portion."""
    data = datasets.load("debian-packages", target="pairs")
    X, pairs = np.asarray(data.X, np.float32), np.asarray(data.pairs)[:, :2]
    order = np.random.default_rng(seed).permutation(len(pairs))
    held, known = pairs[order[:2_000]], pairs[order[2_000:]]
    model, rows = ILH(n_bits=N_BITS, random_state=seed).fit(X, check=False), []
    stays = model[:]
    for number in range(N_PORTIONS + 1):
        took = again = 0.0
        fresh = model
        if number:
            some = with_random_dissimilar(known[: number * len(known) // N_PORTIONS], len(X), random_state=seed)
            begin = time.perf_counter()
            model.extend(n_bits, X, pairs=some, name=f"portion {number}", check=False)
            took = time.perf_counter() - begin
            begin = time.perf_counter()
            fresh = ILH(n_bits=model.n_bits, random_state=seed).fit(X, pairs=some, check=False)
            again = time.perf_counter() - begin
        row = {"seed": seed, "portion": number, "pairs": number * len(known) // N_PORTIONS, "bits": model.n_bits}
        row |= {"stays": found_among_nearest(stays, X, held), "extended": found_among_nearest(model, X, held)}
        unsupervised = ILH(n_bits=model.n_bits, random_state=seed).fit(X, check=False)
        row |= {"more bits without pairs": found_among_nearest(unsupervised, X, held)}
        row |= {"trained again": found_among_nearest(fresh, X, held), "seconds": took, "seconds again": again}
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def found_among_nearest(model: Any, X: np.ndarray, held: np.ndarray) -> float:
    """Return the share of pairs whose second is among the nearest of the first; ties share the places left."""
    bits = np.where(codes.unpack(model.transform(X), model.n_bits), 1.0, -1.0).astype(np.float32)
    total = 0.0
    for first in range(0, len(held), 200):
        some = held[first : first + 200]
        agreement = bits[some[:, 0]] @ bits.T
        own = agreement[np.arange(len(some)), some[:, 1]]
        agreement[np.arange(len(some)), some[:, 0]] = -np.inf
        above = (agreement > own[:, None]).sum(axis=1)
        equal = (agreement == own[:, None]).sum(axis=1)
        total += float(np.clip((NEAREST - above) / equal, 0.0, 1.0).sum())
    return total / len(held)


def draw_users(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    starts = list(dict.fromkeys(row["task"].split(":")[1] for row in rows))
    figure = Figure(figsize=(4.6 * len(starts), 3.4), layout="constrained")
    for panel, start in zip(np.atleast_1d(figure.subplots(1, len(starts))), starts, strict=True):
        for color, task in enumerate(dict.fromkeys(row["task"] for row in rows if row["task"].endswith(start))):
            own = [row for row in rows if row["task"] == task]
            numbers = sorted({row["judgements"] for row in own})
            after = np.array([[row["after"] for row in own if row["judgements"] == n] for n in numbers])
            before = np.mean([row["before"] for row in own])
            places = [numbers[0] / 2, *numbers]
            panel.plot(places, [before, *after.mean(axis=1)], f"C{color}o-", label=task.split(":")[0])
            low, high = after.min(axis=1), after.max(axis=1)
            panel.fill_between(places, [before, *low], [before, *high], color=f"C{color}", alpha=0.2, lw=0)
        panel.set_xscale("log")
        panel.set_xticks(places, ["0", *(f"{n:,}" for n in numbers)])
        panel.minorticks_off()
        panel.set_xlabel("judgements, a tenth of them wrong")
        panel.set_ylabel("precision@10 by the users' notion")
        panel.set_title("start: no labels" if start == "none" else "start: labels of pairs of classes", fontsize=10)
        panel.legend(frameon=False)
    figure.savefig(path, dpi=110)


def draw_dependencies(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 3.6), layout="constrained")
    panel = figure.subplots()
    portions = sorted({row["portion"] for row in rows})
    for name in ("extended", "trained again", "more bits without pairs", "stays"):
        values = np.array([[row[name] for row in rows if row["portion"] == n] for n in portions])
        panel.plot(portions, values.mean(axis=1), "o-", label=name)
        panel.fill_between(portions, values.min(axis=1), values.max(axis=1), alpha=0.2, lw=0)
    panel.set_xlabel("portions of dependencies that have arrived")
    panel.set_ylabel(f"held-out ones among the {NEAREST} nearest")
    panel.legend(frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tasks", nargs="+", default=TASKS)
    options.add_argument("--without", type=int, default=0, help="first as many bits without judgements, to compare")
    options.add_argument("--judgements", nargs="*", type=int, default=[100, 300, 1_000, 3_000])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--points", type=int, default=15_000)
    options.add_argument("--wrong", type=float, default=0.1)
    options.add_argument("--dependencies", action="store_true")
    options.add_argument("--bits", type=int, default=8)
    options.add_argument("--plot", type=Path)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    if asked.dependencies:
        rows = [row for seed in range(asked.seeds) for row in dependencies(seed, asked.bits)]
    else:
        rows = [row for task in asked.tasks for seed in range(asked.seeds) for row in simulate(task, seed, asked)]
        report(rows)
    if asked.plot:
        (draw_dependencies if asked.dependencies else draw_users)(rows, asked.plot)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
