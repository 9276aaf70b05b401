"""What the commands around search do: index, search, evaluate, verify."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from ilhash import datasets
from ilhash.cli._files import (
    HitLists,
    check_new_file,
    distances_beside,
    hits_as_files,
    hits_as_json,
    read_codes,
    read_ids,
    write_files,
)
from ilhash.cli._screen import plain, tell, waiting
from ilhash.cli._work import read_vectors

__all__ = ["evaluate", "index", "search", "verify"]

ROWS_SHOWN = 10
HITS_SHOWN = 8

Codes = NDArray[np.uint8]


def index(codes_path: Path, output: Path, *, n_bits: int | None, ids: str | None, add: bool) -> None:
    """Write codes into a new index, or add them to one; all of them or none."""
    from ilhash import HammingIndex

    if output.exists() and not add:
        raise ValueError(f"--output must be a new folder, got {output}, which exists; --add adds to an index")
    names = None if ids is None else read_ids(ids)
    begin = time.perf_counter()
    with waiting("indexing"):
        if add:
            with HammingIndex.open(output) as made:
                if n_bits not in (None, made.n_bits):
                    raise ValueError(f"--bits must be that of the index ({made.n_bits}), got {n_bits}")
                codes, bits = read_codes(codes_path, made.n_bits)
                made.add(codes, names)
        else:
            codes, bits = read_codes(codes_path, n_bits)
            made = HammingIndex(codes, n_bits=bits, ids=names)
            made.save(output)
    seconds = time.perf_counter() - begin
    tell(
        f"indexed {len(codes):,} codes of {bits} bits in {seconds:.1f} s; {output} holds {len(made):,} items on "
        f"{made.n_distinct:,} distinct codes"
    )


def search(
    path: Path,
    queries: str,
    *,
    model: Path | None,
    k: int,
    radius: int | None,
    threads: int,
    output: Path | None,
    as_json: bool,
    force: bool,
) -> None:
    """Search an index and show, print or write what is found."""
    from ilhash import HammingIndex

    if output is not None:
        check_new_file("--output", output, (".npy", ".npz", ".json"), force=force)
        if output.suffix == ".npy":
            check_new_file("--output", distances_beside(output), (".npy",), force=force)
    with HammingIndex.open(path, writable=False) as opened, waiting("searching"):
        codes = _queries(queries, model, opened.n_bits)
        begin = time.perf_counter()
        found: HitLists
        if radius is None:
            hits = opened.search(codes, k, n_threads=threads)
            found = list(zip(hits.ids, hits.distances, strict=True))
        else:
            found = list(opened.within(codes, radius, n_threads=threads))
        seconds = time.perf_counter() - begin
    if output is not None:
        write_files(hits_as_files(output, found))
    if as_json:
        plain.out(hits_as_json(found))
        return
    _show(found)
    note = f"; written to {output}" if output else ""
    tell(f"{len(codes):,} queries in {1e3 * seconds:.1f} ms, exact, ordered by (distance, id){note}")


def _queries(source: str, model: Path | None, n_bits: int) -> Codes:
    if model is None:
        return read_codes(Path(source), n_bits)[0]
    import ilhash

    loaded: Any = ilhash.load(model)
    if len(loaded.functions_) != n_bits:
        raise ValueError(f"--model must have the {n_bits} bits of the index, got {len(loaded.functions_)}")
    codes: Codes = loaded.transform(read_vectors(source)[0])
    return codes


def _show(found: HitLists) -> None:
    table = Table("query", "hits", "nearest: id (distance)")
    for q, (ids, distances) in enumerate(found[:ROWS_SHOWN]):
        shown = zip(ids[:HITS_SHOWN], distances[:HITS_SHOWN], strict=True)
        nearest = [f"{name} ({distance})" for name, distance in shown]
        table.add_row(str(q), f"{len(ids):,}", ", ".join(nearest) + (", ..." if len(ids) > HITS_SHOWN else ""))
    plain.print(table)
    if len(found) > ROWS_SHOWN:
        tell(f"and {len(found) - ROWS_SHOWN:,} more queries")


def evaluate(
    codes_path: Path,
    labels: str,
    *,
    queries: Path | None,
    query_labels: str | None,
    n_queries: int,
    n_bits: int | None,
    ks: list[int],
    radius: int,
    seed: int,
    threads: int,
    json_path: Path | None,
    plot: Path | None,
    force: bool,
) -> None:
    """Measure how well codes retrieve items of the same label, or that share one of several labels."""
    from ilhash.cli import _curves
    from ilhash.evaluation import GivenQueries, Protocol, by_label, by_shared_labels, distance_histograms

    if (queries is None) != (query_labels is None):
        raise ValueError("--queries and --query-labels must be given together, got one of them")
    if queries is not None and queries.exists() and codes_path.exists() and queries.samefile(codes_path):
        raise ValueError(f"--queries must be other items than the codes, or they find themselves, got {queries}")
    if json_path is not None:
        check_new_file("--json", json_path, (".json",), force=force)
    if plot is not None:
        check_new_file("--plot", plot, _curves.PICTURES, force=force)
        _curves.figure_class()  # a missing matplotlib is said before the work, not after
    base, base_truth, bits = _labelled(codes_path, labels, n_bits, "--labels")
    several = base_truth.ndim == 2
    rules: dict[str, Any] = {"k": ks, "radius": radius, "relevance": "shared labels" if several else "labels"}
    protocol: Protocol | GivenQueries
    if queries is None or query_labels is None:
        protocol = Protocol(n_queries=n_queries, seed=seed, **rules)
        split = protocol.split(base)
        asked, asked_truth = base[split.queries], base_truth[split.queries]
        base, base_truth = base[split.base], base_truth[split.base]
    else:
        asked, asked_truth, _ = _labelled(queries, query_labels, bits, "--query-labels")
        protocol = GivenQueries.of(base_truth, asked_truth, **rules)
    n_threads = os.cpu_count() or 1 if threads == -1 else threads
    with waiting("measuring"):
        result = protocol.evaluate(base, base_truth, asked, asked_truth, n_bits=bits, n_threads=n_threads)
    tell(str(result))
    files = {}
    if json_path is not None:
        files[json_path] = json.dumps(result.to_dict(), indent=1, allow_nan=False).encode() + b"\n"
    if plot is not None:
        relevance = (by_shared_labels if several else by_label)(base_truth, asked_truth)
        found = distance_histograms(base, asked, relevance, n_bits=bits, n_threads=n_threads)
        title = str(result).partition("\n")[0]
        files[plot] = _curves.picture(_curves.curves(found, title), plot.suffix)
    write_files(files)
    if files:
        tell(f"written: {', '.join(map(str, files))}")


def _labelled(path: Path, labels: str, n_bits: int | None, option: str) -> tuple[Codes, NDArray[Any], int]:
    codes, bits = read_codes(path, n_bits)
    truth = datasets.read_vector(labels)
    if len(truth) != len(codes):
        raise ValueError(f"{option} must hold one label per code, got {len(truth)} for the {len(codes)} of {path}")
    return codes, truth, bits


def verify(path: Path) -> bool:
    """Read every byte of an index; return whether it is whole."""
    from ilhash.search import verify as verify_store

    begin = time.perf_counter()
    with waiting("reading"):
        report = verify_store(path)
    tell(f"{report}\nread in {time.perf_counter() - begin:.1f} s")
    return report.ok
