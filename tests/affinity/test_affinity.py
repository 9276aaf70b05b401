"""Supervision and the graphs drawn from it, against brute force."""

import itertools
import math

import numpy as np
import pandas
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import sharing_a_label, squared_distances

from ilhash import _core
from ilhash import objective as ob
from ilhash.affinity import (
    EuclideanNeighbors,
    Labels,
    LabelSets,
    SparseAffinity,
    affinity_from_matrix,
    affinity_from_pairs,
    supervision_from_labels,
)
from ilhash.diversity import NeighborhoodOrder
from ilhash.graph import graph_couplings
from ilhash.vectors import nearest_other_rows
from ilhash.zstep import minimize, random_start


def no_vectors():
    raise AssertionError("this supervision needs no vectors")


def dense(graph):
    """Couplings as a dense matrix; fails if an arc is stored twice."""
    source, target, coupling = graph.triplets()
    W = np.zeros((graph.n_points, graph.n_points))
    W[source, target] = coupling
    assert np.count_nonzero(W) == len(coupling), "an arc is stored twice"
    assert graph.n_attract == np.count_nonzero(W > 0)
    assert graph.n_repel == np.count_nonzero(W < 0)
    assert np.array_equal(graph.degrees(), np.count_nonzero(W, axis=1))
    return W


def assert_plain_signed_graph(W):
    assert np.array_equal(W, W.T)
    assert not W.diagonal().any()
    assert set(np.unique(W).tolist()) <= {-1.0, 0.0, 1.0}


# -------------------------------------------------------------------------------- label graphs


def check_class_graph(sizes, similar, dissimilar, seed):
    W = dense(_core.SignedGraph.from_classes(sizes, similar, dissimilar, seed))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    same = labels[:, None] == labels[None, :]
    assert_plain_signed_graph(W)
    assert not (W[same] < 0).any()
    assert not (W[~same] > 0).any()
    own = np.array(sizes)[labels]
    assert (np.count_nonzero(W > 0, axis=1) >= np.minimum(similar, own - 1)).all()
    assert (np.count_nonzero(W < 0, axis=1) >= np.minimum(dissimilar, len(labels) - own)).all()
    assert np.count_nonzero(W > 0) <= 2 * np.minimum(similar, own - 1).sum()
    assert np.count_nonzero(W < 0) <= 2 * np.minimum(dissimilar, len(labels) - own).sum()


@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(0, 15), st.integers(0, 15), st.integers(0, 2**63)
)
def test_label_graphs_are_symmetric_unit_graphs_whose_signs_follow_the_labels(sizes, similar, dissimilar, seed):
    check_class_graph(sizes, similar, dissimilar, seed)


@pytest.mark.parametrize("sizes", [[1], [1, 1], [2], [1, 5], [2, 2], [1] * 8])
@pytest.mark.parametrize("wanted", [0, 1, 2, 50])
def test_tiny_label_graphs(sizes, wanted):
    for seed in range(5):
        check_class_graph(sizes, wanted, wanted, seed)


def test_asking_for_everybody_gives_the_complete_graph():
    labels = np.repeat(np.arange(3), [4, 1, 7])
    W = dense(_core.SignedGraph.from_classes([4, 1, 7], 99, 99, 0))
    expected = np.where(labels[:, None] == labels[None, :], 1.0, -1.0)
    np.fill_diagonal(expected, 0.0)
    assert np.array_equal(W, expected)


def test_edges_are_the_union_of_both_ends_choices():
    # Each of n points chooses k of m others; a pair stays out only if neither end chose it.
    n, k, repeats = 12, 3, 400
    share = k / (n - 1)
    expected = 1.0 - (1.0 - share) ** 2
    graphs = (_core.SignedGraph.from_classes([n], k, 0, seed) for seed in range(repeats))
    edges = [dense(graph).sum() / (n * (n - 1)) for graph in graphs]
    error = np.std(edges) / np.sqrt(repeats)
    assert abs(np.mean(edges) - expected) < 5 * error


