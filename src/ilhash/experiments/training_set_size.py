"""Section 4: what happens to ILHt when N approaches all the data, and when nothing differs between bits."""

from __future__ import annotations

import numpy as np

from ilhash.experiments.engine import Cell, Results, Scale, ilh, over_seeds
from ilhash.experiments.report.drawing import INK, Lines, Picture, log_axis, new_figure, number

TITLE = "When the data run out"
SHOWS = "ILHt as N approaches all the data, and bits that differ in nothing"
DATASETS = ("images",)
SEEDS = 2


def growing(scale: Scale, n_train: int) -> list[Cell]:
    """Return ILHt with so many points per bit."""
    return [ilh(scale, "images", seed, "t", n_train) for seed in range(min(SEEDS, scale.n_seeds))]


def all_alike(scale: Scale, order: str) -> list[Cell]:
    """Return models whose bits share training set, start, graph and features; only the order of blocks may differ."""
    n, seeds = scale.wide_sizes[-1], range(min(SEEDS, scale.n_seeds))
    return [ilh(scale, "images", seed, "", n, block_order=order) for seed in seeds]


def cells(scale: Scale) -> list[Cell]:
    """Return ILHt over N, and models whose bits are all alike."""
    found = [cell for n_train in scale.wide_sizes for cell in growing(scale, n_train)]
    return found + all_alike(scale, "random") + all_alike(scale, "fixed")


def single_bit(results: Results) -> float:
    """Return the mean precision of the first single bits of ILHt."""
    found = [results.read(ilh(results.scale, "images", seed)) for seed in results.scale.seeds]
    return float(np.mean([np.nan if one is None else one.arrays["singles"].mean() for one in found]))


def pictures(results: Results) -> list[Picture]:
    """Draw precision over N, and where it ends."""
    scale = results.scale
    bits, k, last = scale.bits[-1], scale.images.k, scale.wide_sizes[-1]
    figure, axes = new_figure(7, 4)
    panel, lines = axes[0, 0], Lines(axes[0, 0])
    values = np.array([over_seeds(results, growing(scale, n), bits, k) for n in scale.wide_sizes]).T
    lines.draw(scale.wide_sizes, values, "ILHt", marker="o", ms=4)
    alike = {}
    for order, name, label in (("random", "ILHi", "same set, random blocks"), ("fixed", "LSH", "nothing differs")):
        alike[order] = float(np.mean(over_seeds(results, all_alike(scale, order), bits, k)))
        lines.draw([last], alike[order], name, label, lw=1.5, marker="D", ms=6, ls="")
    one = single_bit(results)
    panel.axhline(one, color=INK, lw=0.8, ls=":")
    panel.text(0.01, one, " one bit", transform=panel.get_yaxis_transform(), fontsize=8, color=INK, va="bottom")
    log_axis(panel, scale.wide_sizes)
    panel.set(xlabel="training points per bit, N", ylabel=f"precision@{k}, b = {bits}", ylim=(0, None))
    lines.label()
    caption = (
        f"ILHt on {scale.images.title} up to all {last:,} points in every bit. Even there the start, the sampled "
        f"neighbours and the order of the blocks still differ. Diamonds: one common set of all points; with only the "
        f"order of the blocks differing {number(alike['random'])}, with nothing differing {number(alike['fixed'])}; a "
        f"single bit alone has {number(one)}."
    )
    paper = (
        "No figure; it states that with N growing to all data diversity would disappear and precision drop to that of "
        "a single bit, about 12 %."
    )
    return [Picture("Up to all the data", figure, caption, paper)]
