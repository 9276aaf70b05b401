"""Figure 1 of the paper: the mechanisms of diversity beside a coupled objective, over N and b."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.experiments._build import ilh, mean_of, method, over_seeds
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import Picture, band, colour, label_ends, new_figure, number

__all__ = ["EXPERIMENT", "FUNCTIONS", "MECHANISMS", "kshcut", "mechanism"]

MECHANISMS = {"ILHi": "i", "ILHt": "t", "ILHf": "f", "ILHitf": "itf"}
FUNCTIONS: dict[str, dict[str, Any]] = {
    "linear": {},
    "kernel, common centres": {"hash_function": "kernel"},
    "kernel, private centres": {"hash_function": "kernel", "centers": "private"},
}


def mechanism(scale: Scale, name: str, function: str, n_train: int) -> list[Cell]:
    """Return the cells of a mechanism: all seeds for ILHt and for linear functions, one for the others."""
    seeds = scale.seeds if name == "ILHt" or function == "linear" else range(1)
    return [ilh(scale, "images", seed, MECHANISMS[name], n_train, **FUNCTIONS[function]) for seed in seeds]


def kshcut(
    scale: Scale, part: str, seed: int, bits: int, n_train: int | None = None, function: str = "linear", **more: Any
) -> Cell:
    """Return KSHcut, trained anew for this number of bits."""
    own: dict[str, Any] = {"n_train": scale.n_train if n_train is None else n_train}
    own |= {"n_similar": scale.neighbours, "n_dissimilar": scale.neighbours, **more}
    if function != "linear":
        own |= {"hash_function": "kernel", "n_centers": scale.n_centers}
    name = "PrivateKSHcut" if function == "kernel, private centres" else "KSHcut"
    return method(scale, part, seed, name, bits, **own)


def coupled(scale: Scale, function: str, n_train: int, bits: int) -> list[Cell]:
    """Return the cells of KSHcut: all seeds with linear functions, one elsewhere."""
    seeds = scale.seeds if function == "linear" else range(1)
    return [kshcut(scale, "images", seed, bits, n_train, function) for seed in seeds]


def _cells(scale: Scale) -> list[Cell]:
    found = []
    for function in FUNCTIONS:
        for n_train in scale.sizes:
            for name in MECHANISMS:
                found += mechanism(scale, name, function, n_train)
            for bits in scale.bits:
                found += coupled(scale, function, n_train, bits)
    return found


def _values(results: Results, name: str, function: str, bits: int) -> np.ndarray[Any, Any]:
    """Return precision (seeds, sizes)."""
    scale = results.scale
    columns = []
    for n_train in scale.sizes:
        if name == "KSHcut":
            cells = coupled(scale, function, n_train, bits)
        else:
            cells = mechanism(scale, name, function, n_train)
        columns.append(over_seeds(results, cells, bits, scale.images.k))
    return np.array(columns).T


def _pictures(results: Results) -> list[Picture]:
    scale = results.scale
    names = [*MECHANISMS, "KSHcut"]
    figure, axes = new_figure(11, 7, len(FUNCTIONS), len(names), share_y="row")
    for row, function in enumerate(FUNCTIONS):
        for column, name in enumerate(names):
            panel, ends = axes[row, column], []
            for place, bits in enumerate(scale.bits):
                strength = 0.4 + 0.6 * (place + 1) / len(scale.bits)
                values = _values(results, name, function, bits)
                end = band(panel, scale.sizes, values, name, alpha=strength, marker="o", ms=3)
                ends.append((f"b={bits}", end, colour(name)))
            panel.set_xscale("log")
            panel.set_xticks(scale.sizes, [f"{n:,}" for n in scale.sizes])
            panel.set_xticks([], minor=True)
            if row == 0:
                panel.set_title(name)
            if row == len(FUNCTIONS) - 1:
                panel.set_xlabel("training points per bit, N")
            if column == 0:
                panel.set_ylabel(f"{function}\nprecision@{scale.images.k}")
            panel.ends = ends
        for column in range(len(names)):  # after the row has its common limits
            label_ends(axes[row, column], axes[row, column].ends, size=7, gap=0.085)
    bits, n = scale.bits[-1], scale.n_train
    column = scale.sizes.index(n)
    told = "; ".join(
        f"{function} "
        + ", ".join(f"{name} {number(mean_of(_values(results, name, function, bits)[:, column]))}" for name in names)
        for function in FUNCTIONS
    )
    caption = (
        f"Precision@{scale.images.k} on {scale.images.title} against the training points of each bit; columns are "
        f"mechanisms, rows kinds of hash function. Bands: one standard deviation over {scale.n_seeds} training sets "
        f"(linear functions, and ILHt everywhere). N = {n:,}, b = {bits}: {told}. Where bits have their own features "
        "(f), common centres are the same points seen through other features, so that kernels differ all the same."
    )
    paper = (
        "ILHt is clearly the best mechanism, above ILHitf, which combines all three, and well above KSHcut; precision "
        "levels off with N; kernel functions are higher, most with private centres, and tell the same story."
    )
    return [Picture("Mechanisms of diversity", figure, caption, paper)]


EXPERIMENT = Experiment(
    name="diversity-mechanisms",
    title="Which diversity helps",
    shows="ILHi, ILHt, ILHf, ILHitf and KSHcut over N and b, for linear and kernel functions (figure 1)",
    parts=("images",),
    cells=_cells,
    pictures=_pictures,
)
