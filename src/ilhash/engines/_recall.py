"""How much an approximate mode misses, and what it saves, on codes of one's own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ilhash import codes as packed
from ilhash._checks import check_count
from ilhash.engines._places import open as open_engine
from ilhash.engines._places import without_password
from ilhash.search import Hits

ENOUGH = 0.99


@dataclass(frozen=True)
class Recall:
    """What was measured.

    Attributes
    ----------
    mode : str, the mode that was measured
    recall : float, the share of the k nearest, by distance, that was found
    fewer : bool, whether some query got fewer answers than there are
    seconds, exact_seconds : float, of one query in this mode and in the exact one
    n_queries, k : int, how many queries were asked for how many answers
    """

    mode: str
    recall: float
    fewer: bool
    seconds: float
    exact_seconds: float
    n_queries: int
    k: int

    @property
    def advice(self) -> str:
        """One sentence: whether to use it."""
        if self.recall < ENOUGH:
            share = f"{self.recall:.3f} of the {self.k} nearest were found"
            exact = f"use mode='exact' ({1e3 * self.exact_seconds:.1f} ms a query)"
            return (
                f"{share}, though every code is in it once: {exact}, or ask for more than {self.k} and keep the first"
            )
        if self.seconds > self.exact_seconds:
            return "nothing is missed, and nothing is gained: exact search is faster here"
        return f"hardly anything is missed, {self.exact_seconds / self.seconds:.1f} times faster than exact search"


def measure_recall(url: str, mode: str, queries: Any, k: int = 10, *, table: str = "ilhash") -> Recall:
    """Measure recall by distance: an answer counts if its distance is at most that of the k-th nearest.

    Ids would count which of the items at one distance was chosen, of which learned codes have many.

    Parameters
    ----------
    url, table : str, the engine and the place, as in :func:`ilhash.engines.open`
    mode : str, the approximate mode that is measured
    queries : uint8 array (n_queries, ceil(n_bits / 8)), codes to ask for, at least one
    k : int, default 10, how many nearest

    Returns
    -------
    Recall
    """
    check_count("k", k)
    queries = packed.check(queries, None, "queries")
    check_count("the number of queries", len(queries))
    truth, exact_seconds = _asked(url, "exact", queries, k, table)  # one after the other: some engines open but once
    found, seconds = _asked(url, mode, queries, k, table)
    if truth.ids.size == 0:
        raise ValueError(f"{without_password(url)} must hold items to be measured, got none")
    n, n_wanted = truth.ids.shape
    right = (found.distances <= truth.distances[:, -1:]).sum()
    return Recall(mode, float(right / truth.ids.size), found.ids.shape[1] < n_wanted, seconds, exact_seconds, n, k)


def _asked(url: str, mode: str, queries: Any, k: int, table: str) -> tuple[Hits, float]:
    """Return the answers in a mode, and the seconds of one query."""
    with open_engine(url, mode=mode, table=table) as engine:
        engine.search(queries[:1], k)  # what is built or read at the first query is not counted
        begin = time.perf_counter()
        hits = engine.search(queries, k)
        return hits, (time.perf_counter() - begin) / len(queries)
