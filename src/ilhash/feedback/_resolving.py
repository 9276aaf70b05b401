"""From judgements, which may contradict each other, to signed pairs.

The rule, for each pair of items, whichever of them was the query: of every person who gave a name the latest judgement
counts, of people without a name every one. Each counts with its weight, halved for every half-life of its age. The
pair's weight is their sum, similar ones above and dissimilar ones below zero; where they cancel, nothing is known.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.feedback._columns import Columns

DAY = 86_400.0
CANCELLED = 1e-9  # share of the weights of a pair below which their sum is rounding
FADED = 1e-6  # share of the largest weight of a pair below which a pair has been forgotten

Pairs = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """What judgements came to.

    Attributes
    ----------
    n_judgements : int, all of them
    n_people : int, those who gave a name
    n_unknown : int, judgements of an item that is not among the ids that were asked for
    n_revised : int, judgements that the same person replaced later
    n_judged : int, pairs that the others are about
    n_contradictory : int, pairs that some call similar and others dissimilar
    n_undecided : int, those among them whose weights cancel: they are dropped
    n_faded : int, pairs that are too old to count: they are dropped
    n_similar, n_dissimilar : int, pairs that are left
    """

    n_judgements: int
    n_people: int
    n_unknown: int
    n_revised: int
    n_judged: int
    n_contradictory: int
    n_undecided: int
    n_faded: int
    n_similar: int
    n_dissimilar: int

    @property
    def n_pairs(self) -> int:
        """Pairs that can be learnt from."""
        return self.n_similar + self.n_dissimilar

    def to_dict(self) -> dict[str, int]:
        """Return all numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        named = "named person" if self.n_people == 1 else "named people"
        people = f" by {self.n_people:,} {named}" if self.n_people else ""
        found = f"{self.n_similar:,} similar and {_counted(self.n_dissimilar, 'dissimilar pair')}"
        notes = {
            "judgement about unknown ids": self.n_unknown,
            "judgement revised by the same person": self.n_revised,
            "pair with contradictory judgements": self.n_contradictory,
            "pair undecided and dropped": self.n_undecided,
            "pair too old and dropped": self.n_faded,
        }
        said = "; ".join(_counted(number, *what.split(" ", 1)) for what, number in notes.items() if number)
        return f"{_counted(self.n_judgements, 'judgement')}{people}: {found}{f' ({said})' if said else ''}"


def _counted(number: int, what: str, rest: str = "") -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'} {rest}".rstrip()


def resolve(
    columns: Columns, rows: NDArray[np.int64] | None, half_life: float | None, now: float
) -> tuple[Pairs, Summary]:
    """Return signed pairs (m, 3) with i < j, in ascending order, and what was made of the judgements.

    Parameters
    ----------
    columns : Columns, the judgements
    rows : int64 array, optional, the row that each id of the log is in, -1 where in none; None: ids are their places
    half_life : float, optional, days after which a judgement counts half
    now : float, seconds since 1970
    """
    ends = columns.ends() if rows is None else rows[columns.ends()]
    known = (ends >= 0).all(axis=1)
    low, high = ends.min(axis=1, initial=np.iinfo(np.int64).max), ends.max(axis=1, initial=-1)
    kept = _latest(np.flatnonzero(known), low, high, columns.people(), columns.times())
    signed = columns.weights()[kept]
    if half_life is not None:
        with np.errstate(under="ignore"):
            signed = signed * np.exp2(-np.maximum(now - columns.times()[kept], 0.0) / (half_life * DAY))
    keys, group = _grouped(low[kept], high[kept])
    total, size = np.bincount(group, signed, len(keys)), np.bincount(group, np.abs(signed), len(keys))
    votes = [np.bincount(group, columns.weights()[kept] * sign > 0, len(keys)) > 0 for sign in (1, -1)]
    faded = size <= FADED * size.max(initial=0.0)
    undecided = ~faded & (np.abs(total) <= CANCELLED * size)
    left = ~faded & ~undecided
    pairs = np.column_stack([keys[left].astype(np.float64), total[left]])
    summary = Summary(
        n_judgements=len(columns),
        n_people=columns.n_people,
        n_unknown=int(np.count_nonzero(~known)),
        n_revised=int(np.count_nonzero(known)) - len(kept),
        n_judged=len(keys),
        n_contradictory=int(np.count_nonzero(votes[0] & votes[1])),
        n_undecided=int(np.count_nonzero(undecided)),
        n_faded=int(np.count_nonzero(faded)),
        n_similar=int(np.count_nonzero(pairs[:, 2] > 0)),
        n_dissimilar=int(np.count_nonzero(pairs[:, 2] < 0)),
    )
    return pairs, summary


def _latest(
    some: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    people: NDArray[np.int64],
    times: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return, out of some judgements, the latest of each named person about each pair, and all of others."""
    person = np.where(people < 0, -1 - np.arange(len(people)), people)  # each without a name is somebody else
    order = some[np.lexsort((some, times[some], person[some], high[some], low[some]))]
    same = [column[order][1:] == column[order][:-1] for column in (low, high, person)]
    replaced = np.append(np.logical_and.reduce(same), False)[: len(order)]
    return np.sort(order[~replaced])


def _grouped(low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return distinct pairs (m, 2) in ascending order, and the number of each that is given."""
    order = np.lexsort((high, low))
    first = np.append(True, (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0))[: len(order)]
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(first) - 1
    return np.column_stack([low[order][first], high[order][first]]), group


def rows_of(columns: Columns, ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the row in which each id of the log stands among others, -1 where it does not."""
    wanted = columns.ids()
    if columns.kind == "int":
        order = np.argsort(ids, kind="stable")
        ranked = ids[order]
        places = np.minimum(np.searchsorted(ranked, wanted), max(len(ids) - 1, 0))
        return np.where(ranked[places] == wanted, order[places], -1) if len(ids) else np.full(len(wanted), -1)
    own = dict.fromkeys(wanted.tolist(), -1)
    for row, one in enumerate(ids.tolist()):
        if one in own:
            own[one] = row
    return np.fromiter(own.values(), np.int64, len(own))
