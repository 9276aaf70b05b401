"""Everything at equal bytes: codes by Hamming distance, and what keeps the float query (PQ, asymmetric search, floats).

Bases        training points, queries, and two bases of equal size: what training saw, and what it did not
  |
score_...    tie-aware precision@k of codes, of asymmetric search, of a quantiser, of the vectors themselves
  |
ByteRow      one method at one number of bytes, on both bases, with microseconds of encoding
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import ILH, methods
from ilhash.evaluation import Protocol, precision_at_k
from ilhash.experiments.quantizers import Quantizer, make_quantizer
from ilhash.methods import UndefinedError
from ilhash.parallel import single_threaded_blas
from ilhash.search import HammingIndex
from ilhash.vectors import nearest_rows

KS = (10, 100, 500)
QUANTIZERS = ("PQ", "PCA-PQ", "OPQ", "RaBitQ")
FLOATS = "floats"
ASYMMETRIC = ", asymmetric"  # end of the names of rows whose query keeps its margins
TIMED_ROWS = 2_000

Scores = dict[int, float]  # precision by k


@dataclass(frozen=True, eq=False)
class Bases:
    """Vectors and labels of all parts.

    Attributes
    ----------
    train, seen, new, queries : tuple of arrays (n, D) and (n,), vectors and labels; ``seen`` is a part of ``train``
    """

    train: tuple[NDArray[np.float32], NDArray[Any]]
    seen: tuple[NDArray[np.float32], NDArray[Any]]
    new: tuple[NDArray[np.float32], NDArray[Any]]
    queries: tuple[NDArray[np.float32], NDArray[Any]]

    @classmethod
    def of(cls, X: NDArray[Any], y: NDArray[Any], protocol: Protocol) -> Bases:
        """Split data as a protocol says.

        Parameters
        ----------
        X, y : arrays (n, D) and (n,)
        protocol : Protocol, with base "seen" or "new"

        Returns
        -------
        Bases
        """
        split = protocol.split(X)
        rows = (split.train, split.seen, split.new, split.queries)
        return cls(*((np.ascontiguousarray(X[part], dtype=np.float32), y[part]) for part in rows))

    @property
    def measured(self) -> dict[str, tuple[NDArray[np.float32], NDArray[Any]]]:
        """Both bases by name."""
        return {"new": self.new, "seen": self.seen}


@dataclass(frozen=True)
class ByteRow:
    """One method at one number of bytes.

    Attributes
    ----------
    name, n_bytes, own_bytes : the method, the bytes of the table, and those that it really takes
    supervised, float_query : whether it learns from labels, and whether the query stays a vector or margins
    new, seen : tie-aware precision by k among items that training did not see, and among as many that it may have
    encode_us, seconds : microseconds to encode a vector on one thread, and seconds of training
    note : why there are no numbers, or what the method warned of
    """

    name: str
    n_bytes: int
    own_bytes: int
    supervised: bool
    float_query: bool
    new: Scores = field(default_factory=dict)
    seen: Scores = field(default_factory=dict)
    encode_us: float | None = None
    seconds: float | None = None
    note: str = ""

    @property
    def ours(self) -> bool:
        """Whether it is ILH."""
        return self.name.startswith("ILH")


def models(n_points: int, seed: int) -> dict[str, Callable[[int], Any]]:
    """Return what makes each model of so many bits, as it is by default, classes and CCA with all points.

    Parameters
    ----------
    n_points, seed : int, points that may be trained on, and random_state

    Returns
    -------
    dict of str to callable; ILH once for each kind of functions
    """
    same: dict[str, Any] = {"random_state": seed}
    everything: dict[str, Any] = {"n_train": n_points, **same}
    found: dict[str, Callable[[int], Any]] = {"ILH": lambda bits: ILH(bits, **same)}
    for kind in ("kernel", "trees"):
        found[f"ILH, {kind}"] = lambda bits, kind=kind: ILH(bits, hash_function=kind, **same)  # type: ignore[misc]
    found["ITQ"] = lambda bits: methods.ITQ(bits, **same)
    found["CCAITQ"] = lambda bits: methods.CCAITQ(bits, **everything)
    found["class, ECOC"] = lambda bits: methods.ClassifierCode(bits, code="ecoc", **everything)
    found["Sign"] = lambda bits: methods.Sign(bits, **same)
    return found


def rows_at(
    bases: Bases, n_bytes: int, ks: Sequence[int] = KS, *, seed: int = 0, only: Sequence[str] | None = None
) -> Iterator[ByteRow]:
    """Train and measure everything at one number of bytes, one thread each.

    Parameters
    ----------
    bases : Bases
    n_bytes : int, of a code
    ks : sequence of int, numbers of neighbours
    seed : int, default 0, random_state of the models
    only : sequence of str, optional, names of models and quantisers; of models with asymmetric search too

    Returns
    -------
    iterator of ByteRow
    """
    for name, make in models(len(bases.train[0]), seed).items():
        if only is None or name in only:
            yield from model_rows(name, lambda make=make: make(8 * n_bytes), bases, n_bytes, ks)  # type: ignore[misc]
    for name in QUANTIZERS:
        if only is None or name in only:
            yield quantizer_row(name, bases, n_bytes, ks)


def model_rows(
    name: str, make: Callable[[], Any], bases: Bases, n_bytes: int, ks: Sequence[int] = KS
) -> Iterator[ByteRow]:
    """Train a model and measure it by Hamming distance; those that learn from labels by asymmetric search, too.

    Parameters
    ----------
    name : str, of the rows
    make : callable, returns the model
    bases, n_bytes, ks : as in :func:`rows_at`

    Returns
    -------
    iterator of ByteRow, two for what learns from labels
    """
    supervised = name not in ("ITQ", "Sign", "LSH")
    row = ByteRow(name, n_bytes, n_bytes, supervised, float_query=False)
    begin = time.perf_counter()
    try:
        with single_threaded_blas(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make().fit(*bases.train)
    except UndefinedError as error:
        yield replace(row, note=str(error))
        return
    seconds = time.perf_counter() - begin
    note = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    row = replace(row, seconds=seconds, encode_us=encode_us(lambda X: _encoded(model, X), bases.new[0]), note=note)
    codes = {base: model.transform(part[0]) for base, part in bases.measured.items()}
    asked, wanted = model.transform(bases.queries[0]), bases.queries[1]
    truth = {base: part[1] for base, part in bases.measured.items()}
    scores: dict[str, Any] = {base: score_codes(codes[base], truth[base], asked, wanted, ks) for base in codes}
    yield replace(row, **scores)
    if row.ours:
        margins = model.decision_function(bases.queries[0])
        scores = {base: score_asymmetric(codes[base], truth[base], margins, wanted, ks) for base in codes}
        yield replace(row, name=name + ASYMMETRIC, float_query=True, **scores)


def quantizer_row(name: str, bases: Bases, n_bytes: int, ks: Sequence[int] = KS) -> ByteRow:
    """Train a quantiser of faiss and measure it; where faiss is not installed, the row says how to.

    Parameters
    ----------
    name : {"PQ", "PCA-PQ", "OPQ", "RaBitQ"}
    bases, n_bytes, ks : as in :func:`rows_at`

    Returns
    -------
    ByteRow
    """
    row = ByteRow(name, n_bytes, n_bytes, supervised=False, float_query=True)
    X = bases.train[0]
    try:
        quantizer = make_quantizer(name, n_bytes, X.shape[1], len(X))
    except (UndefinedError, ImportError) as error:
        return replace(row, note=str(error))
    begin = time.perf_counter()
    with single_threaded_blas():
        quantizer.fit(X)
        seconds = time.perf_counter() - begin
        row = replace(row, own_bytes=quantizer.n_bytes, seconds=seconds, encode_us=encode_us(quantizer.encode, X))
        found = {base: score_quantizer(quantizer, *part, *bases.queries, ks) for base, part in bases.measured.items()}
    return replace(row, new=found["new"], seen=found["seen"])


def floats_row(bases: Bases, ks: Sequence[int] = KS) -> ByteRow:
    """Measure the vectors themselves.

    Parameters
    ----------
    bases, ks : as in :func:`rows_at`

    Returns
    -------
    ByteRow
    """
    scores: dict[str, Any] = {b: score_vectors(*part, *bases.queries, ks) for b, part in bases.measured.items()}
    size = 4 * bases.new[0].shape[1]
    return ByteRow(FLOATS, size, size, supervised=False, float_query=True, encode_us=0.0, seconds=0.0, **scores)


def score_codes(
    base_codes: NDArray[np.uint8], base_y: Any, query_codes: NDArray[np.uint8], query_y: Any, ks: Sequence[int]
) -> Scores:
    """Return tie-aware precision by Hamming distance.

    Parameters
    ----------
    base_codes, query_codes : uint8 arrays, packed codes
    base_y, query_y : arrays (n,) and (m,), labels
    ks : sequence of int

    Returns
    -------
    dict of int to float, precision by k; where the base has k items
    """
    ks = [k for k in ks if k <= len(base_codes)]
    return dict(zip(ks, precision_at_k(base_codes, base_y, query_codes, query_y, ks).tolist(), strict=True))


def score_asymmetric(
    base_codes: NDArray[np.uint8], base_y: Any, margins: NDArray[np.float32], query_y: Any, ks: Sequence[int]
) -> Scores:
    """Return tie-aware precision of asymmetric search: the query keeps its margins.

    Parameters
    ----------
    base_codes, base_y, query_y, ks : as in :func:`score_codes`
    margins : float32 array (m, n_bits), of the queries

    Returns
    -------
    dict of int to float, precision by k
    """

    def nearest(distinct: NDArray[np.uint8], k: int) -> NDArray[Any]:
        index = HammingIndex(distinct, n_bits=margins.shape[1])
        return np.asarray(index.search_asymmetric(margins, k=k).ids)

    return _score_distinct(base_codes, base_y, query_y, ks, nearest)


def score_quantizer(
    quantizer: Quantizer,
    base: NDArray[np.float32],
    base_y: Any,
    queries: NDArray[np.float32],
    query_y: Any,
    ks: Sequence[int],
) -> Scores:
    """Return tie-aware precision of a quantiser with float queries.

    Parameters
    ----------
    quantizer : Quantizer, trained
    base, queries : float32 arrays (n, D) and (m, D)
    base_y, query_y, ks : as in :func:`score_codes`

    Returns
    -------
    dict of int to float, precision by k
    """
    return _score_distinct(
        quantizer.encode(base), base_y, query_y, ks, lambda distinct, k: quantizer.nearest(distinct, queries, k)
    )


def score_vectors(base: Any, base_y: Any, queries: Any, query_y: Any, ks: Sequence[int]) -> Scores:
    """Return precision of Euclidean distances between the vectors themselves.

    Parameters
    ----------
    base, base_y, queries, query_y, ks : as in :func:`score_quantizer`

    Returns
    -------
    dict of int to float, precision by k
    """
    ks = [k for k in ks if k <= len(base)]
    nearest = nearest_rows(base, queries, max(ks), ranked=True)
    right = base_y[nearest] == query_y[:, None]
    return {k: float(right[:, :k].mean()) for k in ks}


def _score_distinct(
    codes: NDArray[np.uint8], base_y: Any, query_y: Any, ks: Sequence[int], nearest: Callable[..., NDArray[Any]]
) -> Scores:
    """Items of one code tie at any distance: distinct codes are searched, and what stands for each is counted."""
    distinct, group = np.unique(codes, axis=0, return_inverse=True)
    ks = [k for k in ks if k <= len(codes)]
    found = nearest(np.ascontiguousarray(distinct), min(max(ks), len(distinct)))
    return precision_of_groups(group.ravel(), base_y, found, query_y, ks)


def precision_of_groups(
    group: NDArray[Any], base_y: Any, nearest: NDArray[Any], query_y: Any, ks: Sequence[int]
) -> Scores:
    """Return expected precision where the items of a group come in any order, groups in a given one.

    Parameters
    ----------
    group : int array (n,), the group of each base item
    base_y, query_y : arrays (n,) and (m,), labels
    nearest : int array (m, g), groups of each query, nearest first, of at least max(ks) items in all
    ks : sequence of int

    Returns
    -------
    dict of int to float, precision by k

    Examples
    --------
    >>> group, labels = np.array([0, 0, 1]), np.array([7, 8, 7])
    >>> precision_of_groups(group, labels, np.array([[0, 1]]), np.array([7]), [1, 3])
    {1: 0.5, 3: 0.666...}
    """
    classes, base_class = np.unique(base_y, return_inverse=True)
    place = np.searchsorted(classes, query_y).clip(max=len(classes) - 1)
    known = classes[place] == query_y
    # Relevant items of a group are counted under one number for group and class: groups x classes may be too many.
    keys, members = np.unique(group.astype(np.int64) * len(classes) + base_class, return_counts=True)
    wanted = nearest.astype(np.int64) * len(classes) + place[:, None]
    at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    hits = np.where((keys[at] == wanted) & known[:, None], members[at], 0)
    sizes = np.bincount(group)[nearest]
    after, hits_after, queries = sizes.cumsum(axis=1), hits.cumsum(axis=1), np.arange(len(nearest))
    scores = {}
    for k in ks:
        edge = (after >= k).argmax(axis=1)
        size, right = sizes[queries, edge], hits[queries, edge]
        before, hits_before = after[queries, edge] - size, hits_after[queries, edge] - right
        scores[k] = float(((hits_before + right * (k - before) / size) / k).mean())
    return scores


def encode_us(encode: Callable[[NDArray[np.float32]], Any], X: NDArray[np.float32]) -> float:
    """Return microseconds to encode a vector, of many at once, on one thread; the least of three times.

    Parameters
    ----------
    encode : callable, takes the vectors
    X : float32 array (n, D), of which some are taken

    Returns
    -------
    float
    """
    some = np.ascontiguousarray(X[:TIMED_ROWS])
    taken = []
    with single_threaded_blas():
        for _ in range(3):
            begin = time.perf_counter()
            encode(some)
            taken.append(time.perf_counter() - begin)
    return 1e6 * min(taken) / len(some)


def _encoded(model: Any, X: NDArray[np.float32]) -> None:
    for _ in model.encode_blocks(X, n_threads=1):
        pass


def losses(rows: Sequence[ByteRow]) -> list[str]:
    """Say in a sentence each where something of as many bytes, or the vectors, is above ILH of one kind of functions.

    Parameters
    ----------
    rows : sequence of ByteRow, of one dataset

    Returns
    -------
    list of str
    """
    told = []
    for n_bytes in dict.fromkeys(row.n_bytes for row in rows if row.name != FLOATS):
        here = [row for row in rows if row.n_bytes == n_bytes and row.name != FLOATS and row.new]
        floats = [row for row in rows if row.name == FLOATS]
        for base in ("new", "seen"):
            for k in here[0].new if here else ():
                told += _loss([*here, *floats], n_bytes, base, k)
    return told


def _loss(rows: Sequence[ByteRow], n_bytes: int, base: str, k: int) -> list[str]:
    def score(row: ByteRow) -> float:
        found: Mapping[int, float] = getattr(row, base)
        return found[k]

    told, kinds = [], [row.name.removesuffix(ASYMMETRIC) for row in rows if row.ours]
    for kind in dict.fromkeys(kinds):  # each kind of functions by the better of its two searches
        best = max((row for row in rows if row.name in (kind, kind + ASYMMETRIC)), key=score)
        above = [row for row in rows if not row.ours and score(row) > score(best)]
        if above:
            shown = ", ".join(f"{row.name} {_short(score(row))}" for row in sorted(above, key=score, reverse=True))
            where = f"{n_bytes} bytes, precision@{k}, {base} items"
            told.append(f"{where}: {best.name} {_short(score(best))} loses to {shown}")
    return told


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
