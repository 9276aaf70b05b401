"""``ilhash compare``: tables and a picture of all methods on some data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from rich.box import SIMPLE
from rich.table import Table
from typer import Argument, Option

from ilhash import plots
from ilhash.cli._files import NumbersAndPicture, read_labels, read_vectors, refuse_labels_among_features
from ilhash.cli._options import ForceFiles, Numbers
from ilhash.cli._screen import plain, progress_of_work, tell

if TYPE_CHECKING:  # every command would wait for what it imports
    from ilhash.experiments import Comparison

NUMBERS = {
    "precision": ".3f",
    "map": ".3f",
    "seconds": ".2f",
    "ratio": ".2f",
    "precision_all": ".3f",
    "seconds_all": ".2f",
}


def compare(
    sources: Annotated[
        list[str] | None, Argument(help="Datasets by name (default: digits), or one file of vectors.")
    ] = None,
    labels: Annotated[str | None, Option(help="Labels, one per vector, for a file of vectors.")] = None,
    bits: Annotated[list[int] | None, Option(help="Bits; may be given several times. Default 32 and 64.")] = None,
    functions: Annotated[str, Option(help="linear, kernel, or both: each has a table of its own.")] = "both",
    methods: Annotated[
        list[str] | None, Option("--only", help="A row that is wanted, such as ITQ; may be given several times.")
    ] = None,
    n_train: Annotated[int, Option(help="N of every method; for ILHt the points of each bit.")] = 5_000,
    n_queries: Annotated[int, Option(help="Queries, drawn at random (at most a sixth of the data).")] = 2_000,
    k: Annotated[int, Option("-k", help="Places looked at (at most the mean size of a class).")] = 500,
    seed: Annotated[int, Option(help="Of the queries, and of every method.")] = 0,
    same_n_only: Annotated[
        bool, Option("--same-n-only", help="Do not train again on as many points as ILHt sees in all.")
    ] = False,
    json_path: Numbers = None,
    plot: Annotated[Path | None, Option(help="File for a picture (.png, .pdf, .svg).")] = None,
    force: ForceFiles = False,
) -> None:
    """Train every method on the same data and set precision and seconds side by side, one thread each."""
    from ilhash.experiments import TABLES, Settings
    from ilhash.experiments import compare as run

    if functions not in (*TABLES, "both"):
        raise ValueError(f"--functions must be linear, kernel or both, got {functions!r}")
    written = NumbersAndPicture(json_path, plot, force=force)
    settings = Settings(
        bits=tuple(bits or (32, 64)), n_train=n_train, n_queries=n_queries, k=k, seed=seed, on_all=not same_n_only
    )
    tables = tuple(TABLES) if functions == "both" else (functions,)
    found = []
    for source, X, y in [_labelled(source, labels) for source in sources or ["digits"]]:
        tell(f"comparing on {source}")
        with progress_of_work("methods") as move:
            found.append(run(source, X, y, settings, tables=tables, only=methods, progress=move))
        _print(found[-1])
    written.write([one.to_dict() for one in found], lambda: plots.comparison(found, tables))


def _labelled(source: str, labels: str | None) -> tuple[str, Any, Any]:
    refuse_labels_among_features(source, labels)
    X, y = read_vectors(source)
    y = y if labels is None else read_labels(labels)
    if y is None:
        raise ValueError(f"{source} must come with labels (--labels), got vectors alone: methods are judged by labels")
    if y.shape != (len(X),):
        raise ValueError(f"labels must be one for each of the {len(X)} vectors of {source}, got shape {y.shape}")
    return Path(source).stem, np.ascontiguousarray(X, dtype=np.float32), np.asarray(y)


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
        numbers = [_shown(getattr(row, name), form) for name, form in NUMBERS.items()]
        table.add_row(plots.method_title(row), "yes" if row.supervised else "no", *numbers)
    return table


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form).removeprefix("0") or "0"
