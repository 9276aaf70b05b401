import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.contract import MethodContract

from ilhash.methods import ITQ, OrthogonalProjection
from ilhash.methods._orthogonal import project_to_corners


class TestOrthogonalProjection(MethodContract):
    name = "OrthogonalProjection"
    limit = 62
    reason = "directions? in which the 600 training points vary"


def objective(X, W):
    projected = X.astype(np.float64) @ W
    return np.sum((np.where(projected > 0, 1.0, -1.0) - projected) ** 2) / len(X)


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 40), st.integers(2, 9), st.integers(1, 9), st.integers(0, 10_000))
def test_the_objective_never_rises_is_what_it_says_and_rows_stay_orthonormal(n, d, b, seed):
    b = min(b, d)
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * rng.uniform(0.2, 3.0, d)).astype(np.float32)
    start = np.linalg.qr(rng.normal(size=(d, b)))[0]
    C = X.astype(np.float64).T @ X / n
    W, course = project_to_corners(X, start, C, 15)
    np.testing.assert_allclose(W.T @ W, np.eye(b), atol=1e-10)
    assert (np.diff(course) <= 1e-5 * course[0]).all()
    np.testing.assert_allclose(course[0], objective(X, start), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(course[-1], objective(X, W), rtol=1e-4, atol=1e-5)


def test_with_as_many_projections_as_features_and_white_data_it_is_itqs_rotation():
    """|X W| is constant there, so that each step must be the orthogonal Procrustes solution."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(200, 4)))[0] * np.sqrt(200)
    start = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    W, _ = project_to_corners(X.astype(np.float32), start, np.eye(4), 1)
    wanted = scipy.linalg.orthogonal_procrustes(X, np.where(X @ start > 0, 1.0, -1.0))[0]
    np.testing.assert_allclose(W, wanted, atol=1e-5)


@pytest.mark.parametrize("start", ["pca", "itq"])
def test_weights_are_orthonormal_and_better_than_the_start(digits, start):
    X = digits[0]
    model = OrthogonalProjection(n_bits=12, init=start).fit(X)
    W = np.stack([f.weights for f in model.functions_]).astype(np.float64)
    np.testing.assert_allclose(W @ W.T, np.eye(12), atol=1e-5)
    course = model.report_["objective"]
    assert len(course) == 51
    assert course[-1] < 0.98 * course[0]


def test_it_begins_where_itq_ends(digits):
    X = digits[0]
    wanted = ITQ(n_bits=12).fit(X).report_["loss"][-1]
    assert OrthogonalProjection(n_bits=12).fit(X).report_["objective"][0] == pytest.approx(wanted, rel=1e-4)


def test_bad_parameters(digits):
    with pytest.raises(ValueError, match="init must be one of 'itq', 'pca'"):
        OrthogonalProjection(n_bits=4, init="lsh").fit(digits[0])
    with pytest.raises(ValueError, match="max_iter must be a whole number"):
        OrthogonalProjection(n_bits=4, max_iter=0).fit(digits[0])
