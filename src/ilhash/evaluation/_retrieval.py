"""Means over queries, straight from codes and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.evaluation._histograms import distance_histograms
from ilhash.evaluation._labels import known_only
from ilhash.evaluation._measures import Curves, Histograms, Ties, Whole, check_ties, mean_defined
from ilhash.evaluation._relevance import relevance_from_labels
from ilhash.evaluation._report import WithinRadius


def precision_at_k(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    k: Whole = 100,
    *,
    ties: Ties = "expected",
    n_bits: int | None = None,
    n_threads: int = 1,
) -> Any:
    """Return the tie-aware expected precision among the k nearest codes, mean over queries, one value per k.

    Where the k-th place falls among points at one distance, each of them is counted with the probability that a random
    order of the ties puts it into the first k.

    Parameters
    ----------
    base_codes, query_codes : uint8 array (n, ceil(b / 8)) and (n_queries, ceil(b / 8)), packed codes
    base_labels, query_labels : array_like, one label each, equal ones being relevant; or several each (an indicator
        matrix, dense or sparse, or a sequence of sets), a shared one being enough. Items whose label is None or NaN
        are left out of base and queries.
    k : int or sequence of int, default 100, number of neighbours, or several, at most n
    ties : {"expected", "optimistic", "pessimistic"}, default "expected", mean of all orders of ties, or best or worst
    n_bits : int, optional, bits of a code, b, by which width and padding are checked; None: all bits of every byte
    n_threads : int, default 1, threads that share the queries

    Returns
    -------
    float for one k, float64 array (number of k,) for a sequence, the mean over all queries

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> precision_at_k(base, [7, 7, 8], queries, [7], k=[1, 2, 3])
    array([1.        , 0.75      , 0.66666667])
    >>> precision_at_k(base, [7, 7, 8], queries, [7], k=2)
    0.75
    """
    found = _histograms(base_codes, base_labels, query_codes, query_labels, ties, n_bits=n_bits, n_threads=n_threads)
    return _plain(mean_defined(found.precision_at_k(k, ties)))


def recall_at_k(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    k: Whole = 100,
    *,
    ties: Ties = "expected",
    n_bits: int | None = None,
    n_threads: int = 1,
) -> Any:
    """Return the tie-aware recall of the k nearest codes, one value per k.

    Parameters
    ----------
    base_codes, base_labels, query_codes, query_labels, k, ties, n_bits, n_threads : as in :func:`precision_at_k`

    Returns
    -------
    float for one k, float64 array (number of k,) for a sequence, the mean over the queries that have a relevant base
    item, NaN if none has

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> recall_at_k(base, [7, 7, 8], queries, [7], k=[1, 2, 3])
    array([0.5 , 0.75, 1.  ])
    """
    found = _histograms(base_codes, base_labels, query_codes, query_labels, ties, n_bits=n_bits, n_threads=n_threads)
    return _plain(mean_defined(found.recall_at_k(k, ties)))


def mean_average_precision(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    k: int | None = None,
    *,
    ties: Ties = "expected",
    n_bits: int | None = None,
    n_threads: int = 1,
) -> float:
    """Return the tie-aware mean average precision (mAP), of the whole ranking or at k.

    The mean of :meth:`Histograms.average_precision` over the queries that have a relevant base item.

    Parameters
    ----------
    base_codes, base_labels, query_codes, query_labels, ties, n_bits, n_threads : as in :func:`precision_at_k`
    k : int, optional, where the ranking ends; by default at its end

    Returns
    -------
    float, NaN if no query has a relevant item

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> round(mean_average_precision(base, [7, 7, 8], queries, [7]), 4)  # 1 and the mean of 1 and 5/6
    0.9167
    """
    found = _histograms(base_codes, base_labels, query_codes, query_labels, ties, n_bits=n_bits, n_threads=n_threads)
    return float(mean_defined(found.average_precision(k, ties)))


def precision_recall_curve(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    *,
    ties: Ties = "expected",
    n_bits: int | None = None,
    n_threads: int = 1,
) -> Curves:
    """Return mean precision and recall of the k nearest codes for every k from 1 to the size of the base.

    This is the paper's curve: one point (recall, precision) for each k. The curve by radius instead comes from
    :meth:`Histograms.precision_within` and :meth:`Histograms.recall_within`.

    Parameters
    ----------
    base_codes, base_labels, query_codes, query_labels, ties, n_bits, n_threads : as in :func:`precision_at_k`

    Returns
    -------
    Curves, ``precision`` and ``recall``, one value for each k

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> curve = precision_recall_curve(base, [7, 7, 8], queries, [7])
    >>> curve.recall, curve.precision
    (array([0.5 , 0.75, 1.  ]), array([1.        , 0.75      , 0.66666667]))
    """
    found = _histograms(base_codes, base_labels, query_codes, query_labels, ties, n_bits=n_bits, n_threads=n_threads)
    return found.curves(ties)


def within_radius(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    radius: int = 2,
    *,
    empty: int | str = 0,
    n_bits: int | None = None,
    n_threads: int = 1,
) -> WithinRadius:
    """Return mean precision and recall of the codes within a Hamming radius, and the share of empty results.

    Parameters
    ----------
    base_codes, base_labels, query_codes, query_labels, n_bits, n_threads : as in :func:`precision_at_k`
    radius : int, default 2, the largest distance that is still a result
    empty : {0, "skip"}, default 0, what a query without any result counts for precision; "skip" leaves it out

    Returns
    -------
    WithinRadius, means over the queries

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0], [240]], np.uint8)
    >>> within_radius(base, [7, 7, 8], queries, [7, 8], radius=1)
    WithinRadius(radius=1, precision=0.333..., recall=0.5, empty_share=0.5, empty=0)
    """
    arrays = (base_codes, base_labels, query_codes, query_labels)
    return WithinRadius.of(_histograms(*arrays, "expected", n_bits=n_bits, n_threads=n_threads), radius, empty)


def _plain(values: NDArray[np.float64]) -> Any:
    """Return the value of one k as a number."""
    return values if values.ndim else float(values)


def _histograms(
    base_codes: Any, base_labels: Any, query_codes: Any, query_labels: Any, ties: Ties, **options: Any
) -> Histograms:
    check_ties(ties)  # before the work
    base_codes, base_labels = known_only(base_codes, base_labels, "base_labels")
    query_codes, query_labels = known_only(query_codes, query_labels, "query_labels")
    return distance_histograms(base_codes, query_codes, relevance_from_labels(base_labels, query_labels), **options)
