"""``ilhash grow``, ``prune`` and mixes in ``fit``, as a person runs them."""

import json
import sys
import warnings

import numpy as np
import pytest

import ilhash
from ilhash import ILH, HoldOut, Mix
from ilhash.cli import main
from ilhash.cli._choose import terminal_curve

SMALL = ("--set", "n_similar=10", "--set", "n_dissimilar=10", "--n-train", 300)


@pytest.fixture(scope="module")
def files(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("choose")
    np.save(folder / "X.npy", digits[0])
    np.save(folder / "y.npy", digits[1])
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process; returns exit code, output and errors."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["ilhash", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets another
        with pytest.raises(SystemExit) as left:
            main()
        out = capsys.readouterr()
        return left.value.code, out.out, out.err

    return command


@pytest.fixture
def grown(files, run):
    folder = files / "grown"
    if not folder.exists():
        code, out, err = run(
            *("grow", files / "X.npy", "--labels", files / "y.npy", "--max-bits", 30, "-k", 50, *SMALL, "-j", 2),
            *("--patience", 6, "--tolerance", 0.01, "--pool", files / "pool", "--plot", files / "curve.png"),
            *("--json", files / "curve.json", "-o", folder),
        )
        assert code == 0, err
        (files / "said").write_text(out)
    return folder


def test_grow_saves_what_the_library_grows(files, digits, grown):
    growth = ilhash.grow(
        ILH(n_similar=10, n_dissimilar=10, n_train=300), *digits, max_bits=30, k=50, patience=6, tolerance=0.01
    )
    assert np.array_equal(ilhash.load(grown).transform(digits[0]), growth.model.transform(digits[0]))
    assert ilhash.load(files / "pool").n_bits == len(growth.curve)
    numbers = json.loads((files / "curve.json").read_text())
    assert numbers["n_bits"] == growth.n_bits
    assert numbers["curve"] == growth.curve.tolist()
    assert (files / "curve.png").read_bytes().startswith(b"\x89PNG")
    said = (files / "said").read_text()
    assert f"with {growth.n_bits} bits" in said
    assert "█" in said


def test_grow_goes_on_from_a_model(files, grown, run):
    code, out, err = run(
        *("grow", files / "X.npy", "--labels", files / "y.npy", "--model", grown, "--max-bits", 5, "-k", 50),
        *("-o", files / "short"),
    )
    assert code == 0, err
    assert "the limit of 5 was reached" in out
    code, _, err = run("grow", "digits", "--model", grown, "--set", "n_similar=5", "-o", files / "no")
    assert code == 2
    assert "--set must not be given with --model" in err


def test_prune_saves_what_the_library_prunes(files, digits, grown, run):
    code, out, err = run(
        *("prune", files / "pool", files / "X.npy", "--labels", files / "y.npy", "--bits", 6, "-k", 50, "-j", -1),
        *("--plot", files / "pruned.svg", "--json", files / "pruned.json", "-o", files / "pruned"),
    )
    assert code == 0, err
    pool = ilhash.load(files / "pool")
    wanted = ilhash.prune(pool, *digits, 6, k=50)
    assert np.array_equal(ilhash.load(files / "pruned").transform(digits[0]), wanted.model.transform(digits[0]))
    assert json.loads((files / "pruned.json").read_text())["chosen"] == wanted.chosen
    assert b"<svg" in (files / "pruned.svg").read_bytes()
    assert f"kept 6 of {pool.n_bits} bits" in out


def test_a_mix_is_fitted_told_about_and_pruned(files, digits, run):
    code, out, err = run(
        *("fit", files / "X.npy", "--labels", files / "y.npy", "--method", "ilh:8+itq:7", "--n-similar", 10),
        *("--n-train", 300, "--seed", 3, "--hold-out", 120, "--hold-out-classes", 2, "-o", files / "mix"),
    )
    assert code == 0, err
    assert "trained 15 bits" in out
    mix = ilhash.load(files / "mix")
    held_out = HoldOut(120, classes=2)
    models = [ILH(8, n_similar=10, n_train=300, random_state=3), ilhash.methods.ITQ(7, n_train=300, random_state=3)]
    wanted = Mix(models).fit(digits[0], held_out.labels(digits[1]))
    assert np.array_equal(mix.transform(digits[0]), wanted.transform(digits[0]))
    code, out, _ = run("info", files / "mix")
    assert code == 0
    assert "Mix 15 bits, 64 features, functions: linear" in out
    assert "ILH 8 of the bits" in out
    assert "ITQ 7 of the bits" in out
    code, out, err = run(
        *("prune", files / "mix", files / "X.npy", "--labels", files / "y.npy", "--queries", 120, "-k", 10),
        *("--hold-out-classes", 2, "--bits", 5, "-o", files / "mixed"),
    )
    assert code == 0, err
    assert "on unseen classes" in out
    assert ilhash.load(files / "mixed").n_bits == 5


def test_bad_input_is_one_sentence_and_nothing_is_written(files, grown, run):
    X, y, new = files / "X.npy", files / "y.npy", files / "new"
    for arguments, message in (
        (("grow", X, "-o", new), "--labels must be given"),
        (("grow", X, "--labels", y, "-o", grown), "--output must be a new directory"),
        (("grow", X, "--labels", y, "--pool", grown, "-o", new), "--pool must be a new directory"),
        (("grow", X, "--labels", y, "--plot", files / "p.txt", "-o", new), "--plot must be a"),
        (("grow", X, "--labels", y, "--json", files / "p.txt", "-o", new), "--json must be a"),
        (("grow", X, "--labels", y, "--n-train", "x", "-o", new), "--n-train must be 'auto' or a number"),
        (("grow", X, "--labels", y, "--patience", 0, "-o", new), "patience must be"),
        (("grow", X, "--labels", y, "--set", "speed=9", "-o", new), "parameters of ILH must be among"),
        (("prune", grown, X, "--labels", y, "--bits", 500, "-o", new), "n_bits must be at most"),
        (
            ("prune", grown, X, "--labels", y, "--bits", 2, "--hold-out-seed", 1, "-o", new),
            "must not have been trained",
        ),
        (("prune", files / "nothing", X, "--labels", y, "--bits", 2, "-o", new), "does not exist"),
        (("fit", X, "--method", "ilh:8+itq:x", "-o", new), "--method must be like ilh:64+itq:64"),
        (("fit", X, "--method", "ilh:8+xyz:9", "-o", new), "method must be one of"),
        (("fit", X, "--method", "ilh:8+itq:8", "--bits", 9, "-o", new), "--bits must stand in --method"),
        (("fit", X, "--method", "itq:8+lsh:8", "--C", 1, "-o", new), "must be known to one of its methods, got C"),
        (("fit", X, "--hold-out", 9, "-o", new), "--hold-out must be given with --labels"),
        (("fit", X, "--method", "ilh:8+itq:8", "--pairs", X, "-o", new), "Mix must be given labels"),
    ):
        code, _, err = run(*arguments)
        assert code == 2, err
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert message in err
    assert not new.exists()


def test_the_curve_in_the_terminal():
    text = terminal_curve([0.1, 0.5, 0.9], 3, height=2).plain
    assert text.splitlines()[0].startswith(" 0.900")
    assert text.splitlines()[0].rstrip().endswith("█")
    long = terminal_curve(np.linspace(0, 1, 100), 200).plain.splitlines()
    assert all(len(line) <= 71 for line in long)
    assert long[-1].endswith("200 bits")
    assert terminal_curve([0.3], 1).plain.count("\n") == 8
