"""Retrieval problems: a dataset, its split, what is relevant, and how codes are measured on it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ilhash import datasets
from ilhash.evaluation import GivenQueries, Protocol, Relevance, by_label, by_neighbors, distance_histograms
from ilhash.experiments.engine.scales import Data, get_scale

SPLIT_SEED = 0  # of the draw of queries: one split for every method
INFINITE = {"infinite digits": "digits", "infinite mnist": "mnist"}
N_KS = 60

Labeled = tuple[NDArray[Any], NDArray[Any]]  # vectors and their labels


@dataclass(frozen=True, eq=False)
class Measured:
    """Means over queries at every k of the problem, one row per number of bits."""

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """What every method gets, and how it is measured."""

    X: NDArray[Any]  # base vectors, which are also what is learned from
    y: NDArray[Any] | None  # their labels; None: unsupervised
    queries: NDArray[Any]
    query_y: NDArray[Any] | None
    relevance: Relevance  # which base rows are right
    ks: NDArray[np.int64]  # neighbours retrieved, ascending
    k: int  # one of them, the headline
    protocol: str  # hash of the protocol that split and measures

    @classmethod
    def labeled(cls, base: Labeled, queries: Labeled, ks: ArrayLike, k: int, protocol: str = "") -> Problem:
        """Return the problem of vectors with labels: base rows of the label of a query are right."""
        (X, y), (asked, query_y) = base, queries
        return cls(X, y, asked, query_y, by_label(y, query_y), np.asarray(ks), k, protocol)

    @property
    def at_k(self) -> int:
        """Column of the headline k."""
        return int(np.searchsorted(self.ks, self.k))

    def measure(self, base: NDArray[np.uint8], queries: NDArray[np.uint8], bits: Sequence[int]) -> Measured:
        """Measure prefixes of packed codes; expected values over the orders of ties."""
        found = [
            distance_histograms(prefix(base, b), prefix(queries, b), self.relevance, n_bits=b).curves() for b in bits
        ]
        at = self.ks - 1
        return Measured(np.stack([one.precision[at] for one in found]), np.stack([one.recall[at] for one in found]))

    def measure_ranking(self, ranked: NDArray[Any]) -> Measured:
        """Measure lists of base rows, nearest first, (n_queries, length); NaN beyond their length."""
        hits = np.zeros(ranked.shape, np.bool_)
        relevant = np.zeros(len(self.X), np.bool_)
        n_relevant = np.empty(len(ranked))
        for query, rows in enumerate(ranked):
            own = self.relevance.rows(query)
            n_relevant[query] = len(own)
            relevant[own] = True
            hits[query] = relevant[rows]
            relevant[own] = False
        found = hits.cumsum(axis=1)[:, self.ks[self.ks <= ranked.shape[1]] - 1]
        precision, recall = (np.full((1, len(self.ks)), np.nan) for _ in range(2))
        precision[0, : found.shape[1]] = found.mean(axis=0) / self.ks[: found.shape[1]]
        with_relevant = n_relevant > 0
        recall[0, : found.shape[1]] = (found[with_relevant] / n_relevant[with_relevant, None]).mean(axis=0)
        return Measured(precision, recall)


def prefix(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return the first bits of packed codes, padded with zeros.

    Examples
    --------
    >>> prefix(np.array([[255, 255]], np.uint8), 11)
    array([[255, 224]], dtype=uint8)
    """
    out = packed[:, : -(-bits // 8)].copy()
    if bits % 8:
        out[:, -1] &= np.uint8(256 - (1 << (8 - bits % 8)))
    return out


def missing_data(data: Data) -> str:
    """Return why a dataset cannot be had, in one sentence; empty if it can."""
    name = INFINITE.get(data.source, data.source)
    known = {info.name: info.present for info in datasets.available()}
    if name not in known:
        return f"the dataset {name!r} is not known to this version of ilhash"
    try:
        if not known[name]:
            datasets.load(name)
    except FileNotFoundError as error:
        return str(error)
    return ""


@functools.lru_cache(maxsize=4)
def load_problem(scale_name: str, dataset: str, folder: Path) -> Problem:
    """Load and split one of the datasets of a scale; large made data are kept in the folder."""
    data = get_scale(scale_name).data(dataset)
    if data.source in INFINITE:
        return _infinite(data, folder)
    loaded = datasets.load(data.source)
    protocol = Protocol(
        n_queries=data.n_queries,
        k=data.k,
        n_train=data.n_base if data.n_base < len(loaded.X) - data.n_queries else None,
        seed=SPLIT_SEED,
        relevance="labels" if data.labelled else "neighbors",
        n_neighbors=None if data.labelled else data.k,
    )
    split = protocol.split(len(loaded.X))
    base = split.train  # of a reduced scale not all; what is not learned from is not searched either
    X, queries = loaded.X[base], loaded.X[split.queries]
    about = (ks_of(data), data.k, protocol.hash)
    if not data.labelled:
        return Problem(X, None, queries, None, by_neighbors(X, queries, data.k), *about)
    labels = np.asarray(loaded.y)
    return Problem.labeled((X, labels[base]), (queries, labels[split.queries]), *about)


def prepare(data: Data, folder: Path) -> None:
    """Make what workers will read, so that they need not all make it."""
    if data.source in INFINITE:
        _made(data, folder)
    else:
        datasets.load(data.source)  # what is computed from another dataset is kept by the loader


def _made(data: Data, folder: Path) -> Path:
    """Return the folder of deformed digits; it is made where it is not there."""
    path = folder / f"{data.source.replace(' ', '-')}-{data.n_base}"
    if not path.exists():
        datasets.InfiniteDigits(INFINITE[data.source], part="train").write(path, data.n_base, n_threads=-1)
    return path


def _infinite(data: Data, folder: Path) -> Problem:
    """Deformed digits; queries are made from test images where the source has some, so none has a twin in the base."""
    source = INFINITE[data.source]
    train = datasets.InfiniteDigits(source, part="train")
    held_apart = datasets.InfiniteDigits(source, part="test") if source == "mnist" else train
    X, y = train.open_written(_made(data, folder), data.n_base)
    start = 0 if held_apart is not train else data.n_base
    queries, query_y = held_apart.images(start, start + data.n_queries)
    protocol = GivenQueries.of(y, query_y, data.k)
    return Problem.labeled((X, y), (queries, query_y), ks_of(data), data.k, protocol.hash)


def ks_of(data: Data) -> NDArray[np.int64]:
    """Return the numbers of neighbours that are looked at, ascending, the headline one among them."""
    return np.unique(np.append(np.geomspace(1, data.n_base, N_KS).round().astype(np.int64), data.k))
