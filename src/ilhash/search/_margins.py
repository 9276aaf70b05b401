"""Margins in 8 bits, and items ordered by them: what tells items of one code apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._checks import as_array
from ilhash.search._segment import Found

STEPS = 127


class MarginScale:
    """One factor per bit: margin = factor * int8. Margins beyond the span are cut off."""

    def __init__(self, factor: NDArray[np.float32]) -> None:
        self.factor = factor

    @classmethod
    def of(cls, margins: NDArray[np.float32]) -> MarginScale:
        """Span the margins that are given."""
        largest = np.abs(margins).max(axis=0, initial=0.0)
        return cls(np.where(largest > 0, largest / STEPS, 1.0).astype(np.float32))

    def quantise(self, margins: NDArray[np.float32]) -> NDArray[np.int8]:
        """Return margins in 8 bits."""
        steps: NDArray[np.int8] = np.clip(np.rint(margins / self.factor), -STEPS, STEPS).astype(np.int8)
        return steps


def as_margins(margins: Any, n_bits: int, n: int | None) -> NDArray[np.float32]:
    """Return margins as float32 (n, n_bits), or say what is wrong with them."""
    array = np.asarray(as_array("margins", margins))
    rows = "n" if n is None else n
    if array.ndim != 2 or array.shape[1] != n_bits or array.dtype.kind != "f" or (n is not None and len(array) != n):
        got = f"{array.dtype} of shape {array.shape}"
        raise ValueError(f"margins must be floats of shape ({rows}, {n_bits}), got {got}")
    wrong = np.count_nonzero(~np.isfinite(array).all(axis=1))
    if wrong:
        raise ValueError(f"margins must be finite, got others in {wrong} of {len(array)} rows")
    return np.ascontiguousarray(array, np.float32)


def rescored_by_margins(
    found: Found, queries: NDArray[np.float32], kept: NDArray[np.int8], scale: MarginScale
) -> Found:
    """Return the same items in the order of the distance between the directions of margins, then of rows.

    Directions, because the size of an item's margins says how typical it is of its own code rather than how near it is
    to the query: on learned codes the order by angle was better than that by plain distance (docs/search.md).
    """
    distances = np.empty(len(found.rows), np.float32)
    rows = found.rows.copy()
    directions = _directions(queries)
    for q, (begin, end) in enumerate(zip(found.offsets[:-1], found.offsets[1:], strict=True)):
        some = np.sort(found.rows[begin:end])
        distance = np.linalg.norm(_directions(kept[some] * scale.factor) - directions[q], axis=1)
        order = np.argsort(distance, kind="stable")
        rows[begin:end], distances[begin:end] = some[order], distance[order]
    return Found(found.offsets, rows, distances)


def _directions(margins: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(margins, axis=1, keepdims=True)
    return np.asarray(margins / np.where(lengths > 0, lengths, 1.0), np.float32)
