"""``ilhash encode`` to one file; shards are tried beside the library's (tests/encoding)."""

import json

import numpy as np
import pytest

import ilhash


@pytest.fixture
def model(files, digits):
    if not (files / "m").exists():
        ilhash.ILH(12, n_similar=20, n_dissimilar=20).fit(*digits).save(files / "m")
    return files / "m"


def test_codes_are_those_of_the_library(files, digits, model, ilhash_command):
    out = ilhash_command("encode", model, files / "X.npy", "-o", files / "codes.npy").out
    assert "12 bits (2 bytes)" in out
    assert np.array_equal(np.load(files / "codes.npy"), ilhash.load(model).transform(digits[0]))
    assert json.loads((files / "codes.npy.json").read_text())["n_bits"] == 12
    assert "--force" in ilhash_command("encode", model, files / "X.npy", "-o", files / "codes.npy", code=2).err
    ilhash_command("encode", model, files / "X.npy", "-o", files / "codes.npy", "--force")


@pytest.mark.parametrize(
    ("output", "force", "words"),
    [("e.txt", [], "--output must be a .npy file"), ("e", ["--force"], "--force must be given with a .npy file")],
)
def test_bad_output_is_one_sentence(files, model, ilhash_command, output, force, words):
    assert words in ilhash_command("encode", model, files / "X.npy", "-o", files / output, *force, code=2).err
    assert not (files / output).exists()


def test_a_model_that_is_not_there(files, ilhash_command):
    assert "nothing" in ilhash_command("encode", files / "nothing", files / "X.npy", "-o", "e.npy", code=2).err
