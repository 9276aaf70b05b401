"""``ilhash engines``: what can hold codes here, and how good its approximate modes are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table as Rows
from typer import Option

import ilhash
from ilhash.cli._options import CodeBits, Table, Url
from ilhash.cli._screen import complain, errors, say, tell

engines = typer.Typer(help="Engines that hold codes: what is installed; how good a mode is.", no_args_is_help=False)


@engines.callback(invoke_without_command=True)
def listed(context: typer.Context) -> None:
    """List the engines, what is installed of them, and how to install the others."""
    if context.invoked_subcommand is not None:
        return
    table = Rows("engine", "installed", "URL", "modes")
    for entry in ilhash.engines.ENTRIES.values():
        versions = entry.versions()
        missing = f'pip install "ilhash\\[{entry.extra}]"'
        here = ", ".join(f"{name} {version}" for name, version in (versions or {}).items())
        modes = ", ".join(entry.load().modes) if versions is not None else ""
        table.add_row(entry.scheme, missing if versions is None else here or "always", entry.example, modes)
    say.print(table)
    tell("docs/engines.md: what each promises, and when to choose which; `ilhash engines check URL` measures a mode")


@engines.command("check")
def check(
    url: Url,
    codes: Annotated[Path, Option(help="Codes to ask for, .npy or shards: of queries, or of the items themselves.")],
    mode: Annotated[str | None, Option(help="The mode that is measured; default all approximate ones.")] = None,
    k: Annotated[int, Option("-k", help="How many nearest items.")] = 10,
    queries: Annotated[int, Option(help="How many of the codes are asked for, at most.")] = 200,
    bits: CodeBits = None,
    table: Table = "ilhash",
    seed: Annotated[int, Option(help="Which of the codes.")] = 0,
) -> None:
    """Measure what approximate modes of an engine miss, and save, on your own codes: warns below .99.

    The index that a mode needs is built where there is none, which can take minutes, and stays.
    """
    asked = ilhash.open_codes(codes, bits)
    rows = np.sort(np.random.default_rng(seed).permutation(len(asked))[:queries])
    some = asked.take(rows)
    with ilhash.engines.open(url, table=table, writable=False) as engine:
        engine.check_model(asked.model)
        modes = [one for one in type(engine).modes if one != "exact"] if mode is None else [mode]
    if not modes:
        tell(f"{engine.name} has no approximate mode: every search is exact")
    for one in modes:
        with errors.status(f"measuring {one}"):
            found = ilhash.engines.measure_recall(url, one, some, k, table=table)
        milliseconds = f"{1e3 * found.seconds:.2f} ms a query, exact {1e3 * found.exact_seconds:.2f}"
        tell(f"{one}: recall {found.recall:.3f} at {k} by distance over {found.n_queries} queries, {milliseconds}")
        if found.recall < ilhash.engines.ENOUGH or found.fewer:
            short = " some queries got fewer answers than there are;" if found.fewer else ""
            complain(f"[yellow]warning:[/] {one}:{short} {found.advice}")
        else:
            tell(f"{one}: {found.advice}")
