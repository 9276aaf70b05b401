"""What cells compute: each task takes a problem, parameters and a seed, and returns numbers and arrays."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import HammingIndex, codes, prune
from ilhash.ensemble import HoldOut
from ilhash.evaluation import UnseenClasses, by_label, code_dot_products, distance_histograms, weight_dot_products
from ilhash.experiments.comparison import euclidean_precision
from ilhash.experiments.engine import bases, timing
from ilhash.experiments.engine.cells import UNDEFINED, Cell, Outcome
from ilhash.experiments.engine.models import fit_model, make_model
from ilhash.experiments.engine.problems import Measured, Problem, load_problem
from ilhash.methods import UndefinedError
from ilhash.vectors import nearest_rows

Params = Mapping[str, Any]
Encode = Callable[[NDArray[Any]], NDArray[np.uint8]]


@dataclass(frozen=True)
class Context:
    """Where a task finds its data."""

    scale_name: str
    folder: Path

    def problem(self, params: Params) -> Problem:
        """Return the problem that the parameters name."""
        return load_problem(self.scale_name, params["data"], self.folder)


def compute(cell: Cell, context: Context) -> Outcome:
    """Run a cell; a method that cannot give so many bits is an outcome, every other error is an error."""
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = TASKS[cell.task](context.problem(cell.params), cell.params, cell.seed)
        except UndefinedError as error:
            return Outcome(status=UNDEFINED, reason=str(error), seconds=time.perf_counter() - begin)
    heard = sorted({" ".join(str(warning.message).split()) for warning in caught})
    numbers = {**outcome.numbers, **({"warnings": heard} if heard else {})}
    return Outcome(numbers, outcome.arrays, seconds=time.perf_counter() - begin)


def _fit(problem: Problem, params: Params, seed: int) -> Any:
    return fit_model(params["method"], params["settings"], params["bits"], seed, problem.X, problem.y)


def _retrieval(problem: Problem, params: Params, seed: int) -> Outcome:
    """Train one model and measure prefixes of its codes: ``at`` lists their lengths, [bits] for coupled methods."""
    clock = [time.perf_counter()]
    model = _fit(problem, params, seed)
    clock.append(time.perf_counter())
    base, queries = model.transform(problem.X), model.transform(problem.queries)
    clock.append(time.perf_counter())
    found = problem.measure(base, queries, params["at"])
    seconds = {"train_seconds": clock[1] - clock[0], "encode_seconds": clock[2] - clock[1]}
    arrays = {"ks": problem.ks, **vars(found)}
    if params.get("singles"):
        arrays["singles"] = single_bits(problem, base, queries, params["singles"])
    return Outcome({**seconds, "protocol": problem.protocol, **_of_bits(model)}, arrays)


def single_bits(
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
            # by their weights, which are all that differs if centres do not
            "distinct_functions": len({np.asarray(function.weights).tobytes() for function in model.functions_}),
        }
    loss = getattr(model, "report_", {}).get("loss")
    if isinstance(loss, list):
        return {"loss": float(loss[-1]), "flipped_loss": model.report_.get("flipped_loss")}
    return {}


def _orders(problem: Problem, params: Params, seed: int) -> Outcome:
    """Precision over the number of bits for several random orders of the bits of one model."""
    model = _fit(problem, params, seed)
    base, queries = (codes.unpack(model.transform(part), params["bits"]) for part in (problem.X, problem.queries))
    rng = np.random.default_rng(seed)
    curves = []
    for _ in range(params["orders"]):
        order = rng.permutation(params["bits"])
        shuffled = [np.packbits(part[:, order], axis=1) for part in (base, queries)]
        curves.append(problem.measure(shuffled[0], shuffled[1], params["at"]).precision[:, problem.at_k])
    return Outcome({"protocol": problem.protocol}, {"precision": np.stack(curves)})


def _orthogonality(problem: Problem, params: Params, seed: int) -> Outcome:
    """Dot products of codes of the base and of weights, in units of standardised features."""
    model = _fit(problem, params, seed)
    sample = np.asarray(problem.X[:: max(1, len(problem.X) // 20_000)], dtype=np.float64)
    spread = sample.std(axis=0)
    dots = {"codes": code_dot_products(model.transform(problem.X), params["bits"])}
    dots["weights"] = weight_dot_products(model.weights() * spread)
    sizes = {"n_points": len(problem.X), "n_features": int(problem.X.shape[1])}
    sizes["varying"] = int(np.count_nonzero(spread > 0))
    return Outcome(
        {**sizes, "protocol": problem.protocol}, {name: table.astype(np.float32) for name, table in dots.items()}
    )


def _euclidean(problem: Problem, params: Params, seed: int) -> Outcome:
    """Exact search with the raw vectors; as many neighbours as the headline asks for."""
    found = problem.measure_ranking(nearest_rows(problem.X, problem.queries, problem.k, ranked=True))
    return Outcome({"protocol": problem.protocol}, {"ks": problem.ks, **vars(found)})


def _product_quantiser(problem: Problem, params: Params, seed: int) -> Outcome:
    """OPQ through faiss, at the bytes of the codes."""
    try:
        import faiss
    except ImportError:
        return Outcome({"without": "pip install 'ilhash[faiss]'"})
    rows = np.sort(np.random.default_rng(seed).permutation(len(problem.X))[: params["n_train"]])
    begin = time.perf_counter()
    faiss.omp_set_num_threads(1)
    index = _rotated_quantiser(faiss, problem.X.shape[1], params["bits"], len(rows))
    index.train(np.asarray(problem.X[rows], dtype=np.float32))
    train_seconds = time.perf_counter() - begin
    for first in range(0, len(problem.X), 65_536):
        index.add(np.asarray(problem.X[first : first + 65_536], dtype=np.float32))
    found = problem.measure_ranking(index.search(np.asarray(problem.queries, dtype=np.float32), problem.k)[1])
    numbers = {"train_seconds": train_seconds, "protocol": problem.protocol, "faiss": faiss.__version__}
    return Outcome(numbers, {"ks": problem.ks, **vars(found)})


def _rotated_quantiser(faiss: Any, dimension: int, bits: int, n_points: int) -> Any:
    """Return an untrained OPQ index of so many bits per vector, with fewer codewords where there are few points."""
    per_part = 8 if n_points >= 39 * 256 else 4  # faiss asks for 39 points per codeword
    parts = bits // per_part
    reduced = dimension // parts * parts
    if reduced == 0:
        raise UndefinedError(f"n_bits must be at most {per_part * dimension} for OPQ on these data, got {bits}")
    rotation = faiss.OPQMatrix(dimension, parts, reduced)
    if per_part == 4:
        rotation.niter = 5
        quantiser = faiss.ProductQuantizer(reduced, parts, per_part)
        quantiser.cp.min_points_per_centroid = 1
        quantiser.this.disown()  # the rotation frees it
        rotation.pq = quantiser
    return faiss.IndexPreTransform(rotation, faiss.IndexPQ(reduced, parts, per_part))


def _asymmetric(problem: Problem, params: Params, seed: int) -> Outcome:
    """Search the same codes by Hamming distance and with the margins of the query."""
    model = _fit(problem, params, seed)
    plain, weighted = [], []
    for bits in params["at"]:
        part = model[:bits]
        base, queries = part.transform(problem.X), part.transform(problem.queries)
        plain.append(problem.measure(base, queries, [bits]).precision[0, problem.at_k])
        margins = part.decision_function(problem.queries)
        hits = HammingIndex(base, n_bits=bits).search_asymmetric(margins, k=problem.k)
        weighted.append(problem.measure_ranking(hits.ids).precision[0, problem.at_k])
    return Outcome({"protocol": problem.protocol}, {"plain": np.array(plain), "asymmetric": np.array(weighted)})


def _pruned(problem: Problem, params: Params, seed: int) -> Outcome:
    """Choose bits from a pool on held-out training points; measure them beside the first bits of the same pool."""
    chosen, measured = pruned(problem, params["pool"], params["settings"], params["at"], seed)
    scores = {name: one.precision[:, problem.at_k] for name, one in measured.items()}
    return Outcome({"protocol": problem.protocol, "chosen": chosen}, scores)


def pruned(
    problem: Problem, n_pool: int, settings: Params, at: Sequence[int], seed: int
) -> tuple[list[int], dict[str, Measured]]:
    """Return the bits chosen from a pool of ILH, as many as the last of ``at``, and both orders measured there."""
    held_out = HoldOut(seed=seed, n_report=0)  # measured on queries of its own
    pool = make_model("ILH", settings, n_pool, seed).fit(problem.X, held_out.labels(problem.y))
    found = prune(pool, problem.X, problem.y, at[-1], k=min(problem.k, 100), held_out=held_out)
    measured = {}
    for name, model in (("chosen", found.model), ("first", pool)):
        measured[name] = problem.measure(model.transform(problem.X), model.transform(problem.queries), at)
    return found.chosen, measured


def _unseen(problem: Problem, params: Params, seed: int) -> Outcome:
    """Train on some classes, search among others: precision on seen and on unseen classes."""
    labels = np.concatenate([problem.y, problem.query_y])
    X = np.concatenate([problem.X, problem.queries])
    bits, k = params["bits"], params["k"]
    n_queries = min(len(problem.queries), 1_000)
    protocol = UnseenClasses(n_queries=n_queries, k=k, held_out=params["held_out"], seed=seed)
    split = protocol.split(labels)
    sides = (split.seen, split.unseen)
    if params["method"] == "float":
        rows = [(side.base, side.queries) for side in sides]
        scores = [euclidean_precision(X[base], labels[base], X[asked], labels[asked], k) for base, asked in rows]
    else:
        model = fit_model(params["method"], params["settings"], bits, seed, X[split.train], labels[split.train])
        scores = [code_precision(model.transform, X, labels, side, bits, k) for side in sides]
    return Outcome({"seen": scores[0], "unseen": scores[1], "protocol": protocol.hash})


def code_precision(encode: Encode, X: NDArray[Any], labels: NDArray[Any], side: Any, n_bits: int, k: int) -> float:
    """Return precision@k of codes among the base and the queries of one side of a split of the classes."""
    relevance = by_label(labels[side.base], labels[side.queries])
    base, queries = (encode(X[rows]) for rows in (side.base, side.queries))
    return float(distance_histograms(base, queries, relevance, n_bits=n_bits).precision_at_k(k).mean())


TASKS: dict[str, Callable[[Problem, Params, int], Outcome]] = {
    "retrieval": _retrieval,
    "orders": _orders,
    "orthogonality": _orthogonality,
    "euclidean": _euclidean,
    "product_quantiser": _product_quantiser,
    "asymmetric": _asymmetric,
    "pruned": _pruned,
    "unseen": _unseen,
    "bases": bases.new_and_seen,
    "training_time": timing.training_time,
    "assembled_time": timing.assembled_time,
    "encoding_time": timing.encoding_time,
    "speed_up": timing.speed_up,
}
