"""A shortlist put in the order of the original vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._checks import check_count, check_flag
from ilhash._ids import as_ids, refuse_repeated
from ilhash.search._hits import Hits
from ilhash.vectors import as_matrix


def rescore(
    hits: Hits, queries: Any, vectors: Any, k: int | None = None, *, ids: Any = None, angle: bool = False
) -> Hits:
    """Return hits in the order of the Euclidean distance between vectors, then of ids.

    A search in Hamming space brings a shortlist; the vectors decide its order, inside one code, too. Only the rows of
    the shortlist are read, so ``vectors`` may be a memory map far larger than memory.

    Parameters
    ----------
    hits : Hits, of a search with more answers than are wanted in the end
    queries, vectors : array (n_queries, D) and (n, D), of the queries, and of the items in the order of their ids
    k : int, optional, how many to keep; None: all
    ids : array_like (n,), optional, the id of each row of vectors, numbers or texts, each once; by default ids are
        row numbers
    angle : bool, default False, whether rows are scaled to length 1 first, as margins want it

    Returns
    -------
    Hits whose ``exact`` is False: an item that is not in the shortlist cannot be found.

    Examples
    --------
    >>> hits = Hits(np.array([[1, 1]], np.int32), np.array([[0, 1]]))
    >>> rescore(hits, np.array([[4.0]]), np.array([[0.0], [3.0]]), k=1)
    Hits(distances=array([[1.]], dtype=float32), ids=array([[1]]), exact=False)
    """
    if not isinstance(hits, Hits):
        raise TypeError(f"hits must be the Hits of a search, got {type(hits).__name__}")
    k = k if k is None else check_count("k", k)
    check_flag("angle", angle)
    wanted, vectors = as_matrix(queries, "queries"), as_matrix(vectors, "vectors")
    if wanted.ndim != 2 or len(wanted) != len(hits) or wanted.shape[1] != vectors.shape[1]:
        got = f"shape {wanted.shape} for {len(hits)} queries and vectors of shape {np.shape(vectors)}"
        raise ValueError(f"queries must have one row per query and the columns of vectors, got {got}")
    found = np.sort(hits.ids, axis=1)
    rows = _rows(found, len(vectors), ids)
    distances = np.empty(found.shape, np.float32)
    for q, row in enumerate(rows):
        difference = _scaled(vectors[row], angle) - _scaled(wanted[q : q + 1], angle)
        distances[q] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    order: NDArray[np.int64] = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Hits(np.take_along_axis(distances, order, 1), np.take_along_axis(found, order, 1), exact=False)


def _scaled(rows: Any, angle: bool) -> NDArray[np.float32]:
    array: NDArray[np.float32] = np.asarray(rows, np.float32)
    if not angle:
        return array
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = np.divide(array, lengths, out=np.zeros_like(array), where=lengths > 0)
    return scaled


def _rows(found: NDArray[Any], n: int, ids: Any) -> NDArray[np.int64]:
    """Return the rows of vectors whose ids were found."""
    if ids is None:
        if found.dtype == object or (found.size and (found.min() < 0 or found.max() >= n)):
            raise ValueError(f"ids of hits must be row numbers of vectors (0 to {n - 1}), got others; see ids")
        return found.astype(np.int64)
    names = as_ids(ids, n, "str" if found.dtype == object else "int")
    refuse_repeated(names)
    order = np.argsort(names, kind="stable")
    places = np.minimum(np.searchsorted(names[order], found.ravel()), n - 1)
    missing = np.count_nonzero(names[order][places] != found.ravel())
    if missing:
        raise ValueError(f"ids must hold those of all hits, got {missing} of {found.size} hits that are not among them")
    return order[places].reshape(found.shape)
