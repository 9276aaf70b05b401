import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from tests.methods.contract import MethodContract

from ilhash.functions import LinearLearner
from ilhash.methods import BA, ITQ, TPCA
from ilhash.methods._ba import Decoder, _by_enumeration, best_codes
from ilhash.methods._signs import cyclic_descent


class TestBA(MethodContract):
    name = "BA"
    parameters = {"max_iter": 3}  # noqa: RUF012
    limit = 62
    reason = "directions? in which the 600 training points vary"
    tolerance = 2e-2  # SVMs to a tolerance, and then codes that depend on them


def cost(z, h, x, decoder, mu):
    """|x - f(z)|^2 + mu |z - h|^2 of one point, by definition."""
    return np.sum((x - z @ decoder.A - decoder.c) ** 2) + mu * np.sum((z - h) ** 2)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 5), st.floats(0, 3), st.integers(0, 10_000))
def test_the_z_step_is_the_best_of_all_codes(n, b, d, mu, seed):
    rng = np.random.default_rng(seed)
    decoder = Decoder(rng.normal(size=(b, d)).astype(np.float32), rng.normal(size=d).astype(np.float32))
    X, Z, H = rng.normal(size=(n, d)).astype(np.float32), *rng.choice(np.array([-1, 1], np.float32), (2, n, b))
    found = best_codes(Z, H, X, decoder, mu)
    everything = np.array(list(itertools.product([-1.0, 1.0], repeat=b)))
    for z, h, x in zip(found, H, X, strict=True):
        lowest = min(cost(other, h, x, decoder, mu) for other in everything)
        assert cost(z, h, x, decoder, mu) <= lowest + 1e-4 * (1 + lowest)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(2, 7), st.integers(0, 10_000))
def test_bit_by_bit_ends_where_no_flip_helps_and_never_above_the_start(n, b, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(b, 4)).astype(np.float32)
    G, pull = A @ A.T, rng.normal(size=(n, b)).astype(np.float32)
    start = rng.choice(np.array([-1, 1], np.float32), (n, b))

    def costs(Z):
        return np.einsum("nb,nb->n", Z @ G, Z) - 2 * np.einsum("nb,nb->n", pull, Z)

    Z = cyclic_descent(start, pull, G)
    assert (costs(Z) <= costs(start) + 1e-4).all()
    assert (costs(_by_enumeration(pull, G)) <= costs(Z) + 1e-4).all()
    for bit in range(b):
        flipped = Z.copy()
        flipped[:, bit] *= -1
        assert (costs(Z) <= costs(flipped) + 1e-4).all()


def test_the_decoder_is_scikit_learns_regression():
    rng = np.random.default_rng(0)
    Z, X = rng.choice(np.array([-1, 1], np.float32), (60, 5)), rng.normal(size=(60, 3)).astype(np.float32)
    decoder, twin = Decoder.fitted(Z, X), LinearRegression().fit(Z, X)
    np.testing.assert_allclose(decoder.A, twin.coef_.T, atol=1e-5)
    np.testing.assert_allclose(decoder.c, twin.intercept_, atol=1e-5)
    assert decoder.error(Z, X) == pytest.approx(np.mean(np.sum((X - twin.predict(Z)) ** 2, axis=1)), rel=1e-5)
    twice = Decoder.fitted(np.column_stack([Z, Z[:, 0], np.ones(60)]).astype(np.float32), X)  # dependent bits
    assert twice.error(np.column_stack([Z, Z[:, 0], np.ones(60)]).astype(np.float32), X) == pytest.approx(
        decoder.error(Z, X), rel=1e-4
    )


@pytest.mark.parametrize(("n_bits", "start"), [(6, "itq"), (12, "itq"), (12, "pca")])
def test_the_objective_never_rises_for_a_fixed_mu(digits, n_bits, start):
    model = BA(n_bits=n_bits, init=start, mu=0.1, growth=1.0, max_iter=5).fit(digits[0][:800])
    course = np.concatenate(model.report_["objective"])
    assert (np.diff(course) <= 1e-5 * course[0]).all()
    assert course[-1] < course[0]


def test_within_each_mu_it_never_rises_and_in_the_end_codes_are_outputs(digits):
    X = digits[0]
    model = BA(n_bits=10, max_iter=30).fit(X)
    assert all((np.diff(course) <= 1e-5 * course[0]).all() for course in model.report_["objective"])
    assert len(model.report_["objective"]) < 30  # stopped because all codes are what the functions put out
    last = model.report_["objective"][-1][-1]
    assert model.report_["error"][-1] == pytest.approx(last / X.shape[1], rel=1e-2)


def test_it_reconstructs_better_than_itq_and_pca(digits):
    X = digits[0].astype(np.float64)
    scaled = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0)[X.var(axis=0) > 0].mean())

    def error(model):
        Z = np.where(model.fit(X).decision_function(X) > 0, 1.0, -1.0)
        return np.mean((scaled - LinearRegression().fit(Z, scaled).predict(Z)) ** 2)

    own = BA(n_bits=16)
    assert error(own) == pytest.approx(own.report_["error"][-1], rel=1e-3)
    assert error(own) < min(error(ITQ(n_bits=16)), error(TPCA(n_bits=16)))


def test_functions_are_those_of_the_svm(digits, monkeypatch):
    """With one mu, a function is the SVM of its bit's codes in the Z-step, if that agrees with them no less often."""
    fitted = []
    fit = LinearLearner.fit

    def recorded(self, rows, z, features, seed):
        result = fit(self, rows, z, features, seed)
        fitted.append(result.function)
        return result

    monkeypatch.setattr(LinearLearner, "fit", recorded)
    model = BA(n_bits=9, max_iter=1).fit(digits[0][:500])
    assert all(any(function is known for known in fitted) for function in model.functions_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"init": "lsh"}, "init must be one of 'itq', 'pca'"),
        ({"mu": 0}, "mu must be a positive number"),
        ({"growth": 0.5}, "growth must be at least 1"),
        ({"C": -1}, "C must be a positive number"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
    ],
)
def test_bad_parameters(digits, change, message):
    with pytest.raises(ValueError, match=message):
        BA(n_bits=4, **change).fit(digits[0])