@pytest.mark.parametrize("which", ["similar", "dissimilar"])
def test_draws_are_uniform_without_replacement(which):
    # An edge is missing exactly where neither end drew the other, so for uniform draws of k distinct out of m others
    # an edge has probability 1 - (1 - k/m)^2, the same for all pairs; chi-square over all pairs.
    n, k, repeats = 8, 3, 3000
    sizes, similar, dissimilar = ([n], k, 0) if which == "similar" else ([n, n], 0, k)
    graphs = [graph_couplings(_core.SignedGraph.from_classes(sizes, similar, dissimilar, s)) for s in range(repeats)]
    present = np.stack([abs(graph).toarray() for graph in graphs])
    m = n - 1 if which == "similar" else n
    pairs = np.triu_indices(n, 1) if which == "similar" else tuple(i.ravel() for i in np.mgrid[:n, n : 2 * n])
    observed = present[:, pairs[0], pairs[1]].sum(axis=0)
    edge = 1.0 - (1.0 - k / m) ** 2
    variance = repeats * edge * (1.0 - edge)
    statistic = ((observed - repeats * edge) ** 2 / variance).sum()
    assert statistic < scipy.stats.chi2.ppf(0.9999, len(observed))
    # Two edges at one point are missing together where its set of k holds neither: C(m-2, k) / C(m, k) of all sets.
    centre, ends = 0, (range(1, n) if which == "similar" else range(n, 2 * n))
    together = [(1 - present[:, centre, i]) @ (1 - present[:, centre, j]) for i, j in itertools.combinations(ends, 2)]
    both = math.comb(m - 2, k) / math.comb(m, k) * (1.0 - k / m) ** 2
    assert np.mean(together) / repeats == pytest.approx(both, abs=5 * np.sqrt(both / repeats / 10))
    assert np.abs(np.array(together) - repeats * both).max() < 5 * np.sqrt(repeats * both)


def test_label_graphs_depend_on_the_seed_and_on_nothing_else():
    graphs = [_core.SignedGraph.from_classes([20, 30], 5, 5, seed) for seed in (1, 1, 2)]
    first, again, other = (dense(graph) for graph in graphs)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_an_empty_class_is_refused():
    with pytest.raises(ValueError, match="class sizes must be positive"):
        _core.SignedGraph.from_classes([3, 0, 2], 1, 1, 0)


def test_labels_build_the_graph_of_the_arranged_rows():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 200)
    supervision = supervision_from_labels(y, 200)
    rows = supervision.arrange(rng.permutation(200)[:60])
    made = supervision.graph(rows, "laplacian", 8, 8, 3, no_vectors)
    W = dense(made.graph)
    same = y[rows][:, None] == y[rows][None, :]
    assert not (W[same] < 0).any()
    assert not (W[~same] > 0).any()
    assert made.scale == 2.0
    assert made.shortages == {}


def test_arranging_keeps_the_rows_and_sorts_by_class():
    supervision = supervision_from_labels(np.array([2, 0, 1, 0, 2, 1]), 6)
    rows = np.array([4, 1, 2, 3, 0])
    assert supervision.arrange(rows).tolist() == [1, 3, 2, 4, 0]


def test_small_classes_give_fewer_neighbours_and_are_reported():
    y = np.array(["rare"] * 3 + ["common"] * 40 + ["single"])
    supervision = supervision_from_labels(y, 44)
    rows = supervision.arrange(np.arange(44))
    made = supervision.graph(rows, "laplacian", 5, 5, 0, no_vectors)
    assert made.shortages == {"class rare": 3, "class single": 1}
    W = dense(made.graph)
    rare = y[rows] == "rare"
    assert (np.count_nonzero(W[rare] > 0, axis=1) == 2).all()
    assert supervision.graph(rows, "laplacian", 2, 5, 0, no_vectors).shortages == {"class single": 1}


def test_a_class_that_was_not_drawn_is_no_shortage():
    supervision = supervision_from_labels(np.repeat([0, 1, 2], [10, 10, 1]), 21)
    assert supervision.graph(np.arange(20), "laplacian", 3, 3, 0, no_vectors).shortages == {}


@pytest.mark.parametrize("objective", ["laplacian", "ksh", "bre"])
def test_the_scale_turns_graph_energies_into_energies_of_the_objective(objective):
    supervision = supervision_from_labels(np.repeat([0, 1], 10), 20)
    made = supervision.graph(np.arange(20), objective, 4, 4, 0, no_vectors)
    Y = dense(made.graph)
    A = np.zeros_like(Y)
    A[Y != 0] = ob.coefficients(objective, Y[Y != 0])
    z = random_start(20, 0)
    assert made.graph.energy(z) * made.scale == pytest.approx(ob.energy(A, z))


def test_an_objective_with_unequal_weights_gives_a_weighted_graph():
    loss = ob.minimal_loss(1.0, 0.3)
    supervision = supervision_from_labels(np.repeat([0, 1], 10), 20)
    plain = dense(supervision.graph(np.arange(20), "laplacian", 4, 4, 0, no_vectors).graph)
    made = supervision.graph(np.arange(20), loss, 4, 4, 0, no_vectors)
    assert made.graph.weighted
    assert np.array_equal(dense(made.graph), np.where(plain > 0, 0.5, np.where(plain < 0, -0.15, 0.0)))


def test_an_objective_without_attraction_leaves_the_repelling_arcs():
    supervision = supervision_from_labels(np.repeat([0, 1], 10), 20)
    made = supervision.graph(np.arange(20), ob.minimal_loss(2.0, 1.0), 4, 4, 0, no_vectors)
    assert made.graph.n_attract == 0
    assert made.graph.n_repel > 0


