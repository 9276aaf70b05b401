import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tests.methods.contract import MethodContract
from tests.oracles import all_assignments

import ilhash
from ilhash import _core, codes
from ilhash.diversity import seed_for
from ilhash.graph import coupling_graph
from ilhash.methods import KSHcut
from ilhash.methods._ksh_loss import PairLoss, label_pairs
from ilhash.methods._kshcut import cut_codes, flip_some
from ilhash.zstep import minimize


class TestKSHcut(MethodContract):
    name = "KSHcut"
    parameters = {"n_similar": 20, "n_dissimilar": 20}  # noqa: RUF012


def random_pairs(n, rng):
    """A symmetric matrix of +1, -1 and 0."""
    upper = np.triu(rng.integers(-1, 2, (n, n)), 1)
    return upper + upper.T


def loss_by_definition(y, Z):
    """sum over pairs of (z_n'z_m - b y)^2, pair by pair."""
    b = Z.shape[1]
    return sum(
        (int(Z[n].astype(int) @ Z[m].astype(int)) - b * y[n, m]) ** 2
        for n in range(len(y))
        for m in range(len(y))
        if y[n, m]
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 9), st.integers(1, 5), st.integers(0, 10_000))
def test_the_loss_never_rises_and_is_what_it_says(n, b, seed):
    rng = np.random.default_rng(seed)
    y = random_pairs(n, rng)
    pairs = np.count_nonzero(y)
    if pairs == 0:
        return
    start = rng.choice(np.array([-1, 1], np.int8), (n, b))
    Z, course = cut_codes(scipy.sparse.csr_array(y.astype(float)), start, max_iter=3, seed=seed)
    assert (np.diff(course) <= 1e-12).all()
    np.testing.assert_allclose(course[0], loss_by_definition(y, start) / pairs / b**2)
    np.testing.assert_allclose(course[-1], loss_by_definition(y, Z) / pairs / b**2)


def cut_codes_by_definition(y, start, max_iter, seed):
    """The same course with a new graph of real couplings for every bit."""
    Z, b = start.copy(), start.shape[1]
    course = [loss_by_definition(y, Z) / np.count_nonzero(y) / b**2]
    for turn in range(max_iter):
        for bit in range(b):
            others = np.delete(Z, bit, axis=1).astype(float)
            graph = coupling_graph(scipy.sparse.csr_array(np.where(y, b * y - others @ others.T, 0.0)))
            Z[:, bit] = minimize(graph, Z[:, bit].copy(), seed=seed_for(seed, "order", bit, turn)).z
            course.append(loss_by_definition(y, Z) / np.count_nonzero(y) / b**2)
    return Z, course


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 24), st.integers(1, 6), st.integers(1, 2), st.booleans(), st.integers(0, 10_000))
def test_codes_are_those_of_new_graphs_for_every_bit(n, b, max_iter, with_classes, seed):
    """Pairs at random, where attraction leads out of blocks, and those of classes, where it does not."""
    rng = np.random.default_rng(seed)
    y = random_pairs(n, rng)
    if with_classes:
        label = rng.integers(0, 3, n)
        y = np.where(label[:, None] == label, abs(y), -abs(y))
    if not y.any():
        return
    start = rng.choice(np.array([-1, 1], np.int8), (n, b))
    Z, course = cut_codes(scipy.sparse.csr_array(y.astype(float)), start, max_iter=max_iter, seed=seed)
    wanted, wanted_course = cut_codes_by_definition(y, start, max_iter, seed)
    assert np.array_equal(Z, wanted)
    np.testing.assert_allclose(course, wanted_course[: len(course)], rtol=1e-13)


