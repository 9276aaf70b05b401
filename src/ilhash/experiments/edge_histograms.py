"""The appendix on the paper's own kind of features, MPEG-7 edge histograms: as printed, and with starts from data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments.all_methods import draw_comparison, not_drawn
from ilhash.experiments.engine import Cell, Results, Scale, ilh, mean_of, method, over_seeds, standard_bits
from ilhash.experiments.precision_by_bits import draw_nested, nested
from ilhash.experiments.report.drawing import Lines, Picture, bits_axis, new_figure, number
from ilhash.experiments.unsupervised import COMPARED, unlabeled

TITLE = "The appendix on edge histograms"
SHOWS = "no labels, the paper's own kind of features: as printed and with starts from the data, beside word vectors"
DATASET = "edges"
DATASETS = ("words", DATASET)
FOLLOWING = "ILHt, start from the data"
SHOWN = ("ILHt", FOLLOWING, "LSH", "ITQ")


def over_bits(scale: Scale, dataset: str, name: str, bits: int) -> list[Cell]:
    """Return the models of a method at a number of bits: over seeds where one long model serves all numbers."""
    if name == "ILHt":
        return [ilh(scale, dataset, seed) for seed in scale.seeds_of(dataset)]
    if name == FOLLOWING:  # the library's default without labels
        at, own = standard_bits(scale), {"diversity": "t", "n_train": scale.n_train, "start": "auto"}
        return [method(scale, dataset, seed, "ILH", at[-1], at, **own) for seed in scale.seeds_of(dataset)]
    return nested(scale, dataset, "LSH") if name == "LSH" else [unlabeled(scale, name, bits, dataset)]


def _compared(scale: Scale, bits: int) -> dict[str, Cell]:
    return {name: unlabeled(scale, name, bits, DATASET) for name in COMPARED}


def cells(scale: Scale) -> list[Cell]:
    """Return all methods on edge histograms, and what is shown over bits on both datasets."""
    found = [cell for bits in scale.compared_bits for cell in _compared(scale, bits).values()]
    for dataset in DATASETS:
        found += nested(scale, dataset, "TPCA")
        found += [
            cell for bits in scale.compared_bits for name in SHOWN for cell in over_bits(scale, dataset, name, bits)
        ]
    return found


def precision(results: Results, dataset: str, name: str, bits: int) -> float:
    """Return the mean over seeds at the headline k; NaN where it is missing or not defined."""
    models = over_bits(results.scale, dataset, name, bits)
    return mean_of(over_seeds(results, models, bits, results.scale.data(dataset).k))


def _panel(results: Results, panel: Any, dataset: str) -> None:
    scale, lines = results.scale, Lines(panel)
    bits = scale.compared_bits
    draw_nested(results, lines, over_bits(scale, dataset, "ILHt", bits[0]), "ILHt", "ILHt as printed", ls=":")
    draw_nested(results, lines, over_bits(scale, dataset, FOLLOWING, bits[0]), "ILHt", "ILHt from the data")
    draw_nested(results, lines, over_bits(scale, dataset, "LSH", bits[0]), "LSH")
    draw_nested(results, lines, nested(scale, dataset, "TPCA"), "TPCA", "tPCA")
    itq: NDArray[np.float64] = np.array([precision(results, dataset, "ITQ", b) for b in bits])
    defined = np.isfinite(itq)
    if defined.any():
        lines.draw(np.array(bits)[defined].tolist(), itq[None, defined], "ITQ", marker="o", ms=3)
    bits_axis(panel, scale.max_bits)
    panel.set(title=scale.data(dataset).title, ylabel=f"precision@{scale.data(dataset).k:,}")
    if lines.ends:
        lines.label()


def _bits(results: Results) -> Picture:
    scale = results.scale
    figure, axes = new_figure(12, 4.4, 1, 2)
    measured = []
    for panel, dataset in zip(axes[0], DATASETS, strict=True):
        _panel(results, panel, dataset)
        for bits in scale.compared_bits[1:]:
            values = {name: precision(results, dataset, name, bits) for name in SHOWN}
            shown = ", ".join(f"{name} {number(value)}" for name, value in values.items() if np.isfinite(value))
            measured.append(f"{scale.data(dataset).title}, b = {bits}: {shown or 'not computed'}")
    caption = (
        f"The appendix as printed: {scale.neighbours} nearest neighbours within the training set of each bit are "
        f"similar, as many random others dissimilar, z starts at random; and the library's default without labels, "
        f"whose z starts from the data. N = {scale.n_train:,}. Bands are one standard deviation over seeds. "
        f"{'; '.join(measured)}."
    )
    paper = "On a million Flickr images with edge histograms LSH is high, and ILHt above it."
    return Picture("Without labels: words and edge histograms", figure, caption, paper)


def _comparison(results: Results) -> Picture:
    scale = results.scale
    of_bits = {bits: _compared(scale, bits) for bits in scale.compared_bits}
    figure, absent = draw_comparison(results, DATASET, of_bits)
    caption = (
        f"Precision over k and over recall without labels on {scale.edges.title}, {scale.edges.n_base:,} base points; "
        f"ILHt as printed.{not_drawn(absent)}"
    )
    paper = "ILHt beats all others or is comparable to the best, particularly as b grows."
    return Picture("Without labels: all methods on edge histograms", figure, caption, paper)


def pictures(results: Results) -> list[Picture]:
    """Draw precision over bits, and all methods."""
    return [_bits(results), _comparison(results)]
