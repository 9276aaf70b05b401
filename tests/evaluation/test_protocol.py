"""Protocols: splits that never overlap, hashes that never change."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash import codes
from ilhash.evaluation import GivenQueries, Protocol, UnseenClasses, evaluate

HASH = "4179b02f1fb3"
NEW_HASH = "dd1a161a4f80"
UNSEEN_HASH = "96e2f2869baa"

seeds = st.integers(0, 2**32 - 1)


@given(st.integers(3, 200), seeds)
@settings(deadline=None, max_examples=60)
def test_queries_and_base_share_nothing(n, seed):
    rng = np.random.default_rng(seed)
    n_queries = int(rng.integers(1, n - 1))
    n_train = int(rng.integers(1, n - n_queries + 1))
    split = Protocol(n_queries, 1, n_train=n_train, seed=seed).split(n)
    assert sorted([*split.queries, *split.base]) == list(range(n))
    assert len(split.queries) == n_queries
    assert len(split.train) == len(set(split.train)) == n_train
    assert set(split.train) <= set(split.base)
    for rows in (split.queries, split.base, split.train):
        assert (np.diff(rows) > 0).all()


def test_a_split_depends_on_seed_and_size_alone():
    protocol = Protocol(20, 5, n_train=30)
    one = protocol.split(100)
    for data in (np.zeros(100), np.zeros((100, 3)), [{1}, []] * 50, scipy.sparse.eye_array(100), np.int64(100)):
        assert np.array_equal(one.queries, protocol.split(data).queries)
    assert not np.array_equal(one.queries, Protocol(20, 5, seed=1).split(100).queries)
    assert np.array_equal(protocol.split(100).base, Protocol(20, 7).split(100).base)
    assert np.array_equal(Protocol(20, 5).split(100).train, one.base)  # no n_train: all of the base


def test_the_split_of_a_seed_is_fixed_for_ever():
    split = Protocol(4, 2, n_train=3, seed=7).split(12)
    assert split.queries.tolist() == [1, 6, 9, 10]
    assert split.train.tolist() == [0, 7, 11]


def test_hashes_are_fixed_for_ever():
    assert Protocol(2_000, (100, 500), n_train=5_000).hash == HASH
    assert UnseenClasses(100, 10, held_out=["cow", "é"]).hash == UNSEEN_HASH


def test_hashes_are_the_same_in_another_process():
    script = "from ilhash.evaluation import Protocol; print(Protocol(2_000, (100, 500), n_train=5_000).hash)"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert out.strip() == HASH


def test_equal_protocols_have_equal_hashes_however_they_are_written():
    one = Protocol(10, (5, 7), n_train=3, radius=1)
    other = Protocol(np.int64(10), np.array([5, 7]), n_train=np.int32(3), radius=np.uint8(1), seed=np.int64(0))
    assert one == other
    assert one.hash == other.hash
    assert Protocol(10, 5).hash == Protocol(10, [5]).hash
    held = [UnseenClasses(1, 1, held_out=h) for h in ([2, 1], (1, 2), np.array([1.0, 2.0]), np.array([1, 2], np.uint8))]
    assert len({protocol.hash for protocol in held}) == 1


def test_every_field_changes_the_hash():
    one = UnseenClasses(10, 5)
    changes = {
        "n_queries": 11,
        "k": 6,
        "n_train": 3,
        "relevance": "shared labels",
        "ties": "optimistic",
        "radius": 3,
        "empty": "skip",
        "seed": 1,
        "held_out": 2,
    }
    hashes = {dataclasses.replace(one, **{name: value}).hash for name, value in changes.items()}
    hashes |= {one.hash, Protocol(10, 5).hash, dataclasses.replace(one, relevance="neighbors", n_neighbors=3).hash}
    assert len(hashes) == len(changes) + 3
    named = {field.name for field in dataclasses.fields(one)}
    assert named == {*changes, "n_neighbors"}  # a new field must be added here, and raises the format number


def test_the_base_changes_the_hash_unless_it_is_all():
    assert Protocol(10, 5, base="all").hash == Protocol(10, 5).hash
    others = [{"base": "new"}, {"base": "seen"}, {"base": "new", "n_new": 9}, {"base": "seen", "n_new": 9}]
    assert len({Protocol(10, 5, **one).hash for one in [{}, *others]}) == 5
    assert Protocol(2_000, 500, base="new").hash == NEW_HASH
    assert {field.name for field in dataclasses.fields(Protocol)} >= {"base", "n_new"}


@given(st.integers(6, 200), seeds)
@settings(deadline=None, max_examples=60)
def test_new_items_are_never_trained_on_and_seen_ones_are(n, seed):
    rng = np.random.default_rng(seed)
    n_queries = int(rng.integers(1, n - 4))
    n_new = [None, int(rng.integers(1, n - n_queries))][int(rng.integers(2))]
    held_out = n_new or (n - n_queries) // 2
    n_train = [None, int(rng.integers(1, n - n_queries - held_out + 1))][int(rng.integers(2))]
    rules = {"n_train": n_train, "n_new": n_new, "seed": seed}
    new, seen = (Protocol(n_queries, 1, base=base, **rules).split(n) for base in ("new", "seen"))
    assert np.array_equal(new.queries, Protocol(n_queries, 1, seed=seed).split(n).queries)
    for name in ("queries", "train", "seen", "new"):
        assert np.array_equal(getattr(new, name), getattr(seen, name))
        assert (np.diff(getattr(new, name)) > 0).all()
    assert np.array_equal(new.base, new.new)
    assert np.array_equal(seen.base, new.seen)
    assert len(new.train) == (n_train or n - n_queries - held_out)
    assert len(new.seen) == len(new.new) == min(len(new.train), held_out)
    assert set(new.seen) <= set(new.train)
    assert not set(new.new) & set(new.train)
    assert not set(new.queries) & {*new.train, *new.new}


def test_all_of_a_base_is_seen_or_new():
    split = Protocol(20, 5, n_train=30).split(100)
    assert np.array_equal(split.seen, split.train)
    assert sorted([*split.seen, *split.new]) == split.base.tolist()
    parts = UnseenClasses(4, 3, n_train=5, held_out=1).split(np.repeat([0, 1, 2], 12))
    assert len(parts.unseen.seen) == 0
    assert np.array_equal(parts.unseen.new, parts.unseen.base)
    assert np.array_equal(parts.seen.seen, parts.train)


def test_reports_say_which_base_they_measured():
    rng = np.random.default_rng(0)
    packed, y = rng.integers(0, 255, (60, 1), dtype=np.uint8), rng.integers(0, 3, 60)
    for base, words in (("all", "those of training among them"), ("seen", "may have seen"), ("new", "did not see")):
        protocol = Protocol(10, 5, base=base)
        split = protocol.split(60)
        asked = packed[split.queries], y[split.queries]
        result = protocol.evaluate(packed[split.base], y[split.base], *asked, n_bits=8)
        blocks = protocol.evaluate_blocks([(packed[split.base], y[split.base])], *asked, n_bits=8)
        assert result.base == blocks.base == result.to_dict()["base"] == base
        assert words in str(result)
    assert "base: not stated" in str(evaluate(packed, y, packed[:3], y[:3], ks=3))
    with pytest.raises(ValueError, match="base must be one of 'all', 'seen', 'new', got 'old'"):
        evaluate(packed, y, packed[:3], y[:3], ks=3, base="old")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base": "old"}, "base must be one of 'all', 'seen', 'new', got 'old'"),
        ({"n_new": 3}, r"n_new must be None where all points are searched \(base='all'\), got 3"),
        ({"base": "new", "n_new": 0}, "n_new must be a whole number of at least 1, got 0"),
        ({"base": "new", "n_new": 90}, "n_new must leave some of the 90 points to learn from, got 90"),
        ({"base": "seen", "n_new": 4}, "k must be at most the 4 points of the seen and of the new base, got 5"),
        ({"base": "new", "n_train": 46}, "n_train must be at most the 45 points that may be learned from, got 46"),
        ({"base": "new", "n_train": 4}, "k must be at most the 4 points"),
    ],
)
def test_bases_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Protocol(10, 5, **given).split(100)


@given(st.integers(2, 6), seeds)
@settings(deadline=None, max_examples=40)
def test_unseen_classes_are_never_trained_on(n_classes, seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_classes), 12))
    held_out = int(rng.integers(1, n_classes))
    split = UnseenClasses(4, 3, n_train=5, held_out=held_out, seed=seed).split(labels)
    assert len(split.held_out) == held_out
    unseen = np.isin(labels, split.held_out)
    assert unseen[split.unseen.queries].all()
    assert not unseen[[*split.seen.queries, *split.seen.base, *split.train]].any()
    parts = [split.unseen.queries, split.unseen.base, split.seen.queries, split.seen.base]
    assert sorted(np.concatenate(parts)) == list(range(len(labels)))
    assert len(split.unseen.queries) == len(split.seen.queries) == 4
    assert len(split.train) == 5
    assert set(split.train) <= set(split.seen.base)


def test_classes_are_held_out_by_name_or_drawn():
    labels = np.repeat(["cat", "dog", "cow", "fox"], 10)
    assert UnseenClasses(2, 2, held_out=["fox", "cat"]).split(labels).held_out == ("cat", "fox")
    drawn = {UnseenClasses(2, 2, held_out=2, seed=seed).split(labels).held_out for seed in range(30)}
    assert len(drawn) == 6  # every pair comes up


def test_given_queries_stand_in_the_hash_by_their_labels():
    labels = [0, 1, 1], [1, 0]
    one = GivenQueries.of(*labels, k=2, radius=1)
    assert one.hash == GivenQueries.of(np.array([0.0, 1.0, 1.0]), np.array([1, 0], np.uint8), k=[2], radius=1).hash
    others = [
        GivenQueries.of([0, 1, 0], labels[1], k=2, radius=1),
        GivenQueries.of(labels[0], [0, 1], k=2, radius=1),
        GivenQueries.of(["0", "1", "1"], ["1", "0"], k=2, radius=1),
        GivenQueries.of(np.eye(3), np.eye(3)[:2], k=2, radius=1),
        GivenQueries.of(*labels, k=2),
        Protocol(2, 2, radius=1),
    ]
    assert len({one.hash, *(other.hash for other in others)}) == 7
    hashed = codes.pack(np.eye(5) > 0)
    result = one.evaluate(hashed[:3], labels[0], hashed[3:], labels[1], n_bits=5)
    assert result.protocol_hash == one.hash
    assert result.precision == evaluate(hashed[:3], labels[0], hashed[3:], labels[1], ks=2, n_bits=5).precision


def test_results_carry_the_hash():
    rng = np.random.default_rng(0)
    hashed, labels = codes.pack(rng.random((50, 9)) < 0.5), rng.integers(0, 3, 50)
    protocol = Protocol(10, (3, 5), ties="pessimistic", radius=3, empty="skip")
    split = protocol.split(labels)
    arrays = hashed[split.base], labels[split.base], hashed[split.queries], labels[split.queries]
    result = protocol.evaluate(*arrays, n_bits=9)
    plain = evaluate(*arrays, ks=(3, 5), ties="pessimistic", radius=3, empty="skip", n_bits=9)
    assert result.precision == plain.precision
    assert result.within == plain.within
    assert result.protocol_hash == protocol.hash
    assert plain.protocol_hash is None
    assert f"protocol {protocol.hash}" in str(result)
    assert result.to_dict()["protocol_hash"] == protocol.hash


def test_relevance_of_a_protocol():
    rng = np.random.default_rng(1)
    X, hashed = rng.normal(size=(40, 3)), codes.pack(rng.random((40, 8)) < 0.5)
    table = rng.random((40, 4)) < 0.4
    protocol = Protocol(10, 5, relevance="neighbors", n_neighbors=6)
    neighbours = protocol.evaluate(hashed[10:], X[10:], hashed[:10], X[:10])
    assert neighbours.recall[5] * 6 == pytest.approx(neighbours.precision[5] * 5)
    shared = Protocol(10, 5, relevance="shared labels").evaluate(hashed[10:], table[10:], hashed[:10], table[:10])
    assert shared.precision == evaluate(hashed[10:], table[10:], hashed[:10], table[:10], ks=5).precision
    with pytest.raises(ValueError, match="one label per item"):
        Protocol(10, 5).evaluate(hashed[10:], table[10:], hashed[:10], table[:10])
    with pytest.raises(ValueError, match="labels for a base in blocks, got 'neighbors', which need all of it"):
        protocol.evaluate_blocks([(hashed[10:], X[10:])], hashed[:10], X[:10])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Protocol(0, 5), "n_queries must be a whole number of at least 1, got 0"),
        (lambda: Protocol(None, 5), "n_queries must be a whole number"),
        (lambda: Protocol(5, 0), "k must be a whole number of at least 1, got 0"),
        (lambda: Protocol(5, [1.5]), "k must be a whole number"),
        (lambda: Protocol(5, []), "k must hold at least one"),
        (lambda: Protocol(5, 1, n_train=0), "n_train must be a whole number of at least 1"),
        (lambda: Protocol(5, 1, ties="mean"), "ties must be"),
        (lambda: Protocol(5, 1, empty=2), "empty must be 0 or 'skip'"),
        (lambda: Protocol(5, 1, relevance="euclidean"), "relevance must be one of 'labels', 'shared labels'"),
        (lambda: Protocol(5, 1, relevance="neighbors"), "n_neighbors must be given with"),
        (lambda: Protocol(5, 1, n_neighbors=3), "n_neighbors must be given with"),
        (lambda: Protocol(5, 1, seed=-1), "seed must be a whole number of at least 0"),
        (lambda: Protocol(5, 4).split(8), "at least n_queries \\+ max\\(k\\) = 9 points, got 8"),
        (
            lambda: Protocol(5, 1, n_train=9).split(12),
            "n_train must be at most the 7 points that may be learned from, got 9",
        ),
        (lambda: UnseenClasses(1, 1, held_out=0), "held_out must be a whole number of at least 1"),
        (lambda: UnseenClasses(1, 1, held_out="cat"), "a number or a list of labels"),
        (lambda: UnseenClasses(1, 1, held_out=[]), "a number or a list of labels"),
        (lambda: UnseenClasses(1, 1, held_out=2).split([0, 0, 1, 1]), "leave a class to learn from, got 2 of 2"),
        (lambda: UnseenClasses(1, 1, held_out=[0, 1]).split([0, 0, 1, 1]), "leave a class to learn from, got all 2"),
        (lambda: UnseenClasses(1, 1, held_out=[0, 7]).split([0, 0, 1, 1]), "got 1 others such as 7"),
        (lambda: UnseenClasses(2, 1, held_out=[0]).split([0, 0, 1, 1]), "3 points of held-out classes, got 2"),
        (lambda: UnseenClasses(1, 1).split([0, 0, np.nan, np.nan]), "got 1 of 1"),
    ],
)
def test_bad_protocols_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_hashes_stay_what_they_were_when_fields_had_other_names():
    """They stand beside stored results; the values are of the version that wrote n_neighbours."""
    assert Protocol(10, 5, relevance="neighbors", n_neighbors=3).hash == "ca4bd325b96c"
    assert Protocol(10, (5, 6), seed=3).hash == "bfb0a6b27832"
    assert GivenQueries.of([0, 1, 1], [0], k=2).hash == "7ef6305bf956"
    assert UnseenClasses(2, 5, held_out=["cow"]).hash == "aae57a199111"


# ---------------------------------------------------------------------------------------------- blocks


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("size", [1, 37, 1000])
def test_a_base_in_blocks_has_the_numbers_of_the_whole(several, size):
    rng = np.random.default_rng(0)
    base, queries = rng.integers(0, 8, (300, 2), np.uint8), rng.integers(0, 8, (20, 2), np.uint8)
    truth, asked = (rng.integers(0, 2, (n, 3)) if several else rng.integers(0, 4, n) for n in (300, 20))
    protocol = Protocol(20, k=(1, 50), relevance="shared labels" if several else "labels")
    blocks = ((base[first : first + size], truth[first : first + size]) for first in range(0, 300, size))
    got = protocol.evaluate_blocks(blocks, queries, asked, n_bits=16)
    wanted = protocol.evaluate(base, truth, queries, asked, n_bits=16)
    assert got.to_dict() == wanted.to_dict()
    assert np.array_equal(got.histograms.counts, wanted.histograms.counts)


def test_blocks_need_labels_and_codes():
    with pytest.raises(ValueError, match="relevance must be of labels for a base in blocks"):
        Protocol(5, 1, relevance="neighbors", n_neighbors=2).evaluate_blocks([], np.zeros((5, 1), np.uint8), None)
    with pytest.raises(ValueError, match="base_blocks must hold codes to be searched, got none"):
        Protocol(5, 1).evaluate_blocks([], np.zeros((5, 1), np.uint8), np.zeros(5, int))


def test_points_of_unknown_label_are_on_neither_side_and_count_in_the_hash_of_given_queries():
    labels = np.repeat(["cat", "dog", "cow", None], 10)
    split = UnseenClasses(n_queries=2, k=5, held_out=["cow"]).split(labels)
    drawn = [split.unseen.base, split.unseen.queries, split.seen.base, split.seen.queries]
    assert sorted(np.concatenate(drawn)) == list(range(30))
    known = UnseenClasses(n_queries=2, k=5, held_out=["cow"]).split(labels[:30])
    assert np.array_equal(split.train, known.train)
    hashes = {GivenQueries.of([0, 1, label], [0], k=1).hash for label in (0, 1, None, np.nan)}
    assert len(hashes) == 3  # None and NaN say the same
    assert GivenQueries.of([0, 1, 0], [1], k=1).hash == GivenQueries.of([0.0, 1.0, 0.0], [1], k=1).hash
