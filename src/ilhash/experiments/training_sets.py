"""Figure 2, panel 3: bootstrap, random and disjoint training sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments.engine import Cell, Results, Scale, curve, ilh, method, settings_of, standard_bits
from ilhash.experiments.report.drawing import Lines, Picture, bits_axis, new_figure, number

TITLE = "How training sets should differ"
SHOWS = "bootstrap, random and disjoint training sets over b (figure 2, panel 3)"
DATASETS = ("images", "digits")
SAMPLINGS = ("disjoint", "random", "bootstrap")


def sampled(scale: Scale, dataset: str, sampling: str) -> list[Cell]:
    """Return long ILHt models under one way of drawing training sets, over seeds; disjoint is the standard one."""
    seeds, at = scale.seeds_of(dataset), standard_bits(scale)
    if sampling == "disjoint":
        return [ilh(scale, dataset, seed) for seed in seeds]
    settings = settings_of(scale, sampling=sampling)
    return [method(scale, dataset, seed, "ILH", at[-1], at, **settings) for seed in seeds]


def n_disjoint(scale: Scale, dataset: str) -> int:
    """Return how many disjoint training sets the base holds."""
    return scale.data(dataset).n_base // scale.n_train


def cells(scale: Scale) -> list[Cell]:
    """Return the models of all ways."""
    pairs = [(dataset, sampling) for dataset in DATASETS for sampling in SAMPLINGS]
    return [cell for pair in pairs for cell in sampled(scale, *pair)]


def sampling_curves(results: Results, dataset: str, sampling: str) -> tuple[list[int], NDArray[np.float64]]:
    """Return numbers of bits and precision (seeds, bits); disjoint only as far as the sets are."""
    scale = results.scale
    at, found = standard_bits(scale), [results.read(cell) for cell in sampled(scale, dataset, sampling)]
    nothing, k = np.full(len(at), np.nan), scale.data(dataset).k
    rows = [nothing if outcome is None else curve(outcome, k) for outcome in found]
    kept = [i for i, bits in enumerate(at) if sampling != "disjoint" or bits <= n_disjoint(scale, dataset)]
    return [at[i] for i in kept], np.array(rows)[:, kept]


def draw_samplings(results: Results, panel: Any, dataset: str) -> None:
    """Draw precision over bits for the three ways."""
    scale, lines = results.scale, Lines(panel)
    for sampling in SAMPLINGS:
        at, values = sampling_curves(results, dataset, sampling)
        name = f"disjoint ({n_disjoint(scale, dataset)} sets)" if sampling == "disjoint" else sampling
        lines.draw(at, values, sampling, name)
        if at[-1] < standard_bits(scale)[-1] / 2:  # its line ends far from the others' names
            _, end, own = lines.ends.pop()
            panel.annotate(name, (at[-1], end), (6, -10), textcoords="offset points", fontsize=7.5, color=own)
    bits_axis(panel, scale.max_bits)
    panel.set(title=scale.data(dataset).title, ylabel=f"precision@{scale.data(dataset).k:,}")
    lines.label()


def pictures(results: Results) -> list[Picture]:
    """Draw the three ways on both datasets."""
    scale = results.scale
    figure, axes = new_figure(11.5, 4.2, 1, 2)
    for panel, dataset in zip(axes[0], DATASETS, strict=True):
        draw_samplings(results, panel, dataset)
    bits = max(b for b in standard_bits(scale) if b <= n_disjoint(scale, "digits"))
    measured = []
    for sampling in SAMPLINGS:
        at, values = sampling_curves(results, "digits", sampling)
        measured.append(f"{sampling} {number(values[:, at.index(bits)].mean(), 4)}")
    caption = (
        f"ILHt with training sets drawn in three ways, N = {scale.n_train:,}; bands are one standard deviation over "
        f"seeds. {scale.images.title} has {n_disjoint(scale, 'images')} disjoint sets and {scale.digits.title} "
        f"{n_disjoint(scale, 'digits')}; there, at {bits} bits: {', '.join(measured)}."
    )
    paper = (
        "Disjoint, closely followed by random, is consistently and significantly better than bootstrap; disjoint is "
        "not feasible on CIFAR."
    )
    return [Picture("Bootstrap, random and disjoint training sets", figure, caption, paper)]
