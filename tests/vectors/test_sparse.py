"""Sparse vectors: taken by rows, checked, identified, and their principal directions without a dense copy."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from ilhash.functions import scaling_for
from ilhash.vectors import (
    SparseRows,
    as_matrix,
    blocks,
    fingerprint,
    gather,
    nearest_other_rows,
    principal_of_sparse,
    projected_on,
    relative,
)
from ilhash.vectors import _sparse as sparse

ORIGIN = np.zeros(30, np.float32)


@pytest.fixture
def matrix():
    rng = np.random.default_rng(0)
    return scipy.sparse.csr_array(scipy.sparse.random_array((60, 30), density=0.2, rng=rng, format="csr"))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("of", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_any_format_becomes_the_same_rows(matrix, kind, of):
    rows = as_matrix(of(matrix).asformat(kind), sparse=True)
    assert isinstance(rows, SparseRows)
    assert (len(rows), rows.shape, rows.dtype) == (60, (60, 30), np.float64)
    assert_array_equal(rows.matrix.toarray(), matrix.toarray())
    assert fingerprint(rows) == fingerprint(as_matrix(matrix, sparse=True))
    assert_array_equal(rows[np.array([5, 3, 5])].dense(), matrix.toarray()[[5, 3, 5]].astype(np.float32))
    assert_array_equal(np.concatenate([part.dense() for part in blocks(rows, 7)]), rows.dense())


def test_repeated_and_unsorted_entries_are_put_in_order_in_a_copy():
    given = scipy.sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    rows = as_matrix(given, sparse=True)
    assert_array_equal(rows.dense(), [[2.0, 0.0, 5.0]])
    assert_array_equal(given.indices, [2, 0, 2])
    assert_array_equal(given.data, [1.0, 2.0, 4.0])


def test_a_matrix_in_good_order_is_not_copied(matrix):
    assert np.shares_memory(as_matrix(matrix, sparse=True).matrix.data, matrix.data)


def test_fingerprints_see_values_places_and_shape(matrix):
    first = fingerprint(as_matrix(matrix, sparse=True))
    other = matrix.copy()
    other.data[0] += 1.0
    moved = scipy.sparse.csr_array((matrix.data, (matrix.indices + 1) % 30, matrix.indptr), shape=matrix.shape)
    wider = scipy.sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(60, 31))
    prints = {fingerprint(as_matrix(one, sparse=True)) for one in (other, moved, wider, matrix.astype(np.float32))}
    assert len(prints | {first}) == 5


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (scipy.sparse.csr_array((0, 3)), "0 sample"),
        (scipy.sparse.csr_array((3, 0)), "0 feature"),
        (scipy.sparse.csr_array((2, 2), dtype=complex), "Complex data not supported"),
        (scipy.sparse.csr_array((2, 2**24 + 1)), "at most 16777216 columns, got 16777217"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_matrix(X, sparse=True)


def test_indices_beyond_the_matrix_are_refused(matrix):
    matrix.indices[3] = 77
    with pytest.raises(ValueError, match="X must be a sparse matrix whose indices lie within it"):
        as_matrix(matrix, sparse=True)


def test_what_needs_an_array_names_the_way_out(matrix):
    with pytest.raises(TypeError, match=r"queries must be a dense array here, got a sparse matrix .*TruncatedSVD"):
        as_matrix(matrix, "queries")
    with pytest.raises(TypeError, match="TruncatedSVD"):
        np.asarray(as_matrix(matrix, sparse=True))


def test_gathered_rows_are_measured_with_their_zeros(matrix):
    rows = np.array([4, 9, 9, 50])
    for features in (None, np.array([0, 7, 29], np.int32)):
        dense = matrix.toarray().astype(np.float32)[rows][:, slice(None) if features is None else features]
        found = gather(as_matrix(matrix, sparse=True), rows, ORIGIN, features)
        assert_array_equal(found.values.dense(), dense)
        assert_allclose(found.mean, dense.mean(axis=0), atol=1e-7)
        assert_allclose(found.variance, dense.var(axis=0, dtype=np.float64), atol=1e-7)
        assert_allclose(found.ranges(), np.abs(dense - dense.mean(axis=0)).max(axis=0), atol=1e-6)
        assert_allclose(found.take(np.array([2, 0])).mean, dense[[2, 0]].mean(axis=0), atol=1e-7)


def test_scaling_is_chosen_as_for_dense_vectors():
    rng = np.random.default_rng(1)
    words = (rng.random((1000, 50)) < 0.005) * rng.random((1000, 50))
    usual = (rng.random((1000, 50)) < 0.6) * rng.random((1000, 50))
    everything, origin = np.arange(1000), np.zeros(50, np.float32)
    for X, wanted in ((words, "whole"), (usual, "columns")):
        dense = gather(X, everything, origin)
        own = gather(as_matrix(scipy.sparse.csr_array(X), sparse=True), everything, origin)
        assert scaling_for(own) == scaling_for(dense) == wanted


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "1 of 60 rows that hold NaN"), (np.inf, "infinity"), (1e39, "too large for float32")],
)
def test_what_is_not_finite_is_counted(matrix, value, message):
    matrix.data[5] = value
    with pytest.raises(ValueError, match=message):
        relative(as_matrix(matrix, sparse=True), ORIGIN)


@pytest.mark.parametrize(("scale", "message"), [(1e19, "beyond 1e18"), (1e-17, "none beyond 1e-15")])
def test_squares_must_fit_single_precision(matrix, scale, message):
    with pytest.raises(ValueError, match=message):
        gather(as_matrix(matrix * scale, sparse=True), np.arange(60), ORIGIN)


def test_nothing_is_subtracted_from_sparse_rows(matrix):
    rows = as_matrix(matrix, sparse=True)
    assert_array_equal(relative(rows, ORIGIN).dense(), matrix.toarray().astype(np.float32))
    with pytest.raises(ValueError, match="trained on dense vectors, got a sparse matrix"):
        relative(rows, ORIGIN + 1)


@pytest.mark.parametrize("n", [60, 7])
def test_nearest_rows_are_those_of_the_dense_ones(matrix, n, monkeypatch):
    rows = as_matrix(matrix[:n], sparse=True)[:, :]
    wanted = nearest_other_rows(rows.dense(), 5)
    assert_array_equal(nearest_other_rows(rows.as_float32("X"), 5), wanted)


@pytest.mark.parametrize(("n", "d", "k"), [(300, 80, 6), (50, 400, 10), (40, 12, 12)])
def test_principal_directions_are_those_of_the_covariance(n, d, k):
    rng = np.random.default_rng(2)
    X = scipy.sparse.random_array((n, d), density=0.2, rng=rng, format="csr") @ scipy.sparse.diags_array(
        1.5 ** -np.arange(float(d))
    )
    rows = as_matrix(X, sparse=True).as_float32("X")
    mean = rows.dense().mean(axis=0)
    variances, axes = principal_of_sparse(rows, mean, k, 0)
    covariance = np.cov(rows.dense().T.astype(np.float64), bias=True)
    wanted = np.linalg.eigvalsh(covariance)[::-1][: len(variances)]
    assert_allclose(variances, wanted, rtol=1e-3)
    assert_allclose(axes.T @ axes, np.eye(len(variances)), atol=2e-3)
    assert_allclose(np.diag(axes.T @ covariance @ axes), wanted, rtol=2e-3)
    assert_allclose(projected_on(rows, mean, axes), (rows.dense() - mean) @ axes, atol=1e-6)


def test_directions_that_do_not_vary_are_none():
    X = np.zeros((50, 20), np.float32)
    X[:, 3] = np.arange(50) % 3
    rows = as_matrix(scipy.sparse.csr_array(X), sparse=True)
    variances, axes = principal_of_sparse(rows, X.mean(axis=0), 10, 0)
    assert axes.shape == (20, 1)
    assert_allclose(variances, X[:, 3].var(), rtol=1e-5)
    constant = as_matrix(scipy.sparse.csr_array(np.ones((9, 4), np.float32)), sparse=True)
    assert len(principal_of_sparse(constant, np.ones(4, np.float32), 3, 0)[0]) == 0


def test_the_same_seed_gives_the_same_directions(matrix):
    rows = as_matrix(matrix, sparse=True).as_float32("X")
    first, again = (principal_of_sparse(rows, ORIGIN, 5, 7)[1] for _ in range(2))
    assert_array_equal(first, again)
    assert sparse.OVERSAMPLED + 5 > 30  # as many as there are columns: exact
