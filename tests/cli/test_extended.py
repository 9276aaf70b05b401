"""A model that was extended, on the command line: codes and index follow, the model before is understood."""

import json

import numpy as np
import pytest

import ilhash


@pytest.fixture
def folder(tmp_path, digits):
    X, y = digits
    np.save(tmp_path / "X.npy", X)
    old = ilhash.ILH(n_bits=13, n_similar=8, n_train=300).fit(X[y < 7], y[y < 7], check=False)
    old.save(tmp_path / "old")
    old[:].extend(6, X, y, name="all ten", check=False).save(tmp_path / "new")
    return tmp_path


def test_codes_and_index_follow(ilhash_command, folder):
    vectors = folder / "X.npy"
    ilhash_command("encode", folder / "old", vectors, "-o", folder / "codes.npy")
    ilhash_command("index", folder / "codes.npy", "-o", folder / "idx")
    asked = ("search", folder / "idx", vectors, "-k", 4, "--json")
    before = json.loads(ilhash_command(*asked, "--model", folder / "old").out)
    told = ilhash_command("index", "-o", folder / "idx", "--follow", folder / "new", "--vectors", vectors).out
    assert "encoded 6 new bits" in told
    assert "holds 19 bits of 1,797 items" in told
    assert json.loads(ilhash_command(*asked, "--model", folder / "old").out) == before
    by_codes = ("search", folder / "idx", folder / "codes.npy", "-k", 4, "--json")
    assert json.loads(ilhash_command(*by_codes).out) == before
    ilhash_command("encode", folder / "new", vectors, "-o", folder / "new.npy", "--known", folder / "codes.npy")
    new = ilhash.load(folder / "new")
    assert np.array_equal(np.load(folder / "new.npy"), new.transform(np.load(vectors)))
    ilhash_command("index", folder / "new.npy", "-o", folder / "anew")
    there, anew = (
        json.loads(ilhash_command("search", folder / name, folder / "new.npy", "-k", 4, "--json").out)
        for name in ("idx", "anew")
    )
    assert there == anew


def test_info_says_where_bits_came_from(ilhash_command, folder):
    told = ilhash_command("info", folder / "new").out
    assert "bits 0 to 12: ILH, generation 0, trained 20" in told
    assert "bits 13 to 18: ILH, generation 1 'all ten', trained 20" in told


def test_options_that_do_not_go_together(ilhash_command, folder):
    follow = ("index", "-o", folder / "idx", "--follow", folder / "new")
    assert "must be given together" in ilhash_command(*follow, code=2).err
    assert "without codes" in ilhash_command(*follow, "--vectors", folder / "X.npy", "--add", code=2).err
