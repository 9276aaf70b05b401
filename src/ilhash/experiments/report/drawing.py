"""A figure with its words, and how numbers are written in them; the looks are those of ilhash.plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ilhash.plots import FAINT, INK, band, colour, label_ends, new_figure, svg

__all__ = ["FAINT", "INK", "Lines", "Picture", "bits_axis", "colour", "figures", "label_ends", "log_axis"]
__all__ += ["new_figure", "number", "svg"]


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its words."""

    title: str
    figure: Any  # of matplotlib
    caption: str  # what one sees here, with numbers
    paper: str  # what the paper's figure shows


class Lines:
    """Lines of a panel, named at their ends once the panel has its limits."""

    def __init__(self, panel: Any) -> None:
        self.panel = panel
        self.ends: list[tuple[str, float, str]] = []

    def draw(self, at: Sequence[float], values: Any, name: str, label: str = "", **style: Any) -> None:
        """Draw the mean over seeds (rows) with its band, in the colour of the name; the label is the name's own."""
        self.ends.append((label or name, band(self.panel, at, values, name, **style), colour(name)))

    def by_bits(self, all_bits: Sequence[int], at: Sequence[float], values: Callable[[int], Any], name: str) -> None:
        """Draw a line for each number of bits, stronger for more."""
        for place, bits in enumerate(all_bits):
            strength = 0.4 + 0.6 * (place + 1) / len(all_bits)
            self.draw(at, values(bits), name, f"b={bits}", alpha=strength, marker="o", ms=3)

    def label(self, **how: Any) -> None:
        """Write the names."""
        label_ends(self.panel, self.ends, **how)


def log_axis(panel: Any, at: Sequence[int], base: int = 10) -> None:
    """Make the x axis logarithmic, with ticks at these numbers only."""
    panel.set_xscale("log", base=base)
    panel.set_xticks(at, [f"{n:,}" for n in at])
    panel.set_xticks([], minor=True)


def bits_axis(panel: Any, longest: int, octaves: int = 1) -> None:
    """Make the x axis one of numbers of bits up to 256, with a tick every few octaves."""
    log_axis(panel, [1 << place for place in range(0, 9, octaves) if 1 << place <= longest], base=2)
    panel.set_xlabel("number of bits b")


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
