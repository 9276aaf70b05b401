"""Beyond the paper: retrieval among classes that training never saw."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.experiments.engine import Cell, Results, Scale, settings_of
from ilhash.experiments.report.drawing import FAINT, INK, Picture, colour, label_ends, new_figure, number

TITLE = "Beyond the paper: classes that training never saw"
SHOWS = "precision on seen and on held-out classes"
DATASETS = ("images",)


def _methods(scale: Scale) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return what is compared: by name the method and its settings."""
    own, ilht = {"n_train": scale.n_train}, settings_of(scale)
    return {
        "Euclidean": ("float", {}),
        "ILHt": ("ILH", ilht),
        "ILHt + ITQ": ("Mix", {"parts": {"ILH": ilht, "ITQ": own}}),
        "class, ECOC": ("ClassifierCode", {"code": "ecoc", **own}),
        "CCAITQ": ("CCAITQ", own),
        "SDH": ("SDH", {**own, "n_centers": scale.n_centers}),
        "ITQ": ("ITQ", own),
        "LSH": ("LSH", {}),
        "Sign": ("Sign", {}),
    }


def unseen(scale: Scale, name: str) -> list[Cell]:
    """Return precision on seen and on unseen classes, over seeds, which also draw the classes."""
    method, settings = _methods(scale)[name]
    params: dict[str, Any] = {"data": "images", "method": method, "settings": settings}
    params |= {"bits": min(64, scale.bits[-1]), "held_out": scale.held_out, "k": min(scale.images.k, 100)}
    return [Cell("unseen", params, seed, cost=2.0 if scale.name == "paper" else 1.0) for seed in scale.seeds]


def cells(scale: Scale) -> list[Cell]:
    """Return all methods."""
    return [cell for name in _methods(scale) for cell in unseen(scale, name)]


def pictures(results: Results) -> list[Picture]:
    """Draw precision on unseen classes over that on seen ones."""
    scale = results.scale
    figure, axes = new_figure(6.4, 5)
    panel, ends = axes[0, 0], []
    for name in _methods(scale):
        found = [one.numbers for cell in unseen(scale, name) if (one := results.read(cell)) is not None]
        if found:
            seen, new = (np.array([one[classes] for one in found]) for classes in ("seen", "unseen"))
            style = {"color": colour(name), "marker": "o", "ms": 6, "lw": 1, "capsize": 2}
            panel.errorbar(seen.mean(), new.mean(), new.std(), seen.std(), **style)
            ends.append((f"{name} {number(seen.mean())}, {number(new.mean())}", new.mean(), colour(name)))
    panel.margins(x=0.1, y=0.1)
    panel.set(xlabel="precision on seen classes", ylabel="precision on unseen classes")
    panel.axhline(1 / scale.held_out, color=FAINT, lw=0.8, ls=":")
    panel.text(0.01, 1 / scale.held_out, "chance", transform=panel.get_yaxis_transform(), fontsize=7.5, color=INK)
    label_ends(panel, ends, size=8)
    about = unseen(scale, "ILHt")[0].params
    caption = (
        f"{scale.held_out} classes of {scale.images.title} are kept from training and searched among themselves; "
        f"precision@{about['k']} with {about['bits']} bits, means and standard deviations over {scale.n_seeds} draws "
        "of classes and training sets; at each name precision on seen and on unseen classes. Chance is lower on seen "
        "classes (there are more of them)."
    )
    return [Picture("Seen and unseen classes", figure, caption, "Not in the paper.")]
