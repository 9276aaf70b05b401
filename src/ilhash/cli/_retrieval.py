"""What the commands around search do: index, search, evaluate, verify."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from ilhash import datasets
from ilhash.cli._screen import progress, say

__all__ = ["evaluate", "index", "search", "verify"]

ROWS_PER_ADD = 1 << 22
ROWS_SHOWN = 10

Codes = NDArray[np.uint8]


def index(codes_path: Path, output: Path, *, n_bits: int | None, ids: str | None, add: bool) -> None:
    """Write codes into a new index, or add them to one."""
    from ilhash import HammingIndex

    codes, bits = read_codes(codes_path, n_bits)
    names = None if ids is None else _read_ids(ids)
    if output.exists() and not add:
        raise ValueError(f"--output must be a new folder, got {output}, which exists; --add adds to an index")
    kind = "int" if names is None or names.dtype.kind in "iu" else "str"
    if names is not None and len(names) != len(codes):
        raise ValueError(f"--ids must name every code, got {len(names)} ids for {len(codes)} codes")
    begin = time.perf_counter()
    with _in_place(output), progress("indexing", "codes") as move:
        folder = output if output.exists() else _unfinished(output)
        with HammingIndex.open(folder, n_bits=bits, ids=kind) as made:
            for first in range(0, len(codes), ROWS_PER_ADD):
                last = min(first + ROWS_PER_ADD, len(codes))
                made.add(np.asarray(codes[first:last]), None if names is None else names[first:last])
                move(last, len(codes))
            n_items, n_distinct = len(made), made.n_distinct
    seconds = time.perf_counter() - begin
    say.print(
        f"indexed {len(codes):,} codes of {bits} bits in {seconds:.1f} s; {output} holds {n_items:,} items on "
        f"{n_distinct:,} distinct codes",
        highlight=False,
        soft_wrap=True,
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
) -> None:
    """Search an index and show, print or write what is found."""
    from ilhash import HammingIndex

    if output is not None and output.suffix not in (".npy", ".npz", ".json"):
        raise ValueError(f"--output must be a .npy, .npz or .json file, got {output}")
    with HammingIndex.open(path, writable=False) as opened:
        codes = _queries(queries, model, opened.n_bits)
        begin = time.perf_counter()
        if radius is None:
            hits = opened.search(codes, k, n_threads=threads)
            found = list(zip(hits.ids, hits.distances, strict=True))
        else:
            found = list(opened.within(codes, radius, n_threads=threads))
        seconds = time.perf_counter() - begin
    if output is not None:
        _write_hits(output, found)
    if as_json:
        say.print(json.dumps(_plain(found)), markup=False, highlight=False, soft_wrap=True)
        return
    _show(found)
    note = f"; written to {output}" if output else ""
    say.print(
        f"{len(codes):,} queries in {1e3 * seconds:.1f} ms, exact, ordered by (distance, id){note}",
        highlight=False,
        soft_wrap=True,
    )


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
) -> None:
    """Measure how well codes retrieve items of the same label."""
    from ilhash.evaluation import Protocol

    if (queries is None) != (query_labels is None):
        raise ValueError("--queries and --query-labels must be given together, got one of them")
    if plot is not None:
        _figure_class()  # a missing matplotlib is said before the work, not after
    codes, bits = read_codes(codes_path, n_bits)
    truth = datasets.read_vector(labels)
    if queries is None:
        protocol = Protocol(n_queries=n_queries, k=tuple(ks), radius=radius, seed=seed)
        split = protocol.split(len(codes))
        base, asked = np.asarray(codes[split.base]), np.asarray(codes[split.queries])
        base_truth, asked_truth = truth[split.base], truth[split.queries]
    else:
        base, (asked, _) = np.asarray(codes), read_codes(queries, bits)
        base_truth, asked_truth = truth, datasets.read_vector(query_labels or "")
        protocol = Protocol(n_queries=len(asked), k=tuple(ks), radius=radius, seed=seed)
    result = protocol.evaluate(base, base_truth, asked, asked_truth, n_bits=bits, n_threads=threads)
    say.print(str(result), markup=False, highlight=False, soft_wrap=True)
    if json_path is not None:
        json_path.write_text(json.dumps(result.to_dict(), indent=1) + "\n")
    if plot is not None:
        _plot(plot, (base, base_truth, np.asarray(asked), asked_truth), bits, result.protocol_hash or "", threads)
        say.print(f"curves in {plot}", highlight=False, soft_wrap=True)


def verify(path: Path) -> bool:
    """Read every byte of an index; return whether it is whole."""
    from ilhash.search import verify as verify_store

    begin = time.perf_counter()
    report = verify_store(path)
    say.print(str(report), markup=False, highlight=False, soft_wrap=True)
    say.print(f"read in {time.perf_counter() - begin:.1f} s", highlight=False)
    return report.ok


def _unfinished(output: Path) -> Path:
    return output.with_name(f".{output.name}.writing")


@contextmanager
def _in_place(output: Path) -> Iterator[None]:
    """Give a new index its name when it is complete; nothing is left of one that fails."""
    try:
        yield
        if _unfinished(output).exists():
            _unfinished(output).rename(output)
    finally:
        shutil.rmtree(_unfinished(output), ignore_errors=True)


# ------------------------------------------------------------------------------------------------ reading


def read_codes(path: Path, n_bits: int | None) -> tuple[Codes, int]:
    """Return the codes of a .npy file as a memory map, and their number of bits.

    The number stands in the .json file that ``ilhash encode`` writes beside the codes, or is given.
    """
    from ilhash import codes as packed

    if not path.exists():
        raise FileNotFoundError(f"codes must be a .npy file, got {path}, which does not exist")
    try:
        codes = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"codes must be a .npy file of uint8, got {path}: {error}") from None
    beside = path.with_name(path.name + ".json")
    stated = json.loads(beside.read_text()).get("n_bits") if beside.exists() else None
    if n_bits is not None and stated is not None and n_bits != stated:
        raise ValueError(f"--bits must be what {beside} states ({stated}), got {n_bits}")
    bits = n_bits or stated or (8 * codes.shape[1] if codes.ndim == 2 else 0)
    return packed.check(codes, bits or None, str(path)), bits


def _read_ids(source: str) -> NDArray[Any]:
    path = Path(source)
    if path.suffix == ".txt":
        return np.array(path.read_text(encoding="utf-8").split("\n")[: _n_lines(path)], object)
    return datasets.read_vector(source)


def _n_lines(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    return text.count("\n") + (not text.endswith("\n"))


def _queries(source: str, model: Path | None, n_bits: int) -> Codes:
    if model is None:
        return np.asarray(read_codes(Path(source), n_bits)[0])
    import ilhash

    loaded: Any = ilhash.load(model)
    codes: Codes = loaded.transform(datasets.read_matrix(source))
    return codes


# ------------------------------------------------------------------------------------------------ writing


def _plain(found: list[tuple[NDArray[Any], NDArray[Any]]]) -> list[dict[str, Any]]:
    return [
        {"query": q, "ids": ids.tolist(), "distances": distances.tolist()} for q, (ids, distances) in enumerate(found)
    ]


def _write_hits(path: Path, found: list[tuple[NDArray[Any], NDArray[Any]]]) -> None:
    """Write hits: .json; .npz of offsets, ids and distances; .npy of ids, with .distances.npy beside it."""
    if path.suffix == ".json":
        path.write_text(json.dumps(_plain(found)) + "\n")
        return
    ids = [_storable(ids) for ids, _ in found]
    distances = [distances for _, distances in found]
    if path.suffix == ".npz":
        offsets = np.cumsum([0, *map(len, ids)])
        np.savez(path, offsets=offsets, ids=np.concatenate(ids), distances=np.concatenate(distances))
        return
    if len({len(row) for row in ids}) > 1:
        raise ValueError(f"--output must be a .npz or .json file where queries differ in their hits, got {path}")
    np.save(path, np.array(ids))
    np.save(path.with_suffix(".distances.npy"), np.array(distances))


def _storable(ids: NDArray[Any]) -> NDArray[Any]:
    return ids.astype(str) if ids.dtype == object else ids


def _show(found: list[tuple[NDArray[Any], NDArray[Any]]]) -> None:
    table = Table("query", "hits", "nearest: id (distance)")
    for q, (ids, distances) in enumerate(found[:ROWS_SHOWN]):
        nearest = [f"{name} ({distance})" for name, distance in zip(ids[:8], distances[:8], strict=True)]
        table.add_row(str(q), f"{len(ids):,}", ", ".join(nearest) + (", ..." if len(ids) > 8 else ""))
    say.print(table)
    if len(found) > ROWS_SHOWN:
        say.print(f"and {len(found) - ROWS_SHOWN:,} more queries", highlight=False)


# ------------------------------------------------------------------------------------------------ drawing


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("--plot needs matplotlib: pip install 'ilhash[plots]'") from None
    return Figure


def _plot(path: Path, arrays: tuple[Any, Any, Any, Any], n_bits: int, protocol_hash: str, threads: int) -> None:
    """Draw precision over k with its bounds, precision over recall, and what a radius brings."""
    from ilhash.evaluation import by_label, distance_histograms

    base, base_truth, asked, asked_truth = arrays
    found = distance_histograms(base, asked, by_label(base_truth, asked_truth), n_bits=n_bits, n_threads=threads)
    curves = {ties: found.curves(ties) for ties in ("expected", "pessimistic", "optimistic")}
    figure = _figure_class()(figsize=(13, 4), layout="constrained")
    over_k, over_recall, over_radius = figure.subplots(1, 3)
    k = np.unique(np.geomspace(1, len(base), 400).astype(int))
    over_k.fill_between(k, *(curves[t].precision[k - 1] for t in ("pessimistic", "optimistic")), alpha=0.25, lw=0)
    over_k.plot(k, curves["expected"].precision[k - 1])
    over_k.set(
        xscale="log", xlabel="k", ylabel="precision@k", title="expected, between the bounds of ties", ylim=(0, 1)
    )
    over_recall.plot(curves["expected"].recall[k - 1], curves["expected"].precision[k - 1])
    over_recall.set(xlabel="recall", ylabel="precision", title="precision over recall", xlim=(0, 1), ylim=(0, 1))
    radii = np.arange(n_bits + 1)
    over_radius.plot(radii, np.nanmean(found.precision_within(radii, 0), axis=0), label="precision (empty = 0)")
    over_radius.plot(radii, np.nanmean(found.recall_within(radii), axis=0), label="recall")
    over_radius.plot(radii, found.empty_within(radii).mean(axis=0), label="share of empty results", ls="--")
    over_radius.set(xlabel="Hamming radius", title="within a radius", ylim=(0, 1))
    over_radius.legend(frameon=False)
    figure.suptitle(f"{len(asked):,} queries, {len(base):,} base items, {n_bits} bits; protocol {protocol_hash}")
    figure.savefig(path, dpi=110)
