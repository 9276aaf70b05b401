"""Section 3: the order in which the min-cut visits its blocks, random or fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.experiments._build import ilh, over_seeds
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import Picture, colour, new_figure, number

__all__ = ["EXPERIMENT", "ORDERS", "energies", "ordered", "precisions"]

ORDERS = ("random", "fixed")
LETTERS = {"ILHt": "t", "ILHi": "i", "ILHf": "f", "no letter": ""}


def ordered(scale: Scale, part: str, letters: str, order: str) -> list[Cell]:
    """Return models over seeds; random is the standard order."""
    more: dict[str, Any] = {} if order == "random" else {"block_order": "fixed"}
    seeds = scale.seeds if part == "images" else range(1)
    return [ilh(scale, part, seed, letters, **more) for seed in seeds]


def _cells(scale: Scale) -> list[Cell]:
    found = [
        cell for letters in LETTERS.values() for order in ORDERS for cell in ordered(scale, "images", letters, order)
    ]
    return found + [cell for order in ORDERS for cell in ordered(scale, "words", "t", order)]


def precisions(results: Results, part: str, letters: str, order: str) -> list[float]:
    """Return precision with the most bits of the mechanisms, over seeds."""
    scale = results.scale
    cells = ordered(scale, part, letters, order)
    return [float(value) for value in over_seeds(results, cells, scale.bits[-1], scale.data(part).k)]


def energies(results: Results, part: str, letters: str, order: str) -> list[float]:
    """Return the mean energy that the z-step ends at, over seeds."""
    found = [results.read(cell) for cell in ordered(results.scale, part, letters, order)]
    return [float("nan") if one is None else float(one.numbers["energy"]) for one in found]


def _pictures(results: Results) -> list[Picture]:
    scale = results.scale
    figure, axes = new_figure(7, 3.6)
    panel = axes[0, 0]
    told = []
    for place, (name, letters) in enumerate(LETTERS.items()):
        for side, order in enumerate(ORDERS):
            values = precisions(results, "images", letters, order)
            middle, spread = float(np.mean(values)), float(np.std(values))
            x = place + 0.2 * (2 * side - 1)
            own = colour(name) if name in ("ILHt", "ILHi", "ILHf") else colour("LSH")
            panel.bar(x, middle, width=0.36, color=own, alpha=0.9 if order == "random" else 0.45, lw=0)
            panel.errorbar(x, middle, spread, color=colour("Euclidean"), lw=1.0, capsize=2)
            panel.text(
                x, middle + spread + 0.01, f"{order}\n{number(middle)}", ha="center", va="bottom", fontsize=7, color=own
            )
        told.append(name)
    panel.set_xticks(range(len(told)), told)
    panel.grid(visible=False, axis="x")
    panel.set(ylabel=f"precision@{scale.images.k}, b = {scale.bits[-1]}", ylim=(0, 1.25 * panel.get_ylim()[1]))
    without = ", ".join(f"{order} {number(precisions(results, 'words', 't', order)[0])}" for order in ORDERS)
    caption = (
        f"Random and fixed order of the blocks on {scale.images.title}, means over seeds with standard deviations. "
        "With no letter the order is all in which bits differ: fixed, all are the same. How far a fixed order sets the "
        f"others back says how much of their diversity is the order's. ILHt without labels ({scale.words.title}, "
        f"precision@{scale.words.k:,}): {without}."
    )
    paper = "No figure; it states that a random order at each iteration improves over a fixed one."
    return [Picture("Order of the blocks", figure, caption, paper)]


EXPERIMENT = Experiment(
    name="block-order",
    title="Does the order of the blocks matter?",
    shows="random against fixed order of the blocks of the min-cut",
    parts=("images", "words"),
    cells=_cells,
    pictures=_pictures,
)
