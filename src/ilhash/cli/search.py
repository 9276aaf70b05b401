"""``ilhash search``: the nearest items of an index, shown or written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.table import Table as Rows
from typer import Argument, Option

import ilhash
from ilhash._checks import check_choice
from ilhash.cli._files import (
    HitLists,
    check_new_file,
    distances_beside,
    hits_as_files,
    hits_as_json,
    read_ids,
    read_vectors,
)
from ilhash.cli._options import ForceFiles, IndexOrUrl, NThreads, Table
from ilhash.cli._screen import Timer, errors, plain, tell
from ilhash.storage import write_files

ROWS_SHOWN = 10
HITS_SHOWN = 8
ORDERS = ("hamming", "asymmetric", "margins", "vectors")


def search(
    index: IndexOrUrl,
    queries: Annotated[str, Argument(help="Packed codes, .npy; or with --model vectors, or a dataset's name.")],
    model: Annotated[Path | None, Option(help="Model that turns vectors into codes: the one of the index.")] = None,
    k: Annotated[int, Option("-k", help="How many nearest items.")] = 10,
    radius: Annotated[int | None, Option(help="All items within this distance, instead of k.")] = None,
    order: Annotated[
        str,
        Option(
            help="hamming; asymmetric (bits weighed by the query's margins); margins (that the index keeps); or "
            "vectors (a shortlist by the items' own vectors)."
        ),
    ] = "hamming",
    vectors: Annotated[str | None, Option(help="Vectors of the items, for --order vectors.")] = None,
    ids: Annotated[str | None, Option(help="Ids of --vectors, row by row; without, ids are row numbers.")] = None,
    shortlist: Annotated[
        int | None, Option(help="Items that margins or vectors put in order; default 10 k, at least 1,000.")
    ] = None,
    n_threads: NThreads = 1,
    table: Table = "ilhash",
    output: Annotated[
        Path | None, Option("--output", "-o", help=".npy (ids; distances beside), .npz, .json or .csv.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False,
    force: ForceFiles = False,
) -> None:
    """Find the nearest items of codes (or of vectors), exactly."""
    _check(order, model, radius, vectors, ids, shortlist)
    if output is not None:
        check_new_file("--output", output, (".npy", ".npz", ".json", ".csv"), force=force)
        if output.suffix == ".npy":
            check_new_file("--output", distances_beside(output), (".npy",), force=force)
    with _opened(index, table) as opened, errors.status("searching"):
        threads = {"n_threads": n_threads} if isinstance(opened, ilhash.HammingIndex) else {}
        asked = _Queries(opened, queries, model)
        with Timer() as took:
            if radius is not None:
                found, exact = list(asked.index.within(asked.codes(), radius, **threads)), True
            else:
                hits = asked.nearest(order, k, threads, shortlist, vectors, ids)
                found, exact = list(zip(hits.ids, hits.distances, strict=True)), hits.exact
    if output is not None:
        write_files(hits_as_files(output, found))
    if as_json:
        plain.out(hits_as_json(found))
        return
    _show(found)
    how = "exact" if exact else f"{order} within a shortlist"
    note = f"; written to {output}" if output else ""
    tell(f"{len(found):,} queries in {1e3 * took.seconds:.1f} ms, {how}, ordered by (distance, id){note}")


def _opened(index: str, table: str) -> Any:
    """Open our own folder, or the engine that a URL names."""
    if ilhash.engines.is_url(index):
        return ilhash.engines.open(index, table=table, writable=False)
    return ilhash.HammingIndex.open(index, writable=False)


def _check(
    order: str, model: Path | None, radius: int | None, vectors: str | None, ids: str | None, shortlist: int | None
) -> None:
    """Refuse options that do not go together."""
    check_choice("--order", order, ORDERS)
    if order != "hamming" and model is None:
        raise ValueError(f"--order {order} must be given with --model, which knows the queries' margins, got none")
    if order != "hamming" and radius is not None:
        raise ValueError(f"--radius must be given with --order hamming, got {order}")
    if (order == "vectors") != (vectors is not None) and order != "margins":
        got = f"--order {order} {'without' if vectors is None else 'and'} --vectors"
        raise ValueError(f"--order vectors and --vectors must be given together, got {got}")
    if ids is not None and vectors is None:
        raise ValueError("--ids must be given with --vectors, whose rows they name, got --ids alone")
    if shortlist is not None and order not in ("margins", "vectors"):
        raise ValueError(f"--shortlist must be given with --order margins or vectors, got {order}")


def _searched(index: Any, made_by: Any) -> Any:
    if isinstance(index, ilhash.HammingIndex):
        return index.of_model(made_by)
    index.check_model(made_by)
    return index


class _Queries:
    """Codes, or vectors and the model of the index."""

    def __init__(self, index: Any, source: str, model: Path | None) -> None:
        self.model: Any = None if model is None else ilhash.load(model)
        if self.model is None:
            described = Path(source).is_dir() or Path(f"{source}.json").exists()
            self.stored = ilhash.open_codes(source, None if described else index.n_bits)
        # Codes of a model with some of its bits, such as the one before it was extended, are searched by these.
        self.index = _searched(index, self.stored if self.model is None else self.model)
        if self.model is not None:
            self.vectors = read_vectors(source)[0]

    def codes(self) -> Any:
        return self.stored.read() if self.model is None else self.model.transform(self.vectors)

    def nearest(
        self,
        order: str,
        k: int,
        threads: dict[str, int],
        shortlist: int | None,
        vectors: str | None,
        ids: str | None,
    ) -> Any:
        if order == "asymmetric":
            return self.index.search_asymmetric(self.model.decision_function(self.vectors), k, **threads)
        names = None if ids is None else read_ids(ids)
        if order == "margins":
            return self._by_margins(k, threads, shortlist, vectors, names)
        if vectors is None:
            return self.index.search(self.codes(), k, **threads)
        near = self.index.search(self.codes(), shortlist or max(1000, 10 * k), **threads)
        asked = np.asarray(self.vectors[:], np.float32)
        return ilhash.search.rescore(near, asked, read_vectors(vectors)[0], k, ids=names)

    def _by_margins(self, k: int, threads: dict[str, int], shortlist: int | None, vectors: str | None, ids: Any) -> Any:
        """Let margins order a shortlist: those that a folder keeps, or those of the items' vectors."""
        margins, is_folder = self.model.decision_function(self.vectors), isinstance(self.index, ilhash.HammingIndex)
        if is_folder != (vectors is None):
            rule = "without --vectors" if is_folder else "with --vectors, since an engine keeps no margins"
            raise ValueError(f"--order margins must be given {rule} here, got {vectors or 'none'}")
        if is_folder:
            return self.index.search_margins(margins, k, shortlist=shortlist, **threads)
        items = self.model.decision_function(read_vectors(str(vectors))[0])
        return self.index.search_margins(margins, items, k, ids=ids, shortlist=shortlist)


def _show(found: HitLists) -> None:
    table = Rows("query", "hits", "nearest: id (distance)")
    for q, (ids, distances) in enumerate(found[:ROWS_SHOWN]):
        shown = zip(ids[:HITS_SHOWN], distances[:HITS_SHOWN], strict=True)
        nearest = [
            f"{name} ({distance:.4g})" if distances.dtype.kind == "f" else f"{name} ({distance})"
            for name, distance in shown
        ]
        table.add_row(str(q), f"{len(ids):,}", ", ".join(nearest) + (", ..." if len(ids) > HITS_SHOWN else ""))
    plain.print(table)
    if len(found) > ROWS_SHOWN:
        tell(f"and {len(found) - ROWS_SHOWN:,} more queries")