def test_a_degenerate_objective_is_refused_for_labels():
    supervision = supervision_from_labels(np.repeat([0, 1], 10), 20)
    with pytest.raises(ValueError, match="some pairs repel"):
        supervision.graph(np.arange(20), lambda distance, y: 1.0 * distance, 4, 4, 0, no_vectors)


# -------------------------------------------------------------------------------- sets of labels


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 25),
    st.integers(1, 6),
    st.floats(0.0, 0.9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 2**63),
)
def test_label_set_graphs_follow_who_shares_a_label(n, n_labels, density, similar, dissimilar, seed):
    rng = np.random.default_rng(seed)
    indicator = (rng.random((n, n_labels)) < density).astype(np.int8)
    csr = scipy.sparse.csr_array(indicator)
    W = dense(
        _core.SignedGraph.from_label_sets(
            csr.indptr.astype(np.uint32), csr.indices.astype(np.uint32), n_labels, similar, dissimilar, seed
        )
    )
    share = sharing_a_label(indicator)
    assert_plain_signed_graph(W)
    off = ~np.eye(n, dtype=bool)
    assert not (W[share & off] < 0).any()
    assert not (W[~share & off] > 0).any()
    n_sharing, n_apart = (share & off).sum(axis=1), (~share & off).sum(axis=1)
    assert (np.count_nonzero(W > 0, axis=1) >= np.minimum(similar, n_sharing)).all()
    assert (np.count_nonzero(W < 0, axis=1) >= np.minimum(dissimilar, n_apart)).all()


def test_asking_label_sets_for_everybody_gives_the_complete_graph():
    rng = np.random.default_rng(0)
    indicator = (rng.random((15, 4)) < 0.4).astype(int)
    supervision = supervision_from_labels(indicator, 15)
    W = dense(supervision.graph(np.arange(15), "laplacian", 99, 99, 0, no_vectors).graph)
    expected = np.where(sharing_a_label(indicator), 1.0, -1.0)
    np.fill_diagonal(expected, 0.0)
    assert np.array_equal(W, expected)


def test_label_sets_of_one_label_each_mean_the_same_as_labels():
    y = np.repeat([0, 1, 2], [5, 6, 7])
    one_hot = np.eye(3, dtype=int)[y]
    a = supervision_from_labels(y, 18).graph(np.arange(18), "laplacian", 99, 99, 0, no_vectors)
    b = supervision_from_labels(one_hot, 18).graph(np.arange(18), "laplacian", 99, 99, 0, no_vectors)
    assert np.array_equal(dense(a.graph), dense(b.graph))


def test_rare_labels_of_label_sets_are_reported():
    indicator = np.zeros((20, 3), int)
    indicator[:, 0] = 1
    indicator[:2, 1] = 1
    indicator[2:12, 2] = 1
    made = supervision_from_labels(indicator, 20).graph(np.arange(20), "laplacian", 5, 5, 0, no_vectors)
    assert made.shortages == {"label 1": 2}


def test_labels_out_of_range_are_refused_by_the_core():
    with pytest.raises(ValueError, match="labels must be smaller than their number, got another number in"):
        _core.SignedGraph.from_label_sets(np.array([0, 1], np.uint32), np.array([3], np.uint32), 3, 1, 1, 0)
    with pytest.raises(ValueError, match="row_begin must end"):
        _core.SignedGraph.from_label_sets(np.array([0, 2], np.uint32), np.array([0], np.uint32), 3, 1, 1, 0)
    with pytest.raises(ValueError, match="must not descend"):
        _core.SignedGraph.from_label_sets(np.array([0, 9, 1], np.uint32), np.array([0], np.uint32), 3, 1, 1, 0)


# -------------------------------------------------------------------------------- reading labels


def test_exactly_minus_and_plus_one_is_refused_with_the_way_out():
    y = np.array([-1, 1, 1, -1])
    with pytest.raises(ValueError, match="unlabeled=None"):
        supervision_from_labels(y, 4)
    with pytest.raises(ValueError, match="unlabeled=None"):
        supervision_from_labels(y.astype(float), 4)
    labels = supervision_from_labels(y, 4, unlabeled=None)
    assert labels.codes.tolist() == [0, 1, 1, 0]
    assert labels.drawable is None


def test_unlabelled_points_are_never_drawn():
    labels = supervision_from_labels(np.array([-1, 4, 4, -1, 7]), 5)
    assert isinstance(labels, Labels)
    assert labels.codes.tolist() == [-1, 0, 0, -1, 1]
    assert labels.names.tolist() == [4, 7]
    assert labels.drawable.tolist() == [1, 2, 4]
    assert labels.n_points == 5


