"""Histograms of Hamming distances, split by relevance: all that the retrieval measures need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core, codes
from ilhash._checks import check_threads
from ilhash.evaluation._measures import Histograms
from ilhash.evaluation._relevance import EqualLabels, Relevance

Codes = NDArray[np.uint8]


def _as_words(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return codes as rows of 64-bit words, padded with zeros: fewer steps, and the same distances and order."""
    n, width = packed.shape
    words = np.zeros((n, -(-width // 8)), np.uint64)
    words.view(np.uint8)[:, :width] = packed
    return words


def hamming_distances(a: NDArray[np.uint8], b: NDArray[np.uint8], *, n_bits: int | None = None) -> NDArray[np.int32]:
    """Return all distances between two sets of packed codes.

    Parameters
    ----------
    a, b : uint8 array (n, bytes) and (m, bytes), packed codes
    n_bits : int, optional, bits of a code; the width of the codes and their padding are checked

    Returns
    -------
    int32 array (n, m), Hamming distances

    Examples
    --------
    >>> hamming_distances(np.array([[1]], np.uint8), np.array([[0], [255]], np.uint8))
    array([[1, 7]], dtype=int32)
    """
    a, b = codes.check(a, n_bits, "a"), codes.check(b, n_bits, "b")
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
    base_codes, query_codes : uint8 array (n, ceil(n_bits / 8)) and (n_queries, ceil(n_bits / 8)), packed codes
    relevance : Relevance, by :func:`by_label`, :func:`by_shared_labels` or :func:`by_neighbors`
    n_bits : int, optional, bits of a code; None: all bits of every byte
    n_threads : int, default 1, threads that share the queries; the counts are the same for any number

    Returns
    -------
    Histograms, ``counts`` and ``hits``, int64 (n_queries, n_bits + 1), and every measure for each query as a method

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
    if not isinstance(relevance, Relevance):
        raise TypeError(f"relevance must be what by_label and its like return, got {type(relevance).__name__}")
    for side, wanted, name in ((base, relevance.n_base, "base_codes"), (queries, relevance.n_queries, "query_codes")):
        if len(side) != wanted:
            raise ValueError(f"labels or vectors must be one per code, got {wanted} for the {len(side)} rows of {name}")
    return Histograms(*_count(base, queries, relevance, bits, check_threads(n_threads)))


def _count(
    base: Codes, queries: Codes, relevance: Relevance, n_bits: int, n_threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count in the core; where relevant rows are not one interval of the sorted base, they are counted one by one."""
    counts, hits = (np.zeros((len(queries), n_bits + 1), np.int64) for _ in range(2))
    equal = relevance if isinstance(relevance, EqualLabels) else None
    begin = end = np.zeros(len(queries), np.int64)
    if equal:
        begin, end = equal.begin, equal.end
    tiles, queries = codes.to_tiles(base, equal.order if equal else None), np.ascontiguousarray(queries)
    _core.distance_histograms(tiles, len(base), n_bits, queries, begin, end, n_threads, counts, hits)
    if not equal:
        base_words, query_words = _as_words(base), _as_words(queries)
        for query, row in enumerate(hits):
            distances = _distances(query_words[query : query + 1], base_words[relevance.rows(query)])[0]
            row[:] = np.bincount(distances, minlength=n_bits + 1)
    return counts, hits
