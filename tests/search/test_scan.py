"""The exact scan of the C++ core equals brute force in NumPy: same distances, same rows, same order."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ilhash import _core

KINDS = ["uniform", "few distinct", "clusters", "opposites", "constant"]
LISTS = ["none", "all", "filtered", "shuffled"]
BEYOND = 2**64 - 1


def packed(bits):
    return np.packbits(bits, axis=1)


def random_bits(rng, kind, n, n_bits):
    pool = rng.integers(0, 2, (7, n_bits), dtype=np.uint8)
    pool[1] = 1 - pool[0]
    match kind:
        case "uniform":
            return rng.integers(0, 2, (n, n_bits), dtype=np.uint8)
        case "few distinct":
            return pool[rng.integers(0, 7, n)]
        case "clusters":
            return pool[rng.integers(0, 7, n)] ^ (rng.random((n, n_bits)) < 2 / n_bits).astype(np.uint8)
        case "opposites":
            return pool[rng.integers(0, 2, n)]
        case _:
            return pool[np.zeros(n, np.intp)]


def queries_for(rng, bits, n, n_bits):
    """Return queries of which some equal a code of the base, some are opposite to one, some are anything."""
    queries = rng.integers(0, 2, (n, n_bits), dtype=np.uint8)
    if len(bits):
        known = rng.random(n) < 0.7
        queries[known] = bits[rng.integers(0, len(bits), known.sum())]
        queries[rng.random(n) < 0.3] ^= 1
    return queries


def tiles_of(codes):
    tiles = np.full((-(-len(codes) // 64), codes.shape[1], 64), 0xEE, np.uint8)
    _core.to_tiles(codes, None, tiles)
    return tiles


class Base(NamedTuple):
    """What the scan is given, and the code and row of each item behind it."""

    n_bits: int
    codes: np.ndarray
    tiles: np.ndarray
    offsets: np.ndarray | None
    rows: np.ndarray | None
    ordered: bool
    code_of_item: np.ndarray
    row_of_item: np.ndarray

    @property
    def arguments(self):
        return self.tiles, len(self.codes), self.n_bits, self.offsets, self.rows, self.ordered


def grouped(codes):
    """Return the distinct codes in the order of their first rows, and the rows of each: plain Python."""
    rows_of = {}
    for row, code in enumerate(map(bytes, codes)):
        rows_of.setdefault(code, []).append(row)
    return rows_of


def make_base(rng, codes, n_bits, lists="none"):
    if lists == "none":
        every = np.arange(len(codes))
        return Base(n_bits, codes, tiles_of(codes), None, None, True, every, every)
    rows_of = grouped(codes)
    groups = [(code, np.array(rows)) for code, rows in rows_of.items()]
    if lists == "filtered":
        groups = [(code, rows[rng.random(len(rows)) < 0.4]) for code, rows in groups]
    if lists == "shuffled":
        rng.shuffle(groups)
    distinct = np.array([list(code) for code, _ in groups], np.uint8).reshape(len(groups), codes.shape[1])
    lengths = np.array([len(rows) for _, rows in groups], np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    rows = np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in groups)]).astype(np.uint32)
    code_of_item = np.repeat(np.arange(len(groups)), lengths)
    return Base(n_bits, distinct, tiles_of(distinct), offsets, rows, lists == "all", code_of_item, rows)


def brute_force(base, distances, k, max_distance=np.inf):
    """Return the first k items of one query in the order (distance, row); distances are those of the codes."""
    of_item = distances[base.code_of_item]
    order = np.lexsort((base.row_of_item, of_item))
    order = order[of_item[order] <= max_distance][: min(k, len(order))]
    return base.row_of_item[order], of_item[order]


def hamming(queries, codes):
    return [np.bitwise_count(codes ^ query).sum(axis=1, dtype=np.int64) for query in queries]


def assert_same(found, wanted):
    offsets, rows, distances = found
    assert offsets.tolist() == np.cumsum([0] + [len(r) for r, _ in wanted]).tolist()
    assert np.array_equal(rows, np.concatenate([r for r, _ in wanted] or [[]]))
    assert np.array_equal(distances, np.concatenate([d for _, d in wanted] or [[]]))


@st.composite
def cases(draw, most_bits=600, most_codes=5000):
    n_bits = draw(st.integers(1, most_bits) | st.sampled_from([8, 64, 248, 249, 255, 256, 257, 512]))
    n = draw(st.integers(0, 200) | st.integers(0, most_codes) | st.sampled_from([0, 63, 64, 65, 128]))
    n_queries = draw(st.integers(0, 10))
    return n_bits, n, n_queries, draw(st.sampled_from(KINDS)), draw(st.sampled_from(LISTS)), draw(st.integers(0, 9999))


# ------------------------------------------------------------------------------------------ nearest


@settings(deadline=None, max_examples=250)
@given(cases(), st.integers(0, 30) | st.integers(0, 6000) | st.just(BEYOND), st.floats(0, 1), st.integers(0, 3))
@example((256, 200, 9, "opposites", "none", 0), BEYOND, 1.0, 1)
@example((256, 200, 9, "opposites", "none", 0), BEYOND, 255 / 256, 1)
@example((255, 200, 9, "opposites", "filtered", 0), BEYOND, 1.0, 2)
@example((64, 0, 3, "uniform", "none", 0), 5, 1.0, 1)
@example((64, 5000, 1, "constant", "all", 0), 4999, 1.0, 2)
@example((16, 5000, 1, "clusters", "shuffled", 0), 100, 0.5, 2)
def test_nearest_equals_brute_force(case, k, radius, n_threads):
    n_bits, n, n_queries, kind, lists, seed = case
    rng = np.random.default_rng(seed)
    bits = random_bits(rng, kind, n, n_bits)
    base = make_base(rng, packed(bits), n_bits, lists)
    queries = packed(queries_for(rng, bits, n_queries, n_bits))
    for max_distance in (n_bits, round(radius * n_bits)):
        found = _core.nearest(*base.arguments, queries, k, max_distance, n_threads)
        assert [part.dtype for part in found] == [np.int64, np.int64, np.int32]
        assert_same(found, [brute_force(base, d, k, max_distance) for d in hamming(queries, base.codes)])


@pytest.mark.parametrize(("n", "n_bits", "n_queries", "k"), [(70_000, 32, 150, 20), (200_001, 64, 3, 12_000)])
def test_nearest_in_a_larger_base(n, n_bits, n_queries, k):
    rng = np.random.default_rng(n)
    bits = random_bits(rng, "clusters", n, n_bits)
    codes = packed(bits)
    first, offsets, rows = _core.group_codes(codes)
    lengths = np.diff(offsets.astype(np.int64))
    distinct = codes[first]
    base = Base(
        n_bits, distinct, tiles_of(distinct), offsets, rows, True, np.repeat(np.arange(len(first)), lengths), rows
    )
    queries = packed(queries_for(rng, bits, n_queries, n_bits))
    wanted = [brute_force(base, d, k) for d in hamming(queries, base.codes)]
    for n_threads in (1, 2):
        assert_same(_core.nearest(*base.arguments, queries, k, n_bits, n_threads), wanted)


# ------------------------------------------------------------------------------------------ weighted


@settings(deadline=None, max_examples=80)
@given(cases(600, 2000), st.integers(0, 30) | st.just(BEYOND), st.sampled_from([0, 1, 2, 256]), st.integers(0, 3))
@example((64, 2000, 17, "clusters", "filtered", 0), 10, 256, 2)
@example((64, 2000, 2, "uniform", "shuffled", 0), 10, 1, 1)  # all distances are 0
def test_nearest_weighted_equals_brute_force(case, k, n_values, n_threads):
    n_bits, n, n_queries, kind, lists, seed = case
    rng = np.random.default_rng(seed)
    bits = random_bits(rng, kind, n, n_bits)
    base = make_base(rng, packed(bits), n_bits, lists)
    queries = queries_for(rng, bits, n_queries, n_bits)
    # Multiples of 1/64 of which all sums are floats; n_values = 0: all weights are alike.
    weights = (rng.integers(0, n_values, queries.shape) / 64 if n_values else np.full(queries.shape, 0.375)).astype(
        "f4"
    )
    found = _core.nearest_weighted(*base.arguments, packed(queries), weights, k, n_threads)
    assert [part.dtype for part in found] == [np.int64, np.int64, np.float32]
    codes = np.unpackbits(base.codes, axis=1, count=n_bits)
    wanted = [
        ((codes ^ query) @ w.astype(np.float64)).astype(np.float32) for query, w in zip(queries, weights, strict=True)
    ]
    assert_same(found, [brute_force(base, d, k) for d in wanted])


def test_distances_that_are_the_same_float_are_ties():
    rng = np.random.default_rng(0)
    bits = random_bits(rng, "uniform", 500, 64)
    base = make_base(rng, packed(bits), 64, "shuffled")
    weights = np.full((1, 64), 1e-4, np.float32)
    weights[0, 0] = 1e4
    _, rows, distances = _core.nearest_weighted(*base.arguments, packed(bits[:1]), weights, BEYOND, 1)
    assert len(np.unique(distances)) < 200
    assert np.array_equal(np.lexsort((rows, distances)), np.arange(500))


# ------------------------------------------------------------------------------------------ histograms


@settings(deadline=None, max_examples=80)
@given(cases(), st.integers(0, 3))
def test_histograms_equal_bincount(case, n_threads):
    n_bits, n, n_queries, kind, _, seed = case
    rng = np.random.default_rng(seed)
    bits = random_bits(rng, kind, n, n_bits)
    codes, queries = packed(bits), packed(queries_for(rng, bits, n_queries, n_bits))
    begin, end = rng.integers(-3, n + 4, (2, n_queries))
    begin[rng.random(n_queries) < 0.1] = np.iinfo(np.int64).min
    end[rng.random(n_queries) < 0.1] = np.iinfo(np.int64).max
    counts, hits = np.full((2, n_queries, n_bits + 1), 77, np.int64)
    _core.distance_histograms(tiles_of(codes), n, n_bits, queries, begin, end, n_threads, counts, hits)
    for q, distances in enumerate(hamming(queries, codes)):
        inside = (begin[q] <= np.arange(n)) & (np.arange(n) < end[q])
        assert np.array_equal(counts[q], np.bincount(distances, minlength=n_bits + 1))
        assert np.array_equal(hits[q], np.bincount(distances[inside], minlength=n_bits + 1))


# ------------------------------------------------------------------------------------------ groups and tiles


@settings(deadline=None, max_examples=80)
@given(cases(most_bits=200))
def test_groups_equal_unique(case):
    n_bits, n, _, kind, _, seed = case
    codes = packed(random_bits(np.random.default_rng(seed), kind, n, n_bits))
    first_rows, offsets, rows = _core.group_codes(codes)
    _, first, number, counts = np.unique(codes, axis=0, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)  # np.unique sorts by code, we by first row
    assert np.array_equal(first_rows, first[order])
    if len(first) == n:
        assert len(offsets) == len(rows) == 0
    else:
        assert np.array_equal(offsets, np.concatenate([[0], np.cumsum(counts[order])]))
        assert np.array_equal(rows, np.argsort(np.argsort(order)[number.reshape(-1)], kind="stable"))


@settings(deadline=None, max_examples=60)
@given(cases(most_codes=500))
def test_tiles_there_and_back(case):
    n_bits, n, _, kind, _, seed = case
    rng = np.random.default_rng(seed)
    codes = packed(random_bits(rng, kind, n, n_bits))
    tiles = tiles_of(codes)
    padded = np.zeros((len(tiles) * 64, codes.shape[1]), np.uint8)
    padded[:n] = codes
    assert np.array_equal(tiles, padded.reshape(len(tiles), 64, codes.shape[1]).transpose(0, 2, 1))
    chosen = rng.integers(0, n, 70).astype(np.uint32) if n else np.zeros(0, np.uint32)
    some, out = (
        np.empty((-(-len(chosen) // 64), codes.shape[1], 64), np.uint8),
        np.empty((len(chosen), codes.shape[1]), "u1"),
    )
    _core.from_tiles(tiles, chosen, out)
    assert np.array_equal(out, codes[chosen])
    _core.to_tiles(codes, chosen, some)
    assert np.array_equal(some, tiles_of(codes[chosen]))


# ------------------------------------------------------------------------------------------ instruction sets

EVERYTHING = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from ilhash import _core
from test_scan import KINDS, LISTS, BEYOND, make_base, packed, queries_for, random_bits

digest = hashlib.sha256()
rng = np.random.default_rng(0)
for n_bits in (1, 13, 64, 248, 255, 256, 257, 300, 600):
    for kind, lists in zip(KINDS, (*LISTS, "none")):
        bits = random_bits(rng, kind, 700, n_bits)
        base = make_base(rng, packed(bits), n_bits, lists)
        queries = packed(queries_for(rng, bits, 7, n_bits))
        weights = rng.random((7, n_bits), np.float32)
        counts, hits = np.zeros((2, 7, n_bits + 1), np.int64)
        begin = np.arange(7)
        _core.distance_histograms(*base.arguments[:3], queries, begin, begin * 9, 1, counts, hits)
        for part in (
            *_core.nearest(*base.arguments, queries, 20, n_bits, 1),
            *_core.nearest(*base.arguments, queries, BEYOND, n_bits - 1, 1),
            *_core.nearest_weighted(*base.arguments, queries, weights, 20, 1),
            counts, hits,
        ):
            digest.update(part.tobytes())
print(_core.simd(), digest.hexdigest())
"""


