"""Precision bit by bit against the slow, obvious twins: whole histograms for every prefix and every candidate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash import _core, codes
from ilhash.evaluation import PrecisionBitByBit, precision_at_k


def random_pool(seed, n_base, n_queries, n_bits, crowded=False):
    """Bits that tell three classes apart, more or less, and labels; crowded ones are almost all zero."""
    rng = np.random.default_rng(seed)
    labels, query_labels = rng.integers(0, 3, n_base), rng.integers(0, 3, n_queries)
    of_class = rng.random((3, n_bits)) < 0.5
    noise = 0.3 if not crowded else 0.05
    base = of_class[labels] ^ (rng.random((n_base, n_bits)) < noise)
    queries = of_class[query_labels] ^ (rng.random((n_queries, n_bits)) < noise)
    return (base & False if crowded and seed % 5 == 0 else base), labels, queries, query_labels


def twin_cut(distances, relevant, k):
    """Points before the edge and at it, with the relevant ones, by sorting."""
    edge = np.sort(distances)[k - 1]
    before, at = distances < edge, distances == edge
    return [before.sum(), (before & relevant).sum(), at.sum(), (at & relevant).sum()]


widths = st.sampled_from([1, 2, 17, 64, 66])
shapes = st.tuples(st.integers(1, 40), st.integers(1, 4), widths, st.booleans(), st.integers(0, 10_000))


@settings(max_examples=20, deadline=None)
@given(shapes, st.data())
def test_every_prefix_is_precision_at_k(shape, data):
    n_base, n_queries, n_bits, crowded, seed = shape
    k = data.draw(st.integers(1, n_base))
    base, labels, queries, query_labels = random_pool(seed, n_base, n_queries, n_bits, crowded)
    precision = PrecisionBitByBit(query_labels[:, None] == labels, k, n_threads=1 + seed % 3)
    for bits in range(1, n_bits + 1):
        precision.add(base[:, bits - 1], queries[:, bits - 1])
        wanted = precision_at_k(codes.pack(base[:, :bits]), labels, codes.pack(queries[:, :bits]), query_labels, k)
        assert precision.value == pytest.approx(wanted, abs=1e-12)
    assert precision.n_bits == n_bits


@settings(max_examples=20, deadline=None)
@given(shapes, st.data())
def test_the_counts_of_every_candidate_are_those_of_the_twin(shape, data):
    n_base, n_queries, n_bits, crowded, seed = shape
    k = data.draw(st.integers(1, n_base))
    base, labels, queries, query_labels = random_pool(seed, n_base, n_queries, n_bits, crowded)
    relevant = query_labels[:, None] == labels
    precision = PrecisionBitByBit(relevant, k)
    counts = _core.cut_counts(relevant.view(np.uint8), k)
    distances = np.zeros((n_queries, n_base), int)
    pool = precision.pack(base, queries)
    for chosen in np.random.default_rng(seed).integers(0, n_bits, 3):
        out = np.empty((n_queries, n_bits, 4), np.int32)
        counts.with_each(*pool, 1 + seed % 3, out)
        differs = queries[:, None, :] != base
        twin = [
            [twin_cut(distances[q] + differs[q, :, j], relevant[q], k) for j in range(n_bits)] for q in range(n_queries)
        ]
        assert np.array_equal(out, twin)
        counts.add(base[:, chosen].copy().view(np.uint8), queries[:, chosen].copy().view(np.uint8), 2)
        distances += differs[:, :, chosen]
        now = np.empty((n_queries, 4), np.int32)
        counts.now(now)
        assert np.array_equal(now, [twin_cut(distances[q], relevant[q], k) for q in range(n_queries)])


def test_what_a_candidate_promises_is_what_adding_it_gives():
    base, labels, queries, query_labels = random_pool(3, 500, 40, 90)
    relevant = query_labels[:, None] == labels
    precision = PrecisionBitByBit(relevant, 20, n_threads=2)
    for bit in (5, 80, 33, 64):
        promised = precision.of_each(base, queries)[bit]
        precision.add(base[:, bit], queries[:, bit])
        assert precision.value == pytest.approx(promised, abs=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 3), bool), 4), "k must be a whole number between 1 and the 3 base points, got 4"),
        ((np.ones((2, 3), bool), 0), "k must be a whole number of at least 1"),
        ((np.ones((2, 3)), 1), "relevant must be a 2-D array of bool"),
        ((np.ones((0, 3), bool), 1), "relevant must be a 2-D array of bool"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        PrecisionBitByBit(*arguments)


def test_bad_bits_are_refused():
    precision = PrecisionBitByBit(np.ones((2, 3), bool), 1)
    with pytest.raises(ValueError, match=r"base_bits must be bool \(3,\), got bool \(2,\)"):
        precision.add(np.ones(2, bool), np.ones(2, bool))
    with pytest.raises(ValueError, match=r"query_bits must be bool \(2, 4\), got float64"):
        precision.of_each(np.ones((3, 4), bool), np.ones((2, 4)))
    with pytest.raises(ValueError, match="base_bits must be bool"):
        precision.of_each(np.ones((3, 0), bool), np.ones((2, 0), bool))
