"""All methods on some data, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ilhash.plots._style import figure_class

SUPERVISED, UNSUPERVISED, OURS = "#1f6fb4", "#9a9a9a", "#d1495b"


def comparison(found: Sequence[Any], tables: Sequence[str]) -> Any:
    """Draw one panel per Comparison and kind of functions: methods from best to worst, a dot per number of bits."""
    sizes = [max(len(one.best_first(kind, one.settings.bits[-1])) for one in found) for kind in tables]
    figure = figure_class()(figsize=(6.5 * len(found), 0.26 * sum(sizes) + 1.6), layout="constrained")
    panels = figure.subplots(len(tables), len(found), squeeze=False, height_ratios=sizes)
    for line, kind in zip(panels, tables, strict=True):
        for axes, one in zip(line, found, strict=True):
            _panel(axes, one, kind)
    return figure


def _panel(axes: Any, found: Any, kind: str) -> None:
    longest = max(found.settings.bits)
    rows = [row for row in reversed(found.best_first(kind, longest)) if row.precision is not None]
    places = {row.name: place for place, row in enumerate(rows)}
    for bits in sorted(found.settings.bits):
        drawn = [row for row in found.best_first(kind, bits) if row.precision is not None and row.name in places]
        x, y = [row.precision for row in drawn], [places[row.name] for row in drawn]
        colours = [_colour(row) for row in drawn]
        axes.scatter(x, y, s=34, facecolors=colours if bits == longest else "none", edgecolors=colours, zorder=3)
    for row in rows:
        axes.annotate(f"{row.seconds:.2g} s", (1.01, places[row.name]), xycoords=("axes fraction", "data"), fontsize=7)
    axes.axvline(found.euclidean, color="0.6", ls=":", lw=1)
    axes.annotate("vectors", (found.euclidean, len(rows) - 0.4), fontsize=7, color="0.4", ha="center")
    axes.set_yticks(list(places.values()), [method_title(row) for row in rows], fontsize=8)
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(_colour(row))
    axes.grid(axis="y", color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    others = ", ".join(str(bits) for bits in sorted(found.settings.bits)[:-1])
    title = f"{found.data}: {'linear' if kind == 'linear' else 'kernel and other'} functions"
    label = f"precision@{found.settings.k}; {longest} bits" + (f" (hollow: {others})" if others else "")
    axes.set(xlim=(0, 1), ylim=(-0.7, len(rows) - 0.2), xlabel=label, title=title)


def method_title(row: Any) -> str:
    """Return the name of a method in a comparison, with its number of bits where that is not the others'."""
    return str(row.name) if row.own_bits == row.bits else f"{row.name} ({row.own_bits} bits)"


def _colour(row: Any) -> str:
    if row.name.startswith("ILH"):
        return OURS
    return SUPERVISED if row.supervised else UNSUPERVISED
