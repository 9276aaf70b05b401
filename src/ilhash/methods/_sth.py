"""Supervised self-taught hashing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from ilhash._parameters import count, positive
from ilhash.diversity import seed_for
from ilhash.functions import standardization
from ilhash.methods._axes import one_way_round
from ilhash.methods._base import TrainingSet
from ilhash.methods._two_step import TwoStepMethod

_BLOCK = 512  # points whose distances to all others are held at a time


def label_graph(
    values: NDArray[np.float32], indicator: NDArray[np.float32], n_neighbors: int, bridge: float
) -> scipy.sparse.csr_array:
    """Return symmetric weights: 1 to nearest points that share a label, ``bridge`` to nearest ones that share none."""
    n = len(values)
    norms = np.einsum("ij,ij->i", values, values)
    count = min(n_neighbors, n - 1)
    pairs: dict[bool, list[NDArray[np.int64]]] = {True: [], False: []}
    for first in range(0, n, _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, n))
        distances = norms - 2.0 * (values[rows] @ values.T)
        distances[rows - first, rows] = np.inf
        shared = indicator[rows] @ indicator.T > 0
        for similar in (True, False):
            allowed = np.where(shared == similar, distances, np.float32(np.inf))
            nearest = np.argpartition(allowed, count - 1, axis=1)[:, :count]
            found = np.isfinite(np.take_along_axis(allowed, nearest, axis=1))
            pairs[similar].append(np.stack([np.repeat(rows, found.sum(axis=1)), nearest[found]]))
    return scipy.sparse.csr_array(_joined(pairs[True], n) + bridge * _joined(pairs[False], n))


def _joined(pairs: list[NDArray[np.int64]], n: int) -> scipy.sparse.csr_array:
    """Join two points with weight 1 if one is among the neighbours of the other."""
    i, j = np.concatenate(pairs, axis=1)
    either = scipy.sparse.csr_array((np.ones(2 * len(i)), (np.append(i, j), np.append(j, i))), shape=(n, n))
    either.data[:] = 1.0
    return either


def laplacian_eigenvectors(graph: scipy.sparse.csr_array, count: int, seed: int) -> NDArray[np.float64]:
    """Return the smoothest solutions of L v = lambda D v, L = D - W, after the constant one, as columns."""
    n = graph.shape[0]
    root = np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), np.finfo(float).tiny))
    scale = scipy.sparse.dia_array((1.0 / root[None, :], [0]), shape=(n, n))
    similarity = scipy.sparse.csr_array(scale @ graph @ scale)
    # The constant solution, eigenvalue 1 here, is moved to the other end instead of being asked for.
    constant = root / np.linalg.norm(root)
    operator = scipy.sparse.linalg.LinearOperator(
        (n, n), lambda v: similarity @ v - 2.0 * constant * (constant @ v.ravel()), dtype=np.float64
    )
    if count < n // 2:
        start = np.random.default_rng(seed_for(seed, "start")).standard_normal(n)
        values, vectors = scipy.sparse.linalg.eigsh(operator, count, which="LA", v0=start, tol=1e-8)
    else:
        values, vectors = np.linalg.eigh(similarity.toarray() - 2.0 * np.outer(constant, constant))
    order = np.argsort(-values)[:count]
    return one_way_round(vectors[:, order] / root[:, None])


@dataclass(eq=False, repr=False, kw_only=True)
class STH(TwoStepMethod):
    """Smooth functions on the graph of equal labels, cut at their medians, then one SVM per bit.

    The bits of the training points are the Laplacian eigenvectors L v = lambda D v of a graph, each cut at its median,
    so that every bit is balanced. The graph joins each point to its nearest neighbours of the same label. Alone it
    would fall into one piece per class, and its first eigenvectors would be arbitrary mixtures of class indicators,
    where a median cuts rounding noise; so nearest points of other labels are joined as well, by weak bridges. After
    L - 1 eigenvectors that tell classes apart come those within classes, which say nothing about labels: precision
    falls with more bits than that (MNIST, N = 5,000: .62 at 32 bits, .54 at 64).

    Parameters
    ----------
    n_bits : int, default 64, number of bits b, below the number of training points
    n_neighbors : int, default 100
        Nearest points that each point is joined to, of its own label and again of other labels.
    bridge : float, default 0.01
        Weight of a pair with different labels, where 1 is that of a pair with a common label.
    scaling : {"columns", "whole"}, default "columns"
        Whether each feature is standardised on its own, or all by one factor (pixels), also for the graph.

    References
    ----------
    D. Zhang, J. Wang, D. Cai and J. Lu, Self-taught hashing for fast similarity search, SIGIR 2010.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> STH(n_bits=4, n_neighbors=10).fit(X, X[:, 0] > 0).transform(X).shape
    (100, 1)
    """

    renamed: ClassVar[dict[str, str]] = {"n_neighbours": "n_neighbors"}

    n_neighbors: int = count(100)
    bridge: float = positive(0.01)

    def _bits(self, training: TrainingSet, seed: int) -> NDArray[np.int8]:
        self._refuse_bits_beyond(len(training.labels) - 1, f"one per eigenvector of {len(training.labels)} points")
        factor = standardization(training.rows, self.scaling)[1].astype(np.float32)
        graph = label_graph(training.centered() * factor, training.labels, self.n_neighbors, self.bridge)
        vectors = laplacian_eigenvectors(graph, self.n_bits, seed)
        return np.where(vectors > np.median(vectors, axis=0), 1, -1).astype(np.int8)
