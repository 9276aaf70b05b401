"""A cell: the unit of computing, named by what it computes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

DONE, UNDEFINED, TIME_LIMIT = "done", "undefined", "time limit"

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Cell:
    """Something to compute: a task, its parameters as plain JSON, and a seed. Experiments that need the same share it.

    Attributes
    ----------
    task : name of a function in ``ilhash.experiments.engine.tasks``
    params, seed : what it is called with
    cost : seconds of one core that it is expected to take; for the time left, and never part of the name
    alone : whether nothing else may run meanwhile, because it is timed
    limit : seconds after which it is stopped and shown as such
    """

    task: str
    params: Mapping[str, Any]
    seed: int = 0
    cost: float = 1.0
    alone: bool = False
    limit: float | None = None

    @property
    def key(self) -> str:
        """The name of its files: the same task, parameters and seed give the same name."""
        text = json.dumps([self.task, self.params, self.seed], sort_keys=True, allow_nan=False)
        return f"{self.task}-{hashlib.sha256(text.encode('utf-8')).hexdigest()[:16]}"

    def __str__(self) -> str:
        return f"{self.task} {json.dumps(self.params, sort_keys=True)} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a cell gave.

    Attributes
    ----------
    numbers : plain JSON
    arrays : by name
    status : "done"; "undefined" where a method cannot give this many bits; "time limit" where it was stopped
    reason : one sentence where the status is not "done"
    seconds : it took
    """

    numbers: Mapping[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)
    status: str = DONE
    reason: str = ""
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        """Whether there are results."""
        return self.status == DONE


def distinct(cells: Iterable[Cell]) -> list[Cell]:
    """Leave out repeats, in the order of the first ones."""
    return list({cell.key: cell for cell in cells}.values())
