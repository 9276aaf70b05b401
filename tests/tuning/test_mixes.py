"""Bits chosen one by one are those of brute force, and count only where points that did not choose them agree."""

import numpy as np
import pytest

from ilhash.affinity import supervision_from_labels
from ilhash.methods import LSH
from ilhash.tuning import _mixes
from ilhash.tuning._course import Budget, Course
from ilhash.tuning._mixes import _greedy, try_best_bits
from ilhash.tuning._parts import parts_of
from ilhash.tuning._trials import Bench


def precision_with(bits, labels, k):
    """Return tie-aware precision@k of every point among all, itself included."""
    distances = (bits[:, None] != bits[None, :]).sum(axis=2)
    relevant = labels[:, None] == labels
    edge = np.sort(distances, axis=1)[:, [k - 1]]
    before, tied = distances < edge, distances == edge
    shares = (k - before.sum(axis=1)) / tied.sum(axis=1)
    return (((relevant & before).sum(axis=1) + (relevant & tied).sum(axis=1) * shares) / k).mean()


def test_each_bit_is_the_best_with_those_before():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    bits = (rng.random((60, 12)) < 0.5) ^ (labels[:, None] % 2 == 1) & (rng.random((60, 12)) < 0.7)
    supervision = supervision_from_labels(np.tile(labels, 16), 960, -1)
    retrieval = parts_of(np.zeros((960, 1)), supervision, 80, base="new", unseen=0.0, seed=0).choosing["new"]
    own = supervision.codes[retrieval.rows]
    own_bits = bits[retrieval.rows % 60]
    half = len(own) // 2
    chosen = _greedy(own_bits[:half], retrieval, half, 4, 1)
    k = retrieval.k // 2 + 1
    found = []
    for _ in range(4):
        scores = [
            -1.0 if bit in found else precision_with(own_bits[:half][:, [*found, bit]], own[:half], k)
            for bit in range(12)
        ]
        found.append(int(np.argmax(scores)))
    assert chosen == found


@pytest.fixture
def course(monkeypatch):
    """Return a course with two families of random bits, of which few know anything of the classes."""
    monkeypatch.setattr(_mixes, "QUERIES", 100)
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 2_400)
    X = rng.normal(size=(2_400, 10)).astype(np.float32)
    X[:, :2] += 6 * np.stack([y % 2, y // 2], axis=1)
    X[:, 2:] *= 4
    parts = parts_of(X, supervision_from_labels(y, len(y), -1), 80, base="new", unseen=0.0, seed=0)
    bench = Bench(X, parts, 16, 1)
    for seed in range(2):
        model = LSH(16, random_state=seed).fit(parts.X)
        bits = {"new": model.decision_function(X[parts.choosing["new"].rows]) > 0}
        bench.keep(f"LSH {seed}", model, bits, 1.0, 1.0, ((f"LSH {seed}", 16),))
    return Course(bench, Budget(1e6, 1), 16, None, lambda now: None)


def test_the_best_bits_of_two_families_are_better_than_either(course):
    before = max(trial.score for trial in course.bench.trials)
    trial = try_best_bits(course)
    assert trial.n_bits == 16
    assert trial.score > before
    assert trial.name == "the best 16 of 32 bits of LSH 1, LSH 0" or trial.name.endswith("LSH 0, LSH 1")
    report = course.bench.report(trial.model)["new"].mean()
    assert report > max(course.bench.report(one.model)["new"].mean() for one in course.bench.trials[:2])


def test_bits_that_are_no_better_are_not_taken(course, monkeypatch):
    monkeypatch.setattr(_mixes, "_greedy", lambda *_: list(range(16)))  # those of one family
    best = max(course.bench.trials, key=lambda trial: trial.score)
    course.bench.trials.sort(key=lambda trial: -trial.score)
    assert try_best_bits(course) is None
    assert max(course.bench.trials, key=lambda trial: trial.score) is best
