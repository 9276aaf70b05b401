"""Curves of a retrieval: over k, recall, radius, and over the number of bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ilhash.plots._style import figure_class

if TYPE_CHECKING:
    from ilhash.evaluation import Histograms


def bits_curve(lines: Mapping[str, Sequence[float] | NDArray[Any]], chosen: int, title: str) -> Any:
    """Draw precision over the number of bits, with the chosen number marked."""
    figure = figure_class()(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, values in lines.items():
        (drawn,) = axes.plot(np.arange(1, len(values) + 1), values, label=name)
        axes.plot(chosen, values[chosen - 1], "o", color=drawn.get_color())
        text = f"{chosen} bits: {values[chosen - 1]:.3f}"
        axes.annotate(text, (chosen, values[chosen - 1]), (-6, -16), textcoords="offset points", ha="right")
    axes.axvline(chosen, color="0.6", lw=1, ls="--")
    axes.set(xlabel="bits", ylabel="precision", title=title, xlim=(0, None))
    if len(lines) > 1:
        axes.legend(frameon=False, loc="lower right")
    return figure


def curves(found: Histograms, title: str) -> Any:
    """Draw precision over k with its bounds, precision over recall, and what a radius brings."""
    figure = figure_class()(figsize=(13, 4), layout="constrained")
    over_k, over_recall, over_radius = figure.subplots(1, 3)
    expected, worst, best = (found.curves(ties) for ties in ("expected", "pessimistic", "optimistic"))
    k = np.unique(np.geomspace(1, found.n_base, 400).astype(int))
    over_k.fill_between(k, worst.precision[k - 1], best.precision[k - 1], alpha=0.25, lw=0)
    over_k.plot(k, expected.precision[k - 1])
    bounds = "expected, between the bounds of ties"
    over_k.set(xscale="log", xlabel="k", ylabel="precision@k", title=bounds, ylim=(0, 1))
    over_recall.plot(expected.recall[k - 1], expected.precision[k - 1])
    over_recall.set(xlabel="recall", ylabel="precision", title="precision over recall", xlim=(0, 1), ylim=(0, 1))
    radii = np.arange(found.n_bits + 1)
    with_relevant = found.n_relevant > 0
    over_radius.plot(radii, found.precision_within(radii).mean(axis=0), label="precision (empty = 0)")
    if with_relevant.any():
        over_radius.plot(radii, found.recall_within(radii)[with_relevant].mean(axis=0), label="recall")
    over_radius.plot(radii, found.empty_within(radii).mean(axis=0), label="share of empty results", ls="--")
    over_radius.set(xlabel="Hamming radius", title="within a radius", ylim=(0, 1))
    over_radius.legend(frameon=False)
    figure.suptitle(title)
    return figure