def test_every_instruction_set_gives_the_same_answers():
    digests = {}
    for level in ("portable", "avx2", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", EVERYTHING, os.path.dirname(__file__)],
            env={**os.environ, "ILHASH_SIMD": level}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            assert "ILHASH_SIMD must name an instruction set of this machine" in done.stderr
        else:
            name, digests[level] = done.stdout.split()
            assert name == level
    assert len(digests["portable"]) == 2 * hashlib.sha256().digest_size
    assert len(set(digests.values())) == 1, digests


# ------------------------------------------------------------------------------------------ arrays and threads


def every_search(base, queries, weights, n_threads=1):
    n, n_bits = len(queries), base.n_bits
    counts, hits = np.zeros((2, n, n_bits + 1), np.int64)
    bounds = np.zeros(n, np.int64), np.full(n, 50, np.int64)
    _core.distance_histograms(*base.arguments[:3], queries, *bounds, n_threads, counts, hits)
    return (
        *_core.nearest(*base.arguments, queries, 20, n_bits, n_threads),
        *_core.nearest_weighted(*base.arguments, queries, weights, 20, n_threads),
        *_core.group_codes(base.codes),
        counts,
        hits,
    )


def test_inputs_are_never_written_and_may_be_read_only_maps(tmp_path):
    rng = np.random.default_rng(0)
    bits = random_bits(rng, "clusters", 3000, 48)
    base = make_base(rng, packed(bits), 48, "all")
    queries, weights = packed(queries_for(rng, bits, 9, 48)), rng.random((9, 48), np.float32)
    wanted = every_search(base, queries, weights)

    def mapped(name, array):
        np.save(tmp_path / name, array)
        return np.load(tmp_path / f"{name}.npy", mmap_mode="r")  # a write would be a segmentation fault

    arrays = {name: mapped(name, getattr(base, name)) for name in ("codes", "tiles", "offsets", "rows")}
    found = every_search(base._replace(**arrays), mapped("queries", queries), mapped("weights", weights))
    for a, b in zip(found, wanted, strict=True):
        assert np.array_equal(a, b)
    for name, array in arrays.items():
        assert np.array_equal(array, getattr(base, name))


def test_two_threads_search_the_same_base():
    rng = np.random.default_rng(1)
    bits = random_bits(rng, "clusters", 20_000, 64)
    base = make_base(rng, packed(bits), 64, "filtered")
    queries, weights = packed(queries_for(rng, bits, 100, 64)), rng.random((100, 64), np.float32)
    wanted = every_search(base, queries, weights)
    found = {}
    threads = [
        threading.Thread(target=lambda t=t: found.update({t: every_search(base, queries, weights, 2)}))
        for t in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for answer in found.values():
        for a, b in zip(answer, wanted, strict=True):
            assert np.array_equal(a, b)


def long_calls():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 256, (100_000, 8), dtype=np.uint8)
    many = np.concatenate([codes] * 20)
    arguments = tiles_of(codes), len(codes), 64
    queries, bounds = codes[:4000], np.zeros((2, 4000), np.int64)
    counts, hits = np.zeros((2, 4000, 65), np.int64)
    weights = rng.random((200, 64), np.float32)
    everything = tiles_of(many)
    out = np.empty_like(many)
    order = rng.permutation(len(many)).astype(np.uint32)
    return {
        "nearest": lambda: _core.nearest(*arguments, None, None, True, queries, 10, 64, 1),
        "nearest_weighted": lambda: _core.nearest_weighted(*arguments, None, None, True, codes[:200], weights, 10, 1),
        "distance_histograms": lambda: _core.distance_histograms(*arguments, queries, *bounds, 1, counts, hits),
        "group_codes": lambda: _core.group_codes(many),
        "from_tiles": lambda: _core.from_tiles(everything, order, out),
    }


def test_python_runs_while_the_core_works():
    for name, call in long_calls().items():
        at = []

        def work(call=call, at=at):
            at.append(time.perf_counter())
            call()
            at.append(time.perf_counter())

        thread = threading.Thread(target=work)
        ticks = []
        thread.start()
        while thread.is_alive():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)
        began, ended = at
        margin = (ended - began) / 5  # with the lock held, there could be ticks at the very ends only
        assert any(began + margin < tick < ended - margin for tick in ticks), f"{name} took {ended - began:.3f} s"


