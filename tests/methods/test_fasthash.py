import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from tests.methods.contract import MethodContract

from ilhash.diversity import seed_for
from ilhash.methods import FastHash
from ilhash.methods._ksh_loss import label_pairs


class TestFastHash(MethodContract):
    name = "FastHash"
    parameters = {"n_trees": 3, "n_similar": 20, "n_dissimilar": 20}  # noqa: RUF012
    bits = 5
    other_bits = (1, 8)
    tolerance = 2e-2  # a split in a float32 tie may go another way


@pytest.fixture(scope="module")
def fitted(digits):
    X, y = digits[0][:600], digits[1][:600]
    return X, y, FastHash(n_bits=6, n_trees=8, n_similar=30, n_dissimilar=30).fit(X, y)


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


def test_functions_are_scikit_learns_boosted_trees(fitted):
    X, _, model = fitted
    z = model.decision_function(X)[:, 0] > 0
    twin = GradientBoostingClassifier(n_estimators=8, max_depth=4, learning_rate=0.2, max_features="sqrt")
    assert model.functions_[0].kind == "trees"
    assert len(model.functions_[0].roots) == 8
    assert (twin.fit(X, z).predict(X) == z).mean() > 0.9  # as learnable for the library's own class


def test_more_trees_follow_the_min_cut_more_closely(digits):
    X, y = digits[0][:600], digits[1][:600]
    accuracy = [np.mean(FastHash(n_bits=4, n_trees=t).fit(X, y).report_["accuracy"]) for t in (1, 20)]
    assert accuracy[0] < accuracy[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_trees": 0}, "n_trees must be a whole number"),
        ({"depth": 0}, "depth must be a whole number"),
        ({"learning_rate": 0}, "learning_rate must be a positive number"),
    ],
)
def test_bad_parameters(digits, change, message):
    with pytest.raises(ValueError, match=message):
        FastHash(n_bits=2, **change).fit(*digits)