def test_strings_may_have_their_own_mark_for_unlabelled():
    y = np.array(["cat", "?", "dog", "cat"])
    assert supervision_from_labels(y, 4, unlabeled="?").drawable.tolist() == [0, 2, 3]
    assert supervision_from_labels(y, 4).codes.tolist() == [1, 0, 2, 1]
    assert supervision_from_labels(y.tolist(), 4).names.tolist() == ["?", "cat", "dog"]
    assert supervision_from_labels(y.astype(object), 4).codes.tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32, np.float64, bool])
def test_labels_of_any_whole_type_are_read_alike(dtype):
    y = np.array([0, 1, 1, 0]).astype(dtype)
    assert supervision_from_labels(y, 4).codes.tolist() == [0, 1, 1, 0]


def test_a_column_of_labels_is_read_as_labels():
    assert supervision_from_labels(np.array([[3], [5], [3]]), 3).codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "y",
    [
        [3, None, 5, 3, None],
        [3.0, np.nan, 5.0, 3.0, np.nan],
        np.array([3, np.nan, 5, 3, np.nan], np.float32),
        np.array([3, None, 5, 3, np.nan], object),
        ["cat", None, "dog", "cat", float("nan")],
        np.array(["cat", np.nan, "dog", "cat", None], object),
        pandas.Series(["cat", None, "dog", "cat", pandas.NA], dtype="string"),
        pandas.Series([3, None, 5, 3, pandas.NA], dtype="Int64"),
        pandas.Series([3, None, 5, 3, np.nan]),
        [[3], [None], [5], [3], [None]],
        [3, -1, 5, 3, None],
    ],
    ids=str,
)
def test_none_and_nan_are_unknown(y):
    labels = supervision_from_labels(y, 5)
    assert labels.codes.tolist() == [0, -1, 1, 0, -1]
    assert labels.names.tolist() in ([3, 5], ["cat", "dog"])
    assert labels.drawable.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1], "at least 2 classes, got 1 class"),
        ([-1, -1, -1], "at least 2 classes, got no labelled point"),
        ([-1, 5, 5], "at least 2 classes, got 1 class"),
        ([0.5, 1.0, 2.0], "continuous numbers such as"),
        ([0.0, np.nan, np.nan], "at least 2 classes, got 1 class in 3 sample"),
        ([None, None, None], "at least 2 classes, got no labelled point"),
        ([0.0, np.inf, 1.0], "infinity in 1 entries"),
        (["a", 1, None], "y must be all whole numbers or all text, got int, str"),
        ([0, 1], "one entry per row of X, got 2 for 3 rows"),
        ([0, 1, 0, 1], "one entry per row of X, got 4 for 3 rows"),
        ([[1, 0], [0, 1]], "one entry per row of X, got 2 for 3 rows"),
        ([[1, 0], [0, 2], [0, 1]], "indicator matrix of 0 and 1"),
        ([[1, 0], [1, 0], [1, 0]], "at least 2 labels, got 1"),
        ([[0, 0], [0, 0], [0, 0]], "at least 2 labels, got 0"),
        ([[1], 2, [3]], "sets or lists of labels in every row, got 1 of 3 others such as 2"),
        ([{1}, [2, [3]], {3}], "sets or lists of labels, such as text or numbers"),
        (np.zeros((3, 2, 2)), "1-D labels or a 2-D indicator matrix, got 3-D"),
        (np.array(5), "1-D labels or a 2-D indicator matrix, got 0-D"),
    ],
)
def test_labels_that_cannot_be_read_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        supervision_from_labels(y, 3)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float64])
def test_indicator_matrices_dense_and_sparse_are_read_alike(make, dtype):
    indicator = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], dtype=dtype)
    sets = supervision_from_labels(make(indicator), 3)
    assert isinstance(sets, LabelSets)
    assert np.array_equal(sets.indicator.toarray(), indicator.astype(int))
    assert sets.drawable.tolist() == [0, 2]
    assert sets.n_points == 3


def test_a_sparse_indicator_matrix_is_not_written():
    y = scipy.sparse.csr_array(
        (np.array([1, 0, 1, 1], np.int8), np.array([2, 0, 1, 0], np.int32), np.array([0, 2, 4], np.int32)), shape=(2, 3)
    )
    before = [part.copy() for part in (y.data, y.indices, y.indptr)]
    supervision_from_labels(y, 2)
    for part, copy in zip((y.data, y.indices, y.indptr), before, strict=True):
        assert np.array_equal(part, copy)


