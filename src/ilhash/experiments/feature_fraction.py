"""Figure 2, panels 1 and 2: the share of the features that each bit sees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments._build import ilh, over_seeds, settings_of
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import INK, Picture, band, colour, figures, label_ends, new_figure

__all__ = [
    "EXPERIMENT",
    "LETTERS",
    "best_fraction",
    "draw_fractions",
    "encoding_seconds",
    "fraction_cells",
    "fractions_of",
    "precision_over",
]

PARTS = ("images", "digits")
LETTERS = {"ILHf": "f", "ILHitf": "itf"}


def fraction_cells(scale: Scale, part: str, name: str, fraction: float) -> list[Cell]:
    """Return the models whose bits see this share of the features, over seeds."""
    return [ilh(scale, part, seed, LETTERS[name], n_features=fraction) for seed in scale.seeds_of(part)]


def fractions_of(scale: Scale, part: str) -> tuple[float, ...]:
    """Return the shares that are tried on a dataset: every other one where a model takes longest."""
    return scale.fractions if part == "images" else tuple(f for f in scale.fractions if f not in (0.05, 0.4, 0.6, 0.9))


def encoding(scale: Scale) -> Cell:
    """Return the cell that times encoding with every share of the features."""
    params = {
        "data": "images",
        "settings": settings_of(scale, "f"),
        "bits": scale.bits[-1],
        "fractions": list(scale.fractions),
        "rounds": 15,
    }
    return Cell("encoding_time", params, 0, cost=5.0 * len(scale.fractions) * scale.n_train / 5_000, alone=True)


def _cells(scale: Scale) -> list[Cell]:
    found = []
    for part in PARTS:
        for name in LETTERS:
            for fraction in fractions_of(scale, part):
                found += fraction_cells(scale, part, name, fraction)
    return [*found, encoding(scale)]


def precision_over(results: Results, part: str, name: str, bits: int) -> NDArray[np.float64]:
    """Return precision (seeds, shares)."""
    scale = results.scale
    columns = [
        over_seeds(results, fraction_cells(scale, part, name, fraction), bits, scale.data(part).k)
        for fraction in fractions_of(scale, part)
    ]
    return np.array(columns).T


def draw_fractions(results: Results, panel: Any, part: str, name: str) -> None:
    """Draw precision over the share of features, one line for each number of bits."""
    scale, ends = results.scale, []
    for place, bits in enumerate(scale.bits):
        strength = 0.4 + 0.6 * (place + 1) / len(scale.bits)
        values = precision_over(results, part, name, bits)
        end = band(panel, fractions_of(scale, part), values, name, alpha=strength, marker="o", ms=3)
        ends.append((f"b={bits}", end, colour(name)))
    panel.set(xlabel="share of the features, d/D", title=f"{name}, {scale.data(part).title}", xlim=(0, 1.02))
    panel.set_ylabel(f"precision@{scale.data(part).k:,}")
    panel.ends = ends


def encoding_seconds(results: Results) -> dict[str, NDArray[np.float64]]:
    """Return seconds to encode a vector among many ("per_vector") and one "lone" vector, at each share of features."""
    found = results.read(encoding(results.scale))
    nothing = [np.nan] * len(results.scale.fractions)
    return {name: np.array(found.numbers[name] if found else nothing) for name in ("per_vector", "lone")}


def _time_panels(results: Results, batch_panel: Any, lone_panel: Any) -> float:
    """Draw how long encoding takes; return the seconds of a lone query with all features."""
    shares, seconds = results.scale.fractions, encoding_seconds(results)
    batch_panel.plot(shares, seconds["per_vector"] / seconds["per_vector"][-1], color=colour("ILHf"), marker="o", ms=3)
    batch_panel.plot([0, 1], [0, 1], color=INK, lw=0.8, ls=":")
    batch_panel.text(0.55, 0.42, "d/D", fontsize=8, color=INK)
    batch_panel.set(title="encoding many vectors", ylabel="time, of all features")
    lone_panel.plot(shares, 1e6 * seconds["lone"], color=colour("ILHf"), marker="o", ms=3)
    lone_panel.set(title="encoding one query", ylabel="microseconds")
    for panel in (batch_panel, lone_panel):
        panel.set(xlabel="share of the features, d/D", xlim=(0, 1.02), ylim=(0, None))
    return float(seconds["lone"][-1])


def best_fraction(results: Results, part: str, name: str, bits: int) -> tuple[float, float]:
    """Return the share of features with the highest precision, mean over seeds, and that precision."""
    course = precision_over(results, part, name, bits).mean(axis=0)
    if np.isnan(course).any():
        return float("nan"), float("nan")
    return fractions_of(results.scale, part)[int(np.argmax(course))], float(course.max())


def _pictures(results: Results) -> list[Picture]:
    scale = results.scale
    figure, axes = new_figure(11.5, 6.6, len(PARTS), 3)
    for row, part in enumerate(PARTS):
        for column, name in enumerate(LETTERS):
            draw_fractions(results, axes[row, column], part, name)
        low = min(axes[row, column].get_ylim()[0] for column in range(2))
        high = max(axes[row, column].get_ylim()[1] for column in range(2))
        for column in range(2):
            axes[row, column].set_ylim(low, high)
            label_ends(axes[row, column], axes[row, column].ends)
    lone = _time_panels(results, axes[0, 2], axes[1, 2])
    bits = scale.bits[-1]
    best = "; ".join(
        f"{scale.data(part).title} "
        + ", ".join(f"{figures(best_fraction(results, part, name, bits)[0])} for {name}" for name in LETTERS)
        for part in PARTS
    )
    caption = (
        "Left and middle: precision against d/D; bands are one standard deviation over training sets. Best d/D with "
        f"{bits} bits: {best}. Right: time to encode with {bits} bits; the paper counts on d/D of the full time "
        f"(dotted), but a dense product over all features is hard to beat: one query takes {figures(1e6 * lone)} "
        "microseconds with all of them."
    )
    paper = (
        "ILHf is best with about half of the features and for low d like LSH; ILHitf is best with all, because "
        "diversity is already there; at d = D ILHf is like ILHi. (Query time is d/D by counting operations.)"
    )
    return [Picture("Feature subsets", figure, caption, paper)]


EXPERIMENT = Experiment(
    name="feature-fraction",
    title="How many features each bit should see",
    shows="precision and encoding time against d/D for ILHf and ILHitf (figure 2, panels 1 and 2)",
    parts=PARTS,
    cells=_cells,
    pictures=_pictures,
)
