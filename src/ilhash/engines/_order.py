"""Better order of what an engine found: its shortlist, and the query's margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import as_numbers, check_count
from ilhash.search import Hits, rescore

if TYPE_CHECKING:
    from ilhash.engines._contract import Engine


def _margins(margins: Any, n_bits: int) -> NDArray[np.float32]:
    given: NDArray[np.float32] = as_numbers("margins", margins).astype(np.float32)
    if given.ndim != 2 or given.shape[1] != n_bits or not np.isfinite(given).all():
        rule = f"margins must be finite numbers in {n_bits} columns"
        raise ValueError(f"{rule}, got shape {given.shape}{'' if np.isfinite(given).all() else ' with others'}")
    return given


def _size(k: int, shortlist: int | None) -> int:
    return max(1000, 10 * k) if shortlist is None else check_count("shortlist", shortlist, k)


def by_margins(
    engine: Engine, margins: Any, items: Any, k: int, ids: Any, shortlist: int | None, wanted: Mapping[str, Any]
) -> Hits:
    """Return the k best of a shortlist by the angle between margins, then by id."""
    given = _margins(margins, engine.n_bits)
    near = engine.search(packed.pack(given > 0), _size(k, shortlist), **wanted)
    return rescore(near, given, items, k, ids=ids, angle=True)


def asymmetric(engine: Engine, margins: Any, k: int, shortlist: int | None, wanted: Mapping[str, Any]) -> Hits:
    """Return the k best of a shortlist by the sum of ``abs(margin)`` over the bits that differ, then by id."""
    given = _margins(margins, engine.n_bits)
    size = _size(k, shortlist)
    near = engine.search(packed.pack(given > 0), size, **wanted)
    whole = near.exact and size >= engine.count()
    if near.ids.size == 0:
        return Hits(near.distances.astype(np.float32), near.ids, exact=whole)
    distinct, where = np.unique(near.ids, return_inverse=True)
    bits = packed.unpack(engine.codes(distinct), engine.n_bits)
    where = where.reshape(near.ids.shape)  # also the rank of an id: ties go by it
    distances = np.empty(near.ids.shape, np.float32)
    for q, rows in enumerate(where):
        distances[q] = (bits[rows] != (given[q] > 0)) @ np.abs(given[q])
    best = np.lexsort((where, distances), axis=1)[:, :k]
    return Hits(np.take_along_axis(distances, best, 1), np.take_along_axis(near.ids, best, 1), exact=whole)