def test_digests_tell_supervisions_apart():
    a = supervision_from_labels(np.array([0, 1, 1]), 3).digest()
    assert a == supervision_from_labels(np.array(["x", "y", "y"]), 3).digest()
    assert a != supervision_from_labels(np.array([0, 1, 0]), 3).digest()
    one = supervision_from_labels(np.array([[1, 0], [0, 1]]), 2).digest()
    assert one != supervision_from_labels(np.array([[1, 1], [0, 1]]), 2).digest()
    pairs = affinity_from_pairs([[0, 1, 1.0], [1, 2, -1.0]], 3).digest()
    assert pairs != affinity_from_pairs([[0, 1, 1.0], [1, 2, -2.0]], 3).digest()
    assert pairs == affinity_from_pairs([[2, 1, -1.0], [1, 0, 1.0]], 3).digest()


# -------------------------------------------------------------------------------- neighbours


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 60), st.integers(1, 6), st.integers(1, 8), st.integers(0, 2**32))
def test_nearest_neighbours_equal_sorted_distances(n, d, k, seed):
    k = min(k, n - 1)
    values = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    nearest = nearest_other_rows(values, k)
    distances = squared_distances(values)
    assert nearest.shape == (n, k)
    for row in range(n):
        found = nearest[row]
        assert len(set(found.tolist())) == k
        assert row not in found
        assert np.allclose(np.sort(distances[row, found]), np.sort(distances[row])[:k], rtol=1e-4, atol=1e-5)


def test_nearest_neighbours_of_well_separated_points_are_exact_sets_over_several_blocks():
    rng = np.random.default_rng(0)
    values = np.sqrt(rng.permutation(1300)).astype(np.float32)[:, None]  # gaps all different, 3 blocks of rows
    nearest = nearest_other_rows(values, 4)
    expected = np.argsort(squared_distances(values), axis=1)[:, :4]
    agree = [set(a) == set(b) for a, b in zip(nearest.tolist(), expected.tolist(), strict=True)]
    assert np.mean(agree) > 0.98  # the rest are ties in single precision


def test_of_equally_distant_rows_those_of_lower_numbers_are_nearest():
    values = np.array([[0.0], [1.0], [-1.0], [1.0], [9.0], [-1.0]], np.float32)
    assert nearest_other_rows(values, 3)[0].tolist() == [1, 2, 3]
    assert nearest_other_rows(np.zeros((5, 2), np.float32), 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]


def test_as_many_neighbours_as_rows_is_refused():
    with pytest.raises(ValueError, match="k must be below the number of rows, got k=3 for 3 rows"):
        nearest_other_rows(np.zeros((3, 1), np.float32), 3)


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 40), st.integers(1, 6), st.integers(0, 50), st.integers(0, 2**63))
def test_where_one_end_calls_a_pair_similar_it_is_similar(n, k, dissimilar, seed):
    k = min(k, n - 1)
    rng = np.random.default_rng(seed)
    nearest = np.stack([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)]).astype(np.uint32)
    W = dense(_core.SignedGraph.from_neighbours(nearest, dissimilar, seed))
    assert_plain_signed_graph(W)
    chosen = np.zeros((n, n), bool)
    chosen[np.repeat(np.arange(n), k), nearest.ravel()] = True
    similar = chosen | chosen.T
    assert np.array_equal(W > 0, similar)
    n_attract_in = similar.sum(axis=1) - k
    own_draws = min(dissimilar, n - 1 - k)
    assert (np.count_nonzero(W < 0, axis=1) >= own_draws - n_attract_in).all()
    if dissimilar >= n:
        assert np.array_equal(W < 0, ~similar & ~np.eye(n, dtype=bool))


@pytest.mark.parametrize("neighbours", [[[1], [1], [0]], [[3], [0], [0]]])
def test_a_point_as_its_own_or_an_unknown_neighbour_is_refused_by_the_core(neighbours):
    with pytest.raises(ValueError, match="another point of the set"):
        _core.SignedGraph.from_neighbours(np.array(neighbours, np.uint32), 1, 0)


def test_a_repeated_neighbour_is_refused_or_counted_once_by_the_core():
    try:
        graph = _core.SignedGraph.from_neighbours(np.array([[1, 1], [0, 2], [0, 1], [0, 1]], np.uint32), 1, 0)
    except ValueError:
        return
    dense(graph)


def test_euclidean_supervision_joins_nearest_neighbours_of_the_drawn_rows():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((50, 4)).astype(np.float32)
    supervision = EuclideanNeighbors(1000)
    rows = np.arange(50)
    assert supervision.drawable is None
    assert np.array_equal(supervision.arrange(rows), rows)
    made = supervision.graph(rows, "laplacian", 5, 6, 1, lambda: values)
    W = dense(made.graph)
    nearest = nearest_other_rows(values, 5)
    chosen = np.zeros((50, 50), bool)
    chosen[np.repeat(rows, 5), nearest.ravel()] = True
    assert np.array_equal(W > 0, chosen | chosen.T)
    assert made.shortages == {}


