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
    from ilhash.experiments.equal_bytes import ByteRow

NUMBERS = {
    "precision_new": ".3f",
    "precision_seen": ".3f",
    "map_new": ".3f",
    "seconds": ".2f",
    "ratio": ".2f",
    "precision_all_new": ".3f",
    "precision_all_seen": ".3f",
    "seconds_all": ".2f",
}


def compare(
    sources: Annotated[
        list[str] | None, Argument(help="Datasets by name (default: digits), or one file of vectors.")
    ] = None,
    labels: Annotated[str | None, Option(help="Labels, one per vector, for a file of vectors.")] = None,
    bits: Annotated[list[int] | None, Option(help="Bits; may be given several times. Default 32 and 64.")] = None,
    functions: Annotated[
        str, Option(help="linear, kernel, bytes (everything at equal bytes, quantisers of faiss too), both, or all.")
    ] = "all",
    methods: Annotated[
        list[str] | None, Option("--only", help="A row that is wanted, such as ITQ; may be given several times.")
    ] = None,
    n_train: Annotated[int, Option(help="N of every method; for ILHt the points of each bit.")] = 5_000,
    n_queries: Annotated[int, Option(help="Queries, drawn at random (at most a sixth of the data).")] = 2_000,
    n_new: Annotated[
        int | None, Option(help="Points never trained on. Default: half of those that are no queries.")
    ] = None,
    k: Annotated[int, Option("-k", help="Places looked at (at most the mean size of a class).")] = 500,
    seed: Annotated[int, Option(help="Of the queries, and of every method.")] = 0,
    same_n_only: Annotated[
        bool, Option("--same-n-only", help="Do not train again on as many points as ILHt sees in all.")
    ] = False,
    json_path: Numbers = None,
    plot: Annotated[Path | None, Option(help="File for a picture (.png, .pdf, .svg).")] = None,
    force: ForceFiles = False,
) -> None:
    """Train every method on the same data and set precision and seconds side by side, one thread each.

    Precision is measured among new items, which training did not see, and among as many that it may have seen.
    """
    from ilhash.experiments import BYTES, TABLES, Settings
    from ilhash.experiments import compare as run

    chosen = {**{name: (name,) for name in (*TABLES, BYTES)}, "both": tuple(TABLES), "all": (*TABLES, BYTES)}
    if functions not in chosen:
        raise ValueError(f"--functions must be linear, kernel, bytes, both or all, got {functions!r}")
    written = NumbersAndPicture(json_path, plot, force=force)
    settings = Settings(tuple(bits or (32, 64)), n_train, n_queries, k, seed, on_all=not same_n_only, n_new=n_new)
    tables = chosen[functions]
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
        f"{found.data}: {found.n_known:,} points of {found.n_features} dimensions to learn from, {found.n_base:,} new "
        f"items and as many seen ones to search, {settings.n_queries:,} queries, N = {settings.n_train:,}, "
        f"precision@{settings.k}, seed {settings.seed}, one thread; protocol {found.protocol_hash} (new), "
        f"{found.protocol_hash_seen} (seen)"
    )
    if found.rows:
        most = " and ".join(f"{min(bits * settings.n_train, found.n_known):,}" for bits in settings.bits)
        tell(
            "new, seen: precision among items that training did not see, and among as many that it may have seen; x "
            "ILHt: seconds of training in units of ILHt's; all: trained on as many points as ILHt sees in all its "
            f"bits, {most}"
        )
    for kind in dict.fromkeys(row.table for row in found.rows):
        for bits in settings.bits:
            plain.print(_table(found, kind, bits))
    for row in found.rows:
        if row.precision_new is None:
            tell(f"{row.name} is not defined here: {row.note}")
    _print_bytes(found)
    tell(
        f"vectors themselves, Euclidean: precision@{settings.k} {found.euclidean_new:.3f} among new items, "
        f"{found.euclidean_seen:.3f} among seen ones"
    )
    for one, other in found.same_codes:
        tell(f"warning: {one} and {other} gave the same codes")


def _print_bytes(found: Comparison) -> None:
    from ilhash.experiments.equal_bytes import losses

    if not found.byte_rows:
        return
    for n_bytes in found.settings.bytes:
        plain.print(_byte_table(found, n_bytes))
    for row in found.byte_rows:
        if not row.new:
            tell(f"{row.name} at {row.n_bytes} bytes: {row.note}")
    told = losses(found.byte_rows)
    tell("Where ILH loses at equal bytes:" if told else "At equal bytes nothing was above ILH.")
    for sentence in told:
        tell(f"  {sentence}")


def _byte_table(found: Comparison, n_bytes: int) -> Table:
    ks = found.settings.ks
    title = f"{found.data}, {n_bytes} bytes (vectors {4 * found.n_features}); *: the query stays floats"
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("method", no_wrap=True)
    heads = [f"{base if k == ks[0] else ''}@{k}" for base in ("new", "seen") for k in ks]
    for name in (*heads, "us/vec.", "sec."):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [row for row in found.byte_rows if row.new and row.n_bytes in (n_bytes, 4 * found.n_features)]
    for row in sorted(rows, key=lambda row: -row.new[ks[0]]):
        scores = [_shown(base[k], ".3f") for base in (row.new, row.seen) for k in ks]
        table.add_row(_byte_title(row), *scores, _shown(row.encode_us, ".1f"), _shown(row.seconds, ".1f"))
    return table


def _byte_title(row: ByteRow) -> str:
    own = "" if row.own_bytes == row.n_bytes else f" ({row.own_bytes})"
    return row.name + own + (" *" if row.float_query else "")


def _table(found: Comparison, kind: str, bits: int) -> Table:
    title = f"{found.data}, {bits} bits, {'linear' if kind == 'linear' else 'kernel and other'} functions"
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("method", "labels"):
        table.add_column(name, no_wrap=True)
    for name in ("new", "seen", "mAP", "sec.", "x ILHt", "all new", "seen", "sec."):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.best_first(kind, bits):
        numbers = [_shown(getattr(row, name), form) for name, form in NUMBERS.items()]
        table.add_row(plots.method_title(row), "yes" if row.supervised else "no", *numbers)
    return table


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form).removeprefix("0") or "0"
