"""``tune``: the best of what was tried, honestly reported, the same again, and going on after a kill."""

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ilhash
from ilhash.evaluation import by_label, distance_histograms
from ilhash.tuning import _course
from ilhash.tuning._candidates import candidates
from ilhash.tuning._course import Budget
from ilhash.tuning._measured import GROUPS, further, left_out
from ilhash.tuning._tune import _Conclusion

WAYS = {"n_bytes": 1, "minutes": 0.03, "k": 10, "n_jobs": 1}


@pytest.fixture(scope="module")
def found(digits):
    """A search whose model is the one that was judged: there is no training on all points in the end."""
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Conclusion, "_refitted", lambda self, best: None)
        tuning = ilhash.tune(*digits, n_bytes=2, minutes=0.2, n_jobs=1, progress=said.append)
    return tuning, said


def test_the_best_on_the_points_that_choose_is_the_model(digits, found):
    tuning, _ = found
    assert tuning.name == tuning.tried[0].name
    assert tuning.n_bits == tuning.tried[0].n_bits == len(tuning.model.functions_)
    assert tuning.n_bytes <= 2
    assert tuning.model.transform(digits[0]).shape == (1797, tuning.n_bytes)
    assert [row.score for row in tuning.tried] == sorted((row.score for row in tuning.tried), reverse=True)


def test_it_is_better_than_what_knows_no_labels(found):
    tuning, _ = found
    itq = max(row.score for row in tuning.tried if row.name == "ITQ")
    assert tuning.reports["new"].value > itq + 0.02
    assert "ITQ" in {row.name for row in tuning.tried}
    assert any(" + " in row.name for row in tuning.tried)


def test_what_it_says_is_what_points_that_chose_nothing_say(digits, found):
    tuning, _ = found
    X, y = digits
    parts = ilhash.tuning._parts.parts_of(
        X, ilhash.affinity.supervision_from_labels(y, len(X), -1), 10, base="new", unseen=0.0, seed=0
    )
    rows = parts.reporting["new"].rows
    codes = tuning.model.transform(X[rows])
    weight = further(10, 1, len(rows) / len(X))
    assert parts.reporting["new"].k == 1  # among so few

    def expected(some):
        found = distance_histograms(codes[some], codes[some], by_label(y[rows[some]], y[rows[some]]))
        found = found.without_itself(np.ones(len(some), bool), np.ones(len(some), bool))
        once, twice = found.precision_at_k((1, 2)).T
        return (1 + weight) * once - weight * twice

    values = expected(np.arange(len(rows)))
    assert tuning.reports["new"].value == pytest.approx(values.mean())
    groups = left_out(len(rows))
    without = np.array([expected(np.flatnonzero(groups != group)).mean() for group in range(GROUPS)])
    both = values.var() / len(rows), (GROUPS - 1) * without.var()
    assert tuning.reports["new"].error == pytest.approx(np.sqrt(np.mean(both)))


def test_the_front_is_what_nothing_else_beats(found):
    tuning, _ = found
    front = [row for row in tuning.tried if row.front]
    assert front
    assert max(row.score for row in front) == tuning.tried[0].score  # of several as good the quickest
    for row in front:
        assert not any(
            other.score > row.score and other.n_bytes < row.n_bytes and other.encode_us < row.encode_us
            for other in tuning.tried
        )


def test_half_and_progress(found):
    tuning, said = found
    assert tuning.half.n_bytes == 1
    assert 0 < tuning.half.value < 1
    assert any("leads: " in now.current for now in said)
    assert all(0 <= now.done <= now.total for now in said)
    assert json.loads(json.dumps(tuning.to_dict()))["name"] == tuning.name


def test_twice_the_bytes_is_the_same_recipe(digits, monkeypatch):
    monkeypatch.setattr(_course, "time", SimpleNamespace(monotonic=lambda: 0.0))  # and so there is time left
    monkeypatch.setattr(_course, "SHARES", (0.2, 0.25, 0.3))
    tuning = ilhash.tune(*digits, **{**WAYS, "minutes": 0.1})
    assert tuning.twice.name == tuning.name
    assert tuning.twice.n_bytes == 2
    assert tuning.twice.value > 0.8


@pytest.mark.usefixtures("no_clock")
def test_the_same_seed_gives_the_same_model(digits):
    one, same = (ilhash.tune(*digits, **WAYS) for _ in range(2))
    assert one.name == same.name
    assert one.model.fingerprint() == same.model.fingerprint()
    assert one.complete
    assert one.reason == same.reason


