import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.contract import MethodContract

from ilhash.diversity import seed_for
from ilhash.methods import ITQ, TPCA
from ilhash.rotations import random_rotation, rotate_to_corners


class TestITQ(MethodContract):
    name = "ITQ"
    limit = 62
    reason = "directions? in which the 600 training points vary"


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 60), st.integers(1, 9), st.integers(0, 10_000))
def test_the_loss_never_rises_and_is_what_it_says(n, b, seed):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, b)).astype(np.float32)
    V64 = V.astype(np.float64)
    R, losses = rotate_to_corners(V, random_rotation(b, rng), 12)
    np.testing.assert_allclose(R.T @ R, np.eye(b), atol=1e-10)
    assert (np.diff(losses) <= 1e-5 * losses[0]).all()
    B = np.where(V64 @ R > 0, 1.0, -1.0)
    np.testing.assert_allclose(losses[-1], np.sum((B - V64 @ R) ** 2) / n, rtol=1e-4)


def test_directions_are_orthogonal_and_span_the_principal_axes(digits):
    X = digits[0]
    W = np.stack([f.weights for f in ITQ(n_bits=12).fit(X).functions_]).astype(np.float64)
    axes = np.stack([f.weights for f in TPCA(n_bits=12).fit(X).functions_]).astype(np.float64)
    gram = W @ W.T
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(12), atol=1e-5 * gram[0, 0])
    np.testing.assert_allclose(W @ axes.T @ axes, W, atol=1e-5)


def test_the_loss_ends_below_that_of_thresholded_pca(digits):
    X = digits[0].astype(np.float64)
    margins = TPCA(n_bits=24).fit(X).decision_function(X)
    V = margins / np.sqrt((margins**2).mean())
    model = ITQ(n_bits=24).fit(X)
    assert model.report_["loss"][-1] < 0.9 * np.sum((np.sign(V) - V) ** 2) / len(V)
    assert len(model.report_["loss"]) == 51


def test_the_slow_twin_finds_the_same_codes(digits):
    """Alternation written out with NumPy in double precision, from the same axes and first rotation."""
    X = digits[0][:500].astype(np.float64)
    V = (X - X.mean(axis=0)) @ np.stack([f.weights for f in TPCA(n_bits=8).fit(X).functions_]).T
    R = random_rotation(8, np.random.default_rng(seed_for(0, "start")))
    for _ in range(5):
        left, _, back = np.linalg.svd(V.T @ np.where(V @ R > 0, 1.0, -1.0))
        R = left @ back
    wanted, got = V @ R, ITQ(n_bits=8, max_iter=5).fit(X).decision_function(X)
    assert (((got > 0) == (wanted > 0)) | (np.abs(wanted) < 1e-3)).all()


def test_iterations_must_be_a_number(digits):
    with pytest.raises(ValueError, match="max_iter must be a whole number"):
        ITQ(n_bits=4, max_iter=0).fit(digits[0])
