"""Cells that several experiments share, and what they are expected to cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments.engine.cells import Cell, Outcome
from ilhash.experiments.engine.scales import Scale
from ilhash.experiments.engine.store import Results

SINGLES = 16


def settings_of(scale: Scale, letters: str = "t", n_train: int | None = None, **more: Any) -> dict[str, Any]:
    """Return the settings of an ILH model at this scale."""
    settings: dict[str, Any] = {"diversity": letters, "n_train": scale.n_train if n_train is None else n_train}
    settings |= {"n_similar": scale.neighbours, "n_dissimilar": scale.neighbours}
    if more.get("hash_function") == "kernel":
        settings["n_centers"] = scale.n_centers
    return settings | more


def standard_bits(scale: Scale) -> list[int]:
    """Return the numbers of bits at which the standard ILHt is measured: one long model serves all."""
    return sorted({*scale.grid, *scale.bits, *scale.compared_bits})


def ilh(scale: Scale, dataset: str, seed: int, letters: str = "t", n_train: int | None = None, **more: Any) -> Cell:
    """Return a model of ILH measured at the bits of the mechanisms; the standard ILHt at all bits of the scale."""
    settings = settings_of(scale, letters, n_train, **more)
    standard = settings == settings_of(scale)
    at = standard_bits(scale) if standard else list(scale.bits)
    params: dict[str, Any] = {"data": dataset, "method": "ILH", "settings": settings, "bits": max(at), "at": at}
    if standard:
        params["singles"] = SINGLES
    return Cell("retrieval", params, seed, cost=_cost(scale, dataset, "ILH", settings, max(at), len(at)))


def method(
    scale: Scale, dataset: str, seed: int, name: str, bits: int, at: list[int] | None = None, **own: Any
) -> Cell:
    """Return another method, trained anew for every number of bits unless ``at`` lists prefixes."""
    at = [bits] if at is None else at
    params = {"data": dataset, "method": name, "settings": own, "bits": bits, "at": at}
    cost = _cost(scale, dataset, name, own, bits, len(at))
    return Cell("retrieval", params, seed, cost=cost, limit=scale.limit)


def _cost(scale: Scale, dataset: str, name: str, settings: dict[str, Any], bits: int, measured: int) -> float:
    """Seconds on one core, from what was measured on two cores with AVX2; the run corrects it as it goes."""
    data = scale.data(dataset)
    n_train = int(settings.get("n_train", scale.n_train))
    centers = scale.n_centers / 500
    private = settings.get("centers") == "private" or name == "PrivateKSHcut"
    kernel = settings.get("hash_function") == "kernel" or private
    private |= kernel and "f" in settings.get("diversity", "")  # other features are another basis
    if name == "Mix":
        return sum(_cost(scale, dataset, own, about, bits // 2, measured) for own, about in settings["parts"].items())
    if name == "BRE":
        per_bit = 0.009 * bits * n_train / 5_000  # as measured: more bits, more rounds over all of them
    elif name in PER_BIT:
        per_bit = PER_BIT[name] * n_train / 5_000 * (2.5 if dataset == "digits" else 1.0)
    elif kernel:
        per_bit = 0.03 + 1.5e-5 * n_train * centers
    else:
        per_bit = {"images": 0.008, "digits": 0.05, "words": 0.02, "edges": 0.02}[dataset]
        per_bit += {"images": 4e-6, "digits": 2.5e-5, "words": 3e-5, "edges": 3e-5}[dataset] * n_train
    if name != "ILH" and "start" in settings:
        per_bit += 0.03 if dataset == "images" else 0.18
    encoding = data.n_base * bits * (4e-8 if dataset == "digits" else 2e-8)
    if kernel:
        encoding += data.n_base * centers * (7e-6 * bits if private else 1e-5)
    measuring = measured * data.n_base * data.n_queries * 1e-9
    return float(0.05 + bits * per_bit + encoding + measuring)


# Seconds of one core for a bit at N = 5,000 on 320 features.
_METHODS_OF = {
    0.0005: ("LSH", "Sign"),
    0.003: ("TPCA",),
    0.005: ("SH", "CCAITQ"),
    0.01: ("ITQ", "ClassifierCode", "SDH"),
    0.02: ("AGH",),
    0.03: ("BaggedTPCA",),
    0.05: ("OrthogonalProjection", "SPLH"),
    0.07: ("KSHcut",),
    0.08: ("KSH",),
    0.1: ("STH", "MLH"),
    0.15: ("NeighbourKSHcut",),
    0.2: ("PrivateKSHcut", "FastHash", "BA"),
}
PER_BIT = {name: seconds for seconds, names in _METHODS_OF.items() for name in names}


def curve(outcome: Outcome, k: int) -> NDArray[np.float64]:
    """Return precision at k for every number of bits that a cell was measured at."""
    column = int(np.searchsorted(outcome.arrays["ks"], k))
    return np.asarray(outcome.arrays["precision"][:, column])


def at_bits(results: Results, cell: Cell, bits: int, k: int) -> float:
    """Return precision at k with so many bits; NaN where it is not there or not defined."""
    outcome = results.read(cell)
    if outcome is None or not outcome.done or bits not in cell.params["at"]:
        return float("nan")
    return float(curve(outcome, k)[list(cell.params["at"]).index(bits)])


def mean_of(values: Any) -> float:
    """Return the mean of what is there; NaN where nothing is."""
    table = np.asarray(values, dtype=np.float64)
    seen = table[~np.isnan(table)]
    return float(seen.mean()) if len(seen) else float("nan")


def over_seeds(results: Results, cells: list[Cell], bits: int, k: int) -> NDArray[np.float64]:
    """Return precision at k of the same model under several seeds."""
    return np.array([at_bits(results, cell, bits, k) for cell in cells])


def stored_arrays(results: Results, cells: list[Cell], name: str) -> NDArray[np.float64]:
    """Return an array of each of the cells that are stored, one row each."""
    found = [results.read(cell) for cell in cells]
    return np.array([one.arrays[name] for one in found if one is not None])
