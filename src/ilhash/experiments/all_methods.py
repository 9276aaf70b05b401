"""Figure 4: all methods, in precision over k and in precision over recall."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import methods
from ilhash.experiments._build import ilh, method, settings_of, standard_bits
from ilhash.experiments._cells import TIME_LIMIT, UNDEFINED, Cell
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._problems import ks_of
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import FAINT, Picture, colour, label_ends, new_figure, number
from ilhash.experiments.compare import REFERENCE, TABLES, Entry

__all__ = [
    "EXPERIMENT",
    "OWN_KERNELS",
    "curves_of",
    "draw_comparison",
    "entrant",
    "entrants",
    "euclidean",
    "missing",
    "opq",
    "opq_precision",
    "ranking",
]

PARTS = ("images", "digits")
# In the paper's figure beside linear functions; their functions are their own.
AS_IN_THE_PAPER = ("KSH", "BRE", "SH")
OWN_KERNELS = ("KSH", "BRE", "SDH")
NESTED = ("LSH",)


def entrants(scale: Scale, page: str, part: str) -> dict[str, Entry]:
    """Return the rows of a page; the baselines that the paper does not have, SDH and sign bits, stand on both."""
    if page == "linear":
        kernel = TABLES["kernel"]
        found = {name: entry for name, entry in TABLES["linear"].items() if name not in ("ILHi", "class, 1-hot")}
        return found | {name: kernel[name] for name in (*AS_IN_THE_PAPER, "SDH")}
    return dict(TABLES["kernel"]) | {"Sign": TABLES["linear"]["Sign"]}


def entrant(scale: Scale, part: str, entry: Entry, bits: int) -> Cell:
    """Return the cell of a method at a number of bits, all trained on the standard N."""
    kernel = entry.parameters.get("hash_function") == "kernel"
    if entry.method == "ILH":
        if not kernel:
            return ilh(scale, part, 0, entry.parameters.get("diversity", "t"))
        at = list(scale.compared_bits)
        return method(scale, part, 0, "ILH", at[-1], at, **settings_of(scale, **entry.parameters))
    if entry.method in NESTED:
        at = standard_bits(scale)
        return method(scale, part, 0, entry.method, at[-1], at)
    own = {name: value for name, value in entry.parameters.items() if name != "start"}
    if "start" in entry.parameters:
        functions: dict[str, Any] = {"hash_function": "kernel"} if kernel else {}
        own["start"] = settings_of(scale, **functions)
    return method(scale, part, 0, entry.method, bits, **own, **_common(scale, entry.method, own))


def _common(scale: Scale, name: str, own: dict[str, Any]) -> dict[str, Any]:
    """Return what all methods share, as far as a method has it: N, neighbours, centres."""
    known = inspect.signature(methods.get(name)).parameters
    n = scale.neighbours
    shared = {"n_train": scale.n_train, "n_similar": n, "n_dissimilar": n, "n_neighbours": n}
    if own.get("hash_function", "kernel") == "kernel":
        shared["n_centers"] = scale.n_centers
    if scale.n_train < 1_000:  # methods' own defaults ask for more points than the smallest scale has
        shared |= {"n_anchors": scale.n_centers, "n_labeled": scale.n_train, "n_trees": 10, "steps": 500}
    return {key: value for key, value in shared.items() if key in known}


def euclidean(scale: Scale, part: str) -> Cell:
    """Return exact search with the raw vectors."""
    data = scale.data(part)
    dimension = 784 if part == "digits" else 320
    cost = data.n_base * data.n_queries * (dimension * 5e-11 + 2e-8)
    return Cell("euclidean", {"data": part}, 0, cost=cost)


def opq(scale: Scale, part: str, bits: int) -> Cell:
    """Return OPQ through faiss at the bytes of the codes, trained on as many points as ILHt sees, up to 50,000."""
    n_train = min(50_000, bits * scale.n_train, scale.data(part).n_base)
    cost = 1.0 if scale.n_train < 1_000 else 60.0 + 0.8 * bits + scale.data(part).n_base * 2.6e-4
    return Cell("product_quantiser", {"data": part, "bits": bits, "n_train": n_train}, 0, cost=cost, limit=scale.limit)


def _pages(scale: Scale) -> list[tuple[str, str]]:
    return [("linear", "images"), ("linear", "digits"), ("kernel", "images")]


def _cells(scale: Scale) -> list[Cell]:
    found = []
    for page, part in _pages(scale):
        found.append(euclidean(scale, part))
        for bits in scale.compared_bits:
            found.append(opq(scale, part, bits))
            found += [entrant(scale, part, entry, bits) for entry in entrants(scale, page, part).values()]
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


def _competitors(results: Results, page: str, part: str, bits: int) -> dict[str, Cell]:
    scale = results.scale
    cells = {name: entrant(scale, part, entry, bits) for name, entry in entrants(scale, page, part).items()}
    return cells | {"OPQ": opq(scale, part, bits), "Euclidean": euclidean(scale, part)}


def ranking(results: Results, page: str, part: str, bits: int) -> dict[str, float]:
    """Return precision at the headline k by method, best first; those without a number are left out."""
    column = _column(results, part)
    found = {name: curves_of(results, cell, bits) for name, cell in _competitors(results, page, part, bits).items()}
    scores = {name: float(one[0][column]) for name, one in found.items() if not isinstance(one, str)}
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def opq_precision(results: Results, part: str, bits: int) -> float:
    """Return OPQ's precision at the headline k; NaN where it was not computed."""
    found = curves_of(results, opq(results.scale, part, bits), bits)
    return float("nan") if isinstance(found, str) else float(found[0][_column(results, part)])


