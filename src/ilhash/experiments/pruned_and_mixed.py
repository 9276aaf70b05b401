"""Beyond the paper: bits chosen from a larger pool, families side by side, and margins, beside ILHt's first bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments._build import ilh, mean_of, method, over_seeds, settings_of
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import Picture, band, colour, label_ends, new_figure, number
from ilhash.experiments.asymmetric_search import asymmetric

__all__ = ["EXPERIMENT", "mixed", "pruned"]

SEEDS = 2
LONGEST = 64  # bits that are chosen at most: greedy choice is for short codes


def pruned(scale: Scale, seed: int) -> Cell:
    """Return bits chosen greedily from a pool on held-out training points, measured at each number of bits."""
    at = [bits for bits in (8, 16, 24, 32, 48, 64) if bits <= min(LONGEST, scale.max_bits // 2)]
    pool = scale.max_bits
    params = {"data": "images", "settings": settings_of(scale), "pool": pool, "bits": at[-1], "at": at}
    return Cell("pruned", params, seed, cost=1.2 * ilh(scale, "images", seed).cost)


def mixed(scale: Scale, bits: int, seed: int) -> Cell:
    """Return a model of ILHt and ITQ, half of the bits each."""
    parts = {"ILH": settings_of(scale), "ITQ": {"n_train": scale.n_train}}
    return method(scale, "images", seed, "Mix", bits, parts=parts)


def _seeds(scale: Scale) -> range:
    return range(min(SEEDS, scale.n_seeds))


def _cells(scale: Scale) -> list[Cell]:
    found = [pruned(scale, seed) for seed in _seeds(scale)] + [asymmetric(scale, seed) for seed in scale.seeds]
    return found + [mixed(scale, bits, seed) for bits in scale.bits for seed in _seeds(scale)]


def _chosen(results: Results, name: str) -> NDArray[np.float64]:
    found = [results.read(pruned(results.scale, seed)) for seed in _seeds(results.scale)]
    return np.array([one.arrays[name] for one in found if one is not None])


def _pictures(results: Results) -> list[Picture]:
    scale = results.scale
    k = scale.images.k
    figure, axes = new_figure(7.4, 4.2)
    panel, ends = axes[0, 0], []
    at = pruned(scale, 0).params["at"]
    first, best = _chosen(results, "first"), _chosen(results, "chosen")
    if len(best):
        ends.append(("chosen from a pool", band(panel, at, best, "SDH", marker="o", ms=3), colour("SDH")))
        ends.append(("first bits of it", band(panel, at, first, "ILHt", marker="o", ms=3), colour("ILHt")))
    mixes = np.array([over_seeds(results, [mixed(scale, b, s) for s in _seeds(scale)], b, k) for b in scale.bits]).T
    ends.append(("half ILHt, half ITQ", band(panel, scale.bits, mixes, "ITQ", marker="o", ms=3), colour("ITQ")))
    margins = [results.read(asymmetric(scale, seed)) for seed in scale.seeds]
    gains = np.array([one.arrays["asymmetric"] for one in margins if one is not None])
    if len(gains):
        end = band(panel, scale.compared_bits, gains, "KSHcut", marker="o", ms=3, ls="--")
        ends.append(("asymmetric", end, colour("KSHcut")))
    panel.set(xlabel="number of bits b", ylabel=f"precision@{k}")
    label_ends(panel, ends)
    told = ", ".join(
        f"{number(mean_of(best[:, place]))} against {number(mean_of(first[:, place]))} at {bits}"
        for place, bits in enumerate(at)
        if len(best)
    )
    caption = (
        f"{scale.images.title}. Bits chosen greedily from a pool of {scale.max_bits} ILHt bits on held-out training "
        f"points, against the first bits of the same pool, {len(_seeds(scale))} seeds: {told} bits. Mixed models hold "
        "half of their bits for ILHt and half for ITQ; what they are good for are classes that training never saw "
        "(above). Asymmetric search keeps the query's margins."
    )
    paper = "Not in the paper, which names pruning a large ensemble as future work."
    return [Picture("Pruned, mixed, asymmetric", figure, caption, paper)]


EXPERIMENT = Experiment(
    name="pruned-and-mixed",
    title="Beyond the paper: chosen bits and mixed families",
    shows="bits chosen from a pool, ILHt and ITQ side by side, and asymmetric search beside ILHt",
    parts=("images",),
    cells=_cells,
    pictures=_pictures,
)
