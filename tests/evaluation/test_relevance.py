"""What is relevant: equal labels, shared labels, nearest neighbours, lists of rows."""

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash.evaluation import RowLists, by_label, by_neighbors, by_shared_labels, distance_histograms, precision_at_k

seeds = st.integers(0, 2**32 - 1)


def as_matrix(relevance):
    out = np.zeros((relevance.n_queries, relevance.n_base), bool)
    for query in range(relevance.n_queries):
        rows = relevance.rows(query)
        assert len(np.unique(rows)) == len(rows)
        out[query, rows] = True
    return out


@given(st.integers(0, 40), seeds, st.sampled_from([int, float, str, "object", np.uint8, np.bool_]))
@settings(deadline=None, max_examples=60)
def test_equal_labels(n, seed, kind):
    rng = np.random.default_rng(seed)
    base, queries = rng.integers(0, 6, n), rng.integers(0, 8, 9)
    if kind is np.bool_:
        base, queries = base % 2, queries % 2
    typed = [a.astype(str).astype(object) if kind == "object" else a.astype(kind) for a in (base, queries)]
    assert np.array_equal(as_matrix(by_label(*typed)), queries[:, None] == base[None, :])


def test_unknown_labels_are_relevant_to_nothing_and_have_nothing_relevant():
    base, queries = ["a", None, "b", float("nan"), "a"], ["b", None, "a"]
    assert [by_label(base, queries).rows(query).tolist() for query in range(3)] == [[2], [], [0, 4]]
    assert sorted(by_label(base, queries).order) == list(range(5))
    numbers = by_label(np.array([1.0, np.nan, 2.0]), pandas.Series([None, 2, pandas.NA], dtype="Int64"))
    assert [numbers.rows(query).tolist() for query in range(3)] == [[], [2], []]


def test_labels_of_different_number_types_are_equal():
    assert by_label([1, 2, 1], [1.0]).rows(0).tolist() == [0, 2]
    assert by_label(np.array([2**53, 2**53 + 1]), np.array([2**53 + 1], np.uint64)).rows(0).tolist() == [1]
    assert by_label(np.array([[3], [4]]), [4]).rows(0).tolist() == [1]


@pytest.mark.parametrize(
    ("base", "queries", "message"),
    [
        (np.array(["a", 1], object), ["a"], "all whole numbers or all text, got int, str"),
        ([["a"], ["b", "c"]], ["a"], "rows of different lengths"),
        (np.zeros((2, 2, 2)), [0], "got 3-D"),
        (np.array([2**63], np.uint64), [0], "within int64"),
        ([1.0, 2.0**63], [0], "got 1 of 2 entries such as 9.2"),
        (np.array(["2020-01-01"], "M8[D]"), [0], "whole numbers or text, got datetime64"),
        (None, [0], "one label per item, got 0-D"),
        ([1, 2], ["1"], "must be of the kind of base_labels, got <U1 for int64"),
    ],
)
def test_labels_that_could_mislead_are_refused(base, queries, message):
    with pytest.raises(ValueError, match=message):
        by_label(base, queries)


def sets_of(table):
    return [set(np.flatnonzero(row).tolist()) for row in table]


@given(st.integers(1, 30), st.integers(1, 6), seeds)
@settings(deadline=None, max_examples=60)
def test_shared_labels_in_every_form(n, n_labels, seed):
    rng = np.random.default_rng(seed)
    base, queries = rng.random((n, n_labels)) < 0.3, rng.random((7, n_labels)) < 0.3
    wanted = np.array([[bool(a & b) for b in sets_of(base)] for a in sets_of(queries)])
    forms = {
        "bool": (base, queries),
        "float": (base.astype(float), queries.astype(float)),
        "lists": (base.astype(int).tolist(), queries.astype(int).tolist()),
        "sparse": (scipy.sparse.csr_matrix(base), scipy.sparse.coo_array(queries)),
        "sets": (sets_of(base), [frozenset(labels | {"only here"}) for labels in sets_of(queries)]),
    }
    for form in forms.values():
        assert np.array_equal(as_matrix(by_shared_labels(*form)), wanted)