# ------------------------------------------------------------------------------------------ what is refused


def small_base(n_bits=16, lists="all"):
    rng = np.random.default_rng(3)
    return make_base(rng, packed(random_bits(rng, "few distinct", 300, n_bits)), n_bits, lists)


def search(base, queries=None, k=5, max_distance=16, n_threads=1):
    queries = np.zeros((3, base.tiles.shape[1]), np.uint8) if queries is None else queries
    return _core.nearest(*base.arguments, queries, k, max_distance, n_threads)


def test_shapes_that_disagree_are_refused():
    base = small_base()
    with pytest.raises(ValueError, match="width of the codes"):
        search(base, np.zeros((3, 3), np.uint8))
    with pytest.raises(ValueError, match="number of codes disagree"):
        search(base._replace(tiles=np.zeros((2, 2, 64), np.uint8)))
    with pytest.raises(ValueError, match="number of bits disagree"):
        search(base._replace(n_bits=17))
    with pytest.raises(ValueError, match="offsets come with rows"):
        search(base._replace(rows=None))
    with pytest.raises(ValueError, match="rows and offsets disagree"):
        search(base._replace(rows=base.rows[:-1]))
    with pytest.raises(ValueError, match="must not be negative"):
        search(base, max_distance=-1)
    with pytest.raises(ValueError, match="at least one byte"):
        _core.group_codes(np.zeros((3, 0), np.uint8))
    for wrong in (np.nan, -1, np.inf, 2e30):
        with pytest.raises(ValueError, match="weights must lie between 0 and 1e30"):
            _core.nearest_weighted(*base.arguments, np.zeros((1, 2), "u1"), np.full((1, 16), wrong, np.float32), 1, 1)


