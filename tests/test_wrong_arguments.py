"""Wrong arguments of public functions: one sentence, of a kind that is documented, and soon.

Every public callable stands in a table with arguments that are right. One argument after the other is replaced by each
of some hostile values. What is accepted is accepted; what is not must be refused as a person would want it.
"""

import importlib
import importlib.util
import inspect
import itertools
import pickle
import re
import signal
import sys
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse

import ilhash
from ilhash import (
    affinity,
    codes,
    datasets,
    encoding,
    engines,
    evaluation,
    feedback,
    methods,
    objective,
    search,
    serve,
    zstep,
)
from ilhash._core import SignedGraph
from ilhash.functions import LearnerSettings, TreeBooster, make_learner
from ilhash.vectors import gather, io

# ------------------------------------------------------------------------------------------ hostile values

HUGE = np.broadcast_to(np.zeros((), np.complex64), (2**40, 3))  # takes no memory, unless it is copied
SCALARS = {
    "None": None,
    "True": True,
    "inf": np.inf,
    "-inf": -np.inf,
    "nan": np.nan,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "1e308": 1e308,
    "1e-320": 1e-320,
    "2**63": 2**63,
    "-2**63": -(2**63),
    "2**200": 2**200,
    "1j": 1j,
    "empty text": "",
    "text": "x",
    "NUL": "a\0b",
    "bytes": b"x",
    "()": (),
    "[]": [],
    "{}": {},
    "object": object(),
    "class": int,
    "date": np.datetime64("2020-01-01"),
    "0-d": np.array(3),
    "float 0-d": np.array(np.nan),
    "array": np.zeros(3),
}
ARRAYS = {
    **{
        name: SCALARS[name]
        for name in ("None", "0", "nan", "2**200", "text", "bytes", "()", "[]", "{}", "object", "0-d")
    },
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((5, 0)),
    "no bytes": np.zeros((5, 0), np.uint8),
    "empty": np.zeros(0),
    "1-D": np.arange(3.0),
    "3-D": np.zeros((2, 2, 2)),
    "ragged": [[1, 2], [3]],
    "nested": [[[1]]],
    "nan row": [[np.nan, 1.0, 2.0, 3.0]],
    "complex": np.zeros((40, 4), complex),
    "dates": np.zeros((40, 4), "M8[s]"),
    "texts": np.full((40, 4), "x"),
    "objects": np.full((40, 4), None),
    "records": np.zeros(40, [("a", "f8")]),
    "void": np.zeros((40, 4), "V3"),
    "negative": np.full(40, -(2**63)),
    "large": np.full(40, 2**64 - 1, np.uint64),
    "whole numbers that are too large": [2**200, 5],
    "every second": np.zeros((80, 8), np.uint8)[::2, ::2],
    "backwards": np.zeros((40, 4), np.uint8)[::-1],
    "big-endian": np.zeros((40, 4), ">f8"),
    "half": np.zeros((40, 4), np.float16),
    "long double": np.zeros((40, 4), np.longdouble),
    "read-only": np.zeros((40, 4), np.uint8),
    "sparse": scipy.sparse.csr_array(np.eye(40)),
    "huge": HUGE,
}
ARRAYS["read-only"].flags.writeable = False

# Kinds of errors that are documented: of files (OSError, StorageError), of extras, of models that are not trained.
DOCUMENTED = (ValueError, TypeError, OSError, ilhash.StorageError, ImportError, methods.UndefinedError)
RAW = re.compile(
    r"has no attribute|not supported between|must be real number|unhashable|"
    r"not subscriptable|not iterable|cannot unpack|not callable|has no len|ufunc|could not be broadcast|truth value|"
    r"bad operand|unsupported operand|cannot be interpreted|int\(\) argument|float\(\) argument|invalid literal|"
    r"could not convert|too large to convert|out of bounds|zero-size array|dispatch|integer argument expected|"
    r"<lambda>|positional argument|unexpected keyword|has incorrect type|setting an array element|inhomogeneous"
)
OURS = re.compile(r"\bmust\b.*\bgot\b")  # what must hold, and what was given; that may quote somebody else
NANOBIND = "incompatible function arguments"
SECONDS = 30


