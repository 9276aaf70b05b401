"""Orthogonality of codes and hash functions: section 4 and appendix B of the paper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ilhash
from ilhash import codes
from ilhash.evaluation import (
    code_dot_products,
    compare_with_random,
    kernel_dot_products,
    orthogonality,
    random_dot_products,
    weight_dot_products,
)

seeds = st.integers(0, 2**32 - 1)


@given(st.integers(1, 50), st.integers(1, 20), seeds)
@settings(deadline=None, max_examples=40)
def test_dot_products_of_codes(n, bits, seed):
    table = np.random.default_rng(seed).random((n, bits)) < 0.4
    Z = 2.0 * table - 1.0
    np.testing.assert_allclose(code_dot_products(codes.pack(table), bits), Z.T @ Z / n, rtol=1e-15)


def test_blocks_of_codes_add_up(monkeypatch):
    table = np.random.default_rng(0).random((100, 9)) < 0.4
    whole = code_dot_products(codes.pack(table), 9)
    monkeypatch.setattr("ilhash.evaluation._orthogonality._BLOCK_ROWS", 7)
    assert np.array_equal(code_dot_products(codes.pack(table), 9), whole)


@given(st.integers(2, 12), st.integers(1, 15), seeds)
@settings(deadline=None, max_examples=60)
def test_the_measure_ignores_signs(bits, d, seed):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], bits)
    W = rng.normal(size=(bits, d)) * rng.uniform(0.01, 100, (bits, 1))
    C, flipped = weight_dot_products(W), weight_dot_products(signs[:, None] * W)
    np.testing.assert_allclose(flipped, signs[:, None] * C * signs, atol=1e-15)
    assert orthogonality(flipped) == pytest.approx(orthogonality(C), rel=1e-12)
    table = rng.random((40, bits)) < 0.5
    C, flipped = (code_dot_products(codes.pack(t), bits) for t in (table, table ^ (signs < 0)))
    assert orthogonality(flipped) == pytest.approx(orthogonality(C), rel=1e-12)


@given(st.integers(2, 12), seeds)
@settings(deadline=None, max_examples=40)
def test_the_measure_is_the_papers_formula(bits, seed):
    C = weight_dot_products(np.random.default_rng(seed).normal(size=(bits, 6)))
    wanted = np.linalg.norm(np.eye(bits) - C, "fro") ** 2 / (bits * (bits - 1))
    assert orthogonality(C) == pytest.approx(wanted, rel=1e-12)
    assert 0.0 <= orthogonality(C) <= 1.0


def test_the_ends_of_the_measure():
    assert orthogonality(np.eye(5)) == 0.0
    same = np.repeat(np.arange(7)[:, None] % 2 == 0, 4, axis=1)
    same[:, 2] ^= True
    assert orthogonality(code_dot_products(codes.pack(same), 4)) == 1.0


def test_weights_of_any_scale_and_padded_features():
    W = np.array([[1e-200, 0.0, 1e-200], [0.0, 1e200, 1e200]])
    np.testing.assert_allclose(weight_dot_products(W), [[1.0, 0.5], [0.5, 1.0]], rtol=1e-12)


@given(st.integers(2, 5), st.integers(1, 6), seeds)
@settings(deadline=None, max_examples=40)
def test_kernel_functions_common_and_private(bits, m, seed):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(m, 3))
    A = rng.normal(size=(bits, m))
    width = float(rng.uniform(0.5, 4))
    K = np.exp(-((centers[:, None] - centers[None]) ** 2).sum(axis=2) / width)
    products = A @ K @ A.T
    norms = np.sqrt(np.diag(products))
    wanted = products / np.outer(norms, norms)
    common = kernel_dot_products(A, centers, width)
    np.testing.assert_allclose(common, wanted, atol=1e-9)
    # The same functions with private centres: each may keep them in its own order, or as another number of them.
    orders = [rng.permutation(m) for _ in range(bits)]
    coefficients = [np.append(a[order], 0.0) for a, order in zip(A, orders, strict=True)]
    private = [np.vstack([centers[order], rng.normal(size=(1, 3))]) for order in orders]
    np.testing.assert_allclose(kernel_dot_products(coefficients, private, width), common, atol=1e-9)


def test_kernel_dot_products_are_those_of_the_functions_in_feature_space():
    """One feature: exp(-(x-y)^2/s) has explicit features sqrt(2^k/(s^k k!)) x^k exp(-x^2/s); compare by those."""
    rng = np.random.default_rng(0)
    centers, A, s = rng.uniform(-1, 1, (4, 1)), rng.normal(size=(3, 4)), 1.5
    powers = np.arange(40)
    scale = np.sqrt(np.cumprod(np.append(1.0, 2.0 / s / powers[1:])))
    features = scale * centers**powers * np.exp(-(centers**2) / s)
    np.testing.assert_allclose(kernel_dot_products(A, centers, s), weight_dot_products(A @ features), atol=1e-9)


@pytest.mark.parametrize("kind", ["codes", "weights"])
def test_random_vectors_follow_the_theory(kind):
    """Mean 0 and variance 1/d: the mean of 19,900 entries has a standard error of a 141st of their deviation."""
    d = 400
    found = compare_with_random(random_dot_products(200, d, kind, seed=1), d, kind, seed=2)
    deviation = np.sqrt(found.theoretical_variance)
    assert found.theoretical_mean == 0.0
    assert found.theoretical_variance == 1 / d
    for mean, variance, measure in (
        (found.mean, found.variance, found.orthogonality),
        (found.random_mean, found.random_variance, found.random_orthogonality),
    ):
        assert abs(mean) < 5 * deviation / 141
        assert variance == pytest.approx(1 / d, rel=0.06)
        assert measure == pytest.approx(variance + mean**2)
    assert found.counts.sum() == found.random_counts.sum() == 200 * 199 / 2
    assert not np.array_equal(found.counts, found.random_counts)  # another seed


def test_random_codes_do_not_need_memory_for_all_points():
    assert random_dot_products(3, 100_000, "codes").shape == (3, 3)
    assert np.array_equal(random_dot_products(9, 50, "codes", 3), random_dot_products(9, 50, "codes", 3))


def test_histogram_counts_entries_above_the_diagonal():
    C = np.array([[1.0, -0.9, 0.1], [-0.9, 1.0, 1.0], [0.1, 1.0, 1.0]])
    found = compare_with_random(C, 10, "weights", bins=4)
    assert found.counts.tolist() == [1, 0, 1, 1]
    assert found.edges.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert found.orthogonality == pytest.approx((0.81 + 0.01 + 1.0) / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: orthogonality([[1.0]]), "at least 2 bits: orthogonality is undefined for fewer, got 1"),
        (lambda: orthogonality(np.ones((2, 3))), "square"),
        (lambda: orthogonality([[1.0, 0.5], [0.4, 1.0]]), "symmetric"),
        (lambda: orthogonality([[2.0, 0.5], [0.5, 1.0]]), "ones on its diagonal"),
        (lambda: orthogonality([[1.0, 1.5], [1.5, 1.0]]), "between -1 and 1, got 1.5"),
        (lambda: weight_dot_products(np.ones(3)), "2-D array, one row per bit"),
        (lambda: weight_dot_products([[1.0, 0.0], [0.0, 0.0]]), "all zero for a bit, got 1 of 2"),
        (lambda: weight_dot_products([[1.0, np.nan], [0.0, 1.0]]), "1 of 2 rows that hold NaN"),
        (lambda: code_dot_products(np.zeros((0, 1), np.uint8), 3), "must have rows"),
        (lambda: kernel_dot_products([[1.0, 2.0]], [[0.0]], 1.0), "one number per centre"),
        (lambda: kernel_dot_products([[0.0, 0.0]], [[0.0], [1.0]], 1.0), "all zero for a bit"),
        (lambda: kernel_dot_products([[1.0], [1.0]], [[[0.0]]], 1.0), "one array per function, got 1 for 2"),
        (lambda: kernel_dot_products([[np.nan]], [[0.0]], 1.0), "finite"),
        (lambda: kernel_dot_products([[1.0]], [[0.0]], 0.0), "width must be a positive number"),
        (lambda: random_dot_products(3, 0, "codes"), "dimension must be a whole number of at least 1"),
        (lambda: random_dot_products(3, 5, "margins"), "kind must be one of 'codes', 'weights'"),
        (lambda: compare_with_random([[1.0]], 5, "codes"), "undefined for fewer"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ------------------------------------------------------------------------------------ from models


@pytest.mark.parametrize("letters", ["t", "f"])
def test_weights_of_a_model_are_those_of_its_margins(blobs, letters):
    X, y = blobs
    model = ilhash.ILH(n_bits=6, diversity=letters, n_features=0.3, n_similar=20).fit(X, y)
    W = model.weights()
    assert W.shape == (6, X.shape[1])
    assert ((W != 0).sum(axis=1) <= (3 if letters == "f" else 10)).all()
    # Margins are linear: their differences between two vectors are the weights times the difference, without bias.
    change = model.decision_function(X[1:2]) - model.decision_function(X[:1])
    np.testing.assert_allclose(change[0], W @ (X[1] - X[0]), rtol=1e-3, atol=1e-3)
    assert 0.0 <= orthogonality(weight_dot_products(W)) <= 1.0


@pytest.mark.parametrize("centers", ["common", "private"])
def test_kernel_functions_of_a_model(blobs, centers):
    X, y = blobs
    model = ilhash.ILH(n_bits=5, hash_function="kernel", centers=centers, n_centers=20, n_similar=20).fit(X, y)
    coefficients, points, width = model.kernel_expansions()
    assert len(coefficients) == 5
    assert width > 0
    C = kernel_dot_products(coefficients, points, width)
    assert C.shape == (5, 5)
    assert np.linalg.eigvalsh(C).min() > -1e-9
    negated = kernel_dot_products([-np.asarray(a) for a in coefficients], points, width)
    np.testing.assert_allclose(C, negated)
    if centers == "common":
        basis = model.functions_[0].basis
        K = np.exp(-((basis.centers[:, None] - basis.centers[None]) ** 2).sum(axis=2) / basis.width)
        products = coefficients @ K @ coefficients.T
        wanted = products[0, 1] / np.sqrt(products[0, 0] * products[1, 1])
        assert C[0, 1] == pytest.approx(wanted, abs=1e-3)


def test_private_centres_under_one_kernel_stay_where_they_are(blobs):
    X, y = blobs
    model = ilhash.ILH(n_bits=3, hash_function="kernel", centers="private", n_centers=20, n_similar=20).fit(X, y)
    bases = [function.basis for function in model.functions_]
    _, points, width = model.kernel_expansions()
    factor = np.mean([basis.factor for basis in bases], axis=0)
    for basis, scaled in zip(bases, points, strict=True):
        np.testing.assert_allclose(scaled / factor, basis.centers / basis.factor, rtol=1e-5)
    assert width == pytest.approx(np.mean([basis.width for basis in bases]))


def test_functions_of_another_kind_have_no_weights(blobs):
    X, y = blobs
    mixed = ilhash.ILH(n_bits=2, hash_function=["linear", "kernel"], n_centers=10, n_similar=20).fit(X, y)
    with pytest.raises(ValueError, match="must be linear to have weights, got bit 1 of kind 'kernel'"):
        mixed.weights()
    with pytest.raises(ValueError, match="must be kernel functions, got bit 0 of kind 'linear'"):
        mixed.kernel_expansions()
    subsets = ilhash.ILH(n_bits=2, diversity="f", hash_function="kernel", n_centers=10, n_similar=20).fit(X, y)
    with pytest.raises(ValueError, match="same features to share a kernel"):
        subsets.kernel_expansions()