def test_a_small_set_keeps_points_to_be_dissimilar_and_says_so():
    values = np.random.default_rng(0).standard_normal((10, 2)).astype(np.float32)
    made = EuclideanNeighbors(10).graph(np.arange(10), "laplacian", 100, 100, 0, lambda: values)
    assert made.shortages == {"the whole training set": 10}
    assert made.graph.n_repel > 0
    assert made.graph.n_attract >= 10 * 3


# -------------------------------------------------------------------------------- pairs


def test_pairs_keep_their_real_weights_in_both_halves():
    pairs = np.array([[0, 1, 0.5], [3, 2, -2.25], [1, 4, 1e-3]])
    expected = np.zeros((5, 5))
    for i, j, w in pairs:
        expected[int(i), int(j)] = expected[int(j), int(i)] = w
    for form in (pairs, pairs.tolist(), (pairs[:, :2].astype(int), pairs[:, 2]), (pairs[:, :2], pairs[:, 2].tolist())):
        made = affinity_from_pairs(form, 5)
        assert isinstance(made, SparseAffinity)
        assert np.array_equal(made.matrix.toarray(), expected)
        assert made.n_points == 5
    assert affinity_from_pairs(pairs, 7).drawable.tolist() == [0, 1, 2, 3, 4]
    assert affinity_from_pairs(pairs, 5).drawable is None


def test_repeated_pairs_of_one_weight_are_merged():
    made = affinity_from_pairs([[0, 1, 1.0], [1, 0, 1.0], [0, 1, 1.0], [1, 2, -1.0]], 3)
    assert np.array_equal(made.matrix.toarray(), [[0, 1, 0], [1, 0, -1], [0, -1, 0]])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 1, 1.0], [1, 0, -1.0]], r"contradict each other, got 1 pairs .* \(0, 1\)"),
        ([[0, 1, 1.0], [0, 1, 2.0], [1, 2, -1.0]], "contradict each other, got 1 pairs"),
        ([[0, 3, 1.0], [1, 2, -1.0]], r"rows 0 to 2 of X, got 1 of 2 out of range, such as \(0, 3\)"),
        ([[-1, 0, 1.0]], "1 of 1 out of range"),
        ([[1, 1, 1.0], [0, 1, -1.0]], "got 1 of a point with itself"),
        ([[0, 1, np.nan]], "finite weights other than 0"),
        ([[0, 1, np.inf]], "finite weights other than 0"),
        ([[0, 1, 0.0]], "finite weights other than 0"),
        ([[0.5, 1, 1.0]], "whole numbers, got fractions"),
        ([[np.nan, 1, 1.0]], "whole numbers"),
        ([[0, 1]], "rows \\(i, j, weight\\)"),
        ([0, 1, 1.0], "rows \\(i, j, weight\\)"),
        (np.zeros((0, 3)), "at least one pair"),
        ([["a", "b", "c"]], "rows \\(i, j, weight\\)"),
        ((np.zeros((2, 2), int), np.zeros(3)), "rows \\(i, j, weight\\)"),
        ([[0, 1, 1.0], [1, 2, 1.0]], "some pairs repel"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        affinity_from_pairs(pairs, 3)


def test_an_infinite_row_number_is_refused_without_a_warning():
    with pytest.raises(ValueError, match="pairs must name rows"):
        affinity_from_pairs([[np.inf, 1, 1.0]], 3)


# -------------------------------------------------------------------------------- matrices


def matrix_of(entries, n):
    W = np.zeros((n, n))
    for i, j, w in entries:
        W[i, j] = w
    return scipy.sparse.csr_array(W)


GOOD = [(0, 1, 0.5), (1, 0, 0.5), (1, 2, -2.0), (2, 1, -2.0)]


@pytest.mark.parametrize("kind", ["csr_array", "coo_array", "csc_matrix", "lil_array", "csr_matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_matrices_of_any_kind_are_read(kind, dtype):
    matrix = getattr(scipy.sparse, kind)(matrix_of(GOOD, 4).astype(dtype))
    made = affinity_from_matrix(matrix, 4)
    assert np.array_equal(made.matrix.toarray(), matrix_of(GOOD, 4).toarray())
    assert made.drawable.tolist() == [0, 1, 2]


def test_the_diagonal_and_stored_zeros_are_dropped():
    dirty = scipy.sparse.coo_array(
        ([0.5, 0.5, -2.0, -2.0, 9.0, 0.0, 0.0], ([0, 1, 1, 2, 1, 0, 2], [1, 0, 2, 1, 1, 2, 0])), shape=(3, 3)
    )
    made = affinity_from_matrix(dirty, 3)
    assert made.matrix.nnz == 4
    assert np.array_equal(made.matrix.toarray(), matrix_of(GOOD, 3).toarray())


def unsorted_matrix(kind):
    """GOOD and an entry on the diagonal, with columns in no order."""
    parts = (np.array([7.0, 0.5, -2.0, 0.5, -2.0]), np.array([0, 1, 2, 0, 1]), np.array([0, 2, 4, 5]))
    return getattr(scipy.sparse, kind)(scipy.sparse.csr_array(parts, shape=(3, 3)))


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "coo_array", "csc_array"])
def test_a_matrix_is_not_written(kind):
    matrix = unsorted_matrix(kind)
    before, data = matrix.toarray(), matrix.data.copy()
    affinity_from_matrix(matrix, 3)
    assert np.array_equal(matrix.toarray(), before)
    assert np.array_equal(matrix.data, data)


def test_a_matrix_of_read_only_arrays_is_read():
    # As it arrives from a memory map or in another process.
    matrix = unsorted_matrix("csr_array")
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    assert np.array_equal(affinity_from_matrix(matrix, 3).matrix.toarray(), matrix_of(GOOD, 3).toarray())


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (matrix_of([(0, 1, 1.0), (1, 0, 1.0), (1, 2, -1.0)], 3), "symmetric, got 1 pairs"),
        (matrix_of([(0, 1, 1.0), (1, 0, 2.0), (1, 2, -1.0), (2, 1, -1.0)], 3), "symmetric, got 1 pairs"),
        (matrix_of([(0, 1, 1.0), (1, 0, -1.0)], 3), "symmetric"),
        (matrix_of(GOOD, 4), r"3 x 3, one row and column per row of X, got \(4, 4\)"),
        (scipy.sparse.csr_array((3, 4)), "3 x 3"),
        (scipy.sparse.csr_array((3, 3)), "no entry off the diagonal"),
        (scipy.sparse.csr_array(np.eye(3)), "no entry off the diagonal"),
        (matrix_of([(0, 1, np.nan), (1, 0, np.nan), (1, 2, -1.0), (2, 1, -1.0)], 3), "finite, got 2 of 4"),
        (matrix_of([(0, 1, np.inf), (1, 0, np.inf)], 3), "finite, got 2 of 2"),
        (matrix_of([(0, 1, 1.0), (1, 0, 1.0)], 3), "some pairs repel"),
    ],
)
def test_matrices_that_cannot_be_used_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        affinity_from_matrix(matrix, 3)


