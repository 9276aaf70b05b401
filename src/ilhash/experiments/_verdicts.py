"""How a claim is judged: rules that return what was measured and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash.experiments._store import Results
from ilhash.experiments._style import number

__all__ = [
    "FAILS",
    "HOLDS",
    "PARTLY",
    "UNTESTED",
    "Claim",
    "Judged",
    "above",
    "all_of",
    "judge",
    "judged_by",
    "mean",
    "untested",
]

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "partly", "does not hold here", "not tested"

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """What was measured, and the verdict."""

    measured: str
    verdict: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper.

    Attributes
    ----------
    name : for tests and links
    text : the statement
    where : in the paper
    rule : how it is tested, written before the numbers were known, with margins and seeds
    test : computes it from stored cells
    """

    name: str
    text: str
    where: str
    rule: str
    test: Callable[[Results], Judged]


def untested(why: str) -> Judged:
    """Return the verdict where there is nothing to judge by."""
    return Judged(why, UNTESTED)


def judge(claim: Claim, results: Results) -> Judged:
    """Judge a claim; numbers that are missing or undefined make it untested."""
    judged = claim.test(results)
    return untested("cells are missing") if "n/a" in judged.measured and judged.verdict != UNTESTED else judged


def mean(values: Values) -> float:
    """Return the mean; NaN where any seed is missing."""
    return float(np.mean(values)) if len(values) else float("nan")


def above(high: Values, low: Values, margin: float, names: tuple[str, str]) -> Judged:
    """Judge whether the mean of one is above that of another by a margin: partly if it is above by less."""
    gap = mean(high) - mean(low)
    told = f"{names[0]} {number(mean(high))}, {names[1]} {number(mean(low))}"
    return Judged(told, HOLDS if gap >= margin else PARTLY if gap > 0 else FAILS)


def judged_by(told: str, holds: bool | np.bool_, partly: bool | np.bool_ = False) -> Judged:
    """Judge by two conditions, the weaker one second."""
    return Judged(told, HOLDS if holds else PARTLY if partly else FAILS)


def all_of(parts: list[Judged]) -> Judged:
    """Judge several at once: holds if all hold, fails if all fail, else partly; untested if any could not be judged."""
    if not parts or any(part.verdict == UNTESTED or "n/a" in part.measured for part in parts):
        return untested("cells are missing")
    told = "; ".join(part.measured for part in parts)
    verdicts = {part.verdict for part in parts}
    return Judged(told, verdicts.pop() if len(verdicts) == 1 else PARTLY)