@contextmanager
def soon():
    """Fail where a call does not end."""

    def hang(*_):
        raise SystemError(f"did not end within {SECONDS} seconds")

    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def complaint_about(call, given, name=""):
    """Return what is wrong with the way in which a call refuses its arguments, or None."""
    try:
        with soon(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(**given)
            if inspect.isgenerator(result):
                next(result, None)
    except BaseException as error:
        text = str(error)
        # A number beyond a sequence ends a loop over it.
        documented = (*DOCUMENTED, IndexError) if name == "__getitem__" else DOCUMENTED
        if not isinstance(error, documented):
            return f"{type(error).__name__}: {text[:150]}"
        ours = NANOBIND not in text and (OURS.search(text) or not RAW.search(text))
        if not text or "\n" in text or len(text) > 600 or not ours:
            return f"not a sentence of ours: {type(error).__name__}: {text[:200]}"
    return None


# ------------------------------------------------------------------------------------------ what is right

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)).astype(np.float32)
Y = np.arange(40) % 2
BITS = RNG.random((40, 12)) < 0.5
CODES = np.packbits(BITS, axis=1)
MARGINS = RNG.normal(size=(40, 12)).astype(np.float32)
TEXTS = codes.to_text(CODES, 12)
PAIRS = [[0, 1, 1.0], [1, 2, -1.0]]
QUICK = {"n_bits": 2, "n_train": 20, "n_similar": 3, "n_dissimilar": 3, "max_sweeps": 5, "n_centers": 5}
SMALL_METHODS = {"n_train": 30, "n_centers": 5, "n_anchors": 5, "n_nearest": 2, "n_estimators": 2, "max_iter": 2}
SMALL_METHODS |= {"n_neighbors": 3, "n_labeled": 20, "n_weights": 3, "batch_size": 5, "member_bits": 2, "n_bits": 2}


def model():
    return ilhash.ILH(**QUICK).fit(X, Y)


def index():
    return search.HammingIndex(CODES, n_bits=12, margins=MARGINS)


def hits():
    return search.Hits(np.zeros((3, 2), np.int32), np.arange(6).reshape(3, 2))


def fit(cls, parameters):
    """Return a function of a model's parameters, and of what fit takes."""

    def trained(X=X, y=Y, affinity=None, pairs=None, progress=None, client=None, checkpoint=None, **given):
        own = {**parameters, **given}
        more = {"affinity": affinity, "pairs": pairs} if affinity is not None or pairs is not None else {}
        means = {"progress": progress, "client": client, "checkpoint": checkpoint}
        means = {name: value for name, value in means.items() if value is not None}
        cls(**own).fit(X, None if more else y, **more, **means)

    return trained


def learner(C="auto", scaling="columns", n_centers=5, kernel_width=None, kind="linear", **more):
    settings = LearnerSettings(C=C, scaling=scaling, n_centers=n_centers, kernel_width=kernel_width, **more)
    rows = gather(X, np.arange(40), np.zeros(4, np.float32))
    make_learner(kind, settings).fit(rows, np.where(Y, 1, -1).astype(np.int8), None, 0)


class Table:
    """By name: a function, the arguments that are right, and which of them are arrays or paths."""

    def __init__(self):
        self.rows = {}

    def put(self, name, call, given, arrays=(), paths=()):
        self.rows[name] = call, given, {*arrays}, {*paths}


def of_codes(table, folder):
    packed, signed = {"codes": CODES, "n_bits": 12}, {"codes": CODES.view(np.int8), "n_bits": 12}
    table.put("bytes_per_code", codes.bytes_per_code, {"n_bits": 3})
    table.put("check", codes.check, {**packed, "name": "codes"}, ["codes"])
    table.put("pack", codes.pack, {"bits": BITS}, ["bits"])
    table.put("to_tiles", codes.to_tiles, {"codes": CODES, "rows": np.arange(3)}, ["codes", "rows"])
    for name in ("unpack", "to_lsb_first", "from_lsb_first", "to_int8_offset", "to_int8_view", "to_hex", "to_text"):
        table.put(name, getattr(codes, name), packed, ["codes"])
    for name in ("from_int8_offset", "from_int8_view"):
        table.put(name, getattr(codes, name), signed, ["codes"])
    table.put("from_text", codes.from_text, {"texts": TEXTS, "n_bits": 12}, ["texts"])
    table.put("layouts", codes.layouts, {})
    table.put("take_bits", codes.take_bits, {**packed, "bits": [1, 2]}, ["codes", "bits"])
    table.put("beside", codes.beside, {**packed, "more": CODES, "n_more": 12}, ["codes", "more"])
    table.put("to_layout", codes.to_layout, {**packed, "layout": "pgvector"}, ["codes"])
    table.put("from_layout", codes.from_layout, {"values": CODES, "n_bits": 12, "layout": "faiss"}, ["values"])
    table.put("from_hex", codes.from_hex, {"texts": codes.to_hex(CODES, 12), "n_bits": 12}, ["texts"])


def _following(**given):
    trained = model()
    made = search.HammingIndex(trained.transform(X), n_bits=trained.n_bits, model=trained)
    return made.follow(**given)


