"""Boosted trees against LightGBM and scikit-learn's HistGradientBoosting: seconds to train, accuracy on held-out rows.

The same rows, labels (a random half of the classes against the other), number and depth of trees, bins, rate and
penalty; one thread, processor time, in turns, medians. A node of ours looks at the square root of the features, drawn
at random; the peers run with that share per node too (their own option for it), and with all features. Then what it
takes to encode: all bits of a model in blocks of rows, one bit alone, and as a walk from node to node (rows that come
seven at a time walk); least times of many repeats.

    pip install lightgbm threadpoolctl      # LightGBM is not a dependency: without it its rows are left out
    python benchmarks/trees.py [--data cifar10-gist mnist] [--n-train 5000] [--n-trees 200] [--depth 6] [--rounds 3]
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # LightGBM and scikit-learn read it when they are imported

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from ilhash import core_simd, datasets
from ilhash.functions import Encoder, TreeBooster, TreeFunction
from ilhash.functions._boosting import MOST_BINS, PENALTY

RATE = 0.2
TEST_ROWS = 10_000
Floats = NDArray[np.float32]
Predict = Callable[[Floats], NDArray[Any]]


class Ours:
    """TreeBooster; features are put into bins once for all bits of a model, which is timed apart."""

    def __init__(self, X: Floats, asked: argparse.Namespace) -> None:
        begin = time.process_time()
        self.booster = TreeBooster(X, n_trees=asked.n_trees, depth=asked.depth, learning_rate=RATE)
        self.seconds_once = time.process_time() - begin

    def fit(self, z: NDArray[np.int8], seed: int) -> Predict:
        """Train one bit."""
        function = self.booster.fit(z, seed).function
        assert isinstance(function, TreeFunction)
        return function.margins


class LightGBM:
    """LightGBM's trainer on a Dataset of its own, which is timed apart as well."""

    def __init__(self, X: Floats, asked: argparse.Namespace, share: float) -> None:
        import lightgbm

        self.library, self.n_trees = lightgbm, asked.n_trees
        self.settings = {"objective": "binary", "max_depth": asked.depth, "num_leaves": 2**asked.depth}
        self.settings |= {"learning_rate": RATE, "lambda_l2": PENALTY, "max_bin": MOST_BINS, "num_threads": 1}
        self.settings |= {"min_data_in_leaf": 1, "feature_fraction_bynode": share}
        self.settings |= {"min_data_in_bin": 1, "verbose": -1, "force_col_wise": True}
        begin = time.process_time()
        self.data = lightgbm.Dataset(X, np.zeros(len(X)), params=self.settings, free_raw_data=False).construct()
        self.seconds_once = time.process_time() - begin

    def fit(self, z: NDArray[np.int8], seed: int) -> Predict:
        """Train one bit."""
        self.data.set_label((z > 0).astype(np.float32))
        model = self.library.train(self.settings | {"seed": seed}, self.data, self.n_trees)
        return lambda X: np.asarray(model.predict(X, raw_score=True, num_threads=1))


class HistGradientBoosting:
    """scikit-learn's, which puts features into bins anew for every fit."""

    seconds_once = 0.0

    def __init__(self, X: Floats, asked: argparse.Namespace, share: float) -> None:
        self.X = X
        self.settings = {"max_iter": asked.n_trees, "max_depth": asked.depth, "max_leaf_nodes": 2**asked.depth}
        self.settings |= {"learning_rate": RATE, "l2_regularization": PENALTY, "max_bins": MOST_BINS}
        self.settings |= {"min_samples_leaf": 1, "max_features": share, "early_stopping": False}

    def fit(self, z: NDArray[np.int8], seed: int) -> Predict:
        """Train one bit."""
        return HistGradientBoostingClassifier(random_state=seed, **self.settings).fit(self.X, z).decision_function


def trainers(X: Floats, asked: argparse.Namespace) -> dict[str, Any]:
    """Return who takes part, by name."""
    share = math.isqrt(X.shape[1]) / X.shape[1]
    found: dict[str, Any] = {"ilhash": Ours(X, asked)}
    try:
        found |= {"LightGBM, the same share of features": LightGBM(X, asked, share)}
        found |= {"LightGBM, all features": LightGBM(X, asked, 1.0)}
    except ImportError:
        print("LightGBM is not installed, so its rows are left out: pip install lightgbm")
    found |= {"HistGradientBoosting, the same share": HistGradientBoosting(X, asked, share)}
    return found | {"HistGradientBoosting, all features": HistGradientBoosting(X, asked, 1.0)}


