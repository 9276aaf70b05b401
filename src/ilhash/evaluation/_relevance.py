"""What is relevant to which query: equal labels, shared labels, or lists of rows."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash._labels import missing_labels
from ilhash.evaluation._labels import indicators, label_codes, one_label_each
from ilhash.vectors import nearest_rows


@typing.runtime_checkable
class Relevance(typing.Protocol):
    """Which rows of the base are relevant to each query."""

    @property
    def n_base(self) -> int:
        """Number of base items."""

    @property
    def n_queries(self) -> int:
        """Number of queries."""

    def rows(self, query: int) -> NDArray[Any]:
        """Return the base rows that are relevant to one query, each once, in any order.

        Parameters
        ----------
        query : int, number of the query

        Returns
        -------
        int array, rows of the base
        """


@dataclass(frozen=True, eq=False)
class EqualLabels(Relevance):
    """Sorted by class, the base has one interval of relevant rows for each query.

    Attributes
    ----------
    order : int64 array (n_base,), the base rows sorted by class
    begin, end : int64 array (n_queries,), order[begin[q]:end[q]] are relevant to query q
    """

    order: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @property
    def n_base(self) -> int:
        return len(self.order)

    @property
    def n_queries(self) -> int:
        return len(self.begin)

    def rows(self, query: int) -> NDArray[np.int64]:
        """Return the base rows of the query's label.

        Parameters
        ----------
        query : int

        Returns
        -------
        int64 array
        """
        return self.order[self.begin[query] : self.end[query]]


@dataclass(frozen=True, eq=False)
class SharedLabels(Relevance):
    """Several labels per item; sharing one makes a base item relevant. Rows are found when they are asked for.

    Attributes
    ----------
    members : sparse array (n_labels, n_base), the base items that have each label
    wanted : sparse array (n_queries, n_labels), the labels of each query
    """

    members: scipy.sparse.csr_array
    wanted: scipy.sparse.csr_array

    @property
    def n_base(self) -> int:
        return int(self.members.shape[1])

    @property
    def n_queries(self) -> int:
        return int(self.wanted.shape[0])

    def rows(self, query: int) -> NDArray[np.int64]:
        """Return the base rows that share a label with the query.

        Parameters
        ----------
        query : int

        Returns
        -------
        int64 array
        """
        shares = np.zeros(self.n_base, np.bool_)
        for label in self.wanted.indices[self.wanted.indptr[query] : self.wanted.indptr[query + 1]]:
            shares[self.members.indices[self.members.indptr[label] : self.members.indptr[label + 1]]] = True
        return np.flatnonzero(shares)


@dataclass(frozen=True, eq=False)
class RowLists:
    """The relevant rows themselves: ``listed[offsets[q]:offsets[q + 1]]`` are those of query q.

    Parameters
    ----------
    offsets : int array (n_queries + 1,), where the rows of each query begin
    listed : int array, rows of the base, of all queries one after the other
    n_base : int, number of base items

    Examples
    --------
    >>> relevance = RowLists(np.array([0, 2, 2]), np.array([4, 1]), n_base=5)
    >>> relevance.rows(0), relevance.rows(1)
    (array([4, 1]), array([], dtype=int64))
    """

    offsets: NDArray[Any]
    listed: NDArray[Any]
    n_base: int

    def __post_init__(self) -> None:
        offsets, listed = self.offsets, self.listed
        whole = offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) > 0
        if not whole or offsets[0] != 0 or offsets[-1] != len(listed) or (np.diff(offsets) < 0).any():
            raise ValueError(f"offsets must rise from 0 to the {len(listed)} listed rows, got {offsets!r}")
        outside = int(np.count_nonzero((listed < 0) | (listed >= self.n_base))) if len(listed) else 0
        if listed.ndim != 1 or (len(listed) and listed.dtype.kind not in "iu") or outside:
            got = f"{outside} of {len(listed)} outside, {listed.ndim}-D {listed.dtype}"
            raise ValueError(f"listed must be rows between 0 and n_base - 1 = {self.n_base - 1}, got {got}")
        twice = sum(len(np.unique(self.rows(query))) < len(self.rows(query)) for query in range(self.n_queries))
        if twice:
            raise ValueError(f"listed must name a row once per query, got repeats for {twice} of {self.n_queries}")

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    def rows(self, query: int) -> NDArray[Any]:
        """Return the listed base rows of the query.

        Parameters
        ----------
        query : int, number of the query

        Returns
        -------
        int array, rows of the base
        """
        return self.listed[self.offsets[query] : self.offsets[query + 1]]


def by_label(base_labels: Any, query_labels: Any) -> EqualLabels:
    """Take equal labels as relevant: all whole numbers (also as float or bool) or all text.

    None and NaN are unknown: they are relevant to nothing, and nothing is relevant to them. Every other value is a
    label, -1 too. Fractions are refused: they are equal by accident.

    Parameters
    ----------
    base_labels, query_labels : array_like (n,) and (n_queries,), one label per item

    Returns
    -------
    EqualLabels, what is relevant to which query

    Examples
    --------
    >>> by_label(["cat", "dog", "cat"], ["cat", "cow"]).rows(0)
    array([0, 2])
    """
    known, base = _known(base_labels, "base_labels")
    asked, queries = _known(query_labels, "query_labels")
    if base.dtype.kind != queries.dtype.kind and len(base) and len(queries):
        got = f"{queries.dtype} for {base.dtype}: none are equal"
        raise ValueError(f"query_labels must be of the kind of base_labels, got {got}")
    order = np.argsort(base, kind="stable")
    ranked = base[order]
    begin, end = np.zeros((2, len(asked)), np.int64)  # an empty interval for a label that is unknown
    begin[asked], end[asked] = (np.searchsorted(ranked, queries, side=side) for side in ("left", "right"))
    return EqualLabels(np.concatenate([np.flatnonzero(known)[order], np.flatnonzero(~known)]), begin, end)


def _known(labels: Any, name: str) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return which labels are known, and these."""
    array = one_label_each(labels, name)
    known = ~missing_labels(array)
    return known, label_codes(array[known], name)