def of_search(table, folder):
    whole = {"codes": CODES, "n_bits": 12, "ids": np.arange(40), "margins": MARGINS}
    table.put("HammingIndex", search.HammingIndex, whole, ["codes", "ids", "margins"])
    rest = {"n_threads": 1, "allowed": [1, 2]}
    table.put("search", index().search, {"codes": CODES[:3], "k": 3, **rest}, ["codes", "allowed"])
    table.put("within", index().within, {"codes": CODES[:3], "radius": 2, **rest}, ["codes", "allowed"])
    by_margins = {"margins": MARGINS[:3], "k": 3, **rest}
    table.put("search_asymmetric", index().search_asymmetric, by_margins, ["margins", "allowed"])
    table.put("search_margins", index().search_margins, {**by_margins, "shortlist": 5}, ["margins", "allowed"])
    more = {"codes": CODES[:2], "ids": [90, 91], "margins": MARGINS[:2]}
    table.put("add", lambda **given: index().add(**given), more, more)
    table.put("update", lambda **given: index().update(**given), {**more, "ids": [1, 2]}, more)
    table.put("remove", lambda **given: index().remove(**given), {"ids": [1]}, ["ids"])
    table.put("codes", index().codes, {"ids": [1]}, ["ids"])
    bits = {"codes": CODES, "n_bits": 12, "ids": np.arange(40), "margins": MARGINS, "model": None}
    table.put("append_bits", lambda **given: index().append_bits(**given), bits, ["codes", "ids", "margins"])
    table.put("select_bits", lambda **given: index().select_bits(**given), {"bits": [1], "model": None}, ["bits"])
    table.put("of_model", index().of_model, {"model": None})
    table.put("next_ids", index().next_ids, {"n": 3})
    table.put("follow", _following, {"model": model(), "X": X, "ids": np.arange(40)}, ["model", "X", "ids"])
    table.put("__contains__", lambda item: item in index(), {"item": 3}, ["item"])
    empty = search.HammingIndex(n_bits=12)
    table.put("add_blocks", empty.add_blocks, {"blocks": [CODES[:2]], "ids": None}, ["blocks", "ids"])
    table.put("save", index().save, {"path": folder / "saved"}, paths=["path"])
    opened = {"path": folder / "index", "n_bits": 12, "ids": "int", "margins": MARGINS, "writable": True}
    table.put("open", lambda **given: search.HammingIndex.open(**given).close(), opened, ["margins"], ["path"])
    shortlist = {"hits": hits(), "queries": X[:3], "vectors": X, "k": 2}
    table.put("rescore", search.rescore, shortlist, ["hits", "queries", "vectors"])
    table.put("verify", search.verify, {"path": folder}, paths=["path"])


def of_engines(table, folder):
    """The checks are one for all engines; SQLite has columns, too, and each call finds the place as it was."""
    pytest.importorskip("apsw")
    pytest.importorskip("faiss")
    url = f"sqlite:///{folder}/items.db"
    with engines.open(url, n_bits=12, columns={"price": "float"}) as engine:
        engine.add(CODES, columns={"price": np.arange(40.0)})

    def ask(method):
        def asked(**given):
            with engines.open(url) as engine:
                return getattr(engine, method)(**given)

        return asked

    def anew(method):
        def asked(**given):
            with engines.open(f"faiss:///{folder}/items{next(numbers)}", n_bits=12) as engine:
                engine.add(CODES)
                return getattr(engine, method)(**given)

        return asked

    numbers = itertools.count()
    rest = {"allowed": [1, 2], "where": "price < :most", "parameters": {"most": 9}}
    place = {"url": url, "n_bits": 12, "table": "ilhash", "ids": "int", "model": None, "columns": None}
    opening = {**place, "mode": "exact", "writable": True}
    table.put("open", lambda **given: engines.open(**given).close(), opening)
    table.put("search", ask("search"), {"codes": CODES[:3], "k": 3, **rest}, ["codes", "allowed"])
    table.put("within", ask("within"), {"codes": CODES[:3], "radius": 2, **rest}, ["codes", "allowed"])
    by_margins = {"margins": MARGINS[:3], "k": 3, "shortlist": 5}
    table.put("search_asymmetric", ask("search_asymmetric"), by_margins, ["margins"])
    table.put("search_margins", ask("search_margins"), {**by_margins, "items": MARGINS}, ["margins", "items"])
    table.put("next_ids", ask("next_ids"), {"n": 3})
    more = {"codes": CODES[:2], "ids": [1, 2]}
    table.put("add", ask("add"), {**more, "ids": [1, 90], "columns": {"price": [1.0, 2.0]}}, more)
    table.put("update", ask("update"), more, more)
    wider = {"codes": np.zeros((40, 1), np.uint8), "n_bits": 3, "ids": np.arange(40), "model": None}
    table.put("append_bits", anew("append_bits"), wider, ["codes", "ids"])
    table.put("select_bits", anew("select_bits"), {"bits": np.arange(12), "model": None}, ["bits"])
    for method in ("remove", "codes", "contains"):
        table.put(method, ask(method), {"ids": [77] if method == "remove" else [1]}, ["ids"])
    asked = {"url": url, "mode": "exact", "queries": CODES[:2], "k": 3, "table": "ilhash"}
    table.put("measure_recall", engines.measure_recall, asked, ["queries"])
    table.put("is_url", engines.is_url, {"text": "sqlite:///x"})
    table.put("without_password", engines.without_password, {"url": "sqlite:///x"})


