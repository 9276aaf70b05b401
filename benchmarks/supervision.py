"""Every kind of supervision: ILH by default against ITQ, CCAITQ, LSH, mixes and floats.

python benchmarks/supervision.py [--tasks debian:section mnist:pairs ...] [--bits 64 128] [--seeds 5] [--points 20000]

Each task is a base and queries apart from it; supervision is known of the base alone. Precision at 10 (tie-aware),
means and standard deviations over seeds, which draw queries, base, supervision and models anew. Tasks:

debian  section, few (5 % of the sections), tags (relevant: at least half of all tags of both in common), source
        (packages with at least 5 members), pairs (half of the dependencies, and as many random pairs as dissimilar: the
        share of 2,000 held-out ones among the 50 nearest), none (the nearest 1 %)
mnist, fashion, cifar (GIST)
        classes (precision at 100), many (a hundred k-means sub-classes of each class), few (5 % labelled), large (one
        class of 90 %; queries of the others), sets (class and 6 superclasses; relevant: the same class), pairs (50,000
        of the same class and 50,000 of others), concentrated (the same among a tenth of the points), graph (15 similar
        and 15 dissimilar neighbours on 4,000 points), none (the nearest 1 %)
glove, edges (histograms of edges of CIFAR-10)
        none
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from ilhash import ILH, Mix, datasets, methods
from ilhash.affinity import with_random_dissimilar

NAMES = {"mnist": "mnist", "fashion": "fashion-mnist", "cifar": "cifar10-gist", "glove": "glove-6b-100d"}
NAMES |= {"edges": "cifar10-edges"}
DERIVED = ("classes", "many", "few", "large", "sets", "pairs", "concentrated", "graph", "none")
TASKS = [f"debian:{kind}" for kind in ("section", "few", "tags", "source", "pairs", "none")]
TASKS += [f"{data}:{kind}" for data in ("mnist", "fashion", "cifar") for kind in DERIVED] + ["glove:none", "edges:none"]
N_QUERIES = 1000
BATCH = 200
# Each has its members; all have more than one, and no class has none.
SUPERCLASSES = ([0, 6, 8, 9], [1, 4, 7], [0, 2, 4, 6, 8], [2, 3, 5], [3, 5, 8], [4, 7, 9])


@dataclass
class Task:
    """A base with supervision, queries, and what is relevant to them: a row of booleans for each."""

    base: np.ndarray
    queries: np.ndarray
    given: dict[str, Any]
    relevant: Callable[[slice], np.ndarray]
    k: int = 10
    of_relevant: bool = False  # the share of the relevant that is found, instead of that of the found that is relevant
    itself: np.ndarray | None = field(default=None)  # rows of the base that queries are, which are not searched

    def score(self, agreement: Callable[[slice], np.ndarray]) -> float:
        """Return the mean over queries; agreement is larger for what is nearer, ties share the places left."""
        total = 0.0
        for first in range(0, len(self.queries), BATCH):
            rows = slice(first, min(first + BATCH, len(self.queries)))
            near, relevant = agreement(rows), self.relevant(rows)
            if self.itself is not None:
                near[np.arange(len(near)), self.itself[rows]] = -np.inf
            edge = -np.partition(-near, self.k - 1, axis=1)[:, self.k - 1 : self.k]
            above, equal = near > edge, near == edge
            left = (self.k - above.sum(axis=1)) / equal.sum(axis=1)
            hits = (above & relevant).sum(axis=1) + left * (equal & relevant).sum(axis=1)
            total += float(np.sum(hits / (np.maximum(relevant.sum(axis=1), 1) if self.of_relevant else self.k)))
        return total / len(self.queries)

    def floats(self) -> float:
        """Return the score of Euclidean distance."""
        sizes = np.einsum("ij,ij->i", self.base, self.base)
        return self.score(lambda rows: 2.0 * self.queries[rows] @ self.base.T - sizes)

    def of_model(self, model: Any) -> float:
        """Return the score of a trained model's codes."""
        base, queries = (np.where(model.decision_function(X) > 0, 1.0, -1.0) for X in (self.base, self.queries))
        base, queries = base.astype(np.float32), queries.astype(np.float32)
        return self.score(lambda rows: queries[rows] @ base.T)


def by_label(base: np.ndarray, queries: np.ndarray) -> Callable[[slice], np.ndarray]:
    return lambda rows: queries[rows, None] == base


def by_distance(base: np.ndarray, queries: np.ndarray, k: int) -> Callable[[slice], np.ndarray]:
    sizes = np.einsum("ij,ij->i", base, base)

    def relevant(rows: slice) -> np.ndarray:
        near = 2.0 * queries[rows] @ base.T - sizes
        found = np.zeros(near.shape, bool)
        np.put_along_axis(found, np.argpartition(-near, k, axis=1)[:, :k], True, axis=1)
        return found

    return relevant


