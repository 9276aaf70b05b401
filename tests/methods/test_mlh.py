import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.contract import MethodContract

from ilhash.methods import LSH, MLH
from ilhash.methods._mlh import _Pairs, loss_adjusted, pair_losses
from ilhash.objective import minimal_loss


class TestMLH(MethodContract):
    name = "MLH"
    parameters = {"max_iter": 100}  # noqa: RUF012
    tolerance = 2e-2  # hundreds of steps in single precision


def test_losses_are_those_of_the_objective_room():
    similar = np.array([True, False])
    for rho, lam in ((1.0, 1.0), (2.0, 0.5), (3.5, 2.0)):
        table = pair_losses(similar, 6, rho, lam)
        for distance in range(7):
            wanted = minimal_loss(rho, lam)(distance, np.array([1.0, -1.0]))
            np.testing.assert_allclose(table[:, distance], wanted)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.floats(0.5, 4), st.floats(0.1, 3), st.booleans(), st.integers(0, 10_000))
def test_loss_adjusted_inference_is_the_best_of_all_pairs_of_codes(b, rho, lam, similar, seed):
    rng = np.random.default_rng(seed)
    a, c = rng.normal(size=(2, 1, b)).astype(np.float32)
    losses = pair_losses(np.array([similar]), b, rho, lam)
    g, k, best = loss_adjusted(a, c, losses)

    def value(g, k):
        return losses[0, np.count_nonzero(g != k)] + g @ a[0] + k @ c[0]

    codes = [np.array(code) for code in itertools.product([-1.0, 1.0], repeat=b)]
    wanted = max(value(x, z) for x in codes for z in codes)
    assert value(g[0], k[0]) == pytest.approx(wanted, abs=1e-4)
    assert best[0] == pytest.approx(wanted, abs=1e-4)
    h, h2 = np.sign(a[0]), np.sign(c[0])
    assert best[0] - h @ a[0] - h2 @ c[0] >= losses[0, np.count_nonzero(h != h2)] - 1e-4  # the bound


def test_the_step_is_a_subgradient_of_the_bound():
    """A small step against (g - h) x' + (k - h') x'' lowers the bound of a pair by its squared length."""
    rng = np.random.default_rng(0)
    x, x2, W = rng.normal(size=(1, 6)), rng.normal(size=(1, 6)), rng.normal(size=(6, 8))
    losses = pair_losses(np.array([False]), 8, 6.0, 1.0)

    def bound(W):
        a, c = x @ W, x2 @ W
        return float(loss_adjusted(a, c, losses)[2][0] - np.abs(a).sum() - np.abs(c).sum())

    g, k, _ = loss_adjusted(x @ W, x2 @ W, losses)
    gradient = x.T @ (g - np.sign(x @ W)) + x2.T @ (k - np.sign(x2 @ W))
    assert np.any(gradient)
    step = 1e-5
    assert bound(W - step * gradient) == pytest.approx(bound(W) - step * np.sum(gradient**2), abs=1e-6)


def test_pairs_are_what_they_are_called_and_half_of_them_similar():
    rng = np.random.default_rng(0)
    labels = (rng.random((50, 6)) < 0.2).astype(np.float32)
    labels[np.arange(50), rng.integers(0, 6, 50)] = 1
    first, second, similar = _Pairs(labels).draw(4000, rng)
    assert (((labels[first] * labels[second]).sum(axis=1) > 0) == similar).all()
    assert similar[:2000].all()
    assert len(np.unique(first)) == len(np.unique(second)) == 50


def test_bound_and_loss_fall_and_the_bound_lies_above(digits):
    report = MLH(n_bits=16, max_iter=1500).fit(*digits).report_
    assert len(report["bound"]) == len(report["loss"]) == 10
    assert (np.array(report["bound"]) >= np.array(report["loss"]) - 1e-6).all()
    assert report["bound"][-1] < 0.7 * report["bound"][0]
    assert report["loss"][-1] < 0.8 * report["loss"][0]


def test_points_of_a_label_come_closer_than_by_random_projections(digits):
    X, y = digits
    same = y[1000:, None] == y[1000:]

    def ratio(model):
        bits = model.fit(X[:1000], y[:1000]).decision_function(X[1000:]) > 0
        distance = (bits[:, None] != bits[None]).sum(axis=2)
        return distance[same].mean() / distance[~same].mean()

    assert ratio(MLH(n_bits=16, max_iter=1500)) < 0.7 * ratio(LSH(n_bits=16))


@pytest.mark.parametrize("name", ["rho", "lam", "learning_rate", "alpha"])
def test_bad_numbers(digits, name):
    with pytest.raises(ValueError, match=f"{name} must be a positive number"):
        MLH(n_bits=4, **{name: -1}).fit(*digits)


@pytest.mark.parametrize("name", ["max_iter", "batch_size"])
def test_bad_counts(digits, name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        MLH(n_bits=4, **{name: 0}).fit(*digits)
