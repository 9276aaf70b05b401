"""Recompute stored cells of the paper's scale and compare them with what is stored.

python benchmarks/recompute_cells.py [--count 40] [--seconds 20] [--n-jobs 1]

Takes the cheapest cell of every kind (task, method, functions, diversity), tasks in turn, among those that took at
most so many seconds. Cells that measure time are left out, and in the others the seconds and what is said in words.
All else must be equal to stored precision: numbers as they are, arrays as float32.

Sums are rounded in another way by wider instructions, and a bit that moves moves others. The cells were computed with
AVX2, so that a machine with AVX-512 computes as if it had none, and GIST features are kept apart from its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ilhash import core_simd
from ilhash.experiments import Cell, Outcome, Results, cells_of, experiments, run_cells

STORED = Path(__file__).parents[1] / "docs" / "results" / "paper-cells.zip"
WORDS = ("warnings", "faiss")  # of numbers: what was said, and by which version
AS_STORED = {"ILHASH_SIMD": "avx2", "OPENBLAS_CORETYPE": "Zen", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL"}


def compute_as_stored() -> None:
    """Let processes that start from now on compute with the instructions that the stored cells were computed with."""
    if core_simd() == "avx512":
        cache = os.environ.get("ILHASH_CACHE", str(Path(tempfile.gettempdir(), "ilhash-cache")))
        os.environ.update(AS_STORED, ILHASH_CACHE=f"{cache}-avx2")


def kind_of(cell: Cell, status: str) -> tuple[str, ...]:
    """Return what two cells have in common that show the same of the code."""
    settings = cell.params.get("settings", {})
    about = (settings.get("hash_function", ""), settings.get("centers", ""), settings.get("diversity", ""))
    return cell.task, cell.params.get("method", ""), *about, status


def chosen(stored: Results, count: int, seconds: float, parts: list[str]) -> list[Cell]:
    """Return the cheapest cells of as many kinds, and of as many tasks, as possible."""
    taken = {cell: stored.read(cell) for cell in cells_of(list(experiments().values()), stored.scale)}
    cells = [cell for cell, one in taken.items() if one.seconds <= seconds and cell.params["data"] in parts]
    cells = [cell for cell in cells if not cell.alone]
    cells.sort(key=lambda cell: (not taken[cell].done, taken[cell].seconds))
    cheapest: dict[tuple[str, ...], Cell] = {}
    for cell in cells:
        cheapest.setdefault(kind_of(cell, taken[cell].status), cell)
    turns: dict[str, int] = {}
    turn = {}
    for cell in cheapest.values():
        turn[cell] = turns[cell.task] = turns.get(cell.task, -1) + 1
    return sorted(turn, key=turn.__getitem__)[:count]


def difference(before: Outcome, now: Outcome) -> float:
    """Return the largest difference; infinite where something is there in one of them only, or is no number."""
    if (before.status, set(before.arrays)) != (now.status, set(now.arrays)):
        return float("inf")
    numbers = [{k: v for k, v in one.numbers.items() if k not in WORDS and "seconds" not in k} for one in (before, now)]
    return max([0.0, *_between(*numbers), *_between(before.arrays, now.arrays)])


def _between(before: dict, now: dict) -> Iterator[float]:
    for name in {**before, **now}:
        if name not in before or name not in now:
            yield float("inf")
            continue
        a, b = np.asarray(before[name]), np.asarray(now[name])
        if a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f"):
            continue
        comparable = a.shape == b.shape and a.dtype.kind in "iuf" and b.dtype.kind in "iuf"
        if not comparable or not np.array_equal(np.isnan(a), np.isnan(b)):
            yield float("inf")
        else:
            yield float(np.nanmax(np.abs(a - b)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40, help="cells")
    parser.add_argument("--seconds", type=float, default=20.0, help="that a cell took at most")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--data", nargs="+", default=["images", "words"], help="also digits: a million are made first")
    asked = parser.parse_args()
    compute_as_stored()
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(STORED) as archive:
            archive.extractall(Path(folder, "stored"))
        stored = Results.open(Path(folder, "stored"))
        again = Results.create(Path(folder, "again"), stored.scale)
        cells = chosen(stored, asked.count, asked.seconds, asked.data)
        failed = dict(run_cells(cells, again, n_jobs=asked.n_jobs).failed)
        return show(cells, stored, again, failed)


def show(cells: list[Cell], stored: Results, again: Results, failed: dict[Cell, str]) -> int:
    """Print a row for every cell; return 1 if one of them differs."""
    different = 0
    print("| cell | kind | data | stored s | now s | |\n|---|---|---|---|---|---|")
    for cell in cells:
        before, now = stored.read(cell), again.read(cell)
        apart = 0.0 if now is None else difference(before, now)
        verdict = failed[cell] if now is None else "equal" if apart == 0 else f"differs by {apart:.3g}"
        different += verdict != "equal"
        kind = " ".join(filter(None, kind_of(cell, before.status)))
        seconds = f"{before.seconds:.1f} | {0.0 if now is None else now.seconds:.1f}"
        print(f"| {cell.key} | {kind} | {cell.params['data']} | {seconds} | {verdict} |")
    kinds = len({kind_of(cell, stored.read(cell).status) for cell in cells})
    print(f"\n{len(cells) - different} of {len(cells)} cells equal, {kinds} kinds")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
