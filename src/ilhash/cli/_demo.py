"""The demo: digits that come with scikit-learn, from vectors to an index in a folder, beside searches everybody has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from ilhash import ILH, HammingIndex, codes, datasets
from ilhash.cli._curves import figure_class
from ilhash.cli._screen import plain, progress, tell
from ilhash.evaluation import Evaluation, Protocol, Split
from ilhash.search import Hits, rescore

__all__ = ["run"]

KS = (10, 50, 100)
NEIGHBOURS = 10
GREY, GREEN, RED = (0.35, 0.35, 0.35), (0.16, 0.62, 0.36), (0.82, 0.29, 0.36)


class _Search(NamedTuple):
    """One way of searching: its name, what it keeps per item, what it finds, its precision at KS."""

    name: str
    bytes_per_item: int
    hits: Hits
    precision: list[float]


def run(output: Path, n_bits: int, seed: int) -> None:
    """Train, encode, index, search, measure, draw."""
    Figure = figure_class()
    digits = datasets.load("digits")
    X, y = digits.X, np.asarray(digits.y)
    protocol = Protocol(n_queries=400, k=KS, seed=seed)
    split = protocol.split(X)
    tell(f"{len(split.base):,} digits of 8 x 8 pixels, {len(split.queries)} other digits as queries")
    model = _trained(X[split.train], y[split.train], n_bits, seed)
    hashed = model.transform(X)
    folder = output / f"index-{n_bits}-bits"
    with HammingIndex.open(folder, n_bits=n_bits) as index:
        index.remove(index.ids)  # of a demo before this one
        index.add(hashed[split.base], ids=split.base)
        tell(f"{folder} holds {len(index):,} items on {index.n_distinct:,} distinct codes; it survives a crash")
        nearest = index.search(hashed[split.queries], k=max(KS))
        everything = index.search(hashed[split.queries], k=len(index))
    result = _measured(protocol, split, hashed, y, n_bits)
    tell(f"\n{result}\n")
    searches = [
        _Search("ILHt", hashed.shape[1], nearest, list(result.precision.values())),
        _rescored("ILHt, then vectors", hashed.shape[1], nearest, split, X, y),
        _random_projections(protocol, split, X, y, n_bits, seed),
        _rescored("vectors alone", 0, everything, split, X, y),
    ]
    _compare(searches)
    picture = output / "digits.png"
    figure = Figure(figsize=(19, 5), layout="constrained")
    _draw(figure, searches, split, X, y)
    figure.savefig(picture, dpi=110)
    tell(f"the first query of each digit with its nearest digits: {picture}")


def _trained(X: NDArray[Any], y: NDArray[Any], n_bits: int, seed: int) -> ILH:
    # A class has some 70 points in a bit's half of the data: the default of 100 neighbours is more than there are.
    model = ILH(n_bits=n_bits, n_similar=30, n_dissimilar=30, random_state=seed)
    with progress("training", "bits") as move:
        model.fit(X, y, progress=move)
    reports = model.bits_
    seconds = sum(sum(report.seconds.values()) for report in reports)
    tell(
        f"trained {len(reports)} independent bits on {model.n_train_} points each in {seconds:.2f} s: the z-step took "
        f"{np.mean([r.sweeps for r in reports]):.1f} sweeps, and the hash functions reproduce its bits on "
        f"{np.mean([r.accuracy for r in reports]):.1%} of their points"
    )
    return model


# ------------------------------------------------------------------------------------------------ searches


def _measured(protocol: Protocol, split: Split, hashed: NDArray[Any], y: NDArray[Any], n_bits: int) -> Evaluation:
    base, queries = split.base, split.queries
    return protocol.evaluate(hashed[base], y[base], hashed[queries], y[queries], n_bits=n_bits)


def _rescored(name: str, code_bytes: int, hits: Hits, split: Split, X: NDArray[Any], y: NDArray[Any]) -> _Search:
    ordered = rescore(hits, X[split.queries], X, k=max(KS))
    relevant = y[ordered.ids] == y[split.queries, None]
    return _Search(name, code_bytes + X[0].nbytes, ordered, [float(relevant[:, :k].mean()) for k in KS])


def _random_projections(
    protocol: Protocol, split: Split, X: NDArray[Any], y: NDArray[Any], n_bits: int, seed: int
) -> _Search:
    directions = np.random.default_rng(seed).normal(size=(X.shape[1], n_bits))
    hashed = codes.pack((X - X[split.base].mean(axis=0)) @ directions > 0)
    index = HammingIndex(hashed[split.base], n_bits=n_bits, ids=split.base)
    result = _measured(protocol, split, hashed, y, n_bits)
    hits = index.search(hashed[split.queries], k=NEIGHBOURS)
    return _Search("random projections", hashed.shape[1], hits, list(result.precision.values()))


def _compare(searches: list[_Search]) -> None:
    table = Table("search", "bytes", *(f"precision@{k}" for k in KS))
    for search in searches:
        table.add_row(search.name, str(search.bytes_per_item), *(f"{value:.3f}" for value in search.precision))
    plain.print(table)
    tell(f"then vectors: the {max(KS)} nearest in Hamming space, put in the order of their pixels")


# ------------------------------------------------------------------------------------------------ picture


def _draw(figure: Any, searches: list[_Search], split: Split, X: NDArray[Any], y: NDArray[Any]) -> None:
    # The first query of each digit, whatever comes of it: a picture of chosen queries would prove nothing.
    labels = y[split.queries]
    shown = [int(np.flatnonzero(labels == digit)[0]) for digit in np.unique(labels)]
    for axes, search in zip(figure.subplots(1, len(searches)), searches, strict=True):
        lines = [_line(split.queries[q], search.hits.ids[q, :NEIGHBOURS], X, y) for q in shown]
        axes.imshow(np.concatenate(lines), interpolation="nearest")
        axes.set(xticks=[], yticks=[], frame_on=False)
        axes.set_title(
            f"{search.name}\n{search.bytes_per_item} bytes, precision@{KS[0]} {search.precision[0]:.3f}", fontsize=11
        )


def _line(query: int, nearest: NDArray[Any], X: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return the picture of a query and of what was found: green where the digit is the same, red where it is not."""
    found = [_tile(X[row], GREEN if y[row] == y[query] else RED) for row in nearest]
    return np.concatenate([_tile(X[query], GREY), np.ones((40, 8, 3)), *found], axis=1)


def _tile(pixels: NDArray[Any], colour: tuple[float, float, float]) -> NDArray[Any]:
    tile = np.ones((40, 40, 3))
    tile[1:-1, 1:-1] = colour
    tile[4:-4, 4:-4] = np.kron(1.0 - pixels.reshape(8, 8, 1) / 16.0, np.ones((4, 4, 1)))
    return tile
