"""Figure 2, panels 1 and 2: the share of the features that each bit sees."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments.engine import Cell, Results, Scale, ilh, over_seeds, settings_of
from ilhash.experiments.report.drawing import INK, Lines, Picture, colour, figures, new_figure

TITLE = "How many features each bit should see"
SHOWS = "precision and encoding time against d/D for ILHf and ILHitf (figure 2, panels 1 and 2)"
DATASETS = ("images", "digits")
LETTERS = {"ILHf": "f", "ILHitf": "itf"}


def _with_share(scale: Scale, dataset: str, name: str, share: float) -> list[Cell]:
    """Return the models whose bits see this share of the features, over seeds."""
    return [ilh(scale, dataset, seed, LETTERS[name], n_features=share) for seed in scale.seeds_of(dataset)]


def fraction_cells(scale: Scale, dataset: str) -> list[Cell]:
    """Return the models of all shares on a dataset."""
    pairs = [(name, share) for name in LETTERS for share in fractions_of(scale, dataset)]
    return [cell for pair in pairs for cell in _with_share(scale, dataset, *pair)]


def fractions_of(scale: Scale, dataset: str) -> list[float]:
    """Return the shares that are tried on a dataset: every other one where a model takes longest."""
    return [share for share in scale.fractions if dataset == "images" or share not in (0.05, 0.4, 0.6, 0.9)]


def encoding(scale: Scale) -> Cell:
    """Return the cell that times encoding with every share of the features."""
    params: dict[str, Any] = {"data": "images", "settings": settings_of(scale, "f"), "bits": scale.bits[-1]}
    params |= {"fractions": list(scale.fractions), "rounds": 15}
    return Cell("encoding_time", params, 0, cost=5.0 * len(scale.fractions) * scale.n_train / 5_000, alone=True)


def cells(scale: Scale) -> list[Cell]:
    """Return the models of all shares, and the time that they take."""
    return [cell for dataset in DATASETS for cell in fraction_cells(scale, dataset)] + [encoding(scale)]


def precision_over(results: Results, dataset: str, name: str, bits: int) -> NDArray[np.float64]:
    """Return precision (seeds, shares)."""
    scale = results.scale
    models = [_with_share(scale, dataset, name, share) for share in fractions_of(scale, dataset)]
    return np.array([over_seeds(results, one, bits, scale.data(dataset).k) for one in models]).T


def draw_fractions(results: Results, panel: Any, dataset: str, name: str) -> Lines:
    """Draw precision over the share of features, one line for each number of bits; they are still to be labelled."""
    scale, lines = results.scale, Lines(panel)
    lines.by_bits(scale.bits, fractions_of(scale, dataset), partial(precision_over, results, dataset, name), name)
    panel.set(xlabel="share of the features, d/D", title=f"{name}, {scale.data(dataset).title}", xlim=(0, 1.02))
    panel.set_ylabel(f"precision@{scale.data(dataset).k:,}")
    return lines


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


def best_fraction(results: Results, dataset: str, name: str, bits: int) -> tuple[float, float]:
    """Return the share of features with the highest precision, mean over seeds, and that precision."""
    course = precision_over(results, dataset, name, bits).mean(axis=0)
    if np.isnan(course).any():
        return float("nan"), float("nan")
    return fractions_of(results.scale, dataset)[int(np.argmax(course))], float(course.max())


def pictures(results: Results) -> list[Picture]:
    """Draw a row of panels for each dataset, and the times in the last column."""
    scale = results.scale
    figure, axes = new_figure(11.5, 6.6, len(DATASETS), 3)
    for row, dataset in zip(axes, DATASETS, strict=True):
        both = [draw_fractions(results, panel, dataset, name) for panel, name in zip(row[:2], LETTERS, strict=True)]
        limits = [lines.panel.get_ylim() for lines in both]
        for lines in both:
            lines.panel.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
            lines.label()
    lone = _time_panels(results, axes[0, 2], axes[1, 2])
    bits = scale.bits[-1]
    best = "; ".join(
        f"{scale.data(dataset).title} "
        + ", ".join(f"{figures(best_fraction(results, dataset, name, bits)[0])} for {name}" for name in LETTERS)
        for dataset in DATASETS
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