def test_the_form_of_the_labels_chooses_the_relevance():
    base, queries = np.array([[0], [1], [3]], np.uint8), np.array([[0]], np.uint8)
    table = np.array([[1, 1], [0, 0], [0, 1]])
    for base_labels, query_labels in (
        (table, [[0, 1]]),
        (scipy.sparse.csr_array(table), scipy.sparse.csr_array([[0, 1]])),
        ([{"a", "b"}, set(), {"b"}], [{"b"}]),
        (["b", "a", "b"], ["b"]),
        (np.array([[5], [4], [5]]), [5]),
        (pandas.Series(["b", "a", "b"]), pandas.Series(["b"])),
        (pandas.DataFrame(table), pandas.DataFrame([[0, 1]])),
        (pandas.Series([{"a", "b"}, set(), {"b"}], index=[7, 8, 9]), [{"b"}]),
    ):
        assert precision_at_k(base, base_labels, queries, query_labels, [1, 2, 3]) == pytest.approx([1, 1 / 2, 2 / 3])


@pytest.mark.parametrize(
    ("base", "queries", "message"),
    [
        ([[0, 2], [1, 0]], [[0, 1]], "base_labels must be an indicator matrix of 0 and 1, got 1 other values"),
        ([[0, 1], [1, 0]], [[0, 1, 1]], "columns of base_labels, got 3 and 2"),
        ([{1}, {2}], [[0, 1]], "sets of labels and a matrix"),
        ([[0, 1], [1]], [[0, 1]], "base_labels must be an indicator matrix of 0 and 1 or a sequence of sets"),
        ([[0, np.nan]], [[0, 1]], "got 1 other values"),
    ],
)
def test_bad_label_sets_are_refused(base, queries, message):
    with pytest.raises(ValueError, match=message):
        by_shared_labels(base, queries)


# ------------------------------------------------------------------------------------ neighbours


def nearest_by_sorting(base, queries, k):
    """Whole numbers, so that distances are exact; lower rows first."""
    distances = ((queries[:, None, :].astype(int) - base[None].astype(int)) ** 2).sum(axis=2)
    return np.sort(np.argsort(distances, axis=1, kind="stable")[:, :k], axis=1)


@given(st.integers(1, 80), st.integers(1, 5), st.sampled_from([np.uint8, np.float32, np.float64, np.int16]), seeds)
@settings(deadline=None, max_examples=60)
def test_neighbours_with_ties_by_row(n, d, dtype, seed):
    rng = np.random.default_rng(seed)
    base, queries = rng.integers(0, 4, (n, d)).astype(dtype), rng.integers(0, 4, (6, d)).astype(dtype)
    k = int(rng.integers(1, n + 1))
    relevance = by_neighbors(base, queries, k)
    assert relevance.n_base == n
    got = np.stack([relevance.rows(query) for query in range(6)])
    assert np.array_equal(got, nearest_by_sorting(base, queries, k))


@pytest.mark.parametrize("block", [1, 300, 4 << 20])
def test_blocks_do_not_change_neighbours(monkeypatch, block):
    rng = np.random.default_rng(1)
    base, queries = rng.integers(0, 3, (500, 3)), rng.integers(0, 3, (40, 3))
    monkeypatch.setattr("ilhash.vectors._nearest._BASE_ROWS", 17)
    monkeypatch.setattr("ilhash.vectors._nearest._BLOCK", block)
    relevance = by_neighbors(base, queries, 23)
    got = np.stack([relevance.rows(query) for query in range(40)])
    assert np.array_equal(got, nearest_by_sorting(base, queries, 23))


