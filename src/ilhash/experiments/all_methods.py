"""Figure 4: all methods, in precision over k and in precision over recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments.comparison import REFERENCE, TABLES, Entry
from ilhash.experiments.engine import Cell, Results, Scale, ilh, method, settings_of, standard_bits
from ilhash.experiments.engine.cells import TIME_LIMIT, UNDEFINED
from ilhash.experiments.engine.models import stored_parameters
from ilhash.experiments.engine.problems import ks_of
from ilhash.experiments.report.drawing import FAINT, Lines, Picture, colour, new_figure, number

TITLE = "Against all other methods"
SHOWS = "precision@k and precision/recall of every method, with the baselines that keep everybody honest (figure 4)"
DATASETS = ("images", "digits")
PAGES = (("linear", "images"), ("linear", "digits"), ("kernel", "images"))
# In the paper's figure beside linear functions; their functions are their own.
AS_IN_THE_PAPER = ("KSH", "BRE", "SH")
OWN_KERNELS = ("KSH", "BRE", "SDH")


def entrants(page: str) -> dict[str, Entry]:
    """Return the rows of a page; the baselines that the paper does not have, SDH and sign bits, stand on both."""
    linear = {name: entry for name, entry in TABLES["linear"].items() if not entry.families}  # mixes have their page
    kernel = {name: entry for name, entry in TABLES["kernel"].items() if entry.reproduced}
    if page == "kernel":
        return kernel | {"Sign": linear["Sign"]}
    found = {name: entry for name, entry in linear.items() if name not in ("ILHi", "class, 1-hot")}
    return found | {name: kernel[name] for name in (*AS_IN_THE_PAPER, "SDH")}


def entrant(scale: Scale, dataset: str, entry: Entry, bits: int) -> Cell:
    """Return the cell of a method at a number of bits, all trained on the standard N."""
    kernel = entry.parameters.get("hash_function") == "kernel"
    if entry.method == "ILH":
        if not kernel:
            return ilh(scale, dataset, 0, entry.parameters.get("diversity", "t"))
        at = list(scale.compared_bits)
        return method(scale, dataset, 0, "ILH", at[-1], at, **settings_of(scale, **entry.parameters))
    if entry.method == "LSH":
        at = standard_bits(scale)
        return method(scale, dataset, 0, entry.method, at[-1], at)
    own = {name: value for name, value in entry.parameters.items() if value != REFERENCE}
    if REFERENCE in entry.parameters.values():
        functions: dict[str, Any] = {"hash_function": "kernel"} if kernel else {}
        own["start"] = settings_of(scale, **functions)
    return method(scale, dataset, 0, entry.method, bits, **own, **_common(scale, entry.method, own))


def _common(scale: Scale, name: str, own: dict[str, Any]) -> dict[str, Any]:
    """Return what all methods share, as far as a method has it: N, neighbours, centres."""
    known, n = stored_parameters(name), scale.neighbours
    shared = {"n_train": scale.n_train, "n_similar": n, "n_dissimilar": n, "n_neighbours": n}
    if own.get("hash_function", "kernel") == "kernel":
        shared["n_centers"] = scale.n_centers
    if scale.n_train < 1_000:  # methods' own defaults ask for more points than the smallest scale has
        shared |= {"n_anchors": scale.n_centers, "n_labeled": scale.n_train, "steps": 500}
        shared |= {"n_trees": 10} if name == "FastHash" else {}  # trees of other methods are not asked for here
    return {key: value for key, value in shared.items() if key in known}


def euclidean(scale: Scale, dataset: str) -> Cell:
    """Return exact search with the raw vectors."""
    data = scale.data(dataset)
    dimension = 784 if dataset == "digits" else 320
    cost = data.n_base * data.n_queries * (dimension * 5e-11 + 2e-8)
    return Cell("euclidean", {"data": dataset}, 0, cost=cost)


def opq(scale: Scale, dataset: str, bits: int) -> Cell:
    """Return OPQ through faiss at the bytes of the codes, trained on as many points as ILHt sees, up to 50,000."""
    n_train = min(50_000, bits * scale.n_train, scale.data(dataset).n_base)
    cost = 1.0 if scale.n_train < 1_000 else 60.0 + 0.8 * bits + scale.data(dataset).n_base * 2.6e-4
    params = {"data": dataset, "bits": bits, "n_train": n_train}
    return Cell("product_quantiser", params, 0, cost=cost, limit=scale.limit)


def cells(scale: Scale) -> list[Cell]:
    """Return all methods of all pages."""
    found = []
    for page, dataset in PAGES:
        found.append(euclidean(scale, dataset))
        for bits in scale.compared_bits:
            found.append(opq(scale, dataset, bits))
            found += [entrant(scale, dataset, entry, bits) for entry in entrants(page).values()]
    return found


def curves_of(results: Results, cell: Cell, bits: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | str:
    """Return precision and recall over k, or why there are none."""
    outcome = results.read(cell)
    if outcome is None:
        return "missing"
    if outcome.status == UNDEFINED:
        return "not defined"
    if outcome.status == TIME_LIMIT:
        return f"over {cell.limit:g} s"
    if "without" in outcome.numbers:
        return "not installed"
    row = list(cell.params["at"]).index(bits) if "at" in cell.params else 0
    return outcome.arrays["precision"][row], outcome.arrays["recall"][row]


def _competitors(results: Results, page: str, dataset: str, bits: int) -> dict[str, Cell]:
    scale = results.scale
    cells = {name: entrant(scale, dataset, entry, bits) for name, entry in entrants(page).items()}
    return cells | {"OPQ": opq(scale, dataset, bits), "Euclidean": euclidean(scale, dataset)}


def ranking(results: Results, page: str, dataset: str, bits: int) -> dict[str, float]:
    """Return precision at the headline k by method, best first; those without a number are left out."""
    column = _column(results, dataset)
    found = {name: curves_of(results, cell, bits) for name, cell in _competitors(results, page, dataset, bits).items()}
    scores = {name: float(one[0][column]) for name, one in found.items() if not isinstance(one, str)}
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def opq_precision(results: Results, dataset: str, bits: int) -> float:
    """Return OPQ's precision at the headline k; NaN where it was not computed."""
    found = curves_of(results, opq(results.scale, dataset, bits), bits)
    return float("nan") if isinstance(found, str) else float(found[0][_column(results, dataset)])


