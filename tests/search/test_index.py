"""The index against a dictionary of codes, and against brute force."""

from __future__ import annotations

import errno
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import ilhash
from ilhash import HammingIndex
from ilhash.search import _index, _segment, rescore
from ilhash.search._segment import Segment


def random_codes(rng, n, n_bits, n_distinct=None):
    bits = rng.integers(0, 2, (n_distinct or max(n, 1), n_bits)).astype(bool)
    return ilhash.codes.pack(bits[rng.integers(0, len(bits), n)])


def brute(codes, ids, query):
    """All items as (distance, id), in order."""
    distances = np.bitwise_count(codes ^ query).sum(axis=1) if len(codes) else []
    return sorted(zip((int(d) for d in distances), ids, strict=True))


# ------------------------------------------------------------------------------------------------ against a model


class IndexMachine(RuleBasedStateMachine):
    """Adds, removals, updates, compactions in any order: the index answers like a plain dictionary."""

    def __init__(self):
        super().__init__()
        self.model: dict = {}

    @initialize(n_bits=st.integers(1, 40), text=st.booleans(), seed=st.integers(0, 2**32 - 1))
    def begin(self, n_bits, text, seed):
        self.rng, self.n_bits, self.text = np.random.default_rng(seed), n_bits, text
        self.index = self.make()

    def make(self):
        return HammingIndex(n_bits=self.n_bits)

    def new_ids(self, n):
        numbers = [int(i) for i in self.rng.permutation(2000)]
        names = [f"é{i}" if self.text else i - 1000 for i in numbers]
        return [name for name in names if name not in self.model][:n]

    def codes(self, n):
        return random_codes(self.rng, n, self.n_bits, n_distinct=5)

    @rule(n=st.integers(0, 30))
    def add(self, n):
        ids, codes = self.new_ids(n), self.codes(n)
        self.index.add(codes, np.array(ids, object) if self.text else np.array(ids, np.int64))
        self.model.update(zip(ids, codes, strict=True))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data):
        ids = data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True, max_size=20))
        self.index.remove(ids)
        for name in ids:
            del self.model[name]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def update(self, data):
        ids = data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True, min_size=1, max_size=20))
        codes = self.codes(len(ids))
        self.index.update(codes, ids)
        self.model.update(zip(ids, codes, strict=True))

    @rule()
    def compact(self):
        self.index.compact()

    @rule(k=st.integers(1, 50), radius=st.integers(0, 12), n_threads=st.integers(1, 2), share=st.floats(0, 1))
    def search(self, k, radius, n_threads, share):
        queries = self.codes(3)
        names = sorted(self.model)
        allowed = None if share > 0.7 else [name for name in names if self.rng.random() < share]
        held = names if allowed is None else allowed
        codes = np.array([self.model[name] for name in held]) if held else np.zeros((0, queries.shape[1]), np.uint8)
        hits = self.index.search(queries, k, n_threads=n_threads, allowed=allowed)
        near = self.index.within(queries, radius, allowed=allowed)
        assert hits.exact
        assert len(hits) == len(near) == 3
        assert hits.distances.dtype == np.int32
        for q, (ids, distances) in enumerate(near):
            everything = brute(codes, held, queries[q])
            expected = [item for item in everything if item[0] <= radius]
            assert list(zip(distances.tolist(), ids.tolist(), strict=True)) == expected
            found = list(zip(hits.distances[q].tolist(), hits.ids[q].tolist(), strict=True))
            assert found == everything[:k]

    @invariant()
    def same_content(self):
        if not hasattr(self, "index"):
            return
        assert len(self.index) == len(self.model)
        assert self.index.ids.tolist() == sorted(self.model)
        assert [(name, code.tobytes()) for name, code in self.index] == [
            (name, self.model[name].tobytes()) for name in sorted(self.model)
        ]


IndexMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestIndex = IndexMachine.TestCase


