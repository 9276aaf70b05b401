import numpy as np
import pytest
from tests.methods.contract import MethodContract

from ilhash.diversity import seed_for
from ilhash.functions import TreeBooster
from ilhash.methods import FastHash
from ilhash.methods._ksh_loss import PairLoss, label_pairs


class TestFastHash(MethodContract):
    name = "FastHash"
    parameters = {"n_estimators": 3, "n_similar": 20, "n_dissimilar": 20}  # noqa: RUF012
    bits = 5
    other_bits = (1, 8)
    tolerance = 2e-2  # a split in a float32 tie may go another way


@pytest.fixture(scope="module")
def fitted(digits):
    X, y = digits[0][:600], digits[1][:600]
    return X, y, FastHash(n_bits=6, n_estimators=8, n_similar=30, n_dissimilar=30).fit(X, y)


def test_the_report_is_that_of_the_codes(fitted):
    """The loss of the trees' codes, pair by pair, from the same pairs."""
    X, y, model = fitted
    Z = np.where(model.decision_function(X) > 0, 1, -1)
    pairs = label_pairs((y[:, None] == np.arange(10)).astype(np.float32), 30, 30, seed_for(0, "graph")).tocoo()
    for k in (1, 3, 6):
        products = np.sum(Z[pairs.row, :k] * Z[pairs.col, :k], axis=1)
        assert model.report_["tree_loss"][k - 1] == pytest.approx(np.mean((products / k - pairs.data) ** 2))


def test_later_bits_lower_the_loss(fitted):
    report = fitted[2].report_
    assert report["tree_loss"][-1] < 0.8 * report["tree_loss"][0]
    assert min(report["accuracy"]) > 0.7


def test_functions_are_boosted_trees_fitted_to_the_cut(fitted):
    """Bit 0 again, from the pairs to the trees."""
    X, y, model = fitted
    assert model.functions_[0].kind == "trees"
    assert len(model.functions_[0].roots) == 8
    pairs = label_pairs((y[:, None] == np.arange(10)).astype(np.float32), 30, 30, seed_for(0, "graph"))
    loss = PairLoss(pairs, np.empty((600, 0), np.int8))
    z = loss.next_bit(np.ones(600, np.int8), 1, seed_for(0, "order", 0), 1000).z
    rows = (X - model.origin_).astype(np.float32)
    booster = TreeBooster(rows, n_trees=8, depth=4, learning_rate=0.2)
    again = booster.fit(z, seed_for(0, "classifier", 0))
    assert np.array_equal(again.margins, model.decision_function(X)[:, 0])
    assert model.report_["accuracy"][0] == ((again.margins > 0) == (z > 0)).mean()


def test_trees_are_no_deeper_than_said_and_add_as_much_as_said(digits):
    X, y = digits[0][:300], digits[1][:300]
    stumps, whole = (
        FastHash(n_bits=1, n_estimators=1, max_depth=1, learning_rate=rate).fit(X, y) for rate in (0.2, 1.0)
    )
    assert [len(model.functions_[0].value) for model in (stumps, whole)] == [3, 3]
    np.testing.assert_allclose(5 * stumps.functions_[0].value, whole.functions_[0].value)


def test_more_trees_follow_the_min_cut_more_closely(digits):
    X, y = digits[0][:600], digits[1][:600]
    accuracy = [np.mean(FastHash(n_bits=4, n_estimators=t).fit(X, y).report_["accuracy"]) for t in (1, 20)]
    assert accuracy[0] < accuracy[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be a whole number"),
        ({"max_depth": 0}, "max_depth must be a whole number"),
        ({"learning_rate": 0}, "learning_rate must be a positive number"),
    ],
)
def test_bad_parameters(digits, change, message):
    with pytest.raises(ValueError, match=message):
        FastHash(n_bits=2, **change).fit(*digits)