def of_measures(table, folder):
    base = {"base_codes": CODES, "base_labels": Y, "query_codes": CODES[:5], "query_labels": Y[:5]}
    rule = {"ties": "expected", "n_bits": 12, "n_threads": 1}
    among = {"radius": 2, "empty": 0}
    table.put(
        "evaluate", evaluation.evaluate, {**base, **rule, **among, "ks": (3,), "relevance": None, "base": "new"}, base
    )
    for name in ("mean_average_precision", "precision_at_k", "recall_at_k"):
        table.put(name, getattr(evaluation, name), {**base, "k": 3, **rule}, base)
    table.put("precision_recall_curve", evaluation.precision_recall_curve, {**base, **rule}, base)
    table.put("within_radius", evaluation.within_radius, {**base, **among, "n_bits": 12, "n_threads": 1}, base)
    relevance = evaluation.by_label(Y, Y[:5])
    compared = {"base_codes": CODES, "query_codes": CODES[:5], "relevance": relevance}
    table.put("distance_histograms", evaluation.distance_histograms, {**compared, "n_bits": 12}, compared)
    table.put("hamming_distances", evaluation.hamming_distances, {"a": CODES, "b": CODES, "n_bits": 12}, ["a", "b"])
    counted = evaluation.distance_histograms(**compared)
    for name in ("precision_at_k", "recall_at_k", "average_precision"):
        table.put(f"Histograms.{name}", getattr(counted, name), {"k": 3, "ties": "expected"})
    table.put("Histograms.curves", counted.curves, {"ties": "expected"})
    table.put("Histograms.precision_within", counted.precision_within, among)
    for name in ("recall_within", "empty_within"):
        table.put(f"Histograms.{name}", getattr(counted, name), {"radius": 2})
    growing = evaluation.PrecisionBitByBit(BITS, 3)
    one = {"base_bits": BITS[0], "query_bits": BITS[:, 0]}
    pool = {"base_bits": np.ones((12, 3), bool), "query_bits": np.ones((40, 3), bool)}
    packed = dict(zip(("base", "queries", "n_bits"), growing.pack(**pool), strict=True))
    start = {"relevant": BITS, "k": 3, "n_threads": 1}
    table.put("PrecisionBitByBit", evaluation.PrecisionBitByBit, start, ["relevant"])
    table.put("PrecisionBitByBit.add", growing.add, one, one)
    table.put("PrecisionBitByBit.of_each", growing.of_each, pool, pool)
    table.put("PrecisionBitByBit.pack", growing.pack, pool, pool)
    table.put("PrecisionBitByBit.of_each_packed", growing.of_each_packed, packed, ["base", "queries"])


def of_truth(table, folder):
    sides = {"base_labels": Y, "query_labels": Y[:5]}
    table.put("by_label", evaluation.by_label, sides, sides)
    sets = {"base_labels": np.eye(40, 3, dtype=int), "query_labels": np.eye(40, 3, dtype=int)}
    table.put("by_shared_labels", evaluation.by_shared_labels, sets, sets)
    vectors = {"base_vectors": X, "query_vectors": X[:3]}
    table.put("by_neighbors", evaluation.by_neighbors, {**vectors, "n_neighbors": 2}, vectors)
    rules = {"n_queries": 5, "k": 3, "n_train": 10, "relevance": "labels", "ties": "expected", "radius": 2}
    rules |= {"empty": 0, "seed": 0}
    four = np.arange(40) % 4
    table.put(
        "Protocol", lambda data, **given: evaluation.Protocol(**given).split(data), {**rules, "data": Y}, ["data"]
    )
    honest = {**rules, "base": "new", "n_new": 12, "data": Y}
    table.put("Protocol of new items", lambda data, **given: evaluation.Protocol(**given).split(data), honest, ["data"])
    unseen = {**rules, "held_out": 1, "data": four}
    table.put("UnseenClasses", lambda data, **given: evaluation.UnseenClasses(**given).split(data), unseen, ["data"])
    table.put("GivenQueries", evaluation.GivenQueries, {**rules, "truth": ""})
    table.put("GivenQueries.of", evaluation.GivenQueries.of, {**sides, "k": 3}, sides)
    ruled = evaluation.Protocol(n_queries=5, k=3)
    queries = {"query_codes": CODES[:5], "query_truth": Y[:5]}
    base = {"base_codes": CODES, "base_truth": Y}
    table.put(
        "Protocol.evaluate", ruled.evaluate, {**base, **queries, "n_bits": 12, "n_threads": 1}, {**base, **queries}
    )
    blocks = {"base_blocks": [(CODES, Y)], **queries}
    table.put("Protocol.evaluate_blocks", ruled.evaluate_blocks, {**blocks, "n_bits": 12}, blocks)
    chosen = {"k": 3, "n_queries": 5, "seed": 0, "ties": "expected", "n_threads": 1}
    table.put("retrieval_scorer", evaluation.retrieval_scorer, chosen)
    scored = {"estimator": methods.ITQ(4).fit(X), "X": X, "y": Y}
    table.put("RetrievalScorer.__call__", evaluation.retrieval_scorer(3), scored, ["X", "y"])


