"""The paper's experiments at the smoke scale: what digits show of the claims, and a run that survives being stopped."""

import html
import html.parser
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import image
from tests.browser import QUIET, chromium

from ilhash.cli import main
from ilhash.experiments.claims import CLAIMS, verdicts
from ilhash.experiments.engine import store, tasks
from ilhash.experiments.engine.cells import DONE, TIME_LIMIT, UNDEFINED, Cell, Outcome
from ilhash.experiments.engine.models import make_model, stored_parameters
from ilhash.experiments.engine.problems import load_problem, prefix
from ilhash.experiments.engine.run import run_cells
from ilhash.experiments.engine.scales import SCALES, get_scale
from ilhash.experiments.engine.store import _RUN, _SESSIONS, FORMAT, Results
from ilhash.experiments.engine.tasks import Context, compute
from ilhash.experiments.experiment import cells_of, experiments
from ilhash.experiments.report.page import judge_all, write_figures, write_report
from ilhash.experiments.reproduction import reproduce
from ilhash.methods import UndefinedError
from ilhash.storage import StorageError

SMOKE = get_scale("smoke")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """All experiments at the smoke scale."""
    folder = tmp_path_factory.mktemp("reproduce") / "smoke"
    results, summary = reproduce(["all"], scale="smoke", folder=folder, n_jobs=2, command="ilhash reproduce all")
    assert not summary.failed
    assert summary.left == 0
    return results


@pytest.fixture(scope="module")
def page(smoke):
    """The page of all experiments, and whether writing it left the cells alone."""
    before = {path: path.stat().st_mtime_ns for path in (smoke.path / "cells").iterdir()}
    path = write_report(smoke)
    assert before == {path: path.stat().st_mtime_ns for path in (smoke.path / "cells").iterdir()}
    return path


# -------------------------------------------------------------------------------------------- what digits show


def test_every_cell_has_an_outcome_and_its_origin(smoke):
    cells = cells_of(list(experiments().values()), SMOKE)
    statuses = {smoke.read(cell).status for cell in cells}
    assert statuses <= {DONE, UNDEFINED, TIME_LIMIT}
    assert len(list((smoke.path / "cells").glob("*.json"))) == len(cells)
    document = json.loads(next((smoke.path / "cells").glob("retrieval-*.json")).read_text())
    assert set(document["versions"]) == {"ilhash", "python", "numpy", "scipy", "scikit-learn"}
    assert re.fullmatch("[0-9a-f]{12}", document["numbers"]["protocol"])
    assert isinstance(document["seed"], int)


@pytest.mark.parametrize(
    "name",
    [
        "best-mechanism",
        "above-kshcut",
        "at-least-combined",
        "linear-gain",
        "private-above-common",
        "monotone",
        "lsh-low",
        "tpca-peaks",
        "bagging-rises",
        "perturbed-worse",
        "first-at-many-bits",
    ],
)
def test_claims_that_digits_can_show(smoke, name):
    judged = {claim.name: one for claim, one in judge_all(smoke)}[name]
    assert judged.verdict == verdicts.HOLDS, judged.measured


def test_bits_that_differ_in_nothing_are_one_bit(smoke):
    judged = {claim.name: one for claim, one in judge_all(smoke)}["diversity-goes"]
    assert judged.verdict != verdicts.FAILS, judged.measured


def test_claims_of_other_data_are_not_judged_on_digits(smoke):
    judged = {claim.name: one.verdict for claim, one in judge_all(smoke)}
    assert judged["one-bit"] == judged["cifar-numbers"] == verdicts.UNTESTED


def test_every_claim_says_where_and_how():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS) >= 30
    assert all(claim.where and len(claim.rule) > 20 for claim in CLAIMS)


def test_nothing_stored_nothing_judged(tmp_path):
    empty = Results.create(tmp_path / "empty", SMOKE)
    assert {one.verdict for _, one in judge_all(empty)} == {verdicts.UNTESTED}
    write_report(empty)


