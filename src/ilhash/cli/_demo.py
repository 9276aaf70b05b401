"""The demo: ILHt on the digits that come with scikit-learn, against two searches that everybody has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from ilhash import ILH, codes, datasets, evaluation
from ilhash.cli._screen import progress, say

__all__ = ["run"]

N_QUERIES = 400
KS = (10, 50, 100)
NEIGHBOURS = 12


@dataclass(frozen=True)
class _Search:
    """Distances of every query to every base point under one way of searching, and its precision at KS."""

    name: str
    bytes_per_item: int
    distances: NDArray[Any]
    precision: NDArray[np.float64]


def run(output: Path, n_bits: int, seed: int) -> None:
    """Train, compare, draw."""
    digits = datasets.load("digits")
    order = np.random.default_rng(seed).permutation(len(digits.X))
    queries, base = order[:N_QUERIES], order[N_QUERIES:]
    X, y = digits.X, digits.y
    if y is None:
        raise ValueError("the digits must have labels, got none")
    say.print(f"{len(base):,} digits of 8 x 8 pixels, {len(queries)} other digits as queries", highlight=False)
    # A class has some 70 points in a bit's half of the data: the default of 100 neighbours is more than there are.
    model = ILH(n_bits=n_bits, n_similar=30, n_dissimilar=30, random_state=seed)
    with progress("training", "bits") as move:
        model.fit(X[base], y[base], progress=move)
    _tell(model)
    hashed = model.transform(X)
    searches = [
        _hamming("ILHt", hashed, base, queries, y),
        _hamming("sign of random projections", _random_projections(X, base, n_bits, seed), base, queries, y),
        _euclidean(X, base, queries, y),
    ]
    _compare(searches)
    picture = output / "digits.png"
    output.mkdir(parents=True, exist_ok=True)
    _draw(picture, digits, base, queries, searches)
    say.print(f"the first query of each digit with its nearest digits: {picture}", highlight=False, soft_wrap=True)


def _tell(model: ILH) -> None:
    reports = model.bits_
    seconds = sum(sum(report.seconds.values()) for report in reports)
    say.print(
        f"trained {len(reports)} independent bits on {model.n_train_} points each in {seconds:.2f} s: the z-step took "
        f"{np.mean([r.sweeps for r in reports]):.1f} sweeps, and the hash functions reproduce its bits on "
        f"{np.mean([r.accuracy for r in reports]):.1%} of their points",
        highlight=False,
        soft_wrap=True,
    )


def _random_projections(X: NDArray[Any], base: NDArray[Any], n_bits: int, seed: int) -> NDArray[np.uint8]:
    directions = np.random.default_rng(seed).normal(size=(X.shape[1], n_bits))
    return codes.pack((X - X[base].mean(axis=0)) @ directions > 0)


def _hamming(
    name: str, hashed: NDArray[np.uint8], base: NDArray[Any], queries: NDArray[Any], y: NDArray[Any]
) -> _Search:
    precision = evaluation.precision_at_k(hashed[base], y[base], hashed[queries], y[queries], KS)
    distances = evaluation.hamming_distances(hashed[queries], hashed[base])
    return _Search(name, hashed.shape[1], distances, precision)


def _euclidean(X: NDArray[Any], base: NDArray[Any], queries: NDArray[Any], y: NDArray[Any]) -> _Search:
    distances = np.linalg.norm(X[queries][:, None, :] - X[base][None, :, :], axis=2)
    nearest = y[base][np.argsort(distances, axis=1, kind="stable")]
    hits = np.cumsum(nearest == y[queries][:, None], axis=1)
    return _Search(
        "raw vectors, Euclidean", 4 * X.shape[1], distances, np.array([hits[:, k - 1].mean() / k for k in KS])
    )


def _compare(searches: list[_Search]) -> None:
    table = Table("search", "bytes per item", *(f"precision@{k}" for k in KS))
    for search in searches:
        table.add_row(search.name, str(search.bytes_per_item), *(f"{value:.3f}" for value in search.precision))
    say.print(table)


def _draw(
    path: Path, digits: datasets.Dataset, base: NDArray[Any], queries: NDArray[Any], searches: list[_Search]
) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("the picture of the demo needs matplotlib: pip install 'ilhash[plots]'") from None
    y = np.asarray(digits.y)
    # The first query of each digit, whatever comes of it: a picture of chosen queries would prove nothing.
    shown = [int(np.flatnonzero(y[queries] == digit)[0]) for digit in np.unique(y[queries])]
    figure = Figure(figsize=(15, 1.0 + 0.5 * len(shown)), layout="constrained")
    parts = figure.subfigures(1, len(searches), wspace=0.03)
    for part, search in zip(np.atleast_1d(np.asarray(parts)), searches, strict=True):
        part.suptitle(
            f"{search.name}\n{search.bytes_per_item} bytes, precision@{KS[0]} {search.precision[0]:.2f}",
            fontsize=11,
        )
        axes = part.subplots(len(shown), NEIGHBOURS + 1)
        for row, query in enumerate(shown):
            nearest = base[np.argsort(search.distances[query], kind="stable")[:NEIGHBOURS]]
            for column, item in enumerate([queries[query], *nearest]):
                colour = "#555555" if column == 0 else "#2a9d5c" if y[item] == y[queries[query]] else "#d1495b"
                _show(axes[row, column], digits.X[item], colour, 3.0 if column == 0 else 1.6)
    figure.savefig(path, dpi=110)


def _show(axes: Any, pixels: NDArray[Any], colour: str, width: float) -> None:
    axes.imshow(pixels.reshape(8, 8), cmap="gray_r", interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=colour, linewidth=width)
