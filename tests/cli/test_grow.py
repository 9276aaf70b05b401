"""``ilhash grow`` saves what the library grows."""

import json

import numpy as np
import pytest

import ilhash
from ilhash import ILH
from ilhash.cli._screen import terminal_curve

SMALL = ("--set", "n_similar=10", "--set", "n_dissimilar=10", "--n-train", 300)


@pytest.fixture
def grown(files, ilhash_command):
    folder = files / "grown"
    if not folder.exists():
        out = ilhash_command(
            *("grow", files / "X.npy", "--labels", files / "y.npy", "--max-bits", 30, "-k", 50, *SMALL, "-j", 2),
            *("--patience", 6, "--tolerance", 0.01, "--pool", files / "pool", "--plot", files / "curve.png"),
            *("--json", files / "curve.json", "-o", folder),
        ).out
        (files / "said").write_text(out)
    return folder


def test_grow_saves_what_the_library_grows(files, digits, grown):
    growth = ilhash.grow(
        ILH(n_similar=10, n_dissimilar=10, n_train=300), *digits, max_bits=30, k=50, patience=6, tolerance=0.01
    )
    assert np.array_equal(ilhash.load(grown).transform(digits[0]), growth.model.transform(digits[0]))
    assert ilhash.load(grown).n_jobs == 2
    assert ilhash.load(files / "pool").n_bits == len(growth.curve)
    numbers = json.loads((files / "curve.json").read_text())
    assert numbers == {
        "n_bits": growth.n_bits,
        "stopped": growth.stopped,
        "k": 50,
        "patience": 6,
        "tolerance": 0.01,
        "curve": growth.curve.tolist(),
        "report": growth.report.tolist(),
    }
    assert (files / "curve.png").read_bytes().startswith(b"\x89PNG")
    said = (files / "said").read_text()
    worth = f"{growth.report[growth.n_bits - 1]:.4f} of points that chose nothing"
    assert f"with {growth.n_bits} bits: {worth}, {growth.curve[growth.n_bits - 1]:.4f} of those that chose" in said
    assert "█" in said


def test_grow_goes_on_from_a_model(files, grown, ilhash_command):
    out = ilhash_command(
        *("grow", files / "X.npy", "--labels", files / "y.npy", "--model", grown, "--max-bits", 5, "-k", 50),
        *("-o", files / "short"),
    ).out
    assert "the limit of 5 was reached" in out


@pytest.mark.parametrize(
    ("option", "name"),
    [(("--set", "n_similar=5"), "n_similar"), (("--diversity", "t"), "diversity"), (("--C", 1), "C")],
)
def test_the_parameters_of_a_model_are_fixed(files, grown, ilhash_command, option, name):
    refused = ilhash_command("grow", "digits", "--model", grown, *option, "-o", files / "no", code=2)
    assert f"must not be given with --model, whose own are fixed, got {name}" in refused.err


def test_bad_input_is_one_sentence_and_nothing_is_written(files, grown, ilhash_command):
    X, labels, new = files / "X.npy", ("--labels", files / "y.npy"), files / "new"
    for arguments, message in (
        ((X, "-o", new), "--labels must be given"),
        ((X, *labels, "-o", grown), "--output must be a new directory"),
        ((X, *labels, "--pool", grown, "-o", new), "--pool must be a new directory"),
        ((X, *labels, "--plot", files / "p.txt", "-o", new), "--plot must be a"),
        ((X, *labels, "--json", files / "p.txt", "-o", new), "--json must be a"),
        ((X, *labels, "--n-train", "x", "-o", new), "--n-train must be 'auto' or a number"),
        ((X, *labels, "--patience", 0, "-o", new), "patience must be"),
        ((X, *labels, "--set", "speed=9", "-o", new), "parameters of ILH must be among"),
    ):
        refused = ilhash_command("grow", *arguments, code=2)
        assert refused.err.startswith("error: ")
        assert refused.err.count("\n") == 1
        assert message in refused.err
    assert not new.exists()


def test_the_curve_in_the_terminal():
    text = terminal_curve([0.1, 0.5, 0.9], 3, height=2).plain
    assert text.splitlines()[0].startswith(" 0.900")
    assert text.splitlines()[0].rstrip().endswith("█")
    long = terminal_curve(np.linspace(0, 1, 100), 200).plain.splitlines()
    assert all(len(line) <= 71 for line in long)
    assert long[-1].endswith("200 bits")
    assert terminal_curve([0.3], 1).plain.count("\n") == 8
