"""``ilhash evaluate``: the numbers of the library, on the screen, as JSON and as a picture."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from tests.cli.shared import N_BASE, N_BITS, contents

from ilhash import evaluation


def test_evaluate_draws_queries(retrieval, arrays, tmp_path, ilhash_command):
    command = (
        "evaluate",
        retrieval / "base.npy",
        "--labels",
        retrieval / "base-y.npy",
        "--n-queries",
        300,
        "--seed",
        4,
    )
    out = ilhash_command(*command, "-k", 5, "-k", 50, "--radius", 1, "--json", tmp_path / "all.json").out
    protocol = evaluation.Protocol(n_queries=300, k=(5, 50), radius=1, seed=4)
    split = protocol.split(N_BASE)
    expected = protocol.evaluate(
        arrays.base[split.base],
        arrays.base_y[split.base],
        arrays.base[split.queries],
        arrays.base_y[split.queries],
        n_bits=N_BITS,
    )
    expected = dataclasses.replace(expected, base=None)  # nobody told what training saw
    assert str(expected) in out
    assert "base: not stated whether training saw its items" in out
    assert "base: items that training did not see" in ilhash_command(*command, "--base", "new").out
    assert protocol.hash in out
    assert json.loads((tmp_path / "all.json").read_text()) == json.loads(json.dumps(expected.to_dict()))


def test_evaluate_with_given_queries(retrieval, arrays, tmp_path, ilhash_command):
    command = (
        "evaluate",
        retrieval / "base.npy",
        "--labels",
        retrieval / "base-y.npy",
        "--queries",
        retrieval / "queries.npy",
    )
    command += ("--query-labels", retrieval / "queries-y.npy", "--n-threads", -1, "--json", tmp_path / "all.json")
    out = ilhash_command(*command).out
    written = json.loads((tmp_path / "all.json").read_text())
    expected = evaluation.evaluate(
        arrays.base, arrays.base_y, arrays.queries, arrays.queries_y, n_bits=N_BITS, protocol_hash="of these labels"
    )
    assert written | {"protocol_hash": "of these labels"} == json.loads(json.dumps(expected.to_dict()))
    assert written["protocol_hash"] in out
    # No seed drew these queries: the hash must not be that of a draw of as many.
    drawn = evaluation.Protocol(n_queries=len(arrays.queries), k=(10, 100), radius=2)
    given = evaluation.GivenQueries.of(arrays.base_y, arrays.queries_y, k=(10, 100), radius=2)
    assert written["protocol_hash"] == given.hash != drawn.hash


def test_evaluate_with_several_labels_each(retrieval, arrays, tmp_path, ilhash_command):
    several = np.stack([arrays.base_y % 2 == 0, arrays.base_y % 3 == 0, arrays.base_y > 6], axis=1).astype(np.int64)
    np.save(tmp_path / "several.npy", several)
    command = ("evaluate", retrieval / "base.npy", "--labels", tmp_path / "several.npy", "--n-queries", 100)
    out = ilhash_command(*command, "--plot", tmp_path / "curves.svg").out
    protocol = evaluation.Protocol(n_queries=100, k=(10, 100), relevance="shared labels")
    split = protocol.split(N_BASE)
    codes = arrays.base
    expected = protocol.evaluate(
        codes[split.base], several[split.base], codes[split.queries], several[split.queries], n_bits=N_BITS
    )
    assert str(dataclasses.replace(expected, base=None)) in out
    assert b"</svg>" in (tmp_path / "curves.svg").read_bytes()


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_picture_is_drawn_from_the_histograms_of_the_measures(
    retrieval, tmp_path, ilhash_command, monkeypatch, suffix
):
    calls = []
    count = evaluation._histograms._count
    monkeypatch.setattr(evaluation._histograms, "_count", lambda *args: calls.append(args) or count(*args))
    plot = tmp_path / f"curves.{suffix}"
    command = ("evaluate", retrieval / "base.npy", "--labels", retrieval / "base-y.npy", "--plot", plot)
    assert plot.name in ilhash_command(*command, "--n-queries", 200).out
    assert len(calls) == 1
    assert plot.read_bytes().startswith(b"\x89PNG" if suffix == "png" else b"<?xml")


def test_a_plot_without_matplotlib_is_refused_before_the_work(retrieval, tmp_path, ilhash_command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    command = (
        "evaluate",
        retrieval / "base.npy",
        "--labels",
        retrieval / "base-y.npy",
        "--plot",
        tmp_path / "curves.png",
    )
    refused = ilhash_command(*command, "--json", tmp_path / "all.json", code=2)
    assert 'pip install "ilhash[plots]"' in refused.err
    assert refused.out == ""
    assert contents(tmp_path) == {}


def test_queries_must_not_be_the_base(retrieval, ilhash_command):
    command = (
        "evaluate",
        retrieval / "base.npy",
        "--labels",
        retrieval / "base-y.npy",
        "--queries",
        retrieval / "base.npy",
    )
    assert "find themselves" in ilhash_command(*command, "--query-labels", retrieval / "base-y.npy", code=2).err


REFUSED = [
    # what is wrong, words of the sentence, command; b: the folder of bad things, f: that of good ones
    ("no codes", "does not exist", "evaluate b/nothing.npy --labels f/base-y.npy --json b/new.json"),
    ("no labels", "does not exist", "evaluate f/base.npy --labels b/nothing.npy --json b/new.json"),
    ("few labels", "got 3 for the 1400", "evaluate f/base.npy --labels b/few.npy --json b/new.json"),
    ("many labels", "got 1401 for the 1400", "evaluate f/base.npy --labels b/more.npy --json b/new.json"),
    ("queries alone", "together", "evaluate f/base.npy --labels f/base-y.npy --queries f/queries.npy"),
    ("many queries", "1500", "evaluate f/base.npy --labels f/base-y.npy --n-queries 1400 --json b/new.json"),
    ("k", "k must be", "evaluate f/base.npy --labels f/base-y.npy -k 0 --json b/new.json"),
    ("radius", "radius", "evaluate f/base.npy --labels f/base-y.npy --radius -1 --json b/new.json"),
    ("threads", "n_threads", "evaluate f/base.npy --labels f/base-y.npy --n-threads 0 --json b/new.json"),
    ("json exists", "--force", "evaluate f/base.npy --labels f/base-y.npy --json b/there.json"),
    ("kind of plot", ".png", "evaluate f/base.npy --labels f/base-y.npy --json b/new.json --plot b/new.bmp"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "command"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_one_sentence_with_exit_code_2_and_nothing_written(is_refused, words, command):
    is_refused(words, command)
