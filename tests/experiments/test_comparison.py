"""`ilhash compare` and what is behind it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from ilhash import ILH, Mix, methods
from ilhash.evaluation import Protocol, precision_at_k
from ilhash.experiments import comparison
from ilhash.experiments.all_methods import entrants
from ilhash.experiments.comparison import TABLES, Entry, Row, Settings, compare, euclidean_precision

QUICK = ("ITQ", "LSH", "KSHcut-ILHt", "SDH", "class, 1-hot")


@pytest.fixture(scope="module")
def found(digits):
    settings = Settings(bits=(16,), n_train=300, n_queries=200)
    return compare("digits", *digits, settings, tables=["linear", "kernel"], only=QUICK)


def test_a_row_is_what_the_method_gives_by_hand(digits, found):
    X, y = digits
    n_new = (len(X) - 200) // 2
    assert (found.settings.n_train, found.settings.k, found.settings.n_new) == (300, n_new // 10, n_new)
    protocol = Protocol(n_queries=200, k=found.settings.k, base="new", n_new=n_new)
    split = protocol.split(X)
    assert (
        (found.n_base, found.n_known) == (len(split.new), len(split.train)) == (len(split.seen), len(X) - 200 - n_new)
    )
    assert found.protocol_hash == protocol.hash != found.protocol_hash_seen
    for name, model in (("ILHt", ILH(16, n_train=300, hash_function="linear")), ("ITQ", methods.ITQ(16, n_train=300))):
        model.fit(X[split.train], y[split.train])
        codes = model.transform(X)
        row = next(row for row in found.rows if row.name == name and row.table == "linear")
        for base in ("new", "seen"):
            rows = getattr(split, base)
            wanted = precision_at_k(codes[rows], y[rows], codes[split.queries], y[split.queries], found.settings.k)
            assert getattr(row, f"precision_{base}") == pytest.approx(wanted, abs=1e-12)


def test_rows_tell_who_saw_how_many_points(found):
    rows = {(row.table, row.name): row for row in found.rows}
    assert set(rows) == {
        *(("linear", name) for name in ("ILHt", "ITQ", "LSH", "KSHcut-ILHt", "class, 1-hot")),
        *(("kernel", name) for name in ("ILHt", "KSHcut-ILHt", "SDH")),
    }
    assert rows["linear", "ILHt"].n_all == rows["linear", "ITQ"].n_all == min(16 * 300, 799)
    assert rows["linear", "KSHcut-ILHt"].n_all is None
    assert rows["linear", "class, 1-hot"].own_bits == 10
    assert rows["linear", "ILHt"].ratio == rows["kernel", "ILHt"].ratio == 1.0
    assert rows["linear", "ITQ"].ratio == pytest.approx(rows["linear", "ITQ"].seconds / rows["linear", "ILHt"].seconds)
    assert [row.supervised for row in (rows["linear", "ITQ"], rows["kernel", "SDH"])] == [False, True]
    assert not found.same_codes


def test_the_best_comes_first_and_supervised_above_random_projections(found):
    order = [row.name for row in found.best_first("linear", 16)]
    assert order[-1] == "LSH"
    assert order.index("ILHt") < order.index("ITQ")
    json.dumps(found.to_dict(), allow_nan=False)


def test_mixes_share_the_bits_and_are_what_they_are_by_hand(digits):
    X, y = digits
    only = ["ILHt + ITQ", "ILHt + CCAITQ"]
    found = compare("digits", X, y, Settings(bits=(9,), n_train=300, n_queries=200), tables=["linear"], only=only)
    rows = {row.name: row for row in found.rows}
    assert set(rows) == {"ILHt", *only}
    protocol = Protocol(n_queries=200, k=found.settings.k, base="new")
    split = protocol.split(X)
    mix = Mix([ILH(5, n_train=300), methods.ITQ(4, n_train=300)])
    mix.fit(X[split.train], y[split.train])
    codes = mix.transform(X)
    truth = y[split.base], y[split.queries]
    wanted = protocol.evaluate(codes[split.base], truth[0], codes[split.queries], truth[1], n_bits=9)
    assert rows["ILHt + ITQ"].precision_new == pytest.approx(wanted.precision[found.settings.k], abs=1e-12)
    assert rows["ILHt + ITQ"].supervised
    assert rows["ILHt + ITQ"].n_all == 799  # ITQ's part is then trained on all points, ILH's on N per bit
    assert rows["ILHt + ITQ"].precision_all_new != rows["ILHt + ITQ"].precision_new
    assert rows["ILHt + ITQ"].precision_all_seen != rows["ILHt + ITQ"].precision_all_new
    few = compare("digits", X, y, Settings(bits=(1,), n_train=100), tables=["linear"], only=only[:1])
    assert "n_bits must be at least 2 for a mix" in few.rows[-1].note


def test_points_of_unknown_label_are_left_out(digits):
    X, y = digits
    holes = y.astype(object)
    holes[::3] = None
    kept = np.arange(len(y)) % 3 > 0
    how = {"tables": ["linear"], "only": ["ITQ"]}
    one, other = (
        compare("digits", *data, Settings(bits=(8,), n_train=100), **how) for data in ((X, holes), (X[kept], y[kept]))
    )
    assert [row.precision_new for row in one.rows] == [row.precision_new for row in other.rows]
    assert one.euclidean_new == other.euclidean_new
    assert one.euclidean_seen == other.euclidean_seen


def test_progress_names_what_is_running_and_counts_with_what_it_took(digits, monkeypatch):
    said, clock = [], [0.0]
    slow = {"ILHt": 2.0, "ITQ": 30.0, "LSH": 1.0}  # seconds for 64 bits, twice as many for 128

    def row(self, table, name, entry, bits, reference):
        clock[0] += slow[name] * bits / 64
        return Row(table, name, True, bits, bits, 100, seconds=1.0), object()

    monkeypatch.setattr(comparison._Bench, "row", row)
    monkeypatch.setattr(comparison.time, "perf_counter", lambda: clock[0])
    compare(
        "digits",
        *digits,
        Settings(bits=(64, 128)),
        tables=["linear"],
        only=["ITQ", "LSH"],
        progress=said.append,
    )
    names = [f"{name}, {bits} bits" for bits in (64, 128) for name in ("ILHt", "LSH", "ITQ")]
    assert [now.current for now in said] == [*(f"{name}, linear" for name in names), ""]
    assert [(now.done, now.total) for now in said] == [(done, 6) for done in range(7)]
    # Once every method was timed, what is left is what it takes, but for what does not grow with the bits.
    for now, truth in zip(said[3:], (66, 62, 60, 0), strict=True):
        assert now.seconds_left == pytest.approx(truth, rel=0.35)
    assert said[0].seconds_left > 0


def test_what_a_method_refuses_is_a_result(digits):
    found = compare("digits", *digits, Settings(bits=(80,), n_train=100), tables=["linear"], only=["TPCA"])
    row = found.rows[-1]
    assert (row.name, row.precision_new, row.seconds) == ("TPCA", None, None)
    assert "n_bits must be at most" in row.note
    assert found.best_first("linear", 80)[-1] is row


def test_an_error_is_not_a_result(digits, monkeypatch):
    monkeypatch.setitem(TABLES["linear"], "wrong", Entry("KSHcut", {"flip": 2.0}))
    with pytest.raises(ValueError, match="flip must be a share"):
        compare("digits", *digits, Settings(bits=(8,), n_train=100), tables=["linear"], only=["wrong"])


def test_methods_that_are_one_thing_are_found_out(digits, monkeypatch):
    monkeypatch.setitem(TABLES["linear"], "again", TABLES["linear"]["ITQ"])
    found = compare("digits", *digits, Settings(bits=(8,), n_train=100), tables=["linear"], only=["ITQ", "again"])
    assert found.same_codes == [("ITQ (linear, 8 bits)", "again (linear, 8 bits)")]


def test_later_rows_have_no_cells_in_the_reproduction():
    assert not TABLES["kernel"]["KSH, 100 + 100"].reproduced
    for page in ("linear", "kernel"):
        assert all(entry.reproduced for entry in entrants(page).values())


def test_every_method_is_in_a_table():
    listed = {entry.method for table in TABLES.values() for entry in table.values()}
    assert listed == {"ILH", "Mix", *methods.available()}


def test_euclidean_precision_is_that_of_sorted_distances(digits):
    X, y = digits[0][:300].astype(float), digits[1][:300]
    base, queries = slice(0, 250), slice(250, 300)
    distances = ((X[queries, None] - X[None, base]) ** 2).sum(axis=2)
    order = np.argsort(distances, axis=1, kind="stable")[:, :7]
    assert euclidean_precision(X[base], y[base], X[queries], y[queries], 7) == pytest.approx(
        (y[order] == y[queries, None]).mean(),
        abs=0.01,  # equal distances may stand in another order
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "FoldHash"], "methods must be among ILHt, ILHi, ILHt + ITQ"),
        (["--functions", "trees"], "--functions must be linear, kernel, bytes, both or all, got 'trees'"),
        (["--bits", "0"], "bits must be"),
        (["--n-new", "1500"], "n_new must leave 2 of the 1498 points to learn from, got 1500"),
        (["--n-new", "0"], "n_new must be a whole number of at least 1, got 0"),
        (["X.npy"], "X.npy must come with labels (--labels), got vectors alone"),
        (["X.npy", "--labels", "short.npy"], "labels must be one for each of the 20 vectors"),
        (["--json", "there.json"], "--json must be a new file, got there.json"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, message):
    np.save(tmp_path / "X.npy", np.zeros((20, 3)))
    np.save(tmp_path / "short.npy", np.zeros(7, int))
    (tmp_path / "there.json").write_text("mine")
    run = subprocess.run(
        [sys.executable, "-m", "ilhash", "compare", *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 2
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
    assert (tmp_path / "there.json").read_text() == "mine"


def test_the_command_prints_tables_and_writes_files(tmp_path):
    arguments = ["digits", "--bits", "16", "--n-train", "200", "--json", "c.json", "--plot", "c.svg"]
    run = subprocess.run(
        [sys.executable, "-m", "ilhash", "compare", *arguments, "--only", "ITQ", "--only", "SDH", "--only", "PQ"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert run.returncode == 0, run.stderr
    assert "digits, 16 bits, linear functions" in run.stdout
    assert "kernel and other functions" in run.stdout
    assert "of 4 methods, " in run.stderr
    assert "digits, 2 bytes (vectors 256)" in run.stdout
    assert "…" not in run.stdout  # nothing is cut off at 80 columns
    assert "Where ILH loses at equal bytes" in run.stdout or "nothing was above ILH" in run.stdout
    document = json.loads((tmp_path / "c.json").read_text())
    assert [row["name"] for row in document[0]["rows"]] == ["ILHt", "ITQ", "ILHt", "SDH"]
    assert [row["name"] for row in document[0]["byte_rows"]] == ["ILH", "ILH, asymmetric", "ITQ", "PQ", "floats"]
    assert set(document[0]["byte_rows"][0]["new"]) == set(document[0]["byte_rows"][0]["seen"]) == {"10", "74"}
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")
