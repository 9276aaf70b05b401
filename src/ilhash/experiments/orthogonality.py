"""Figure 3: how far codes and weights are from orthogonal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.evaluation import compare_with_random
from ilhash.evaluation import orthogonality as measure
from ilhash.experiments.engine import Cell, Outcome, Results, Scale, ilh, settings_of
from ilhash.experiments.report.drawing import FAINT, INK, Picture, new_figure, number

TITLE = "Are the codes orthogonal?"
SHOWS = "dot products between bits and between weights, with a random control (figure 3)"
DATASETS = ("images", "digits")
KINDS = {"codes": "codes $C_Z$", "weights": "weights $C_W$"}


def dot_products(scale: Scale, dataset: str) -> Cell:
    """Return the cell of both matrices for the longest model that is compared."""
    bits = scale.compared_bits[-1]
    params = {"data": dataset, "method": "ILH", "settings": settings_of(scale), "bits": bits}
    return Cell("orthogonality", params, 0, cost=ilh(scale, dataset, 0).cost * 0.8)


def cells(scale: Scale) -> list[Cell]:
    """Return both matrices on both datasets."""
    return [dot_products(scale, dataset) for dataset in DATASETS]


def measures(results: Results, dataset: str, kind: str) -> list[float]:
    """Return the paper's measure at each compared number of bits; empty where it was not computed."""
    outcome = results.read(dot_products(results.scale, dataset))
    if outcome is None:
        return []
    table = outcome.arrays[kind]
    return [measure(_ones(table[:bits, :bits])) for bits in results.scale.compared_bits]


def dimension(outcome: Outcome, kind: str) -> int:
    """Return the dimension of the vectors whose dot products these are; constant features do not count."""
    return int(outcome.numbers["n_points" if kind == "codes" else "varying"])


def _ones(table: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.clip(table, -1.0, 1.0)
    np.fill_diagonal(out, 1.0)
    return out


def draw(results: Results, dataset: str, outcome: Outcome) -> Any:
    """Draw the matrices at every number of bits, and histograms of their entries with the random control."""
    scale = results.scale
    figure, axes = new_figure(11.5, 4.8, 2, len(scale.compared_bits) + 1)
    for row, (kind, name) in enumerate(KINDS.items()):
        table = outcome.arrays[kind]
        for column, bits in enumerate(scale.compared_bits):
            panel = axes[row, column]
            shown = panel.imshow(table[:bits, :bits], cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
            panel.set_xticks([])
            panel.set_yticks([])
            panel.grid(visible=False)
            value = number(measure(_ones(table[:bits, :bits])))
            panel.set_title(f"b = {bits}, measure {value}")
            if column == 0:
                panel.set_ylabel(name)
        bar = figure.colorbar(shown, ax=axes[row, len(scale.compared_bits) - 1], shrink=0.85)
        bar.ax.tick_params(colors=INK, labelsize=7)
        bar.outline.set_edgecolor(FAINT)
        _histogram(axes[row, -1], table, dimension(outcome, kind), kind, scale.compared_bits)
    return figure


def _histogram(panel: Any, table: NDArray[np.float64], size: int, kind: str, all_bits: tuple[int, ...]) -> None:
    for place, bits in enumerate(all_bits):
        found = compare_with_random(_ones(table[:bits, :bits]), size, kind, bins=60)
        middles = (found.edges[1:] + found.edges[:-1]) / 2
        strength = 0.3 + 0.7 * (place + 1) / len(all_bits)
        panel.plot(middles, found.counts / found.counts.sum(), color="#d62f2f", lw=1.3, alpha=strength)
        if bits == all_bits[-1]:
            random = found.random_counts / found.random_counts.sum()
            panel.fill_between(middles, random, color=FAINT, alpha=0.35, lw=0, step="mid")
            top = 1.15 * max(float((found.counts / found.counts.sum()).max()), 0.02)
            panel.set_ylim(0, max(top, min(float(random.max()), 2 * top)))
    panel.text(0.02, 0.95, "grey: random vectors", transform=panel.transAxes, fontsize=7, color=FAINT, va="top")
    panel.set(xlabel=f"entries of {KINDS[kind]}", xlim=(-1, 1))


def pictures(results: Results) -> list[Picture]:
    """Draw a figure for each dataset."""
    found = []
    for dataset in DATASETS:
        outcome = results.read(dot_products(results.scale, dataset))
        if outcome is None:
            continue
        title = results.scale.data(dataset).title
        codes, weights = measures(results, dataset, "codes"), measures(results, dataset, "weights")
        caption = (
            f"ILHt on {title}: normalised dot products between bits, of their values on "
            f"{outcome.numbers['n_points']:,} points and of their weights. The measure is the mean square off the "
            f"diagonal, 0 when orthogonal. From b = {results.scale.compared_bits[0]} to "
            f"{results.scale.compared_bits[-1]}: codes {number(codes[0])} to {number(codes[-1])}, weights "
            f"{number(weights[0])} to {number(weights[-1])}; random vectors of these dimensions "
            f"{1 / dimension(outcome, 'codes'):.1e} and {1 / dimension(outcome, 'weights'):.1e}."
        )
        paper = (
            "Dot products are widely spread, far from those of random vectors, which are nearly orthogonal; the "
            "weights have some tendency to orthogonality as b grows: orthogonality is not needed."
        )
        found.append(Picture(f"Orthogonality on {title}", draw(results, dataset, outcome), caption, paper))
    return found
