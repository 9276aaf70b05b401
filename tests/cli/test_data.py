"""``ilhash data``."""

import numpy as np
import pytest

import ilhash

PACKAGES_PRESENT = any(info.name == "debian-packages" and info.present for info in ilhash.datasets.available())


def test_datasets_are_listed(ilhash_command):
    out = ilhash_command("data", "list").out
    assert all(name in out for name in ("digits", "mnist", "cifar10-gist", "endless", "ILHASH_DATA"))
    assert all(f"::{target}" in out for target in ("section", "tags", "source", "pairs"))


def test_a_slice_is_made_the_same_by_any_number_of_threads(tmp_path, ilhash_command):
    for n_threads in (1, 2):
        made = ("data", "make", "infinite-digits", "--n", 40, "--source", "digits", "--n-threads", n_threads)
        assert "made 40 images of 8 x 8 pixels" in ilhash_command(*made, "-o", tmp_path / str(n_threads)).out
    assert np.array_equal(*(np.load(tmp_path / folder / "X.npy") for folder in ("1", "2")))
    refused = ilhash_command("data", "make", "letters", "--n", 1, "-o", tmp_path / "new", code=2)
    assert "must be infinite-digits, got 'letters'" in refused.err


@pytest.mark.skipif(not PACKAGES_PRESENT, reason="ILHASH_DATA does not hold debian-packages")
def test_commands_take_a_dataset_with_its_target(tmp_path, ilhash_command):
    fit = ("fit", "--bits", 2, "--n-similar", 2, "-o")
    said = ilhash_command(*fit, tmp_path / "pairs", "debian-packages::pairs")
    assert "57,298 similar pairs, and as many random ones as dissimilar" in said.out + said.err
    ilhash_command(*fit, tmp_path / "section", "debian-packages::section")
    models = [ilhash.load(tmp_path / name) for name in ("pairs", "section")]
    assert models[0].fingerprint_ != models[1].fingerprint_
    ilhash_command("encode", tmp_path / "pairs", "debian-packages::tags", "-o", tmp_path / "codes.npy")
    assert np.load(tmp_path / "codes.npy").shape == (39_544, 1)
    refused = ilhash_command("compare", "debian-packages::tags", code=2).err
    assert "one for each of the 39544 vectors of debian-packages::tags, got shape (39544, 598)" in refused


def test_an_unknown_target_is_refused(tmp_path, ilhash_command):
    refused = ilhash_command("fit", "debian-packages::topic", "-o", tmp_path / "model", code=2).err
    assert "target must be one of 'section', 'tags', 'source', 'pairs', got 'topic'" in refused


def test_a_dataset_is_got_or_the_server_is_named(tmp_path, ilhash_command, monkeypatch):
    monkeypatch.setenv("ILHASH_DATA", str(tmp_path))
    monkeypatch.setattr("ilhash.datasets._download.PAUSE", 0.001)
    refused = ilhash_command("data", "get", "mnist", "--mirror", "http://127.0.0.1:9", code=2).err
    assert "must be had whole, got 0 bytes" in refused
    assert "the same command goes on from there" in refused
    assert "name must be one of" in ilhash_command("data", "get", "mirflickr", code=2).err
    listed = " ".join(ilhash_command("data", "list").out.split())
    assert "12 MB" in listed
    assert "862 MB" in listed