def test_figures_as_files(smoke, tmp_path, monkeypatch):
    folder = tmp_path / "pictures" / "of it"
    monkeypatch.setattr(
        sys, "argv", ["ilhash", "reproduce", "report", "--out", str(smoke.path), "--figures", str(folder)]
    )
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name.rpartition("-")[0] for name in files} == set(experiments())
    for content in files.values():
        assert (image.imread(io.BytesIO(content))[..., 3] == 1.0).all(), "ink on nothing cannot be read on a dark page"
    with pytest.raises(ValueError, match="must be a folder, got the file"):
        write_figures(smoke, smoke.path / "run.json")


@pytest.mark.parametrize("seed", range(3))
def test_parts_of_a_run_can_be_judged_and_drawn(smoke, tmp_path, seed):
    """The page can be written while cells are missing, any of them."""
    some = Results.create(tmp_path / "some", SMOKE)
    rng, share = np.random.default_rng(seed), (0.3, 0.7, 0.97)[seed]
    for cell in cells_of(list(experiments().values()), SMOKE):
        if rng.random() < share:
            some.write(cell, smoke.read(cell))
    judged = judge_all(some)
    assert not any("n/a" in one.measured or re.search(r"\bnan\b", one.measured) for _, one in judged)
    verdict = {claim.name: one.verdict for claim, one in judged}
    whole = {claim.name: one.verdict for claim, one in judge_all(smoke)}
    assert verdicts.UNTESTED in verdict.values()
    assert all(one in (whole[name], verdicts.UNTESTED) for name, one in verdict.items())
    for experiment in experiments().values():
        if not any(map(some.has, experiment.cells(SMOKE))):
            continue  # the page does not ask for its pictures
        for picture in experiment.pictures(some):
            assert picture.caption
            assert picture.paper
            assert not re.search(r"\bnan\b", picture.caption)


STRANGE = [None, True, "x" * 50, -1, 10**400, 1e308, float("nan"), [], [1, "a"], {}, {"a": {}}]


def _forged(outcome, rng):
    """Return what a stranger may have made of a cell: other numbers, of other kinds, arrays of other shapes."""
    numbers, arrays = dict(outcome.numbers), dict(outcome.arrays)
    name = rng.choice([*numbers, *arrays])
    if rng.random() < 0.2:
        numbers.pop(name, None), arrays.pop(name, None)
    elif name in numbers:
        numbers[name] = STRANGE[rng.integers(len(STRANGE))]
    else:
        own = arrays[name]
        others = [own[:0], own.ravel()[:1], own[None], own.astype(np.int8), own * np.inf, np.zeros((3, 0)), np.array(5)]
        arrays[name] = others[rng.integers(len(others))]
    return Outcome(numbers, arrays, outcome.status, outcome.reason, outcome.seconds)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [*range(13), *(pytest.param(one, marks=pytest.mark.slow) for one in range(13, 130))])
def test_forged_cells_are_judged_and_drawn_or_refused_in_one_sentence(smoke, seed):
    """Their checksums are right: whatever their numbers are, no other error comes out than that of files."""
    rng = np.random.default_rng(seed)
    chosen = list(experiments().values())[seed % len(experiments())]
    results = Results(smoke.path, SMOKE)
    for cell in rng.permutation(np.array(chosen.cells(SMOKE), object))[:3]:
        if smoke.read(cell).done:
            results._read[cell.key] = _forged(smoke.read(cell), rng)
    for use in (judge_all, chosen.stored_pictures):
        with suppress(StorageError):
            use(results)


def test_words_of_a_stranger_are_words_on_the_page(tmp_path):
    results = Results.create(tmp_path / "r", SMOKE)
    with results.session("<script>alert(1)</script>"):
        pass
    sessions = results.sessions()
    sessions[0]["environment"] = {"<img src=x onerror=alert(1)>": "</style><script>"}
    _SESSIONS.write(results.path, {"sessions": sessions})
    text = write_report(results).read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
    for name, strange in (("computed", "many"), ("seconds", None), ("begun", 5), ("environment", [])):
        _SESSIONS.write(results.path, {"sessions": [{**sessions[0], name: strange}]})
        with pytest.raises(StorageError, match=name):
            results.sessions()


# -------------------------------------------------------------------------------------------- the page


