"""An index in the clothes of faiss, against faiss."""

import numpy as np
import pytest

from ilhash import HammingIndex
from ilhash.search import as_faiss

faiss = pytest.importorskip("faiss", reason='faiss is not installed: pip install "ilhash[faiss]"')

RNG = np.random.default_rng(0)
BASE, QUERIES = (RNG.integers(0, 256, (n, 4), np.uint8) & 0x77 for n in (500, 9))


@pytest.fixture
def pair():
    flat = faiss.IndexBinaryFlat(32)
    flat.add(BASE)
    return as_faiss(HammingIndex(BASE, n_bits=32)), flat


def same_kind(ours, theirs):
    assert [(part.shape, part.dtype) for part in ours] == [(part.shape, part.dtype) for part in theirs]


@pytest.mark.parametrize("k", [1, 10, 500, 600])
def test_search_is_that_of_faiss(pair, k):
    ours, theirs = (index.search(QUERIES, k) for index in pair)
    same_kind(ours, theirs)
    assert np.array_equal(ours[0], theirs[0])
    apart = np.unpackbits(BASE[np.maximum(ours[1], 0)] ^ QUERIES[:, None], axis=2).sum(2)
    assert np.array_equal(np.where(ours[1] < 0, 2**31 - 1, apart), ours[0])
    assert np.array_equal(np.sort(ours[1], axis=1)[:, : k - 500], np.sort(theirs[1], axis=1)[:, : k - 500]) or k <= 500


@pytest.mark.parametrize("radius", [0, 1, 8, 40])
def test_range_search_is_that_of_faiss(pair, radius):
    ours, theirs = (index.range_search(QUERIES, radius) for index in pair)
    same_kind(ours, theirs)
    assert np.array_equal(ours[0], theirs[0])
    for first, end in zip(ours[0][:-1].astype(int), ours[0][1:].astype(int), strict=True):
        found = (set(zip(part[2][first:end], part[1][first:end], strict=True)) for part in (ours, theirs))
        assert next(found) == next(found)


def test_what_it_says_of_itself(pair):
    for name in ("d", "code_size", "ntotal", "is_trained"):
        assert getattr(pair[0], name) == getattr(pair[1], name)
    assert as_faiss(HammingIndex(n_bits=12)).d == 16
    assert as_faiss(HammingIndex(n_bits=12)).search(np.zeros((1, 2), np.uint8), 2)[1].tolist() == [[-1, -1]]


def test_changes_are_those_of_the_index():
    index = HammingIndex(n_bits=32)
    ours = as_faiss(index)
    ours.add_with_ids(BASE[:5], [10, 20, 30, 40, 50])
    ours.add(BASE[5:7])
    assert index.ids.tolist() == [10, 20, 30, 40, 50, 51, 52]
    assert np.array_equal(ours.reconstruct(20), BASE[1])
    assert (ours.remove_ids([20, 99]), ours.ntotal, len(index)) == (1, 6, 6)


def test_a_copy_is_one_of_faiss(tmp_path):
    ours = as_faiss(HammingIndex(BASE, n_bits=32, ids=np.arange(500) * 3))
    faiss.write_index_binary(ours.to_faiss(), str(tmp_path / "index"))
    copy = faiss.read_index_binary(str(tmp_path / "index"))
    assert np.array_equal(copy.search(QUERIES, 5)[0], ours.search(QUERIES, 5)[0])
    assert set(copy.search(QUERIES, 500)[1][0]) == set(range(0, 1500, 3))
    assert as_faiss(HammingIndex(n_bits=8)).to_faiss().ntotal == 0


def test_other_indexes_are_refused():
    with pytest.raises(TypeError, match="index must be a HammingIndex, got int"):
        as_faiss(3)
    with pytest.raises(ValueError, match="index must have numbers as ids"):
        as_faiss(HammingIndex(BASE[:1], n_bits=32, ids=["a"]))
    with pytest.raises(ValueError, match="ids must be other than -1"):
        as_faiss(HammingIndex(n_bits=32)).add_with_ids(BASE[:1], [-1])
