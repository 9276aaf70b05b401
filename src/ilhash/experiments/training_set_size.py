"""Section 4: what happens to ILHt when N approaches all the data, and when nothing differs between bits."""

from __future__ import annotations

import numpy as np

from ilhash.experiments._build import ilh, over_seeds
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import INK, Picture, band, colour, label_ends, new_figure, number

__all__ = ["EXPERIMENT", "all_alike", "growing", "single_bit"]

SEEDS = 2


def growing(scale: Scale, n_train: int) -> list[Cell]:
    """Return ILHt with so many points per bit."""
    return [ilh(scale, "images", seed, "t", n_train) for seed in range(min(SEEDS, scale.n_seeds))]


def all_alike(scale: Scale, order: str) -> list[Cell]:
    """Return models whose bits share training set, start, graph and features; only the order of blocks may differ."""
    return [
        ilh(scale, "images", seed, "", scale.wide_sizes[-1], block_order=order)
        for seed in range(min(SEEDS, scale.n_seeds))
    ]


def _cells(scale: Scale) -> list[Cell]:
    cells = [cell for n_train in scale.wide_sizes for cell in growing(scale, n_train)]
    return cells + all_alike(scale, "random") + all_alike(scale, "fixed")


def single_bit(results: Results) -> float:
    """Return the mean precision of the first single bits of ILHt."""
    found = [results.read(ilh(results.scale, "images", seed)) for seed in results.scale.seeds]
    singles = [float("nan") if one is None else float(one.arrays["singles"].mean()) for one in found]
    return float(np.mean(singles))


def _pictures(results: Results) -> list[Picture]:
    scale = results.scale
    bits, k = scale.bits[-1], scale.images.k
    figure, axes = new_figure(7, 4)
    panel = axes[0, 0]
    values = np.array([over_seeds(results, growing(scale, n), bits, k) for n in scale.wide_sizes]).T
    ends = [("ILHt", band(panel, scale.wide_sizes, values, "ILHt", marker="o", ms=4), colour("ILHt"))]
    last = scale.wide_sizes[-1]
    told = {}
    for order, label in (("random", "same set, random blocks"), ("fixed", "nothing differs")):
        precision = float(np.mean(over_seeds(results, all_alike(scale, order), bits, k)))
        told[order] = precision
        panel.plot([last], [precision], marker="D", ms=6, color=colour("ILHi" if order == "random" else "LSH"), ls="")
        ends.append((label, precision, colour("ILHi" if order == "random" else "LSH")))
    one = single_bit(results)
    panel.axhline(one, color=INK, lw=0.8, ls=":")
    panel.text(0.01, one, " one bit", transform=panel.get_yaxis_transform(), fontsize=8, color=INK, va="bottom")
    panel.set_xscale("log")
    panel.set_xticks(scale.wide_sizes, [f"{n:,}" for n in scale.wide_sizes])
    panel.set_xticks([], minor=True)
    panel.set(xlabel="training points per bit, N", ylabel=f"precision@{k}, b = {bits}", ylim=(0, None))
    label_ends(panel, ends)
    caption = (
        f"ILHt on {scale.images.title} up to all {last:,} points in every bit. Even there the start, the sampled "
        f"neighbours and the order of the blocks still differ. Diamonds: one common set of all points; with only the "
        f"order of the blocks differing {number(told['random'])}, with nothing differing {number(told['fixed'])}; a "
        f"single bit alone has {number(one)}."
    )
    paper = (
        "No figure; it states that with N growing to all data diversity would disappear and precision drop to that of "
        "a single bit, about 12 %."
    )
    return [Picture("Up to all the data", figure, caption, paper)]


EXPERIMENT = Experiment(
    name="training-set-size",
    title="When the data run out",
    shows="ILHt as N approaches all the data, and bits that differ in nothing",
    parts=("images",),
    cells=_cells,
    pictures=_pictures,
)
