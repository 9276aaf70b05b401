"""Retrieval measures against full enumeration of tie orders, and against sorting where nothing ties."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from ilhash import codes
from ilhash.evaluation import (
    Histograms,
    Protocol,
    by_label,
    by_neighbors,
    code_statistics,
    distance_histograms,
    evaluate,
    hamming_distances,
    mean_average_precision,
    precision_at_k,
    precision_recall_curve,
    recall_at_k,
    within_radius,
)

RULES = {"expected": lambda values: sum(values) / Fraction(len(values)), "optimistic": max, "pessimistic": min}

seeds = st.integers(0, 2**32 - 1)


def all_rankings(distances, relevant):
    """Return the relevance of every ranking by distance, one for each order of the ties."""
    items = list(zip(distances, relevant, strict=True))
    groups = [[bool(r) for d, r in items if d == distance] for distance in sorted({*distances})]
    orders = itertools.product(*(itertools.permutations(group) for group in groups))
    return [list(itertools.chain(*order)) for order in orders]


def hits_at(ranking, k):
    return Fraction(sum(ranking[:k]))


def average_precision(ranking, k):
    """Precision at the places of relevant items, summed up to place k, by min(k, relevant)."""
    total = sum(hits_at(ranking, place) / place for place in range(1, k + 1) if ranking[place - 1])
    return Fraction(total) / min(k, sum(ranking))


def small_case(n, seed, n_queries=3, bits=2):
    """Few bits and two labels: almost everything ties."""
    rng = np.random.default_rng(seed)
    base, queries = rng.random((n, bits)) < 0.5, rng.random((n_queries, bits)) < 0.5
    base_labels, query_labels = rng.integers(0, 3, n), rng.integers(0, 3, n_queries)
    arrays = codes.pack(base), base_labels, codes.pack(queries), query_labels
    rankings = [
        all_rankings((base != query).sum(axis=1).tolist(), base_labels == label)
        for query, label in zip(queries, query_labels, strict=True)
    ]
    return arrays, rankings


def one_byte_case(n, seed, query_labels):
    rng = np.random.default_rng(seed)
    base, queries = (rng.integers(0, 256, (m, 1), np.uint8) for m in (n, len(query_labels)))
    return base, rng.integers(0, 3, n), queries, query_labels


def histograms(arrays, **options):
    base, base_labels, queries, query_labels = arrays
    return distance_histograms(base, queries, by_label(base_labels, query_labels), **options)


@given(st.integers(1, 30), seeds)
@settings(deadline=None, max_examples=40)
def test_hamming_distances_count_differing_bits(bits, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((4, bits)) < 0.5, rng.random((5, bits)) < 0.5
    wanted = (a[:, None, :] != b[None, :, :]).sum(axis=2)
    assert np.array_equal(hamming_distances(codes.pack(a), codes.pack(b)), wanted)


@given(st.integers(0, 40), st.integers(1, 200), st.integers(1, 3), seeds)
@settings(deadline=None, max_examples=40)
def test_histograms_count_by_distance_and_relevance(n, bits, n_threads, seed):
    rng = np.random.default_rng(seed)
    base, queries = rng.random((n, bits)) < rng.random(), rng.random((5, bits)) < 0.5
    base_labels, query_labels = rng.integers(0, 4, n), rng.integers(0, 4, 5)
    arrays = codes.pack(base), base_labels, codes.pack(queries), query_labels
    found = histograms(arrays, n_bits=bits, n_threads=n_threads)
    assert found.counts.shape == found.hits.shape == (5, bits + 1)
    for query in range(5):
        for distance in range(bits + 1):
            at = (base != queries[query]).sum(axis=1) == distance
            assert found.counts[query, distance] == at.sum()
            assert found.hits[query, distance] == (at & (base_labels == query_labels[query])).sum()


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    arrays = (
        rng.integers(0, 256, (50, 3), np.uint8),
        rng.integers(0, 4, 50),
        rng.integers(0, 256, (23, 3), np.uint8),
        rng.integers(0, 4, 23),
    )
    whole = histograms(arrays)
    for n_threads in (2, 3):
        parts = histograms(arrays, n_threads=n_threads)
        assert np.array_equal(parts.counts, whole.counts)
        assert np.array_equal(parts.hits, whole.hits)


@given(st.integers(1, 6), seeds)
@settings(deadline=None, max_examples=60)
def test_precision_and_recall_over_all_orders_of_the_ties(n, seed):
    arrays, rankings = small_case(n, seed)
    found = histograms(arrays)
    ks = np.arange(1, n + 1)
    for ties, rule in RULES.items():
        wanted = [[rule([hits_at(ranking, k) for ranking in orders]) for k in ks] for orders in rankings]
        precision = [[hits / int(k) for hits, k in zip(row, ks, strict=True)] for row in wanted]
        recall = [[float(h / row[-1]) if row[-1] else np.nan for h in row] for row in wanted]
        np.testing.assert_allclose(found.precision_at_k(ks, ties), np.array(precision, float), rtol=1e-14)
        np.testing.assert_allclose(found.recall_at_k(ks, ties), np.array(recall), rtol=1e-14)


@given(st.integers(1, 6), seeds)
@settings(deadline=None, max_examples=60)
def test_average_precision_over_all_orders_of_the_ties(n, seed):
    arrays, rankings = small_case(n, seed)
    found = histograms(arrays)
    for ties, rule in RULES.items():
        for k in [None, *range(1, n + 1)]:
            # Of the whole ranking the denominator is the number of relevant items, which min(n, relevant) is.
            wanted = [
                float(rule([average_precision(ranking, k or n) for ranking in orders])) if any(orders[0]) else np.nan
                for orders in rankings
            ]
            np.testing.assert_allclose(found.average_precision(k, ties), wanted, rtol=1e-12)


def test_a_large_tie_group_by_its_definition():
    """One group of 40 items, 13 relevant, after 5 items, 2 relevant: place by place in exact fractions."""
    found = Histograms(np.array([[5, 40, 7]]), np.array([[2, 13, 3]]))
    for k in (1, 3, 5, 6, 20, 45, 50, 52):
        total = Fraction(0)
        for n, r, N, R in ((5, 2, 0, 0), (40, 13, 5, 2), (7, 3, 45, 15)):
            for j in range(1, min(n, k - N) + 1):
                total += Fraction(r, n) * (R + 1 + Fraction((j - 1) * (r - 1), n - 1)) / (N + j)
        wanted = float(total / min(k, 18))
        assert found.average_precision(k)[0] == pytest.approx(wanted, rel=1e-13)
    assert found.average_precision()[0] == pytest.approx(found.average_precision(52)[0], rel=1e-15)


@given(st.integers(1, 40), seeds)
@settings(deadline=None, max_examples=40)
def test_without_ties_it_is_sorting(n, seed):
    rng = np.random.default_rng(seed)
    base = (np.arange(n + 1)[:, None] > np.arange(n)[None, :])[:-1]  # item i is at distance i from all zeros
    order = rng.permutation(n)
    labels = rng.integers(0, 2, n)
    arrays = codes.pack(base[order]), labels[order], codes.pack(np.zeros((1, n), bool)), [1]
    found = histograms(arrays, n_bits=n)
    ks = np.arange(1, n + 1)
    for ties in RULES:
        np.testing.assert_allclose(found.precision_at_k(ks, ties)[0], np.cumsum(labels) / ks, rtol=1e-14)
        if labels.any():
            np.testing.assert_allclose(found.recall_at_k(ks, ties)[0], np.cumsum(labels) / labels.sum(), rtol=1e-14)
            wanted = average_precision_score(labels, -np.arange(n))
            assert found.average_precision(None, ties)[0] == pytest.approx(wanted, rel=1e-12)
    curve = found.curves()
    np.testing.assert_allclose(curve.precision, np.cumsum(labels) / ks, rtol=1e-12)


@given(st.integers(1, 60), seeds)
@settings(deadline=None, max_examples=40)
def test_curves_are_the_means_at_every_k(n, seed):
    found = histograms(one_byte_case(n, seed, [0, 1, 2, 9]))
    ks = np.arange(1, n + 1)
    some = found.n_relevant > 0
    for ties in RULES:
        curve = found.curves(ties)
        np.testing.assert_allclose(curve.precision, found.precision_at_k(ks, ties).mean(axis=0), atol=1e-13)
        if some.any():
            np.testing.assert_allclose(curve.recall, found.recall_at_k(ks, ties)[some].mean(axis=0), atol=1e-13)
        else:
            assert np.isnan(curve.recall).all()


def test_curves_stay_exact_over_a_large_base():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(1_000_000, np.ones(129) / 129, size=300)
    hits = rng.binomial(counts, rng.random((300, 129)) ** 8)
    found = Histograms(counts, hits)
    ks = np.array([1, 2, 10, 1_000, 500_000, 999_999, 1_000_000])
    for ties in RULES:
        curve = found.curves(ties)
        np.testing.assert_allclose(curve.precision[ks - 1], found.precision_at_k(ks, ties).mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(curve.recall[ks - 1], found.recall_at_k(ks, ties).mean(axis=0), rtol=1e-9)


def test_average_precision_stays_exact_over_a_large_base():
    """All of a million items tie: the expected AP is the sum over places, in closed form and summed plainly."""
    n, r = 1_000_000, 1_000
    found = Histograms(np.array([[n]]), np.array([[r]]))
    places = np.arange(1, n + 1)
    wanted = np.sum((1 + (places - 1) * (r - 1) / (n - 1)) / places, dtype=np.longdouble) / n
    assert found.average_precision()[0] == pytest.approx(float(wanted), rel=1e-10)


@given(st.integers(1, 40), seeds)
@settings(deadline=None, max_examples=40)
def test_bounds_enclose_the_expected_value(n, seed):
    found = histograms(one_byte_case(n, seed, [0, 1, 1]))
    ks = np.arange(1, n + 1)
    for measure in (
        lambda ties: found.precision_at_k(ks, ties),
        lambda ties: np.nan_to_num(found.recall_at_k(ks, ties)),
        lambda ties: np.nan_to_num(found.average_precision(None, ties)),
        lambda ties: np.nan_to_num(found.average_precision(n // 2 + 1, ties)),
    ):
        low, middle, high = (measure(ties) for ties in ("pessimistic", "expected", "optimistic"))
        assert (low <= middle + 1e-12).all()
        assert (middle <= high + 1e-12).all()


@given(st.integers(1, 30), seeds)
@settings(deadline=None, max_examples=40)
def test_radius_measures_by_their_definition(n, seed):
    rng = np.random.default_rng(seed)
    base, queries = rng.random((n, 10)) < 0.5, rng.random((6, 10)) < 0.5
    base_labels, query_labels = rng.integers(0, 3, n), rng.integers(0, 3, 6)
    arrays = codes.pack(base), base_labels, codes.pack(queries), query_labels
    radius = int(rng.integers(0, 7))
    near = (base[None] != queries[:, None]).sum(axis=2) <= radius
    relevant = base_labels[None] == query_labels[:, None]
    counted, skipped = (within_radius(*arrays, radius=radius, empty=empty) for empty in (0, "skip"))
    some = near.any(axis=1)
    shares = [(near & relevant)[q].sum() / near[q].sum() for q in np.flatnonzero(some)]
    assert counted.precision == pytest.approx(sum(shares) / 6)
    assert skipped.precision == pytest.approx(np.mean(shares) if shares else np.nan, nan_ok=True)
    assert counted.empty_share == skipped.empty_share == np.mean(~some)
    known = relevant.any(axis=1)
    recall = [(near & relevant)[q].sum() / relevant[q].sum() for q in np.flatnonzero(known)]
    assert counted.recall == pytest.approx(np.mean(recall) if recall else np.nan, nan_ok=True)


def test_a_radius_beyond_all_bits_finds_everything():
    arrays, _ = small_case(6, 1)
    found = within_radius(*arrays, radius=100)
    assert found.empty_share == 0.0
    assert found.recall == 1.0
    assert found.precision == pytest.approx(precision_at_k(*arrays, k=6))
    with pytest.raises(ValueError, match="radius must be one number"):
        within_radius(*arrays, radius=[1, 2])


def test_functions_are_means_over_queries():
    arrays, _ = small_case(6, 3)
    arrays[3][0] = 9  # a query without any relevant item
    found = histograms(arrays)
    np.testing.assert_allclose(precision_at_k(*arrays, k=[2, 4]), found.precision_at_k([2, 4]).mean(axis=0))
    np.testing.assert_allclose(recall_at_k(*arrays, k=[2, 4]), np.nanmean(found.recall_at_k([2, 4]), axis=0))
    for k in (None, 3):
        for ties in RULES:
            wanted = np.nanmean(found.average_precision(k, ties))
            assert mean_average_precision(*arrays, k, ties=ties) == pytest.approx(wanted)
    curve = precision_recall_curve(*arrays)
    assert curve.recall[-1] == pytest.approx(1.0)
    np.testing.assert_allclose(curve.precision[3], precision_at_k(*arrays, k=4))


def test_one_k_gives_a_number_and_several_an_array():
    arrays, _ = small_case(6, 3)
    found = histograms(arrays)
    for measure, of_each in ((precision_at_k, found.precision_at_k), (recall_at_k, found.recall_at_k)):
        for one in (3, np.int64(3)):
            assert type(measure(*arrays, k=one)) is float
            assert of_each(one).shape == (len(arrays[2]),)
        assert measure(*arrays, k=3) == measure(*arrays, k=[3])[0]
        assert measure(*arrays, k=(2, 3)).shape == (2,)
        np.testing.assert_array_equal(of_each(3), of_each([3])[:, 0])
    for of_each in (found.precision_within, found.recall_within, found.empty_within):
        assert of_each(1).shape == (len(arrays[2]),)
        np.testing.assert_array_equal(of_each(1), of_each([0, 1])[:, 1])


@given(st.integers(3, 9), seeds)
@settings(deadline=None, max_examples=30)
def test_items_of_unknown_label_are_left_out_everywhere(n, seed):
    """Every measure is that of the codes whose label is known."""
    (base, labels, queries, wanted), _ = small_case(n, seed)
    rng = np.random.default_rng(seed)
    kept, asked = (rng.random(len(side)) < 0.7 for side in (base, queries))
    kept[:2] = asked[0] = True
    unknown = [np.where(keep, side, None) for keep, side in ((kept, np.asarray(labels)), (asked, np.asarray(wanted)))]
    holes = base, unknown[0], queries, unknown[1]
    whole = base[kept], np.asarray(labels)[kept], queries[asked], np.asarray(wanted)[asked]
    k = [1, int(kept.sum())]
    np.testing.assert_array_equal(precision_at_k(*holes, k), precision_at_k(*whole, k))
    np.testing.assert_array_equal(recall_at_k(*holes, k), recall_at_k(*whole, k))
    np.testing.assert_array_equal(mean_average_precision(*holes), mean_average_precision(*whole))
    np.testing.assert_array_equal(precision_recall_curve(*holes).precision, precision_recall_curve(*whole).precision)
    assert str(within_radius(*holes)) == str(within_radius(*whole))
    assert str(evaluate(*holes, ks=k)) == str(evaluate(*whole, ks=k))
    protocol = Protocol(n_queries=1, k=1)
    found = protocol.evaluate(*holes)
    assert str(found) == str(protocol.evaluate(*whole))
    blocks = [(base[rows], unknown[0][rows]) for rows in (slice(0, 1), slice(1, None))]
    assert str(protocol.evaluate_blocks(blocks, queries, unknown[1])) == str(found)


def test_labels_that_are_all_unknown_are_refused():
    (base, labels, queries, wanted), _ = small_case(5, 0)
    with pytest.raises(ValueError, match="query_labels must hold labels, got None or NaN in all"):
        precision_at_k(base, labels, queries, [None] * len(wanted), k=1)
    with pytest.raises(ValueError, match="one per code, got 2 for the"):
        precision_at_k(base, [1, None], queries, wanted, k=1)


def test_no_query_with_a_relevant_item_leaves_recall_undefined():
    base, queries = np.zeros((4, 1), np.uint8), np.zeros((2, 1), np.uint8)
    arrays = base, [1, 1, 2, 2], queries, [3, 4]
    assert precision_at_k(*arrays, k=2) == 0.0
    assert np.isnan(recall_at_k(*arrays, k=2))
    assert np.isnan(mean_average_precision(*arrays))
    result = evaluate(*arrays, ks=2)
    assert result.n_without_relevant == 2
    assert np.isnan(result.map)
    assert result.to_dict()["expected"]["map"] is None
    assert "queries without a relevant item: 2" in str(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 5}, "k must be whole numbers between 1 and the 4 codes of the base, got 5"),
        ({"k": 0}, "between 1"),
        ({"k": 1.5}, "whole numbers"),
        ({"k": [[1]]}, "whole numbers"),
        ({"k": []}, "whole numbers"),
        ({"ties": "average"}, "ties must be 'expected', 'optimistic' or 'pessimistic', got 'average'"),
        ({"n_threads": 0}, "n_threads must be a whole number from 1 on"),
        ({"base_labels": np.zeros(3)}, "one per code, got 3 for the 4 rows of base_codes"),
        ({"query_labels": np.zeros(3)}, "one per code, got 3 for the 2 rows of query_codes"),
        ({"query_codes": np.zeros((2, 2), np.uint8)}, "query_codes of 8 bits must be a 2-D uint8 array of 1 columns"),
        ({"base_codes": np.zeros((4, 1))}, "base_codes must be a 2-D uint8 array, got shape \\(4, 1\\) float64"),
        ({"base_codes": np.zeros((0, 1), np.uint8), "base_labels": []}, "between 1 and the 0 codes"),
        ({"query_codes": np.zeros((0, 1), np.uint8), "query_labels": []}, "at least one query"),
        ({"base_labels": [np.nan] * 4}, "base_labels must hold labels, got None or NaN in all 4 entries"),
        ({"query_labels": [None, None]}, "query_labels must hold labels, got None or NaN in all 2 entries"),
        ({"base_labels": [0.5, 1, 2, 2.5]}, "got 2 of 4 entries such as 0.5"),
        ({"base_labels": [0, 1, np.inf, 2]}, "got 1 of 4 entries such as inf"),
        ({"base_labels": ["0", "1", "0", "1"]}, "must be of the kind of base_labels"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    good = {
        "base_codes": np.zeros((4, 1), np.uint8),
        "base_labels": np.zeros(4),
        "query_codes": np.zeros((2, 1), np.uint8),
        "query_labels": np.zeros(2),
        "k": 1,
    }
    for function in (precision_at_k, recall_at_k):
        with pytest.raises(ValueError, match=message):
            function(**{**good, **arguments})


def test_bad_histograms_are_refused():
    good = np.ones((2, 3), np.int64)
    for counts, hits, message in (
        (good, good[:, :2], "one shape"),
        (good, good.astype(float), "int64"),
        (good, 2 * good, "between 0 and counts"),
        (np.array([[1, 0], [1, 1]]), np.zeros((2, 2), np.int64), "one sum"),
        (good[:0], good[:0], "at least one query"),
    ):
        with pytest.raises(ValueError, match=message):
            Histograms(counts, hits)
    with pytest.raises(ValueError, match="radius must be whole numbers of at least 0"):
        Histograms(good, good).recall_within(-1)
    with pytest.raises(ValueError, match="empty must be 0 or 'skip', got 1"):
        Histograms(good, good).precision_within(1, empty=1)
    with pytest.raises(ValueError, match="k must be one number"):
        Histograms(good, good).average_precision([1, 2])


def test_an_empty_base_has_empty_histograms():
    found = distance_histograms(np.zeros((0, 2), np.uint8), np.zeros((3, 2), np.uint8), by_label([], [1, 2, 3]))
    assert found.n_base == 0
    assert found.counts.shape == (3, 17)
    assert found.curves().precision.shape == (0,)
    assert np.isnan(found.average_precision()).all()
    assert found.empty_within(16).all()
    with pytest.raises(ValueError, match="base_codes must have rows"):
        evaluate(np.zeros((0, 2), np.uint8), [], np.zeros((3, 2), np.uint8), [1, 2, 3])


# ------------------------------------------------------------------------------------ codes, and all at once


@given(st.integers(1, 60), st.integers(1, 75), seeds)
@settings(deadline=None, max_examples=40)
def test_code_statistics_by_their_definition(n, bits, seed):
    rng = np.random.default_rng(seed)
    table = (rng.random((12, bits)) < 0.5)[rng.integers(0, 12, n)]
    found = code_statistics(codes.pack(table), bits)
    rows = [tuple(row) for row in table.tolist()]
    often = np.array(sorted((rows.count(row) for row in set(rows)), reverse=True))
    assert found.n_codes == n
    assert found.n_distinct == len(often)
    assert found.top10_share == pytest.approx(often[:10].sum() / n)
    assert found.code_entropy == pytest.approx(-(often / n * np.log2(often / n)).sum())
    np.testing.assert_allclose(found.bit_balance, table.mean(axis=0))
    share = np.clip(table.mean(axis=0), 1e-300, 1)
    other = np.clip(1 - table.mean(axis=0), 1e-300, 1)
    np.testing.assert_allclose(found.bit_entropy, -share * np.log2(share) - other * np.log2(other), atol=1e-12)


def test_evaluate_agrees_with_each_measure():
    rng = np.random.default_rng(5)
    bits = rng.random((60, 11)) < 0.5
    labels = rng.integers(0, 4, 60)
    arrays = codes.pack(bits[10:]), labels[10:], codes.pack(bits[:10]), labels[:10]
    result = evaluate(*arrays, ks=[3, 20], radius=3, n_bits=11, n_threads=2, ties="pessimistic", empty="skip")
    for ties in RULES:
        scores = getattr(result, ties)
        np.testing.assert_allclose(list(scores.precision.values()), precision_at_k(*arrays, [3, 20], ties=ties))
        np.testing.assert_allclose(list(scores.recall.values()), recall_at_k(*arrays, [3, 20], ties=ties))
        assert scores.map == mean_average_precision(*arrays, ties=ties)
        assert scores.map_at[20] == mean_average_precision(*arrays, 20, ties=ties)
    assert result.precision == result.pessimistic.precision
    assert result.map == result.pessimistic.map
    assert result.within == within_radius(*arrays, radius=3, empty="skip")
    assert result.n_bits == 11
    assert result.codes.bit_balance.shape == (11,)
    assert json.loads(json.dumps(result.to_dict()))["expected"]["precision"]["20"] == result.expected.precision[20]
    text = str(result)
    for part in ("precision@20", "recall@3", "mAP@20", "within radius 3", "distinct", "10 queries", "not stated"):
        assert part in text


def test_evaluate_takes_any_relevance():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(80, 5))
    hashed = codes.pack(rng.normal(size=(80, 5)) @ rng.normal(size=(5, 16)) > 0)
    relevance = by_neighbors(X[20:], X[:20], 7)
    result = evaluate(hashed[20:], None, hashed[:20], None, relevance=relevance, ks=10)
    assert result.recall[10] * 7 == pytest.approx(result.precision[10] * 10)
    with pytest.raises(ValueError, match="must be None where relevance is given"):
        evaluate(hashed[20:], np.zeros(60), hashed[:20], None, relevance=relevance, ks=10)


def test_one_bit_and_one_query_are_enough():
    result = evaluate(np.array([[128], [0]], np.uint8), ["a", "b"], np.array([[0]], np.uint8), ["b"], ks=1, n_bits=1)
    assert result.precision == {1: 1.0}
    assert result.map == 1.0


@pytest.mark.parametrize("measure", [precision_at_k, recall_at_k, mean_average_precision])
def test_the_number_of_bits_checks_width_and_padding(measure):
    base, queries = np.array([[0b11000000], [0b01000000]], np.uint8), np.array([[0b10000000]], np.uint8)
    assert np.all(measure(base, [0, 1], queries, [0], k=1, n_bits=2) == measure(base, [0, 1], queries, [0], k=1))
    with pytest.raises(ValueError, match="base_codes of 9 bits must be a 2-D uint8 array of 2 columns"):
        measure(base, [0, 1], queries, [0], k=1, n_bits=9)
    with pytest.raises(
        ValueError, match="base_codes must have zeros in the 7 padding bits after bit 1, got others in 2"
    ):
        measure(base, [0, 1], queries, [0], k=1, n_bits=1)
    with pytest.raises(
        ValueError, match="query_codes must have zeros in the 6 padding bits after bit 2, got others in 1"
    ):
        measure(base, [0, 1], queries + 1, [0], k=1, n_bits=2)


def test_other_measures_take_the_number_of_bits_too():
    base, queries = np.array([[0b11000000], [0b01000000]], np.uint8), np.array([[0b10000000]], np.uint8)
    assert within_radius(base, [0, 1], queries, [0], 1, n_bits=2) == within_radius(base, [0, 1], queries, [0], 1)
    assert hamming_distances(base, queries, n_bits=2).tolist() == [[1], [2]]
    for call in (
        lambda: within_radius(base, [0, 1], queries, [0], n_bits=1),
        lambda: precision_recall_curve(base, [0, 1], queries, [0], n_bits=1),
        lambda: hamming_distances(base, queries, n_bits=1),
    ):
        with pytest.raises(ValueError, match="must have zeros in the 7 padding bits"):
            call()
