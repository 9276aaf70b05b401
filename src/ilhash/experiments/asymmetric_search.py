"""Beyond the paper: the query keeps its margins, the base stays binary."""

from __future__ import annotations

import numpy as np

from ilhash.experiments._build import ilh, settings_of
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import Picture, band, colour, label_ends, new_figure, number

__all__ = ["EXPERIMENT", "asymmetric"]


def asymmetric(scale: Scale, seed: int) -> Cell:
    """Return the cell that searches the same codes in both ways."""
    at = list(scale.compared_bits)
    params = {"data": "images", "method": "ILH", "settings": settings_of(scale), "bits": at[-1], "at": at}
    return Cell("asymmetric", params, seed, cost=2.0 * ilh(scale, "images", seed).cost)


def _cells(scale: Scale) -> list[Cell]:
    return [asymmetric(scale, seed) for seed in scale.seeds]


def _pictures(results: Results) -> list[Picture]:
    scale = results.scale
    found = [one for one in (results.read(asymmetric(scale, seed)) for seed in scale.seeds) if one is not None]
    figure, axes = new_figure(6, 3.6)
    panel = axes[0, 0]
    plain, weighted = (np.array([one.arrays[name] for one in found]) for name in ("plain", "asymmetric"))
    ends = [
        ("Hamming", band(panel, scale.compared_bits, plain, "ILHt", marker="o", ms=3, alpha=0.6), colour("ILHt")),
        ("asymmetric", band(panel, scale.compared_bits, weighted, "ILHt", marker="o", ms=3), colour("ILHt")),
    ]
    panel.set(xlabel="number of bits b", ylabel=f"precision@{scale.images.k}")
    panel.set_xticks(scale.compared_bits)
    label_ends(panel, ends)
    gains = ", ".join(
        f"{number(float(gain))} at {bits}"
        for gain, bits in zip((weighted - plain).mean(axis=0), scale.compared_bits, strict=True)
    )
    caption = f"The same ILHt codes on {scale.images.title} searched with the query's margins: it gains {gains} bits."
    return [Picture("Asymmetric search", figure, caption, "Not in the paper.")]


EXPERIMENT = Experiment(
    name="asymmetric-search",
    title="Beyond the paper: the query keeps its margins",
    shows="asymmetric against Hamming search on the same codes",
    parts=("images",),
    cells=_cells,
    pictures=_pictures,
)