# ------------------------------------------------------------------------------------------------ debian-packages


def debian(kind: str, rng: np.random.Generator) -> Task:
    if kind in ("tags", "source", "pairs"):
        data = datasets.load("debian-packages", target=kind)
        X = np.asarray(data.X, np.float32)
        return {"tags": tags, "source": source, "pairs": dependencies}[kind](X, data, rng)
    data = datasets.load("debian-packages", target="section")
    X, y, order = np.asarray(data.X, np.float32), np.asarray(data.y), rng.permutation(len(data.X))
    queries, base = order[:N_QUERIES], np.sort(order[N_QUERIES:])
    if kind == "none":
        k = len(base) // 100
        return Task(X[base], X[queries], {}, by_distance(X[base], X[queries], k), k)
    labels = y[base] if kind == "section" else np.where(rng.random(len(base)) < 0.05, y[base], -1)
    return Task(X[base], X[queries], {"y": labels}, by_label(y[base], y[queries]))


def tags(X: np.ndarray, data: Any, rng: np.random.Generator) -> Task:
    indicator = scipy.sparse.csr_array(data.y, dtype=np.float32)
    order = rng.permutation(np.flatnonzero(np.diff(indicator.indptr)))
    queries, base = order[:N_QUERIES], np.sort(order[N_QUERIES:])
    of_base, of_queries = indicator[base], indicator[queries]
    n_base, n_queries = (np.diff(table.indptr) for table in (of_base, of_queries))

    def relevant(rows: slice) -> np.ndarray:
        common = (of_queries[rows] @ of_base.T).toarray()
        return common >= 0.5 * (n_queries[rows, None] + n_base - common)

    return Task(X[base], X[queries], {"y": of_base.astype(np.int8)}, relevant)


def source(X: np.ndarray, data: Any, rng: np.random.Generator) -> Task:
    y = np.asarray(data.y)
    order = rng.permutation(np.flatnonzero(np.bincount(y + 1)[y + 1] >= 5))
    order = order[y[order] >= 0]
    queries, base = order[:N_QUERIES], np.sort(order[N_QUERIES:])
    return Task(X[base], X[queries], {"y": y[base]}, by_label(y[base], y[queries]))


