"""Retrieval quality of codes: pure functions of arrays.

Hamming distances are small whole numbers, so many points tie. Which of them comes first is an accident of the sort; the
expected value over all orders of the ties is what is reported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["hamming_distances", "precision_at_k"]

_POPCOUNT_BLOCK = 4 << 20  # distances held at a time


def hamming_distances(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return all distances between two sets of packed codes, (len(a), len(b)).

    Examples
    --------
    >>> hamming_distances(np.array([[0], [255]], np.uint8), np.array([[1]], np.uint8))
    array([[1],
           [7]], dtype=int32)
    """
    out = np.zeros((len(a), len(b)), np.int32)
    for column in range(a.shape[1]):
        out += np.bitwise_count(a[:, column, None] ^ b[None, :, column])
    return out


def precision_at_k(
    base_codes: NDArray[np.uint8],
    base_labels: NDArray[Any],
    query_codes: NDArray[np.uint8],
    query_labels: NDArray[Any],
    k: int | Sequence[int] = 100,
) -> NDArray[np.float64]:
    """Return the tie-aware expected precision among the k nearest codes, mean over queries, one value per k.

    Where the k-th place falls among points at one distance, each of them is counted with the probability that a random
    order of the ties puts it into the first k.
    """
    base_codes, query_codes = _codes(base_codes, "base_codes"), _codes(query_codes, "query_codes")
    base_labels, query_labels = np.asarray(base_labels), np.asarray(query_labels)
    if base_codes.shape[1] != query_codes.shape[1]:
        raise ValueError(
            f"query_codes must have the width of base_codes, got {query_codes.shape[1]} and {base_codes.shape[1]} bytes"
        )
    if len(base_labels) != len(base_codes) or len(query_labels) != len(query_codes):
        raise ValueError(
            f"labels must have one entry per code, got {len(base_labels)} for {len(base_codes)} and "
            f"{len(query_labels)} for "
            f"{len(query_codes)}"
        )
    ks = np.atleast_1d(np.asarray(k))
    if ks.dtype.kind not in "iu" or (ks < 1).any() or (ks > len(base_codes)).any():
        raise ValueError(f"k must be whole numbers between 1 and the {len(base_codes)} codes of the base, got {k!r}")
    total = np.zeros(len(ks))
    step = max(1, _POPCOUNT_BLOCK // len(base_codes))
    for first in range(0, len(query_codes), step):
        rows = slice(first, first + step)
        distances = hamming_distances(query_codes[rows], base_codes)
        relevant = query_labels[rows, None] == base_labels[None, :]
        total += _expected_precision(distances, relevant, 8 * base_codes.shape[1], ks).sum(axis=0)
    return np.asarray(total / len(query_codes))


def _codes(codes: Any, name: str) -> NDArray[np.uint8]:
    array: NDArray[np.uint8] = np.asarray(codes)
    if array.ndim != 2 or array.dtype != np.uint8 or len(array) == 0:
        raise ValueError(f"{name} must be a non-empty 2-D uint8 array, got shape {array.shape} {array.dtype}")
    return array


def _expected_precision(
    distances: NDArray[np.int32], relevant: NDArray[np.bool_], largest: int, ks: NDArray[Any]
) -> NDArray[np.float64]:
    """Precision at every k for each row, from histograms of distances: no sorting."""
    n_queries, width = len(distances), largest + 1
    cell = distances + width * np.arange(n_queries, dtype=np.int32)[:, None]
    counts = np.bincount(cell.ravel(), minlength=n_queries * width).reshape(n_queries, width)
    hits = np.bincount(cell[relevant], minlength=n_queries * width).reshape(n_queries, width)
    before, hits_before = counts.cumsum(axis=1) - counts, hits.cumsum(axis=1) - hits
    out = np.empty((n_queries, len(ks)))
    rows = np.arange(n_queries)
    for column, k in enumerate(ks):
        edge = (before + counts >= k).argmax(axis=1)  # the distance among whose ties the k-th place falls
        room = k - before[rows, edge]
        out[:, column] = (hits_before[rows, edge] + hits[rows, edge] * room / counts[rows, edge]) / k
    return out
