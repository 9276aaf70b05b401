"""Section 3: the order in which the min-cut visits its blocks, random or fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments.engine import Cell, Results, Scale, ilh, over_seeds
from ilhash.experiments.report.drawing import Picture, colour, new_figure, number

TITLE = "Does the order of the blocks matter?"
SHOWS = "random against fixed order of the blocks of the min-cut"
DATASETS = ("images", "words")
ORDERS = ("random", "fixed")
LETTERS = {"ILHt": "t", "ILHi": "i", "ILHf": "f", "no letter": ""}


def ordered(scale: Scale, dataset: str, letters: str, order: str) -> list[Cell]:
    """Return models over seeds; random is the standard order."""
    more: dict[str, Any] = {} if order == "random" else {"block_order": "fixed"}
    seeds = scale.seeds if dataset == "images" else range(1)
    return [ilh(scale, dataset, seed, letters, **more) for seed in seeds]


def cells(scale: Scale) -> list[Cell]:
    """Return models of both orders for all letters, and without labels."""
    pairs = [*(("images", letters) for letters in LETTERS.values()), ("words", "t")]
    return [cell for pair in pairs for order in ORDERS for cell in ordered(scale, *pair, order)]


def precisions(results: Results, dataset: str, letters: str, order: str) -> NDArray[np.float64]:
    """Return precision with the most bits of the mechanisms, over seeds."""
    scale = results.scale
    return over_seeds(results, ordered(scale, dataset, letters, order), scale.bits[-1], scale.data(dataset).k)


def energies(results: Results, dataset: str, letters: str, order: str) -> list[float]:
    """Return the mean energy that the z-step ends at, over seeds."""
    found = [results.read(cell) for cell in ordered(results.scale, dataset, letters, order)]
    return [float("nan") if one is None else float(one.numbers["energy"]) for one in found]


def pictures(results: Results) -> list[Picture]:
    """Draw both orders side by side for all letters."""
    scale = results.scale
    figure, axes = new_figure(7, 3.6)
    panel = axes[0, 0]
    for place, (name, letters) in enumerate(LETTERS.items()):
        for side, order in enumerate(ORDERS):
            values = precisions(results, "images", letters, order)
            middle, spread = values.mean(), values.std()
            x = place + 0.2 * (2 * side - 1)
            own = colour(name if letters else "LSH")
            panel.bar(x, middle, width=0.36, color=own, alpha=0.9 if order == "random" else 0.45, lw=0)
            panel.errorbar(x, middle, spread, color=colour("Euclidean"), lw=1.0, capsize=2)
            words, how = f"{order}\n{number(middle)}", {"ha": "center", "va": "bottom", "fontsize": 7}
            panel.text(x, middle + spread + 0.01, words, color=own, **how)
    panel.set_xticks(range(len(LETTERS)), list(LETTERS))
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
