"""Beyond the paper: bits chosen from a larger pool, families side by side, and margins, beside ILHt's first bits."""

from __future__ import annotations

import numpy as np

from ilhash.experiments import asymmetric_search
from ilhash.experiments.engine import Cell, Results, Scale, ilh, method, over_seeds, settings_of, stored_arrays
from ilhash.experiments.report.drawing import Lines, Picture, new_figure, number

TITLE = "Beyond the paper: chosen bits and mixed families"
SHOWS = "bits chosen from a pool, ILHt and ITQ side by side, and asymmetric search beside ILHt"
DATASETS = ("images",)
SEEDS = 2
LONGEST = 64  # bits that are chosen at most: greedy choice is for short codes


def pruned(scale: Scale) -> list[Cell]:
    """Return bits chosen greedily from a pool on held-out training points, shown at each number of bits."""
    at = [bits for bits in (8, 16, 24, 32, 48, 64) if bits <= min(LONGEST, scale.max_bits // 2)]
    params = {"data": "images", "settings": settings_of(scale), "pool": scale.max_bits, "bits": at[-1], "at": at}
    return [Cell("pruned", params, seed, cost=1.2 * ilh(scale, "images", seed).cost) for seed in _seeds(scale)]


def mixed(scale: Scale, bits: int) -> list[Cell]:
    """Return models of ILHt and ITQ, half of the bits each."""
    parts = {"ILH": settings_of(scale), "ITQ": {"n_train": scale.n_train}}
    return [method(scale, "images", seed, "Mix", bits, parts=parts) for seed in _seeds(scale)]


def _seeds(scale: Scale) -> range:
    return range(min(SEEDS, scale.n_seeds))


def cells(scale: Scale) -> list[Cell]:
    """Return all that is set beside ILHt's first bits."""
    found = pruned(scale) + asymmetric_search.cells(scale)
    return found + [cell for bits in scale.bits for cell in mixed(scale, bits)]


def pictures(results: Results) -> list[Picture]:
    """Draw all of them over the number of bits."""
    scale = results.scale
    k, at = scale.images.k, pruned(scale)[0].params["at"]
    figure, axes = new_figure(7.4, 4.2)
    lines = Lines(axes[0, 0])
    first, best = (stored_arrays(results, pruned(scale), name) for name in ("first", "chosen"))
    if len(best):
        lines.draw(at, best, "SDH", "chosen from a pool", marker="o", ms=3)
        lines.draw(at, first, "ILHt", "first bits of it", marker="o", ms=3)
    mixes = np.array([over_seeds(results, mixed(scale, bits), bits, k) for bits in scale.bits]).T
    lines.draw(scale.bits, mixes, "ITQ", "half ILHt, half ITQ", marker="o", ms=3)
    margins = stored_arrays(results, asymmetric_search.cells(scale), "asymmetric")
    if len(margins):
        lines.draw(scale.compared_bits, margins, "KSHcut", "asymmetric", marker="o", ms=3, ls="--")
    lines.panel.set(xlabel="number of bits b", ylabel=f"precision@{k}")
    lines.label()
    means = zip(best.mean(axis=0), first.mean(axis=0), at, strict=True) if len(best) else ()
    shown = ", ".join(f"{number(high)} against {number(low)} at {bits}" for high, low, bits in means)
    caption = (
        f"{scale.images.title}. Bits chosen greedily from a pool of {scale.max_bits} ILHt bits on held-out training "
        f"points, against the first bits of the same pool, {len(_seeds(scale))} seeds: {shown} bits. Mixed models hold "
        "half of their bits for ILHt and half for ITQ; what they are good for are classes that training never saw "
        "(above). Asymmetric search keeps the query's margins."
    )
    paper = "Not in the paper, which names pruning a large ensemble as future work."
    return [Picture("Pruned, mixed, asymmetric", figure, caption, paper)]