def test_codes_are_at_most_65535_bits_wide():
    bits = np.zeros((2, 65535), np.uint8)
    bits[1] = 1
    base = make_base(None, packed(bits), 65535)
    assert search(base, base.codes[:1], max_distance=65535)[2].tolist() == [0, 65535]
    with pytest.raises(ValueError, match="between 1 and 65535"):
        search(base._replace(n_bits=65536), base.codes[:1])
    with pytest.raises(ValueError, match="between 1 and 65535"):
        search(base._replace(n_bits=0), base.codes[:1])


@pytest.mark.parametrize("wrong", [0, 301, 2**31, 2**32 - 1])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_damaged_offsets_are_refused(wrong, n_threads):
    base = small_base()
    base.offsets[2] = wrong
    with pytest.raises(ValueError, match="offsets must ascend"):
        search(base, k=300, n_threads=n_threads)
    with pytest.raises(ValueError, match="offsets must ascend"):
        _core.nearest_weighted(
            *base.arguments, np.zeros((40, 2), np.uint8), np.ones((40, 16), np.float32), 300, n_threads
        )


@pytest.mark.parametrize("n_threads", [0, 1000, 2**61, BEYOND])
def test_any_number_of_threads(n_threads):
    rng = np.random.default_rng(4)
    bits = random_bits(rng, "uniform", 9000, 16)
    base = make_base(rng, packed(bits), 16, "all")
    queries, weights = packed(bits[:70]), rng.random((70, 16), np.float32)
    for a, b in zip(every_search(base, queries, weights, n_threads), every_search(base, queries, weights), strict=True):
        assert np.array_equal(a, b)


def test_padding_never_counts():
    rng = np.random.default_rng(5)
    for n_bits in (1, 3, 12, 61, 300):
        bits = random_bits(rng, "uniform", 100, n_bits)
        dirty = packed(bits)
        dirty[:, -1] |= rng.integers(0, 1 << -n_bits % 8, 100, dtype=np.uint8)
        counts, hits = np.zeros((2, 5, n_bits + 1), np.int64)
        bounds = np.zeros(5, np.int64)
        _core.distance_histograms(tiles_of(dirty), 100, n_bits, dirty[:5].copy(), bounds, bounds, 1, counts, hits)
        for q, distances in enumerate(hamming(packed(bits[:5]), packed(bits))):
            assert np.array_equal(counts[q], np.bincount(distances, minlength=n_bits + 1))
