"""``ilhash verify`` names every damage, and a damaged index is never served."""

import pytest


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("kind", ["segment-*.bin", "manifest.json"])
@pytest.mark.parametrize("damage", [flip, cut, lambda path: path.unlink()], ids=["flip", "cut", "delete"])
def test_damage_is_named_and_never_served(retrieval, tmp_path, ilhash_command, kind, damage):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx")
    (path,) = (tmp_path / "idx").glob(kind)
    damage(path)
    verified = ilhash_command("verify", tmp_path / "idx", code=1)
    assert "nothing damaged" not in verified.out
    assert path.name in verified.out
    refused = ilhash_command("search", tmp_path / "idx", retrieval / "queries.npy", "-o", tmp_path / "hits.npy", code=2)
    assert refused.err.startswith("error: ")
    assert path.name in refused.err
    assert refused.out == ""
    assert not list(tmp_path.glob("hits*"))


REFUSED = [
    # what is wrong, words of the sentence, command; b: the folder of bad things, f: that of good ones
    ("no index", "not a store", "verify b/nothing"),
    ("another folder", "not a store", "verify b/notes"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "command"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_one_sentence_with_exit_code_2_and_nothing_written(is_refused, words, command):
    is_refused(words, command)
