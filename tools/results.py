"""Numbers in pages, and the result files that they come from.

``<!-- results: order 0 -->`` above a table says that it is the first table in the output of docs/results/order.json,
``<!-- results: bytes front -->`` that the view ``front`` below makes it of docs/results/bytes.json, and ``paper`` that
it comes from the cells in paper-cells.zip. ``<!-- numbers: quality -->`` above a paragraph says that every decimal
number in it is one of that file, rounded.

    python tools/results.py            # say which tables and paragraphs disagree with their files
    python tools/results.py --write    # write the tables again
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import results_of_paper

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
MARKER = re.compile(r"^<!-- (results|numbers): ([\w-]+)(?: ([\w-]+))? -->\n+((?:[^\n]+\n)+)", re.MULTILINE)
DECIMAL = re.compile(r"(?<![\w.])\d*\.\d+(?!\.?\d)")

Record = dict[str, Any]
VIEWS: dict[tuple[str, str], Callable[[Record], list[str]]] = {}


def record(name: str) -> Record:
    """Read a result file."""
    found: Record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def tables(output: list[str]) -> list[list[str]]:
    """Return the Markdown tables among lines, each as its lines."""
    found: list[list[str]] = []
    inside = False
    for line in output:
        if line.startswith("|"):
            found += [] if inside else [[]]
            found[-1].append(line)
        inside = line.startswith("|")
    return found


def cells(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def view(name: str, *, of: str) -> Callable[[Callable[[Record], list[str]]], Callable[[Record], list[str]]]:
    """Let a function make a table of a result file."""

    def keep(make: Callable[[Record], list[str]]) -> Callable[[Record], list[str]]:
        VIEWS[of, name] = make
        return make

    return keep


def table_of(name: str, which: str) -> list[str]:
    """Return the lines of a table: one of the output by its number, or what a view makes."""
    if name == "paper":  # the cells of `ilhash reproduce`, not what a benchmark printed
        return results_of_paper.table(which)
    if which.isdigit():
        return tables(record(name)["output"])[int(which)]
    return VIEWS[name, which](record(name))


def line_of(parts: list[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(parts)} |"


# ------------------------------------------------------------------------------------------------ views

DATA = ("mnist", "fashion-mnist", "cifar10-gist")
BYTES = ("4", "8", "16", "32")

# Lines of the front table from before runs were recorded. They may only go, when tune.json comes.
NOT_YET_RECORDED = [
    "| **`ilhash tune`**, seed 0 | **.962 / .968 / .968 / .970** | **.848 / .864 / .861 / .876** "
    "| **.546 / .570 / .607 / .624** |",
    "| **`ilhash tune`**, seed 1 | **.971 / .975 / .976 / -** | **.850 / .864 / .850 / -** "
    "| **.543 / .576 / .581 / -** |",
]


def _by_bytes(found: Record) -> dict[str, dict[tuple[str, str], list[str]]]:
    """Return, for each dataset, precision among new items at 10, 100 and 500 by (method, bytes)."""
    names = [line.split()[1].rstrip(",") for line in found["output"] if line.startswith("## ")]
    told = {}
    for name, lines in zip(names, tables(found["output"]), strict=True):
        rows = [cells(line) for line in lines[2:]]
        told[name] = {(row[1], row[0]): row[3:6] for row in rows if len(row) > 5}
    return told


@view("front", of="bytes")
def _front(found: Record) -> list[str]:
    """Precision@10 among new items: a column for each dataset, a cell with all numbers of bytes."""
    told = _by_bytes(found)
    rows = {"ILH by default": ("ILH",), "ITQ": ("ITQ",), "CCAITQ": ("CCAITQ",)}
    rows |= {"PQ, the best of three of faiss, float queries": ("PQ", "PCA-PQ", "OPQ")}
    rows |= {"RaBitQ of faiss, float queries": ("RaBitQ",), "sign bits": ("Sign",)}
    lines = ["| | MNIST pixels | Fashion-MNIST pixels | CIFAR-10 GIST |", "|---|---|---|---|", *_tuned()]
    for title, kinds in rows.items():
        parts = []
        for data in DATA:
            best = [max((told[data][k, b][0] for k in kinds if (k, b) in told[data]), default="-") for b in BYTES]
            parts.append(" / ".join(best))
        lines.append(line_of([title, *parts]))
    floats = [next(row[0] for (kind, _), row in told[data].items() if kind == "floats") for data in DATA]
    return [*lines, line_of(["floats (3,136 and 1,280 bytes)", *floats])]


def _tuned() -> list[str]:
    """Return the lines of ``tune`` by seed, a dash for numbers of bytes that were not run.

    They come from docs/results/tune.json, written on a machine that does nothing else:
    ``python benchmarks/record.py tune -- python benchmarks/tune.py --bytes 4 8 16 32 --seeds 0 1``.
    """
    if not (RESULTS / "tune.json").exists():
        return NOT_YET_RECORDED
    rows = [cells(line) for line in tables(record("tune")["output"])[0][2:]]
    scores = {(row[0], row[1], row[2]): row[3].removeprefix("0") for row in rows}
    lines = []
    for seed in dict.fromkeys(row[2] for row in rows):
        told = [" / ".join(scores.get((data, size, seed), "-") for size in BYTES) for data in DATA]
        lines.append(line_of([f"**`ilhash tune`**, seed {seed}", *(f"**{one}**" for one in told)]))
    return lines


@view("mnist", of="bytes")
def _mnist(found: Record) -> list[str]:
    """MNIST at 10 / 100 / 500 among new items: a line for each method, a column for each number of bytes."""
    told = _by_bytes(found)["mnist"]
    lines = ["| | float query | 4 bytes | 8 bytes | 16 bytes | 32 bytes |", "|---|---|---|---|---|---|"]
    floating = {"ILH, asymmetric", "PQ", "PCA-PQ", "OPQ", "RaBitQ"}
    for kind in ("ILH", "ILH, asymmetric", "ITQ", "CCAITQ", "Sign", "PQ", "PCA-PQ", "OPQ", "RaBitQ"):
        row = [" / ".join(told[kind, size]) if (kind, size) in told else "-" for size in BYTES]
        lines.append(line_of([kind, "yes" if kind in floating else "no", *row]))
    return [*lines, line_of(["floats, 3,136 bytes", "yes", " / ".join(told["floats", "3136"]), "", "", ""])]


@view("32-bits", of="order")
def _order_at_32(found: Record) -> list[str]:
    """Four orders at 32 bits, precision@10 and bytes per item."""
    rows = [cells(line) for line in tables(found["output"])[0]]
    kept = [(row[2].removeprefix("0"), row[-1]) for row in rows if row[0] == "32"]
    lines = ["| Hamming | asymmetric | shortlist by 8-bit margins | shortlist by vectors |", "|---|---|---|---|"]
    return [*lines, line_of([f"{score} ({size} bytes per item)" for score, size in kept])]


@view("bits", of="quality")
def _quality(found: Record) -> list[str]:
    """ILHt and ILHi by number of bits."""
    told = {
        line.partition(":")[0]: re.findall(r"(\d+) bits (\S+)", line)
        for line in found["output"]
        if line.startswith(("ILHt:", "ILHi:"))
    }
    lines = ["| bits | ILHt | ILHi |", "|---|---|---|"]
    both = zip(told["ILHt"], told["ILHi"], strict=True)
    return [*lines, *(line_of([bits, t.removeprefix("0"), i.removeprefix("0")]) for (bits, t), (_, i) in both)]


@view("table", of="unlabeled")
def _unlabeled(found: Record) -> list[str]:
    """Precision and likeness of bits, two columns for each dataset."""
    data = [{row[0]: row[1:] for row in map(cells, lines[2:])} for lines in tables(found["output"])]
    names = {
        "the same, one sweep": "the same, `max_sweeps=1`",
        "100 and 100, a tenth of the features": '100 and 100, `diversity="tf"`, `n_features=0.1`',
    }
    heads = ["GloVe words", "CIFAR-10 GIST", "CIFAR-10 edge histograms"]
    lines = [f"| | {' | '.join(f'{head} | alike' for head in heads)} |", "|---" * 7 + "|"]
    for name in data[0]:
        values = [value.removeprefix("0") for told in data for value in told[name]]
        lines.append(line_of([names.get(name, name), *values]))
    return lines


# ------------------------------------------------------------------------------------------------ comparison


def faults(text: str) -> list[str]:
    """Return what in a page does not agree with its result files.

    Parameters
    ----------
    text : the page's Markdown

    Returns
    -------
    list of str, a sentence for each table or paragraph
    """
    found = []
    for kind, name, which, block in MARKER.findall(text):
        if kind == "results":
            wanted = table_of(name, which or "0")
            written = [line for line in block.splitlines() if line.startswith("|")]
            pairs = zip(written[2:], wanted[2:], strict=False)
            differs = [f"{a!r} is not {b!r}" for a, b in pairs if cells(a) != cells(b)]
            if len(written) != len(wanted):
                differs.append(f"{len(written)} lines instead of {len(wanted)}")
        else:
            known = [float(one) for one in DECIMAL.findall("\n".join(record(name)["output"]))]
            differs = [f"{one} is no number of it" for one in DECIMAL.findall(block) if not _among(one, known)]
        found += [f"{name}.json {which}".strip() + f": {'; '.join(differs)}"] if differs else []
    return found


def _among(written: str, known: list[float]) -> bool:
    digits = len(written.partition(".")[2])
    return any(abs(float(written) - one) < 0.5000001 * 10.0**-digits for one in known)


def rewritten(text: str) -> str:
    """Return a page with its tables as their result files have them."""

    def one(match: re.Match[str]) -> str:
        kind, name, which, block = match.groups()
        if kind != "results":
            return match.group()
        return match.group().replace(block, "\n".join(table_of(name, which or "0")) + "\n")

    return MARKER.sub(one, text)


def pages() -> list[Path]:
    """Return the pages that may have numbers."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> int:
    """Compare all pages, or write them again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write tables as their result files have them")
    asked = parser.parse_args()
    failed = 0
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if asked.write:
            text = rewritten(text)
            page.write_text(text, encoding="utf-8")
        for fault in faults(text):
            print(f"{page.relative_to(ROOT)}: {fault}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
