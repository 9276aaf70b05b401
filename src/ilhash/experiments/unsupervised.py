"""Figure 5, the appendix: no labels; nearest neighbours are the supervision and the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.experiments._build import at_bits, ilh, method, standard_bits
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import Picture, band, colour, figures, label_ends, new_figure, number
from ilhash.experiments.all_methods import draw_comparison, opq, opq_precision
from ilhash.experiments.feature_fraction import LETTERS, best_fraction, draw_fractions, fraction_cells, fractions_of
from ilhash.experiments.orthogonality import dot_products, draw, measures
from ilhash.experiments.precision_by_bits import independent_curves, nested, orders
from ilhash.experiments.training_sets import SAMPLINGS, draw_samplings, sampled

__all__ = ["COMPARED", "EXPERIMENT", "neighbour_kshcut", "scores", "unlabelled"]

PART = "words"
COMPARED = ("ILHt", "KSHcut", "LSH", "Sign", "TPCA", "BaggedTPCA", "ITQ", "SH", "BA", "AGH", "OrthogonalProjection")


def neighbour_kshcut(scale: Scale, bits: int, seed: int = 0) -> Cell:
    """Return KSHcut with neighbours for labels."""
    own: dict[str, Any] = {"n_train": scale.n_train, "n_similar": scale.neighbours, "n_dissimilar": scale.neighbours}
    return method(scale, PART, seed, "NeighbourKSHcut", bits, **own)


def unlabelled(scale: Scale, name: str, bits: int) -> Cell:
    """Return a method at a number of bits; one that cannot give so many is shown as not defined."""
    if name == "ILHt":
        return ilh(scale, PART, 0)
    if name == "KSHcut":
        return neighbour_kshcut(scale, bits)
    if name == "LSH":
        at = standard_bits(scale)
        return method(scale, PART, 0, "LSH", at[-1], at)
    own: dict[str, Any] = {"n_train": scale.n_train}
    if name == "AGH" and scale.n_train < 1_000:
        own["n_anchors"] = scale.n_centers
    return method(scale, PART, 0, name, bits, **own)


def _cells(scale: Scale) -> list[Cell]:
    found = [
        cell for name in LETTERS for f in fractions_of(scale, PART) for cell in fraction_cells(scale, PART, name, f)
    ]
    found += [sampled(scale, PART, sampling, seed) for sampling in SAMPLINGS for seed in _seeds(scale)]
    found += [orders(scale, PART, "ILH"), orders(scale, PART, "LSH"), dot_products(scale, PART)]
    found += nested(scale, PART, "TPCA") + [neighbour_kshcut(scale, bits) for bits in scale.coupled_grid]
    found += nested(scale, PART, "BaggedTPCA", member_bits=16, n_train=scale.n_train)[:1]
    for bits in scale.compared_bits:
        found += [unlabelled(scale, name, bits) for name in COMPARED]
        found.append(opq(scale, PART, bits))
    return found


def _seeds(scale: Scale) -> range:
    return scale.seeds_of(PART)


def scores(results: Results, bits: int) -> dict[str, float]:
    """Return precision at the headline k by method, best first; those not defined are left out."""
    k = results.scale.words.k
    found = {name: at_bits(results, unlabelled(results.scale, name, bits), bits, k) for name in COMPARED}
    defined = {name: score for name, score in found.items() if np.isfinite(score)}
    return dict(sorted(defined.items(), key=lambda item: -item[1]))


def _bits_panel(results: Results, panel: Any) -> None:
    scale, ends = results.scale, []
    k = scale.words.k
    for method_name, name in (("ILH", "ILHt"), ("LSH", "LSH")):
        outcome = results.read(orders(scale, PART, method_name))
        if outcome is not None:
            for row in outcome.arrays["precision"]:
                panel.plot(scale.grid, row, color=colour(name), lw=0.8, alpha=0.8)
            ends.append((name, float(outcome.arrays["precision"][:, -1].mean()), colour(name)))
    kshcut = [at_bits(results, neighbour_kshcut(scale, bits), bits, k) for bits in scale.coupled_grid]
    ends.append(("KSHcut", band(panel, scale.coupled_grid, kshcut, "KSHcut"), colour("KSHcut")))
    for method_name, own in (("TPCA", {}), ("BaggedTPCA", {"member_bits": 16, "n_train": scale.n_train})):
        cells = nested(scale, PART, method_name, **own)[:1]
        values = independent_curves(results, cells, k)
        if len(values):
            label = "tPCA" if method_name == "TPCA" else "bagged tPCA"
            ends.append((label, band(panel, cells[0].params["at"], values, method_name), colour(method_name)))
    panel.set_xscale("log", base=2)
    ticks = [bits for bits in (1, 4, 16, 64, 256) if bits <= scale.max_bits]
    panel.set_xticks(ticks, [str(bits) for bits in ticks])
    panel.set(xlabel="number of bits b", title="incremental", ylabel=f"precision@{k:,}")
    label_ends(panel, ends)


def _fractions_told(results: Results) -> str:
    bits, told = results.scale.bits[-1], []
    for name in LETTERS:
        share, precision = best_fraction(results, PART, name, bits)
        told.append(f"{name} is best with {figures(share)} of the features ({number(precision)})")
    return f"With {bits} bits {' and '.join(told)}"


def _top(results: Results) -> Picture:
    scale = results.scale
    figure, axes = new_figure(13, 3.7, 1, 4)
    for panel, name in zip(axes[0], LETTERS, strict=False):
        draw_fractions(results, panel, PART, name)
        panel.set_title(name)
        label_ends(panel, panel.ends)
    draw_samplings(results, axes[0, 2], PART)
    axes[0, 2].set_title("training sets")
    _bits_panel(results, axes[0, 3])
    caption = (
        f"{scale.words.title}, {scale.words.n_base:,} base points; {scale.neighbours} nearest neighbours within the "
        f"training set of each bit are similar, as many random others dissimilar; relevant are the {scale.words.k:,} "
        "nearest of the query. From left: features in ILHf and ILHitf, ways to draw training sets, precision as bits "
        f"are added. {_fractions_told(results)}."
    )
    paper = (
        "On a million Flickr images: as on labelled data, except that LSH is high, above KSHcut, and ILHt above LSH."
    )
    return Picture("Without labels: features, training sets, bits", figure, caption, paper)


def _middle(results: Results) -> list[Picture]:
    outcome = results.read(dot_products(results.scale, PART))
    if outcome is None:
        return []
    codes, weights = measures(results, PART, "codes"), measures(results, PART, "weights")
    table = np.abs(outcome.arrays["codes"])
    agreement = (table.sum() - np.trace(table)) / (table.size - len(table))
    caption = (
        f"ILHt on {results.scale.words.title}: the measure (mean squared dot product) goes from {number(codes[0])} to "
        f"{number(codes[-1])} for codes and from {number(weights[0])} to {number(weights[-1])} for weights. Two bits "
        f"have a dot product of {number(float(agreement))} on average, up to sign; near 1 they cut the neighbour "
        "graph in the same place whatever points they are trained on, and more bits say nothing new."
    )
    paper = "As on labelled data: wide distributions, far from orthogonal."
    return [Picture("Without labels: orthogonality", draw(results, PART, outcome), caption, paper)]


def _bottom(results: Results) -> Picture:
    scale = results.scale
    of_bits = {
        bits: {name: unlabelled(scale, name, bits) for name in COMPARED} | {"OPQ": opq(scale, PART, bits)}
        for bits in scale.compared_bits
    }
    figure, absent = draw_comparison(results, PART, of_bits)
    told = "; ".join(
        f"b = {bits}: "
        + ", ".join(f"{name} {number(score)}" for name, score in list(scores(results, bits).items())[:3])
        + f" (OPQ, no binary code, {number(opq_precision(results, PART, bits))})"
        for bits in scale.compared_bits
    )
    gone = f" Not drawn: {'; '.join(absent)}." if absent else ""
    caption = f"Precision over k and over recall without labels. Best three binary codes: {told}.{gone}"
    paper = "ILHt beats all others or is comparable to the best, particularly as b grows."
    return Picture("Without labels: all methods", figure, caption, paper)


def _pictures(results: Results) -> list[Picture]:
    return [_top(results), *_middle(results), _bottom(results)]


EXPERIMENT = Experiment(
    name="unsupervised",
    title="The appendix: no labels",
    shows="all panels of the appendix's figure on word vectors",
    parts=(PART,),
    cells=_cells,
    pictures=_pictures,
)