def of_statistics(table, folder):
    packed = {"packed": CODES, "n_bits": 12}
    table.put("code_statistics", evaluation.code_statistics, packed, ["packed"])
    table.put("code_dot_products", evaluation.code_dot_products, packed, ["packed"])
    table.put("weight_dot_products", evaluation.weight_dot_products, {"weights": X}, ["weights"])
    kernel = {"coefficients": np.ones((3, 40)), "centers": X}
    table.put("kernel_dot_products", evaluation.kernel_dot_products, {**kernel, "width": 1.0}, kernel)
    table.put("orthogonality", evaluation.orthogonality, {"C": np.eye(3)}, ["C"])
    random = {"dimension": 4, "kind": "codes", "seed": 0}
    table.put("random_dot_products", evaluation.random_dot_products, {"n_bits": 3, **random})
    table.put("compare_with_random", evaluation.compare_with_random, {"C": np.eye(3), "bins": 5, **random}, ["C"])


def of_supervision(table, folder):
    table.put("resolve", objective.resolve, {"objective": "ksh"})
    for name in ("coefficients", "couplings"):
        table.put(name, getattr(objective, name), {"objective": "ksh", "y": np.ones(3)}, ["y"])
    for name in ("laplacian", "ksh", "bre", "bre_as_printed"):
        table.put(name, getattr(objective, name), {"distance": 1, "y": np.ones(3)}, ["y"])
    table.put("energy", objective.energy, {"A": np.eye(3), "z": np.ones(3)}, ["A", "z"])
    table.put("minimal_loss", objective.minimal_loss, {"rho": 1.0, "lam": 1.0})
    table.put("random_start", zstep.random_start, {"n": 5, "seed": 0})
    graph = SignedGraph.from_classes([5, 5], 2, 2, 0)
    step = {"graph": graph, "start": np.ones(10, np.int8), "field": np.zeros(10)}
    rules = {"seed": 0, "block_order": "random", "max_sweeps": 5}
    table.put("minimize", zstep.minimize, {**step, **rules}, step)
    matrix = scipy.sparse.eye_array(40, k=1) + scipy.sparse.eye_array(40, k=-1)
    rest = {"n_points": 40, "objective": "laplacian"}
    table.put("affinity_from_matrix", affinity.affinity_from_matrix, {"matrix": matrix, **rest}, ["matrix"])
    table.put("affinity_from_pairs", affinity.affinity_from_pairs, {"pairs": PAIRS, **rest}, ["pairs"])
    labels = {"y": Y, "n_points": 40, "unlabeled": -1}
    table.put("supervision_from_labels", affinity.supervision_from_labels, labels, ["y"])


def of_datasets(table, folder):
    digits = datasets.InfiniteDigits("digits")
    strengths = {"displacement": 1.0, "smoothness": 8.0, "rotation": 10.0, "scale": 0.1, "shift": 1.0}
    made = {"source": "digits", "part": "train", "seed": 0, **strengths, "data_home": folder}
    table.put("InfiniteDigits", datasets.InfiniteDigits, made, paths=["data_home"])
    for name in ("displacements", "images", "labels", "source_rows"):
        table.put(f"InfiniteDigits.{name}", getattr(digits, name), {"start": 0, "stop": 3})
    written = {"path": folder / "digits", "n": 3, "start": 0, "n_threads": 1}
    table.put("InfiniteDigits.write", digits.write, written, paths=["path"])
    table.put("load", datasets.load, {"name": "digits", "data_home": folder, "n": 10}, paths=["data_home"])
    got = {"name": "mnist", "data_home": folder, "mirror": "http://127.0.0.1:9", "progress": None}
    table.put("get", datasets.get, {**got, "progress": 3}, paths=["data_home"])  # which is refused before it is asked
    table.put("available", datasets.available, {"data_home": folder}, paths=["data_home"])
    table.put("data_home", datasets.data_home, {"path": folder}, paths=["path"])
    for name in ("gist", "edge_histograms"):
        images = {"images": np.zeros((2, 32, 32), np.uint8), "n_threads": 1}
        table.put(name, getattr(datasets, name), images, ["images"])
    edges = {"path": folder, "limit": 3}
    table.put("read_edge_histograms", datasets.read_edge_histograms, edges, paths=["path"])


def of_files(table, folder):
    trained = model()
    table.put("load", ilhash.load, {"path": folder, "trusted": None}, paths=["path"])
    table.put("open_codes", ilhash.open_codes, {"path": folder, "n_bits": 12}, paths=["path"])
    table.put("open_vectors", ilhash.open_vectors, {"path": folder}, paths=["path"])
    table.put("read_matrix", io.read_matrix, {"path": folder}, paths=["path"])
    table.put("read_vector", io.read_vector, {"path": folder}, paths=["path"])
    written = {"model": trained, "X": X, "path": folder / "codes", "rows_per_shard": 20, "replace": True}
    table.put("write_codes", ilhash.write_codes, written, ["model", "X"], ["path"])
    table.put("dask_encode", ilhash.dask_encode, {"model": trained, "X": X}, ["model", "X"])
    stretch = {"X": X, "first": 0, "last": 3, "n_threads": 1}
    table.put("stream", lambda **given: encoding.stream(lambda rows, block: 0, **given), stretch, ["X"])
    table.put("encode_blocks", trained.encode_blocks, stretch, ["X"])
    table.put("save", trained.save, {"path": folder / "model"}, paths=["path"])