@pytest.mark.parametrize("dense_matrix", [np.eye(3), [[0, 1], [1, 0]]])
def test_a_dense_matrix_is_refused_with_the_way_out(dense_matrix):
    with pytest.raises(TypeError, match="csr_array converts a small one"):
        affinity_from_matrix(dense_matrix, 3)


def test_what_is_accepted_as_symmetric_is_made_exactly_symmetric():
    # Weights equal up to rounding are accepted; the core needs both arcs of a pair, with one weight.
    rounding = matrix_of([*GOOD, (0, 2, 1e-12)], 3)  # one half only
    rounding = rounding + matrix_of([(0, 1, 1e-11)], 3)  # two weights
    made = affinity_from_matrix(rounding, 3)
    assert (made.matrix != made.matrix.T).nnz == 0


def test_the_graph_of_some_rows_is_that_part_of_the_matrix():
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((40, 40)) < 0.2, 1) * rng.standard_normal((40, 40))
    Y = upper + upper.T
    supervision = affinity_from_matrix(scipy.sparse.csr_array(Y), 40)
    rows = rng.permutation(40)[:15]
    made = supervision.graph(rows, "laplacian", 1, 1, 0, no_vectors)
    assert np.allclose(graph_couplings(made.graph).toarray(), 2.0 * Y[np.ix_(rows, rows)], rtol=1e-15)
    assert made.graph.weighted


def test_rows_without_any_pair_among_them_give_an_empty_graph():
    supervision = affinity_from_pairs([[0, 1, 1.0], [2, 3, -1.0]], 4)
    made = supervision.graph(np.array([0, 2]), "laplacian", 1, 1, 0, no_vectors)
    assert made.graph.n_attract == made.graph.n_repel == 0
    assert minimize(made.graph, np.array([1, -1], np.int8)).z.tolist() == [1, -1]


def test_rows_drawn_twice_share_their_pairs():
    supervision = affinity_from_pairs([[0, 1, 1.0], [1, 2, -1.0]], 3)
    W = graph_couplings(supervision.graph(np.array([0, 0, 1]), "laplacian", 1, 1, 0, no_vectors).graph).toarray()
    assert np.array_equal(W, [[0, 0, 2], [0, 0, 2], [2, 2, 0]])