def by_shared_labels(base_labels: Any, query_labels: Any) -> SharedLabels:
    """Take items that share at least one label as relevant.

    Parameters
    ----------
    base_labels, query_labels : array_like, both matrices of 0 and 1, dense or sparse, or both sequences of sets

    Returns
    -------
    SharedLabels, what is relevant to which query

    Examples
    --------
    >>> by_shared_labels([{"sea", "sky"}, {"dog"}, {"sky"}], [{"sky", "cow"}]).rows(0)
    array([0, 2])
    """
    base, queries = indicators(base_labels, query_labels)
    return SharedLabels(scipy.sparse.csr_array(base.T), queries)


def by_neighbors(base_vectors: Any, query_vectors: Any, n_neighbors: int) -> RowLists:
    """Take the K nearest base vectors in Euclidean space as relevant, of equally distant ones those of lower rows.

    Distances are sums of squared differences in float64.

    Parameters
    ----------
    base_vectors, query_vectors : array (n, D) and (n_queries, D), may be memory maps
    n_neighbors : int, k, the size of the true neighbourhood (10,000 in appendix C of the paper)

    Returns
    -------
    RowLists, what is relevant to which query

    Examples
    --------
    >>> by_neighbors([[0.0], [1.0], [5.0], [1.0]], [[0.9]], 2).rows(0)
    array([1, 3], dtype=int32)
    """
    rows = nearest_rows(base_vectors, query_vectors, n_neighbors)
    return RowLists(np.arange(0, rows.size + 1, rows.shape[1]), rows.ravel(), len(base_vectors))


def relevance_from_labels(base_labels: Any, query_labels: Any) -> EqualLabels | SharedLabels:
    """Choose by form: one label per item, or several (2-D, sparse, or a sequence of sets)."""
    several = [_several(labels) for labels in (base_labels, query_labels)]
    return by_shared_labels(base_labels, query_labels) if any(several) else by_label(base_labels, query_labels)


def _several(labels: Any) -> bool:
    if getattr(labels, "ndim", 1) == 2:
        return bool(scipy.sparse.issparse(labels) or labels.shape[1] != 1)
    first = next(iter(labels), None) if isinstance(labels, Iterable) else None
    return isinstance(first, set | frozenset) or (isinstance(first, list | tuple | np.ndarray) and len(first) != 1)
