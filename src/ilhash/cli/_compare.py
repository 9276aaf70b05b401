"""`ilhash compare`: tables and a picture of all methods on some data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE
from rich.table import Table

from ilhash import datasets
from ilhash.cli import _curves
from ilhash.cli._files import check_new_file, write_files
from ilhash.cli._screen import plain, progress, tell
from ilhash.cli._work import read_vectors

if TYPE_CHECKING:  # every command would wait for what they import
    from ilhash.experiments.compare import Comparison, Row

__all__ = ["compare_command"]

SUPERVISED, UNSUPERVISED, OURS = "#1f6fb4", "#9a9a9a", "#d1495b"


def compare_command(
    sources: Annotated[
        list[str] | None, typer.Argument(help="Datasets by name (default: digits), or one file of vectors.")
    ] = None,
    labels: Annotated[str | None, typer.Option(help="Labels, one per vector, for a file of vectors.")] = None,
    bits: Annotated[list[int] | None, typer.Option(help="Bits; may be given several times. Default 32 and 64.")] = None,
    functions: Annotated[str, typer.Option(help="linear, kernel, or both: each has a table of its own.")] = "both",
    methods: Annotated[
        list[str] | None, typer.Option("--only", help="A row that is wanted, such as ITQ; may be given several times.")
    ] = None,
    n_train: Annotated[int, typer.Option(help="N of every method; for ILHt the points of each bit.")] = 5_000,
    n_queries: Annotated[int, typer.Option(help="Queries, drawn at random (at most a sixth of the data).")] = 2_000,
    k: Annotated[int, typer.Option("-k", help="Places looked at (at most the mean size of a class).")] = 500,
    seed: Annotated[int, typer.Option(help="Of the queries, and of every method.")] = 0,
    same_n_only: Annotated[
        bool, typer.Option("--same-n-only", help="Do not train again on as many points as ILHt sees in all.")
    ] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="File for all numbers, .json.")] = None,
    plot: Annotated[Path | None, typer.Option(help="File for a picture (.png, .pdf, .svg).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are already there.")] = False,
) -> None:
    """Train every method on the same data and set precision and seconds side by side, one thread each."""
    from ilhash.experiments.compare import TABLES, Settings, compare

    if functions not in (*TABLES, "both"):
        raise ValueError(f"--functions must be linear, kernel or both, got {functions!r}")
    if json_path is not None:
        check_new_file("--json", json_path, (".json",), force=force)
    if plot is not None:
        check_new_file("--plot", plot, _curves.PICTURES, force=force)
        _curves.figure_class()  # a missing matplotlib is said before the work, not after
    settings = Settings(
        bits=tuple(bits or (32, 64)), n_train=n_train, n_queries=n_queries, k=k, seed=seed, on_all=not same_n_only
    )
    tables = tuple(TABLES) if functions == "both" else (functions,)
    found = []
    for source, X, y in [_labelled(source, labels) for source in sources or ["digits"]]:
        with progress(f"comparing on {source}", "methods") as move:
            found.append(compare(source, X, y, settings, tables=tables, only=methods, progress=move))
        _print(found[-1])
    files = {}
    if json_path is not None:
        files[json_path] = json.dumps([one.to_dict() for one in found], indent=1, allow_nan=False).encode() + b"\n"
    if plot is not None:
        files[plot] = _curves.picture(_drawn(found, tables), plot.suffix)
    write_files(files)
    if files:
        tell(f"written: {', '.join(map(str, files))}")


def _labelled(source: str, labels: str | None) -> tuple[str, Any, Any]:
    X, y = read_vectors(source)
    if labels is not None:
        y = datasets.read_vector(labels)
    if y is None:
        raise ValueError(f"{source} must come with labels (--labels), got vectors alone: methods are judged by labels")
    if np.ndim(y) != 1 or len(y) != len(X):
        raise ValueError(f"labels must be one for each of the {len(X)} vectors of {source}, got shape {np.shape(y)}")
    return Path(source).stem, np.ascontiguousarray(X, dtype=np.float32), np.asarray(y)


# ------------------------------------------------------------------------------------------------ on the screen


def _print(found: Comparison) -> None:
    settings = found.settings
    tell(
        f"{found.data}: {found.n_base:,} base points of {found.n_features} dimensions, {settings.n_queries:,} queries, "
        f"N = {settings.n_train:,}, precision@{settings.k}, seed {settings.seed}, one thread; protocol "
        f"{found.protocol_hash}"
    )
    seen = " and ".join(f"{min(bits * settings.n_train, found.n_base):,}" for bits in settings.bits)
    tell(
        "x ILHt: seconds of training in units of ILHt's; last two columns: trained on as many points as ILHt sees in "
        f"all its bits, {seen}"
    )
    for kind in dict.fromkeys(row.table for row in found.rows):
        for bits in settings.bits:
            plain.print(_table(found, kind, bits))
    for row in found.rows:
        if row.precision is None:
            tell(f"{row.name} is not defined here: {row.note}")
    tell(f"vectors themselves, Euclidean: precision@{settings.k} {found.euclidean:.3f}")
    for one, other in found.same_codes:
        tell(f"warning: {one} and {other} gave the same codes")


def _table(found: Comparison, kind: str, bits: int) -> Table:
    title = f"{found.data}, {bits} bits, {'linear' if kind == 'linear' else 'kernel and other'} functions"
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("method", "labels"):
        table.add_column(name, no_wrap=True)
    for name in ("prec.", "mAP", "sec.", "x ILHt", "prec.", "sec."):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.best_first(kind, bits):
        table.add_row(_name(row), "yes" if row.supervised else "no", *_numbers(row))
    return table


def _name(row: Row) -> str:
    return row.name if row.own_bits == row.bits else f"{row.name} ({row.own_bits} bits)"


def _numbers(row: Row) -> list[str]:
    if row.precision is None:
        return ["-"] * 6

    def shown(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form).removeprefix("0") or "0"

    return [
        shown(row.precision, ".3f"),
        shown(row.map, ".3f"),
        shown(row.seconds, ".2f"),
        shown(row.ratio, ".2f"),
        shown(row.precision_all, ".3f"),
        shown(row.seconds_all, ".2f"),
    ]


# ------------------------------------------------------------------------------------------------ picture


def _drawn(found: list[Comparison], tables: tuple[str, ...]) -> Any:
    """Draw one panel per dataset and kind of functions: methods from best to worst, a dot per number of bits."""
    sizes = [max(len(one.best_first(kind, one.settings.bits[-1])) for one in found) for kind in tables]
    figure = _curves.figure_class()(figsize=(6.5 * len(found), 0.26 * sum(sizes) + 1.6), layout="constrained")
    panels = figure.subplots(len(tables), len(found), squeeze=False, height_ratios=sizes)
    for line, kind in zip(panels, tables, strict=True):
        for axes, one in zip(line, found, strict=True):
            _panel(axes, one, kind)
    return figure


def _panel(axes: Any, found: Comparison, kind: str) -> None:
    longest = max(found.settings.bits)
    rows = [row for row in reversed(found.best_first(kind, longest)) if row.precision is not None]
    places = {row.name: place for place, row in enumerate(rows)}
    for bits in sorted(found.settings.bits):
        drawn = [row for row in found.best_first(kind, bits) if row.precision is not None and row.name in places]
        colours = [_colour(row) for row in drawn]
        hollow = bits != longest
        axes.scatter(
            [row.precision for row in drawn],
            [places[row.name] for row in drawn],
            s=34,
            facecolors="none" if hollow else colours,
            edgecolors=colours,
            zorder=3,
        )
    for row in rows:
        axes.annotate(f"{row.seconds:.2g} s", (1.01, places[row.name]), xycoords=("axes fraction", "data"), fontsize=7)
    axes.axvline(found.euclidean, color="0.6", ls=":", lw=1)
    axes.annotate("vectors", (found.euclidean, len(rows) - 0.4), fontsize=7, color="0.4", ha="center")
    axes.set_yticks(list(places.values()), [_name(row) for row in rows], fontsize=8)
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(_colour(row))
    axes.grid(axis="y", color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    others = ", ".join(str(bits) for bits in sorted(found.settings.bits)[:-1])
    axes.set(
        xlim=(0, 1),
        ylim=(-0.7, len(rows) - 0.2),
        xlabel=f"precision@{found.settings.k}; {longest} bits" + (f" (hollow: {others})" if others else ""),
        title=f"{found.data}: {'linear' if kind == 'linear' else 'kernel and other'} functions",
    )


def _colour(row: Row) -> str:
    if row.name.startswith("ILH"):
        return OURS
    return SUPERVISED if row.supervised else UNSUPERVISED
