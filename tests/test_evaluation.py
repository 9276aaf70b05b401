"""Codes and the first retrieval measure, against full enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash import codes
from ilhash.evaluation import hamming_distances, precision_at_k


@given(st.integers(0, 20), st.integers(1, 70), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_packing_goes_both_ways(n, bits, seed):
    table = np.random.default_rng(seed).random((n, bits)) < 0.5
    packed = codes.pack(table)
    assert packed.shape == (n, codes.bytes_per_code(bits))
    assert np.array_equal(codes.unpack(packed, bits), table)


def test_bad_codes_are_refused():
    with pytest.raises(ValueError, match="2-D array of bool"):
        codes.pack(np.zeros((2, 8)))
    with pytest.raises(ValueError, match="2 columns, got shape"):
        codes.unpack(np.zeros((3, 1), np.uint8), 9)


@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_hamming_distances_count_differing_bits(bits, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((4, bits)) < 0.5, rng.random((5, bits)) < 0.5
    wanted = (a[:, None, :] != b[None, :, :]).sum(axis=2)
    assert np.array_equal(hamming_distances(codes.pack(a), codes.pack(b)), wanted)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_precision_is_the_mean_over_all_orders_of_the_ties(n, seed):
    rng = np.random.default_rng(seed)
    base, query = (rng.random((m, 2)) < 0.5 for m in (n, 3))
    base_labels, query_labels = rng.integers(0, 2, n), rng.integers(0, 2, 3)
    ks = np.arange(1, n + 1)
    got = precision_at_k(codes.pack(base), base_labels, codes.pack(query), query_labels, ks)
    wanted = np.zeros(n)
    for bits, label in zip(query, query_labels, strict=True):
        distance = (base != bits).sum(axis=1)
        orders = [p for p in itertools.permutations(range(n)) if (np.diff(distance[list(p)]) >= 0).all()]
        hits = np.mean([np.cumsum(base_labels[list(p)] == label) for p in orders], axis=0)
        wanted += hits / ks / 3
    np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_bad_input_of_precision():
    good = np.zeros((4, 1), np.uint8)
    for arguments, message in (
        ((good, np.zeros(4), good, np.zeros(4), 5), "between 1 and the 4 codes"),
        ((good, np.zeros(4), good, np.zeros(4), 0), "between 1"),
        ((good, np.zeros(3), good, np.zeros(4), 1), "one entry per code"),
        ((good, np.zeros(4), np.zeros((4, 2), np.uint8), np.zeros(4), 1), "width"),
        ((good.astype(int), np.zeros(4), good, np.zeros(4), 1), "uint8"),
        ((good[:0], np.zeros(0), good, np.zeros(4), 1), "non-empty"),
    ):
        with pytest.raises(ValueError, match=message):
            precision_at_k(*arguments)
