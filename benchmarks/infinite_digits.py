"""A million infinite digits on two threads, how far their pixels move, and whether they can still be read.

python benchmarks/infinite_digits.py
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from ilhash.datasets import InfiniteDigits, load

N_IMAGES, N_THREADS = 1_000_000, 2
N_TRAIN, N_TEST = 20_000, 10_000
SIDE, CELL, DIRECTIONS = 28, 4, 8


def gradient_features(X: np.ndarray) -> np.ndarray:
    """Histograms of gradient directions in overlapping cells of 8 x 8 pixels: what reads digits well by neighbours."""
    down, right = np.gradient(X.reshape(-1, SIDE, SIDE).astype(np.float32), axis=(1, 2))
    direction = np.rint(np.arctan2(down, right) * (DIRECTIONS / (2 * np.pi))).astype(np.int64) % DIRECTIONS
    across = SIDE // CELL
    place = np.arange(SIDE) // CELL
    cell = np.arange(len(X))[:, None, None] * across**2 + place[:, None] * across + place
    strength = np.hypot(down, right)
    sums = np.bincount((cell * DIRECTIONS + direction).ravel(), strength.ravel(), len(X) * across**2 * DIRECTIONS)
    sums = sums.reshape(-1, across, across, DIRECTIONS)
    blocks = (sums[:, :-1, :-1] + sums[:, 1:, :-1] + sums[:, :-1, 1:] + sums[:, 1:, 1:]).reshape(len(X), -1)
    return np.sqrt(blocks / np.maximum(blocks.sum(axis=1, keepdims=True), 1)).astype(np.float32)


def accuracies(n_train: int, n_test: int) -> tuple[float, float]:
    """Of 3 nearest neighbours among plain training digits: on plain test digits, and on deformations of the same."""
    mnist = load("mnist")
    classifier = KNeighborsClassifier(3, algorithm="brute")
    classifier.fit(gradient_features(mnist.X[:n_train]), mnist.y[:n_train])
    endless = InfiniteDigits("mnist", part="test")
    rows = endless.source_rows(0, n_test)
    plain = mnist.X[rows], mnist.y[rows]
    deformed = endless[:n_test]
    return tuple(classifier.score(gradient_features(X), y) for X, y in (plain, deformed))


def mean_displacement(digits: InfiniteDigits) -> float:
    """Mean length over the pixels of the first 5,000 images."""
    fields = digits.displacements(0, 5_000)
    return float(np.hypot(fields[:, 0], fields[:, 1]).mean())


def main() -> None:
    try:
        digits = InfiniteDigits("mnist")
    except FileNotFoundError as missing:
        print(f"skipped: {missing}")
        return
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before the start")
    begin = time.perf_counter()
    digits.images(0, 100_000)
    seconds = time.perf_counter() - begin
    print(f"in memory, 1 thread: {100_000 / seconds:,.0f} images/s (wanted > 5,000)")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        begin = time.perf_counter()
        digits.write(Path(folder) / "digits", N_IMAGES, n_threads=N_THREADS)
        seconds = time.perf_counter() - begin
    print(
        f"{N_IMAGES:,} x {SIDE * SIDE} uint8 to a file, {N_THREADS} threads: {seconds:.1f} s (wanted < 120), "
        f"{N_IMAGES / seconds:,.0f} images/s"
    )
    elastic = InfiniteDigits("mnist", rotation=0, scale=0, shift=0)
    print(
        f"mean displacement: {mean_displacement(digits):.2f} pixels (wanted >= 1), without rotation, size and shift "
        f"{mean_displacement(elastic):.2f}"
    )
    plain, deformed = accuracies(N_TRAIN, N_TEST)
    print(
        f"3 nearest of {N_TRAIN:,} plain training digits by gradient directions: {plain:.1%} of the plain test digits, "
        f"{deformed:.1%} of {N_TEST:,} deformed ones (wanted >= 93 %)"
    )


if __name__ == "__main__":
    main()
