"""``ilhash search``: the nearest items of an index, shown or written."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from typer import Argument, Option

import ilhash
from ilhash.cli._files import HitLists, check_new_file, distances_beside, hits_as_files, hits_as_json, read_vectors
from ilhash.cli._options import ForceFiles, Index, NThreads
from ilhash.cli._screen import Timer, errors, plain, tell
from ilhash.storage import write_files

ROWS_SHOWN = 10
HITS_SHOWN = 8


def search(
    index: Index,
    queries: Annotated[str, Argument(help="Packed codes, .npy; or with --model vectors, or a dataset's name.")],
    model: Annotated[Path | None, Option(help="Model that turns vectors into codes.")] = None,
    k: Annotated[int, Option("-k", help="How many nearest items.")] = 10,
    radius: Annotated[int | None, Option(help="All items within this distance, instead of k.")] = None,
    n_threads: NThreads = 1,
    output: Annotated[
        Path | None, Option("--output", "-o", help=".npy (ids; distances beside), .npz or .json.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False,
    force: ForceFiles = False,
) -> None:
    """Find the nearest items of codes (or of vectors), exactly."""
    if output is not None:
        check_new_file("--output", output, (".npy", ".npz", ".json"), force=force)
        if output.suffix == ".npy":
            check_new_file("--output", distances_beside(output), (".npy",), force=force)
    with ilhash.HammingIndex.open(index, writable=False) as opened, errors.status("searching"):
        codes = _queries(queries, model, opened.n_bits)
        with Timer() as took:
            found = _hits(opened, codes, k, radius, n_threads)
    if output is not None:
        write_files(hits_as_files(output, found))
    if as_json:
        plain.out(hits_as_json(found))
        return
    _show(found)
    note = f"; written to {output}" if output else ""
    tell(f"{len(codes):,} queries in {1e3 * took.seconds:.1f} ms, exact, ordered by (distance, id){note}")


def _queries(source: str, model: Path | None, n_bits: int) -> NDArray[np.uint8]:
    if model is None:
        return ilhash.open_codes(source, n_bits).read()
    loaded: Any = ilhash.load(model)
    if len(loaded.functions_) != n_bits:
        raise ValueError(f"--model must have the {n_bits} bits of the index, got {len(loaded.functions_)}")
    codes: NDArray[np.uint8] = loaded.transform(read_vectors(source)[0])
    return codes


def _hits(index: Any, codes: NDArray[np.uint8], k: int, radius: int | None, n_threads: int) -> HitLists:
    if radius is not None:
        return list(index.within(codes, radius, n_threads=n_threads))
    hits = index.search(codes, k, n_threads=n_threads)
    return list(zip(hits.ids, hits.distances, strict=True))


def _show(found: HitLists) -> None:
    table = Table("query", "hits", "nearest: id (distance)")
    for q, (ids, distances) in enumerate(found[:ROWS_SHOWN]):
        shown = zip(ids[:HITS_SHOWN], distances[:HITS_SHOWN], strict=True)
        nearest = [f"{name} ({distance})" for name, distance in shown]
        table.add_row(str(q), f"{len(ids):,}", ", ".join(nearest) + (", ..." if len(ids) > HITS_SHOWN else ""))
    plain.print(table)
    if len(found) > ROWS_SHOWN:
        tell(f"and {len(found) - ROWS_SHOWN:,} more queries")
