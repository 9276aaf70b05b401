"""``ilhash search``: what it prints and writes, how it refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.cli.shared import N_BITS, as_lists, contents, texts

import ilhash
from ilhash import HammingIndex


def test_as_a_person_runs_them(retrieval, arrays, tmp_path):
    def process(*arguments):
        command = [sys.executable, "-m", "ilhash", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    out = process("index", retrieval / "base.npy", "-o", tmp_path / "idx")
    n_distinct = len(np.unique(arrays.base, axis=0))
    assert "indexed 1,400 codes of 13 bits" in out
    assert f"holds 1,400 items on {n_distinct:,} distinct codes" in out
    index = HammingIndex(arrays.base, n_bits=N_BITS)
    out = process("search", tmp_path / "idx", retrieval / "queries.npy", "-k", 7, "--json")
    assert json.loads(out) == as_lists(index.search(arrays.queries, 7))
    assert "nothing damaged" in process("verify", tmp_path / "idx")


def test_search_prints_a_table(retrieval, arrays, tmp_path, ilhash_command):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx")
    out = ilhash_command("search", tmp_path / "idx", retrieval / "queries.npy", "-k", 9).out
    hits = HammingIndex(arrays.base, n_bits=N_BITS).search(arrays.queries, 9)
    assert f"{hits.ids[0, 0]} ({hits.distances[0, 0]}), {hits.ids[0, 1]} ({hits.distances[0, 1]})" in out
    assert "..." in out
    assert "and 387 more queries" in out
    assert "exact, ordered by (distance, id)" in out


@pytest.mark.parametrize("radius", [0, 3])
def test_radius(retrieval, arrays, tmp_path, ilhash_command, radius):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx", "--ids", retrieval / "texts.txt")
    hits = HammingIndex(arrays.base, n_bits=N_BITS, ids=texts()).within(arrays.queries, radius)
    search = ("search", tmp_path / "idx", retrieval / "queries.npy", "--radius", radius)
    for name in ("hits.json", "hits.npz"):
        ilhash_command(*search, "-o", tmp_path / name, "--n-threads", -1)
    assert json.loads((tmp_path / "hits.json").read_text()) == as_lists(hits)
    with np.load(tmp_path / "hits.npz") as written:
        assert np.array_equal(written["offsets"], hits.offsets)
        assert written["ids"].tolist() == hits.ids.tolist()
        assert np.array_equal(written["distances"], hits.distances)
    refused = ilhash_command(*search, "-o", tmp_path / "hits.npy", code=2)
    assert ".npz or .json" in refused.err
    assert not list(tmp_path.glob("*.npy"))


def test_vectors_are_encoded_by_the_model(retrieval, arrays, tmp_path, ilhash_command):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx")
    index, model = HammingIndex(arrays.base, n_bits=N_BITS), ilhash.load(retrieval / "model")
    for source, vectors in (
        (retrieval / "queries-X.npy", arrays.queries_X),
        ("digits", ilhash.datasets.load("digits").X),
    ):
        out = ilhash_command("search", tmp_path / "idx", source, "--model", retrieval / "model", "-k", 3, "--json").out
        assert json.loads(out) == as_lists(index.search(model.transform(vectors), 3))


def test_output_is_replaced_by_force_alone(retrieval, tmp_path, ilhash_command):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx")
    search = ("search", tmp_path / "idx", retrieval / "queries.npy", "-o", tmp_path / "hits.npy")
    ilhash_command(*search)
    before = contents(tmp_path)
    assert "--force" in ilhash_command(*search, code=2).err
    (tmp_path / "hits.npy").unlink()
    assert "hits.distances.npy" in ilhash_command(*search, code=2).err
    (tmp_path / "hits.npy").write_bytes(b"old")
    ilhash_command(*search, "--force")
    assert contents(tmp_path) == before


REFUSED = [
    # what is wrong, words of the sentence, command; b: the folder of bad things, f: that of good ones
    ("no index", "not a store", "search b/nothing f/queries.npy -o b/new.npy"),
    ("another folder", "not a store", "search b/notes f/queries.npy -o b/new.npy"),
    ("no queries", "does not exist", "search b/idx b/nothing.npy -o b/new.npy"),
    ("garbage", "garbage.npy", "search b/idx b/garbage.npy -o b/new.npy"),
    ("other width", "13 bits", "search b/idx b/wide.npy -o b/new.npy"),
    ("other bits", "must have 13 bits, got 12", "search b/idx b/twelve.npy -o b/new.npy"),
    ("another model", "13 bits of the index, got 5", "search b/idx digits --model b/five -o b/new.npy"),
    ("no model", "nothing", "search b/idx digits --model b/nothing -o b/new.npy"),
    ("k", "k must be a whole number of at least 1, got 0", "search b/idx f/queries.npy -k 0 -o b/new.npy"),
    ("radius", "at least 0, got -1", "search b/idx f/queries.npy --radius -1 -o b/new.npy"),
    ("threads", "n_threads", "search b/idx f/queries.npy --n-threads 0 -o b/new.npy"),
    ("kind of output", ".npy or .npz or .json", "search b/idx f/queries.npy -o b/new.txt"),
    ("output exists", "--force", "search b/idx f/queries.npy -o b/there.json"),
    ("output is a folder", "exists", "search b/idx f/queries.npy -o b/dir.npy --force"),
    ("no folder of output", "folder", "search b/idx f/queries.npy -o b/no/new.npy"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "command"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_one_sentence_with_exit_code_2_and_nothing_written(is_refused, words, command):
    is_refused(words, command)
