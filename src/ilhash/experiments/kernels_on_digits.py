"""Beyond the paper: the page of kernel functions on the many digits, whose pixels are scaled as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ilhash.experiments.all_methods import curves_of, draw_comparison, entrant, entrants, euclidean, not_drawn, opq
from ilhash.experiments.comparison import Entry
from ilhash.experiments.engine import Cell, Results, Scale
from ilhash.experiments.engine.models import stored_parameters
from ilhash.experiments.engine.problems import ks_of
from ilhash.experiments.report.drawing import Picture, number

TITLE = "Beyond the paper: kernel functions on many digits"
SHOWS = "every method with kernel functions on infinite MNIST, pixels scaled as a whole"
DATASETS = ("digits",)
# Private centres cost a distance to each of them for every bit: a million digits would take half an hour to encode.
LEFT_OUT = ("ILHt, private centres",)


def _entry(scale: Scale, name: str, entry: Entry) -> Entry:
    """Scale pixels as a whole where a method has the choice; one of the two KSH has the paper's neighbours."""
    more: dict[str, Any] = {"scaling": "whole"} if "scaling" in _known(entry) else {}
    if name == "KSH, neighbours":
        more["n_pairs"] = scale.neighbours
    return replace(entry, parameters={**entry.parameters, **more})


def _known(entry: Entry) -> set[str]:
    return {"scaling"} if entry.method == "ILH" else stored_parameters(entry.method)


def competitors(scale: Scale, bits: int) -> dict[str, Cell]:
    """Return the cells of one number of bits by method."""
    page = {name: entry for name, entry in entrants("kernel").items() if name not in LEFT_OUT}
    page["KSH, neighbours"] = page["KSH"]
    found = {name: entrant(scale, "digits", _entry(scale, name, entry), bits) for name, entry in page.items()}
    return found | {"OPQ": opq(scale, "digits", bits), "Euclidean": euclidean(scale, "digits")}


def cells(scale: Scale) -> list[Cell]:
    """Return all methods at all numbers of bits."""
    return [cell for bits in scale.compared_bits for cell in competitors(scale, bits).values()]


def ranking(results: Results, bits: int) -> dict[str, float]:
    """Return precision at the headline k by method, best first; those without a number are left out."""
    data = results.scale.digits
    column = list(ks_of(data)).index(data.k)
    found = {name: curves_of(results, cell, bits) for name, cell in competitors(results.scale, bits).items()}
    scores = {name: float(one[0][column]) for name, one in found.items() if not isinstance(one, str)}
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def pictures(results: Results) -> list[Picture]:
    """Draw precision over k and over recall, as the page of the images has them."""
    scale = results.scale
    if not results.has(competitors(scale, scale.compared_bits[0])["ILHt"]):  # methods without a choice are not a page
        return []
    of_bits = {bits: competitors(scale, bits) for bits in scale.compared_bits}
    figure, absent = draw_comparison(results, "digits", of_bits)
    told = []
    for bits in scale.compared_bits:
        best = list(ranking(results, bits).items())[:4]
        told.append(f"b = {bits}: " + ", ".join(f"{name} {number(score)}" for name, score in best))
    caption = (
        f"{scale.digits.title}, kernel functions, every method trained on N = {scale.n_train:,} points, ILHt for each "
        f"bit; pixels scaled as a whole where a method has the choice. KSH, neighbours: {scale.neighbours} similar and "
        f"as many dissimilar ones of each point, as ILHt has; KSH: all pairs. Private centres are left out: they would "
        f"take too long to encode so many. Best four by precision@{scale.digits.k:,}: {'; '.join(told)}."
        f"{not_drawn(absent)}"
    )
    return [Picture(f"Kernel functions on {scale.digits.title}", figure, caption, "No such page.")]
