"""Checks after fit: they speak where a model is bad, are silent where it is good, and change nothing."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from ilhash import ILH, Mix, QualityWarning, datasets, methods

SMALL = {"n_bits": 32, "n_similar": 30, "n_dissimilar": 30}


def said(model, *data, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*data, **given)
    return [str(one.message) for one in caught if issubclass(one.category, QualityWarning)]


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("digits")
    return data.X, data.y


def random_pairs(y, n, seed=0):
    ij = np.random.default_rng(seed).integers(0, len(y), (n, 2))
    ij = np.unique(np.sort(ij[ij[:, 0] != ij[:, 1]], axis=1), axis=0)
    return ij, np.where(y[ij[:, 0]] == y[ij[:, 1]], 1.0, -1.0)


def test_codes_that_retrieve_worse_than_itq_are_named(digits):
    X, y = digits
    bad = said(ILH(start="random", n_train=100, **SMALL), X, pairs=random_pairs(y, 8000))
    assert any("retrieve worse than ITQ of the same length" in sentence for sentence in bad)
    bad = said(ILH(start="random", n_train=200, **SMALL), X, pairs=random_pairs(y, 1200))
    assert any("a judged point has" in sentence and "start='auto'" in sentence for sentence in bad)


def test_bits_that_are_the_same_or_cannot_be_learnt_are_named(digits):
    X, y = digits
    same = said(ILH(diversity="", **SMALL, block_order="fixed"), X, y)
    assert any("31 of 32 bits are nearly the same" in sentence for sentence in same)
    noise = np.random.default_rng(0).normal(size=(4000, 3))
    labels = np.random.default_rng(1).integers(0, 8, 4000)
    unlearnable = said(ILH(start="random", **SMALL), noise, labels)
    assert any("cannot be reproduced by their functions" in sentence for sentence in unlearnable)


def good_tasks(X, y):
    sets = [{int(label), "even" if label % 2 == 0 else "odd"} for label in y]
    few = np.where(np.random.default_rng(0).random(len(y)) < 0.2, y, -1)
    rare = np.where((y == 3) | (np.random.default_rng(0).random(len(y)) < 0.1))[0]
    return {
        "classes": ((X, y), {}),
        "random start": ((X, y), {}),
        "few labels": ((X, few), {}),
        "sets": ((X, sets), {}),
        "pairs": ((X,), {"pairs": random_pairs(y, 10_000)}),
        "one large class": ((np.repeat(X[rare], 4, axis=0), np.repeat(y[rare], 4)), {}),
        "none": ((X,), {}),
    }


@pytest.mark.parametrize("task", ["classes", "random start", "few labels", "sets", "pairs", "one large class", "none"])
@pytest.mark.parametrize("seed", [0, 1])
def test_they_are_silent_on_good_tasks(digits, task, seed):
    data, given = good_tasks(*digits)[task]
    start = "random" if task == "random start" else "auto"
    assert said(ILH(random_state=seed, start=start, **SMALL), *data, **given) == []


def test_they_change_no_byte_and_can_be_turned_off(digits):
    X, y = digits
    pairs = random_pairs(y, 8000)
    how = {"start": "random", "n_train": 100, **SMALL}
    with pytest.warns(QualityWarning):
        looked = ILH(**how).fit(X, pairs=pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        not_looked = ILH(**how).fit(X, pairs=pairs, check=False)
        Mix([ILH(**how)]).fit(X, pairs=pairs, check=False)
        methods.ITQ(n_bits=8).fit(X, check=True)
    assert looked.fingerprint() == not_looked.fingerprint()
    with pytest.warns(QualityWarning, match="ITQ"):
        Mix([ILH(**how)]).fit(X, pairs=pairs)


def test_small_models_are_not_looked_at():
    X = np.random.default_rng(0).normal(size=(100, 5))
    graph = scipy.sparse.csr_array(([1.0, 1.0, -1.0, -1.0], ([0, 1, 2, 3], [1, 0, 3, 2])), shape=(100, 100))
    assert said(ILH(n_bits=4), X, affinity=graph) == []
