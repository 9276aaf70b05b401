"""``ilhash push``, ``pull``, ``search URL`` and ``engines``, on real engines that need no server."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.cli.shared import N_BASE, N_BITS

import ilhash
from ilhash import engines


@pytest.fixture(params=["folder", "sqlite", "duckdb"])
def url(request, tmp_path):
    if engines.ENTRIES[request.param].versions() is None:
        pytest.skip(f'pip install "ilhash[{request.param}]"')
    return f"{request.param}:///{tmp_path}/place"


@pytest.fixture
def base(retrieval):
    return retrieval / "base.npy"


def test_codes_go_there_are_found_and_come_back(ilhash_command, retrieval, base, url, tmp_path):
    told = ilhash_command("push", base, url, "--ids", retrieval / "texts.txt").out
    assert f"pushed {N_BASE:,} codes of {N_BITS} bits in" in told
    assert f"holds {N_BASE:,} items" in told
    ilhash_command("index", base, "--ids", retrieval / "texts.txt", "-o", tmp_path / "idx")
    asked = (retrieval / "queries.npy", "-k", 7, "--json")
    there, ours = (json.loads(ilhash_command("search", where, *asked).out) for where in (url, tmp_path / "idx"))
    assert there == ours
    near = (retrieval / "queries.npy", "--radius", 1, "--json")
    there, ours = (json.loads(ilhash_command("search", where, *near).out) for where in (url, tmp_path / "idx"))
    assert there == ours
    ilhash_command("pull", url, "-o", tmp_path / "back.npy", "--ids", tmp_path / "back.txt")
    names = (retrieval / "texts.txt").read_text(encoding="utf-8").splitlines()
    assert (tmp_path / "back.txt").read_text(encoding="utf-8").splitlines() == sorted(names)
    back = ilhash.open_codes(tmp_path / "back.npy")
    assert back.n_bits == N_BITS
    order = sorted(range(N_BASE), key=names.__getitem__)
    assert np.array_equal(back.read(), np.load(base)[order])


def test_pushing_again_goes_on(ilhash_command, base, url):
    codes = np.load(base)
    with engines.open(url, n_bits=N_BITS) as engine:
        engine.add(codes[:100])  # what a killed push left
    assert "(100 were there)" in ilhash_command("push", base, url).out
    assert f"({N_BASE:,} were there)" in ilhash_command("push", base, url).out


PUSHED = """
import sys
from ilhash import cli, engines

kind = engines._places.entry_of(sys.argv[1]).load()
kind.rows_at_once, add = 50, kind.add


def told(*arguments):
    out = add(*arguments)
    print("added", flush=True)
    return out


