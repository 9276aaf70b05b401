"""The z-step: every block's cut is the exact minimum, energies are true and never rise, ties keep z."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import (
    all_assignments,
    direct_energy,
    lowest_energy_by_enumeration,
    lowest_energy_by_flow,
    pull_from_outside,
)

from ilhash import _core
from ilhash.graph import coupling_graph, graph_couplings
from ilhash.vectors import nearest_other_rows
from ilhash.zstep import MAX_SWEEPS, minimize, random_start

SCALE = 1024  # real weights in tests are multiples of 1 / SCALE: exact, and whole numbers for the oracle


def symmetric(rng, n, density, low, high, scale=1):
    """Random symmetric couplings: whole numbers in [low, high] (0 left out) over scale."""
    upper = np.triu(rng.random((n, n)) < density, 1) * rng.integers(low, high + 1, (n, n))
    return (upper + upper.T) / scale


def real_field(rng, n, size=20):
    return rng.integers(-size * SCALE, size * SCALE + 1, n) / SCALE


def knn_arcs(rng, n, k):
    nearest = nearest_other_rows(rng.standard_normal((n, 3)).astype(np.float32), k)
    W = np.zeros((n, n))
    W[np.repeat(np.arange(n), k), nearest.ravel()] = 1.0
    return np.maximum(W, W.T), nearest


# -------------------------------------------------------------------------------- one block


def grid(rng):
    height, width = rng.integers(2, 9, 2)
    n = int(height * width)
    number = np.arange(n).reshape(height, width)
    W = np.zeros((n, n))
    for first, second in ((number[:, :-1], number[:, 1:]), (number[:-1], number[1:])):
        W[first.ravel(), second.ravel()] = rng.integers(1, 8, first.size)
    return coupling_graph(scipy.sparse.csr_array(W + W.T)), rng.integers(-9, 10, n).astype(float)


def sparse(rng):
    n = int(rng.integers(1, 70))
    W = symmetric(rng, n, 3.0 / max(n, 4), 1, 9)
    return coupling_graph(scipy.sparse.csr_array(W)), rng.integers(-9, 10, n).astype(float)


def dense_blocks(rng):
    sizes = rng.integers(1, 16, rng.integers(1, 5))
    W = scipy.sparse.block_diag([symmetric(rng, int(s), 0.9, 1, 3) for s in sizes]).toarray()
    bridges = symmetric(rng, len(W), 0.02, 1, 5)
    return coupling_graph(scipy.sparse.csr_array(W + bridges)), rng.integers(-12, 13, len(W)).astype(float)


def one_class(rng):
    n, similar = int(rng.integers(1, 60)), int(rng.integers(0, 8))
    graph = _core.SignedGraph.from_classes([n], similar, 0, int(rng.integers(1 << 40)))
    return graph, rng.integers(-5, 6, n).astype(float)


def nearest_neighbours(rng):
    n = int(rng.integers(3, 60))
    _, nearest = knn_arcs(rng, n, int(rng.integers(1, min(n, 6))))
    graph = _core.SignedGraph.from_neighbours(nearest, 0, 0)
    return graph, rng.integers(-4, 5, n).astype(float)


def real_weights(rng):
    n = int(rng.integers(2, 50))
    W = symmetric(rng, n, rng.uniform(0.05, 0.6), 1, 4 * SCALE, SCALE)
    return coupling_graph(scipy.sparse.csr_array(W)), real_field(rng, n)


def chain_of_bottlenecks(rng):
    """Long ways from excess to deficit: many waves, many residual arcs."""
    n = int(rng.integers(4, 80))
    W = np.zeros((n, n))
    W[np.arange(n - 1), np.arange(1, n)] = rng.integers(1, 12, n - 1)
    shortcuts = symmetric(rng, n, 1.0 / n, 1, 4)
    field = np.zeros(n)
    field[: n // 4], field[-(n // 4) :] = rng.integers(1, 12, n // 4), -rng.integers(1, 12, n // 4)
    return coupling_graph(scipy.sparse.csr_array(W + W.T + shortcuts)), field


ONE_BLOCK = [grid, sparse, dense_blocks, one_class, nearest_neighbours, real_weights, chain_of_bottlenecks]


def check_attracting_graphs(kind, count):
    """Without repelling arcs the whole problem is one cut: the result is the global minimum."""
    for case in range(count):
        rng = np.random.default_rng([case, ONE_BLOCK.index(kind)])
        graph, field = kind(rng)
        W = graph_couplings(graph)
        start = random_start(graph.n_points, case)
        found = minimize(graph, start, seed=case, field=field)
        lowest = lowest_energy_by_flow(W, field, SCALE if kind is real_weights else 1)
        assert direct_energy(W, found.z, field) == lowest, (kind.__name__, case)
        assert found.energies[-1] == lowest, (kind.__name__, case)
        assert found.energies[0] == direct_energy(W, start, field), (kind.__name__, case)
        assert found.converged


@pytest.mark.parametrize("kind", ONE_BLOCK, ids=lambda kind: kind.__name__)
def test_one_block_equals_scipy_minimum_cut(kind):
    check_attracting_graphs(kind, 9)  # 7 kinds x 9 = 63 graphs


@pytest.mark.slow
@pytest.mark.parametrize("kind", ONE_BLOCK, ids=lambda kind: kind.__name__)
def test_one_block_equals_scipy_minimum_cut_on_a_thousand_graphs(kind):
    check_attracting_graphs(kind, 150)  # 7 kinds x 150 = 1,050 graphs


# -------------------------------------------------------------------------------- blocks in turn


def classes(rng):
    sizes = rng.integers(1, 14, rng.integers(2, 6)).tolist()
    similar, dissimilar = (int(k) for k in rng.integers(1, 7, 2))
    graph = _core.SignedGraph.from_classes(sizes, similar, dissimilar, int(rng.integers(1 << 40)))
    return graph, np.repeat(np.arange(len(sizes)), sizes)


def signed_neighbours(rng):
    n = int(rng.integers(8, 50))
    _, nearest = knn_arcs(rng, n, int(rng.integers(1, 6)))
    graph = _core.SignedGraph.from_neighbours(nearest, int(rng.integers(1, 6)), int(rng.integers(1 << 40)))
    return graph, graph.grown_blocks()


def label_sets(rng):
    indicator = scipy.sparse.csr_array((rng.random((int(rng.integers(4, 40)), 5)) < 0.3).astype(np.int8))
    graph = _core.SignedGraph.from_label_sets(
        indicator.indptr.astype(np.uint32), indicator.indices.astype(np.uint32), 5, 4, 4, int(rng.integers(999))
    )
    return graph, graph.grown_blocks()


def signed_integers(rng):
    n = int(rng.integers(2, 45))
    graph = coupling_graph(scipy.sparse.csr_array(symmetric(rng, n, rng.uniform(0.05, 0.5), -6, 12)))
    return graph, graph.grown_blocks()


def signed_reals(rng):
    n = int(rng.integers(2, 45))
    graph = coupling_graph(scipy.sparse.csr_array(symmetric(rng, n, 0.3, -2 * SCALE, 4 * SCALE, SCALE)))
    return graph, graph.grown_blocks()


SIGNED = [classes, signed_neighbours, label_sets, signed_integers, signed_reals]


def assert_every_block_is_optimal(W, blocks, z, field=None):
    """No block can be improved while all others stay: each is the exact minimum given the rest."""
    for block in np.unique(blocks):
        inside = blocks == block
        own = W[inside][:, inside]
        pull = pull_from_outside(W, z, inside, field)
        assert direct_energy(own, z[inside], pull) == lowest_energy_by_flow(own, pull, SCALE)


def check_signed_graphs(kind, with_field, count):
    for case in range(count):
        rng = np.random.default_rng([case, SIGNED.index(kind), with_field])
        graph, blocks = kind(rng)
        W = graph_couplings(graph)
        field = real_field(rng, graph.n_points, 2) if with_field else None
        start = random_start(graph.n_points, case)
        found = minimize(graph, start, seed=case, field=field)
        assert found.converged
        assert found.n_blocks == len(np.unique(blocks))
        assert_every_block_is_optimal(W, blocks, found.z, field)
        assert found.energies[0] == direct_energy(W, start, field)
        assert found.energies[-1] == direct_energy(W, found.z, field)
        assert (np.diff(found.energies) <= 0).all()


@pytest.mark.parametrize("with_field", [False, True], ids=["no_field", "field"])
@pytest.mark.parametrize("kind", SIGNED, ids=lambda kind: kind.__name__)
def test_converged_blocks_are_minimum_cuts_given_the_rest(kind, with_field):
    check_signed_graphs(kind, with_field, 6)


@pytest.mark.slow
@pytest.mark.parametrize("with_field", [False, True], ids=["no_field", "field"])
@pytest.mark.parametrize("kind", SIGNED, ids=lambda kind: kind.__name__)
def test_converged_blocks_are_minimum_cuts_given_the_rest_on_a_thousand_graphs(kind, with_field):
    check_signed_graphs(kind, with_field, 100)


def test_first_sweep_in_fixed_order_cuts_the_last_block_exactly():
    for case in range(20):
        rng = np.random.default_rng(case)
        graph, blocks = classes(rng)
        W = graph_couplings(graph)
        z = minimize(graph, random_start(len(blocks), case), block_order="fixed", max_sweeps=1).z
        last = blocks == blocks.max()
        own, pull = W[last][:, last], pull_from_outside(W, z, last)
        assert direct_energy(own, z[last], pull) == lowest_energy_by_flow(own, pull)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 12), st.floats(0.0, 1.0), st.booleans(), st.integers(0, 2**32))
def test_without_repelling_arcs_the_result_is_the_global_minimum_by_enumeration(n, density, real, seed):
    rng = np.random.default_rng(seed)
    W = symmetric(rng, n, density, 1, 5 * SCALE if real else 5, SCALE if real else 1)
    field = real_field(rng, n, 6)
    found = minimize(coupling_graph(scipy.sparse.csr_array(W)), random_start(n, seed), field=field)
    assert found.energies[-1] == lowest_energy_by_enumeration(W, field)


def test_sixteen_points_reach_the_global_minimum_by_enumeration():
    rng = np.random.default_rng(16)
    W, field = symmetric(rng, 16, 0.4, 1, 6), rng.integers(-9, 10, 16).astype(float)
    found = minimize(coupling_graph(scipy.sparse.csr_array(W)), random_start(16, 0), field=field)
    assert found.energies[-1] == lowest_energy_by_enumeration(W, field)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 10), st.floats(0.1, 1.0), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_alternation_ends_where_no_assignment_of_one_block_is_better(n, density, with_field, ordered, seed):
    rng = np.random.default_rng(seed)
    W = symmetric(rng, n, density, -4, 6)
    field = real_field(rng, n, 3) if with_field else None
    graph = coupling_graph(scipy.sparse.csr_array(W))
    order = "fixed" if ordered else "random"
    found = minimize(graph, random_start(n, seed), seed=seed, field=field, block_order=order)
    assert found.converged
    blocks = graph.grown_blocks()
    for block in np.unique(blocks):
        inside = np.flatnonzero(blocks == block)
        for bits in all_assignments(len(inside)):
            other = found.z.copy()
            other[inside] = bits
            assert direct_energy(W, other, field) >= found.energies[-1]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 40), st.floats(0.02, 0.8), st.booleans(), st.integers(0, 2**32))
def test_energies_never_rise_and_equal_the_definition_for_any_real_weights(n, density, with_field, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.standard_normal((n, n)) * 10.0 ** rng.integers(-6, 7, (n, n))
    upper = np.triu(rng.random((n, n)) < density, 1) * sizes
    W = upper + upper.T
    field = rng.standard_normal(n) if with_field else None
    start = random_start(n, seed)
    found = minimize(coupling_graph(scipy.sparse.csr_array(W)), start, seed=seed, field=field)
    size = max(np.abs(W).sum() + (0.0 if field is None else 2 * np.abs(field).sum()), 1e-300)
    assert (np.diff(found.energies) <= 0).all()
    assert abs(found.energies[0] - direct_energy(W, start, field)) <= 1e-12 * size
    assert abs(found.energies[-1] - direct_energy(W, found.z, field)) <= 1e-12 * size
    assert found.converged


def test_energy_method_of_the_graph_equals_the_definition():
    for case, kind in enumerate(SIGNED):
        graph, _ = kind(np.random.default_rng(case))
        z = random_start(graph.n_points, case)
        assert graph.energy(z) == direct_energy(graph_couplings(graph), z)


def test_mean_pull_is_the_mean_sum_of_absolute_couplings():
    for case, kind in enumerate(SIGNED):
        graph, _ = kind(np.random.default_rng(case))
        total = abs(graph_couplings(graph)).sum()
        assert graph.mean_pull() == pytest.approx(total / graph.n_points, rel=1e-12)


@pytest.mark.parametrize("exponent", [-900, -300, -40, 40, 300, 900])
def test_scaling_all_weights_by_a_power_of_two_changes_nothing_but_the_energies(exponent):
    rng = np.random.default_rng(5)
    W, field = symmetric(rng, 30, 0.3, -4, 6), rng.integers(-3, 4, 30).astype(float)
    start, scale = random_start(30, 1), 2.0**exponent
    plain = minimize(coupling_graph(scipy.sparse.csr_array(W)), start, field=field)
    scaled = minimize(coupling_graph(scipy.sparse.csr_array(W * scale)), start, field=field * scale)
    assert np.array_equal(plain.z, scaled.z)
    assert np.array_equal(plain.energies * scale, scaled.energies)


def test_weights_of_very_different_size_do_not_disturb_the_large_ones():
    W = np.zeros((4, 4))
    for i, j, w in ((0, 1, 1e12), (1, 2, -1e12), (2, 3, 1e-12)):
        W[i, j] = W[j, i] = w
    found = minimize(coupling_graph(scipy.sparse.csr_array(W)), np.array([1, 1, 1, -1], np.int8))
    assert found.z[0] == found.z[1] == -found.z[2]
    assert found.converged


# -------------------------------------------------------------------------------- ties and order


def test_an_isolated_point_keeps_its_bit():
    W = np.zeros((5, 5))
    W[0, 1] = W[1, 0] = -1.0
    W[2, 3] = W[3, 2] = 1.0
    graph = coupling_graph(scipy.sparse.csr_array(W))
    for start in all_assignments(5):
        assert minimize(graph, start).z[4] == start[4]


def test_an_isolated_class_of_one_keeps_its_bit():
    graph = _core.SignedGraph.from_classes([1, 4, 4], 3, 0, 0)
    for seed in range(10):
        start = random_start(9, seed)
        assert minimize(graph, start, seed=seed).z[0] == start[0]


def test_a_block_without_pull_that_already_agrees_keeps_its_bits():
    graph = _core.SignedGraph.from_classes([6, 6], 3, 0, 0)
    for left, right in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        start = np.repeat(np.array([left, right], np.int8), 6)
        found = minimize(graph, start)
        assert np.array_equal(found.z, start)
        assert found.sweeps == 1
        assert found.converged


def test_zero_field_changes_nothing():
    graph = _core.SignedGraph.from_classes([6, 6], 3, 0, 0)
    start = np.repeat(np.array([1, -1], np.int8), 6)
    assert np.array_equal(minimize(graph, start, field=np.zeros(12)).z, start)


def test_a_result_is_its_own_result():
    for case in range(30):
        graph, _ = SIGNED[case % len(SIGNED)](np.random.default_rng(case))
        first = minimize(graph, random_start(graph.n_points, case), seed=case)
        again = minimize(graph, first.z, seed=case + 1)
        assert np.array_equal(first.z, again.z)
        assert again.energies.tolist() == [first.energies[-1]] * 2


def test_two_optima_of_a_balanced_pull_keep_the_start():
    # One free point between two that repel each other equally: its two values cost the same.
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 0] = W[1, 2] = W[2, 1] = -1.0
    W[0, 2] = W[2, 0] = -5.0
    for middle in (-1, 1):
        start = np.array([1, middle, -1], np.int8)
        assert np.array_equal(minimize(coupling_graph(scipy.sparse.csr_array(W)), start).z, start)


def test_tied_points_keep_their_bits_while_others_of_their_block_improve():
    # No arc joins points of one class here: each point of the first block decides on its own, some of them tied.
    graph = _core.SignedGraph.from_classes([6, 6], 0, 2, 3)
    W = graph_couplings(graph).toarray()
    first = np.arange(12) < 6
    for seed in range(50):
        start = random_start(12, seed)
        z = minimize(graph, start, max_sweeps=1, block_order="fixed").z
        tied = first & (W @ np.where(first, 0, start) == 0)
        assert np.array_equal(z[tied], start[tied]), seed


def test_random_order_differs_with_the_seed_and_fixed_order_does_not():
    rng = np.random.default_rng(2)
    _, nearest = knn_arcs(rng, 200, 5)
    graph = _core.SignedGraph.from_neighbours(nearest, 5, 0)
    start = random_start(200, 0)
    shuffled = {minimize(graph, start, seed=seed).z.tobytes() for seed in range(8)}
    fixed = {minimize(graph, start, seed=seed, block_order="fixed").z.tobytes() for seed in range(8)}
    assert len(shuffled) > 1
    assert len(fixed) == 1


def test_same_seed_same_result():
    rng = np.random.default_rng(3)
    _, nearest = knn_arcs(rng, 300, 6)
    start = random_start(300, 1)
    results = []
    for _ in range(3):
        graph = _core.SignedGraph.from_neighbours(nearest, 6, 7)
        found = minimize(graph, start, seed=11)
        results.append((found.z.tobytes(), found.energies.tobytes(), found.n_blocks, found.converged))
    assert len(set(results)) == 1


def test_random_start_is_seeded_two_sided_and_int8():
    z = random_start(1000, 4)
    assert z.dtype == np.int8
    assert set(z.tolist()) == {-1, 1}
    assert abs(int(z.sum())) < 150
    assert np.array_equal(z, random_start(1000, 4))
    assert not np.array_equal(z, random_start(1000, 5))


def test_sweeps_stop_at_the_limit_and_say_so():
    rng = np.random.default_rng(4)
    _, nearest = knn_arcs(rng, 300, 6)
    graph = _core.SignedGraph.from_neighbours(nearest, 6, 7)
    start = random_start(300, 1)
    whole = minimize(graph, start, seed=2)
    assert whole.converged
    assert whole.energies[-1] == whole.energies[-2]  # the idle sweep
    for limit in range(whole.sweeps + 3):
        part = minimize(graph, start, seed=2, max_sweeps=limit)
        assert part.sweeps == min(limit, whole.sweeps)
        assert part.converged == (limit >= whole.sweeps)
        assert part.energies.tolist() == whole.energies[: part.sweeps + 1].tolist()
        assert part.energies[-1] == graph.energy(part.z)


def test_no_sweep_leaves_the_start():
    graph = _core.SignedGraph.from_classes([4, 4], 2, 2, 0)
    start = random_start(8, 0)
    found = minimize(graph, start, max_sweeps=0)
    assert np.array_equal(found.z, start)
    assert not found.converged
    assert found.sweeps == 0


def test_nearest_neighbour_graphs_need_more_than_two_sweeps_and_label_graphs_few():
    rng = np.random.default_rng(6)
    _, nearest = knn_arcs(rng, 600, 8)
    neighbours = _core.SignedGraph.from_neighbours(nearest, 8, 1)
    assert 2 < minimize(neighbours, random_start(600, 0)).sweeps < MAX_SWEEPS
    labels = _core.SignedGraph.from_classes([60] * 10, 50, 50, 1)
    found = minimize(labels, random_start(600, 0))
    assert found.converged
    assert found.sweeps <= 4
    assert (np.abs(found.z.reshape(10, 60).sum(axis=1)) == 60).all()  # every class pure
    assert abs(int(found.z.sum())) == 0  # five classes on either side


# -------------------------------------------------------------------------------- blocks


@pytest.mark.parametrize("kind", [*SIGNED, *ONE_BLOCK], ids=lambda kind: kind.__name__)
def test_grown_blocks_hold_no_repelling_arc_and_all_points(kind):
    for case in range(15):
        graph, _ = kind(np.random.default_rng(case))
        blocks = graph.grown_blocks()
        assert len(blocks) == graph.n_points
        assert set(blocks.tolist()) == set(range(int(blocks.max()) + 1))
        source, target, coupling = graph.triplets()
        repels = coupling < 0
        assert (blocks[source[repels]] != blocks[target[repels]]).all()


def test_grown_blocks_are_connected_by_attracting_arcs():
    for case in range(10):
        graph, blocks = signed_neighbours(np.random.default_rng(case))
        W = graph_couplings(graph)
        for block in np.unique(blocks):
            inside = blocks == block
            own = W[inside][:, inside]
            assert scipy.sparse.csgraph.connected_components(own, directed=False)[0] == 1


def test_grown_blocks_are_the_classes_of_a_label_graph():
    for seed in range(10):
        sizes = [40, 55, 30, 70]
        graph = _core.SignedGraph.from_classes(sizes, 20, 20, seed)
        assert np.array_equal(graph.grown_blocks(), np.repeat(np.arange(4), sizes))


def test_without_repelling_arcs_blocks_are_connected_components():
    rng = np.random.default_rng(0)
    W = scipy.sparse.csr_array(symmetric(rng, 50, 0.03, 1, 1))
    blocks = coupling_graph(W).grown_blocks()
    count, component = scipy.sparse.csgraph.connected_components(W, directed=False)
    assert len(set(zip(blocks.tolist(), component.tolist(), strict=True))) == count == blocks.max() + 1


# -------------------------------------------------------------------------------- doors


def test_inputs_are_never_written():
    rng = np.random.default_rng(1)
    W = scipy.sparse.csr_array(symmetric(rng, 20, 0.4, -3, 5))
    W.data[::7] = 0.0  # explicit zeros, which the graph leaves out
    W = scipy.sparse.csr_array((W + W.T) / 2)
    W.data[W.data == 0] = 0.0
    before = [part.copy() for part in (W.data, W.indices, W.indptr)]
    graph = coupling_graph(W)
    start, field = random_start(20, 0), rng.standard_normal(20)
    start.flags.writeable = field.flags.writeable = False
    kept, kept_field = start.copy(), field.copy()
    found = minimize(graph, start, field=field)
    assert np.array_equal(start, kept)
    assert np.array_equal(field, kept_field)
    assert not np.shares_memory(found.z, start)
    for part, copy in zip((W.data, W.indices, W.indptr), before, strict=True):
        assert np.array_equal(part, copy)
    assert np.array_equal(graph_couplings(graph).toarray(), W.toarray())


def test_a_strided_field_and_start_are_read_rightly():
    rng = np.random.default_rng(1)
    graph = coupling_graph(scipy.sparse.csr_array(symmetric(rng, 20, 0.4, -3, 5)))
    wide_field, wide_start = rng.standard_normal(40), random_start(40, 1)
    strided = minimize(graph, wide_start[::2], field=wide_field[::2])
    plain = minimize(graph, wide_start[::2].copy(), field=wide_field[::2].copy())
    assert np.array_equal(strided.z, plain.z)
    assert np.array_equal(strided.energies, plain.energies)


@pytest.mark.parametrize("length", [0, 7, 9])
def test_a_start_of_the_wrong_length_is_refused(length):
    graph = _core.SignedGraph.from_classes([4, 4], 2, 2, 0)
    with pytest.raises(ValueError, match="start must have one value per point"):
        minimize(graph, np.ones(length, np.int8))


@pytest.mark.parametrize("value", [0, 2, -2, 127, -128])
def test_a_start_of_other_values_is_refused(value):
    graph = _core.SignedGraph.from_classes([4, 4], 2, 2, 0)
    start = np.ones(8, np.int8)
    start[5] = value
    with pytest.raises(ValueError, match=r"-1 and \+1"):
        minimize(graph, start)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_field_that_is_not_finite_is_refused(value):
    graph = _core.SignedGraph.from_classes([4, 4], 2, 2, 0)
    field = np.zeros(8)
    field[3] = value
    with pytest.raises(ValueError, match="field must be finite"):
        minimize(graph, np.ones(8, np.int8), field=field)


def test_a_field_of_the_wrong_length_is_refused():
    graph = _core.SignedGraph.from_classes([4, 4], 2, 2, 0)
    with pytest.raises(ValueError, match="field must have one value per point"):
        minimize(graph, np.ones(8, np.int8), field=np.zeros(7))


def test_energy_of_a_wrong_length_is_refused():
    graph = _core.SignedGraph.from_classes([4, 4], 2, 2, 0)
    with pytest.raises(ValueError, match="one value per point"):
        graph.energy(np.ones(7, np.int8))


def test_a_graph_of_one_point_works():
    graph = coupling_graph(scipy.sparse.csr_array((1, 1)))
    for bit in (-1, 1):
        found = minimize(graph, np.array([bit], np.int8))
        assert found.z.tolist() == [bit]
        assert minimize(graph, np.array([bit], np.int8), field=np.array([-0.5])).z.tolist() == [-1]


def test_a_pull_outweighs_a_coupling_exactly_when_it_is_larger():
    graph = coupling_graph(scipy.sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])))
    start = np.array([1, 1], np.int8)
    assert minimize(graph, start, field=np.array([3.0, -0.5])).z.tolist() == [1, 1]
    assert minimize(graph, start, field=np.array([3.0, -1.0])).z.tolist() == [1, 1]  # a tie keeps the start
    assert minimize(graph, start, field=np.array([3.0, -1.5])).z.tolist() == [1, -1]


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e308, 1.7e308])
def test_weights_at_the_ends_of_the_range_are_handled_or_refused(weight):
    W = np.array([[0.0, weight, 0.0], [weight, 0.0, -weight], [0.0, -weight, 0.0]])
    try:
        found = minimize(coupling_graph(scipy.sparse.csr_array(W)), np.array([1, -1, -1], np.int8))
    except ValueError:
        return
    assert np.isfinite(found.energies).all()
    assert found.z[0] == found.z[1] == -found.z[2]


def test_a_matrix_that_is_not_symmetric_never_reaches_the_flow():
    for W in ([[0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [2.0, 0.0]]):
        with pytest.raises(ValueError, match="symmetric"):
            coupling_graph(scipy.sparse.csr_array(np.array(W)))


def test_an_unknown_order_of_blocks_is_refused():
    graph = _core.SignedGraph.from_classes([3, 3], 1, 1, 0)
    with pytest.raises(ValueError, match="'random', 'fixed'"):
        minimize(graph, random_start(6, 0), block_order="sorted")