class FolderMachine(IndexMachine):
    """The same in a folder, which is closed and opened again in between."""

    def make(self):
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        return HammingIndex.open(self.folder.name, n_bits=self.n_bits, ids="str" if self.text else "int")

    @rule()
    def reopen(self):
        self.index.close()
        self.index = HammingIndex.open(self.folder.name)

    @rule()
    def read(self):
        with HammingIndex.open(self.folder.name, writable=False) as reader:
            assert reader.ids.tolist() == sorted(self.model)

    def teardown(self):
        if hasattr(self, "index"):
            assert self.index.verify().ok
            self.index.close()
            self.folder.cleanup()


FolderMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=10, deadline=None)
TestFolder = FolderMachine.TestCase


# ------------------------------------------------------------------------------------------------ one search


@settings(max_examples=60, deadline=None)
@given(
    n_bits=st.integers(1, 600),
    n=st.integers(0, 5000),
    distinct=st.integers(1, 5000),
    k=st.integers(1, 6000),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_brute_force(n_bits, n, distinct, k, seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, n, n_bits, distinct)
    index = HammingIndex(codes, n_bits=n_bits)
    opposite = ilhash.codes.pack(~ilhash.codes.unpack(codes[:1], n_bits))
    queries = np.concatenate([random_codes(rng, 1, n_bits), codes[:1], opposite])
    hits = index.search(queries, k)
    distances = np.bitwise_count(codes[None] ^ queries[:, None]).sum(axis=2, dtype=np.int32)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    assert np.array_equal(hits.ids, order)
    assert np.array_equal(hits.distances, np.take_along_axis(distances, order, 1))


def test_an_empty_index_answers_nothing():
    index = HammingIndex(n_bits=20)
    query = np.zeros((2, 3), np.uint8)
    assert index.search(query, 5).ids.shape == (2, 0)
    assert index.within(query, 3).offsets.tolist() == [0, 0, 0]
    assert index.search_asymmetric(np.ones((2, 20), np.float32)).ids.shape == (2, 0)
    assert len(index) == 0
    assert list(index) == []


def test_no_queries():
    index = HammingIndex(np.zeros((4, 1), np.uint8), n_bits=8)
    assert index.search(np.zeros((0, 1), np.uint8), 3).ids.shape[0] == 0
    assert index.within(np.zeros((0, 1), np.uint8), 3).offsets.tolist() == [0]


def test_numbers_go_on_from_the_largest_id():
    index = HammingIndex(np.zeros((2, 1), np.uint8), n_bits=8)
    assert index.add(np.zeros((2, 1), np.uint8)).tolist() == [2, 3]
    index.add(np.zeros((1, 1), np.uint8), [10])
    assert index.add(np.zeros((1, 1), np.uint8)).tolist() == [11]


def test_equal_codes_cost_one_distance():
    codes = np.repeat(np.arange(5, dtype=np.uint8)[:, None], 1000, axis=0)
    index = HammingIndex(codes, n_bits=8)
    assert len(index) == 5000
    assert index.n_distinct == 5
    assert index.bytes_per_item["codes"] < 0.1
    assert index.search(codes[:1], 1500).ids[0, :1000].tolist() == list(range(1000))


def test_small_adds_do_not_leave_many_segments():
    index = HammingIndex(n_bits=16)
    rng = np.random.default_rng(0)
    for _ in range(200):
        index.add(random_codes(rng, 3, 16))
    assert len(index._segments) <= 12
    for number in range(500):
        index.remove([number])
    assert sum(segment.n_rows for segment in index._segments) <= 2 * len(index)


def test_contains_and_codes():
    codes = np.arange(6, dtype=np.uint8)[:, None]
    index = HammingIndex(codes, n_bits=8, ids=list("abcdef"))
    assert "c" in index
    assert "z" not in index
    assert 3 not in index
    assert index.codes(["f", "a"]).tolist() == [[5], [0]]
    assert index.codes("b").tolist() == [[1]]


def test_searches_go_on_while_items_are_added():
    rng = np.random.default_rng(1)
    index = HammingIndex(random_codes(rng, 2000, 64), n_bits=64)
    queries, failures = random_codes(rng, 20, 64), []

    def search():
        for _ in range(30):
            hits = index.search(queries, 10)
            if hits.ids.shape != (20, 10) or (np.diff(hits.distances, axis=1) < 0).any():
                failures.append(hits)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(30):
        index.add(random_codes(rng, 50, 64))
        index.remove([number])
        index.add(random_codes(rng, 1, 64), [-1 - number])
    for thread in threads:
        thread.join()
    assert not failures


# ------------------------------------------------------------------------------------------------ better order


@settings(max_examples=40, deadline=None)
@given(n_bits=st.integers(1, 80), n=st.integers(1, 300), k=st.integers(1, 400), seed=st.integers(0, 2**32 - 1))
def test_asymmetric_search_equals_brute_force(n_bits, n, k, seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, n, n_bits, 40)
    margins = (rng.integers(-50, 50, (3, n_bits)) / 16).astype(np.float32)  # sums of these are exact
    hits = HammingIndex(codes, n_bits=n_bits).search_asymmetric(margins, k)
    differ = ilhash.codes.unpack(codes, n_bits)[None] != (margins > 0)[:, None]
    distances = (differ * np.abs(margins)[:, None]).sum(axis=2)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    assert np.array_equal(hits.ids, order)
    assert np.array_equal(hits.distances, np.take_along_axis(distances, order, 1).astype(np.float32))
    assert hits.exact


def test_kept_margins_order_items_of_one_code():
    margins = np.array([[0.5, 3.0], [0.5, 1.0], [0.5, 2.0], [-1.0, 1.0], [0.8, 2.0]], np.float32)
    codes = ilhash.codes.pack(margins > 0)
    index = HammingIndex(codes, n_bits=2, margins=margins)
    query = np.array([[0.5, 1.1]], np.float32)
    assert index.search(ilhash.codes.pack(query > 0), 3).ids.tolist() == [[0, 1, 2]]
    hits = index.search_margins(query, 3)
    assert hits.ids.tolist() == [[1, 4, 2]]  # angles to the query: 2.1, 2.6 and 10.4 degrees
    assert hits.distances[0] == pytest.approx([0.037, 0.046, 0.181], abs=0.01)
    assert hits.exact  # the shortlist held everything
    assert not index.search_margins(query, 1, shortlist=2).exact
    assert index.bytes_per_item["margins"] == 2


def test_margins_of_no_length_have_no_direction():
    margins = np.array([[0.0, 0.0], [2.0, 1.0]], np.float32)
    index = HammingIndex(ilhash.codes.pack(margins > 0), n_bits=2, margins=margins)
    hits = index.search_margins(np.array([[0.0, 0.0], [2.0, 1.0]], np.float32), 2)
    assert hits.ids.tolist() == [[0, 1], [1, 0]]
    assert hits.distances == pytest.approx(np.array([[0.0, 1.0], [0.0, 1.0]]), abs=0.01)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 200), k=st.integers(1, 30), extra=st.integers(0, 200), seed=st.integers(0, 2**32 - 1))
