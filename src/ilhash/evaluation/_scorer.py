"""Retrieval as scikit-learn's searches want it: one number of a fitted model and points that it did not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core, codes
from ilhash._checks import check_count, check_threads
from ilhash.evaluation._histograms import distance_histograms
from ilhash.evaluation._labels import known_only
from ilhash.evaluation._measures import Histograms, Ties, check_ties
from ilhash.evaluation._relevance import relevance_from_labels


@dataclass(frozen=True)
class RetrievalScorer:
    """What :func:`retrieval_scorer` returns; travels to other processes.

    Parameters
    ----------
    k, n_queries, seed, ties, n_threads : as in :func:`retrieval_scorer`
    """

    k: int = 10
    n_queries: int | None = 1000
    seed: int = 0
    ties: Ties = "expected"
    n_threads: int = 1

    def __post_init__(self) -> None:
        check_count("k", self.k)
        check_count("seed", self.seed, 0)
        check_ties(self.ties)
        check_threads(self.n_threads)
        if self.n_queries is not None:
            check_count("n_queries", self.n_queries)

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return precision@k among the points of a fold.

        Parameters
        ----------
        estimator : a fitted model, or a pipeline that ends in one
        X, y : array (n, D) and labels, as in :func:`precision_at_k`, points that were not trained on

        Returns
        -------
        float, between 0 and 1
        """
        if isinstance(estimator, type) or not hasattr(estimator, "transform"):
            got = getattr(estimator, "__name__", type(estimator).__name__)
            raise TypeError(f"estimator must be a fitted model of ilhash or a pipeline that ends in one, got {got}")
        if y is None:
            raise ValueError("y must hold labels, by which what is found is judged, got None")
        packed, y = _packed(estimator, X), y.to_numpy() if hasattr(y, "to_numpy") else y  # frames count by names
        _refuse_other_length(y, len(packed))
        packed, labels = known_only(packed, y, "y")
        n_others = len(packed) - 1
        if self.k > n_others:
            raise ValueError(f"k must be at most the {n_others} other labelled points of the fold, got {self.k}")
        asked = self._queries(len(packed))
        found = _without_itself(packed, labels, asked, check_threads(self.n_threads))
        return float(found.precision_at_k(self.k, self.ties).mean())

    def _queries(self, n: int) -> NDArray[np.int64]:
        """Rows that are searched for: all, or some that the seed draws, by the core's permutation, fixed for ever."""
        if self.n_queries is None or self.n_queries >= n:
            return np.arange(n)
        seed = int(np.random.SeedSequence(self.seed).generate_state(1, np.uint64)[0])
        return np.sort(_core.permuted(n, seed, 0, self.n_queries))


def _packed(estimator: Any, X: Any) -> NDArray[np.uint8]:
    packed = estimator.transform(X)
    if not isinstance(packed, np.ndarray) or packed.dtype != np.uint8:
        got = getattr(packed, "dtype", type(packed).__name__)
        raise TypeError(f"estimator must give packed codes (uint8), as models of ilhash do, got {got}")
    return codes.check(packed, None, "the codes of the estimator")


def _refuse_other_length(y: Any, n: int) -> None:
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple):
        shape = (len(y),)
    if not shape or shape[0] != n:
        got = shape[0] if shape else type(y).__name__
        raise ValueError(f"y must hold one entry for each of the {n} points, got {got}")


def _without_itself(packed: NDArray[np.uint8], labels: Any, asked: NDArray[np.int64], n_threads: int) -> Histograms:
    """Every point finds itself at distance 0: it is taken off again."""
    wanted = labels[asked] if hasattr(labels, "shape") else [labels[row] for row in asked.tolist()]
    relevance = relevance_from_labels(labels, wanted)
    found = distance_histograms(packed, packed[asked], relevance, n_threads=n_threads)
    return found.without_itself(np.ones(len(asked), bool), _has_label(wanted))


def _has_label(wanted: Any) -> NDArray[np.bool_]:
    """Whether a point is relevant to itself: of several labels a point may have none."""
    if scipy.sparse.issparse(wanted) or getattr(wanted, "ndim", 1) == 2:
        return np.asarray(np.asarray(wanted.sum(axis=1)).ravel() > 0)
    several = [isinstance(entry, set | frozenset | list | tuple | np.ndarray) for entry in wanted]
    return np.array([not many or len(entry) > 0 for many, entry in zip(several, wanted, strict=True)], bool)


def retrieval_scorer(
    k: int = 10, *, n_queries: int | None = 1000, seed: int = 0, ties: Ties = "expected", n_threads: int = 1
) -> RetrievalScorer:
    """Return a scorer for GridSearchCV, cross_val_score and their like: precision@k among points not trained on.

    Within the fold that it is given every point is a query against all other points of the fold, itself left out. A
    fold is smaller than the data: numbers of folds of one size can be compared, others not.

    Parameters
    ----------
    k : int, default 10, number of neighbours, fewer than a fold has points
    n_queries : int, optional, default 1000, queries at most, drawn with the seed; None: every point is one
    seed : int, default 0, of that draw: the same points for every model
    ties : {"expected", "optimistic", "pessimistic"}, default "expected", as in :func:`precision_at_k`
    n_threads : int, default 1, threads that share the queries

    Returns
    -------
    callable, (estimator, X, y) to float, for models of ilhash and for pipelines that end in one

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from ilhash import datasets, methods
    >>> X, y = datasets.load("digits").X, datasets.load("digits").y
    >>> scores = cross_val_score(methods.ITQ(n_bits=32), X, y, cv=3, scoring=retrieval_scorer(k=10))
    >>> bool((scores > 0.8).all())
    True
    """
    return RetrievalScorer(k, n_queries, seed, ties, n_threads)
