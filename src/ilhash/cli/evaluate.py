"""``ilhash evaluate``: how well codes retrieve items of the same label, or that share one of several labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typer import Argument, Option

import ilhash
from ilhash import plots
from ilhash._checks import check_choice
from ilhash.cli._files import NumbersAndPicture, read_labels
from ilhash.cli._options import CodeBits, ForceFiles, NThreads, Numbers
from ilhash.cli._screen import errors, tell

ROWS_AT_ONCE = 1_000_000  # of codes in memory


def evaluate(
    codes: Annotated[Path, Argument(help="Packed codes, a .npy file or shards.")],
    labels: Annotated[str, Option(help="Labels of the codes, one each, or an indicator matrix.")],
    queries: Annotated[Path | None, Option(help="Codes of queries; without, queries are drawn.")] = None,
    query_labels: Annotated[str | None, Option(help="Labels of the queries.")] = None,
    n_queries: Annotated[int, Option(help="Queries that are drawn from the codes and taken out.")] = 1000,
    bits: CodeBits = None,
    k: Annotated[list[int] | None, Option("-k", help="Places looked at; may be given several times.")] = None,
    radius: Annotated[int, Option(help="Hamming radius.")] = 2,
    seed: Annotated[int, Option(help="Of the draw of queries.")] = 0,
    stated: Annotated[
        str | None, Option("--base", help="Printed beside the numbers: did training see the items? all, seen or new.")
    ] = None,
    n_threads: NThreads = 1,
    json_path: Numbers = None,
    plot: Annotated[Path | None, Option(help="File for a picture of the curves (.png, .pdf, .svg).")] = None,
    force: ForceFiles = False,
) -> None:
    """Measure retrieval: precision, recall and mAP, aware of ties, with bounds and a protocol hash."""
    if (queries is None) != (query_labels is None):
        raise ValueError("--queries and --query-labels must be given together, got one of them")
    if queries is not None and queries.exists() and codes.exists() and queries.samefile(codes):
        raise ValueError(f"--queries must be other items than the codes, or they find themselves, got {queries}")
    if stated is not None:
        check_choice("--base", stated, ("all", "seen", "new"))
    written = NumbersAndPicture(json_path, plot, force=force)
    base, truth = _labelled(codes, labels, bits, "--labels")
    rules: dict[str, Any] = {"k": k or [10, 100], "radius": radius}
    rules["relevance"] = "shared labels" if truth.ndim == 2 else "labels"
    protocol: ilhash.evaluation.Protocol | ilhash.evaluation.GivenQueries
    searched = np.ones(len(base), np.bool_)
    if queries is None or query_labels is None:
        protocol = ilhash.evaluation.Protocol(n_queries=n_queries, seed=seed, **rules)
        rows = protocol.split(len(base)).queries
        searched[rows] = False
        asked = base.take(rows), truth[rows]
    else:
        stored, asked_truth = _labelled(queries, query_labels, base.n_bits, "--query-labels")
        if base.model and stored.model and base.model != stored.model:
            got = f"codes of another ({stored.model[:16]}...)"
            raise ValueError(f"--queries must be of the model of the codes ({base.model[:16]}...), got {got}")
        asked = stored.read(), asked_truth
        protocol = ilhash.evaluation.GivenQueries.of(truth, asked_truth, **rules)
    with errors.status("measuring"):
        blocks = _searched_blocks(base, truth, searched)
        result = protocol.evaluate_blocks(blocks, *asked, n_bits=base.n_bits, n_threads=n_threads)
    result = replace(result, base=stated)  # codes do not tell what their model was trained on
    tell(str(result))
    title = str(result).partition("\n")[0]
    written.write(result.to_dict(), lambda: plots.curves(result.histograms, title))


def _labelled(
    path: Path, labels: str, bits: int | None, option: str
) -> tuple[ilhash.encoding.StoredCodes, NDArray[Any]]:
    codes, truth = ilhash.open_codes(path, bits), read_labels(labels)
    if len(truth) != len(codes):
        raise ValueError(f"{option} must hold one label per code, got {len(truth)} for the {len(codes)} of {path}")
    return codes, truth


def _searched_blocks(
    codes: ilhash.encoding.StoredCodes, truth: NDArray[Any], searched: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.uint8], NDArray[Any]]]:
    """Give codes and labels of the base, shard by shard."""
    first = 0
    for block in codes.blocks(ROWS_AT_ONCE):
        rows = slice(first, first + len(block))
        yield block[searched[rows]], truth[rows][searched[rows]]
        first = rows.stop
