"""Beyond the paper: other methods with all points and with the functions that ILH has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.experiments.engine import Cell, Results, Scale, settings_of
from ilhash.experiments.engine.bases import BASES, all_bytes, bases_cell, ks_at, n_learnt, precision_in
from ilhash.experiments.report.drawing import Lines, Picture, log_axis, new_figure, number

TITLE = "Beyond the paper: the same points and functions for all"
SHOWS = "SDH, CCAITQ, classifier codes and KSH beside ILH, all with all points and linear, kernel or tree functions"
DATASETS = ("images",)
FUNCTIONS = ("linear", "kernel", "trees")
OWN = {"SDH": "kernel", "CCAITQ": "linear"}  # the functions that a method has by itself
PER_BIT = {"linear": 0.02, "kernel": 0.2, "trees": 1.5}  # seconds at 29,000 points


def entrants(scale: Scale, functions: str) -> dict[str, dict[int, Cell]]:
    """Return the methods with such functions, each by its bytes."""
    n, kind = n_learnt(scale), _functions(scale, functions)
    many = {"n_train": 4 * n // 5}  # not all: then the training sets of the bits would not differ
    found = {
        f"ILHt, N = {scale.n_train:,}": _nested(scale, "ILH", functions, 0.3, **settings_of(scale, **kind)),
        f"ILHit, N = {many['n_train']:,}": _nested(
            scale, "ILH", functions, 1.0, **settings_of(scale, "it", **{**kind, **many})
        ),
        "class, ECOC": _nested(scale, "ClassifierCode", functions, 0.1, code="ecoc", n_train=n, **kind),
    }
    for name, own in OWN.items():
        if functions == own:
            centers = {"n_centers": scale.n_centers} if name == "SDH" else {}
            found[name] = _each(scale, name, functions, 0.2, n_train=n, **centers)
        else:
            found[f"{name}, refitted"] = _each(scale, "Refitted", functions, 1.0, codes_of=name, n_train=n, **kind)
    if functions == "kernel":
        common = {"n_train": scale.n_train, "n_centers": scale.n_centers}
        found["KSH"] = _each(scale, "KSH", functions, 0.5, **common)
        pairs = scale.neighbours
        found[f"KSH, {pairs} + {pairs}"] = _each(scale, "KSH", functions, 1.0, n_pairs=pairs, **common)
    return found


def _functions(scale: Scale, functions: str) -> dict[str, Any]:
    own: dict[str, Any] = {"hash_function": functions}
    if functions == "kernel":
        own["n_centers"] = scale.n_centers
    if functions == "trees" and scale.n_train < 1_000:
        own["n_trees"] = 10
    return own


def _cost(scale: Scale, functions: str, share: float, bits: int) -> float:
    return max(0.2, share * PER_BIT[functions] * bits * n_learnt(scale) / 29_000)


def _nested(scale: Scale, method: str, functions: str, share: float, **settings: Any) -> dict[int, Cell]:
    bits = [8 * n for n in all_bytes(scale)]
    cell = bases_cell(scale, "images", method, bits, _cost(scale, functions, share, bits[-1]), **settings)
    return dict.fromkeys(all_bytes(scale), cell)


def _each(scale: Scale, method: str, functions: str, share: float, **settings: Any) -> dict[int, Cell]:
    # Trees of all points, anew for every number of bytes, take minutes: two numbers show where they lead.
    sizes = all_bytes(scale)[:2] if functions == "trees" else all_bytes(scale)
    return {
        n: bases_cell(scale, "images", method, [8 * n], _cost(scale, functions, share, 8 * n), **settings)
        for n in sizes
    }


def cells(scale: Scale) -> list[Cell]:
    """Return all methods with all kinds of functions."""
    return [cell for kind in FUNCTIONS for by_bytes in entrants(scale, kind).values() for cell in by_bytes.values()]


def ranking(results: Results, functions: str, n_bytes: int, k: int, base: str) -> dict[str, float]:
    """Return precision by method, best first; those without a number are left out."""
    found = {
        name: precision_in(results, by_bytes[n_bytes], 8 * n_bytes, k, base)
        for name, by_bytes in entrants(results.scale, functions).items()
        if n_bytes in by_bytes
    }
    return {name: found[name] for name in sorted(found, key=lambda name: -found[name]) if np.isfinite(found[name])}


def pictures(results: Results) -> list[Picture]:
    """Draw precision over bytes: a column for each kind of functions, a row for each base."""
    scale = results.scale
    sizes, k = all_bytes(scale), ks_at(scale)[-1]
    figure, axes = new_figure(14, 8.6, len(BASES), len(FUNCTIONS), share_y=True)
    panels = []
    for base, row in zip(BASES, axes, strict=True):
        for functions, panel in zip(FUNCTIONS, row, strict=True):
            lines = Lines(panel)
            for name in entrants(scale, functions):
                values = [ranking(results, functions, n, k, base).get(name, np.nan) for n in sizes]
                if np.isfinite(values).any():
                    style = {"ls": "--"} if name.startswith(("KSH, ", "ILHit")) else {}
                    lines.draw(sizes, [values], _coloured(name), name, marker="o", ms=3, **style)
            log_axis(panel, sizes, base=2)
            panel.set(title=f"{functions}, {base} items", xlabel="bytes")
            panels.append(lines)
        row[0].set_ylabel(f"precision@{k}")
    for lines in panels:
        lines.label(size=7)
    return [Picture(f"The same functions on {scale.images.title}", figure, _caption(results), "Not in the paper.")]


def _coloured(name: str) -> str:
    return name.replace("ILHit", "ILHt")


def _caption(results: Results) -> str:
    scale = results.scale
    n_bytes, k = all_bytes(scale)[0], ks_at(scale)[-1]
    told = []
    for functions in FUNCTIONS:
        for base in BASES:
            best = list(ranking(results, functions, n_bytes, k, base).items())
            first = ", ".join(f"{name} {number(score)}" for name, score in best)
            told += [f"{functions}, {base}: {first}"] if best else []
    return (
        f"{scale.images.title}: {n_learnt(scale):,} points to learn from (seen items) and as many new ones. SDH, "
        "CCAITQ and the classifier code are trained on all of the former; ILHt on N of them for each bit, KSH on as "
        "many in all, with all pairs or with the paper's neighbours. Refitted: the code that the method gives to each "
        "class, fitted with functions that it does not have by itself. "
        f"{n_bytes} bytes, precision@{k}: {'; '.join(told)}."
    )