kind.add = told
sys.argv = ["ilhash", "push", sys.argv[2], sys.argv[1]]
cli.main()
"""


def test_a_killed_push_goes_on(ilhash_command, base, url):
    """Killed in earnest, somewhere in the fourth block or behind it; the same command adds the rest, each item once."""
    command = [sys.executable, "-c", PUSHED, url, str(base)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for _ in range(3):
            assert child.stdout.readline() == "added\n"
        child.kill()
    with engines.open(url) as engine:
        there = engine.count()
    assert 150 <= there <= N_BASE
    told = ilhash_command("push", base, url).out
    assert f"({there:,} were there)" in told
    assert f"holds {N_BASE:,} items" in told
    with engines.open(url) as engine:
        ids, codes = (np.concatenate(part) for part in zip(*engine.blocks(), strict=True))
    assert np.array_equal(ids, np.arange(N_BASE))
    assert np.array_equal(codes, np.load(base))


def test_other_codes_are_refused_or_replace(ilhash_command, base, url, tmp_path):
    ilhash_command("push", base, url)
    codes = np.load(base)
    codes[3] ^= np.array([128, 0], np.uint8)
    np.save(tmp_path / "changed.npy", codes)
    error = ilhash_command("push", tmp_path / "changed.npy", url, "--bits", N_BITS, code=2).err
    assert "got 1 with others" in error
    assert (
        "(1,497 were there, 1 changed)".replace("1,497", f"{N_BASE - 1:,}")
        in ilhash_command("push", tmp_path / "changed.npy", url, "--bits", N_BITS, "--update").out
    )
    with engines.open(url) as engine:
        assert np.array_equal(engine.codes([3])[0], codes[3])


def test_better_order_through_an_engine(ilhash_command, retrieval, base, url):
    ilhash_command("push", base, url)
    model = ilhash.load(retrieval / "model")
    X, items = np.load(retrieval / "queries-X.npy"), np.load(retrieval / "base-X.npy")
    vectors = (retrieval / "queries-X.npy", "--model", retrieval / "model", "-k", 5, "--json")
    index = ilhash.HammingIndex(np.load(base), n_bits=N_BITS)
    margins = model.decision_function(X)
    found = json.loads(ilhash_command("search", url, *vectors, "--order", "asymmetric").out)
    whole = index.search_asymmetric(margins, N_BASE)
    with engines.open(url) as engine:
        assert engine.search_asymmetric(margins[:3], 5, shortlist=N_BASE).ids.tolist() == whole.ids[:3, :5].tolist()
    assert len(found) == len(X)
    of_items = ("--vectors", retrieval / "base-X.npy")
    found = json.loads(ilhash_command("search", url, *vectors, "--order", "vectors", *of_items).out)
    near = index.search(model.transform(X), 1000)
    assert [hit["ids"] for hit in found] == ilhash.search.rescore(near, X, items, 5).ids.tolist()
    found = json.loads(ilhash_command("search", url, *vectors, "--order", "margins", *of_items).out)
    unit = [m / np.linalg.norm(m, axis=1, keepdims=True) for m in (margins, model.decision_function(items))]
    assert [hit["ids"] for hit in found] == ilhash.search.rescore(near, *unit, 5).ids.tolist()
    assert "keeps no margins" in ilhash_command("search", url, *vectors, "--order", "margins", code=2).err


def test_the_list_of_engines(ilhash_command):
    told = ilhash_command("engines").out
    for entry in engines.ENTRIES.values():
        assert entry.scheme in told


def test_an_engine_that_is_not_installed_names_the_command(ilhash_command, monkeypatch, base, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "apsw", None)
    error = ilhash_command("push", base, f"sqlite:///{tmp_path}/x.db", code=2).err
    assert 'pip install "ilhash[sqlite]"' in error
    assert not (tmp_path / "x.db").exists()


def test_check_says_that_exact_engines_are_exact(ilhash_command, base, url):
    ilhash_command("push", base, url)
    assert "every search is exact" in ilhash_command("engines", "check", url, "--codes", base).out


@pytest.mark.parametrize("mode", ["hnsw", "ivf"])
def test_check_measures_modes(ilhash_command, base, tmp_path, mode):
    place = f"faiss:///{tmp_path}/items.faiss"
    ilhash_command("push", base, place)
    told = ilhash_command("engines", "check", place, "--codes", base, "--mode", mode)
    assert f"{mode}: recall " in told.out
    assert "ms a query" in told.out


def test_check_warns_of_a_mode_that_misses(ilhash_command, tmp_path):
    """Random codes have no lists that hold their neighbours: an inverted file looks at an eighth of them."""
    np.save(tmp_path / "codes.npy", np.random.default_rng(0).integers(0, 256, (20_000, 16), np.uint8))
    place = f"faiss:///{tmp_path}/items.faiss"
    ilhash_command("push", tmp_path / "codes.npy", place, "--bits", 128)
    np.save(tmp_path / "asked.npy", np.random.default_rng(1).integers(0, 256, (50, 16), np.uint8))
    asked = ("--codes", tmp_path / "asked.npy", "--bits", 128, "--mode", "ivf")
    told = ilhash_command("engines", "check", place, *asked)
    assert float(told.out.partition("ivf: recall ")[2].split()[0]) < engines.ENOUGH
    assert "warning: ivf:" in told.err
    assert "use mode='exact'" in " ".join(told.err.split())


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("oracle://here", "url must begin with one of folder://, "),
        ("sqlite:///nowhere/at/all.db", "in a folder that exists"),
        ("sqlite://", "url must name a path"),
        ("postgresql://me:secret@127.0.0.1:1/items", "127.0.0.1"),
    ],
)
def test_wrong_places(ilhash_command, base, url, sentence):
    error = ilhash_command("push", base, url, code=2).err
    assert sentence in " ".join(error.split())
    assert "secret" not in error
    assert "Traceback" not in error


def test_wrong_options(ilhash_command, retrieval, base, url, tmp_path):
    np.save(tmp_path / "ids.npy", np.arange(3))
    assert "one per code, got 3" in ilhash_command("push", base, url, "--ids", tmp_path / "ids.npy", code=2).err
    ilhash_command("push", base, url)
    ilhash_command("pull", url, "-o", tmp_path / "a.npy")
    assert "which exists" in ilhash_command("pull", url, "-o", tmp_path / "a.npy", code=2).err
    assert (tmp_path / "a.ids.npy").exists()
    np.save(tmp_path / "other.npy", np.zeros((3, 4), np.uint8))
    assert "n_bits must be" in ilhash_command("push", tmp_path / "other.npy", url, "--bits", 32, code=2).err
