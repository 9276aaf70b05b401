"""Numbers in README and docs come from result files with their commands; a table that disagrees is named."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import results
finally:
    sys.path.remove(str(ROOT / "tools"))

PAGES = {str(page.relative_to(ROOT)): page for page in results.pages()}
FILES = sorted(path for path in (ROOT / "docs" / "results").glob("*.json"))

# Tables of numbers whose runs are not committed, by page and first line: most hold times of a quiet machine, or took
# hours. The list may only shrink: record the run (benchmarks/record.py), put the marker above the table, and take its
# line out. A few hold no measurement (parameters), and that of corrections has its own test in tests/experiments.
NOT_YET_RECORDED = {
    "docs/benchmarks.md": [
        "| what | measured |",
        "| N | ilhash | with SciPy flow | with PyMaxflow | ratio | affinity | z",
        "| one worker | 2 threads | 2 processes | the machine's own limit |",
        "| d/D | gathered | product | chosen, of all features |",
        "| codes | n | bits | k | distinct | ours | faiss counting | faiss heap",
        "| codes | n | bits | k | distinct | ours | faiss counting | faiss heap",
    ],
    "docs/choosing.md": [
        "| data | bytes | new, k = 10 / 100 / 500 | seen | `tune` said (new, k ",
        "| data | bytes | new, k = 10 / 100 / 500 | seen | `tune` said (new, k ",
        "| bits | k | first bits | pruned | gain | least gain |",
        "| bits | k | first bits | pruned | gain | least gain |",
        "| ILHt + ITQ bits | seen | unseen |",
        "| ILHt + ITQ bits | seen | unseen |",
        "| ILHt + ITQ bits | seen | unseen |",
    ],
    "docs/engines.md": [
        "| you have, or want | choose | exact, ms a query at 1,000,000 |",
        "| engine | | load, s | bytes per item | exact, ms a query | approximat",
        "| engine | | load, s | bytes per item | exact, ms a query | approximat",
    ],
    "docs/feedback.md": [
        "| task | before | 100 judgements | 300 | 1,000 | 3,000 | 32 more bits,",
        "| portions | pairs | bits | the model stays | as many bits without pai",
    ],
    "docs/gist.md": [
        "| | |",
        "| | precision |",
    ],
    "docs/guide.md": [
        "| parameter | when to change it |",
        "| | CIFAR-10 GIST | train | encode | MNIST | train | encode |",
    ],
    "docs/infinite-digits.md": [
        "| parameter | default | from, to | |",
        "| | |",
    ],
    "docs/learning.md": [
        "| degrees | stays | refreshed | trained again |",
    ],
    "docs/methods.md": [
        "| method | labels | 32 bits | 64 bits | 64 bits, mAP | 32 bits, 68,000",
        "| method | labels | 32 bits | 64 bits | 64 bits, mAP | 32 bits, 68,000",
        "| | 32 bits | 64 bits | 128 bits |",
        "| | x ILHt |",
        "| | KSH | CCAITQ | BRE | ITQ | SH | LSH |",
    ],
    "docs/results/README.md": [
        "| claim | literal | corrected | correction, numbers, reason |",
    ],
    "docs/scaling.md": [
        "| what | measured |",
        "| | 1 core | 100 cores | 1,000 cores |",
        "| P | 256 bits, N = 5,000: even / stragglers / 95 % | 256 bits, N = 20",
        "| source | encoding | reading alone |",
    ],
    "docs/supervision-results.md": [
        "| task | bits | floats | ILH | ITQ | CCAITQ | LSH | ILH + ITQ | ILH + ",
        "| task | bits | floats | ILH | ITQ | LSH |",
    ],
}


def tables_without_marker(text):
    """Return the first lines of tables of numbers that no marker stands above."""
    text = re.sub(r"^```.*?^```", "", results.MARKER.sub("", text), flags=re.MULTILINE | re.DOTALL)
    found = [table for table in results.tables(text.splitlines()) if len(table) > 2]
    return [table[0][:70] for table in found if len(results.DECIMAL.findall("\n".join(table[2:]))) >= 3]


@pytest.mark.parametrize("page", PAGES)
def test_numbers_are_those_of_the_result_files(page):
    assert results.faults(PAGES[page].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_numbers_have_a_result_file_or_are_known_to_lack_it(page):
    assert tables_without_marker(PAGES[page].read_text(encoding="utf-8")) == NOT_YET_RECORDED.get(page, [])


def test_some_tables_are_compared():
    markers = [match for page in PAGES.values() for match in results.MARKER.findall(page.read_text(encoding="utf-8"))]
    assert {name for _, name, _, _ in markers} - {"paper"} == {path.stem for path in FILES}
    assert sum(kind == "results" for kind, *_ in markers) >= 6


def test_lines_of_tune_go_when_its_run_is_recorded():
    assert not (results.NOT_YET_RECORDED and (ROOT / "docs" / "results" / "tune.json").exists())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_result_file_says_how_it_was_made(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    python, script, *_ = shlex.split(found["command"])
    assert python == "python"
    assert (ROOT / script).exists()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert re.fullmatch("[0-9a-f]{40}", found["commit"])
    assert found["packages"].keys() >= {"ilhash", "numpy"}
    assert found["output"]


def test_a_number_that_was_changed_is_named():
    page = PAGES["docs/search.md"].read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("| 16 | Hamming |")]
    number = results.cells(line)[2]
    other = page.replace(line, line.replace(number, f"{float(number) + 0.001:.3f}"))
    (fault,) = results.faults(other)
    assert fault.startswith("order.json: '| 16 | Hamming |")
    assert results.faults(results.rewritten(other)) == []


def test_a_line_that_is_missing_and_a_number_in_a_sentence_are_named():
    page = PAGES["docs/search.md"].read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("| 128 | rescored by vectors |")]
    (fault,) = results.faults(page.replace(line + "\n", ""))
    assert "17 lines instead of 18" in fault or "lines instead of" in fault
    sentence = "<!-- numbers: quality -->\n\nILHt has .845 with 64 bits, and {}.\n"
    assert results.faults(sentence.format(".157 with one")) == []
    assert results.faults(sentence.format(".991 with one")) == ["quality.json: .991 is no number of it"]