@pytest.mark.usefixtures("no_clock")
def test_a_search_goes_on_where_it_was_killed(digits, tmp_path):
    script = tmp_path / "search.py"
    script.write_text(
        "import sys, ilhash\n"
        "from types import SimpleNamespace\n"
        "from ilhash.tuning import _course\n"
        "_course.time = SimpleNamespace(monotonic=lambda: 0.0)\n"
        "_course.Budget.left = lambda self: 0.0\n"
        "data = ilhash.datasets.load('digits')\n"
        "ilhash.tune(data.X, data.y, n_bytes=1, minutes=0.03, n_jobs=1, checkpoint=sys.argv[1],\n"
        "            progress=lambda now: print(now.current, flush=True))\n"
    )
    folder = tmp_path / "search"
    process = subprocess.Popen([sys.executable, script, folder], stdout=subprocess.PIPE, text=True)
    for _ in range(8):
        process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    kept = {path.name for path in folder.iterdir()}
    assert len(kept) > 3
    gone_on = ilhash.tune(*digits, **WAYS, checkpoint=folder)
    assert gone_on.model.fingerprint() == ilhash.tune(*digits, **WAYS).model.fingerprint()


def test_a_folder_of_another_search_is_refused(digits, tmp_path):
    ilhash.tune(*digits, **WAYS, checkpoint=tmp_path / "search")
    with pytest.raises(ValueError, match="must be of the same search, got another's: k=10 there and 5 here"):
        ilhash.tune(*digits, **{**WAYS, "k": 5}, checkpoint=tmp_path / "search")


def test_the_clock_ends_what_takes_too_long(digits, monkeypatch):
    began = []

    def over(self, share=1.0):
        began.append(share)
        return len(began) > 6

    monkeypatch.setattr(Budget, "over", over)
    tuning = ilhash.tune(*digits, **WAYS)
    assert not tuning.complete
    assert "the clock came before the end of the plan" in tuning.reason


def test_encoding_time_is_a_limit(digits):
    quick = ilhash.tune(*digits, **WAYS, max_encode_us=3.0)
    assert all(row.encode_us <= 3.0 for row in quick.tried)
    with pytest.raises(ValueError, match="max_encode_us must be at least what the quickest code takes, got 1e-06"):
        ilhash.tune(*digits, **WAYS, max_encode_us=1e-6)


def test_other_supervision(digits):
    X, y = digits
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, len(X), (2, 60_000))
    pairs = np.column_stack([i, j, np.where(y[i] == y[j], 1.0, -1.0)])[i != j]
    by_pairs = ilhash.tune(X, pairs=pairs, **WAYS)
    assert by_pairs.measure.startswith("share of held-out pairs found@10")
    by_sets = ilhash.tune(X, [{int(label), "even" if label % 2 == 0 else "odd"} for label in y], **WAYS)
    by_nothing = ilhash.tune(X, **WAYS)
    assert {by_nothing.judged_by, by_sets.judged_by} == {"new"}
    unseen = ilhash.tune(X, y, **WAYS, unseen=0.5)
    assert set(unseen.reports) == {"new", "seen", "unseen classes"}
    assert unseen.reports["unseen classes"].value < unseen.reports["new"].value


@pytest.mark.usefixtures("no_clock")
def test_vectors_on_disk_are_read_by_rows(digits, tmp_path):
    np.save(tmp_path / "X.npy", digits[0])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    opened = ilhash.open_vectors(tmp_path / "X.npy")
    fingerprints = {ilhash.tune(X, digits[1], **WAYS).model.fingerprint() for X in (digits[0], mapped, opened)}
    assert len(fingerprints) == 1


def test_names_of_columns_are_kept(digits):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(digits[0], columns=[f"pixel {i}" for i in range(64)])
    found = ilhash.tune(frame, digits[1], **WAYS)
    assert found.model.feature_names_in_[5] == "pixel 5"
    assert np.array_equal(found.model.transform(frame[:9]), found.model.transform(frame)[:9])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_bytes": 0}, "n_bytes must be a whole number of at least 1, got 0"),
        ({"n_bytes": 0.1}, "n_bytes must be a whole number of at least 1, got 0.1"),  # below one bit
        ({"minutes": 0}, "minutes must be a positive number, got 0"),
        ({"minutes": float("nan")}, "minutes must be a positive number, got nan"),
        ({"y": np.arange(1797)}, "classes of at least two points to be found by one another, got 1797 of one each"),
        ({"k": 1797}, "k must be below the 1797 items that are searched, got 1797"),
        ({"base": "old"}, "base must be"),
        ({"unseen": 2.0}, "unseen must be"),
        ({"max_encode_us": -1.0}, "max_encode_us must be"),
        ({"pairs": [(0, 1, 1.0)]}, "supervision must be one of y, affinity and pairs, got y and pairs"),
    ],
)
def test_bad_input_is_said(digits, given, said):
    X, y = digits
    with pytest.raises(ValueError, match=said):
        ilhash.tune(X, **{"y": y, **WAYS, **given})


def test_a_class_without_two_points_is_warned_of_where_tune_was_called(digits):
    X, y = digits
    with pytest.warns(UserWarning, match="at least two points to be found by one another, got one of 99") as caught:
        ilhash.tune(X, np.append(y[:-1], 99), **WAYS)
    assert Path(caught[0].filename) == Path(__file__)