def test_a_large_offset_costs_no_neighbour():
    rng = np.random.default_rng(2)
    base, queries = rng.integers(0, 50, (300, 4)), rng.integers(0, 50, (20, 4))
    relevance = by_neighbors(base + 1e12, queries + 1e12, 9)
    got = np.stack([relevance.rows(query) for query in range(20)])
    assert np.array_equal(got, nearest_by_sorting(base, queries, 9))


def test_nearly_equal_distances_are_told_apart():
    """Far from the first base vector, products in double precision see nothing of differences this small."""
    rng = np.random.default_rng(5)
    far = rng.integers(10**7, 10**8, 5)
    base, queries = far + rng.integers(0, 30, (300, 5)), far + rng.integers(0, 30, (20, 5))
    base[0] = 0
    relevance = by_neighbors(base, queries, 9)
    got = np.stack([relevance.rows(query) for query in range(20)])
    assert np.array_equal(got, nearest_by_sorting(base, queries, 9))


def test_neighbours_in_a_memory_map(tmp_path):
    rng = np.random.default_rng(3)
    base, queries = rng.integers(0, 9, (200, 6)).astype(np.float32), rng.integers(0, 9, (5, 6)).astype(np.float32)
    np.save(tmp_path / "base.npy", base)
    relevance = by_neighbors(np.load(tmp_path / "base.npy", mmap_mode="r"), queries, 11)
    got = np.stack([relevance.rows(query) for query in range(5)])
    assert np.array_equal(got, nearest_by_sorting(base, queries, 11))


@pytest.mark.parametrize(
    ("base", "queries", "k", "message"),
    [
        (np.zeros((3, 2)), np.zeros((1, 2)), 4, "n_neighbors must be at most the 3 base vectors, got 4"),
        (np.zeros((3, 2)), np.zeros((1, 2)), 0, "n_neighbors must be a whole number of at least 1"),
        (np.zeros((3, 2)), np.zeros((1, 3)), 1, "columns of base_vectors, got 3 and 2"),
        ([[0.0], [np.nan]], [[0.0]], 1, "got 1 of 2 rows that hold NaN"),
        ([[0.0]], [[np.nan]], 1, "query_vectors must be finite"),
        ([[0.0], [1e200]], [[0.0]], 1, "finite squared norms, got 1 of 2 rows"),
        (np.zeros((0, 2)), np.zeros((1, 2)), 1, "base_vectors must have rows"),
    ],
)
def test_bad_vectors_are_refused(base, queries, k, message):
    with pytest.raises(ValueError, match=message):
        by_neighbors(base, queries, k)


# ------------------------------------------------------------------------------------ row lists


def test_row_lists_give_the_same_histograms_as_labels():
    rng = np.random.default_rng(4)
    base, queries = rng.integers(0, 256, (70, 2), np.uint8), rng.integers(0, 256, (8, 2), np.uint8)
    labels = by_label(rng.integers(0, 3, 70), rng.integers(0, 4, 8))
    rows = [labels.rows(query) for query in range(8)]
    lists = RowLists(np.cumsum([0, *map(len, rows)]), np.concatenate(rows), 70)
    one, other = distance_histograms(base, queries, labels), distance_histograms(base, queries, lists)
    assert np.array_equal(one.counts, other.counts)
    assert np.array_equal(one.hits, other.hits)


@pytest.mark.parametrize(
    ("offsets", "listed", "message"),
    [
        ([0, 2], [0, 5], "between 0 and n_base - 1 = 4, got 1 of 2 outside"),
        ([0, 2], [-1, 0], "1 of 2 outside"),
        ([0, 2], [3, 3], "a row once per query, got repeats for 1 of 1"),
        ([0, 1], [3, 4], "rise from 0 to the 2 listed rows"),
        ([0, 2, 1, 2], [3, 4], "rise"),
        ([0.0, 2.0], [3, 4], "rise"),
        ([0, 2], [0.5, 1.0], "float64"),
    ],
)
def test_bad_row_lists_are_refused(offsets, listed, message):
    with pytest.raises(ValueError, match=message):
        RowLists(np.array(offsets), np.array(listed), 5)
