"""``ilhash pull``: codes and ids out of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Option

import ilhash
from ilhash.cli._files import check_new_file, ids_as_file
from ilhash.cli._options import ForceFiles, Table, Url
from ilhash.cli._screen import Timer, progress, tell
from ilhash.storage import write_files


def pull(
    url: Url,
    output: Annotated[Path, Option("--output", "-o", help="File for the codes, .npy.")],
    ids: Annotated[
        Path | None, Option(help="File for their ids, .npy or .txt (one per line); default beside the codes, .ids.npy.")
    ] = None,
    table: Table = "ilhash",
    force: ForceFiles = False,
) -> None:
    """Write all codes of an engine to a file, and their ids beside it, ids ascending."""
    from ilhash.encoding import store_codes

    names_file = ids or output.with_suffix(".ids.npy")
    check_new_file("--output", output, (".npy",), force=force)
    check_new_file("--ids", names_file, (".npy", ".txt"), force=force)
    names: list[Any] = []
    with ilhash.engines.open(url, table=table, writable=False) as engine, Timer() as took:
        n = engine.count()

        def blocks() -> Iterator[Any]:
            with progress("pulling", "codes") as move:
                for own, codes in engine.blocks():
                    names.append(own)
                    move(sum(map(len, names)), n)
                    yield codes

        read = list(blocks())  # what comes or goes meanwhile would make another number of rows than was counted
        total = sum(map(len, read))
        found = np.concatenate(names) if names else np.zeros(0, np.int64)
        content = ids_as_file(names_file, found)  # refused before anything is written
        store_codes(output, read, total, engine.n_bits, engine.model)
        write_files({names_file: content})
    tell(f"pulled {total:,} codes of {engine.n_bits} bits in {took}; codes in {output}, ids in {names_file}")
