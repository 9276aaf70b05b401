"""How figures look: one colour per method everywhere, labels at the lines, bands for errors, light and dark pages."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Picture", "band", "colour", "figures", "label_ends", "new_figure", "number", "svg"]

# Colours of a figure that the page decides: the text, what stands back, the grid, the paper beneath.
INK, FAINT, GRID, PAPER = "#1a2b3c", "#8a9bac", "#c9d8e7", "#fdfcfb"
_VARIABLES = {INK: "var(--ink)", FAINT: "var(--faint)", GRID: "var(--grid)", PAPER: "var(--paper)"}

# Chosen to be told apart on white and on near-black.
_COLOURS = {
    "ILHt": "#d62f2f",
    "ILHi": "#2f7ed6",
    "ILHf": "#2f9e57",
    "ILHitf": "#9657c9",
    "KSHcut": "#e08a1e",
    "KSHcut-ILHt": "#b5651d",
    "perturbed KSHcut": "#c7a252",
    "KSH": "#a8871b",
    "LSH": "#7d8894",
    "TPCA": "#14a3a8",
    "BaggedTPCA": "#5cb8b2",
    "ITQ": "#3d9be9",
    "CCAITQ": "#5a6fd8",
    "SH": "#98a83c",
    "STH": "#cf6aa7",
    "AGH": "#6f9c8b",
    "BA": "#7a68c9",
    "SPLH": "#b07d9b",
    "BRE": "#9c7a5b",
    "MLH": "#8a5f7d",
    "FastHash": "#4d8c2b",
    "SDH": "#e0559a",
    "class": "#4a9d9c",
    "OrthogonalProjection": "#8f8f4f",
    "Sign": "#a39aa0",
    "OPQ": "#c77b30",
    "Euclidean": "#808080",
    "disjoint": "#d62f2f",
    "random": "#e0759a",
    "bootstrap": "#5f7fbf",
    "scipy": "#8f6fb0",
    "pymaxflow": "#5f7fbf",
    "paper": "#808080",
}


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its words.

    Attributes
    ----------
    title : of the figure
    figure : of matplotlib
    caption : what one sees here, with numbers
    paper : what the paper's figure shows
    """

    title: str
    figure: Any
    caption: str
    paper: str


def colour(name: str) -> str:
    """Return the colour of a method; variants such as "ILHt, private centres" have that of the method."""
    if name in _COLOURS:
        return _COLOURS[name]
    return _COLOURS.get(re.split(r"[ ,]", name)[0], "#808080")


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, *, share_y: bool | str = False
) -> tuple[Any, NDArray[Any]]:
    """Return a figure of a width and height in inches, and its axes as an array (rows, columns)."""
    from ilhash.cli._curves import figure_class

    figure = figure_class()(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0.0)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y)
    for one in axes.ravel():
        _plain(one)
    return figure, axes


def _plain(axes: Any) -> None:
    axes.set_facecolor("none")
    axes.grid(visible=True, color=GRID, lw=0.6, alpha=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
        spine.set_linewidth(0.8)
    axes.tick_params(colors=INK, labelsize=8, width=0.8, which="both")
    axes.tick_params(which="minor", length=0)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_color(INK)
        text.set_fontsize(9)


def band(axes: Any, x: Any, values: Any, name: str, **style: Any) -> float:
    """Draw the mean over seeds (rows) with a band of one standard deviation; return where the line ends."""
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    x = np.asarray(x)
    seen = ~np.isnan(table).any(axis=0)
    if not seen.any():
        return float("nan")
    mean, spread = table[:, seen].mean(axis=0), table[:, seen].std(axis=0)
    style = {"color": colour(name), "lw": 1.6, "solid_capstyle": "round"} | style
    if len(table) > 1:
        axes.fill_between(x[seen], mean - spread, mean + spread, color=style["color"], alpha=0.18, lw=0)
    axes.plot(x[seen], mean, **style)
    return float(mean[-1])


def label_ends(axes: Any, ends: Iterable[tuple[str, float, str]], size: float = 7.5, gap: float = 0.055) -> None:
    """Write names at the right ends of lines, (text, y, colour), moved apart where they would overlap."""
    low, high = axes.get_ylim()
    logarithmic = axes.get_yscale() == "log"

    def place(y: float) -> float:
        if logarithmic:
            return float((np.log(y) - np.log(low)) / (np.log(high) - np.log(low)))
        return float((y - low) / (high - low))

    wanted = sorted((place(y), text, own) for text, y, own in ends if np.isfinite(y))
    if not wanted:
        return
    spots = _apart([spot for spot, _, _ in wanted], gap)
    for spot, (_, text, own) in zip(spots, wanted, strict=True):
        axes.text(1.015, spot, text, transform=axes.transAxes, fontsize=size, color=own, va="center", ha="left")


def _apart(spots: Sequence[float], gap: float) -> list[float]:
    """Move ascending numbers as little as needed for gaps between them, within about 0 to 1."""
    groups = [[spot] for spot in spots]
    centres = [float(spot) for spot in spots]
    merged = True
    while merged:
        merged = False
        for i in range(len(groups) - 1):
            reach = gap * (len(groups[i]) + len(groups[i + 1])) / 2
            if centres[i + 1] - centres[i] < reach - 1e-9:
                groups[i : i + 2] = [groups[i] + groups[i + 1]]
                centres[i : i + 2] = [float(np.mean(groups[i]))]
                merged = True
                break
    out: list[float] = []
    for centre, group in zip(centres, groups, strict=True):
        first = centre - gap * (len(group) - 1) / 2
        out += [first + gap * place for place in range(len(group))]
    shift = max(0.0, -0.02 - out[0]) - max(0.0, out[-1] - 1.02)
    return [spot + shift for spot in out]


def figures(value: float) -> str:
    """Write a positive number with three figures.

    Examples
    --------
    >>> figures(14.321), figures(float("nan"))
    ('14.3', 'n/a')
    """
    return f"{value:.3g}" if np.isfinite(value) else "n/a"


def number(value: float, digits: int = 3) -> str:
    """Write a share as the paper does, without the leading zero.

    Examples
    --------
    >>> number(0.4567), number(1.0), number(-0.0001), number(float("nan"))
    ('.457', '1.000', '.000', 'n/a')
    """
    if not np.isfinite(value):
        return "n/a"
    text = f"{value:.{digits}f}"
    text = text.removeprefix("-") if float(text) == 0.0 else text
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def svg(figure: Any, name: str) -> str:
    """Return a figure as SVG for a page: text stays text, and the page decides on ink and paper."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for fixed, variable in _VARIABLES.items():
        text = text.replace(fixed, variable)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # The page's own font, and a width that follows the page; identifiers must not meet those of other figures.
    text = re.sub(r"font: ([\d.]+)px '[^;]*;", r"font: \1px var(--font);", text)
    widest = 108 * float(figure.get_figwidth())  # pixels: small figures must not have larger letters than large ones
    text = re.sub(
        r'(<svg[^>]*?) width="[\d.]+pt" height="[\d.]+pt"', rf'\1 style="max-width:{widest:.0f}px"', text, count=1
    )
    seen: dict[str, int] = {}

    def own(match: re.Match[str]) -> str:
        # A colour bar repeats the identifiers of its gradient, with the same content.
        seen[match[1]] = seen.get(match[1], 0) + 1
        return f'id="{name}-{match[1]}"' if seen[match[1]] == 1 else f'id="{name}-{match[1]}-{seen[match[1]]}"'

    text = re.sub(r'\bid="([^"]+)"', own, text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    return text