class _Reader(html.parser.HTMLParser):
    """Collects what a page would fetch, and whether every element is closed."""

    def __init__(self):
        super().__init__()
        self.fetched, self.open, self.figures = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.figures += tag == "svg"
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not value.startswith(("#", "data:")):
                self.fetched.append(value)

    handle_startendtag = handle_starttag


def test_the_page_is_whole_and_needs_no_network(page):
    text = page.read_text(encoding="utf-8")
    reader = _Reader()
    reader.feed(text)
    assert reader.fetched == []
    assert reader.figures >= len(experiments())
    assert "url(http" not in text
    assert "<script" not in text
    for claim in CLAIMS:
        assert f'id="claim-{claim.name}"' in text
    assert "ilhash reproduce all" in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert len(text) < 5_000_000


@pytest.mark.parametrize("width", [1400, 420])
def test_the_page_fits_in_a_browser(page, tmp_path, width):
    browser = chromium()
    shutil.copy(page, tmp_path / "page.html")
    # A frame of that width: the window of a headless browser has a smallest one.
    frame = tmp_path / "frame.html"
    frame.write_text(
        f"<iframe id=f src=page.html width={width} height=900></iframe>"
        "<script>f.onload=()=>{const d=f.contentDocument;"
        "document.title=d?[d.documentElement.clientWidth,d.documentElement.scrollWidth]:'shut'}</script>"
    )
    flags = [*QUIET, "--headless", "--allow-file-access-from-files", "--dump-dom"]
    done = subprocess.run(
        [browser, *flags, "--virtual-time-budget=10000", f"--user-data-dir={tmp_path / 'profile'}", frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    seen = re.search(r"<title>(\d+),(\d+)</title>", done.stdout)
    assert seen, done.stdout[:300]
    shown, wanted = map(int, seen.groups())
    assert wanted <= shown, "the page is wider than the screen"


# -------------------------------------------------------------------------------------------- stopped and continued


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "ilhash", "reproduce", "training-set-size", "--out", str(folder), "-j", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while len(list(folder.glob("cells/*.json"))) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    stored = {path: path.read_bytes() for path in folder.glob("cells/*.json")}
    total = len(cells_of([experiments()["training-set-size"]], SMOKE))
    assert 2 <= len(stored) < total
    results, summary = reproduce(["training-set-size"], scale="smoke", folder=folder, n_jobs=1)
    assert summary.computed == total - len(stored)
    assert all(path.read_bytes() == content for path, content in stored.items())
    cell = cells_of([experiments()["training-set-size"]], SMOKE)[0]
    again = compute(cell, Context("smoke", folder / "data"))
    seven_digits = again.arrays["precision"].astype(np.float32)
    np.testing.assert_array_equal(seven_digits, results.read(cell).arrays["precision"])


def test_workers_end_with_the_process_that_stores(tmp_path):
    script = """if __name__ == "__main__":
    import sys, time
    from pathlib import Path
    from ilhash.experiments.engine.cells import Cell
    from ilhash.experiments.engine.run import _Worker

    hours = {"data": "images", "method": "ILH", "settings": {"n_train": 500}, "bits": 1_000_000, "at": [1]}
    worker = _Worker("smoke", Path(sys.argv[1]))
    worker.begin(Cell("retrieval", hours, 0))
    print(worker.process.pid, flush=True)
    time.sleep(3600)
"""
    file = tmp_path / "script.py"
    file.write_text(script)
    process = subprocess.Popen([sys.executable, file, tmp_path], stdout=subprocess.PIPE, text=True)
    worker = int(process.stdout.readline())
    time.sleep(2)
    process.kill()
    try:
        process.communicate(timeout=60)  # the worker has the same standard output: it closes when both have ended
    except subprocess.TimeoutExpired:
        os.kill(worker, signal.SIGKILL)
        raise


def test_limits_failures_and_time(tmp_path):
    results = Results.create(tmp_path / "r", SMOKE)
    good = {"data": "images", "method": "LSH", "settings": {}, "bits": 8, "at": [8]}
    cells = [
        Cell("retrieval", good, 0, limit=0.01),  # starting its process alone takes longer
        Cell("retrieval", {**good, "method": "TPCA", "bits": 100, "at": [100]}, 1),
        Cell("retrieval", {**good, "settings": {"no_such": 1}}, 2),
        Cell("retrieval", good, 3),
    ]
    summary = run_cells(cells, results)
    assert [results.read(cell) and results.read(cell).status for cell in cells] == [TIME_LIMIT, UNDEFINED, None, DONE]
    assert "limit" in results.read(cells[0]).reason
    assert "at most" in results.read(cells[1]).reason
    assert [cell.seed for cell, _ in summary.failed] == [2]
    assert "no_such" in summary.failed[0][1]
    assert run_cells([Cell("retrieval", good, 9, cost=1e6)], results, seconds=60.0).left == 1


def test_damaged_arrays_are_not_believed(tmp_path):
    results = Results.create(tmp_path / "r", SMOKE)
    cell = Cell("retrieval", {"data": "images"}, 0)
    results.write(cell, Outcome({"a": 1}, {"x": np.arange(3)}))
    file = next((tmp_path / "r" / "cells").glob("*.npz"))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"!")
    with pytest.raises(ValueError, match="as they were written"):
        results.read(cell)
    file.write_bytes(content)
    np.testing.assert_array_equal(results.read(cell).arrays["x"], np.arange(3))


def test_the_committed_results_give_the_verdicts_that_page_and_words_tell(tmp_path):
    """They are of this version's experiments: whoever changes a scale or a rule computes or writes them anew."""
    root = Path(__file__).parents[2]
    committed = root / "docs" / "results"
    with zipfile.ZipFile(committed / "paper-cells.zip") as archive:
        archive.extractall(tmp_path / "paper")
    results = Results.open(tmp_path / "paper")
    assert results.format == FORMAT, "every cell has its checksum"
    counts = Counter(one.verdict for _, one in judge_all(results))
    page = (committed / "paper.html").read_text(encoding="utf-8")
    assert {verdict: int(re.search(rf"<b>(\d+)</b> {verdict}</li>", page)[1]) for verdict in counts} == counts
    holds, partly, fails = (counts[one] for one in (verdicts.HOLDS, verdicts.PARTLY, verdicts.FAILS))
    assert holds + partly + fails == sum(counts.values())
    said = re.search(r"Not computed at this scale: ([^.]*)\.", (committed / "README.md").read_text(encoding="utf-8"))[1]
    missing = {name for name, one in experiments().items() if not all(map(results.has, one.cells(results.scale)))}
    assert missing == set(re.findall("`([a-z-]+)`", said)), "experiments without their cells, and what is said of them"
    cells = cells_of([one for name, one in experiments().items() if name not in missing], results.scale)
    stored = {path.stem for path in tmp_path.glob("paper/cells/*.json")}
    assert stored == {cell.key for cell in cells}, "cells that no experiment asks for"
    for words in (committed / "README.md", root / "README.md"):
        text = " ".join(words.read_text(encoding="utf-8").split())
        assert f"{len(cells)} cells" in text
        assert f"{holds} claims hold, {partly} partly, {fails} do not hold here" in text


@pytest.mark.slow
def test_the_committed_page_says_what_its_cells_are_drawn_as(tmp_path):
    committed = Path(__file__).parents[2] / "docs" / "results"
    with zipfile.ZipFile(committed / "paper-cells.zip") as archive:
        archive.extractall(tmp_path)
    drawn = write_report(Results.open(tmp_path)).read_text(encoding="utf-8")
    # Another version of matplotlib may draw other paths, and of jinja2 write a quotation mark in another way.
    words, wanted = (
        html.unescape(re.sub(r"<svg.*?</svg>", "", text, flags=re.S))
        for text in (drawn, (committed / "paper.html").read_text(encoding="utf-8"))
    )
    assert words == wanted


# -------------------------------------------------------------------------------------------- refusals


def _refused(capsys, arguments, words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ilhash", "reproduce", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
    assert left.value.code == 2
    message = capsys.readouterr().err
    assert re.search(words, " ".join(message.split())), message


def test_bad_input_is_refused_in_one_sentence(tmp_path, capsys, monkeypatch):
    new = str(tmp_path / "new")
    _refused(capsys, ["all"], "--out must name")
    _refused(capsys, ["no-such-thing", "--out", new], "experiments must be 'all' or some of .* got no-such-thing")
    _refused(capsys, ["all", "--scale", "huge", "--out", new], "scale must be one of smoke, small, paper, got 'huge'")
    _refused(capsys, ["all", "--out", new, "--time-limit", "-1"], "time_limit must be")
    _refused(capsys, ["report", "--out", new], "no results")
    monkeypatch.setenv("ILHASH_DATA", str(tmp_path / "nothing"))
    _refused(capsys, ["runtime", "--scale", "small", "--out", new], "cifar10")
    assert not Path(new).exists()


def test_folders_from_before_edge_histograms_open_and_go_on(tmp_path):
    """Their cells mean the same; a folder that is computed in says from then on that it may hold the new ones."""
    results = Results.create(tmp_path / "r", SMOKE)
    cell = Cell("retrieval", {"data": "images"}, 0)
    results.write(cell, Outcome({"a": 1}))
    store._RUN.write(tmp_path / "r", {"scale": "smoke", "scale_hash": SMOKE.former_hash})
    before = (tmp_path / "r" / "run.json").read_bytes()
    assert Results.open(tmp_path / "r").read(cell).numbers == {"a": 1}
    assert (tmp_path / "r" / "run.json").read_bytes() == before
    assert Results.create(tmp_path / "r", SMOKE).read(cell).numbers == {"a": 1}
    assert json.loads((tmp_path / "r" / "run.json").read_text())["scale_hash"] == SMOKE.hash


def test_other_folders_are_refused_and_left_alone(tmp_path, capsys):
    folder = tmp_path / "r"
    Results.create(folder, SMOKE)
    _refused(capsys, ["runtime", "--scale", "paper", "--out", str(folder)], "cifar10|must be of the scale 'paper'")
    with pytest.raises(ValueError, match=r"must be of the scale 'paper', got .* which holds 'smoke'"):
        Results.create(folder, get_scale("paper"))
    identity = json.loads((folder / "run.json").read_text())
    other = json.dumps(_RUN.sealed({**identity, "ilhash": "0.0.1"}))
    (folder / "run.json").write_text(other)
    _refused(capsys, ["runtime", "--out", str(folder)], r"got .* of ilhash 0\.0\.1")
    _refused(capsys, ["report", "--out", str(folder)], r"got .* of ilhash 0\.0\.1")
    assert (folder / "run.json").read_text() == other
    assert sorted(path.name for path in folder.iterdir()) == ["cells", "run.json"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    _refused(capsys, ["runtime", "--out", str(tmp_path / "mine")], "must be new, empty, or of an earlier run")


# -------------------------------------------------------------------------------------------- parts


def test_cells_are_named_by_what_they_compute():
    a = Cell("retrieval", {"x": 1, "y": 2}, 3, cost=5.0)
    assert a.key == Cell("retrieval", {"y": 2, "x": 1}, 3, cost=9.0, limit=1.0).key
    others = [Cell("orders", a.params, 3), Cell("retrieval", {"x": 1, "y": 3}, 3), Cell("retrieval", a.params, 4)]
    assert len({a.key, *(other.key for other in others)}) == 4


@pytest.mark.parametrize("name", SCALES)
def test_experiments_share_cells_and_state_costs(name):
    scale = get_scale(name)
    every = [cell for experiment in experiments().values() for cell in experiment.cells(scale)]
    shared = cells_of(list(experiments().values()), scale)
    assert len(shared) < len(every)
    assert all(cell.cost > 0 for cell in shared)
    assert all(json.loads(json.dumps(cell.params)) == cell.params for cell in shared)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_prefix_is_packing_fewer_bits(bits, seed):
    full = np.random.default_rng(seed).integers(0, 2, (5, 40), np.uint8)
    packed = np.packbits(full, axis=1)
    kept = packed.copy()
    np.testing.assert_array_equal(prefix(packed, bits), np.packbits(full[:, :bits], axis=1))
    np.testing.assert_array_equal(packed, kept)


def test_raw_search_equals_sorting_all_distances(tmp_path):
    problem = load_problem("smoke", "images", tmp_path)
    outcome = compute(Cell("euclidean", {"data": "images"}), Context("smoke", tmp_path))
    distances = ((problem.queries[:, None].astype(float) - problem.X[None].astype(float)) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : problem.k]
    expected = (problem.y[nearest] == problem.query_y[:, None]).mean()
    assert outcome.arrays["precision"][0, problem.at_k] == pytest.approx(expected, abs=2e-3)  # ties among distances


def test_verdicts():
    high, low = np.array([0.5, 0.52]), np.array([0.4, 0.42])
    assert verdicts.above(high, low, 0.05, ("a", "b")) == verdicts.Judged("a .510, b .410", verdicts.HOLDS)
    assert verdicts.above(high, low, 0.2, ("a", "b")).verdict == verdicts.PARTLY
    assert verdicts.above(low, high, 0.0, ("a", "b")).verdict == verdicts.FAILS
    parts = [verdicts.Judged("x", verdicts.HOLDS), verdicts.Judged("y", verdicts.FAILS), verdicts.untested("z")]
    assert verdicts.all_of(parts[:2]) == verdicts.Judged("x; y", verdicts.PARTLY)
    assert verdicts.all_of(parts[:1]).verdict == verdicts.HOLDS
    assert verdicts.all_of(parts) is parts[2]


def test_a_number_that_is_missing_is_not_judged_by(tmp_path):
    """Neither one that no text shows, nor one among others; and text is not what decides."""
    results = Results.create(tmp_path / "empty", SMOKE)

    def judged(test):
        return verdicts.judge(verdicts.Claim("name", "text", "where", "rule", test), results)

    assert judged(lambda _: verdicts.judged_by("n/a", holds=True)).verdict == verdicts.HOLDS
    missing = verdicts.untested("cells are missing")
    cell = Cell("retrieval", {"data": "images"})
    for values in ([], [0.5, np.nan], np.nan):
        assert judged(lambda _, values=values: verdicts.judged_by("fine", verdicts.mean(values) > 0)) == missing
        assert judged(lambda _, values=values: verdicts.above([0.5], values, 0.0, ("a", "b"))) == missing
    assert judged(lambda _: verdicts.all_of([])) == missing
    assert judged(lambda _: verdicts.judged_by("fine", verdicts.stored(results, cell).done)) == missing
    results.write(cell, Outcome(status=UNDEFINED, reason="n_bits must be at most 3"))
    assert judged(lambda _: verdicts.judged_by("fine", verdicts.stored(results, cell).done)) == missing


def test_other_errors_than_too_many_bits_are_errors(tmp_path, monkeypatch):
    """Also such as speak of n_bits: the class decides, not the words."""

    def task(problem, params, seed):
        raise (UndefinedError if params["undefined"] else ValueError)("n_bits must be at most 3")

    monkeypatch.setitem(tasks.TASKS, "retrieval", task)
    context = Context("smoke", tmp_path)
    assert compute(Cell("retrieval", {"data": "images", "undefined": True}), context).status == UNDEFINED
    with pytest.raises(ValueError, match="at most 3"):
        compute(Cell("retrieval", {"data": "images", "undefined": False}), context)


def test_cells_that_name_no_start_are_the_papers():
    assert make_model("ILH", {"n_train": 50}, 4, 0).start == "random"
    assert make_model("ILH", {"n_train": 50, "start": "auto"}, 4, 0).start == "auto"
    assert "start" not in make_model("ITQ", {}, 4, 0).get_params()


def test_cells_keep_the_names_of_parameters_that_they_were_stored_under():
    """Methods rename parameters; a cell that did so would be another one, and have to be computed again."""
    stored = {"FastHash": "n_trees", "KSHcut": "start", "MLH": "steps", "STH": "n_neighbours"}
    for method, name in stored.items():
        assert name in stored_parameters(method)
        make_model(method, {name: 7}, 8, 0)  # under whatever name the method has it now
    with pytest.raises(TypeError, match="no_such"):
        make_model("STH", {"no_such": 7}, 8, 0)


def test_a_page_without_jinja2_names_the_command_before_hours_of_computing(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _refused(capsys, ["runtime", "--out", str(tmp_path / "new")], r'needs jinja2, .*pip install "ilhash\[plots\]"')
    assert not (tmp_path / "new").exists()
