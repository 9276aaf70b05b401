"""Answers of several segments brought together, and segments made one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._ids import n_repeated
from ilhash.search._hits import Hits, RangeHits
from ilhash.search._segment import Found, Segment
from ilhash.storage import DamagedFileError


def nearest(
    segments: Sequence[Segment], found: Sequence[Found], n_queries: int, k: int, kind_of_distance: Any, kind: str | None
) -> Hits:
    """Return the k first of all segments' answers, each of which has the same number of them for every query."""
    if not segments:
        empty = np.zeros((n_queries, 0), object if kind == "str" else np.int64)
        return Hits(np.zeros((n_queries, 0), kind_of_distance), empty)
    if len(segments) == 1:  # which has no more than k answers of a query
        (only,) = found
        shape = n_queries, len(only.rows) // n_queries if n_queries else 0
        return Hits(only.distances.reshape(shape), segments[0].ids.at(only.rows).reshape(shape))
    ids, distances = _side_by_side(segments, found, n_queries)
    order = np.lexsort((_ranks(ids), distances), axis=1)[:, :k]
    return Hits(np.take_along_axis(distances, order, 1), np.take_along_axis(ids, order, 1))


def shortlist(segments: Sequence[Segment], found: Sequence[Found], n_queries: int, size: int) -> list[Found]:
    """Return, of the answers of each segment, those that are among the first ``size`` of all."""
    if len(segments) < 2:
        return list(found)
    ids, distances = _side_by_side(segments, found, n_queries)
    chosen = np.zeros(ids.shape, np.bool_)
    np.put_along_axis(chosen, np.lexsort((_ranks(ids), distances), axis=1)[:, :size], True, axis=1)
    out = []
    last = 0
    for f in found:
        first, last = last, last + (len(f.rows) // n_queries if n_queries else 0)
        part = chosen[:, first:last]
        offsets = np.concatenate([[0], np.cumsum(part.sum(axis=1))])
        out.append(Found(offsets, f.rows[part.ravel()], f.distances[part.ravel()]))
    return out


def _side_by_side(
    segments: Sequence[Segment], found: Sequence[Found], n_queries: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ids and distances of all segments, a row per query."""
    widths = [len(f.rows) // n_queries if n_queries else 0 for f in found]
    ids = [s.ids.at(f.rows.reshape(n_queries, w)) for s, f, w in zip(segments, found, widths, strict=True)]
    distances = [f.distances.reshape(n_queries, w) for f, w in zip(found, widths, strict=True)]
    return np.concatenate(ids, axis=1), np.concatenate(distances, axis=1)


def within(segments: Sequence[Segment], found: Sequence[Found], n_queries: int, kind: str | None) -> RangeHits:
    """Return all answers of all segments."""
    if not segments:
        empty = np.zeros(0, object if kind == "str" else np.int64)
        return RangeHits(np.zeros(n_queries + 1, np.int64), empty, np.zeros(0, np.int32))
    if len(segments) == 1:
        return RangeHits(found[0].offsets, segments[0].ids.at(found[0].rows), found[0].distances)
    query = np.concatenate([np.repeat(np.arange(n_queries), np.diff(f.offsets)) for f in found])
    ids = np.concatenate([s.ids.at(f.rows) for s, f in zip(segments, found, strict=True)])
    distances = np.concatenate([f.distances for f in found])
    order = np.lexsort((_ranks(ids), distances, query))
    return RangeHits(np.sum([f.offsets for f in found], axis=0), ids[order], distances[order])


def _ranks(ids: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the order of the ids."""
    if ids.dtype != object:
        return ids
    return np.unique(ids, return_inverse=True)[1].reshape(ids.shape)


def merged(segments: Sequence[Segment]) -> Segment:
    """Return one segment of all that is alive."""
    if len(segments) == 1 and not len(segments[0].removed):
        return segments[0]
    pairs = [(segment, segment.rows_alive) for segment in segments]
    codes = np.concatenate([s.codes(rows) for s, rows in pairs])
    ids = np.concatenate([s.ids.at(rows) for s, rows in pairs])
    again = n_repeated(ids)
    if again:  # in a forged store alone; what would be written could not be opened
        raise DamagedFileError(f"ids must be in one segment each, got {again} of {len(ids)} in several")
    margins = None
    if "margins" in segments[0].arrays:
        margins = np.concatenate([s.arrays["margins"][rows] for s, rows in pairs])
    return Segment.build(codes, segments[0].body.n_bits, ids, margins)
