"""Tables of docs/results/README.md, from the cells of ``ilhash reproduce`` that are committed beside it."""

import atexit
import functools
import math
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from ilhash.experiments import Results, against_quantizers, same_functions
from ilhash.experiments.diversity_mechanisms import mechanism
from ilhash.experiments.engine import mean_of, over_seeds
from ilhash.experiments.precision_by_bits import nested

CELLS = Path(__file__).parents[1] / "docs" / "results" / "paper-cells.zip"
SIZES = (4, 8, 16)


@functools.cache
def cells() -> Results:
    """Open the committed cells, unpacked for as long as this process lives."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    with zipfile.ZipFile(CELLS) as archive:
        archive.extractall(folder.name)
    return Results.open(Path(folder.name))


def short(value: float) -> str:
    """Write a precision as pages do: three digits, no zero before the point."""
    return "-" if math.isnan(value) else f"{value:.3f}".removeprefix("0")


def line_of(parts: list[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(parts)} |"


def in_short(found: Results) -> list[str]:
    """Precision@500 of the main models on CIFAR-10 GIST."""
    scale = found.scale

    def mean(name: str, bits: int, function: str = "linear") -> str:
        if name == "LSH":
            return short(mean_of(over_seeds(found, nested(scale, "images", "LSH"), bits, scale.images.k)))
        models = mechanism(scale, name, function, scale.n_train, bits)
        return short(mean_of(over_seeds(found, models, bits, scale.images.k)))

    rows: dict[str, list[tuple[Any, ...]]] = {"ILHt": [("ILHt",)]}
    rows["ILHi, ILHf, ILHitf"] = [("ILHi",), ("ILHf",), ("ILHitf",)]
    rows |= {"KSHcut": [("KSHcut",)], "LSH": [("LSH",)]}
    rows["ILHt, kernels with common centres"] = [("ILHt", "kernel, common centres")]
    rows["ILHt, kernels with private centres"] = [("ILHt", "kernel, private centres")]
    lines = ["| CIFAR-10 GIST, precision@500, 5 seeds, N = 5,000 | 32 bits | 64 bits | 128 bits |", "|---|---|---|---|"]
    for title, models in rows.items():
        told = [", ".join(mean(name, bits, *function) for name, *function in models) for bits in (32, 64, 128)]
        lines.append(line_of([title, *told]))
    return lines


def equal_bytes(found: Results) -> list[str]:
    """Precision at 10 / 100 / 500 among new items of CIFAR-10 GIST."""
    shown = {f"{name}, asymmetric": f"{name}, asymmetric" for name in against_quantizers.ILHT.values()}
    shown |= {"ITQ": "ITQ", "CCAITQ": "CCAITQ", "PQ": "PQ", "PCA-PQ": "PQ of principal components", "OPQ": "OPQ"}
    shown |= {"RaBitQ": "RaBitQ, 8 bytes of factors counted"}
    there = {one.name: one for one in against_quantizers.entrants(found.scale, "images")}
    lines = ["| | float query | 4 bytes | 8 bytes | 16 bytes |", "|---|---|---|---|---|"]
    for name, title in shown.items():
        told = [_at(found, there[name], size) for size in SIZES]
        lines.append(line_of([title, "no" if name in ("ITQ", "CCAITQ") else "yes", *told]))
    floats = _at(found, there["floats"], SIZES[0])
    return [*lines, line_of(["floats, 1,280 bytes", "yes", floats, "", ""])]


def _at(found: Results, one: Any, size: int) -> str:
    told = [short(one.at(found, size, k, "new")) for k in (10, 100, 500)]
    return "-" if set(told) == {"-"} else " / ".join(told)


def with_the_same_functions(found: Results) -> list[str]:
    """Precision@500 among new / seen items, by functions and bytes."""
    rows = {
        "ILHt, N = 5,000": ("ILHt, N = 5,000",),
        "ILHit, N = 23,200": ("ILHit, N = 23,200",),
        "CCAITQ, kernels and trees refitted": ("CCAITQ", "CCAITQ, refitted"),
        "SDH, linear and trees refitted": ("SDH", "SDH, refitted"),
        "class, ECOC": ("class, ECOC",),
        "KSH, all pairs": ("KSH",),
        "KSH, 100 + 100 neighbours": ("KSH, 100 + 100",),
    }
    heads = [f"{kind}, 4 bytes | 8 bytes | 16 bytes" for kind in same_functions.FUNCTIONS]
    lines = [f"| | {' | '.join(heads)} |", "|---" * 10 + "|"]
    for title, names in rows.items():
        parts = [_both(found, kind, size, names) for kind in same_functions.FUNCTIONS for size in SIZES]
        lines.append(line_of([title, *parts]).replace("|  ", "| "))
    return lines


def _both(found: Results, kind: str, size: int, names: tuple[str, ...]) -> str:
    if not any(name in same_functions.entrants(found.scale, kind) for name in names):
        return ""
    told = []
    for base in ("new", "seen"):
        scores = same_functions.ranking(found, kind, size, 500, base)
        told += [short(scores[name]) for name in names if name in scores]
    return " / ".join(told) or "-"


TABLES = {"in-short": in_short, "equal-bytes": equal_bytes, "same-functions": with_the_same_functions}


def table(name: str) -> list[str]:
    """Return a table that is made of the committed cells.

    Parameters
    ----------
    name : one of TABLES

    Returns
    -------
    list of str, its lines
    """
    return TABLES[name](cells())