def missing(results: Results, page: str, part: str, bits: int) -> list[str]:
    """Return the methods that were not computed yet."""
    cells = _competitors(results, page, part, bits)
    return [name for name, cell in cells.items() if not results.has(cell)]


def _column(results: Results, part: str) -> int:
    data = results.scale.data(part)
    return int(np.searchsorted(ks_of(data), data.k))


def draw_comparison(results: Results, part: str, of_bits: dict[int, dict[str, Cell]]) -> tuple[Any, list[str]]:
    """Draw precision over k (top) and over recall (bottom); return the figure and what is not drawn, with reasons."""
    data = results.scale.data(part)
    ks, column = ks_of(data), _column(results, part)
    figure, axes = new_figure(13, 8.6, 2, len(of_bits), share_y="row")
    absent: dict[str, list[str]] = {}
    for place, (bits, cells) in enumerate(of_bits.items()):
        ends = []
        for name, cell in cells.items():
            found = curves_of(results, cell, bits)
            if isinstance(found, str):
                absent.setdefault(f"{name}: {found}", []).append(str(bits))
                continue
            precision, recall = found
            style = _style(name)
            shown = (ks >= min(10, data.k // 5)) & (ks <= 4 * data.k)
            axes[0, place].plot(ks[shown], precision[shown], **style)
            axes[1, place].plot(recall[ks >= 5], precision[ks >= 5], **style)
            last = int(np.flatnonzero(shown & ~np.isnan(precision))[-1])
            ends.append((f"{name} {number(float(precision[column]))}", float(precision[last]), style["color"]))
        axes[0, place].axvline(data.k, color=FAINT, lw=0.8, ls=":")
        axes[0, place].set(xscale="log", title=f"b = {bits}", xlabel="k nearest neighbours")
        axes[1, place].set(xlabel="recall", xlim=(0, 1))
        axes[0, place].ends = ends
    for place in range(len(of_bits)):
        label_ends(axes[0, place], axes[0, place].ends, size=6.5, gap=0.047)
    axes[0, 0].set_ylabel("precision")
    axes[1, 0].set_ylabel("precision")
    return figure, [f"{name} (b = {', '.join(bits)})" for name, bits in absent.items() if "missing" not in name]


def _style(name: str) -> dict[str, Any]:
    main = name == REFERENCE
    dashes = {"Euclidean": ":", "OPQ": "-.", "KSHcut-ILHt": "--", "ILHt, private centres": "--", "class, scores": "--"}
    return {
        "color": colour(name),
        "lw": 2.6 if main else 1.1,
        "zorder": 5 if main else 3,
        "ls": dashes.get(name, "-"),
        "alpha": 1.0 if main else 0.85,
    }


def _caption(results: Results, page: str, part: str, absent: Sequence[str]) -> str:
    data = results.scale.data(part)
    told = []
    for bits in results.scale.compared_bits:
        best = list(ranking(results, page, part, bits).items())
        place = [name for name, _ in best].index(REFERENCE) + 1 if REFERENCE in dict(best) else 0
        first = ", ".join(f"{name} {number(score)}" for name, score in best[:3])
        told.append(f"b = {bits}: {first}" + (f" (ILHt is number {place})" if place > 3 else ""))
    words = "kernel functions"
    if page == "linear":
        words = f"linear functions where a method has a choice ({', '.join(OWN_KERNELS)} have kernels of their own)"
    gone = f" Not drawn: {'; '.join(absent)}." if absent else ""
    return (
        f"{data.title}, {words}, every method trained on N = {results.scale.n_train:,} points, ILHt for each bit (OPQ "
        "on up to 50,000), KSH on all pairs of them. Top: precision of the k nearest; the number at each name is "
        f"precision@{data.k:,} (dotted line). Bottom: precision over recall. Best three: {'; '.join(told)}.{gone}"
    )


def _pictures(results: Results) -> list[Picture]:
    found = []
    for page, part in _pages(results.scale):
        of_bits = {bits: _competitors(results, page, part, bits) for bits in results.scale.compared_bits}
        if not ranking(results, page, part, results.scale.compared_bits[-1]):
            continue
        figure, absent = draw_comparison(results, part, of_bits)
        title = f"All methods on {results.scale.data(part).title}, {page} functions"
        paper = (
            "ILHt is competitive with few bits and the clear winner as b grows, above KSH, KSHcut, BRE, STH, SH, ITQ, "
            "BA, tPCA and LSH, which do not gain as much from more bits."
            if page == "linear"
            else "No such page: the paper compares linear functions only. SDH and trees are later or other work."
        )
        found.append(Picture(title, figure, _caption(results, page, part, absent), paper))
    return found


EXPERIMENT = Experiment(
    name="all-methods",
    title="Against all other methods",
    shows="precision@k and precision/recall of every method, with the baselines that keep everybody honest (figure 4)",
    parts=PARTS,
    cells=_cells,
    pictures=_pictures,
)
