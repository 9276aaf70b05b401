"""GIST of CIFAR-10: images per second, accuracy of a linear classifier, precision of codes; edge histograms per second.

python benchmarks/gist.py

58,000 base points and 2,000 queries, N = 5,000, tie-aware precision@500.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ilhash import ILH, datasets
from ilhash.evaluation import precision_at_k

SEED = 0


def main() -> None:
    try:
        cifar = datasets.load("cifar10")
    except FileNotFoundError as missing:
        print(f"skipped: {missing}")
        return
    for describe in (datasets.gist, datasets.edge_histograms):
        speed(describe, cifar.X[:4_000].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    begin = time.perf_counter()
    features = datasets.load("cifar10-gist")
    print(f"cifar10-gist, from {datasets.cache_home()} if it is there: {time.perf_counter() - begin:.1f} s")
    linear_accuracy(features)
    retrieval(features)


def speed(describe: Callable[[np.ndarray], np.ndarray], images: np.ndarray) -> None:
    """Count seconds of the processor, as the machine may have other work; the best of three."""
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        describe(images)
        seconds.append(time.process_time() - begin)
    print(f"{describe.__name__}, images per second and core: {len(images) / min(seconds):,.0f} (wanted 1,000)")


def linear_accuracy(features: datasets.Dataset) -> None:
    train, test = slice(0, features.n_train), slice(features.n_train, None)
    model = make_pipeline(StandardScaler(), LinearSVC(C=0.01, dual=False, tol=1e-3))
    model.fit(features.X[train], features.y[train])
    accuracy = model.score(features.X[test], features.y[test])
    print(f"LinearSVC (C = .01), trained on the 50,000 training images: {accuracy:.3f} of the others (wanted .56)")


def retrieval(features: datasets.Dataset) -> None:
    order = np.random.default_rng(SEED).permutation(len(features.X))
    queries, base = order[:2_000], order[2_000:]
    X, y = features.X, features.y

    def precision(model: ILH) -> float:
        return precision_at_k(model.transform(X[base]), y[base], model.transform(X[queries]), y[queries], 500)

    def fit(n_bits: int, diversity: str, **options) -> ILH:
        return ILH(n_bits, diversity=diversity, n_train=5_000, random_state=SEED, **options).fit(X[base], y[base])

    linear = fit(128, "t")
    singles = np.mean([precision(linear[bit]) for bit in range(16)])
    print(f"ILHt linear, mean of the first 16 single bits: {singles:.3f} (wanted .11 to .14)")
    at_64 = precision(linear[:64])
    above = at_64 - precision(fit(64, "i"))
    print(f"ILHt linear, 64 bits: {at_64:.3f} (wanted .42), above ILHi by {above:.3f} (wanted .03)")
    print(f"ILHt linear, 128 bits: {precision(linear):.3f} (wanted .45)")
    private = precision(fit(64, "t", hash_function="kernel", centers="private"))
    print(f"ILHt kernel, private centres, 64 bits: {private:.3f} (wanted .52)")


if __name__ == "__main__":
    main()
