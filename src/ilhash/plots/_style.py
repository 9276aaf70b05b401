"""How figures look: one colour per method everywhere, labels at the lines, bands for errors, light and dark pages.

And files of them; matplotlib is imported when a figure is made.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._extras import require

PICTURES = (".png", ".pdf", ".svg")

# Colours of a figure that the page decides: the text, what stands back, the grid, the paper beneath.
INK, FAINT, GRID, PAPER = "#1a2b3c", "#8a9bac", "#c9d8e7", "#fdfcfb"
OTHER = "#808080"  # what has no colour of its own: vectors themselves, the paper's numbers
_VARIABLES = {INK: "var(--ink)", FAINT: "var(--faint)", GRID: "var(--grid)", PAPER: "var(--paper)"}

# Chosen to be distinct on white and on near-black.
_COLOURS = {"ILHt": "#d62f2f", "ILHi": "#2f7ed6", "ILHf": "#2f9e57", "ILHitf": "#9657c9"}
_COLOURS |= {"KSHcut": "#e08a1e", "KSHcut-ILHt": "#b5651d", "perturbed KSHcut": "#c7a252", "KSH": "#a8871b"}
_COLOURS |= {"BRE": "#9c7a5b", "MLH": "#8a5f7d", "SPLH": "#b07d9b", "SDH": "#e0559a", "FastHash": "#4d8c2b"}
_COLOURS |= {"LSH": "#7d8894", "TPCA": "#14a3a8", "BaggedTPCA": "#5cb8b2", "ITQ": "#3d9be9", "CCAITQ": "#5a6fd8"}
_COLOURS |= {"SH": "#98a83c", "STH": "#cf6aa7", "AGH": "#6f9c8b", "BA": "#7a68c9", "class": "#4a9d9c"}
_COLOURS |= {"OrthogonalProjection": "#8f8f4f", "Sign": "#a39aa0", "OPQ": "#c77b30"}
_COLOURS |= {"PQ": "#8c6d1f", "PCA-PQ": "#d9a441", "RaBitQ": "#6b8e23", "floats": "#3b3f46"}
_COLOURS |= {"disjoint": "#d62f2f", "random": "#e0759a", "bootstrap": "#5f7fbf"}  # training sets
_COLOURS |= {"scipy": "#8f6fb0", "pymaxflow": "#5f7fbf"}  # min-cuts


def colour(name: str) -> str:
    """Return the colour of a method; variants such as "ILHt, private centres" have that of the method."""
    return _COLOURS.get(name) or _COLOURS.get(re.split(r"[ ,]", name)[0], OTHER)


def figure_class() -> Any:
    """Return matplotlib's Figure, or the command that installs it."""
    return require("matplotlib.figure", "plots", "a picture").Figure


def picture(figure: Any, suffix: str) -> bytes:
    """Return the bytes of a file of that suffix."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix.removeprefix("."), dpi=110)
    return buffer.getvalue()


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, *, share_y: bool | str = False
) -> tuple[Any, NDArray[Any]]:
    """Return a figure of a width and height in inches, and its axes as an array (rows, columns)."""
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
    scaled: Any = np.log if axes.get_yscale() == "log" else float
    low, high = map(scaled, axes.get_ylim())
    wanted = sorted((float((scaled(y) - low) / (high - low)), text, own) for text, y, own in ends if np.isfinite(y))
    spots = _apart([spot for spot, _, _ in wanted], gap)
    for spot, (_, text, own) in zip(spots, wanted, strict=True):
        axes.text(1.015, spot, text, transform=axes.transAxes, fontsize=size, color=own, va="center", ha="left")


def _apart(spots: Sequence[float], gap: float) -> list[float]:
    """Move ascending numbers as little as needed for gaps between them, within about 0 to 1."""
    groups: list[list[float]] = []  # of neighbours that touch, each set around the mean of its spots
    for spot in spots:
        group = [spot]
        while groups and np.mean(group) - np.mean(groups[-1]) < gap * (len(group) + len(groups[-1])) / 2 - 1e-9:
            group = groups.pop() + group
        groups.append(group)
    out: list[float] = []
    for group in groups:
        first = float(np.mean(group)) - gap * (len(group) - 1) / 2
        out += [first + gap * place for place in range(len(group))]
    shift = max(0.0, -0.02 - out[0]) - max(0.0, out[-1] - 1.02) if out else 0.0
    return [spot + shift for spot in out]


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
    seen: Counter[str] = Counter()

    def own(match: re.Match[str]) -> str:
        # A colour bar repeats the identifiers of its gradient, with the same content.
        seen[match[1]] += 1
        return f'id="{name}-{match[1]}"' if seen[match[1]] == 1 else f'id="{name}-{match[1]}-{seen[match[1]]}"'

    text = re.sub(r'\bid="([^"]+)"', own, text)
    return re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
