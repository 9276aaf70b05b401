"""All methods on one dataset under one protocol: precision, seconds of training, and the ratio to ILHt's seconds.

Half of the points that are no queries are never trained on: precision is measured among these new items, and among as
many that training may have seen, whose codes may carry their labels.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import methods
from ilhash._checks import check_count
from ilhash._labels import labels_array, missing_labels, plain_labels
from ilhash.evaluation import Evaluation, Protocol, Split
from ilhash.experiments.engine.run import Progress
from ilhash.experiments.equal_bytes import KS, QUANTIZERS, Bases, ByteRow, floats_row, model_rows, models, quantizer_row
from ilhash.experiments.time_left import TimeLeft, expected_seconds
from ilhash.methods import UndefinedError
from ilhash.parallel import single_threaded_blas
from ilhash.vectors import nearest_rows

REFERENCE = "ILHt"
BYTES = "bytes"  # the table at equal bytes, whose rows are of another kind


@dataclass(frozen=True)
class Entry:
    """A row that a table is to have."""

    method: str  # "ILH", a name of ilhash.methods, or "Mix"
    parameters: dict[str, Any] = field(default_factory=dict)  # what differs from the method's defaults
    # Also trained on as many points as ILHt sees in all its bits? Not where it would take many minutes (a coupled
    # graph, all pairs, an SVM per bit), nor twice for the same classifier.
    on_all: bool = True
    one_per_class: bool = False  # whether it has as many bits as there are classes, whatever the others have
    reproduced: bool = True  # whether it has cells in ``ilhash reproduce``, whose names must not change
    families: tuple[str, ...] = ()  # of a mix, which share the bits; ILH has one more where they are odd

    def make(self, n_bits: int, n_train: int, n_per_bit: int, seed: int, reference: Any) -> Any:
        """Return the estimator; ``reference`` is the fitted ILHt, which KSHcut-ILHt begins with.

        ILH is trained on ``n_per_bit`` points for each bit, other methods on ``n_train`` for all.
        """
        from ilhash import ILH, Mix

        if self.families:
            shares = self._shares(n_bits)
            return Mix([Entry(kind).make(shares[kind], n_train, n_per_bit, seed, None) for kind in self.families])
        kind = ILH if self.method == "ILH" else methods.get(self.method)
        n_train = n_per_bit if kind is ILH else n_train
        chosen = {name: reference if value == REFERENCE else value for name, value in self.parameters.items()}
        return kind(n_bits=n_bits, n_train=n_train, random_state=seed, **chosen)

    def _shares(self, n_bits: int) -> dict[str, int]:
        if n_bits < len(self.families):
            raise UndefinedError(f"n_bits must be at least {len(self.families)} for a mix, got {n_bits}")
        return {
            kind: n_bits * (place + 1) // len(self.families) - n_bits * place // len(self.families)
            for place, kind in enumerate(reversed(self.families))
        }

    def expected_seconds(self, n_bits: int, n_train: int, n_per_bit: int) -> float:
        """Return about what training takes."""
        if self.families:
            half = n_bits // len(self.families)
            return sum(Entry(kind).expected_seconds(half, n_train, n_per_bit) for kind in self.families)
        own = n_per_bit if self.method == "ILH" else n_train
        return expected_seconds(self.method, self.parameters, n_bits, own)


_KERNEL = {"hash_function": "kernel"}
_TREES = {"hash_function": "trees"}

TABLES: dict[str, dict[str, Entry]] = {
    "linear": {
        REFERENCE: Entry("ILH"),
        "ILHi": Entry("ILH", {"diversity": "i"}, on_all=False),
        "ILHt + ITQ": Entry("Mix", families=("ILH", "ITQ")),
        "ILHt + CCAITQ": Entry("Mix", families=("ILH", "CCAITQ")),
        "Sign": Entry("Sign"),
        "LSH": Entry("LSH"),
        "TPCA": Entry("TPCA"),
        "BaggedTPCA": Entry("BaggedTPCA"),
        "ITQ": Entry("ITQ"),
        "OrthogonalProjection": Entry("OrthogonalProjection"),
        "BA": Entry("BA", on_all=False),
        "CCAITQ": Entry("CCAITQ"),
        "STH": Entry("STH", on_all=False),
        "SPLH": Entry("SPLH"),
        "MLH": Entry("MLH"),
        "KSHcut": Entry("KSHcut", on_all=False),
        "KSHcut-ILHt": Entry("KSHcut", {"init": REFERENCE}, on_all=False),
        "class, 1-hot": Entry("ClassifierCode", {"code": "one-hot"}, on_all=False, one_per_class=True),
        "class, ECOC": Entry("ClassifierCode", {"code": "ecoc"}),
        "class, scores": Entry("ClassifierCode", {"code": "scores"}, on_all=False),
    },
    "kernel": {
        REFERENCE: Entry("ILH", _KERNEL),
        "ILHt, private centres": Entry("ILH", {**_KERNEL, "centers": "private"}),
        "SH": Entry("SH"),
        "AGH": Entry("AGH"),
        "STH": Entry("STH", _KERNEL, on_all=False),
        "BRE": Entry("BRE", on_all=False),
        "KSH": Entry("KSH", on_all=False),
        "KSH, 100 + 100": Entry("KSH", {"n_pairs": 100}, on_all=False, reproduced=False),
        "KSHcut": Entry("KSHcut", _KERNEL, on_all=False),
        "KSHcut-ILHt": Entry("KSHcut", {**_KERNEL, "init": REFERENCE}, on_all=False),
        "FastHash": Entry("FastHash", on_all=False),
        "SDH": Entry("SDH"),
        "class, ECOC": Entry("ClassifierCode", {**_KERNEL, "code": "ecoc"}),
        "class, scores": Entry("ClassifierCode", {**_KERNEL, "code": "scores"}),
        "ILHt, trees": Entry("ILH", _TREES, reproduced=False),
        "class, ECOC, trees": Entry("ClassifierCode", {**_TREES, "code": "ecoc"}, reproduced=False),
    },
}


@dataclass(frozen=True)
class Settings:
    """What is fixed for all methods.

    Attributes
    ----------
    bits : numbers of bits; in the table at equal bytes so many bytes, rounded up, as hold them
    n_train : N of every method; for ILHt the points of each bit; fewer where there are fewer than 2 N points
    n_queries : drawn at random and taken out of the base; at most a sixth of the points
    n_new : points that are never trained on; None: half of those that are no queries
    k : neighbours looked at; at most the mean size of a class in a base
    ks : neighbours looked at in the table at equal bytes, likewise
    seed : of the queries, and random_state of every method
    on_all : whether methods are also trained on as many points as ILHt sees in all
    """

    bits: tuple[int, ...] = (32, 64)
    n_train: int = 5_000
    n_queries: int = 2_000
    k: int = 500
    seed: int = 0
    on_all: bool = True
    n_new: int | None = None
    ks: tuple[int, ...] = KS

    def __post_init__(self) -> None:
        for bits in self.bits:
            check_count("bits", bits)
        for k in self.ks:
            check_count("ks", k)
        for name in ("n_train", "n_queries", "k", "n_new"):
            if name != "n_new" or self.n_new is not None:
                check_count(name, getattr(self, name))

    def for_data(self, y: NDArray[Any]) -> Settings:
        """Return what these data can bear.

        Parameters
        ----------
        y : array (n,), labels

        Returns
        -------
        Settings
        """
        n_queries = min(self.n_queries, len(y) // 6)
        n_new = (len(y) - n_queries) // 2 if self.n_new is None else self.n_new
        n_known = len(y) - n_queries - n_new
        if n_known < 2:
            raise ValueError(f"n_new must leave 2 of the {len(y) - n_queries} points to learn from, got {n_new}")
        n_base = min(n_new, n_known)
        n_train, most = max(2, min(self.n_train, n_known // 2)), max(1, n_base // len(np.unique(y)))
        ks = tuple(sorted({min(k, most) for k in self.ks}))
        return replace(self, n_train=n_train, n_queries=n_queries, k=min(self.k, most), n_new=n_new, ks=ks)

    @property
    def bytes(self) -> tuple[int, ...]:
        """Numbers of bytes."""
        return tuple(dict.fromkeys(-(-bits // 8) for bits in self.bits))


@dataclass(frozen=True)
class Row:
    """One method at one number of bits.

    Attributes
    ----------
    table, name : where the row stands, and the method
    supervised : whether it learns from labels
    bits, own_bits : of the table, and of the method, which differ for one-hot codes
    n_train : points that it was trained on, ILHt for each bit
    precision_new, map_new : tie-aware precision@k and mean average precision among items that training did not see;
        None where the method is not defined
    precision_seen : precision@k among as many items that training may have seen
    seconds, ratio : of training on one thread, and that in units of ILHt's with the same table's functions
    n_all, precision_all_new, precision_all_seen, seconds_all : the same, trained on as many points as ILHt sees in all
    note : what the method warned of, or why it is not defined
    """

    table: str
    name: str
    supervised: bool
    bits: int
    own_bits: int
    n_train: int
    precision_new: float | None = None
    precision_seen: float | None = None
    map_new: float | None = None
    seconds: float | None = None
    ratio: float | None = None
    n_all: int | None = None
    precision_all_new: float | None = None
    precision_all_seen: float | None = None
    seconds_all: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    data, n_base, n_features : name of the data, points of each of the two bases, and their dimension
    n_known : points that may be trained on
    settings, protocol_hash, protocol_hash_seen : what was fixed, and the fingerprints of searching new and seen items
    rows : a row for every method, table and number of bits
    byte_rows : rows at equal bytes, where that table was wanted; the last is that of the vectors
    same_codes : pairs of rows whose codes of the base are equal, byte for byte: two names for one thing
    euclidean_new, euclidean_seen : precision@k of searching the vectors themselves
    """

    data: str
    n_base: int
    n_features: int
    n_known: int
    settings: Settings
    protocol_hash: str
    protocol_hash_seen: str
    rows: list[Row]
    byte_rows: list[ByteRow]
    same_codes: list[tuple[str, str]]
    euclidean_new: float
    euclidean_seen: float

    def best_first(self, table: str, bits: int) -> list[Row]:
        """Return the rows of one table at one number of bits.

        Parameters
        ----------
        table : {"linear", "kernel"}
        bits : int

        Returns
        -------
        list of Row, highest precision among new items first
        """
        rows = [row for row in self.rows if row.table == table and row.bits == bits]
        return sorted(rows, key=lambda row: -1.0 if row.precision_new is None else row.precision_new, reverse=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and dictionaries, for JSON.

        Returns
        -------
        dict
        """
        return asdict(self)


def compare(
    data: str,
    X: NDArray[Any],
    y: NDArray[Any],
    settings: Settings | None = None,
    *,
    tables: Sequence[str] = (*TABLES, BYTES),
    only: Sequence[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Train every method on the same points, one thread each, and measure all under one protocol.

    Parameters
    ----------
    data : str, name of the data, for titles
    X, y : arrays (n, D) and (n,), vectors and one label each; points whose label is None or NaN are left out
    settings : Settings, optional, what is fixed; default N = 5,000, 32 and 64 bits, precision@500
    tables : sequence of {"linear", "kernel", "bytes"}, default all; the last sets everything side by side at equal
        bytes
    only : sequence of str, optional
        Names of the rows wanted; ILHt, which times are measured against, is always there (at equal bytes ILH is).
        Methods that ``ilhash.methods.register`` made known have rows in the first table.
    progress : callable, optional
        Called with a Progress before each method and at the end: ``current`` is the method that is running, and
        ``seconds_left`` counts with how long the methods so far took, the same ones with fewer bits first of all.

    Returns
    -------
    Comparison
        A row for every method and number of bits; without numbers where the method is not defined on these data
        (:class:`ilhash.methods.UndefinedError`). Every other error is raised.
    """
    judged = ~missing_labels(labels_array(y))
    X, y = X[judged], plain_labels(labels_array(y)[judged], "y")
    settings = (settings or Settings()).for_data(y)
    rules: dict[str, Any] = {
        "n_queries": settings.n_queries,
        "k": settings.k,
        "seed": settings.seed,
        "n_new": settings.n_new,
    }
    protocol, of_seen = Protocol(**rules, base="new"), Protocol(**rules, base="seen")
    split = protocol.split(X)
    bench = _Bench(X, y, protocol, split, settings)
    known = list(dict.fromkeys([*(name for table in TABLES for name in _entries(table)), *_byte_names()]))
    unknown = set(only or ()) - set(known)
    if unknown:
        raise ValueError(f"methods must be among {', '.join(known)}, got {', '.join(sorted(unknown))}")
    wanted = [(table, bits, _chosen(table, only)) for table in tables if table != BYTES for bits in settings.bits]
    report = progress or (lambda now: None)
    rows = _rows(bench, wanted, report)
    byte_rows = _byte_rows(Bases.of(X, y, protocol), settings, only, report) if BYTES in tables else []
    queries = X[split.queries], y[split.queries]
    euclidean = (euclidean_precision(X[b], y[b], *queries, settings.k) for b in (split.new, split.seen))
    hashes = protocol.hash, of_seen.hash
    sizes = len(split.base), X.shape[1], len(split.train)
    return Comparison(data, *sizes, settings, *hashes, rows, byte_rows, bench.same_codes(), *euclidean)


def _byte_names() -> list[str]:
    return [*models(2, 0), *QUANTIZERS]


def _byte_rows(
    bases: Bases, settings: Settings, only: Sequence[str] | None, progress: Callable[[Progress], None]
) -> list[ByteRow]:
    rows: list[ByteRow] = []
    makers = models(len(bases.train[0]), settings.seed)
    wanted = [name for name in _byte_names() if only is None or name in only or name == "ILH"]
    work = [(n_bytes, name) for n_bytes in settings.bytes for name in wanted]
    begin = time.perf_counter()
    for done, (n_bytes, name) in enumerate(work):
        left = (time.perf_counter() - begin) / max(done, 1) * (len(work) - done)
        progress(Progress(done, len(work), left, f"{name}, {n_bytes} bytes"))
        if name in makers:
            rows += model_rows(name, partial(makers[name], 8 * n_bytes), bases, n_bytes, settings.ks)
        else:
            rows.append(quantizer_row(name, bases, n_bytes, settings.ks))
    progress(Progress(len(work), len(work), 0.0, ""))
    return [*rows, floats_row(bases, settings.ks)]


def _rows(
    bench: _Bench, wanted: Sequence[tuple[str, int, dict[str, Entry]]], progress: Callable[[Progress], None]
) -> list[Row]:
    left = TimeLeft(
        {
            ((table, name), bits): bench.expected_seconds(entry, bits)
            for table, bits, entries in wanted
            for name, entry in entries.items()
        }
    )
    rows: list[Row] = []
    for table, bits, entries in wanted:
        reference = None
        for name, entry in entries.items():
            progress(Progress(len(rows), len(left.expected), left.seconds, f"{name}, {bits} bits, {table}"))
            begin = time.perf_counter()
            row, model = bench.row(table, name, entry, bits, reference)
            left.finished(((table, name), bits), time.perf_counter() - begin)
            reference = reference or (model, row.seconds)
            rows.append(row)
    progress(Progress(len(rows), len(rows), 0.0, ""))
    return rows


def _chosen(table: str, only: Sequence[str] | None) -> dict[str, Entry]:
    if table not in TABLES:
        raise ValueError(f"tables must be among {', '.join((*TABLES, BYTES))}, got {table!r}")
    entries = _entries(table).items()
    return {name: entry for name, entry in entries if only is None or name in only or name == REFERENCE}


def _entries(table: str) -> dict[str, Entry]:
    """Return the rows of a table, and in the first one those of methods that users have registered."""
    own = {name: Entry(name) for name in methods.registered()} if table == next(iter(TABLES)) else {}
    return TABLES[table] | own


class _Bench:
    """Data, split and measure; remembers a digest of all codes that it has seen."""

    def __init__(self, X: NDArray[Any], y: NDArray[Any], protocol: Protocol, split: Split, settings: Settings) -> None:
        self.protocol, self.split, self.settings = protocol, split, settings
        self._train, self._train_y = X[split.train], y[split.train]
        self._bases = {"new": (X[split.new], y[split.new]), "seen": (X[split.seen], y[split.seen])}
        self._queries, self._queries_y = X[split.queries], y[split.queries]
        self._seen: dict[str, list[str]] = {}

    def row(self, table: str, name: str, entry: Entry, bits: int, reference: Any) -> tuple[Row, Any]:
        """Train a method and measure it; ``reference`` is ILHt's model and seconds, None for ILHt itself."""
        ilht = None if reference is None else reference[0]
        n_train = self.settings.n_train
        own_bits = len(np.unique(self._train_y)) if entry.one_per_class else bits
        supervised = entry.method in ("ILH", "Mix") or methods.get(entry.method).supervised
        about = Row(table, name, supervised, bits, own_bits, n_train)
        try:
            model = entry.make(own_bits, n_train, n_train, self.settings.seed, ilht)
            found, codes = self._fit(model)
        except UndefinedError as error:  # such as more bits than dimensions: that is a result too
            return replace(about, note=str(error)), None
        digest = f"{bits} {hashlib.sha256(codes.tobytes()).hexdigest()}"
        self._seen.setdefault(digest, []).append(f"{name} ({table}, {bits} bits)")
        beside = 1.0 if reference is None else found["seconds"] / reference[1]
        return self._with_all_points(replace(about, ratio=beside, **found), entry, ilht), model

    def _with_all_points(self, row: Row, entry: Entry, ilht: Any) -> Row:
        n_all = self._all_points(row.bits)
        if entry.method == "ILH" and entry.parameters.get("diversity", "t") == "t":
            same = {f"precision_all_{base}": getattr(row, f"precision_{base}") for base in self._bases}
            return replace(row, n_all=n_all, seconds_all=row.seconds, **same)
        if not self.settings.on_all or not entry.on_all:
            return row
        found, _ = self._fit(entry.make(row.own_bits, n_all, self.settings.n_train, self.settings.seed, ilht))
        again = {f"precision_all_{base}": found[f"precision_{base}"] for base in self._bases}
        return replace(row, n_all=n_all, seconds_all=found["seconds"], **again)

    def _all_points(self, bits: int) -> int:
        """Points that ILHt sees in all its bits."""
        return min(bits * self.settings.n_train, len(self._train))

    def expected_seconds(self, entry: Entry, bits: int) -> float:
        """Return about what a row takes."""
        n = self.settings.n_train
        once = entry.expected_seconds(bits, n, n)
        again = self.settings.on_all and entry.on_all and entry.method != "ILH"
        return once + (entry.expected_seconds(bits, self._all_points(bits), n) if again else 0.0)

    def _fit(self, model: Any) -> tuple[dict[str, Any], NDArray[np.uint8]]:
        """Train a model; return what its row says of that, and its codes of the base."""
        begin = time.perf_counter()
        with single_threaded_blas(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(self._train, self._train_y)
        seconds = time.perf_counter() - begin
        codes = {base: model.transform(part[0]) for base, part in self._bases.items()}
        asked = model.transform(self._queries)
        results = {base: self._measured(codes[base], base, asked, len(model.functions_)) for base in codes}
        note = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
        found = {f"precision_{base}": result.precision[self.settings.k] for base, result in results.items()}
        return {**found, "map_new": results["new"].map, "seconds": seconds, "note": note}, codes["new"]

    def _measured(self, codes: NDArray[np.uint8], base: str, asked: NDArray[np.uint8], n_bits: int) -> Evaluation:
        return self.protocol.evaluate(codes, self._bases[base][1], asked, self._queries_y, n_bits=n_bits)

    def same_codes(self) -> list[tuple[str, str]]:
        """Return pairs of rows with the same codes."""
        return [(names[0], other) for names in self._seen.values() for other in names[1:]]


def euclidean_precision(
    base: NDArray[Any], base_labels: NDArray[Any], queries: NDArray[Any], query_labels: NDArray[Any], k: int
) -> float:
    """Return precision@k of the k nearest vectors: what codes are measured against.

    Parameters
    ----------
    base, queries : arrays (n, D) and (m, D)
    base_labels, query_labels : arrays (n,) and (m,)
    k : int, nearest base vectors that are looked at

    Returns
    -------
    float, the share of them that has the label of the query, mean over queries
    """
    nearest = nearest_rows(base, queries, k)
    return float((base_labels[nearest] == query_labels[:, None]).mean())
