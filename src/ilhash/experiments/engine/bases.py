"""What a code of so many bytes is worth among items that training saw, and among as many that it did not see."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments.engine.cells import Cell, Outcome
from ilhash.experiments.engine.models import fit_model
from ilhash.experiments.engine.problems import SPLIT_SEED, Problem, prefix
from ilhash.experiments.engine.scales import Scale
from ilhash.experiments.engine.store import Results
from ilhash.experiments.equal_bytes import (
    FLOATS,
    KS,
    QUANTIZERS,
    Bases,
    ByteRow,
    encode_us,
    floats_row,
    quantizer_row,
    score_asymmetric,
    score_codes,
)
from ilhash.methods import UndefinedError

BASES = ("new", "seen")
LEAST_SHARE = 20  # k is at most one in so many of the points: a class of ten in one of the two bases


def all_bytes(scale: Scale) -> tuple[int, ...]:
    """Return the bytes of codes that are compared."""
    return tuple(bits // 8 for bits in scale.compared_bits[:3])


def ks_at(scale: Scale) -> list[int]:
    """Return the numbers of neighbours that are looked at."""
    return [k for k in KS if LEAST_SHARE * k <= scale.images.n_base]


def n_learnt(scale: Scale) -> int:
    """Return the points that may be trained on: half of what is searched."""
    return scale.images.n_base // 2


def bases_cell(scale: Scale, dataset: str, method: str, all_bits: Sequence[int], cost: float, **settings: Any) -> Cell:
    """Return a method of one or several numbers of bits, of which the fewer are the first of the most.

    Parameters
    ----------
    scale, dataset : Scale and str
    method : str, of the library, of engine.models, a quantiser of faiss, or the vectors themselves ("floats")
    all_bits : sequence of int
    cost : float, seconds of one core
    settings : of the method

    Returns
    -------
    Cell, of as many points as the images have, also of the many digits: both bases are held in memory
    """
    points = min(scale.images.n_base, scale.data(dataset).n_base)
    params = {"data": dataset, "points": points, "method": method, "settings": settings}
    params |= {"at": list(all_bits), "ks": ks_at(scale)}
    return Cell("bases", params, 0, cost=cost, limit=scale.limit)


def new_and_seen(problem: Problem, params: Mapping[str, Any], seed: int) -> Outcome:
    """Train on half of the points, and search both halves: by Hamming distance, and with what the query keeps."""
    bases, ks, at = halves(problem, params["points"]), params["ks"], params["at"]
    if params["method"] == FLOATS:
        return _of_row(floats_row(bases, ks), ks, problem)
    if params["method"] in QUANTIZERS:
        return _of_row(quantizer_row(params["method"], bases, at[-1] // 8, ks), ks, problem)
    begin = time.perf_counter()
    model = fit_model(params["method"], params["settings"], at[-1], seed, *bases.train)
    numbers = {"train_seconds": time.perf_counter() - begin, "own_bytes": at[-1] // 8, "protocol": problem.protocol}
    numbers["encode_us"] = encode_us(lambda X: list(model.encode_blocks(X, n_threads=1)), bases.new[0])
    asked, margins = model.transform(bases.queries[0]), model.decision_function(bases.queries[0])
    arrays = {"ks": np.asarray(ks)}
    for base, (X, y) in bases.measured.items():
        found, by_hamming, by_margins = model.transform(X), [], []
        for bits in at:
            own = prefix(found, bits), y
            by_hamming.append(score_codes(*own, prefix(asked, bits), bases.queries[1], ks))
            by_margins.append(score_asymmetric(*own, margins[:, :bits], bases.queries[1], ks))
        arrays |= {base: _table(by_hamming, ks), f"{base}, asymmetric": _table(by_margins, ks)}
    return Outcome(numbers, arrays)


def halves(problem: Problem, n_points: int) -> Bases:
    """Return the first points of a problem in two halves: one to learn from, which is the seen base, and a new base."""
    rows = np.random.default_rng(SPLIT_SEED).permutation(n_points)
    y, query_y = np.asarray(problem.y), np.asarray(problem.query_y)
    learnt, kept = (
        (np.asarray(problem.X[part], np.float32), y[part]) for part in map(np.sort, np.split(rows, [n_points // 2]))
    )
    return Bases(learnt, learnt, kept, (np.asarray(problem.queries, np.float32), query_y))


def _of_row(row: ByteRow, ks: Sequence[int], problem: Problem) -> Outcome:
    if "pip install" in row.note:
        return Outcome({"without": row.note})
    if not row.new:
        raise UndefinedError(row.note)
    numbers = {"train_seconds": row.seconds, "encode_us": row.encode_us, "own_bytes": row.own_bytes}
    arrays = {"ks": np.asarray(ks)} | {base: _table([getattr(row, base)], ks) for base in BASES}
    return Outcome({**numbers, "protocol": problem.protocol}, arrays)


def _table(scores: Sequence[Mapping[int, float]], ks: Sequence[int]) -> NDArray[np.float64]:
    return np.array([[one[k] for k in ks] for one in scores])


def precision_in(results: Results, cell: Cell, bits: int, k: int, base: str, *, asymmetric: bool = False) -> float:
    """Return precision at k with so many bits among new or seen items; NaN where it is not there or not defined."""
    outcome = results.read(cell)
    if outcome is None or not outcome.done or "without" in outcome.numbers:
        return float("nan")
    row, column = cell.params["at"].index(bits), cell.params["ks"].index(k)
    return float(outcome.arrays[f"{base}, asymmetric" if asymmetric else base][row, column])