def of_ensembles(table, folder):
    trained, held_out = model(), ilhash.HoldOut(5, 10)
    own = {"n_queries": 5, "n_base": 10, "classes": 0, "seed": 0, "y": Y, "unlabeled": -1}
    table.put("HoldOut", lambda y, unlabeled, **given: ilhash.HoldOut(**given).labels(y, unlabeled), own, ["y"])
    table.put("validation_sets", held_out.validation_sets, {"y": Y, "unlabeled": -1}, ["y"])
    data = {"X": X, "y": Y}
    rules = {"max_bits": 3, "k": 3, "patience": 2, "tolerance": 0.01, "held_out": held_out, "step": 1}
    table.put("grow", lambda **given: ilhash.grow(ilhash.ILH(**QUICK), **given), {**data, **rules}, data)
    table.put("grow a model", lambda model: ilhash.grow(model, X, Y, max_bits=2), {"model": trained}, ["model"])
    kept = ilhash.ILH(**QUICK).fit(X, held_out.labels(Y))
    rules = {"n_bits": 1, "k": 3, "held_out": held_out, "unseen_weight": 0.5, "n_threads": 1}
    table.put("prune", ilhash.prune, {"model": kept, **data, **rules}, ["model", *data])
    more = {"X": np.tile(X, (4, 1)), "y": np.tile(Y, 4), "affinity": None, "pairs": None}
    budget = {"n_bytes": 1, "k": 3, "minutes": 1e-4, "max_encode_us": None}
    means = {"base": "new", "unseen": 0.0, "unlabeled": -1, "random_state": 0, "n_jobs": 1}
    table.put("tune", ilhash.tune, {**more, **budget, **means}, more)
    table.put("join", lambda model: ilhash.join(model, trained), {"model": trained}, ["model"])
    fresh = {"n_new": 2, "n_bits": 2, "old_weight": 0.5, "k": 3, "held_out": held_out, "focus": None, "name": "a"}
    table.put("refresh", ilhash.refresh, {"model": kept, **data, **fresh, "n_threads": 1}, ["model", *data])
    later = {"n": 1, **data, "affinity": None, "pairs": None, "focus": None, "name": "a", "checkpoint": None}
    table.put("extend", lambda **given: model().extend(**given), later, data)
    table.put("Mix.of", ilhash.Mix.of, {"families": [trained, trained]})
    table.put("Mix", lambda models: ilhash.Mix(models).fit(X, Y), {"models": [ilhash.ILH(**QUICK)] * 2})
    table.put("Mix.prefix", lambda counts: ilhash.Mix([model(), model()]).prefix(counts), {"counts": 1})
    given = {**data, "affinity": None, "pairs": None}
    table.put("add_bits", lambda n, **data: model().add_bits(n, **data), {"n": 1, **given, "checkpoint": None}, given)
    table.put("transform", trained.transform, {"X": X}, ["X"])
    table.put("decision_function", trained.decision_function, {"X": X}, ["X"])
    table.put("training_rows", trained.training_rows, {"bit": 0, **given}, given)
    table.put("__getitem__", lambda which: trained[which], {"which": 0})
    table.put("get", methods.get, {"name": "ITQ"})
    table.put("register", methods.register, {"kind": methods.ITQ})


def of_feedback(table, folder):
    """Each call opens the log, which nobody else has open, and finds more in it than the one before."""
    with ilhash.Feedback.open(folder / "log") as log:
        log.add([1, 1, 2], [2, 3, 3], [True, False, True])

    def ask(method):
        def asked(**given):
            with ilhash.Feedback.open(folder / "log") as log:
                return getattr(log, method)(**given)

        return asked

    opening = {"path": folder / "judged", "writable": True}
    table.put("Feedback", lambda **given: ilhash.Feedback.open(**given).close(), opening, paths=["path"])
    one = {"query_id": 1, "item_id": 2, "similar": True, "weight": 1.0, "who": None, "time": None}
    table.put("Feedback.add", ask("add"), one)
    many = {"query_id": [1, 2], "item_id": [2, 3], "similar": [True, True], "weight": [1.0, 1.0], "who": ["a", None]}
    table.put("Feedback.add many", ask("add"), many, many)
    asked = {"ids": [1, 2, 3], "half_life": 1.0, "now": 1e9}
    for method in ("pairs", "summary"):
        table.put(f"Feedback.{method}", ask(method), asked, ["ids"])
    table.put("feedback.verify", feedback.verify, {"path": folder / "log"}, paths=["path"])
    pairs = np.column_stack([RNG.permutation(40)[:40].reshape(20, 2), np.resize([1, -1], 20)])
    learning = {"model": model(), "X": X, "pairs": pairs, "n_bits": 1, "name": "x", "random_state": 0}
    table.put("learn", ilhash.learn, learning, ["model", "X", "pairs"])
    ruled = {"pairs": pairs, "view": "within", "shrinkage": 0.5}
    judged = lambda **given: ilhash.ILH(**QUICK).fit(X, pairs=affinity.Judged(**given))  # noqa: E731
    table.put("Judged", judged, ruled, ["pairs"])