def dependencies(X: np.ndarray, data: Any, rng: np.random.Generator) -> Task:
    pairs = np.asarray(data.pairs)[:, :2]
    order = rng.permutation(len(pairs))
    known, held = pairs[order[: len(pairs) // 2]], pairs[order[len(pairs) // 2 :][:2000]]
    given = with_random_dissimilar(known, len(X), random_state=int(rng.integers(2**31)))

    def relevant(rows: slice) -> np.ndarray:
        found = np.zeros((len(held[rows]), len(X)), bool)
        found[np.arange(len(found)), held[rows, 1]] = True
        return found

    return Task(X, X[held[:, 0]], {"pairs": given}, relevant, 50, True, held[:, 0])


# ------------------------------------------------------------------------------------------------ derived tasks


def derived(name: str, kind: str, n_points: int, rng: np.random.Generator) -> Task:
    data = datasets.load(NAMES[name])
    order = rng.permutation(len(data.X))[: N_QUERIES + n_points]
    X = np.asarray(data.X[order], np.float32)
    queries, base = X[:N_QUERIES], X[N_QUERIES:]
    if kind == "none":
        k = len(base) // 100
        return Task(base, queries, {}, by_distance(base, queries, k), k)
    labels = np.asarray(data.y)[order].astype(np.int64)
    if kind == "many":
        labels = sub_classes(X, labels, rng)
    of_queries, y = labels[:N_QUERIES], labels[N_QUERIES:]
    if kind == "large":
        rest = np.flatnonzero(y != 3)
        kept = np.sort(np.append(np.flatnonzero(y == 3), rng.permutation(rest)[: np.count_nonzero(y == 3) // 9]))
        asked = of_queries != 3
        return Task(base[kept], queries[asked], {"y": y[kept]}, by_label(y[kept], of_queries[asked]))
    given = {"classes": lambda: {"y": y}, "many": lambda: {"y": y}, "few": lambda: {"y": few(y, rng)}}
    given |= {"sets": lambda: {"y": with_superclasses(y)}, "graph": lambda: {"affinity": graph(y, rng)}}
    given |= {"pairs": lambda: {"pairs": pairs(y, np.arange(len(y)), rng)}}
    given |= {"concentrated": lambda: {"pairs": pairs(y, rng.permutation(len(y))[: len(y) // 10], rng)}}
    return Task(base, queries, given[kind](), by_label(y, of_queries), 100 if kind == "classes" else 10)


def few(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(y)) < 0.05, y, -1)


def sub_classes(X: np.ndarray, y: np.ndarray, rng: np.random.Generator, per_class: int = 100) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import PCA

    seed = int(rng.integers(2**31))
    reduced, out = PCA(50, random_state=seed).fit_transform(X), np.empty(len(y), np.int64)
    for c in np.unique(y):
        own = np.flatnonzero(y == c)
        clusters = MiniBatchKMeans(per_class, random_state=seed, n_init=1).fit(reduced[own])
        out[own] = c * per_class + clusters.labels_
    return out


def with_superclasses(y: np.ndarray) -> np.ndarray:
    members = [np.isin(y, some) for some in SUPERCLASSES]
    return np.concatenate([y[:, None] == np.arange(10), np.stack(members, axis=1)], axis=1).astype(np.int8)


def pairs(y: np.ndarray, pool: np.ndarray, rng: np.random.Generator, n: int = 50_000) -> np.ndarray:
    drawn = rng.choice(pool, (24 * n, 2))
    drawn = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    drawn = rng.permutation(drawn)
    same = y[drawn[:, 0]] == y[drawn[:, 1]]
    chosen = np.append(np.flatnonzero(same)[:n], np.flatnonzero(~same)[:n])
    return np.column_stack([drawn[chosen], np.where(same[chosen], 1, -1)])


def graph(y: np.ndarray, rng: np.random.Generator, n: int = 4000, each: int = 15) -> scipy.sparse.csr_array:
    pool = rng.permutation(len(y))[:n]
    ends = [[(p, rng.choice(pool[(y[pool] == y[p]) == same], each)) for p in pool] for same in (True, False)]
    i, j = (np.concatenate([np.broadcast_to(end[part], each) for kind in ends for end in kind]) for part in (0, 1))
    apart = i != j
    table = scipy.sparse.coo_array((np.where(y[i] == y[j], 1.0, -1.0)[apart], (i[apart], j[apart])), (len(y), len(y)))
    joined = scipy.sparse.csr_array(table + table.T)
    joined.data = np.sign(joined.data)
    return joined


# ------------------------------------------------------------------------------------------------ models


def models(n_bits: int, seed: int, labels: bool) -> Iterator[tuple[str, Any]]:
    own = {"n_bits": n_bits, "random_state": seed}
    yield "ILH", ILH(**own)
    yield "ITQ", methods.ITQ(**own)
    yield "LSH", methods.LSH(**own)
    half = {**own, "n_bits": n_bits // 2}
    yield "ILH + ITQ", Mix([ILH(**half), methods.ITQ(**half)])
    if labels:
        yield "CCAITQ", methods.CCAITQ(**own)
        yield "ILH + CCAITQ", Mix([ILH(**half), methods.CCAITQ(**half)])


def measured(task: Task, n_bits: int, seed: int, wanted: list[str]) -> Iterator[tuple[str, float]]:
    for title, model in models(n_bits, seed, "y" in task.given):
        if title not in wanted:
            continue
        try:
            model.fit(task.base, **(task.given if title not in ("ITQ", "LSH") else {}), check=False)
        except methods.UndefinedError:
            continue  # more bits than there are directions
        yield title, task.of_model(model)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tasks", nargs="+", default=TASKS)
    options.add_argument("--bits", nargs="+", type=int, default=[64, 128])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--points", type=int, default=20_000)
    columns = ["ILH", "ITQ", "CCAITQ", "LSH", "ILH + ITQ", "ILH + CCAITQ"]
    options.add_argument("--models", nargs="+", default=columns, choices=columns)
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    print(f"| task | bits | floats | {' | '.join(asked.models)} |\n|---|---|---|{'---|' * len(asked.models)}")
    for name in asked.tasks:
        data, kind = name.split(":")
        scores: dict[tuple[int, str], list[float]] = {}
        for seed in range(asked.seeds):
            rng = np.random.default_rng(seed)
            task = debian(kind, rng) if data == "debian" else derived(data, kind, asked.points, rng)
            scores.setdefault((0, "floats"), []).append(task.floats())
            for n_bits in asked.bits:
                for title, score in measured(task, n_bits, seed, asked.models):
                    scores.setdefault((n_bits, title), []).append(score)
        for n_bits in asked.bits:
            cells = [scores.get((n_bits, title), []) for title in asked.models]
            shown = [f"{np.mean(cell):.3f} ± {np.std(cell):.3f}" if cell else "-" for cell in cells]
            print(f"| {name} | {n_bits} | {np.mean(scores[0, 'floats']):.3f} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
