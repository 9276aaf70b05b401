"""Beyond the paper: retrieval among classes that training never saw."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.experiments._build import settings_of
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import FAINT, INK, Picture, colour, label_ends, new_figure, number

__all__ = ["EXPERIMENT", "METHODS", "unseen"]

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "Euclidean": ("float", {}),
    "ILHt": ("ILH", {}),
    "ILHt + ITQ": ("Mix", {}),
    "class, ECOC": ("ClassifierCode", {"code": "ecoc"}),
    "CCAITQ": ("CCAITQ", {}),
    "SDH": ("SDH", {}),
    "ITQ": ("ITQ", {}),
    "LSH": ("LSH", {}),
    "Sign": ("Sign", {}),
}


def unseen(scale: Scale, name: str, seed: int) -> Cell:
    """Return precision on seen and on unseen classes; the seed also draws the classes."""
    method, own = METHODS[name]
    settings = settings_of(scale) if method == "ILH" else dict(own)
    if method == "Mix":
        settings["parts"] = {"ILH": settings_of(scale), "ITQ": {"n_train": scale.n_train}}
    if method in ("ClassifierCode", "CCAITQ", "SDH", "ITQ"):
        settings["n_train"] = scale.n_train
    if method == "SDH":
        settings["n_centers"] = scale.n_centers
    params = {
        "data": "images",
        "method": method,
        "settings": settings,
        "bits": min(64, scale.bits[-1]),
        "held_out": scale.held_out,
        "k": min(scale.images.k, 100),
    }
    return Cell("unseen", params, seed, cost=2.0 if scale.name == "paper" else 1.0)


def _cells(scale: Scale) -> list[Cell]:
    return [unseen(scale, name, seed) for name in METHODS for seed in scale.seeds]


def _pictures(results: Results) -> list[Picture]:
    scale = results.scale
    figure, axes = new_figure(6.4, 5)
    panel = axes[0, 0]
    ends = []
    for name in METHODS:
        found = [one for one in (results.read(unseen(scale, name, seed)) for seed in scale.seeds) if one is not None]
        if not found:
            continue
        seen = np.array([one.numbers["seen"] for one in found])
        new = np.array([one.numbers["unseen"] for one in found])
        panel.errorbar(
            seen.mean(), new.mean(), new.std(), seen.std(), color=colour(name), marker="o", ms=6, lw=1, capsize=2
        )
        told = f"{name} {number(float(seen.mean()))}, {number(float(new.mean()))}"
        ends.append((told, float(new.mean()), colour(name)))
    panel.margins(x=0.1, y=0.1)
    panel.set(xlabel="precision on seen classes", ylabel="precision on unseen classes")
    panel.axhline(1 / scale.held_out, color=FAINT, lw=0.8, ls=":")
    panel.text(0.01, 1 / scale.held_out, "chance", transform=panel.get_yaxis_transform(), fontsize=7.5, color=INK)
    label_ends(panel, ends, size=8)
    cell = unseen(scale, "ILHt", 0)
    caption = (
        f"{scale.held_out} classes of {scale.images.title} are kept from training and searched among themselves; "
        f"precision@{cell.params['k']} with {cell.params['bits']} bits, means and standard deviations over "
        f"{scale.n_seeds} draws of classes and training sets; at each name precision on seen and on unseen classes. "
        "Chance is lower on seen classes (there are more of them)."
    )
    return [Picture("Seen and unseen classes", figure, caption, "Not in the paper.")]


EXPERIMENT = Experiment(
    name="unseen-classes",
    title="Beyond the paper: classes that training never saw",
    shows="precision on seen and on held-out classes",
    parts=("images",),
    cells=_cells,
    pictures=_pictures,
)
