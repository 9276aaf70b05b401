"""Any loss of Hamming distances is one quadratic form for a single bit; the paper's statements on it, checked."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import (
    all_assignments,
    consistent_distances,
    function_of_hamming_distances,
    quadratic_residual,
)

from ilhash import objective as ob

reals = st.floats(-1e6, 1e6, allow_nan=False)
affinities = st.lists(reals, min_size=1, max_size=20).map(lambda values: np.array(values))

# -------------------------------------------------------------------------------- coefficients


@settings(deadline=None, max_examples=50)
@given(affinities)
def test_laplacian_and_ksh_are_the_same_quadratic_form_for_real_affinities(y):
    assert np.array_equal(ob.coefficients("laplacian", y), -2.0 * y)
    assert np.allclose(ob.coefficients("ksh", y), -2.0 * y, rtol=0, atol=1e-15 * (1.0 + np.abs(y).max()) ** 2)


@settings(deadline=None, max_examples=50)
@given(affinities)
def test_bre_as_printed_has_the_coefficient_of_the_paper(y):
    a = ob.coefficients(ob.bre_as_printed, y)
    assert np.allclose(a, -4.0 * (2.0 - y), rtol=1e-9, atol=1e-9 * (1.0 + np.abs(y).max()) ** 2)


@settings(deadline=None, max_examples=50)
@given(affinities)
def test_supervised_bre_is_a_quarter_of_the_laplacian(y):
    a = ob.coefficients("bre", y)
    assert np.allclose(4.0 * a, ob.coefficients("laplacian", y), atol=1e-9 * (1.0 + np.abs(y).max()) ** 2)


@pytest.mark.parametrize("loss", [ob.laplacian, ob.ksh, ob.bre, ob.bre_as_printed, ob.minimal_loss(1.0, 0.7)])
@pytest.mark.parametrize("y", [-1.0, 1.0, 0.25, -3.5])
def test_a_loss_is_its_coefficient_times_the_product_of_the_bits_plus_a_constant(loss, y):
    y = np.array([y])
    a = ob.coefficients(loss, y)[0]
    constants = set()
    for first, second in itertools.product((-1, 1), repeat=2):
        value = float(np.asarray(loss(int(first != second), y)).ravel()[0])
        constants.add(round(value - a * first * second, 9))
    assert len(constants) == 1


@pytest.mark.parametrize(
    ("loss", "by_definition"),
    [
        (ob.laplacian, lambda a, b, y: y * (a - b) ** 2),
        (ob.ksh, lambda a, b, y: (a * b - y) ** 2),
        (ob.bre, lambda a, b, y: ((a != b) - (1 - y) / 2) ** 2),
        (ob.bre_as_printed, lambda a, b, y: ((a - b) ** 2 - y) ** 2),
    ],
    ids=["laplacian", "ksh", "bre", "bre_as_printed"],
)
def test_losses_are_those_of_the_paper_for_bits_of_minus_and_plus_one(loss, by_definition):
    for y in (-1.0, 0.0, 0.3, 1.0):
        for first, second in itertools.product((-1, 1), repeat=2):
            assert loss(int(first != second), np.array([y]))[0] == pytest.approx(by_definition(first, second, y))


# -------------------------------------------------------------------------------- quadratic or not


@pytest.mark.parametrize("n", [2, 3])
def test_every_function_of_hamming_distances_of_two_or_three_bits_is_quadratic(n):
    patterns = consistent_distances(n)
    assert len(patterns) == 2 ** (n - 1)
    for chosen in patterns:  # the indicators span all functions of the distances
        values = function_of_hamming_distances(n, lambda distances, chosen=chosen: float(distances == chosen))
        assert quadratic_residual(values, n) < 1e-12


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-100, 100), min_size=4, max_size=4))
def test_any_values_on_the_distances_of_three_bits_are_quadratic(values):
    table = dict(zip(consistent_distances(3), values, strict=True))
    assert quadratic_residual(function_of_hamming_distances(3, table.__getitem__), 3) < 1e-9


def test_some_function_of_hamming_distances_of_four_bits_is_not_quadratic():
    # The paper's count of dimensions proves this for more than five bits only, but states it for four.
    patterns = consistent_distances(4)
    assert len(patterns) == 8 < (16 + 4 + 2) // 2  # the count proves nothing for four
    found = []
    for chosen in itertools.product((0.0, 1.0), repeat=8):
        table = dict(zip(patterns, chosen, strict=True))
        if quadratic_residual(function_of_hamming_distances(4, table.__getitem__), 4) > 1e-6:
            found.append(table)
    assert found
    # The smallest witness by hand: 1 where all four bits are equal and 0 elsewhere.
    all_equal = {pattern: float(pattern == (0,) * 6) for pattern in patterns}
    assert all_equal in found
    # The obstacle is the product of all four bits: it depends on distances only and is orthogonal to quadratics.
    product = function_of_hamming_distances(4, lambda d: 1.0 if (d[0] + d[1] + d[2]) % 2 == 0 else -1.0)
    assert np.array_equal(product, all_assignments(4).prod(axis=1))
    assert quadratic_residual(product, 4) == pytest.approx(1.0)


# -------------------------------------------------------------------------------- the whole objective


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 15), st.floats(0.0, 1.0), st.integers(0, 2**32))
def test_the_laplacian_objective_is_the_quadratic_form_plus_a_constant(n, density, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < density, 1) * rng.standard_normal((n, n))
    Y = upper + upper.T
    A = scipy.sparse.csr_array(Y)
    A.data = ob.coefficients("laplacian", A.data)
    constants = []
    for _ in range(5):
        z = rng.choice([-1, 1], n)
        laplacian = sum(Y[i, j] * (z[i] - z[j]) ** 2 for i in range(n) for j in range(n))
        constants.append(laplacian - ob.energy(A, z))
    assert np.allclose(constants, 2.0 * Y.sum(), atol=1e-9)


def test_energy_of_dense_and_sparse_matrices_agree():
    rng = np.random.default_rng(0)
    A, z = rng.standard_normal((7, 7)), rng.choice([-1, 1], 7).astype(np.int8)
    by_hand = sum(A[i, j] * int(z[i]) * int(z[j]) for i in range(7) for j in range(7))
    assert ob.energy(A, z) == pytest.approx(by_hand)
    assert ob.energy(scipy.sparse.csr_array(A), z) == pytest.approx(by_hand)


# -------------------------------------------------------------------------------- minimal loss hashing


@pytest.mark.parametrize(("rho", "lam"), [(1.0, 1.0), (1.0, 0.3), (2.0, 1.0), (3.0, 2.5)])
def test_minimal_loss_hashing_is_not_constant_for_one_bit(rho, lam):
    loss, y = ob.minimal_loss(rho, lam), np.array([1.0, -1.0])
    similar, dissimilar = np.stack([loss(0, y), loss(1, y)], axis=1)
    assert dissimilar.tolist() == pytest.approx([lam * (rho + 1), lam * rho])  # appendix A says: constant
    assert similar.tolist() == pytest.approx([max(1 - rho, 0), max(2 - rho, 0)])
    a = ob.coefficients(loss, y)
    assert a[1] == pytest.approx(lam / 2)
    assert a[0] == pytest.approx(-0.5 if rho == 1 else 0.0)  # similar pairs are constant from rho = 2 on
    for pair in range(2):
        values = function_of_hamming_distances(2, lambda d, pair=pair: float(loss(d[0], y)[pair]))
        assert quadratic_residual(values, 2) < 1e-12


# -------------------------------------------------------------------------------- doors


def test_couplings_are_minus_the_coefficients():
    y = np.array([1.0, -1.0, 0.5])
    assert ob.couplings("laplacian", y).tolist() == [2.0, -2.0, 1.0]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0.0, 0.5), min_size=1, max_size=10))
def test_bre_as_printed_is_refused_because_no_pair_repels(values):
    assert (ob.coefficients(ob.bre_as_printed, np.array(values)) < 0).all()
    with pytest.raises(ValueError, match=r"some pairs repel each other.*constant code is the optimum.*BRE as printed"):
        ob.couplings(ob.bre_as_printed, np.array(values))


@pytest.mark.parametrize("name", ["laplacian", "ksh", "bre"])
def test_similar_pairs_alone_are_refused_with_the_way_out(name):
    with pytest.raises(ValueError, match=r"got none among 3 pairs.*give dissimilar pairs too"):
        ob.couplings(name, np.ones(3))


def test_a_constant_objective_is_refused():
    with pytest.raises(ValueError, match="some pairs repel"):
        ob.couplings(lambda distance, y: np.ones_like(y), np.array([1.0, -1.0]))


@pytest.mark.parametrize("name", ["laplacian", "ksh", "bre"])
def test_named_objectives_accept_similar_and_dissimilar_pairs(name):
    w = ob.couplings(name, np.array([1.0, -1.0]))
    assert w[0] > 0 > w[1]
    assert w[0] == -w[1]
    assert ob.resolve(name) is ob.OBJECTIVES[name]


def test_a_callable_objective_is_used_as_given():
    seen = []

    def loss(distance, y):
        seen.append(distance)
        return np.exp(distance * y)

    y = np.array([0.5, -0.5])
    assert ob.resolve(loss) is loss
    assert np.allclose(ob.coefficients(loss, y), (1.0 - np.exp(y)) / 2.0)
    assert sorted(seen) == [0, 1]


def test_a_callable_may_return_one_number_for_all_pairs():
    a = ob.coefficients(lambda distance, y: -3.0 * distance, np.zeros(4))
    assert a.tolist() == [1.5] * 4


@pytest.mark.parametrize("name", ["", "laplace", "BRE", "mlh"])
def test_an_unknown_name_is_refused_and_the_known_ones_are_named(name):
    with pytest.raises(ValueError, match=r"objective must be one of 'laplacian', 'ksh', 'bre' or a callable") as error:
        ob.coefficients(name, np.ones(1))
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_losses_that_are_not_finite_are_refused_and_counted(value):
    def loss(distance, y):
        return np.where(y > 0, value if distance else 0.0, distance)

    with pytest.raises(ValueError, match="finite losses, got 2 of 3 pairs"):
        ob.coefficients(loss, np.array([1.0, 1.0, -1.0]))


def test_affinities_are_not_written():
    y = np.array([1.0, -1.0])
    y.flags.writeable = False
    for name in ob.OBJECTIVES:
        ob.couplings(name, y)
    assert y.tolist() == [1.0, -1.0]
