"""The SVM on sparse rows against the dense one in double precision, which knows nothing clever."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from ilhash.functions import LearnerSettings, LinearLearner, _sparse_svm
from ilhash.functions._sparse_svm import _exact_step, fit_squared_hinge_sparse
from ilhash.functions._svm import fit_squared_hinge_float64, squared_hinge_objective
from ilhash.vectors import GatheredSparse, as_matrix, gather

TOLERANCE = 2e-5


def problem(seed, n, d, density):
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random_array((n, d), density=density, rng=rng, format="csr", data_sampler=rng.standard_normal)
    return scipy.sparse.csr_array(X), np.where(rng.random(n) < 0.4, 1.0, -1.0)


def with_ones(X):
    return np.column_stack([X.toarray(), np.ones(X.shape[0])])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 120),
    d=st.integers(1, 200),
    density=st.floats(0.02, 0.6),
    C=st.sampled_from([1e-6, 1e-3, 0.01, 1.0, 100.0]),
)
def test_the_minimum_is_that_of_the_dense_solver(seed, n, d, density, C):
    X, y = problem(seed, n, d, density)
    weights, bias, margins = fit_squared_hinge_sparse(X, y, C)
    np.testing.assert_allclose(margins, X @ weights + bias, atol=1e-9)
    dense = with_ones(X)
    ours = squared_hinge_objective(dense, y, np.append(weights, bias), C)
    wanted = squared_hinge_objective(dense, y, fit_squared_hinge_float64(dense, y, C), C)
    assert ours <= (1.0 + 2 * TOLERANCE) * wanted


def test_the_weights_are_those_of_liblinear():
    X, y = problem(1, 300, 80, 0.1)
    weights, bias, _ = fit_squared_hinge_sparse(X, y, 0.1, tolerance=1e-12)
    theirs = LinearSVC(C=0.1, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(weights, theirs.coef_[0], atol=1e-5)
    np.testing.assert_allclose(bias, theirs.intercept_[0], atol=1e-5)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), C=st.sampled_from([1e-3, 1.0, 1e3]))
def test_steps_are_exact(seed, n, C):
    rng = np.random.default_rng(seed)
    slack, moved = rng.normal(size=n).round(1), rng.normal(size=n).round(1)
    p_p = float(rng.uniform(0.1, 2.0))
    inside = slack > 0
    w_p = 2.0 * C * float(moved[inside] @ slack[inside]) - float(rng.uniform(0.01, 3.0))  # the slope at 0 is below 0

    def value(t):
        return t * w_p + 0.5 * t * t * p_p + C * (np.maximum(0.0, slack - t * moved) ** 2).sum()

    best = _exact_step(slack, moved, w_p, p_p, C)
    assert best > 0
    for t in [*np.linspace(0.0, 3.0 * best, 40), best * (1 - 1e-4), best * (1 + 1e-4)]:
        assert value(best) <= value(t) + 1e-9 * max(1.0, abs(value(t)))


@pytest.mark.parametrize("scaling", ["columns", "whole"])
@pytest.mark.parametrize("features", [None, np.array([1, 4, 5, 30], np.int32)])
def test_the_learner_scales_and_does_not_shift(scaling, features):
    X, y = problem(2, 200, 40, 0.2)
    X = X.tolil()
    X[:, 4] = 0.0  # a column that says nothing
    X = scipy.sparse.csr_array(X) + scipy.sparse.csr_array(np.eye(200, 40) * 3)
    rows = gather(as_matrix(X, sparse=True), np.arange(200), np.zeros(40, np.float32), features)
    assert isinstance(rows, GatheredSparse)
    fitted = LinearLearner(0.1, scaling).fit(rows, y.astype(np.int8), features, 0)
    dense = X.toarray()[:, slice(None) if features is None else features]
    spread = dense.std(axis=0)
    if scaling == "whole":
        spread = np.where(spread > 0, np.sqrt((spread[spread > 0] ** 2).mean()), 0.0)
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    twin = fit_squared_hinge_float64(np.column_stack([dense * factor, np.ones(200)]), y, 0.1)
    np.testing.assert_allclose(fitted.function.weights, twin[:-1] * factor, atol=5e-3 * np.abs(twin * 1.0).max())
    np.testing.assert_allclose(fitted.function.bias, twin[-1], atol=5e-3)
    np.testing.assert_allclose(fitted.margins, fitted.function.margins(as_matrix(X, sparse=True)), atol=1e-4)


def test_c_is_found_from_the_length_of_rows():
    X, y = problem(4, 150, 60, 0.2)
    rows = gather(as_matrix(X, sparse=True), np.arange(150), np.zeros(60, np.float32))
    found = LinearLearner.from_settings(LearnerSettings(scaling="whole")).fit(rows, y.astype(np.int8), None, 0)
    C = rows.variance.mean() / ((X.toarray() ** 2).sum() / 150)
    given = LinearLearner.from_settings(LearnerSettings(scaling="whole", C=C)).fit(rows, y.astype(np.int8), None, 0)
    np.testing.assert_allclose(found.margins, given.margins, atol=1e-3)
    assert (
        np.abs(LinearLearner(0.01, "whole").fit(rows, y.astype(np.int8), None, 0).margins - given.margins).max() > 0.01
    )


def test_a_solver_that_is_stopped_says_so(monkeypatch):
    monkeypatch.setattr(_sparse_svm, "_MAX_STEPS", 1)
    X, y = problem(3, 100, 50, 0.3)
    with pytest.warns(ConvergenceWarning, match="after 1 steps.*lower C"):
        fit_squared_hinge_sparse(X, y, 10.0)
