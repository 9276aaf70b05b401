"""``ilhash info``."""

import numpy as np

import ilhash
from ilhash import ILH, Mix
from ilhash.methods import ITQ


def test_an_ensemble(tmp_path, digits, ilhash_command):
    ILH(12, n_similar=20, n_dissimilar=20).fit(*digits).save(tmp_path / "m")
    out = ilhash_command("info", tmp_path / "m").out
    assert "ILH 12 bits, 64 features, functions: linear" in out
    assert "2 disjoint sets, then a fresh permutation" in out
    assert "{'n_bits': 12, 'n_dissimilar': 20, 'n_similar': 20}" in out
    assert "training accuracy" in out
    assert '898 points per bit (n_train="auto"), 2 disjoint' in out


def test_another_method(tmp_path, digits, ilhash_command):
    ITQ(12, max_iter=5).fit(digits[0]).save(tmp_path / "m")
    out = ilhash_command("info", tmp_path / "m").out
    assert "ITQ 12 bits, 64 features, functions: linear" in out
    assert "parameters other than default: {'max_iter': 5, 'n_bits': 12}" in out
    assert '1,797 of 1,797 points (n_train="auto": up to 50,000), the same for all bits' in out
    ITQ(12, n_train=500).fit(digits[0]).save(tmp_path / "fewer")
    assert "500 of 1,797 points, the same for all bits" in ilhash_command("info", tmp_path / "fewer").out


def test_a_mix(tmp_path, digits, ilhash_command):
    Mix([ILH(8, n_similar=20, n_dissimilar=20), ITQ(7)]).fit(*digits).save(tmp_path / "m")
    out = ilhash_command("info", tmp_path / "m").out
    assert "Mix 15 bits, 64 features, functions: linear" in out
    assert "ILH 8 of the bits" in out
    assert "ITQ 7 of the bits" in out


def test_no_model(tmp_path, ilhash_command):
    assert "does not exist" in ilhash_command("info", tmp_path / "nothing", code=2).err


def test_what_bits_begin_with(tmp_path, digits, ilhash_command):
    X, y = digits
    ILH(4, n_similar=20, n_dissimilar=20).fit(X, y).save(tmp_path / "few")
    assert "start: random (10 classes, each with more than 20 points" in ilhash_command("info", tmp_path / "few").out
    ILH(4).fit(X).save(tmp_path / "none")
    out = " ".join(ilhash_command("info", tmp_path / "none").out.split())
    assert "start: projection (no supervision) principal directions, [" in out
    assert "sides of hyperplanes are the bits; 0.0% of the points changed sides" in out
    families = y * 50 + np.arange(len(y)) % 50
    ILH(4).fit(X, families).save(tmp_path / "many")
    out = " ".join(ilhash_command("info", tmp_path / "many").out.split())
    assert "classes, some rare) " in out
    assert "(trial bits: hyperplane 0." in out
    assert "held out of their choice" in out


def test_a_page_of_a_model(tmp_path, digits, ilhash_command):
    ilhash.ILH(n_bits=4, n_similar=10, n_train=200).fit(*digits).save(tmp_path / "m")
    page = tmp_path / "card.html"
    assert "page of the model in" in ilhash_command("info", tmp_path / "m", "--html", page).out
    assert "<svg" in page.read_text(encoding="utf-8")
    refused = ilhash_command("info", tmp_path / "m", "--html", page, code=2).err
    assert "--force" in refused
    ilhash_command("info", tmp_path / "m", "--html", page, "--force")
    np.save(tmp_path / "c.npy", np.zeros((2, 1), np.uint8))
    assert "must" in ilhash_command("info", tmp_path / "c.npy", "--html", tmp_path / "n.html", code=2).err
