"""Beyond the paper: the query keeps its margins, the base stays binary."""

from __future__ import annotations

from ilhash.experiments.engine import Cell, Results, Scale, ilh, settings_of, stored_arrays
from ilhash.experiments.report.drawing import Lines, Picture, new_figure, number

TITLE = "Beyond the paper: the query keeps its margins"
SHOWS = "asymmetric against Hamming search on the same codes"
DATASETS = ("images",)


def cells(scale: Scale) -> list[Cell]:
    """Return the cells that search the same codes in both ways, over seeds."""
    at = list(scale.compared_bits)
    params = {"data": "images", "method": "ILH", "settings": settings_of(scale), "bits": at[-1], "at": at}
    return [Cell("asymmetric", params, seed, cost=2.0 * ilh(scale, "images", seed).cost) for seed in scale.seeds]


def pictures(results: Results) -> list[Picture]:
    """Draw both ways over the number of bits."""
    scale = results.scale
    figure, axes = new_figure(6, 3.6)
    lines = Lines(axes[0, 0])
    plain, weighted = (stored_arrays(results, cells(scale), name) for name in ("plain", "asymmetric"))
    lines.draw(scale.compared_bits, plain, "ILHt", "Hamming", marker="o", ms=3, alpha=0.6)
    lines.draw(scale.compared_bits, weighted, "ILHt", "asymmetric", marker="o", ms=3)
    lines.panel.set(xlabel="number of bits b", ylabel=f"precision@{scale.images.k}", xticks=scale.compared_bits)
    lines.label()
    gains = zip((weighted - plain).mean(axis=0), scale.compared_bits, strict=True)
    told = ", ".join(f"{number(gain)} at {bits}" for gain, bits in gains)
    caption = f"The same ILHt codes on {scale.images.title} searched with the query's margins: it gains {told} bits."
    return [Picture("Asymmetric search", figure, caption, "Not in the paper.")]
