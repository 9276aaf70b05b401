"""How a claim is judged: rules that return what was measured and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments.engine import Cell, Outcome, Results
from ilhash.experiments.report.drawing import number

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "partly", "does not hold here", "not tested"

Values = NDArray[np.float64]
DATASETS = ("images", "digits")


class MissingCells(Exception):  # noqa: N818 - not an error: a claim that cannot be judged yet
    """A number that a claim is judged by is not stored, or is not defined."""


@dataclass(frozen=True)
class Judged:
    """What was measured, and the verdict."""

    measured: str
    verdict: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper."""

    name: str  # for tests and links
    text: str  # the statement
    where: str  # in the paper
    rule: str  # how it is tested, written before the numbers were known, with margins and seeds
    test: Callable[[Results], Judged]  # computes it from stored cells; raises MissingCells where some are not there


@dataclass(frozen=True)
class Correction:
    """What a claim that is not met literally comes to under a stated change of the protocol, or why it cannot hold."""

    claim: str  # its name
    change: str  # what is other than in the claim's rule; margins and seeds are the same unless it says so
    why: str  # the reason why the literal rule is not met, and what the numbers say of it
    test: Callable[[Results], Judged]  # from stored cells and from what benchmarks/claims.py measured


def untested(why: str) -> Judged:
    """Return the verdict where there is nothing to judge by."""
    return Judged(why, UNTESTED)


def judge(claim: Claim | Correction, results: Results) -> Judged:
    """Judge a claim, or its correction; numbers that are missing or undefined make it untested."""
    try:
        return claim.test(results)
    except MissingCells:
        return untested("cells are missing")


def stored(results: Results, cell: Cell) -> Outcome:
    """Return what a cell gave; MissingCells where it was not computed, or gave nothing."""
    outcome = results.read(cell)
    if outcome is None or not outcome.done:
        raise MissingCells(str(cell))
    return outcome


def known(values: Any) -> Values:
    """Return numbers as an array; MissingCells where one is NaN, or there are none."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size or np.isnan(array).any():
        raise MissingCells("numbers must all be known to be judged by, got NaN or none")
    return array


def mean(values: Any) -> float:
    """Return the mean over seeds; MissingCells where one is missing."""
    return float(known(values).mean())


def above(high: Any, low: Any, margin: float, names: tuple[str, str]) -> Judged:
    """Judge whether the mean of one is above that of another by a margin: partly if it is above by less."""
    one, other = mean(high), mean(low)
    gap = one - other
    return judged_by(f"{names[0]} {number(one)}, {names[1]} {number(other)}", gap >= margin, gap > 0)


def judged_by(measured: str, holds: bool | np.bool_, partly: bool | np.bool_ = False) -> Judged:
    """Judge by two conditions, the weaker one second."""
    return Judged(measured, HOLDS if holds else PARTLY if partly else FAILS)


def all_of(several: list[Judged]) -> Judged:
    """Judge several at once: holds if all hold, fails if all fail, else partly; untested if any could not be judged."""
    if not several:
        raise MissingCells("several must hold something to judge, got none")
    for one in several:
        if one.verdict == UNTESTED:
            return one
    verdicts = {one.verdict for one in several}
    return Judged("; ".join(one.measured for one in several), verdicts.pop() if len(verdicts) == 1 else PARTLY)


def on_both(test: Callable[[Results, str], Judged]) -> Callable[[Results], Judged]:
    """Judge on each of the two datasets with labels."""
    return lambda results: all_of([test(results, dataset) for dataset in DATASETS])


def at_every_b(test: Callable[[Results, int], Judged]) -> Callable[[Results], Judged]:
    """Judge at each number of bits of the mechanisms."""
    return lambda results: all_of([test(results, bits) for bits in results.scale.bits])
