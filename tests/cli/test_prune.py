"""``ilhash prune`` saves what the library prunes."""

import json

import numpy as np
import pytest

import ilhash
from ilhash import ILH, HoldOut, Mix


@pytest.fixture
def pool(files, digits):
    if not (files / "pool").exists():
        labels = HoldOut().labels(digits[1])
        ILH(12, n_similar=10, n_dissimilar=10, n_train=300).fit(digits[0], labels).save(files / "pool")
    return files / "pool"


def test_prune_saves_what_the_library_prunes(files, digits, pool, ilhash_command):
    out = ilhash_command(
        *("prune", pool, files / "X.npy", "--labels", files / "y.npy", "--bits", 6, "-k", 50, "--n-threads", -1),
        *("--plot", files / "pruned.svg", "--json", files / "pruned.json", "-o", files / "pruned"),
    ).out
    wanted = ilhash.prune(ilhash.load(pool), *digits, 6, k=50)
    assert np.array_equal(ilhash.load(files / "pruned").transform(digits[0]), wanted.model.transform(digits[0]))
    assert json.loads((files / "pruned.json").read_text())["chosen"] == wanted.chosen
    assert b"<svg" in (files / "pruned.svg").read_bytes()
    assert "kept 6 of 12 bits" in out
    assert f"precision@50 of points that chose nothing {wanted.report_seen[-1]:.4f} on seen classes" in out
    assert f"of those that chose {wanted.seen[-1]:.4f} on seen classes" in out
    numbers = json.loads((files / "pruned.json").read_text())
    assert numbers["seen classes, other points"] == wanted.report_seen.tolist()


def test_without_a_report(files, digits, tmp_path, ilhash_command):
    labels = ("--labels", files / "y.npy", "--report", 0)
    few = ("--n-similar", 10, "--n-train", 300)
    ilhash_command("fit", files / "X.npy", *labels, "--hold-out", 100, "--bits", 5, *few, "-o", tmp_path / "pool")
    pruned = ("prune", tmp_path / "pool", files / "X.npy", "--queries", 100, "--bits", 3, "-k", 20)
    refused = ilhash_command(*pruned, "--labels", files / "y.npy", "-o", tmp_path / "no", code=2).err
    assert "--report 0" in refused
    out = ilhash_command(*pruned, *labels, "-o", tmp_path / "pruned").out
    assert "precision@20 of those that chose " in out
    assert "chose nothing" not in out


def test_a_mix_is_judged_on_unseen_classes_too(files, digits, ilhash_command):
    held_out = HoldOut(120, classes=2)
    mix = Mix([ILH(8, n_similar=10, n_train=300), ilhash.methods.ITQ(7, n_train=300)])
    mix.fit(digits[0], held_out.labels(digits[1])).save(files / "mix")
    out = ilhash_command(
        *("prune", files / "mix", files / "X.npy", "--labels", files / "y.npy", "--queries", 120, "-k", 10),
        *("--hold-out-classes", 2, "--bits", 5, "-o", files / "mixed"),
    ).out
    assert "on unseen classes" in out
    assert "of ILH" in out
    assert ilhash.load(files / "mixed").n_bits == 5


def test_bad_input_is_one_sentence_and_nothing_is_written(files, pool, ilhash_command):
    X, labels, new = files / "X.npy", ("--labels", files / "y.npy"), files / "new"
    for arguments, message in (
        ((pool, X, *labels, "--bits", 500, "-o", new), "n_bits must be at most"),
        ((pool, X, *labels, "--bits", 2, "--hold-out-seed", 1, "-o", new), "must not have been trained"),
        ((pool, X, *labels, "--bits", 2, "--n-threads", 0, "-o", new), "n_threads must be"),
        ((files / "nothing", X, *labels, "--bits", 2, "-o", new), "does not exist"),
    ):
        refused = ilhash_command("prune", *arguments, code=2)
        assert refused.err.startswith("error: ")
        assert refused.err.count("\n") == 1
        assert message in refused.err
    assert not new.exists()
