"""What differs between bits comes from (random_state, bit) alone, letter by letter."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles

from ilhash import _core
from ilhash.affinity import affinity_from_pairs
from ilhash.diversity import ClassOrder, NeighborhoodOrder, Plan, UniformOrder, seed_for

SEEDS = ("start", "graph", "order", "centers", "classifier")


def plan(letters="t", **changes):
    settings = {
        "random_state": 0,
        "letters": letters,
        "sampling": "disjoint",
        "n_train": 100,
        "n_features": 20,
        "n_features_drawn": 8,
        "similar": 5,
        "dissimilar": 6,
        "block_order": "random",
        "row_order": UniformOrder(1050),
    }
    return Plan(**{**settings, **changes})


def different(draws, name):
    """How many different values a field has over some draws."""
    values = [getattr(draw, name) for draw in draws]
    return len({value.tobytes() if isinstance(value, np.ndarray) else value for value in values})


# -------------------------------------------------------------------------------- permutations


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(0, 2**64 - 1), st.data())
def test_permutation_equals_its_python_twin(n, seed, data):
    start = data.draw(st.integers(0, n))
    count = data.draw(st.integers(0, min(n - start, 40)))
    assert _core.permuted(n, seed, start, count).tolist() == oracles.permuted(n, seed, start, count)


@pytest.mark.parametrize("n", [2**16, 2**31 + 11, 2**32, 10**12, 2**61 + 5, 2**62, 2**63 - 1])
def test_permutation_of_very_many_equals_its_twin(n):
    for start in (0, 12345, n - 20):
        found = _core.permuted(n, 7, start, 20)
        assert found.tolist() == oracles.permuted(n, 7, start, 20)
        assert ((found >= 0) & (found < n)).all()


def test_permutation_is_a_bijection_for_every_small_size():
    for n in [*range(70), 255, 256, 257, 1023, 1024, 1025, 4095, 4097, 65537]:
        for seed in (0, 1, 2**63):
            assert np.array_equal(np.sort(_core.permuted(n, seed, 0, n)), np.arange(n))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 500), st.integers(0, 2**64 - 1), st.data())
def test_any_slice_is_that_part_of_the_whole(n, seed, data):
    start = data.draw(st.integers(0, n))
    count = data.draw(st.integers(0, n - start))
    whole = _core.permuted(n, seed, 0, n)
    assert np.array_equal(_core.permuted(n, seed, start, count), whole[start : start + count])


@pytest.mark.parametrize(("start", "count"), [(0, 11), (10, 1), (11, 0), (5, 6), (2**63, 2**63)])
def test_a_slice_beyond_the_end_is_refused(start, count):
    with pytest.raises(ValueError, match="must not exceed n"):
        _core.permuted(10, 0, start, count)


def test_every_order_of_four_comes_about_equally_often():
    counts = {}
    for seed in range(6000):
        order = tuple(_core.permuted(4, seed, 0, 4).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert scipy.stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_every_entry_is_uniform_over_seeds():
    n, repeats = 10, 4000
    table = np.zeros((n, n))
    for seed in range(repeats):
        table[np.arange(n), _core.permuted(n, seed, 0, n)] += 1
    statistic = ((table - repeats / n) ** 2 / (repeats / n)).sum()
    assert statistic < scipy.stats.chi2.ppf(0.9999, (n - 1) ** 2)


# -------------------------------------------------------------------------------- seeds


def test_seeds_differ_by_state_stream_bit_and_attempt_and_are_64_bits():
    streams = ("rows", "features", "start", "graph", "order", "centers", "classifier", "neighbours", "sample")
    seeds = {
        seed_for(state, stream, bit, attempt)
        for state in (0, 1, 2**32 + 1)
        for stream in streams
        for bit in (None, 0, 1, 200)
        for attempt in range(3)
    }
    assert len(seeds) == 3 * 9 * 4 * 3
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert max(seeds) > 2**63


def test_seeds_never_change():
    # Models are rebuilt from these numbers: a change here is a change of every model.
    assert seed_for(0, "rows") == seed_for(0, "rows", None, 0)
    expected = int(np.random.SeedSequence([3, 4, 8, 1]).generate_state(1, np.uint64)[0])
    assert seed_for(3, "graph", 7, 1) == expected
    assert [_core.permuted(10, 0, 0, 10).tolist()] == [oracles.permuted(10, 0, 0, 10)]


# -------------------------------------------------------------------------------- rows


def test_disjoint_slices_are_disjoint_and_a_fresh_permutation_begins_when_they_are_used_up():
    p = plan()
    assert p.n_disjoint == 10
    rows = [p.draw(bit).rows for bit in range(25)]
    for turn in (rows[:10], rows[10:20], rows[20:]):
        together = np.concatenate(turn)
        assert len(np.unique(together)) == len(together)
    assert all(len(own) == 100 for own in rows)
    # The remainder of 50 rows is dropped: the second round has its own order.
    assert set(rows[10].tolist()) not in [set(own.tolist()) for own in rows[:10]]
    first, second = (set(np.concatenate(turn).tolist()) for turn in (rows[:10], rows[10:20]))
    assert len(first) == len(second) == 1000
    assert first != second


def test_disjoint_slices_are_consecutive_parts_of_one_permutation():
    p = plan(random_state=5)
    order = _core.permuted(1050, seed_for(5, "rows", None, 0), 0, 1000)
    assert np.array_equal(np.concatenate([p.draw(bit).rows for bit in range(10)]), order)


def test_one_set_that_holds_everything_is_reordered_for_every_bit():
    p = plan(n_train=50, row_order=UniformOrder(50))
    rows = [p.draw(bit).rows for bit in range(3)]
    assert all(np.array_equal(np.sort(own), np.arange(50)) for own in rows)
    assert different([p.draw(bit) for bit in range(3)], "rows") == 3


def test_random_sets_are_without_repetition_and_overlap_between_bits():
    p = plan(sampling="random", n_train=500)
    rows = [p.draw(bit).rows for bit in range(6)]
    assert all(len(np.unique(own)) == 500 for own in rows)
    assert different([p.draw(bit) for bit in range(6)], "rows") == 6
    assert set(rows[0].tolist()) & set(rows[1].tolist())


def test_bootstrap_sets_repeat_about_a_third():
    p = plan(sampling="bootstrap", n_train=1000, row_order=UniformOrder(1000))
    for bit in range(3):
        rows = p.draw(bit).rows
        assert rows.min() >= 0
        assert rows.max() < 1000
        assert abs(len(np.unique(rows)) / 1000 - (1 - np.exp(-1))) < 0.06
    assert different([p.draw(bit) for bit in range(3)], "rows") == 3


@pytest.mark.parametrize("sampling", ["disjoint", "random", "bootstrap"])
def test_only_points_of_the_pool_are_drawn(sampling):
    pool = np.arange(3, 900, 3)
    p = plan(sampling=sampling, n_train=60, row_order=UniformOrder(900, pool))
    assert p.row_order.size == len(pool)
    for bit in range(12):
        assert np.isin(p.draw(bit).rows, pool).all()


def test_another_attempt_draws_other_rows_start_and_graph():
    p = plan("itf")
    first, second = p.draw(3), p.draw(3, attempt=1)
    for name in ("rows", "start", "graph", "order"):
        assert different([first, second], name) == 2
    assert different([first, second], "features") == 1
    assert len(np.unique(second.rows)) == 100


# -------------------------------------------------------------------------------- letters


@pytest.mark.parametrize("letters", ["", "i", "t", "f", "it", "if", "tf", "itf"])
def test_only_what_a_letter_names_differs_between_bits(letters):
    draws = [plan(letters).draw(bit) for bit in range(6)]
    assert different(draws, "rows") == (6 if "t" in letters else 1)
    assert different(draws, "graph") == (6 if "t" in letters else 1)
    assert different(draws, "start") == (6 if "i" in letters else 1)
    assert different(draws, "features") == (6 if "f" in letters else 1)
    assert different(draws, "order") == 6  # the order of the blocks has no letter
    assert different(draws, "centers") == 6
    assert different(draws, "classifier") == 1
    assert all((draw.features is None) == ("f" not in letters) for draw in draws)


@pytest.mark.parametrize("letters", ["", "itf"])
def test_a_fixed_order_of_blocks_is_the_same_for_all_bits(letters):
    draws = [plan(letters, block_order="fixed").draw(bit) for bit in range(4)]
    assert different(draws, "order") == 1


@pytest.mark.parametrize("sampling", ["disjoint", "random", "bootstrap"])
def test_without_the_letter_t_sampling_changes_nothing(sampling):
    draws = [plan("i", sampling=sampling).draw(bit) for bit in range(3)]
    assert different(draws, "rows") == 1
    assert np.array_equal(draws[0].rows, plan("i").draw(9).rows)
    assert len(np.unique(draws[0].rows)) == 100


def test_letters_do_not_disturb_one_another():
    alone, together = plan("i").draw(2), plan("itf").draw(2)
    assert alone.start == together.start
    assert np.array_equal(plan("f").draw(2).features, together.features)
    assert np.array_equal(plan("t").draw(2).rows, together.rows)
    assert plan("t").draw(2).graph == together.graph


def test_another_random_state_changes_everything():
    draws = [plan("itf", random_state=state).draw(0) for state in range(4)]
    for name in ("rows", "features", *SEEDS):
        assert different(draws, name) == 4


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["", "i", "t", "f", "itf"]), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_the_same_plan_draws_the_same_for_a_bit_in_any_order(letters, bit, state):
    p = plan(letters, random_state=state, similar=(2, 9))
    first = p.draw(bit)
    p.draw(bit + 1)
    again = dataclasses.replace(p).draw(bit)
    for field in dataclasses.fields(first):
        assert np.array_equal(getattr(first, field.name), getattr(again, field.name)), field.name


def test_draws_are_the_same_in_another_process():
    script = (
        "from ilhash.diversity import Plan, UniformOrder\n"
        "p = Plan(0, 'itf', 'disjoint', 100, 20, 8, 5, 6, 'random', UniformOrder(1050))\n"
        "d = p.draw(7)\n"
        "print(d.rows.tolist(), d.features.tolist(), d.start, d.graph, d.order, d.centers, d.classifier)\n"
    )
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    d = plan("itf").draw(7)
    own = f"{d.rows.tolist()} {d.features.tolist()} {d.start} {d.graph} {d.order} {d.centers} {d.classifier}"
    assert printed.strip() == own


# -------------------------------------------------------------------------------- features, neighbours


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200), st.data())
def test_feature_subsets_are_sorted_and_distinct(n_features, data):
    d = data.draw(st.integers(1, n_features))
    p = plan("f", n_features=n_features, n_features_drawn=d)
    features = p.draw(data.draw(st.integers(0, 50))).features
    if d == n_features:
        assert features is None
        return
    assert features.dtype == np.int32
    assert len(features) == d
    assert (np.diff(features) > 0).all()
    assert features[0] >= 0
    assert features[-1] < n_features


def test_every_feature_is_drawn_about_equally_often():
    p = plan("f")
    counts = np.zeros(20)
    for bit in range(1000):
        counts[p.draw(bit).features] += 1
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def test_ranges_of_neighbours_are_drawn_per_bit_with_their_own_graph():
    p = plan("i", similar=(3, 7), dissimilar=4)
    draws = [p.draw(bit) for bit in range(200)]
    assert {draw.similar for draw in draws} == {3, 4, 5, 6, 7}
    assert {draw.dissimilar for draw in draws} == {4}
    assert different(draws, "graph") == 200
    assert different(draws, "rows") == 1
    other = [plan("i", similar=3, dissimilar=[2, 3]).draw(bit) for bit in range(50)]
    assert {draw.dissimilar for draw in other} == {2, 3}
    assert different(other, "graph") == 50


def test_both_ranges_are_drawn_independently():
    draws = [plan("t", similar=(1, 10), dissimilar=(1, 10)).draw(bit) for bit in range(100)]
    assert 0 < sum(draw.similar == draw.dissimilar for draw in draws) < 40


# -------------------------------------------------------------------------------- neighbourhoods


def random_graph(n, m, seed):
    rng = np.random.default_rng(seed)
    index = np.unique(np.sort(rng.integers(0, n, (m, 2)), axis=1), axis=0)
    index = index[index[:, 0] != index[:, 1]]
    return affinity_from_pairs((index, np.where(np.arange(len(index)) % 2, 1.0, -1.0)), n).matrix


def order_by_hand(matrix, seed):
    """A point of the permutation, then its neighbours in order, each once."""
    out, seen = [], set()
    for centre in oracles.permuted(matrix.shape[0], seed, 0, matrix.shape[0]):
        neighbours = matrix.indices[matrix.indptr[centre] : matrix.indptr[centre + 1]].tolist()
        for point in [centre, *neighbours] if neighbours else []:
            if point not in seen:
                seen.add(point)
                out.append(point)
    return out


def rows_of(matrix):
    return NeighborhoodOrder(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))


@settings(deadline=None, max_examples=30)
@given(st.integers(4, 80), st.integers(4, 120), st.integers(0, 2**32))
def test_neighbourhood_order_equals_its_twin_and_holds_every_connected_point_once(n, m, seed):
    try:
        matrix = random_graph(n, m, seed)
    except ValueError:
        return  # a draw without two kinds of pairs
    source = rows_of(matrix)
    connected = np.flatnonzero(np.diff(matrix.indptr))
    assert source.size == len(connected)
    whole = source.take(seed, 0, source.size)
    assert whole.tolist() == order_by_hand(matrix, seed)
    assert np.array_equal(np.sort(whole), connected)
    assert np.array_equal(source.take(seed, 3, source.size - 3), whole[3:])


def test_slices_of_neighbourhoods_are_disjoint():
    matrix = random_graph(600, 900, 0)
    p = plan(n_train=100, row_order=rows_of(matrix))
    assert p.n_disjoint == rows_of(matrix).size // 100
    rows = [p.draw(bit).rows for bit in range(p.n_disjoint)]
    together = np.concatenate(rows)
    assert len(np.unique(together)) == len(together) == 100 * p.n_disjoint
    assert all(matrix[own][:, own].nnz > 0 for own in rows)


def test_neighbourhood_draws_keep_edges_under_every_sampling():
    matrix = random_graph(20_000, 30_000, 1)
    by_chance = matrix[_core.permuted(20_000, 0, 0, 200)][:, _core.permuted(20_000, 0, 0, 200)].nnz
    for sampling in ("disjoint", "random", "bootstrap"):
        p = plan(sampling=sampling, n_train=200, row_order=rows_of(matrix))
        rows = p.draw(1).rows
        assert len(rows) == 200
        unique = np.unique(rows)
        assert scipy.sparse.csr_array(matrix[unique][:, unique]).nnz > 3 * by_chance


# -------------------------------------------------------------------------------- whole classes


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 80), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_classes_come_whole_in_a_seeded_order_whose_slices_are_disjoint(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    classes = rng.integers(-1, n_classes, n).astype(np.int32)
    known = np.flatnonzero(classes >= 0)
    order = ClassOrder.of(classes)
    assert order.size == len(known)
    if not len(known):
        return
    whole = order.take(seed, 0, len(known))
    assert sorted(whole.tolist()) == known.tolist()
    changes = np.count_nonzero(np.diff(classes[whole]))
    assert changes == len(np.unique(classes[known])) - 1  # every class in one piece
    start = int(rng.integers(0, len(known)))
    count = int(rng.integers(1, len(known) - start + 1))
    assert order.take(seed, start, count).tolist() == whole[start : start + count].tolist()
    again = order.bootstrap(seed, count)
    assert set(again) <= set(whole[:count])