def missing(results: Results, page: str, dataset: str, bits: int) -> list[str]:
    """Return the methods that were not computed yet."""
    cells = _competitors(results, page, dataset, bits)
    return [name for name, cell in cells.items() if not results.has(cell)]


def _column(results: Results, dataset: str) -> int:
    data = results.scale.data(dataset)
    return int(np.searchsorted(ks_of(data), data.k))


def draw_comparison(results: Results, dataset: str, of_bits: dict[int, dict[str, Cell]]) -> tuple[Any, list[str]]:
    """Draw precision over k (top) and over recall (bottom); return the figure and what is not drawn, with reasons."""
    data = results.scale.data(dataset)
    ks, column = ks_of(data), _column(results, dataset)
    figure, axes = new_figure(13, 8.6, 2, len(of_bits), share_y="row")
    panels = [Lines(panel) for panel in axes[0]]
    absent: dict[str, list[str]] = {}
    for (bits, cells), lines, bottom in zip(of_bits.items(), panels, axes[1], strict=True):
        top = lines.panel
        for name, cell in cells.items():
            found = curves_of(results, cell, bits)
            if isinstance(found, str):
                absent.setdefault(f"{name}: {found}", []).append(str(bits))
                continue
            precision, recall = found
            style = _style(name)
            shown = (ks >= min(10, data.k // 5)) & (ks <= 4 * data.k)
            top.plot(ks[shown], precision[shown], **style)
            bottom.plot(recall[ks >= 5], precision[ks >= 5], **style)
            last = int(np.flatnonzero(shown & ~np.isnan(precision))[-1])
            lines.ends.append((f"{name} {number(precision[column])}", precision[last], style["color"]))
        top.axvline(data.k, color=FAINT, lw=0.8, ls=":")
        top.set(xscale="log", title=f"b = {bits}", xlabel="k nearest neighbours")
        bottom.set(xlabel="recall", xlim=(0, 1))
    for lines in panels:  # after all have their common limits
        lines.label(size=6.5, gap=0.047)
    for panel in axes[:, 0]:
        panel.set_ylabel("precision")
    return figure, [f"{name} (b = {', '.join(bits)})" for name, bits in absent.items() if "missing" not in name]


def _style(name: str) -> dict[str, Any]:
    dashes = {"Euclidean": ":", "OPQ": "-.", "KSHcut-ILHt": "--", "ILHt, private centres": "--", "class, scores": "--"}
    weight = {"lw": 2.6, "zorder": 5, "alpha": 1.0} if name == REFERENCE else {"lw": 1.1, "zorder": 3, "alpha": 0.85}
    return {"color": colour(name), "ls": dashes.get(name, "-"), **weight}


def not_drawn(absent: Sequence[str]) -> str:
    """Return the end of a caption: what is not drawn."""
    return f" Not drawn: {'; '.join(absent)}." if absent else ""


def _caption(results: Results, page: str, dataset: str, absent: Sequence[str]) -> str:
    data = results.scale.data(dataset)
    leaders = []
    for bits in results.scale.compared_bits:
        best = list(ranking(results, page, dataset, bits).items())
        place = [name for name, _ in best].index(REFERENCE) + 1 if REFERENCE in dict(best) else 0
        first = ", ".join(f"{name} {number(score)}" for name, score in best[:3])
        leaders.append(f"b = {bits}: {first}" + (f" (ILHt is number {place})" if place > 3 else ""))
    words = "kernel functions"
    if page == "linear":
        words = f"linear functions where a method has a choice ({', '.join(OWN_KERNELS)} have kernels of their own)"
    return (
        f"{data.title}, {words}, every method trained on N = {results.scale.n_train:,} points, ILHt for each bit (OPQ "
        "on up to 50,000), KSH on all pairs of them. Top: precision of the k nearest; the number at each name is "
        f"precision@{data.k:,} (dotted line). Bottom: precision over recall. Best three: {'; '.join(leaders)}."
        f"{not_drawn(absent)}"
    )


def pictures(results: Results) -> list[Picture]:
    """Draw a figure for each page."""
    found = []
    for page, dataset in PAGES:
        of_bits = {bits: _competitors(results, page, dataset, bits) for bits in results.scale.compared_bits}
        if not ranking(results, page, dataset, results.scale.compared_bits[-1]):
            continue
        figure, absent = draw_comparison(results, dataset, of_bits)
        title = f"All methods on {results.scale.data(dataset).title}, {page} functions"
        paper = (
            "ILHt is competitive with few bits and the clear winner as b grows, above KSH, KSHcut, BRE, STH, SH, ITQ, "
            "BA, tPCA and LSH, which do not gain as much from more bits."
            if page == "linear"
            else "No such page: the paper compares linear functions only. SDH and trees are later or other work."
        )
        found.append(Picture(title, figure, _caption(results, page, dataset, absent), paper))
    return found
