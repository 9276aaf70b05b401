"""What judgements from the page of a service are worth: pairs as the page asks for them, answered by a new notion.

python benchmarks/teaching.py [--judgements 60 100 150 250] [--seeds 5] [--times 2]

The bundled digits, models of 64 bits trained with the ten labels or without any. Somebody answers pairs by the notion
"has a closed loop" (0, 6, 8, 9 against the others), which no label names, and learns from them as the service does.
Pairs are chosen by the rule of src/ilhash/serve/page/propose.js: any two items, and nearer ones while "not similar" is
ahead. Precision at 10, 100 and 300 by the notion, half of the items being queries: a digit has some 180 images, so that
beyond these the notion decides which digits come next.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import ILH, HammingIndex, datasets, learn

LOOP = (0, 6, 8, 9)
AHEAD, LEAST, MOST_K = 4, 10, 1000  # of propose.js, and the most answers of a search
KS = (10, 100, 300)


def answers(order: NDArray[np.int64], notion: NDArray[Any], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return n pairs as the page asks for them, each with its answer: rows (query, item, 1 or -1)."""
    reach, asked, kinds = float("inf"), {}, [0, 0]
    while len(asked) < n:
        query = int(rng.integers(len(order)))
        near = order[query][order[query] != query]
        item = int(rng.integers(len(order))) if reach > MOST_K else int(near[rng.integers(int(reach))])
        pair = (min(query, item), max(query, item))
        if query == item or pair in asked:
            continue
        similar = bool(notion[query] == notion[item])
        asked[pair] = 1 if similar else -1
        kinds[similar] += 1
        if kinds[True] >= kinds[False]:
            reach = min(2 * reach, len(order))
        elif not similar and kinds[False] - kinds[True] > AHEAD:
            reach = max(min(reach, len(order)) / 2, LEAST)
    return np.array([(*pair, answer) for pair, answer in asked.items()])


def precision(model: ILH, X: NDArray[Any], notion: NDArray[Any]) -> NDArray[np.float64]:
    """Return precision at KS by a notion, a query itself left out."""
    hashed, queries = model.transform(X), np.arange(0, len(X), 2)
    found = HammingIndex(hashed, n_bits=model.n_bits).search(hashed[queries], k=max(KS) + 1).ids
    right = np.empty((len(queries), max(KS)), bool)
    for row, query in enumerate(queries):
        others = found[row][found[row] != query][: max(KS)]
        right[row] = notion[others] == notion[query]
    return np.array([right[:, :k].mean() for k in KS])


def main() -> None:
    """Print a table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--judgements", type=int, nargs="+", default=[60, 100, 150, 250])
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--times", type=int, default=2, help="people for each model")
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    digits = datasets.load("digits")
    X, y = digits.X, np.asarray(digits.y)
    notion = np.isin(y, LOOP)
    print("| labels | judgements | new bits joined | " + " | ".join(f"precision@{k}" for k in KS) + " |")
    print("|---|---|---|" + "---|" * len(KS))
    for labels in ("ten digits", "none"):
        changes: dict[int, list[NDArray[np.float64]]] = {n: [] for n in given.judgements}
        joined, before = dict.fromkeys(given.judgements, 0), []
        for seed in range(given.seeds):
            model = ILH(n_bits=64, n_similar=30, n_dissimilar=30, random_state=seed)
            model.fit(X, y) if labels != "none" else model.fit(X)
            order = HammingIndex(model.transform(X), n_bits=64).search(model.transform(X), k=len(X)).ids
            before.append(precision(model, X, notion))
            for time in range(given.times):
                pairs = answers(order, notion, max(given.judgements), np.random.default_rng([seed, time]))
                for n in given.judgements:
                    learning = learn(model, X, pairs[:n])
                    joined[n] += learning.better
                    changes[n].append(precision(learning.model, X, notion) - before[-1])
        start = " | ".join(f"{value:.3f}" for value in np.mean(before, axis=0))
        print(f"| {labels} | 0 | | {start} |")
        for n, found in changes.items():
            mean, least, most = np.mean(found, axis=0), np.min(found, axis=0), np.max(found, axis=0)
            cells = " | ".join(f"{a:+.3f} ({b:+.3f} to {c:+.3f})" for a, b, c in zip(mean, least, most, strict=True))
            print(f"| {labels} | {n} | {joined[n]} of {len(found)} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
