"""The log of judgements: what goes in comes out, contradictions are resolved by the rule, other things are refused."""

import json
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import ilhash
from ilhash.feedback import FILE, Feedback, Judgement, verify
from ilhash.feedback._lines import Sealer, header
from ilhash.storage import DamagedFileError, UnknownFormatError

DAY = 86_400.0
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)


def judgements(ids):
    values = {"similar": st.booleans(), "weight": st.floats(1e-300, 1e6), "who": st.none() | texts}
    one = st.builds(Judgement, ids, ids, time=st.floats(-1e12, 1e12), **values)
    return st.lists(one.filter(lambda made: made.query != made.item), max_size=8)


@settings(max_examples=60)
@given(st.lists(judgements(texts), max_size=4) | st.lists(judgements(numbers), max_size=4))
def test_what_goes_in_comes_out(tmp_path_factory, adds):
    folder = tmp_path_factory.mktemp("log")
    with Feedback.open(folder) as log, Feedback.open(folder, writable=False) as reader:
        for some in adds:
            if some:
                query, item, similar, weight, who, time = (list(column) for column in zip(*some, strict=True))
                log.add(query, item, similar, weight, who, time)
                assert reader.refresh()
            assert not reader.refresh()
        expected = [one for some in adds for one in some]
        assert list(log) == list(reader) == expected
        assert len(log) == len(expected)
    with Feedback.open(folder) as again:
        assert list(again) == expected
    assert verify(folder).n_judgements == len(expected)


@settings(max_examples=60)
@given(judgements(st.integers(0, 5)), st.none() | st.floats(0.1, 1e4))
def test_pairs_are_those_of_the_stated_rule(tmp_path_factory, some, half_life):
    folder, now = tmp_path_factory.mktemp("log"), 1e9
    some = [one._replace(time=1e9 - abs(one.time) % 1e7, weight=1 + one.weight % 3) for one in some]
    with Feedback.open(folder) as log:
        for one in some:
            log.add(*one)
        ids = [3, 1, 4, 0, 9]
        found = {(int(i), int(j)): w for i, j, w in log.pairs(ids, half_life=half_life, now=now)}
    votes = {}
    for place, one in enumerate(some):
        if one.query in ids and one.item in ids:
            pair = tuple(sorted((ids.index(one.query), ids.index(one.item))))
            person = one.who if one.who is not None else place
            before = votes.setdefault(pair, {}).get((one.who is None, person))
            if before is None or one.time >= before.time:
                votes[pair][one.who is None, person] = one
    expected = {}
    for pair, people in votes.items():
        aged = [
            (1 if one.similar else -1) * one.weight * 0.5 ** ((now - one.time) / (half_life * DAY) if half_life else 0)
            for one in people.values()
        ]
        expected[pair] = sum(aged), sum(map(abs, aged))
    largest = max((size for _, size in expected.values()), default=0.0)
    kept = {pair: w for pair, (w, size) in expected.items() if size > 1e-6 * largest and abs(w) > 1e-9 * size}
    assert found.keys() == kept.keys()
    assert all(np.isclose(found[pair], kept[pair], rtol=1e-6) for pair in kept)


def test_contradictions_are_counted(tmp_path):
    with Feedback.open(tmp_path / "log") as log:
        log.add("a", "b", True, who="ann", time=1.0)
        log.add("b", "a", False, who="ann", time=2.0)  # she changed her mind
        log.add("a", "b", True, who="bob", time=1.0)  # one against one
        log.add("a", "c", [True, True, False], who=["ann", "bob", "eve"], time=1.0)  # two against one
        log.add("a", "nowhere")
        said = log.summary(["a", "b", "c"])
        assert log.pairs(["a", "b", "c"]).tolist() == [[0.0, 2.0, 1.0]]
    assert said.to_dict() == {
        "n_judgements": 7,
        "n_people": 3,
        "n_unknown": 1,
        "n_revised": 1,
        "n_judged": 2,
        "n_contradictory": 2,
        "n_undecided": 1,
        "n_faded": 0,
        "n_similar": 1,
        "n_dissimilar": 0,
    }
    assert said.n_pairs == 1
    assert "1 judgement about unknown ids" in str(said)


