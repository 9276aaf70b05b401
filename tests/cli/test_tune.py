"""``ilhash tune`` saves what the library finds, and goes on after a kill."""

import json

import numpy as np
import pytest

import ilhash

WAYS = ("--bytes", 1, "--minutes", 0.03, "-j", 1)


pytestmark = pytest.mark.usefixtures("no_clock")


def test_tune_saves_what_the_library_finds(files, digits, tmp_path, ilhash_command):
    out = ilhash_command(
        *("tune", files / "X.npy", "--labels", files / "y.npy", *WAYS, "-o", tmp_path / "model"),
        *("--plot", tmp_path / "front.png", "--json", tmp_path / "all.json"),
    ).out
    found = ilhash.tune(*digits, n_bytes=1, minutes=0.03, n_jobs=1)
    model = ilhash.load(tmp_path / "model")
    assert np.array_equal(model.transform(digits[0]), found.model.transform(digits[0]))
    assert f"new items: {found.reports['new'].value:.3f} ± " in out
    assert found.reason in out
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    numbers = json.loads((tmp_path / "all.json").read_text())
    assert numbers["name"] == found.name
    assert numbers["reports"]["new"]["value"] == found.reports["new"].value
    assert not (tmp_path / "model.tuning").exists()


def test_what_was_trained_is_gone_on_with(files, digits, tmp_path, ilhash_command, monkeypatch):
    folder = tmp_path / "model.tuning"
    ilhash.tune(*digits, n_bytes=1, minutes=0.03, n_jobs=1, checkpoint=folder)
    monkeypatch.setattr(ilhash.methods.ITQ, "fit", lambda *_, **__: pytest.fail("ITQ was there already"))
    ilhash_command("tune", files / "X.npy", "--labels", files / "y.npy", *WAYS, "-o", tmp_path / "model")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--bytes", 0), "n_bytes must be"),
        (("--minutes", 0), "minutes must be"),
        (("-k", 100_000), "k must be below the"),
        (("--unseen", 3), "unseen must be"),
        (("--base", "old"), "base must be"),
    ],
)
def test_bad_input_is_said(files, tmp_path, ilhash_command, given, said):
    arguments = ("tune", files / "X.npy", "--labels", files / "y.npy", *given, "-o", tmp_path / "model")
    failed = ilhash_command(*arguments, code=2)
    assert said in " ".join(failed.err.split())
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "model.tuning").exists()


def test_pairs_are_taken(files, digits, tmp_path, ilhash_command):
    y = digits[1]
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, len(y), (2, 60_000))
    np.save(tmp_path / "pairs.npy", np.column_stack([i, j, np.where(y[i] == y[j], 1, -1)])[i != j])
    pairs = ("--pairs", tmp_path / "pairs.npy")
    out = ilhash_command("tune", files / "X.npy", *pairs, *WAYS, "-o", tmp_path / "model").out
    assert "share of held-out pairs found@10" in out
