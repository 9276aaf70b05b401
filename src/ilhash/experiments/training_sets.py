"""Figure 2, panel 3: bootstrap, random and disjoint training sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments._build import curve, ilh, method, settings_of, standard_bits
from ilhash.experiments._cells import Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import Picture, band, colour, label_ends, new_figure, number

__all__ = ["EXPERIMENT", "SAMPLINGS", "draw_samplings", "n_disjoint", "sampled", "sampling_curves"]

PARTS = ("images", "digits")
SAMPLINGS = ("disjoint", "random", "bootstrap")


def sampled(scale: Scale, part: str, sampling: str, seed: int) -> Cell:
    """Return a long ILHt model under one way of drawing training sets; disjoint is the standard one."""
    if sampling == "disjoint":
        return ilh(scale, part, seed)
    at = standard_bits(scale)
    return method(scale, part, seed, "ILH", at[-1], at, **settings_of(scale, sampling=sampling))


def n_disjoint(scale: Scale, part: str) -> int:
    """Return how many disjoint training sets the base holds."""
    return scale.data(part).n_base // scale.n_train


def _cells(scale: Scale) -> list[Cell]:
    return [
        sampled(scale, part, sampling, seed)
        for part in PARTS
        for sampling in SAMPLINGS
        for seed in scale.seeds_of(part)
    ]


def sampling_curves(results: Results, part: str, sampling: str) -> tuple[list[int], NDArray[np.float64]]:
    """Return numbers of bits and precision (seeds, bits); disjoint only as far as the sets are."""
    scale = results.scale
    at = standard_bits(scale)
    rows = []
    for seed in scale.seeds_of(part):
        cell = sampled(scale, part, sampling, seed)
        outcome = results.read(cell)
        rows.append(np.full(len(at), np.nan) if outcome is None else curve(cell, outcome, scale.data(part).k))
    kept = [i for i, bits in enumerate(at) if sampling != "disjoint" or bits <= n_disjoint(scale, part)]
    return [at[i] for i in kept], np.array(rows)[:, kept]


def draw_samplings(results: Results, panel: Any, part: str) -> None:
    """Draw precision over bits for the three ways."""
    scale, ends = results.scale, []
    for sampling in SAMPLINGS:
        at, values = sampling_curves(results, part, sampling)
        end = band(panel, at, values, sampling)
        name = f"disjoint ({n_disjoint(scale, part)} sets)" if sampling == "disjoint" else sampling
        if at[-1] < standard_bits(scale)[-1] / 2:  # its line ends far from the others' names
            panel.annotate(
                name,
                (at[-1], end),
                (6, -10),
                textcoords="offset points",
                fontsize=7.5,
                color=colour(sampling),
            )
        else:
            ends.append((name, end, colour(sampling)))
    panel.set_xscale("log", base=2)
    ticks = [bits for bits in (1, 2, 4, 8, 16, 32, 64, 128, 256) if bits <= scale.max_bits]
    panel.set_xticks(ticks, [str(bits) for bits in ticks])
    panel.set(xlabel="number of bits b", title=scale.data(part).title, ylabel=f"precision@{scale.data(part).k:,}")
    label_ends(panel, ends)


def _pictures(results: Results) -> list[Picture]:
    scale = results.scale
    figure, axes = new_figure(11.5, 4.2, 1, 2)
    for panel, part in zip(axes[0], PARTS, strict=True):
        draw_samplings(results, panel, part)
    bits = max(b for b in standard_bits(scale) if b <= n_disjoint(scale, "digits"))
    told = []
    for sampling in SAMPLINGS:
        at, values = sampling_curves(results, "digits", sampling)
        told.append(f"{sampling} {number(float(values[:, at.index(bits)].mean()), 4)}")
    caption = (
        f"ILHt with training sets drawn in three ways, N = {scale.n_train:,}; bands are one standard deviation over "
        f"seeds. {scale.images.title} has {n_disjoint(scale, 'images')} disjoint sets and {scale.digits.title} "
        f"{n_disjoint(scale, 'digits')}; there, at {bits} bits: {', '.join(told)}."
    )
    paper = (
        "Disjoint, closely followed by random, is consistently and significantly better than bootstrap; disjoint is "
        "not feasible on CIFAR."
    )
    return [Picture("Bootstrap, random and disjoint training sets", figure, caption, paper)]


EXPERIMENT = Experiment(
    name="training-sets",
    title="How training sets should differ",
    shows="bootstrap, random and disjoint training sets over b (figure 2, panel 3)",
    parts=PARTS,
    cells=_cells,
    pictures=_pictures,
)
