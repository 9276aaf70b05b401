"""Means over queries, straight from codes and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.evaluation._histograms import distance_histograms
from ilhash.evaluation._measures import Curves, Histograms, Ties, Whole, check_ties, mean_defined
from ilhash.evaluation._relevance import relevance_from_labels
from ilhash.evaluation._report import WithinRadius

__all__ = ["mean_average_precision", "precision_at_k", "precision_recall_curve", "recall_at_k", "within_radius"]


def precision_at_k(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    k: Whole = 100,
    *,
    ties: Ties = "expected",
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Return the tie-aware expected precision among the k nearest codes, mean over queries, one value per k.

    Where the k-th place falls among points at one distance, each of them is counted with the probability that a random
    order of the ties puts it into the first k.

    Parameters
    ----------
    base_codes, query_codes : packed codes, uint8 (n, ceil(b / 8)) and (n_queries, ceil(b / 8))
    base_labels, query_labels : one label each, equal ones being relevant; or several each (an indicator matrix, dense
        or sparse, or a sequence of sets), a shared one being enough
    k : one or several numbers of neighbours, at most n
    ties : "expected", or the bounds "optimistic" and "pessimistic": the best and the worst order of the ties
    n_threads : threads that share the queries

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> precision_at_k(base, [7, 7, 8], queries, [7], k=[1, 2, 3])
    array([1.        , 0.75      , 0.66666667])
    """
    check_ties(ties)
    found = _histograms(base_codes, base_labels, query_codes, query_labels, n_threads)
    return mean_defined(found.precision_at_k(k, ties))


def recall_at_k(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    k: Whole = 100,
    *,
    ties: Ties = "expected",
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Return the tie-aware recall of the k nearest codes, one value per k; parameters as in :func:`precision_at_k`.

    It is the mean over the queries that have a relevant base item, NaN if none has; :func:`evaluate` counts the others.

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> recall_at_k(base, [7, 7, 8], queries, [7], k=[1, 2, 3])
    array([0.5 , 0.75, 1.  ])
    """
    check_ties(ties)
    found = _histograms(base_codes, base_labels, query_codes, query_labels, n_threads)
    return mean_defined(found.recall_at_k(k, ties))


def mean_average_precision(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    k: int | None = None,
    *,
    ties: Ties = "expected",
    n_threads: int = 1,
) -> float:
    """Return the tie-aware mean average precision (mAP), of the whole ranking or at k.

    Average precision is divided by the number of relevant items, at k by min(k, relevant items). The mean is over the
    queries that have a relevant base item (NaN if none has). Parameters as in :func:`precision_at_k`.

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> round(mean_average_precision(base, [7, 7, 8], queries, [7]), 4)  # 1 and the mean of 1 and 5/6
    0.9167
    """
    check_ties(ties)
    found = _histograms(base_codes, base_labels, query_codes, query_labels, n_threads)
    return float(mean_defined(found.average_precision(k, ties)))


def precision_recall_curve(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    *,
    ties: Ties = "expected",
    n_threads: int = 1,
) -> Curves:
    """Return mean precision and recall of the k nearest codes for every k from 1 to the size of the base.

    This is the paper's curve: one point (recall, precision) for each k. The curve by radius instead comes from
    :meth:`Histograms.precision_within` and :meth:`Histograms.recall_within`.

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> curve = precision_recall_curve(base, [7, 7, 8], queries, [7])
    >>> curve.recall, curve.precision
    (array([0.5 , 0.75, 1.  ]), array([1.        , 0.75      , 0.66666667]))
    """
    check_ties(ties)
    return _histograms(base_codes, base_labels, query_codes, query_labels, n_threads).curves(ties)


def within_radius(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    radius: int = 2,
    *,
    empty: int | str = 0,
    n_threads: int = 1,
) -> WithinRadius:
    """Return mean precision and recall of the codes within a Hamming radius, and the share of empty results.

    Parameters
    ----------
    radius : the largest distance that is still a result
    empty : what a query without any result counts for precision: 0, or "skip" to leave it out of the mean

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0], [240]], np.uint8)
    >>> within_radius(base, [7, 7, 8], queries, [7, 8], radius=1)
    WithinRadius(radius=1, precision=0.333..., recall=0.5, empty_share=0.5, empty=0)
    """
    found = _histograms(base_codes, base_labels, query_codes, query_labels, n_threads)
    return WithinRadius.of(found, radius, empty)


def _histograms(base_codes: Any, base_labels: Any, query_codes: Any, query_labels: Any, n_threads: int) -> Histograms:
    relevance = relevance_from_labels(base_labels, query_labels)
    return distance_histograms(base_codes, query_codes, relevance, n_threads=n_threads)