def of_client(table, folder):
    """Nobody answers: what is wrong is said before anybody is asked."""
    table.put("Client", ilhash.Client, {"url": "http://127.0.0.1:1", "token": "t", "timeout": 1.0, "retries": 0})
    client = ilhash.Client("http://127.0.0.1:1", retries=0)
    searched = {"k": 3, "n_bits": None, "model": "current"}
    table.put("Client.search", client.search, {"codes": CODES, **searched}, ["codes"])
    table.put("Client.within", client.within, {"codes": CODES, "radius": 2, **searched}, ["codes"])
    table.put("Client.search_vectors", client.search_vectors, {"X": X, "order": "hamming", **searched}, ["X"])
    by_ids = {"ids": [1, 2], "order": "hamming", "without_self": True, **searched}
    table.put("Client.search_ids", client.search_ids, by_ids, ["ids"])
    table.put("Client.encode", client.encode, {"X": X}, ["X"])
    items = {"X": X, "ids": np.arange(40), "codes": None, "labels": Y, "texts": ["a"] * 40}
    for method in ("add", "update"):
        table.put(f"Client.{method}", getattr(client, method), items, items)
    table.put("Client.remove", client.remove, {"ids": [1]}, ["ids"])
    table.put("Client.look", client.look, {"ids": [1], "margins": False}, ["ids"])
    table.put("Client.codes", client.codes, {"ids": [1]}, ["ids"])
    for method in ("item", "picture"):
        table.put(f"Client.{method}", getattr(client, method), {"item": 1})
    table.put("Client.random", client.random, {"n": 1, "seed": 0})
    judged = {"query_id": 1, "item_id": 2, "similar": True, "weight": 1.0, "who": None}
    table.put("Client.judge", client.judge, judged)
    table.put("Client.judge many", client.judge, {**judged, "item_id": [2, 3], "similar": [True, False]}, judged)
    table.put("Client.learn", client.learn, {"n_bits": 1, "progress": None})


def of_service(table, folder):
    """Each call makes a folder of its own."""
    trained, numbers = model(), itertools.count()
    about = {"ids": np.arange(40), "labels": Y, "texts": ["a"] * 40, "pictures": X.reshape(40, 2, 2)}
    more = {"margins": False, "engine": None, "table": "ilhash"}
    whole = {"model": trained, "X": X, "codes": None, **about, **more}
    table.put("make", lambda **given: serve.make(folder / f"s{next(numbers)}", **given), whole, ["X", "codes", *about])
    table.put("Service", lambda **given: serve.Service(**given).close(), {"path": folder}, paths=["path"])


def of_ties(table, folder):
    st = importlib.import_module("ilhash.ties.sentence_transformers")
    quantized = {"embeddings": X, "precision": "int8", "ranges": None, "calibration_embeddings": None}
    arrays = ["embeddings", "ranges", "calibration_embeddings"]
    table.put("quantize_embeddings", st.quantize_embeddings, quantized, arrays)
    learnt = {"embeddings": X, "precision": "ubinary", "model": methods.ITQ(4).fit(X)}
    table.put("quantize_embeddings with a model", st.quantize_embeddings, learnt, ["embeddings", "model"])
    two = {"query_embeddings": X[:3], "corpus_embeddings": X}
    sizes = {"query_chunk_size": 2, "corpus_chunk_size": 9, "top_k": 3}
    table.put("semantic_search", st.semantic_search, {**two, **sizes, "score_function": st.cos_sim}, two)
    coded = {"query_embeddings": CODES[:3], "corpus_embeddings": CODES, "top_k": 3, "corpus_precision": "ubinary"}
    coded |= {"model": None, "rescore": True}
    table.put("semantic_search of codes", st.semantic_search, coded, two)
    for name in ("cos_sim", "dot_score"):
        table.put(name, getattr(st, name), {"a": X, "b": X}, ["a", "b"])
    view = search.as_faiss(index())
    table.put("as_faiss", search.as_faiss, {"index": index()}, ["index"])
    table.put("FaissLike.search", view.search, {"x": CODES[:3], "k": 3}, ["x"])
    table.put("FaissLike.range_search", view.range_search, {"x": CODES[:3], "radius": 2}, ["x"])
    more = {"x": CODES[:2], "ids": [90, 91]}
    table.put("FaissLike.add_with_ids", lambda **given: search.as_faiss(index()).add_with_ids(**given), more, more)
    table.put("FaissLike.remove_ids", lambda ids: search.as_faiss(index()).remove_ids(ids), {"ids": [1]}, ["ids"])
    table.put("FaissLike.reconstruct", view.reconstruct, {"key": 1})
    if importlib.util.find_spec("pyarrow"):
        arrow = importlib.import_module("ilhash.ties.arrow")
        table.put("to_arrow", arrow.to_arrow, {"codes": CODES, "n_bits": 12, "model": None}, ["codes"])
        column = {"column": arrow.to_arrow(CODES, 12), "n_bits": 12}
        table.put("from_arrow", arrow.from_arrow, column, ["column"])


