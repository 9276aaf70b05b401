"""Histograms of Hamming distances, split by relevance: all that the retrieval measures need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core, codes
from ilhash.evaluation._checks import check_whole
from ilhash.evaluation._measures import Histograms
from ilhash.evaluation._relevance import EqualLabels, Relevance

__all__ = ["distance_histograms", "hamming_distances"]

Codes = NDArray[np.uint8]


def _as_words(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return codes as rows of 64-bit words, padded with zeros: fewer steps, and the same distances and order."""
    n, width = packed.shape
    words = np.zeros((n, -(-width // 8)), np.uint64)
    words.view(np.uint8)[:, :width] = packed
    return words


def hamming_distances(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return all distances between two sets of packed codes, (len(a), len(b)).

    Examples
    --------
    >>> hamming_distances(np.array([[0], [255]], np.uint8), np.array([[1]], np.uint8))
    array([[1],
           [7]], dtype=int32)
    """
    a, b = codes.check(a, None, "a"), codes.check(b, None, "b")
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"b must have the width of a, got {b.shape[1]} and {a.shape[1]} bytes")
    return _distances(_as_words(a), _as_words(b))


def _distances(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.int32]:
    out = np.zeros((len(a), len(b)), np.int32)
    for column in range(a.shape[1]):
        out += np.bitwise_count(a[:, column, None] ^ b[None, :, column])
    return out


def distance_histograms(
    base_codes: Any, query_codes: Any, relevance: Relevance, *, n_bits: int | None = None, n_threads: int = 1
) -> Histograms:
    """Count, for each query, the base items at every distance, and how many of them are relevant.

    Parameters
    ----------
    base_codes, query_codes : packed codes, uint8 (n, ceil(n_bits / 8)) and (n_queries, ceil(n_bits / 8))
    relevance : what is relevant to what, by :func:`by_label`, :func:`by_shared_labels` or :func:`by_neighbours`
    n_bits : bits of a code; None: all bits of every byte
    n_threads : threads that share the queries; the counts are the same for any number

    Returns
    -------
    Histograms
        ``counts`` and ``hits``, int64 (n_queries, n_bits + 1), and every measure for each query as a method.

    Examples
    --------
    >>> from ilhash.evaluation import by_label
    >>> base, queries = np.array([[0], [1], [3]], np.uint8), np.array([[0]], np.uint8)
    >>> found = distance_histograms(base, queries, by_label(["cat", "dog", "cat"], ["cat"]), n_bits=8)
    >>> found.counts[0, :4], found.hits[0, :4]
    (array([1, 1, 1, 0]), array([1, 0, 1, 0]))
    >>> found.precision_at_k([1, 2])
    array([[1. , 0.5]])
    """
    base = codes.check(base_codes, n_bits, "base_codes")
    bits = 8 * base.shape[1] if n_bits is None else n_bits
    queries = codes.check(query_codes, bits, "query_codes")
    _match(len(base), relevance.n_base, "base_codes")
    _match(len(queries), relevance.n_queries, "query_codes")
    check_whole("n_threads", n_threads, 1)
    return Histograms(*_count(base, queries, relevance, bits, n_threads))


def _count(
    base: Codes, queries: Codes, relevance: Relevance, n_bits: int, n_threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count in the core; where relevant rows are not one interval of the sorted base, they are counted one by one."""
    counts, hits = (np.zeros((len(queries), n_bits + 1), np.int64) for _ in range(2))
    if isinstance(relevance, EqualLabels):
        tiles = codes.to_tiles(base, relevance.order)
        begin, end = relevance.begin, relevance.end
    else:
        tiles = codes.to_tiles(base)
        begin = end = np.zeros(len(queries), np.int64)
    queries = np.ascontiguousarray(queries)
    _core.distance_histograms(tiles, len(base), n_bits, queries, begin, end, n_threads, counts, hits)
    if not isinstance(relevance, EqualLabels):
        _count_listed(_as_words(base), _as_words(queries), relevance, hits)
    return counts, hits


def _count_listed(
    base: NDArray[np.uint64], queries: NDArray[np.uint64], relevance: Relevance, hits: NDArray[np.int64]
) -> None:
    for query in range(len(queries)):
        distances = _distances(queries[query : query + 1], base[relevance.rows(query)])[0]
        hits[query] = np.bincount(distances, minlength=hits.shape[1])


def _match(got: int, wanted: int, name: str) -> None:
    if got != wanted:
        raise ValueError(f"labels or vectors must be one per code, got {wanted} for the {got} rows of {name}")
