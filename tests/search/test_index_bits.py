"""Items of an index get other bits: the same answers as an index that was made of them, and nothing lost in between."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash import ILH, HammingIndex, codes
from ilhash.search import verify

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and fork of POSIX")


def bits_of(n, n_bits, seed):
    return np.random.default_rng(seed).random((n, n_bits)) < 0.5


def content(index):
    return {name: codes.unpack(code[None], index.n_bits)[0].tolist() for name, code in index}


def assert_holds(index, ids, bits):
    assert content(index) == dict(zip(ids, bits.tolist(), strict=True))
    queries = codes.pack(bits_of(4, index.n_bits, 77))
    wanted = HammingIndex(codes.pack(bits), n_bits=bits.shape[1], ids=ids).search(queries, 9)
    hits = index.search(queries, 9)
    assert hits.ids.tolist() == wanted.ids.tolist()
    assert hits.distances.tolist() == wanted.distances.tolist()


@settings(max_examples=30)
@given(data=st.data(), n_bits=st.integers(1, 40), n_new=st.integers(1, 30), texts=st.booleans())
def test_any_bits_of_any_items(data, n_bits, n_new, texts):
    n = data.draw(st.integers(1, 60))
    old, new = bits_of(n, n_bits, 0), bits_of(n, n_new, 1)
    numbers = np.random.default_rng(2).permutation(5 * n)[:n]
    ids = [f"item {one}" for one in numbers] if texts else numbers.tolist()
    index = HammingIndex(codes.pack(old[: n // 2]), n_bits=n_bits, ids=ids[: n // 2]) if n > 1 else None
    index = index or HammingIndex(n_bits=n_bits)
    index.add(codes.pack(old[n // 2 if n > 1 else 0 :]), ids[n // 2 if n > 1 else 0 :])
    gone = ids[:: data.draw(st.integers(2, 9))][: n - 1]
    if n > 1 and gone:
        index.remove(gone)
    stay = [place for place in range(n) if n == 1 or ids[place] not in gone]
    if stay:
        index.append_bits(codes.pack(new[stay]), n_new, ids=[ids[place] for place in stay])
        both = np.hstack([old, new])[stay]
        assert_holds(index, [ids[place] for place in stay], both)
        chosen = data.draw(st.lists(st.integers(0, n_bits + n_new - 1), min_size=1, max_size=50))
        index.select_bits(chosen)
        assert_holds(index, [ids[place] for place in stay], both[:, chosen])


def test_without_ids_codes_stand_in_the_order_of_ids():
    index = HammingIndex(np.array([[1], [2], [3]], np.uint8), n_bits=8, ids=["c", "a", "b"])
    index.append_bits(np.array([[0b1000_0000], [0], [0]], np.uint8), 1)
    assert [name for name, bits in content(index).items() if bits[-1]] == ["a"]


def test_margins_follow():
    rng = np.random.default_rng(0)
    old, new = (rng.normal(size=(50, n)).astype(np.float32) for n in (9, 6))
    index = HammingIndex(codes.pack(old > 0), n_bits=9, margins=old)
    with pytest.raises(ValueError, match="margins must come with new bits"):
        index.append_bits(codes.pack(new > 0), 6)
    index.append_bits(codes.pack(new > 0), 6, margins=new)
    both = np.hstack([old, new])
    whole = HammingIndex(codes.pack(both > 0), n_bits=15, margins=both)
    asked = rng.normal(size=(5, 15)).astype(np.float32)
    assert index.search_margins(asked, 8).ids.tolist() == whole.search_margins(asked, 8).ids.tolist()
    chosen = [14, 2, 10, 3]
    index.select_bits(chosen)
    part = HammingIndex(codes.pack(both[:, chosen] > 0), n_bits=4, margins=both[:, chosen])
    hits, wanted = index.search_margins(asked[:, :4], 8), part.search_margins(asked[:, :4], 8)
    np.testing.assert_allclose(hits.distances, wanted.distances, atol=1e-6)


@pytest.fixture(scope="module")
def models(digits):
    X, y = digits
    old = ILH(n_bits=13, n_similar=8, n_train=300).fit(X[y < 7], y[y < 7], check=False)
    return old, old[:].extend(6, X, y, check=False)


def test_a_folder_follows_a_model(digits, models, tmp_path):
    X, _ = digits
    old, new = models
    with (
        HammingIndex.open(tmp_path, n_bits=13, model=old) as index,
        HammingIndex.open(tmp_path, writable=False) as reader,
    ):
        index.add(old.transform(X))
        reader.refresh()
        assert index.follow(new, X) == 6
        assert index.model == new.fingerprint()
        assert list(index.bit_fingerprints) == new.bit_fingerprints()
        assert np.array_equal(index.codes(np.arange(len(X))), new.transform(X))
        assert reader.n_bits == 13
        assert reader.search(old.transform(X[:3]), 4).ids.shape == (3, 4)
        assert reader.refresh()
        assert reader.n_bits == 19
        fewer = new[[18, 2, 7]]
        assert index.follow(fewer, X) == 0
        assert np.array_equal(index.codes(np.arange(len(X))), fewer.transform(X))
    assert verify(tmp_path).ok
    with HammingIndex.open(tmp_path, model=fewer) as index:
        assert index.n_bits == 3


def test_queries_of_the_model_before_are_understood(digits, models):
    X, _ = digits
    old, new = models
    index = HammingIndex(old.transform(X), n_bits=13, model=old)
    before = index.search_vectors(old, X[:20], 7)
    index.follow(new, X)
    after = index.search_vectors(old, X[:20], 7)
    assert after.ids.tolist() == before.ids.tolist()
    assert index.of_model(new) is index
    assert index.of_model(old) is index.of_model(old), "made once"
    index.remove([0])
    assert 0 not in index.of_model(old)
    other = ILH(n_bits=13, n_similar=8, n_train=300, random_state=5).fit(*digits, check=False)
    with pytest.raises(ValueError, match="must have the 19 bits"):
        index.search_vectors(other, X[:2])


def test_what_does_not_fit_is_refused(digits, models):
    X, y = digits
    old, new = models
    index = HammingIndex(old.transform(X), n_bits=13, model=old)
    before = content(index)
    more = new[13:].transform(X)
    other = ILH(n_bits=19, n_similar=8, n_train=300, random_state=5).fit(X, y, check=False)
    for call, said in (
        (lambda: index.append_bits(more, 6), "model must be given"),
        (lambda: index.append_bits(more, 6, model=old), "must have the 19 bits that the index gets, got 13"),
        (lambda: index.append_bits(more, 6, model=other), "the bits that stay at their places, got 13 of 13"),
        (lambda: index.append_bits(more[:-1], 6, model=new), "one for each of the 1797 items, got 1796"),
        (lambda: index.append_bits(more, 6, ids=np.arange(1, 1798), model=new), "got 1 fewer and 1 that are not there"),
        (lambda: index.append_bits(more, 6, model=new, margins=np.ones((1797, 6), np.float32)), "at its start"),
        (lambda: index.select_bits(slice(0), model=old), "at least one of 13"),
        (lambda: index.follow(new, X[::-1]), "X must be the vectors of the items"),
        (lambda: index.follow(new, X[:-1]), "X must be vectors of the 1797 items, got 1796"),
        (lambda: index.follow(other, X), "has none of them"),
        (lambda: HammingIndex(old.transform(X), n_bits=13).follow(new, X), "knows the bits of its codes"),
    ):
        with pytest.raises(ValueError, match=said) as error:
            call()
        assert "\n" not in str(error.value)
    assert content(index) == before
    assert index.model == old.fingerprint()


# ------------------------------------------------------------------------------------------------ kills

N_ITEMS = 500
AFTER = {16: 21, 21: 24, 24: 16}  # three states, so that one that was acknowledged and lost would be seen

WRITER = """
import os
import sys
from ilhash import HammingIndex, codes
from tests.search.test_index_bits import AFTER, known_bits

