"""Figure 5, the appendix: no labels; nearest neighbours are the supervision and the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.experiments.all_methods import draw_comparison, not_drawn, opq, opq_precision
from ilhash.experiments.engine import Cell, Results, Scale, at_bits, ilh, method
from ilhash.experiments.feature_fraction import LETTERS, best_fraction, draw_fractions, fraction_cells
from ilhash.experiments.orthogonality import dot_products, draw, measures
from ilhash.experiments.precision_by_bits import bagged, coupled_curves, draw_nested, draw_orders, nested, orders
from ilhash.experiments.report.drawing import Lines, Picture, bits_axis, colour, figures, new_figure, number
from ilhash.experiments.training_sets import SAMPLINGS, draw_samplings, sampled

TITLE = "The appendix: no labels"
SHOWS = "all panels of the appendix's figure on word vectors"
DATASET = "words"
DATASETS = (DATASET,)
COMPARED = ("ILHt", "KSHcut", "LSH", "Sign", "TPCA", "BaggedTPCA", "ITQ", "SH", "BA", "AGH", "OrthogonalProjection")


def unlabeled(scale: Scale, name: str, bits: int, dataset: str = DATASET) -> Cell:
    """Return a method at a number of bits; one that cannot give so many is shown as not defined."""
    if name == "ILHt":
        return ilh(scale, dataset, 0)
    if name == "LSH":
        return nested(scale, dataset, "LSH")[0]
    own: dict[str, Any] = {"n_train": scale.n_train}
    if name == "KSHcut":  # with neighbours for labels
        own |= {"n_similar": scale.neighbours, "n_dissimilar": scale.neighbours}
        name = "NeighbourKSHcut"
    if name == "AGH" and scale.n_train < 1_000:
        own["n_anchors"] = scale.n_centers
    return method(scale, dataset, 0, name, bits, **own)


def _coupled(scale: Scale, dataset: str, bits: int) -> list[Cell]:
    return [unlabeled(scale, "KSHcut", bits)]


def cells(scale: Scale) -> list[Cell]:
    """Return the models of all panels."""
    found = fraction_cells(scale, DATASET)
    found += [cell for sampling in SAMPLINGS for cell in sampled(scale, DATASET, sampling)]
    found += [orders(scale, DATASET, "ILH"), orders(scale, DATASET, "LSH"), dot_products(scale, DATASET)]
    found += nested(scale, DATASET, "TPCA") + [unlabeled(scale, "KSHcut", bits) for bits in scale.coupled_grid]
    found += bagged(scale, DATASET, 16)
    return found + [cell for bits in scale.compared_bits for cell in _compared(scale, bits).values()]


def _compared(scale: Scale, bits: int) -> dict[str, Cell]:
    return {name: unlabeled(scale, name, bits) for name in COMPARED} | {"OPQ": opq(scale, DATASET, bits)}


def scores(results: Results, bits: int) -> dict[str, float]:
    """Return precision at the headline k by method, best first; those not defined are left out."""
    k = results.scale.words.k
    found = {name: at_bits(results, unlabeled(results.scale, name, bits), bits, k) for name in COMPARED}
    defined = {name: score for name, score in found.items() if np.isfinite(score)}
    return dict(sorted(defined.items(), key=lambda item: -item[1]))


def _bits_panel(results: Results, panel: Any) -> None:
    scale, lines = results.scale, Lines(panel)
    for name in ("ILHt", "LSH"):
        end = draw_orders(results, panel, DATASET, name, lw=0.8, alpha=0.8)
        lines.ends.append((name, end, colour(name)))
    lines.draw(scale.coupled_grid, coupled_curves(results, DATASET, _coupled), "KSHcut")
    draw_nested(results, lines, nested(scale, DATASET, "TPCA"), "TPCA", "tPCA")
    draw_nested(results, lines, bagged(scale, DATASET, 16), "BaggedTPCA", "bagged tPCA")
    bits_axis(panel, scale.max_bits, octaves=2)
    panel.set(title="incremental", ylabel=f"precision@{scale.words.k:,}")
    lines.label()


def _best_fractions(results: Results) -> str:
    bits, best = results.scale.bits[-1], []
    for name in LETTERS:
        share, precision = best_fraction(results, DATASET, name, bits)
        best.append(f"{name} is best with {figures(share)} of the features ({number(precision)})")
    return f"With {bits} bits {' and '.join(best)}"


def _top(results: Results) -> Picture:
    scale = results.scale
    figure, axes = new_figure(13, 3.7, 1, 4)
    for panel, name in zip(axes[0], LETTERS, strict=False):
        draw_fractions(results, panel, DATASET, name).label()
        panel.set_title(name)
    draw_samplings(results, axes[0, 2], DATASET)
    axes[0, 2].set_title("training sets")
    _bits_panel(results, axes[0, 3])
    caption = (
        f"{scale.words.title}, {scale.words.n_base:,} base points; {scale.neighbours} nearest neighbours within the "
        f"training set of each bit are similar, as many random others dissimilar; relevant are the {scale.words.k:,} "
        "nearest of the query. From left: features in ILHf and ILHitf, ways to draw training sets, precision as bits "
        f"are added. {_best_fractions(results)}."
    )
    paper = (
        "On a million Flickr images: as on labelled data, except that LSH is high, above KSHcut, and ILHt above LSH."
    )
    return Picture("Without labels: features, training sets, bits", figure, caption, paper)


def _middle(results: Results) -> list[Picture]:
    outcome = results.read(dot_products(results.scale, DATASET))
    if outcome is None:
        return []
    codes, weights = (measures(results, DATASET, kind) for kind in ("codes", "weights"))
    table = np.abs(outcome.arrays["codes"])
    agreement = (table.sum() - np.trace(table)) / (table.size - len(table))
    caption = (
        f"ILHt on {results.scale.words.title}: the measure (mean squared dot product) goes from {number(codes[0])} to "
        f"{number(codes[-1])} for codes and from {number(weights[0])} to {number(weights[-1])} for weights. Two bits "
        f"have a dot product of {number(agreement)} on average, up to sign; near 1 they cut the neighbour graph in the "
        "same place whatever points they are trained on, and more bits say nothing new."
    )
    paper = "As on labelled data: wide distributions, far from orthogonal."
    return [Picture("Without labels: orthogonality", draw(results, DATASET, outcome), caption, paper)]


def _bottom(results: Results) -> Picture:
    all_bits = results.scale.compared_bits
    figure, absent = draw_comparison(results, DATASET, {bits: _compared(results.scale, bits) for bits in all_bits})
    best = "; ".join(
        f"b = {bits}: "
        + ", ".join(f"{name} {number(score)}" for name, score in list(scores(results, bits).items())[:3])
        + f" (OPQ, no binary code, {number(opq_precision(results, DATASET, bits))})"
        for bits in all_bits
    )
    caption = f"Precision over k and over recall without labels. Best three binary codes: {best}.{not_drawn(absent)}"
    paper = "ILHt beats all others or is comparable to the best, particularly as b grows."
    return Picture("Without labels: all methods", figure, caption, paper)


def pictures(results: Results) -> list[Picture]:
    """Draw the three rows of the appendix's figure."""
    return [_top(results), *_middle(results), _bottom(results)]
