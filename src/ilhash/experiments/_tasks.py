"""What cells compute: each task takes the context, parameters and a seed, and returns numbers and arrays."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import ILH, HammingIndex, codes, prune
from ilhash.ensemble import HoldOut
from ilhash.evaluation import UnseenClasses, by_label, code_dot_products, distance_histograms, weight_dot_products
from ilhash.experiments import _timing
from ilhash.experiments._cells import UNDEFINED, Cell, Outcome
from ilhash.experiments._models import fit_model
from ilhash.experiments._problems import Problem, load_problem
from ilhash.experiments._scales import Scale, get_scale

__all__ = ["Context", "compute"]

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Context:
    """Where a task finds its data."""

    scale_name: str
    folder: Path

    @property
    def scale(self) -> Scale:
        """The scale of the run."""
        return get_scale(self.scale_name)

    def problem(self, params: Params) -> Problem:
        """Return the problem that the parameters name."""
        return load_problem(self.scale_name, params["data"], self.folder)


def compute(cell: Cell, context: Context) -> Outcome:
    """Run a cell; a method that cannot give so many bits is an outcome, every other error is an error."""
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = TASKS[cell.task](context, cell.params, cell.seed)
        except ValueError as error:
            if not str(error).startswith("n_bits must be at most"):
                raise
            return Outcome(status=UNDEFINED, reason=str(error), seconds=time.perf_counter() - begin)
    heard = sorted({" ".join(str(warning.message).split()) for warning in caught})
    numbers = {**outcome.numbers, **({"warnings": heard} if heard else {})}
    return Outcome(numbers, outcome.arrays, seconds=time.perf_counter() - begin)


def _fit(problem: Problem, params: Params, seed: int) -> tuple[Any, float]:
    begin = time.perf_counter()
    model = fit_model(params["method"], params["settings"], params["bits"], seed, problem.X, problem.y)
    return model, time.perf_counter() - begin


def _retrieval(context: Context, params: Params, seed: int) -> Outcome:
    """Train one model and measure prefixes of its codes: ``at`` lists their lengths, [bits] for coupled methods."""
    problem = context.problem(params)
    model, train_seconds = _fit(problem, params, seed)
    begin = time.perf_counter()
    base, queries = model.transform(problem.X), model.transform(problem.queries)
    encode_seconds = time.perf_counter() - begin
    found = problem.measure(base, queries, params["at"])
    numbers = {"train_seconds": train_seconds, "encode_seconds": encode_seconds, "protocol": problem.protocol}
    arrays = {"ks": problem.ks, "precision": found.precision, "recall": found.recall}
    if params.get("singles"):
        arrays["singles"] = _single_bits(problem, base, queries, params["singles"])
    return Outcome({**numbers, **_of_bits(model)}, arrays)


def _single_bits(
    problem: Problem, base: NDArray[np.uint8], queries: NDArray[np.uint8], count: int
) -> NDArray[np.float64]:
    """Return precision at the headline k of each of the first bits alone."""
    columns = [codes.unpack(packed, 8 * packed.shape[1])[:, :count] for packed in (base, queries)]
    scores = []
    for bit in range(count):
        one = [np.packbits(part[:, bit : bit + 1], axis=1) for part in columns]
        scores.append(problem.measure(one[0], one[1], [1]).precision[0, problem.at_k])
    return np.array(scores)


def _of_bits(model: Any) -> dict[str, Any]:
    """Return means over the bits of an ILH model, or the end of the loss of a coupled one."""
    reports = getattr(model, "bits_", None)
    if reports:
        return {
            "energy": float(np.mean([report.energies[-1] for report in reports])),
            "sweeps": float(np.mean([report.sweeps for report in reports])),
            "accuracy": float(np.mean([report.accuracy for report in reports])),
            "n_disjoint": int(model.n_disjoint_),
            "distinct_functions": _n_distinct(model),
        }
    loss = getattr(model, "report_", {}).get("loss")
    if isinstance(loss, list):
        return {"loss": float(loss[-1]), "flipped_loss": model.report_.get("flipped_loss")}
    return {}


def _n_distinct(model: Any) -> int:
    """Count bits whose functions differ, by their weights (which are all that differs if centres do not)."""
    return len({np.asarray(function.weights).tobytes() for function in model.functions_})


def _orders(context: Context, params: Params, seed: int) -> Outcome:
    """Precision over the number of bits for several random orders of the bits of one model."""
    problem = context.problem(params)
    model, _ = _fit(problem, params, seed)
    base, queries = (codes.unpack(model.transform(part), params["bits"]) for part in (problem.X, problem.queries))
    rng = np.random.default_rng(seed)
    curves = []
    for _ in range(params["orders"]):
        order = rng.permutation(params["bits"])
        shuffled = [np.packbits(part[:, order], axis=1) for part in (base, queries)]
        curves.append(problem.measure(shuffled[0], shuffled[1], params["at"]).precision[:, problem.at_k])
    return Outcome({"protocol": problem.protocol}, {"precision": np.stack(curves)})


def _orthogonality(context: Context, params: Params, seed: int) -> Outcome:
    """Dot products of codes of the base and of weights, in units of standardised features."""
    problem = context.problem(params)
    model, _ = _fit(problem, params, seed)
    packed = model.transform(problem.X)
    sample = np.asarray(problem.X[:: max(1, len(problem.X) // 20_000)], dtype=np.float64)
    weights = model.weights() * sample.std(axis=0)
    arrays = {
        "codes": code_dot_products(packed, params["bits"]).astype(np.float32),
        "weights": weight_dot_products(weights).astype(np.float32),
    }
    numbers = {
        "n_points": len(problem.X),
        "n_features": int(problem.X.shape[1]),
        "varying": int(np.count_nonzero(sample.std(axis=0) > 0)),
    }
    return Outcome({**numbers, "protocol": problem.protocol}, arrays)


def _euclidean(context: Context, params: Params, seed: int) -> Outcome:
    """Exact search with the raw vectors, in blocks; as many neighbours as the headline asks for."""
    problem = context.problem(params)
    ranked = np.empty((len(problem.queries), problem.k), np.int64)
    queries = np.asarray(problem.queries, dtype=np.float32)
    norms = np.concatenate([_squared(problem.X[i : i + 65_536]) for i in range(0, len(problem.X), 65_536)])
    for first in range(0, len(queries), 100):
        block = queries[first : first + 100]
        distances = np.empty((len(block), len(problem.X)), np.float32)
        for i in range(0, len(problem.X), 65_536):
            part = np.asarray(problem.X[i : i + 65_536], dtype=np.float32)
            distances[:, i : i + 65_536] = norms[i : i + 65_536] - 2.0 * (block @ part.T)
        nearest = np.argpartition(distances, problem.k - 1, axis=1)[:, : problem.k]
        order = np.argsort(np.take_along_axis(distances, nearest, axis=1), axis=1, kind="stable")
        ranked[first : first + 100] = np.take_along_axis(nearest, order, axis=1)
    found = problem.measure_ranking(ranked)
    arrays = {"ks": problem.ks, "precision": found.precision, "recall": found.recall}
    return Outcome({"protocol": problem.protocol}, arrays)


def _squared(part: NDArray[Any]) -> NDArray[np.float32]:
    values = np.asarray(part, dtype=np.float32)
    return np.asarray(np.einsum("ij,ij->i", values, values))


def _product_quantiser(context: Context, params: Params, seed: int) -> Outcome:
    """OPQ through faiss, at the bytes of the codes."""
    try:
        import faiss
    except ImportError:
        return Outcome({"without": "pip install 'ilhash[faiss]'"})
    problem = context.problem(params)
    rows = np.sort(np.random.default_rng(seed).permutation(len(problem.X))[: params["n_train"]])
    begin = time.perf_counter()
    faiss.omp_set_num_threads(1)
    index = _rotated_quantiser(faiss, problem.X.shape[1], params["bits"], len(rows))
    index.train(np.asarray(problem.X[rows], dtype=np.float32))
    train_seconds = time.perf_counter() - begin
    for first in range(0, len(problem.X), 65_536):
        index.add(np.asarray(problem.X[first : first + 65_536], dtype=np.float32))
    ranked = index.search(np.asarray(problem.queries, dtype=np.float32), problem.k)[1]
    found = problem.measure_ranking(ranked)
    arrays = {"ks": problem.ks, "precision": found.precision, "recall": found.recall}
    numbers = {"train_seconds": train_seconds, "protocol": problem.protocol, "faiss": faiss.__version__}
    return Outcome(numbers, arrays)


def _rotated_quantiser(faiss: Any, dimension: int, bits: int, n_points: int) -> Any:
    """Return an untrained OPQ index of so many bits per vector, with fewer codewords where there are few points."""
    per_part = 8 if n_points >= 39 * 256 else 4  # faiss asks for 39 points per codeword
    parts = bits // per_part
    reduced = dimension // parts * parts
    if reduced == 0:
        raise ValueError(f"n_bits must be at most {per_part * dimension} for OPQ on these data, got {bits}")
    rotation = faiss.OPQMatrix(dimension, parts, reduced)
    if per_part == 4:
        rotation.niter = 5
        quantiser = faiss.ProductQuantizer(reduced, parts, per_part)
        quantiser.cp.min_points_per_centroid = 1
        quantiser.this.disown()  # the rotation frees it
        rotation.pq = quantiser
    return faiss.IndexPreTransform(rotation, faiss.IndexPQ(reduced, parts, per_part))


def _asymmetric(context: Context, params: Params, seed: int) -> Outcome:
    """Search the same codes by Hamming distance and with the margins of the query."""
    problem = context.problem(params)
    model, _ = _fit(problem, params, seed)
    plain, weighted = [], []
    for bits in params["at"]:
        part = model[:bits]
        base, queries = part.transform(problem.X), part.transform(problem.queries)
        plain.append(problem.measure(base, queries, [bits]).precision[0, problem.at_k])
        index = HammingIndex(base, n_bits=bits)
        hits = index.search_asymmetric(part.decision_function(problem.queries), k=problem.k)
        weighted.append(problem.measure_ranking(hits.ids).precision[0, problem.at_k])
    arrays = {"plain": np.array(plain), "asymmetric": np.array(weighted)}
    return Outcome({"protocol": problem.protocol}, arrays)


def _pruned(context: Context, params: Params, seed: int) -> Outcome:
    """Choose bits from a pool on held-out training points; measure them beside the first bits of the same pool."""
    problem = context.problem(params)
    held_out = HoldOut(seed=seed)
    pool = ILH(n_bits=params["pool"], random_state=seed, **params["settings"])
    pool.fit(problem.X, held_out.labels(problem.y))
    found = prune(pool, problem.X, problem.y, params["bits"], k=min(problem.k, 100), held_out=held_out)
    scores = {}
    for name, model in (("chosen", found.model), ("first", pool)):
        base, queries = model.transform(problem.X), model.transform(problem.queries)
        scores[name] = problem.measure(base, queries, params["at"]).precision[:, problem.at_k]
    return Outcome({"protocol": problem.protocol, "chosen": found.chosen}, scores)


def _unseen(context: Context, params: Params, seed: int) -> Outcome:
    """Train on some classes, search among others: precision on seen and on unseen classes."""
    problem = context.problem(params)
    labels = np.concatenate([problem.y, problem.query_y])
    X = np.concatenate([problem.X, problem.queries])
    n_queries = min(len(problem.queries), 1_000)
    protocol = UnseenClasses(n_queries=n_queries, k=params["k"], held_out=params["held_out"], seed=seed)
    split = protocol.split(labels)
    if params["method"] == "float":
        scores = [_float_precision(X, labels, side, params["k"]) for side in (split.seen, split.unseen)]
    else:
        train = split.train
        model = fit_model(params["method"], params["settings"], params["bits"], seed, X[train], labels[train])
        scores = [_code_precision(model, X, labels, side, params) for side in (split.seen, split.unseen)]
    return Outcome({"seen": scores[0], "unseen": scores[1], "protocol": protocol.hash})


def _code_precision(model: Any, X: NDArray[Any], labels: NDArray[Any], side: Any, params: Params) -> float:
    relevance = by_label(labels[side.base], labels[side.queries])
    packed = [model.transform(X[rows]) for rows in (side.base, side.queries)]
    found = distance_histograms(packed[0], packed[1], relevance, n_bits=params["bits"])
    return float(found.precision_at_k(params["k"]).mean())


def _float_precision(X: NDArray[Any], labels: NDArray[Any], side: Any, k: int) -> float:
    base, queries = (np.asarray(X[rows], dtype=np.float32) for rows in (side.base, side.queries))
    hits = 0.0
    norms = _squared(base)
    for first in range(0, len(queries), 100):
        nearest = np.argpartition(norms - 2.0 * (queries[first : first + 100] @ base.T), k - 1, axis=1)[:, :k]
        right = labels[side.base][nearest] == labels[side.queries][first : first + 100, None]
        hits += float(right.mean(axis=1).sum())
    return hits / len(queries)


def _training_time(context: Context, params: Params, seed: int) -> Outcome:
    return _timing.training_time(context.problem(params), params, seed)


def _encoding_time(context: Context, params: Params, seed: int) -> Outcome:
    return _timing.encoding_time(context.problem(params), params, seed)


def _speed_up(context: Context, params: Params, seed: int) -> Outcome:
    return _timing.speed_up(context.problem(params), params, seed)


def _assembled_time(context: Context, params: Params, seed: int) -> Outcome:
    return _timing.assembled_time(context.problem(params), params, seed)


TASKS: dict[str, Callable[[Context, Params, int], Outcome]] = {
    "retrieval": _retrieval,
    "orders": _orders,
    "orthogonality": _orthogonality,
    "euclidean": _euclidean,
    "product_quantiser": _product_quantiser,
    "asymmetric": _asymmetric,
    "pruned": _pruned,
    "unseen": _unseen,
    "training_time": _training_time,
    "assembled_time": _assembled_time,
    "encoding_time": _encoding_time,
    "speed_up": _speed_up,
}
