"""Tasks that measure time; nothing else may run meanwhile."""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable, Mapping
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from ilhash import ILH
from ilhash.experiments.engine.cells import Outcome
from ilhash.experiments.engine.models import PAPER, fit_model
from ilhash.experiments.engine.peers import train_bit
from ilhash.experiments.engine.problems import Problem

Params = Mapping[str, Any]


def _seconds(action: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def training_time(problem: Problem, params: Params, seed: int) -> Outcome:
    """Seconds of training all bits on one thread, and for ILH the median of a bit and its stages."""
    begin = time.perf_counter()
    model = fit_model(params["method"], params["settings"], params["bits"], seed, problem.X, problem.y)
    numbers: dict[str, Any] = {"seconds": time.perf_counter() - begin}
    if params["method"] == "ILH":
        reports = [report.seconds for report in model.bits_]
        numbers["per_bit"] = float(np.median([sum(report.values()) for report in reports]))
        numbers["stages"] = {stage: float(np.median([report[stage] for report in reports])) for stage in reports[0]}
    return Outcome(numbers)


def assembled_time(problem: Problem, params: Params, seed: int) -> Outcome:
    """Seconds per bit of what one could assemble from public packages: the peer of ``benchmarks/train.py``."""
    if params["flow"] == "pymaxflow" and importlib.util.find_spec("maxflow") is None:
        return Outcome({"without": "it is not installed"})
    rows = np.random.default_rng(seed).permutation(len(problem.X))[: 10 * params["n_train"]]
    X = np.asarray(problem.X[rows], dtype=np.float32)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-6)
    labels = np.asarray(problem.y)[rows]
    rng = np.random.default_rng(seed)
    times = []
    for bit in range(params["bits"]):
        own = rng.permutation(len(X))[: params["n_train"]]
        train = functools.partial(train_bit, X, labels, own, C=0.01, seed=bit, flow=params["flow"])
        times.append(_seconds(train))
    return Outcome({"per_bit": float(np.median(times))})


def encoding_time(problem: Problem, params: Params, seed: int) -> Outcome:
    """Seconds of encoding a vector among many, and one alone, for functions of each share of the features, in turns."""
    models = [
        ILH(n_bits=params["bits"], random_state=seed, n_features=share, **{**PAPER, **params["settings"]}).fit(
            problem.X, problem.y
        )
        for share in params["fractions"]
    ]
    many = np.asarray(problem.X[:20_000], dtype=np.float32)
    one = many[:1]
    batch = np.empty((params["rounds"], len(models)))
    lone = np.empty_like(batch)
    for turn in range(params["rounds"]):
        for column, model in enumerate(models):
            batch[turn, column] = _seconds(functools.partial(model.transform, many)) / len(many)
            calls = [_seconds(functools.partial(model.transform, one)) for _ in range(50)]
            lone[turn, column] = np.median(calls)
    return Outcome({"per_vector": np.median(batch, axis=0).tolist(), "lone": np.median(lone, axis=0).tolist()})


def speed_up(problem: Problem, params: Params, seed: int) -> Outcome:
    """Seconds of training on one thread and on two, in turns, and what two cores are to one on this machine."""

    def train(workers: int) -> float:
        model = ILH(n_bits=params["bits"], random_state=seed, n_jobs=workers, **{**PAPER, **params["settings"]})
        return _seconds(lambda: model.fit(problem.X, problem.y))

    train(2)
    rounds = [(train(1), train(2), _machine_limit(params["products"])) for _ in range(params["rounds"])]
    one, two, limit = (float(value) for value in np.median(np.array(rounds), axis=0))
    ratio = float(np.median([a / b for a, b, _ in rounds]))
    return Outcome({"one": one, "two": two, "speed_up": ratio, "machine": limit})


def _products(count: int) -> float:
    block = np.ones((512, 320), np.float32)
    with threadpool_limits(1):
        return _seconds(lambda: [block.T @ block for _ in range(count)])


def _machine_limit(count: int) -> float:
    """How much two cores get done in the time of one where they share nothing, not even memory."""
    alone = _products(count)
    with joblib.parallel_config(backend="threading"):
        both = joblib.Parallel(n_jobs=2)(joblib.delayed(_products)(count) for _ in range(2))
    return float(2.0 * alone / max(both))