def test_many_points_and_their_energies(digits):
    """Digits with several labels each; energies are those of the real couplings."""
    sets = np.column_stack([digits[1] == d for d in range(10)] + [digits[1] % 2 == 0]).astype(np.float32)
    y = label_pairs(sets, 20, 20, 3)
    Z = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (len(sets), 6))
    pairs = y.tocoo()
    products = np.einsum("ij,ij->i", Z[pairs.row], Z[pairs.col], dtype=np.int64)
    graph = coupling_graph(scipy.sparse.csr_array((7 * pairs.data - products, (pairs.row, pairs.col)), shape=y.shape))
    start = np.ones(len(sets), np.int8)
    found, wanted = PairLoss(y, Z).next_bit(start, 7, 5, 1000), minimize(graph, start, seed=5)
    assert np.array_equal(found.z, wanted.z)
    assert (found.n_blocks, found.converged) == (wanted.n_blocks, wanted.converged)
    np.testing.assert_allclose(found.energies, wanted.energies, rtol=1e-12)


def test_what_is_no_loss_over_pairs_is_refused():
    begin, columns = np.array([0, 1, 2], np.uint32), np.array([1, 0], np.uint32)
    ones = np.ones(2, np.int8)
    for signs, message in (([1, -1], "symmetric"), ([2, 2], "-1 or"), ([1], "agree in length")):
        with pytest.raises(ValueError, match=message):
            _core.PairLoss.of_pairs(begin, columns, np.array(signs, np.int8))
    loss = _core.PairLoss.of_pairs(begin, columns, ones)
    for call, message in (
        (lambda: loss.remove(ones), "no bit to remove"),
        (lambda: loss.add(0 * ones), "-1 and"),
        (lambda: loss.add(ones[:1]), "one value per point"),
        (lambda: loss.lower(ones, 0, 0, 10), "one more"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    loss.add(ones)
    assert (loss.n_bits, loss.value()) == (1, 0.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 4), st.integers(1, 3), st.integers(0, 10_000))
def test_a_bit_is_optimal_where_no_pair_repels_inside_two_classes(per_class, b, seed):
    """Two classes, all pairs: one bit given the others, against all 2^N of them."""
    rng = np.random.default_rng(seed)
    label = np.repeat([0, 1], per_class)
    y = np.where(label[:, None] == label, 1, -1) - np.eye(len(label), dtype=int)
    Z = rng.choice(np.array([-1, 1], np.int8), (len(label), b))
    start = np.ones(len(label), np.int8)
    loss = PairLoss(scipy.sparse.csr_array(y.astype(float)), Z)
    z = loss.next_bit(start, b + 1, seed, 1000).z

    def after(bit):
        return loss_by_definition(y, np.column_stack([Z, bit]))

    best = min(after(bit) for bit in all_assignments(len(label)))
    assert best <= after(z) <= after(start)
    # no single class can be improved on, whatever its own bits: that is what the exact cut of a block means
    for own in (label == 0, label == 1):
        for bits in all_assignments(per_class):
            other = z.copy()
            other[own] = bits
            assert after(z) <= after(other)


def test_two_classes_from_all_ones_find_the_labels(blobs):
    X, y = blobs[0][blobs[1] < 2], blobs[1][blobs[1] < 2]
    model = KSHcut(n_bits=5, max_iter=2).fit(X, y)
    bits = codes.unpack(model.transform(X), 5)
    assert len(np.unique(bits, axis=0)) == 2
    assert (bits[y == 0] != bits[y == 1][0]).all()
    assert model.report_["loss"][-1] == 0.0


def test_pairs_come_from_labels_in_the_order_of_the_points():
    labels = np.random.default_rng(0).integers(0, 3, 60)
    y = label_pairs((labels[:, None] == np.arange(3)).astype(np.float32), 5, 7, 1).tocoo()
    assert ((y.data > 0) == (labels[y.row] == labels[y.col])).all()
    assert set(np.unique(y.data)) == {-1.0, 1.0}
    assert (abs(y - y.T)).nnz == 0
    sets = np.random.default_rng(1).random((60, 4)) < 0.3
    sets[:, 0] |= ~sets.any(axis=1)
    y = label_pairs(sets.astype(np.float32), 5, 7, 1).tocoo()
    assert ((y.data > 0) == (sets[y.row] & sets[y.col]).any(axis=1)).all()


def test_several_labels_per_point(digits):
    X, y = digits[0][:300], digits[1][:300]
    sets = np.column_stack([y == digit for digit in range(10)] + [y % 2 == 0]).astype(int)
    model = KSHcut(n_bits=6, n_similar=20, n_dissimilar=20).fit(X, sets)
    assert (np.diff(model.report_["loss"]) <= 1e-12).all()
    assert len(np.unique(model.transform(X), axis=0)) > 2


def test_more_passes_lower_the_loss_and_the_paper_does_one(digits):
    X, y = digits
    one, more = (KSHcut(n_bits=10, max_iter=max_iter).fit(X, y).report_["loss"] for max_iter in (1, 4))
    assert len(one) == 11
    assert more[: len(one)] == one
    assert more[-1] <= one[-1] < one[0]


def test_start_from_a_model_or_its_codes(digits):
    X, y = digits[0][:800], digits[1][:800]
    given = ilhash.ILH(n_bits=12, n_train=300, n_similar=10, n_dissimilar=10, random_state=4).fit(X, y)
    by_model = KSHcut(n_bits=12, init=given).fit(X, y)
    by_codes = KSHcut(n_bits=12, init=given.transform(X)).fit(X, y)
    ones = KSHcut(n_bits=12).fit(X, y)
    assert by_model.report_ == by_codes.report_
    assert np.array_equal(by_model.transform(X), by_codes.transform(X))
    assert by_model.report_["loss"][0] < ones.report_["loss"][0]
    assert by_model.report_["loss"][-1] <= by_model.report_["loss"][0]


def test_flips_raise_the_loss_of_the_optimum_and_are_as_many_as_said(digits, tmp_path):
    X, y = digits[0][:800], digits[1][:800]
    at_optimum = KSHcut(n_bits=12, max_iter=5).fit(X, y).report_["loss"][-1]
    losses = [KSHcut(n_bits=12, max_iter=5, flip=share).fit(X, y).report_["flipped_loss"] for share in (0.01, 0.1, 0.3)]
    assert at_optimum < losses[0] < losses[1] < losses[2]
    Z = np.ones((50, 8), np.int8)
    assert (flip_some(Z, 0.1, 0) < 0).sum() == 40
    assert (Z > 0).all()


def test_a_z_step_that_does_not_end_is_said(digits):
    with pytest.warns(ConvergenceWarning, match="z-steps stopped at max_sweeps=1 before they converged"):
        KSHcut(n_bits=3, max_sweeps=1, n_similar=10, n_dissimilar=10).fit(digits[0][:300], digits[1][:300])


def test_kernel_functions_and_classifiers(digits):
    from sklearn.tree import DecisionTreeClassifier

    X, y = digits[0][:600], digits[1][:600]
    for function in ("kernel", "trees", DecisionTreeClassifier(max_depth=5)):
        model = KSHcut(n_bits=6, hash_function=function).fit(X, y)
        found = model.decision_function(X) > 0
        linear = KSHcut(n_bits=6).fit(X, y).decision_function(X) > 0
        assert 0.6 < (found == linear).mean() < 1  # the same targets, other functions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"n_similar": 0}, "n_similar must be a whole number"),
        ({"flip": 1.5}, "flip must be a share"),
        ({"init": "zeros"}, "init must be 'ones'"),
        ({"init": np.zeros((3, 1), np.uint8)}, "init must hold the codes of all rows"),
        ({"init": np.zeros((200, 3), np.uint8)}, "init must hold codes of 5 bits, 1 bytes each, got 3"),
    ],
)
def test_bad_parameters(digits, change, message):
    with pytest.raises(ValueError, match=message):
        KSHcut(n_bits=5, **change).fit(digits[0][:200], digits[1][:200])