@pytest.mark.parametrize(
    ("row_begin", "columns", "couplings", "message"),
    [
        ([0, 1, 2], [1, 2], [1.0, 1.0], "another point of the graph"),
        ([0, 1, 2], [0, 0], [1.0, 1.0], "another point of the graph"),
        ([0, 1, 2], [1, 0], [1.0, np.nan], "between 1e-280 and 1e280"),
        ([0, 1, 2], [1, 0], [1.0, 0.0], "between 1e-280 and 1e280"),
        ([0, 2, 3, 4], [2, 1, 0, 0], [1.0] * 4, "sorted and distinct"),
        ([0, 2, 4], [1, 1, 0, 0], [1.0] * 4, "sorted and distinct"),
        ([0, 1, 3], [1, 0], [1.0, 1.0], "agree in length"),
        ([0, 3, 2], [1, 0], [1.0, 1.0], "must not descend"),
        ([1, 1, 2], [1, 0], [1.0, 1.0], "must begin at 0"),
    ],
)
def test_malformed_couplings_are_refused_by_the_core(row_begin, columns, couplings, message):
    with pytest.raises(ValueError, match=message):
        _core.SignedGraph.from_couplings(
            np.array(row_begin, np.uint32), np.array(columns, np.uint32), np.array(couplings)
        )


# -------------------------------------------------------------------------------- drawing pairs' points


def test_drawing_neighbourhoods_keeps_many_more_edges_than_a_uniform_draw():
    rng = np.random.default_rng(0)
    n, m = 20_000, 40_000
    index = rng.integers(0, n, (m, 2))
    index = index[index[:, 0] != index[:, 1]]
    index = np.unique(np.sort(index, axis=1), axis=0)
    matrix = affinity_from_pairs((index, rng.choice([-1.0, 1.0], len(index))), n).matrix
    source = NeighborhoodOrder(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
    rows = source.take(0, 0, 400)
    uniform = rng.permutation(n)[:400]
    kept, by_chance = (matrix[drawn][:, drawn].nnz for drawn in (rows, uniform))
    assert len(set(rows.tolist())) == 400
    assert kept > 5 * by_chance


# -------------------------------------------------------------------------------- parts of what is known


def signed_matrix(n, seed, density=0.4):
    rng = np.random.default_rng(seed)
    half = np.triu(rng.choice([-2.0, -1.0, 0.0, 1.0, 3.0], (n, n)), 1) * (np.triu(rng.random((n, n)), 1) < density)
    return scipy.sparse.csr_array(half + half.T)


@given(st.integers(6, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_what_is_known_among_some_points_is_that_part(n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(n)[: int(rng.integers(2, n))].astype(np.int64)
    y = rng.integers(-1, 4, n).astype(np.int32)
    assert Labels(y, np.arange(4)).among(rows).codes.tolist() == y[rows].tolist()
    assert Labels(y, np.arange(4)).classes(rows).tolist() == y[rows].tolist()
    table = scipy.sparse.csr_array((rng.random((n, 5)) < 0.4).astype(np.int8))
    sets = LabelSets(table, graded=True).among(rows)
    assert sets.graded
    assert np.array_equal(sets.indicator.toarray(), table.toarray()[rows])
    assert set(sets.classes(np.arange(len(rows)))) == {-1}
    matrix = signed_matrix(n, seed)
    dense = matrix.toarray()
    assert np.array_equal(SparseAffinity(matrix).among(rows).matrix.toarray(), dense[np.ix_(rows, rows)])
    i, j = np.nonzero(np.triu(dense))
    gone = np.stack([i, j], axis=1)[::2]
    left = SparseAffinity(matrix).without(gone).matrix.toarray()
    dense[gone[:, 0], gone[:, 1]] = dense[gone[:, 1], gone[:, 0]] = 0.0
    assert np.array_equal(left, dense)


@given(st.integers(6, 30), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_thinned_graph_has_no_more_pairs_than_wanted_and_draws_others_for_another_seed(n, similar, dissimilar, seed):
    matrix = signed_matrix(n, seed, 0.9)
    rows = np.arange(n)

    def drawn(own):
        found = SparseAffinity(matrix, thinned=True).graph(rows, "laplacian", similar, dissimilar, own, None)
        return graph_couplings(found.graph).toarray()

    whole = graph_couplings(
        SparseAffinity(matrix).graph(rows, "laplacian", similar, dissimilar, 0, None).graph
    ).toarray()
    part = drawn(1)
    assert np.array_equal(part, part.T)
    assert np.array_equal(part[part != 0], whole[part != 0])
    for sign, most in ((1, similar * n), (-1, dissimilar * n)):
        there = np.count_nonzero(np.triu(sign * whole) > 0)
        assert np.count_nonzero(np.triu(sign * part) > 0) == min(there, most)
    assert np.array_equal(part, drawn(1))
    if np.count_nonzero(np.triu(whole > 0)) > 2 * similar * n:
        assert any(not np.array_equal(part, drawn(other)) for other in range(2, 8))
