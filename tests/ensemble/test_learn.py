"""Bits from a few judgements: they help where judgements say something, and there are none where they do not."""

import numpy as np
import pytest

import ilhash
from ilhash import ILH, Mix, learn, methods
from ilhash.affinity import Judged
from ilhash.evaluation import precision_at_k


def judgements(y, n, seed=0, wrong=0.0, near=None):
    """Pairs of random points, of the same coarse class if one is given, judged by their class."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, len(y), (12 * n, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    if near is not None:
        pairs = pairs[near[pairs[:, 0]] == near[pairs[:, 1]]]
    pairs = rng.permutation(pairs)[:n]
    same = (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ (rng.random(len(pairs)) < wrong)
    return np.column_stack([pairs, np.where(same, 1, -1)])


@pytest.fixture(scope="module")
def coarse(digits):
    X, y = digits
    return ILH(n_bits=32, n_similar=30).fit(X, y // 5)


def precision(model, X, y):
    codes = model.transform(X)
    return precision_at_k(codes[:1200], y[:1200], codes[1200:], y[1200:], k=10, n_bits=model.n_bits)


@pytest.mark.parametrize("n", [100, 300, 1000])
def test_judgements_help_though_a_tenth_is_wrong(digits, coarse, n):
    X, y = digits
    learning = learn(coarse, X, judgements(y, n, wrong=0.1, near=y // 5))
    assert precision(learning.model, X, y) >= precision(coarse, X, y) - 0.01
    if n == 1000:  # fewer cannot tell so much
        assert learning.better
        assert precision(learning.model, X, y) > precision(coarse, X, y) + 0.03
        assert learning.after > learning.before + learning.error


def test_the_bits_that_there_are_stay(digits, coarse):
    X, y = digits
    before = coarse.transform(X)
    learning = learn(coarse, X, judgements(y, 500, near=y // 5), name="of users")
    assert np.array_equal(coarse.transform(X), before)
    assert coarse.n_bits == 32
    assert np.array_equal(learning.model[:32].transform(X), before)
    assert learning.model.n_bits == 32 + learning.n_new
    assert {one.name for one in learning.model.provenance()[32:]} == {"of users"}
    assert learning.model.get_params() == {**coarse.get_params(), "n_bits": learning.model.n_bits}
    again = learn(coarse, X, judgements(y, 500, near=y // 5), name="of users")
    assert np.array_equal(again.model.transform(X), learning.model.transform(X))


@pytest.mark.parametrize("seed", range(5))
def test_judgements_that_mean_nothing_add_nothing_or_hurt_little(digits, seed):
    X, y = digits
    model = ILH(n_bits=32, n_similar=30).fit(X, y)
    pairs = judgements(np.random.default_rng(seed).integers(0, 3, len(y)), 300, seed)
    learning = learn(model, X, pairs, random_state=seed)
    assert precision(learning.model, X, y) >= precision(model, X, y) - 0.01


def test_too_few_judgements_are_said_to_be(digits, coarse):
    X, y = digits
    few = learn(coarse, X, judgements(y, 30))
    assert few.model is coarse
    assert not few.better
    assert "too few" in few.reason
    assert np.isnan(few.before)
    lopsided = judgements(y, 200)
    lopsided[3:, 2] = -1
    assert "too few" in learn(coarse, X, lopsided).reason


@pytest.mark.parametrize("queries", [1, 2, 3])
def test_all_judgements_may_be_of_a_few_queries(digits, coarse, queries):
    X, y = digits
    rng = np.random.default_rng(queries)
    pairs = np.column_stack([np.arange(60) % queries, rng.permutation(np.arange(10, len(y)))[:60]])
    same = np.isin(y[pairs], [0, 6, 8, 9]).sum(axis=1) != 1
    learning = learn(coarse, X, np.column_stack([pairs, np.where(same, 1, -1)]))
    assert learning.n_pairs == 60
    assert 0 <= learning.before <= 1


def test_similar_pairs_alone_are_judged_against_random_ones(digits, coarse):
    X, y = digits
    pairs = judgements(y, 4000, near=y // 5)
    learning = learn(coarse, X, pairs[pairs[:, 2] > 0])
    assert learning.better
    assert precision(learning.model, X, y) > precision(coarse, X, y) + 0.03


def test_any_model_learns_and_is_saved(tmp_path, digits):
    X, y = digits
    pairs = judgements(y, 400, near=y // 5)
    sign = ILH(n_bits=16, n_similar=30).fit(X, y // 5)
    for model in (methods.LSH(n_bits=8).fit(X), Mix.of([sign, methods.LSH(n_bits=8).fit(X)])):
        learning = learn(model, X, pairs, n_bits=8)
        assert learning.better
        learning.model.save(tmp_path / type(model).__name__)
        again = ilhash.load(tmp_path / type(model).__name__)
        assert again.provenance()[-1].name == "feedback"
        assert np.array_equal(again.transform(X), learning.model.transform(X))
        before = np.unpackbits(model.transform(X), axis=1)[:, : model.n_bits]
        assert np.array_equal(np.unpackbits(again.transform(X), axis=1)[:, : model.n_bits], before)


@pytest.mark.parametrize("view", ["within", "contrast"])
def test_judged_pairs_are_a_generation_like_any_other(tmp_path, digits, coarse, view):
    X, y = digits
    pairs = Judged(judgements(y, 200), view, 0.3)
    model = coarse[:].extend(8, X, pairs=pairs, check=False)
    assert np.array_equal(
        model.add_bits(8, X, pairs=pairs).transform(X), coarse[:].extend(16, X, pairs=pairs, check=False).transform(X)
    )
    model.save(tmp_path / "model")
    assert np.array_equal(ilhash.load(tmp_path / "model").transform(X), model.transform(X))
    with pytest.raises(ValueError, match="other data"):
        model.add_bits(8, X, pairs=Judged(judgements(y, 200), view, 0.4))


@pytest.mark.parametrize(
    "wrong", [{"view": "best"}, {"view": None}, {"shrinkage": 2.0}, {"shrinkage": "much"}], ids=str
)
def test_how_directions_are_made_is_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Judged([[0, 1, 1]], **wrong)
