"""All methods on some data, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ilhash.plots._style import figure_class

SUPERVISED, UNSUPERVISED, OURS = "#1f6fb4", "#9a9a9a", "#d1495b"


def comparison(found: Sequence[Any], tables: Sequence[str]) -> Any:
    """Draw a column for each Comparison, in it one panel per kind of functions, two at equal bytes.

    Methods stand from best to worst, a dot per number of bits for new items, a dash for seen ones; at equal bytes
    precision over bytes, and over microseconds of encoding.
    """
    kinds = [kind for kind in tables if kind != "bytes"]
    heights = [0.26 * max(len(one.best_first(kind, one.settings.bits[-1])) for one in found) + 0.8 for kind in kinds]
    heights += [4.2] * (2 * ("bytes" in tables))
    figure = figure_class()(figsize=(7.5 * len(found), sum(heights)), layout="constrained")
    panels = figure.subplots(len(heights), len(found), squeeze=False, height_ratios=heights)
    for column, one in enumerate(found):
        for axes, kind in zip(panels[:, column], kinds, strict=False):
            _panel(axes, one, kind)
        if "bytes" in tables:
            _over_bytes(panels[-2, column], one)
            _over_time(panels[-1, column], one)
    return figure


def _panel(axes: Any, found: Any, kind: str) -> None:
    longest = max(found.settings.bits)
    rows = [row for row in reversed(found.best_first(kind, longest)) if row.precision_new is not None]
    places = {row.name: place for place, row in enumerate(rows)}
    for bits in sorted(found.settings.bits):
        drawn = [row for row in found.best_first(kind, bits) if row.precision_new is not None and row.name in places]
        x, y = [row.precision_new for row in drawn], [places[row.name] for row in drawn]
        colours = [_colour(row) for row in drawn]
        axes.scatter(x, y, s=34, facecolors=colours if bits == longest else "none", edgecolors=colours, zorder=3)
        if bits == longest:
            axes.scatter([row.precision_seen for row in drawn], y, marker="|", s=60, c=colours, zorder=2)
    for row in rows:
        axes.annotate(f"{row.seconds:.2g} s", (1.01, places[row.name]), xycoords=("axes fraction", "data"), fontsize=7)
    axes.axvline(found.euclidean_new, color="0.6", ls=":", lw=1)
    axes.annotate("vectors", (found.euclidean_new, len(rows) - 0.4), fontsize=7, color="0.4", ha="center")
    axes.set_yticks(list(places.values()), [method_title(row) for row in rows], fontsize=8)
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(_colour(row))
    axes.grid(axis="y", color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    others = ", ".join(str(bits) for bits in sorted(found.settings.bits)[:-1])
    title = f"{found.data}: {'linear' if kind == 'linear' else 'kernel and other'} functions"
    label = f"precision@{found.settings.k} among new items (dash: seen); {longest} bits"
    label += f" (hollow: {others})" if others else ""
    axes.set(xlim=(0, 1), ylim=(-0.7, len(rows) - 0.2), xlabel=label, title=title)


def method_title(row: Any) -> str:
    """Return the name of a method in a comparison, with its number of bits where that is not the others'."""
    return str(row.name) if row.own_bits == row.bits else f"{row.name} ({row.own_bits} bits)"


def _colour(row: Any) -> str:
    if row.name.startswith("ILH"):
        return OURS
    return SUPERVISED if row.supervised else UNSUPERVISED


def _lines(found: Any) -> dict[str, list[Any]]:
    """Return the rows at equal bytes by method, fewest bytes first; not those of the vectors themselves."""
    lines: dict[str, list[Any]] = {}
    for row in sorted(found.byte_rows, key=lambda row: row.n_bytes):
        if row.new and row.name != "floats":
            lines.setdefault(row.name, []).append(row)
    return lines


def _styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return how each method is drawn: ours in reds, others in colours of their own; float queries are dashed."""
    reds = ["#d1495b", "#8f1d2c", "#f08a5d", "#b56576", "#5c1a1b", "#e56b6f"]
    others = ["#1f6fb4", "#2a9d8f", "#6d597a", "#9a9a9a", "#bc8f00", "#355070", "#7fb069", "#000000", "#c77dff"]
    marks = "os^DvPX*<>hp"
    ours, rest = ([name for name in names if name.startswith("ILH") == own] for own in (True, False))
    colours = {name: reds[place % len(reds)] for place, name in enumerate(ours)}
    colours |= {name: others[place % len(others)] for place, name in enumerate(rest)}
    return {name: {"color": colours[name], "marker": marks[place % len(marks)]} for place, name in enumerate(names)}


def _over_bytes(axes: Any, found: Any) -> None:
    k, lines = found.settings.ks[0], _lines(found)
    styles = _styles(list(lines))
    for name, rows in lines.items():
        dashes = "--" if rows[0].float_query else "-"
        sizes = [row.own_bytes for row in rows]
        axes.plot(sizes, [row.new[k] for row in rows], ls=dashes, ms=5, lw=1.3, label=name, **styles[name])
        axes.scatter(sizes, [row.seen[k] for row in rows], marker="_", s=60, color=styles[name]["color"])
    floats = next((row for row in found.byte_rows if row.name == "floats"), None)
    if floats is not None:
        axes.axhline(floats.new[k], color="0.6", ls=":", lw=1, label=f"vectors ({floats.n_bytes:,} bytes)")
    sizes = sorted({row.own_bytes for rows in lines.values() for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    title = f"{found.data}: equal bytes (dashed lines: the query stays floats)"
    _finish(axes, title, "bytes per item", f"precision@{k} among new items (dash: seen)")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _over_time(axes: Any, found: Any) -> None:
    k, lines = found.settings.ks[0], _lines(found)
    styles = _styles(list(lines))
    for name, rows in lines.items():
        if name.endswith(", asymmetric"):  # the same codes
            continue
        times, scores = [row.encode_us for row in rows], [row.new[k] for row in rows]
        axes.plot(times, scores, ls=":", lw=1, ms=5, label=name, **styles[name])
        for row, x, y in zip(rows, times, scores, strict=True):
            axes.annotate(str(row.own_bytes), (x, y), xytext=(4, 3), textcoords="offset points", fontsize=6)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="x", which="both", labelsize=7, labelrotation=45)
    title = f"{found.data}: encoding on one thread (numbers: bytes)"
    _finish(axes, title, "microseconds to encode a vector", f"precision@{k} among new items")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _finish(axes: Any, title: str, across: str, up: str) -> None:
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(title=title, xlabel=across, ylabel=up)