def test_what_is_very_old_is_dropped(tmp_path):
    with Feedback.open(tmp_path / "log") as log:
        log.add(1, [2, 3], time=[0.0, 100 * DAY])
        assert log.pairs([1, 2, 3], half_life=1.0, now=100 * DAY).tolist() == [[0.0, 2.0, 1.0]]
        assert log.summary(half_life=1.0, now=100 * DAY).n_faded == 1
        assert log.pairs([1, 2, 3], half_life=100.0, now=100 * DAY)[:, 2].tolist() == [0.5, 1.0]


def test_pairs_are_what_fit_takes(tmp_path, blobs):
    X, y = blobs
    rng = np.random.default_rng(0)
    with Feedback.open(tmp_path / "log") as log:
        pairs = rng.integers(0, len(X), (600, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        log.add(1000 + pairs[:, 0], 1000 + pairs[:, 1], y[pairs[:, 0]] == y[pairs[:, 1]])
        model = ilhash.ILH(n_bits=8).fit(X, pairs=log.pairs(1000 + np.arange(len(X))), check=False)
    assert model.transform(X).shape == (len(X), 1)


def test_an_empty_log(tmp_path):
    with Feedback.open(tmp_path / "log") as log:
        assert len(log) == 0
        assert log.id_kind is None
        assert log.pairs(["a"]).shape == log.pairs([1]).shape == log.pairs([]).shape == (0, 3)
        assert log.summary().n_pairs == 0
        log.add([], [])
        assert len(log) == 0


def test_ids_are_of_one_kind(tmp_path):
    with Feedback.open(tmp_path / "log") as log:
        log.add(1, 2)
        assert log.id_kind == "int"
        for wrong in [("a", "b"), ("a", 1), (1, "a"), ([1, 2], ["a", "b"])]:
            with pytest.raises(TypeError, match="kind"):
                log.add(*wrong)
        with pytest.raises(TypeError, match=r"of the kind of this log \(int\), got str"):
            log.pairs(["a", "b"])
        assert len(log) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"query_id": "b"},
        {"query_id": 1.5},
        {"query_id": ["a"] * 3},
        {"query_id": "x" * 1001},
        {"item_id": "\ud800"},
        {"similar": 1},
        {"similar": [True, False, True]},
        {"weight": 0.0},
        {"weight": np.nan},
        {"weight": [1.0, -1.0]},
        {"weight": 1e7},
        {"who": 3},
        {"who": "x" * 1001},
        {"time": np.inf},
        {"time": "now"},
    ],
    ids=str,
)
def test_wrong_judgements_are_refused_and_nothing_is_written(tmp_path, wrong):
    with Feedback.open(tmp_path / "log") as log:
        with pytest.raises((ValueError, TypeError), match=r"must .* got"):
            log.add(**{"query_id": "a", "item_id": ["b", "c"], **wrong})
        assert len(log) == 0
    assert verify(tmp_path / "log").n_judgements == 0


def test_a_log_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="not a log"):
        Feedback.open(tmp_path, writable=False)
    log = Feedback.open(tmp_path / "log")
    with pytest.raises(ValueError, match="writable=True"):
        Feedback.open(tmp_path / "log", writable=False).add("a", "b")
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(log)
    log.close()
    log.close()
    with pytest.raises(ValueError, match="closed"):
        log.add("a", "b")
    with pytest.raises(ValueError, match="closed"):
        len(log)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("mine")
    with pytest.raises(ValueError, match="other files"):
        Feedback.open(tmp_path / "other")
    with pytest.raises(ValueError, match="the file"):
        Feedback.open(tmp_path / "other" / "precious.txt")


# ---------------------------------------------------------------------------------------------- files of strangers

