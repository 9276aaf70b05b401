import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from tests.methods.contract import MethodContract

from ilhash.methods import SDH
from ilhash.methods._sdh import _ridge, cyclic_descent


class TestSDH(MethodContract):
    name = "SDH"
    parameters = {"n_centers": 60}  # noqa: RUF012
    tolerance = 1e-2


def part_of_the_objective(B, Q, W):
    """|B W|^2 - 2 tr(B'Q), by definition."""
    return np.sum((B @ W) ** 2) - 2.0 * np.sum(B * Q)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 7), st.integers(1, 4), st.integers(0, 10_000))
def test_no_flip_of_any_bit_lowers_the_objective(n, b, n_labels, seed):
    rng = np.random.default_rng(seed)
    W, Q, start = rng.normal(size=(b, n_labels)), rng.normal(size=(n, b)), rng.choice([-1.0, 1.0], (n, b))
    B = cyclic_descent(start, Q, W @ W.T)
    lowest = part_of_the_objective(B, Q, W)
    assert lowest <= part_of_the_objective(start, Q, W) + 1e-9
    for i, j in itertools.product(range(n), range(b)):
        flipped = B.copy()
        flipped[i, j] *= -1
        assert lowest <= part_of_the_objective(flipped, Q, W) + 1e-9


def test_one_bit_is_the_best_of_all_codes():
    rng = np.random.default_rng(0)
    W, Q = rng.normal(size=(1, 3)), rng.normal(size=(6, 1))
    B = cyclic_descent(np.ones((6, 1)), Q, W @ W.T)
    everything = (np.array(bits)[:, None] for bits in itertools.product([-1.0, 1.0], repeat=6))
    assert part_of_the_objective(B, Q, W) == pytest.approx(min(part_of_the_objective(C, Q, W) for C in everything))


def test_regressions_are_scikit_learns():
    rng = np.random.default_rng(0)
    A, target = rng.normal(size=(40, 5)), rng.normal(size=(40, 3))
    np.testing.assert_allclose(_ridge(A, target, 0.7), Ridge(0.7, fit_intercept=False).fit(A, target).coef_.T)


def test_the_objective_never_rises(digits):
    for nu in (1e-5, 1e-2, 1.0):
        course = np.array(SDH(n_bits=12, n_centers=100, nu=nu, max_iter=8).fit(*digits).report_["objective"])
        assert (np.diff(course) <= 1e-9 * course[0]).all()
        assert course[-1] < 0.9 * course[0]


def test_points_of_a_label_are_close_in_hamming_distance(digits):
    X, y = digits
    train, rest = np.arange(1000), np.arange(1000, len(X))
    bits = SDH(n_bits=16, n_centers=200).fit(X[train], y[train]).decision_function(X[rest]) > 0
    distance = (bits[:, None] != bits[None]).sum(axis=2)
    same = y[rest][:, None] == y[rest]
    assert distance[same].mean() < 0.3 * distance[~same].mean()


@pytest.mark.parametrize("name", ["lam", "nu", "ridge"])
def test_bad_weights(digits, name):
    with pytest.raises(ValueError, match=f"{name} must be a positive number"):
        SDH(n_bits=4, **{name: 0.0}).fit(*digits)