# For each line of standard input, a process that changes the bits until it is killed, and acknowledges each change.
for _ in sys.stdin:
    process = os.fork()
    if process == 0:
        with HammingIndex.open(sys.argv[1]) as index:
            print("ready", os.getpid(), flush=True)
            while True:
                before, wanted = index.n_bits, AFTER[index.n_bits]
                if wanted > before:
                    new = slice(before, wanted)
                    index.append_bits(codes.take_bits(known_bits(wanted), wanted, new), wanted - before)
                else:
                    index.select_bits(slice(wanted))
                print(index.n_bits, flush=True)
    os.waitpid(process, 0)
    print("killed", flush=True)
"""


def known_bits(n_bits):
    """Return codes of the items: what a bit of an item is follows from its number."""
    return codes.pack(np.arange(N_ITEMS)[:, None] * np.arange(1, n_bits + 1) // 7 % 2 > 0)


def kill_while_bits_change(folder, times):
    """Kill a process that changes bits, again and again; return what was seen and how much was acknowledged."""
    with HammingIndex.open(folder, n_bits=16) as index:
        index.add(known_bits(16)[:200])
        index.add(known_bits(16)[200:])
    rng, now, seen, changes, cut = np.random.default_rng(0), 16, set(), 0, 0
    reader = HammingIndex.open(folder, writable=False)
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True) as parent:
        for _ in range(times):
            parent.stdin.write("start\n")
            parent.stdin.flush()
            ready, process = parent.stdout.readline().split()
            assert ready == "ready"
            said = [parent.stdout.readline() for _ in range(rng.integers(0, 4))]  # some changes, then any moment
            time.sleep(rng.uniform(0, 0.02))
            os.kill(int(process), signal.SIGKILL)
            said += iter(parent.stdout.readline, "killed\n")
            acknowledged = int(said[-1]) if said else now
            n = reader.n_bits
            assert np.array_equal(reader.codes(np.arange(N_ITEMS)), known_bits(n)), "a reader keeps what it has"
            reader.refresh()
            with HammingIndex.open(folder) as index:
                now = index.n_bits
                assert np.array_equal(index.codes(np.arange(N_ITEMS)), known_bits(now))
            assert now in (acknowledged, AFTER[acknowledged]), "acknowledged, or one that was not told of any more"
            assert reader.n_bits == now
            assert verify(folder).ok
            seen.add(now)
            changes += len(said)
            cut += now != acknowledged
        parent.stdin.close()
    return seen, changes, cut


@posix
def test_killed_while_bits_change(tmp_path):
    kill_while_bits_change(tmp_path, 6)


@posix
@pytest.mark.slow
def test_two_hundred_kills_while_bits_change(tmp_path):
    seen, changes, _ = kill_while_bits_change(tmp_path, 200)
    assert seen == set(AFTER)
    assert changes > 200


def test_a_full_disk_changes_nothing(tmp_path, monkeypatch):
    with HammingIndex.open(tmp_path, n_bits=16) as index:
        index.add(known_bits(16))

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            for change in (lambda: index.select_bits([1, 2]), lambda: index.append_bits(known_bits(8), 8)):
                with pytest.raises(OSError, match="No space left"):
                    change()
                assert index.n_bits == 16
                assert np.array_equal(index.codes(np.arange(N_ITEMS)), known_bits(16))
        index.select_bits(slice(8))
        assert index.n_bits == 8