def of_functions(table, folder):
    linear = {"C": 1.0, "scaling": "columns", "n_centers": 5, "kernel_width": 1.0, "kind": "linear"}
    table.put("LearnerSettings", learner, linear)
    kernel = {"C": 1.0, "n_centers": 5, "kernel_width": 1.0}
    table.put("of a kernel", lambda **given: learner(kind="kernel", **given), kernel)
    trees = {"n_trees": 2, "tree_depth": 2, "learning_rate": 0.1, "centers": "pool"}
    table.put("of trees", lambda **given: learner(kind="trees", **given), trees)
    booster = {"values": X, "n_trees": 2, "depth": 2, "learning_rate": 0.1, "most_bins": 8}
    z = np.where(Y, 1, -1).astype(np.int8)
    table.put("TreeBooster", lambda **given: TreeBooster(**given).fit(z, 0), booster, ["values"])


ROOMS = (of_codes, of_search, of_engines, of_measures, of_truth, of_statistics, of_supervision, of_datasets, of_files)
ROOMS += (of_ensembles, of_feedback, of_client, of_service, of_functions, of_ties)
MODELS = ("ILH", *methods.available())


def wrong_arguments(table):
    """Return what is wrong with how the functions of a table refuse what they are given."""
    found = []
    for name, (call, good, arrays, paths) in table.rows.items():
        for parameter in good:
            for label, value in (ARRAYS if parameter in arrays else SCALARS).items():
                if parameter in paths and value is None:
                    continue
                problem = complaint_about(call, {**good, parameter: value}, name)
                found += [f"{name}: {parameter} = {label}: {problem}"] if problem else []
    return found


# ------------------------------------------------------------------------------------------ the tests


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_wrong_arguments_are_refused_in_a_sentence(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # "x" is a path, too
    table = Table()
    room(table, tmp_path)
    found = wrong_arguments(table)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", MODELS)
def test_wrong_parameters_and_data_of_models(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cls = ilhash.ILH if name == "ILH" else methods.get(name)
    own = inspect.signature(cls).parameters
    small = QUICK if name == "ILH" else {p: v for p, v in SMALL_METHODS.items() if p in own}
    data = {"X": X, "y": Y, "affinity": None, "pairs": None}
    means = {"progress": None, "client": None, "checkpoint": None} if name == "ILH" else {}
    table = Table()
    parameters = {p: small.get(p, value.default) for p, value in own.items()}
    table.put(name, fit(cls, small), {**parameters, **data, **means}, data)
    found = wrong_arguments(table)
    assert not found, "\n".join(found)


# Results and kinds: made by ilhash, not by its users, or without arguments.
RECORDS = {
    "DamagedStoreError",
    "StoreLockedError",
    "Hits",
    "RangeHits",
    "Report",
    "EqualLabels",
    "Relevance",
    "RowLists",
}
RECORDS |= {"SharedLabels", "Curves", "Evaluation", "Histograms", "Scores", "WithinRadius", "Split", "UnseenSplit"}
RECORDS |= {
    "CodeStatistics",
    "DotProducts",
    "Dataset",
    "DatasetInfo",
    "cache_home",
    "Loss",
    "QualityWarning",
    "StorageError",
    "core_simd",
}
RECORDS |= {"Engine", "EngineError", "Entry", "Recall"}
RECORDS |= {"UndefinedError", "available", "offered", "registered", "OBJECTIVES"}
RECORDS |= {"FaissLike"}  # what as_faiss makes; its methods have rows of their own


def test_every_public_callable_is_in_a_table(tmp_path):
    table = Table()
    for room in ROOMS:
        room(table, tmp_path)
    rooms = (ilhash, codes, search, engines, evaluation, datasets, objective, methods)
    public = {name for room in rooms for name in room.__all__ if callable(getattr(room, name))}
    assert public - RECORDS - set(table.rows) - set(MODELS) == set()


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_pickling_an_index_says_what_to_do_instead(place, tmp_path):
    one = index() if place == "memory" else search.HammingIndex.open(tmp_path / "index", n_bits=12)
    with one, pytest.raises(TypeError, match=r"written by index.save\(path\) and read by HammingIndex.open"):
        pickle.dumps(one)


def test_pickling_a_store_says_what_to_do_instead(tmp_path):
    rule = "must be opened again by its path, got an attempt to pickle it"
    with search.HammingIndex.open(tmp_path / "index", n_bits=12) as one, pytest.raises(TypeError, match=rule):
        pickle.dumps(one._store)