def test_hardly_any_time_gives_the_cheapest_and_says_what_was_left_out(digits):
    found = ilhash.tune(*digits, **{**WAYS, "minutes": 1e-9})
    assert {row.name for row in found.tried if row.n_bits == 8} == {found.name}
    assert {"ILH trees", "SDH"} <= set(found.left_out)
    assert all("it would take a search of about" in why for why in found.left_out.values())


def test_every_kind_has_candidates_that_cost_something():
    for kind in ("labels", "sets", "pairs", "none"):
        found = candidates(kind, 10_000, 64, n_classes=10, scaling="columns", seed=0, n_jobs=1)
        names = [candidate.name for candidate in found]
        assert len(set(names)) == len(names)
        assert "ITQ" in names
        assert sum(candidate.spare for candidate in found) == (kind != "none")
        for candidate in found:
            assert 0 < candidate.seconds(8) < candidate.seconds(800) or candidate.seconds(8) == candidate.seconds(800)
            assert candidate.make(8).n_bits == 8
            assert candidate.more(0, 16) == candidate.seconds(16)
            assert candidate.more(8, 16) <= candidate.more(0, 16)


def test_refinements_are_for_time_to_spare(digits):
    many = "ILH trees, 400 trees a bit, 1,079 points a bit"
    few, enough = (ilhash.tune(*digits, **{**WAYS, "minutes": minutes}) for minutes in (0.01, 0.2))
    assert "it would take a search of about" in few.left_out[many]
    assert "it would take" not in enough.left_out.get(many, "")


def test_a_slow_machine_makes_plans_smaller(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_course, "time", SimpleNamespace(monotonic=lambda: now[0]))
    budget = Budget(100.0, 2, begin=0.0)
    now[0] = 1.0
    budget.spend(1.0)  # too early to tell
    assert (budget.slowness, budget.spent) == (1, 1.0)
    now[0] = 70.0
    budget.spend(39.0)  # 140 core seconds for 40, and 10 that are believed
    assert budget.slowness == pytest.approx(3.0)
    assert budget.room(0.85, by_clock=False) == pytest.approx(130.0)
    assert budget.room(0.85, by_clock=True) == pytest.approx(15.0 * 2 / 3.0)
    budget.spend(80.0)  # it was the beginning that took so long
    assert budget.slowness == 1
    assert budget.room(0.85, by_clock=True) == pytest.approx(30.0)


@pytest.fixture
def slow_clock(monkeypatch):
    """Let all that is trained take four times as long as expected, by a clock that nothing else moves."""
    now, spend = [0.0], Budget.spend

    def slower(self, expected):
        now[0] += 4.0 * expected / self.workers
        spend(self, expected)

    monkeypatch.setattr(_course, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Budget, "spend", slower)
    return now


def test_on_a_slow_machine_a_code_is_full_and_more_bytes_are_not_worse(digits, slow_clock):
    scores = []
    for n_bytes in (1, 2):
        slow_clock[0] = 0.0
        found = ilhash.tune(*digits, **{**WAYS, "n_bytes": n_bytes, "minutes": 0.1})
        assert slow_clock[0] <= 6.5  # how slow it is, is not known at once
        assert not found.complete
        assert any(row.n_bits == 8 * n_bytes and " + " in row.name for row in found.tried)
        scores.append(found.tried[0].score)
    assert scores == sorted(scores)


def test_what_the_best_needs_is_not_given_to_others(digits, slow_clock):
    found = ilhash.tune(*digits, **{**WAYS, "n_bytes": 4, "minutes": 0.1})
    longest = max((row for row in found.tried if "ILH" in row.name and " + " not in row.name), key=lambda r: r.n_bits)
    assert longest.n_bits == 32


@pytest.mark.usefixtures("no_clock")
def test_the_choice_is_trained_on_all_points_where_there_is_time(digits, monkeypatch):
    whole = ilhash.tune(*digits, **{**WAYS, "minutes": 0.06})
    monkeypatch.setattr(_Conclusion, "_refitted", lambda self, best: None)
    judged = ilhash.tune(*digits, **{**WAYS, "minutes": 0.06})
    assert whole.refitted
    assert not judged.refitted
    assert whole.reports["new"] == judged.reports["new"]  # of the model that has not seen the points that report
    assert whole.model.fingerprint() != judged.model.fingerprint()
    assert "trained on all points" in whole.reason
    assert [type(part) for part in getattr(whole.model, "families_", [whole.model])] == [
        type(part) for part in getattr(judged.model, "families_", [judged.model])
    ]
    assert len(whole.model.functions_) == len(judged.model.functions_) == whole.n_bits


def test_what_is_cheap_is_trained_to_the_end(digits, monkeypatch):
    monkeypatch.setattr(Budget, "over", lambda self, share=1.0: True)  # from the beginning
    found = ilhash.tune(*digits, **WAYS)
    assert found.n_bits == 8
    assert not found.complete


def test_budgets_count_by_the_clock():
    budget = Budget(0.05, 2)
    assert budget.total == 0.1
    assert not budget.over()
    time.sleep(0.06)
    assert budget.over()
    assert budget.left() == 0.0