def halves(y: NDArray[Any], rounds: int) -> Iterator[NDArray[np.int8]]:
    """Give labels of random halves of the classes."""
    classes = np.unique(y)
    for seed in range(rounds):
        ones = np.random.default_rng(seed).permutation(classes)[: len(classes) // 2]
        yield np.where(np.isin(y, ones), np.int8(1), np.int8(-1))


def training(data: str, asked: argparse.Namespace) -> None:
    """Print who takes how long to train one bit, and how good it is."""
    loaded = datasets.load(data)
    order = np.random.default_rng(0).permutation(len(loaded.y))[: asked.n_train + TEST_ROWS]
    X = np.ascontiguousarray(loaded.X[np.sort(order)], np.float32)
    train, test = np.split(np.random.default_rng(1).permutation(len(X)), [asked.n_train])
    taking_part = trainers(X[train], asked)
    seconds: dict[str, list[float]] = {name: [] for name in taking_part}
    predicting: dict[str, list[float]] = {name: [] for name in taking_part}
    right: dict[str, list[float]] = {name: [] for name in taking_part}
    for seed, z in enumerate(halves(loaded.y[np.sort(order)], asked.rounds)):
        for name, trainer in taking_part.items():
            begin = time.process_time()
            predict = trainer.fit(np.ascontiguousarray(z[train]), seed)
            middle = time.process_time()
            found = predict(X[test]) > 0
            predicting[name].append((time.process_time() - middle) / len(test))
            seconds[name].append(middle - begin)
            right[name].append(float((found == (z[test] > 0)).mean()))
    best = float(np.median(seconds["ilhash"]))
    for name in taking_part:
        median = float(np.median(seconds[name]))
        level = 1e9 * float(np.median(predicting[name])) / (asked.n_trees * asked.depth)
        once = f"{taking_part[name].seconds_once:.2f}"
        row = f"{name} | {once} | {median:.3f} | {median / best:.1f} | {np.mean(right[name]):.3f} | {level:.2f}"
        print(f"| {data}, D = {X.shape[1]} | {row} |", flush=True)


def least_seconds(work: Callable[[], Any], repeats: int = 60) -> float:
    """Return the least processor time of some work that was done before."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def encoding(data: str, asked: argparse.Namespace) -> None:
    """Print what a level of a tree takes when rows are encoded."""
    loaded = datasets.load(data)
    order = np.random.default_rng(0).permutation(len(loaded.y))[: asked.n_train + 1_024]
    rows = np.ascontiguousarray(loaded.X[np.sort(order)], np.float32)
    X, new = rows[: asked.n_train], rows[asked.n_train :]
    booster = TreeBooster(X, n_trees=asked.n_trees, depth=asked.depth, learning_rate=RATE)
    labels = loaded.y[np.sort(order)][: asked.n_train]
    functions = [booster.fit(np.ascontiguousarray(z), 0).function for z in halves(labels, asked.bits)]
    levels = len(new) * asked.n_trees * asked.depth
    together, alone = (Encoder(some, X.shape[1]) for some in (functions, functions[:1]))
    walk = Encoder(functions[:1], X.shape[1])
    sevens = [new[first : first + 7] for first in range(0, len(new), 7)]
    blocks = 1e9 * least_seconds(lambda: together.margins(new)) / levels / asked.bits
    single = 1e9 * least_seconds(lambda: alone.margins(new)) / levels
    walked = 1e9 * least_seconds(lambda: [walk.margins(some) for some in sevens]) / levels
    row = f"{asked.bits} bits: {blocks:.2f} | {single:.2f} | {walked:.2f} | {walked / blocks:.1f}"
    print(f"| {data}, D = {X.shape[1]} | {row} |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", nargs="+", default=["cifar10-gist", "mnist"])
    options.add_argument("--n-train", type=int, default=5_000)
    options.add_argument("--n-trees", type=int, default=200)
    options.add_argument("--depth", type=int, default=6)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--bits", type=int, default=16, help="of the model that is encoded with")
    asked = options.parse_args()
    print(f"{asked.n_trees} trees of depth {asked.depth}, N = {asked.n_train:,}, core {core_simd()}, one thread")
    print("| data | trainer | s once | s a bit | times ours | right on held-out rows | ns a tree level |")
    print("|---|---|---|---|---|---|---|")
    for data in asked.data:
        training(data, asked)
    print("\n| data | ns a tree level in blocks | one bit alone | walked | walked / blocks |\n|---|---|---|---|---|")
    for data in asked.data:
        encoding(data, asked)


if __name__ == "__main__":
    main()
