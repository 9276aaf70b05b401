"""``ilhash index``: what it prints and writes, how it refuses."""

import errno
import json

import numpy as np
import pytest
from tests.cli.shared import N_BITS, as_lists, texts

import ilhash
from ilhash import HammingIndex, methods
from ilhash.encoding import StoredCodes


@pytest.mark.parametrize("source", ["numbers.npy", "numbers.csv", "texts.txt"])
def test_ids(retrieval, arrays, tmp_path, ilhash_command, source):
    numbers = np.load(retrieval / "numbers.npy")
    np.savetxt(tmp_path / "numbers.csv", numbers, fmt="%d")
    path = tmp_path / source if source == "numbers.csv" else retrieval / source
    ids = texts() if source == "texts.txt" else numbers
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx", "--ids", path)
    hits = HammingIndex(arrays.base, n_bits=N_BITS, ids=ids).search(arrays.queries, 2)
    search = ("search", tmp_path / "idx", retrieval / "queries.npy", "-k", 2)
    assert json.loads(ilhash_command(*search, "--json").out) == as_lists(hits)
    assert f"{hits.ids[0, 0]} ({hits.distances[0, 0]}), {hits.ids[0, 1]}" in ilhash_command(*search).out
    ilhash_command(*search, "-o", tmp_path / "hits.npy")
    assert np.load(tmp_path / "hits.npy").tolist() == hits.ids.tolist()
    assert np.load(tmp_path / "hits.distances.npy").tolist() == hits.distances.tolist()


def test_lines_of_a_text_are_ids_whatever_system_wrote_it(retrieval, tmp_path, ilhash_command):
    np.save(tmp_path / "three.npy", np.load(retrieval / "base.npy")[:3])
    (tmp_path / "ids.txt").write_bytes("007\r\n8\r\nnine\u2028nine".encode("utf-8-sig"))
    command = ("index", tmp_path / "three.npy", "--bits", N_BITS, "--ids", tmp_path / "ids.txt", "-o", tmp_path / "idx")
    ilhash_command(*command)
    with HammingIndex.open(tmp_path / "idx", writable=False) as index:
        assert index.ids.tolist() == ["007", "8", "nine\u2028nine"]


def test_add(retrieval, arrays, tmp_path, ilhash_command):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx")
    out = ilhash_command("index", retrieval / "queries.npy", "-o", tmp_path / "idx", "--add").out
    assert "indexed 397 codes" in out
    assert "holds 1,797 items" in out
    both = HammingIndex(np.concatenate([arrays.base, arrays.queries]), n_bits=N_BITS)
    found = json.loads(ilhash_command("search", tmp_path / "idx", retrieval / "queries.npy", "--json").out)
    assert found == as_lists(both.search(arrays.queries))


def test_codes_without_a_json_beside_them(retrieval, arrays, tmp_path, ilhash_command):
    np.save(tmp_path / "bare.npy", arrays.base)
    refused = ilhash_command("index", tmp_path / "bare.npy", "-o", tmp_path / "all", code=2).err
    assert "must have its number of bits stated in bare.npy.json beside it" in refused
    assert "15 bits" in ilhash_command("index", tmp_path / "bare.npy", "--bits", 15, "-o", tmp_path / "fifteen").out


def test_a_full_disk_leaves_nothing(retrieval, tmp_path, ilhash_command, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr("ilhash.search._store.Store.commit", fail)
    refused = ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx", code=2)
    assert "nothing is left of it: No space left on device" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_one_writer_at_a_time(retrieval, tmp_path, ilhash_command):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx")
    with HammingIndex.open(tmp_path / "idx"):
        refused = ilhash_command("index", retrieval / "queries.npy", "-o", tmp_path / "idx", "--add", code=2)
        assert "one writer" in refused.err
        ilhash_command("search", tmp_path / "idx", retrieval / "queries.npy", "-k", 1)


REFUSED = [
    # what is wrong, words of the sentence, command; b: the folder of bad things, f: that of good ones
    ("no codes", "does not exist", "index b/nothing.npy -o b/new"),
    ("codes are a folder", "directory", "index b/notes -o b/new"),
    ("garbage", "garbage.npy", "index b/garbage.npy -o b/new"),
    ("an empty file", "empty", "index b/empty.npy -o b/new"),
    ("floats", "uint8", "index b/floats.npy -o b/new"),
    ("one dimension", "2-D", "index b/flat.npy -o b/new"),
    ("bits against the .json", "must have 14 bits, got 13", "index f/base.npy --bits 14 -o b/new"),
    ("bits against the width", "5 bits", "index b/wide.npy --bits 5 -o b/new"),
    ("no bits", "n_bits", "index b/wide.npy --bits 0 -o b/new"),
    ("padding", "padding bits after bit 13, got others in 1400", "index b/padded.npy --bits 13 -o b/new"),
    ("a .json that says nothing", "n_bits", "index b/mute.npy -o b/new"),
    ("it exists", "--add", "index f/base.npy -o b/idx"),
    ("another folder exists", "--add", "index f/base.npy -o b/notes"),
    ("add to nothing", "not a store", "index f/base.npy -o b/new --add"),
    ("add to another folder", "not a store", "index f/base.npy -o b/notes --add"),
    ("add other bits", "--bits", "index b/padded.npy --bits 16 -o b/idx --add"),
    ("add codes of other bits", "must have 13 bits, got 12", "index b/twelve.npy -o b/idx --add"),
    ("add ids that are there", "1400 of 1400", "index f/base.npy --ids b/thousands.npy -o b/idx --add"),
    ("add texts to numbers", "kind", "index f/base.npy --ids f/texts.txt -o b/idx --add"),
    ("no ids", "got none", "index f/base.npy --ids b/nothing.txt -o b/new"),
    ("too few ids", "1400 items", "index f/base.npy --ids b/few.npy -o b/new"),
    ("repeated ids", "distinct", "index f/base.npy --ids b/same.npy -o b/new"),
    ("ids of a matrix", "base-X.npy", "index f/base.npy --ids f/base-X.npy -o b/new"),
    ("ids not in UTF-8", "UTF-8", "index f/base.npy --ids b/latin.txt -o b/new"),
    ("an empty id", "1 of 3 lines", "index f/base.npy --ids b/gap.txt -o b/new"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "command"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_one_sentence_with_exit_code_2_and_nothing_written(is_refused, words, command):
    is_refused(words, command)


def test_shards_are_read_one_by_one(tmp_path, digits, ilhash_command, monkeypatch):
    X, y = digits
    codes = ilhash.write_codes(methods.LSH(n_bits=20).fit(X), X, tmp_path / "codes", rows_per_shard=500)
    np.save(tmp_path / "codes.npy", codes.read())
    np.save(tmp_path / "y.npy", y)
    whole = ilhash_command("evaluate", tmp_path / "codes.npy", "--bits", 20, "--labels", tmp_path / "y.npy").out
    with monkeypatch.context() as patch:
        patch.setattr(StoredCodes, "read", lambda self: pytest.fail("read whole"))
        ilhash_command("index", tmp_path / "codes", "-o", tmp_path / "idx")
        assert ilhash_command("evaluate", tmp_path / "codes", "--labels", tmp_path / "y.npy").out == whole
    with ilhash.HammingIndex.open(tmp_path / "idx") as index:
        wanted = ilhash.HammingIndex(codes.read(), n_bits=20).search(codes.read()[:50], 20)
        assert np.array_equal(index.search(codes.read()[:50], 20).ids, wanted.ids)