GOOD = {"query": "a", "item": "b", "similar": True, "weight": 1.0, "who": None, "time": 0.0, "left": 0}
FORGED = [
    {"query": 1},
    {"query": None, "item": None},
    {"query": 2**63, "item": 1},
    {"query": "\ud800"},
    {"query": "x" * 1001},
    {"item": "a"},
    {"similar": 1},
    {"weight": -1.0},
    {"weight": float("nan")},
    {"weight": float("inf")},
    {"weight": True},
    {"who": 1},
    {"time": float("inf")},
    {"time": 10**400},
    {"left": -1},
    {"left": 1.0},
    {"left": True},
]


def forge(folder, documents):
    folder.mkdir(exist_ok=True)
    lines = [header("f" * 32)] + [Sealer("f" * 32).line(number + 1, each) for number, each in enumerate(documents)]
    (folder / FILE).write_bytes(b"".join(lines))


@pytest.mark.parametrize("wrong", FORGED, ids=str)
def test_values_that_no_log_has_are_refused_though_their_seal_holds(tmp_path, wrong):
    forge(tmp_path / "log", [GOOD])
    assert len(Feedback.open(tmp_path / "log", writable=False)) == 1
    forge(tmp_path / "log", [GOOD, {**GOOD, **wrong}])
    with pytest.raises(DamagedFileError, match=r"line 3, must be"):
        Feedback.open(tmp_path / "log", writable=False)


def test_forged_steps_and_kinds_are_refused(tmp_path):
    for forged in (
        [{**GOOD, "left": 2}, {**GOOD, "left": 0}],
        [{**GOOD, "left": 1}, {**GOOD, "query": 1, "item": 2}],
        [GOOD, {**GOOD, "query": 1, "item": 2}],
    ):
        forge(tmp_path / "log", forged)
        with pytest.raises(DamagedFileError, match="line 3"):
            Feedback.open(tmp_path / "log")


def test_long_lines_other_files_and_newer_formats_are_refused(tmp_path):
    forge(tmp_path / "log", [{**GOOD, "more": "x" * 100_000}])
    with pytest.raises(DamagedFileError, match="65536 bytes"):
        Feedback.open(tmp_path / "log")
    path = tmp_path / "log" / FILE
    for other in ({"kind": "index", "format": 1}, {"format": 1}, [1]):
        path.write_text(json.dumps(other) + "\n")
        with pytest.raises(UnknownFormatError):
            Feedback.open(tmp_path / "log")
    path.write_bytes(header("f" * 32).replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(UnknownFormatError, match="upgrade"):
        Feedback.open(tmp_path / "log")
    path.unlink()
    (tmp_path / "elsewhere").write_bytes(header("f" * 32))
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedFileError, match="symbolic link"):
        Feedback.open(tmp_path / "log")


def test_a_reader_notices_another_log_in_its_place(tmp_path):
    with Feedback.open(tmp_path / "log") as log:
        log.add("a", "b")
    reader = Feedback.open(tmp_path / "log", writable=False)
    (tmp_path / "log" / FILE).unlink()
    with Feedback.open(tmp_path / "log") as log:
        log.add("c", ["d", "e"])
    assert reader.refresh()
    assert [one.item for one in reader] == ["d", "e"]


def test_a_log_of_the_first_format_opens(tmp_path):
    lines = [
        '{"format": 1, "kind": "feedback", "ilhash": "0.1.0", "log": "0123456789abcdef0123456789abcdef", '
        '"seal": "1a008b05ca3a96acb78134e7086e519d"}',
        '{"query": "a", "item": "\\u00e9", "similar": true, "weight": 1.5, "who": "ann", "time": 1.0, "left": 1, '
        '"seal": "72db7f2c68fc7a3593b3e399fe54a47a"}',
        '{"query": "a", "item": "c", "similar": false, "weight": 1.0, "who": null, "time": 2.0, "left": 0, '
        '"seal": "44f4dec95784b65d9a37fabe11204235"}',
    ]
    (tmp_path / FILE).write_bytes("".join(f"{line}\n" for line in lines).encode())
    with Feedback.open(tmp_path) as log:
        assert list(log) == [Judgement("a", "é", True, 1.5, "ann", 1.0), Judgement("a", "c", False, 1.0, None, 2.0)]