def test_search_by_kept_margins_equals_brute_force_in_any_number_of_segments(n, k, extra, seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, n, 9, 20)
    steps = rng.integers(1, 127, (n, 9))
    steps[rng.integers(0, n, 9), np.arange(9)] = 127
    steps *= np.where(ilhash.codes.unpack(codes, 9), 1, -1)
    margins = steps.astype(np.float32)  # one step each: nothing is rounded
    texts = rng.permutation(n).astype(str)
    index = HammingIndex(n_bits=9)
    index._span(np.full((1, 9), 127, np.float32))  # steps of 1
    for rows in np.array_split(np.arange(n), [2 * n // 3, 9 * n // 10]):
        if len(rows):
            index.add(codes[rows], texts[rows], margins=margins[rows])
    query = rng.normal(size=(3, 9)).astype(np.float32)
    differ = ilhash.codes.unpack(codes, 9)[None] != (query > 0)[:, None]
    by_name = np.argsort(texts, kind="stable")
    for q, hits in ((q, index.search_margins(query[q : q + 1], k, shortlist=k + extra)) for q in range(3)):
        shortlist = by_name[np.argsort(differ[q].sum(axis=1)[by_name], kind="stable")][: k + extra]
        cosine = margins[shortlist] @ query[q] / np.linalg.norm(margins[shortlist], axis=1) / np.linalg.norm(query[q])
        assert hits.exact == (k + extra >= n)
        assert set(hits.ids[0].tolist()) <= set(texts[shortlist].tolist())
        assert hits.distances[0] == pytest.approx(np.sort(np.sqrt(np.maximum(0, 2 - 2 * cosine)))[:k], abs=2e-3)


def test_kept_margins_survive_changes_and_a_folder(tmp_path):
    rng = np.random.default_rng(3)
    margins = rng.normal(size=(300, 24)).astype(np.float32)
    codes = ilhash.codes.pack(margins > 0)
    whole = HammingIndex(codes, n_bits=24, margins=margins)
    query = rng.normal(size=(4, 24)).astype(np.float32)
    with HammingIndex.open(tmp_path / "index", n_bits=24, margins=margins) as index:
        for first, last in ((0, 240), (240, 290), (290, 300)):
            index.add(codes[first:last], margins=margins[first:last])
        index.remove([5, 7])
        whole.remove([5, 7])
        assert len(index._segments) > 1
        for shortlist in (9, 30, None):
            wanted = whole.search_margins(query, 9, shortlist=shortlist).ids
            assert np.array_equal(index.search_margins(query, 9, shortlist=shortlist).ids, wanted)


def test_rescoring_by_vectors_reads_a_memory_map(tmp_path):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 12)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    codes = ilhash.codes.pack(X[:, :6] > 0)
    queries = rng.normal(size=(5, 12)).astype(np.float32)
    hits = HammingIndex(codes, n_bits=6).search(ilhash.codes.pack(queries[:, :6] > 0), 500)
    better = rescore(hits, queries, np.load(tmp_path / "X.npy", mmap_mode="r"), k=20)
    distances = np.linalg.norm(X[None] - queries[:, None], axis=2)
    assert np.array_equal(better.ids, np.argsort(distances, axis=1, kind="stable")[:, :20])
    assert not better.exact


# ------------------------------------------------------------------------------------------------ bad input


def index_of_two():
    return HammingIndex(np.array([[1], [2]], np.uint8), n_bits=8)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda i: i.search(np.zeros((1, 2), np.uint8)), r"codes of 8 bits must .* got shape \(1, 2\)"),
        (lambda i: i.search(np.zeros((1, 1), np.int8)), "codes of 8 bits must .* got .*int8"),
        (lambda i: i.search(np.zeros(1, np.uint8)), "codes of 8 bits must"),
        (lambda i: i.search(np.zeros((1, 1), np.uint8), k=0), "k must be a whole number of at least 1, got 0"),
        (lambda i: i.search(np.zeros((1, 1), np.uint8), k=2.5), "k must be a whole number"),
        (lambda i: i.search(np.zeros((1, 1), np.uint8), n_threads=0), "n_threads must be .* got 0"),
        (lambda i: i.within(np.zeros((1, 1), np.uint8), -1), "radius must be a whole number of at least 0, got -1"),
        (lambda i: i.add(np.zeros((1, 1), np.uint8), [1]), "ids must be new, got 1 of 1 that are in the index"),
        (lambda i: i.add(np.zeros((2, 1), np.uint8), [7, 7]), "ids must be distinct, got 1 of 2 again"),
        (lambda i: i.add(np.zeros((2, 1), np.uint8), [7]), r"ids must be .* one id per item, got shape \(1,\) for 2"),
        (lambda i: i.add(np.zeros((1, 1), np.uint8), ["a"]), r"ids must be of the kind of this index \(int\), got str"),
        (lambda i: i.add(np.zeros((1, 1), np.uint8), [1.5]), "ids must be whole numbers or texts, got float64"),
        (lambda i: i.add(np.zeros((1, 1), np.uint8), np.array([2**63], np.uint64)), "ids must fit 64 signed bits"),
        (lambda i: i.remove([0, 9]), "ids must be in the index, got 1 of 2 that are not, first .*9"),
        (lambda i: i.remove([0, 0]), "ids must be distinct"),
        (lambda i: i.update(np.zeros((1, 1), np.uint8), [9]), "ids must be in the index"),
        (lambda i: i.codes([4]), "ids must be in the index"),
        (lambda i: i.search_margins(np.zeros((1, 8), np.float32)), "margins must have been given to the index"),
        (lambda i: i.search_asymmetric(np.zeros((1, 7), np.float32)), r"margins must be floats of shape \(n, 8\)"),
        (lambda i: i.search_asymmetric(np.full((2, 8), np.nan)), "margins must be finite, got others in 2 of 2 rows"),
        (
            lambda i: i.add(np.zeros((1, 1), np.uint8), margins=np.zeros((1, 8))),
            "margins must be given .* at its start",
        ),
        (lambda i: i.verify(), "verify must be asked of an index in a folder"),
        (lambda i: i.refresh(), "refresh must be asked of an index in a folder"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(call, sentence):
    index = index_of_two()
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        call(index)
    assert "\n" not in str(caught.value)
    assert index.ids.tolist() == [0, 1]
    assert index.search(np.array([[1]], np.uint8), 5).distances.tolist() == [[0, 2]]


def test_padding_bits_must_be_zero():
    with pytest.raises(ValueError, match="padding"):
        HammingIndex(np.array([[1]], np.uint8), n_bits=7)


def test_ids_without_codes():
    with pytest.raises(ValueError, match="must come with codes"):
        HammingIndex(n_bits=8, ids=[1])


# ------------------------------------------------------------------------------------------------ folder


def test_saved_index_is_the_same(tmp_path):
    rng = np.random.default_rng(5)
    index = HammingIndex(random_codes(rng, 500, 33, 100), n_bits=33, ids=[f"item {i}" for i in range(500)])
    index.remove(["item 3"])
    index.save(tmp_path / "saved")
    queries = random_codes(rng, 6, 33)
    with HammingIndex.open(tmp_path / "saved", writable=False) as again:
        assert np.array_equal(again.search(queries, 20).ids, index.search(queries, 20).ids)
        assert len(again) == 499
        with pytest.raises(ValueError, match="writable"):
            again.remove(["item 4"])


def test_a_save_that_fails_leaves_nothing(tmp_path, monkeypatch):
    index = HammingIndex(np.zeros((3, 1), np.uint8), n_bits=8)
    (tmp_path / "there").mkdir()
    with pytest.raises(ValueError, match="must be a new folder"):
        index.save(tmp_path / "there")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("ilhash.search._store.Store.commit", full)
    with pytest.raises(OSError, match="nothing is left of it: No space left on device"):
        index.save(tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_reader_stays_on_its_snapshot_until_refresh(tmp_path):
    codes = np.arange(10, dtype=np.uint8)[:, None]
    with HammingIndex.open(tmp_path, n_bits=8) as writer, HammingIndex.open(tmp_path, writable=False) as reader:
        writer.add(codes)
        assert len(reader) == 0
        assert reader.refresh()
        assert len(reader) == 10
        writer.remove([3])
        writer.compact()
        assert 3 in reader
        assert reader.search(codes[3:4], 1).ids.tolist() == [[3]]
        assert reader.refresh()
        assert 3 not in reader
        assert not reader.refresh()


def test_open_says_what_is_wrong(tmp_path):
    with pytest.raises((ValueError, OSError), match="none"):
        HammingIndex.open(tmp_path / "none", n_bits=8, writable=False)
    HammingIndex.open(tmp_path / "eight", n_bits=8).close()
    with pytest.raises(ValueError, match=r"n_bits must be that of the index \(8\), got 9"):
        HammingIndex.open(tmp_path / "eight", n_bits=9)
    with pytest.raises(ValueError, match="ids must be one of 'int', 'str'"):
        HammingIndex.open(tmp_path / "other", n_bits=8, ids="uuid")
    assert not (tmp_path / "other").exists()


# ------------------------------------------------------------------------------------------------ pivots


def clustered(rng, n, n_bits, n_clusters, noise):
    centres = rng.integers(0, 2, (n_clusters, n_bits)).astype(bool)
    return ilhash.codes.pack(centres[rng.integers(0, n_clusters, n)] ^ (rng.random((n, n_bits)) < noise))


@pytest.mark.parametrize(("n_bits", "noise", "repeats"), [(32, 0.1, 1), (61, 0.08, 3), (128, 0.05, 1), (300, 0.02, 2)])
def test_codes_that_crowd_are_searched_by_pivots_with_the_same_answers(n_bits, noise, repeats, monkeypatch):
    monkeypatch.setattr(_segment, "PIVOTS_FROM", 10_000)
    rng = np.random.default_rng(n_bits)
    codes = np.tile(clustered(rng, 40_000, n_bits, 8, noise), (repeats, 1))
    index = HammingIndex(codes, n_bits=n_bits)
    assert "pivots" in index._segments[0].arrays
    # Queries of the crowd, and others that pivots cannot help.
    queries = np.concatenate([codes[:20], clustered(np.random.default_rng(0), 20, n_bits, 8, 0.5)])
    distances = ilhash.evaluation.hamming_distances(queries, codes)
    order = np.argsort(distances, axis=1, kind="stable")
    for k, n_threads in ((1, 1), (10, 2), (700, 1)):
        hits = index.search(queries, k, n_threads=n_threads)
        assert np.array_equal(hits.ids, order[:, :k])
        assert np.array_equal(hits.distances, np.take_along_axis(distances, order[:, :k], 1))
    near = index.within(queries, 5)
    for q, (ids, _) in enumerate(near):
        within = order[q][np.take(distances[q], order[q]) <= 5]
        assert np.array_equal(ids, within)
    index.remove(np.arange(0, len(codes), 2))
    assert np.array_equal(index.search(queries, 3).ids, [[i for i in row if i % 2][:3] for row in order.tolist()])
    assert np.array_equal(index.codes([1, 9, 777]), codes[[1, 9, 777]])


def test_pivots_are_left_out_where_codes_do_not_crowd(monkeypatch):
    monkeypatch.setattr(_segment, "PIVOTS_FROM", 10_000)
    index = HammingIndex(random_codes(np.random.default_rng(0), 40_000, 64), n_bits=64)
    assert "pivots" not in index._segments[0].arrays


def test_an_index_with_pivots_survives_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_segment, "PIVOTS_FROM", 10_000)
    rng = np.random.default_rng(9)
    codes = clustered(rng, 30_000, 40, 6, 0.1)
    with HammingIndex.open(tmp_path / "index", n_bits=40) as index:
        index.add(codes)
    with HammingIndex.open(tmp_path / "index", writable=False) as again:
        assert "pivots" in again._segments[0].arrays
        assert np.array_equal(again.search(codes[:9], 7).ids, HammingIndex(codes, n_bits=40).search(codes[:9], 7).ids)


# ---------------------------------------------------------------------------------------------- blocks


def blocks_of(codes, size=70):
    return (codes[first : first + size] for first in range(0, len(codes), size))


@pytest.mark.parametrize("rows", [150, 1 << 22])
@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("ids", [None, np.arange(500)[::-1] * 3, [f"item {i % 7} {i}" for i in range(500)]])
def test_blocks_give_the_answers_of_one_array(rows, in_folder, ids, tmp_path, monkeypatch):
    monkeypatch.setattr(_index, "SEGMENT_ROWS", rows)
    codes = np.random.default_rng(0).integers(0, 256, (500, 2), np.uint8)
    kind = "str" if isinstance(ids, list) else "int"
    index = HammingIndex.open(tmp_path / "i", n_bits=16, ids=kind) if in_folder else HammingIndex(n_bits=16)
    with index:
        assert index.add_blocks(blocks_of(codes), ids) == 500
        wanted, got = HammingIndex(codes, n_bits=16, ids=ids).search(codes, 9), index.search(codes, 9)
        assert np.array_equal(got.ids, wanted.ids)
        assert np.array_equal(got.distances, wanted.distances)
        if kind == "int":
            index.add(codes[:3])
            assert len(index) == 503


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (np.arange(10, 509), "ids must be one per code, got 499 for at least 500 codes"),
        (np.arange(10, 511), "ids must be one per code, got 501 for 500 codes"),
        (np.arange(500), "ids must be new, got 2 of 500 that are in the index"),
        (np.zeros(500, int) + 7, "ids must be distinct, got 499 of 500 again"),
    ],
)
def test_blocks_are_added_wholly_or_not_at_all(ids, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(_index, "SEGMENT_ROWS", 150)
    codes = np.zeros((500, 2), np.uint8)
    with HammingIndex.open(tmp_path / "i", n_bits=16) as index:
        index.add(codes[:2])
        before = sorted(path.name for path in (tmp_path / "i").iterdir())
        with pytest.raises(ValueError, match=sentence):
            index.add_blocks(blocks_of(codes), ids)
        assert len(index) == 2
        assert sorted(path.name for path in (tmp_path / "i").iterdir()) == before


def test_small_blocks_become_few_segments(tmp_path):
    codes = np.random.default_rng(0).integers(0, 3, (500, 2), np.uint8)
    with HammingIndex.open(tmp_path / "i", n_bits=16) as index:
        index.add_blocks(blocks_of(codes))
        assert index.n_distinct == len(np.unique(codes, axis=0))
        for _ in range(20):
            index.add_blocks([codes[:20]])
        assert len(list((tmp_path / "i").glob("segment-*"))) < 6


def test_saving_does_not_build_again_what_is_one_segment(tmp_path, monkeypatch):
    codes = np.random.default_rng(0).integers(0, 256, (500, 2), np.uint8)
    index = HammingIndex(codes, n_bits=16)
    monkeypatch.setattr(Segment, "build", lambda *_: pytest.fail("built again"))
    index.save(tmp_path / "i")
    assert np.array_equal(HammingIndex.open(tmp_path / "i").search(codes, 5).ids, index.search(codes, 5).ids)


# ---------------------------------------------------------------------------------------------- ids


def folder_or_memory(path, in_folder, kind="int"):
    return HammingIndex.open(path / "ids", n_bits=8, ids=kind) if in_folder else HammingIndex(n_bits=8)


@pytest.mark.parametrize("in_folder", [False, True])
def test_what_is_returned_is_the_callers_own(tmp_path, in_folder):
    codes = np.arange(5, dtype=np.uint8)[:, None]
    with folder_or_memory(tmp_path, in_folder) as index:
        given = np.arange(5) * 2
        returned = [index.add(codes, given), given, codes]
        held = {name: code.tolist() for name, code in index}
        hits, near = index.search(codes, 3), index.within(codes, 8)
        returned += [index.ids, index.codes([0, 2]), hits.ids, hits.distances, near.ids, near.distances, near.offsets]
        returned += [code for _, code in index]
        for array in returned:
            array[...] = 99
        assert {name: code.tolist() for name, code in index} == held
        assert index.add(codes[:1] * 0).tolist() == [9]
        assert np.array_equal(index.search(np.zeros((1, 1), np.uint8), 2).ids, [[0, 9]])


NULS = ["a", "a\0", "a\0\0", "\0", "", "b\0c", "\0\0"]


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("form", [list, tuple, lambda ids: np.array(ids, object)])
def test_texts_keep_their_nuls(tmp_path, in_folder, form):
    codes = np.arange(len(NULS), dtype=np.uint8)[:, None]
    with folder_or_memory(tmp_path, in_folder, "str") as index:
        assert index.add(codes, form(NULS)).tolist() == NULS
        assert index.ids.tolist() == sorted(NULS)
        assert all(name in index for name in NULS)
        assert "\0\0\0" not in index
        assert np.array_equal(index.codes(form(NULS)), codes)
        assert index.search(codes[1:2], 1, allowed=form(NULS[1:3])).ids.tolist() == [["a\0"]]
        index.update(codes[::-1], form(NULS))
        assert index.codes("a\0\0").tolist() == [[len(NULS) - 3]]
        index.remove(form(NULS[1:]))
        assert index.ids.tolist() == ["a"]


def test_arrays_of_texts_are_taken_as_numpy_gives_them():
    index = HammingIndex(np.zeros((2, 1), np.uint8), n_bits=8, ids=np.array(["a\0", "b\0c"]))
    assert index.ids.tolist() == ["a", "b\0c"]


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (["a", "\ud800"], "ids must be texts of whole characters, got 1 of 2 with surrogates"),
        (["a", 1], "ids must be whole numbers or texts"),
        ([1, 2**64], "ids must fit 64 signed bits, got 1 of 2 others"),
        ([[1], [2, 3]], "ids must be a sequence of whole numbers or texts"),
        ([b"a", b"b"], "ids must be whole numbers or texts"),
    ],
)
def test_ids_that_cannot_be(ids, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        HammingIndex(np.zeros((2, 1), np.uint8), n_bits=8, ids=ids)
    assert not isinstance(caught.value, UnicodeError)


@pytest.mark.parametrize("in_folder", [False, True])
def test_automatic_ids_end_with_a_sentence(tmp_path, in_folder):
    code, last = np.zeros((1, 1), np.uint8), 2**63 - 1
    with folder_or_memory(tmp_path, in_folder) as index:
        index.add(code, [last - 1])
        assert index.add(code).tolist() == [last]
        for _ in range(2):
            with pytest.raises(
                ValueError, match="ids must be given where automatic ones would pass 9223372036854775807"
            ):
                index.add(code)
        with pytest.raises(ValueError, match="ids must be given"):
            index.add_blocks([code, code])
        index.remove([last])
        with pytest.raises(ValueError, match="ids must be given"):
            index.add(code)
        assert index.ids.tolist() == [last - 1]


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("compacted", [False, True])
def test_removed_ids_do_not_come_back_by_themselves(tmp_path, in_folder, compacted):
    code = np.zeros((3, 1), np.uint8)
    with folder_or_memory(tmp_path, in_folder) as index:
        assert index.add(code).tolist() == [0, 1, 2]
        index.remove([1, 2])
        if compacted:
            index.compact()
        assert index.add(code[:1]).tolist() == [3]
        index.remove([0, 3])
        if compacted:
            index.compact()
        assert len(index) == 0
        index.save(tmp_path / "saved")
        assert index.add_blocks([code[:2], code[:1]]) == 3
        assert index.ids.tolist() == [4, 5, 6]
        index.remove([6])
    if in_folder:
        with HammingIndex.open(tmp_path / "ids") as again:
            assert again.add(code[:1]).tolist() == [7]
    with HammingIndex.open(tmp_path / "saved") as saved:
        assert saved.add(code[:1]).tolist() == [4]


def test_ids_below_zero_leave_automatic_ones_alone():
    index = HammingIndex(np.zeros((1, 1), np.uint8), n_bits=8, ids=[-5])
    assert index.add(np.zeros((2, 1), np.uint8)).tolist() == [0, 1]


def test_blocks_of_many_segments_number_on(tmp_path, monkeypatch):
    monkeypatch.setattr(_index, "SEGMENT_ROWS", 3)
    with HammingIndex.open(tmp_path / "i", n_bits=8) as index:
        index.add_blocks([np.zeros((2, 1), np.uint8)] * 5)
        index.remove(np.arange(4, 10))
        index.compact()
        index.add_blocks([np.zeros((2, 1), np.uint8)] * 3)
        assert index.ids.tolist() == [0, 1, 2, 3, *range(10, 16)]


def test_few_texts_among_many_are_found_quickly():
    n = 200_000
    index = HammingIndex(
        random_codes(np.random.default_rng(0), n, 64), n_bits=64, ids=[f"item/{i:06d}" for i in range(n)]
    )
    some, query = [f"item/{i * 199:06d}" for i in range(1000)], np.zeros((1, 8), np.uint8)
    index.search(query, 5, allowed=some)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        hits = index.search(query, 5, allowed=some)
        times.append(time.perf_counter() - begin)
    everything = brute(index.codes(some), some, query[0])
    assert list(zip(hits.distances[0].tolist(), hits.ids[0].tolist(), strict=True)) == everything[:5]
    assert min(times) < 0.02  # 300 ms before ids were found by the core; 2 ms now
