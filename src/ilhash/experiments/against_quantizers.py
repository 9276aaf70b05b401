"""Beyond the paper: what so many bytes are worth, quantisers beside codes, among new items and seen ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilhash.experiments.engine import Cell, Results, Scale, settings_of
from ilhash.experiments.engine.bases import BASES, all_bytes, bases_cell, ks_at, n_learnt, precision_in
from ilhash.experiments.equal_bytes import FLOATS, QUANTIZERS
from ilhash.experiments.report.drawing import Lines, Picture, colour, label_ends, log_axis, new_figure, number

TITLE = "Beyond the paper: at equal bytes, beside quantisers"
SHOWS = "ILH, PQ, OPQ, RaBitQ (its factors counted) and others at equal bytes, among new items and seen ones"
DATASETS = ("images", "digits")
ILHT = {"linear": "ILHt", "kernel": "ILHt, kernels", "trees": "ILHt, trees"}


@dataclass(frozen=True, eq=False)
class Entrant:
    """A line of the figures: the cell of each number of bytes, and how it is searched."""

    name: str
    cells: dict[int, Cell]
    ours: bool = False
    asymmetric: bool = False

    def at(self, results: Results, n_bytes: int, k: int, base: str) -> float:
        """Return precision; NaN where there is none."""
        cell = self.cells[n_bytes]
        bits = 8 * n_bytes if 8 * n_bytes in cell.params["at"] else cell.params["at"][-1]
        return precision_in(results, cell, bits, k, base, asymmetric=self.asymmetric)

    def encode_us(self, results: Results, n_bytes: int) -> float:
        """Return microseconds to encode a vector, of a model that is longer in proportion."""
        cell = self.cells[n_bytes]
        outcome = results.read(cell)
        if outcome is None or "encode_us" not in outcome.numbers or self.name == FLOATS:
            return float("nan")
        return float(outcome.numbers["encode_us"]) * 8 * n_bytes / int(cell.params["at"][-1])


def entrants(scale: Scale, dataset: str) -> list[Entrant]:
    """Return what is compared; ILHt as in the paper (N for each bit), and by asymmetric search, as quantisers are."""
    sizes, bits = all_bytes(scale), [8 * n for n in all_bytes(scale)]
    found = []
    for functions, name in ILHT.items():
        cell = _ilht(scale, dataset, functions, bits)
        found.append(Entrant(name, dict.fromkeys(sizes, cell), ours=True))
        found.append(Entrant(f"{name}, asymmetric", dict.fromkeys(sizes, cell), ours=True, asymmetric=True))
    n_train = min(n_learnt(scale), 50_000)
    for method in ("ITQ", "CCAITQ", "Sign"):
        own = {"n_train": n_train} if method != "Sign" else {}
        cells = {n: bases_cell(scale, dataset, method, [8 * n], 5.0 * _size(scale, dataset), **own) for n in sizes}
        found.append(Entrant(method, cells))
    for method in QUANTIZERS:
        cells = {n: bases_cell(scale, dataset, method, [8 * n], 15.0 * _size(scale, dataset)) for n in sizes}
        found.append(Entrant(method, cells))
    floats = bases_cell(scale, dataset, FLOATS, [0], 10.0 * _size(scale, dataset))
    return [*found, Entrant(FLOATS, dict.fromkeys(sizes, floats))]


def _ilht(scale: Scale, dataset: str, functions: str, bits: list[int]) -> Cell:
    settings = settings_of(scale, hash_function=functions)
    if dataset == "digits" and functions == "kernel":  # pixels are in one unit
        settings["scaling"] = "whole"
    if scale.n_train < 1_000 and functions == "trees":
        settings["n_trees"] = 20
    per_bit = {"linear": 0.03, "kernel": 0.15, "trees": 0.7}[functions]
    return bases_cell(scale, dataset, "ILH", bits, per_bit * bits[-1] * _size(scale, dataset), **settings)


def _size(scale: Scale, dataset: str) -> float:
    """Return how large the problem is beside 58,000 vectors of 320 features."""
    return max(0.02, scale.images.n_base / 58_000) * (2.0 if dataset == "digits" else 1.0)


def cells(scale: Scale) -> list[Cell]:
    """Return all lines of both datasets."""
    return [cell for data in DATASETS for one in entrants(scale, data) for cell in one.cells.values()]


def losses(results: Results, dataset: str) -> list[str]:
    """Say where something else of as many bytes, or the vectors, is above ILHt, by each kind of functions."""
    told = []
    for kind in ILHT.values():
        for base in BASES:
            for n_bytes in all_bytes(results.scale):
                for k in ks_at(results.scale):
                    told += _loss(results, dataset, kind, base, n_bytes, k)
    return told


def _loss(results: Results, dataset: str, kind: str, base: str, n_bytes: int, k: int) -> list[str]:
    scores = {one: one.at(results, n_bytes, k, base) for one in entrants(results.scale, dataset)}
    own = [score for one, score in scores.items() if one.name in (kind, f"{kind}, asymmetric") and np.isfinite(score)]
    best = max(own, default=np.nan)  # the better of its two searches
    above = [f"{one.name} {number(score)}" for one, score in scores.items() if not one.ours and score > best]
    return [f"{kind}, {base}, {n_bytes} bytes, k = {k}: {number(best)} against {', '.join(above)}"] if above else []


def pictures(results: Results) -> list[Picture]:
    """Draw precision over bytes, and over the time of encoding, for each dataset."""
    found = []
    for dataset in DATASETS:
        there = [one for one in entrants(results.scale, dataset) if any(map(results.has, one.cells.values()))]
        if there:
            found += [_by_bytes(results, dataset, there), _by_time(results, dataset, there)]
    return found


def _style(name: str) -> dict[str, Any]:
    for ending, style in (("kernels", {"ls": "--"}), ("trees", {"ls": ":"})):
        if ending in name:
            return style
    return {}


def _by_bytes(results: Results, dataset: str, there: list[Entrant]) -> Picture:
    scale = results.scale
    ks, sizes, data = ks_at(scale), all_bytes(scale), scale.data(dataset)
    shown = [one for one in there if one.asymmetric or not one.ours]
    figure, axes = new_figure(1.0 + 4.4 * len(ks), 8.6, len(BASES), len(ks), share_y="row")
    for base, row in zip(BASES, axes, strict=True):
        panels = [Lines(panel) for panel in row]
        for k, lines in zip(ks, panels, strict=True):
            for one in shown:
                values = [one.at(results, n, k, base) for n in sizes]
                lines.draw(sizes, [values], one.name, marker="o", ms=3, **_style(one.name))
            log_axis(lines.panel, sizes, base=2)
            lines.panel.set(title=f"{base} items, k = {k}", xlabel="bytes")
        for lines in panels:
            lines.label(size=6.5, gap=0.045)
        row[0].set_ylabel("precision")
    words = losses(results, dataset)
    lost = f"Where it loses: {'; '.join(words)}." if words else "Nothing of as many bytes is above any of its lines."
    caption = (
        f"{data.title}, {2 * n_learnt(scale):,} points: {n_learnt(scale):,} to learn from (seen items), as many that "
        f"training never met (new items), {data.n_queries:,} queries. Tie-aware precision. ILHt with N = "
        f"{scale.n_train:,} points for each bit, all other methods with all; the query keeps its margins (asymmetric), "
        "as it stays a vector for PQ, OPQ and RaBitQ. PCA-PQ is PQ of principal components; RaBitQ counts its 8 bytes "
        f"of factors, so it begins at 9 bytes. {lost}"
    )
    return Picture(f"Equal bytes on {data.title}", figure, caption, "Not in the paper.")


def _by_time(results: Results, dataset: str, there: list[Entrant]) -> Picture:
    scale, k = results.scale, ks_at(results.scale)[-1]
    n_bytes = all_bytes(scale)[-1]
    figure, axes = new_figure(7.4, 4.4)
    panel, ends = axes[0, 0], []
    for one in there:
        spent, score = one.encode_us(results, n_bytes), one.at(results, n_bytes, k, "new")
        if one.asymmetric or not np.isfinite(spent * score):
            continue
        panel.plot([spent], [score], "o", color=colour(one.name), ms=6)
        ends.append((f"{one.name} {number(score)}, {spent:.1f} us", score, colour(one.name)))
    panel.set(xscale="log", xlabel="microseconds to encode a vector, one thread", ylabel=f"precision@{k}, new items")
    panel.margins(0.1)
    label_ends(panel, ends, size=8)
    caption = (
        f"{scale.data(dataset).title}, {n_bytes} bytes: what encoding costs, and what it is worth among new items by "
        "Hamming distance (quantisers: with float queries)."
    )
    return Picture(f"Encoding time on {scale.data(dataset).title}", figure, caption, "Not in the paper.")
