"""One bit of Independent Laplacian Hashing assembled from NumPy, SciPy, PyMaxflow and scikit-learn.

This is the competitor that the benchmarks of the compiled trainer run against: what a careful engineer gets
from public packages, with every stage vectorised. Every choice below was measured against its alternatives:

* sampling: draw, sort the rows, draw the repeats again; random keys and a partial sort only for small pools;
* union of the two directions: CSR maximum with the transpose, both in canonical form;
* points are gathered in the order of their classes, so that the blocks are slices of the matrices;
* min-cut: integer capacities, and either SciPy (Dinic) or PyMaxflow (Boykov-Kolmogorov);
* classifier: LIBLINEAR's primal solver, the faster one as soon as there are more points than features.

An affinity is a pair of symmetric CSR matrices of non-negative integers; the weights are their difference
``W = positive - negative``. A bit is a vector ``z`` of -1 and +1 with a low energy ``-z' W z``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow
from sklearn.svm import LinearSVC

Flow = Literal["pymaxflow", "scipy"]
Codes = NDArray[np.int32]
Cut = Callable[[NDArray[np.int32], NDArray[np.int32]], tuple[int, Callable[[], Codes]]]

KEYS_BELOW = 4  # pools smaller than this many times the sample are drawn by sorting random keys
KEY_CHUNK = 1 << 22  # random keys held at once


@dataclass(frozen=True)
class PeerBit:
    """One trained bit.

    Attributes
    ----------
    z : ndarray of int8, shape (N,)
        The code of each training row, -1 or +1, in the order of ``rows``.
    coef : ndarray of float64, shape (D,)
        Weights of the linear hash function.
    intercept : float
        Its bias.
    energy : int
        ``-sum over ordered pairs of w_nm z_n z_m``.
    sweeps : int
        Sweeps of the alternating min-cut, the last one (without a change) included.
    seconds : dict
        Wall-clock time of the stages 'gather', 'affinity', 'zstep' and 'svm'.
    """

    z: NDArray[np.int8]
    coef: NDArray[np.float64]
    intercept: float
    energy: int
    sweeps: int
    seconds: dict[str, float] = field(default_factory=dict)


def _distinct_by_keys(rng: np.random.Generator, count: int, pool: int, k: int) -> NDArray[np.int32]:
    """Draw ``k`` distinct numbers below ``pool`` for ``count`` rows: the k smallest of random keys.

    The low bits of a key hold the number itself, so a plain partition is enough: it is vectorised in NumPy,
    argpartition is not.
    """
    low = np.uint32((1 << (pool - 1).bit_length()) - 1)
    numbers = np.arange(pool, dtype=np.uint32)
    drawn = np.empty((count, k), dtype=np.int32)
    step = max(1, KEY_CHUNK // pool)
    for first in range(0, count, step):
        part = drawn[first : first + step]
        keys = rng.integers(0, 1 << 32, size=(len(part), pool), dtype=np.uint32)
        keys &= ~low
        keys |= numbers
        if k < pool:
            keys.partition(k - 1, axis=1)
        np.bitwise_and(keys[:, :k], low, out=part, casting="unsafe")
    drawn.sort(axis=1)
    return drawn


def _distinct_by_rejection(rng: np.random.Generator, pools: NDArray[np.int64], k: int) -> NDArray[np.int32]:
    """Draw ``k`` distinct numbers below ``pools[row]`` for every row: draw again whatever is repeated."""
    drawn = (rng.random((len(pools), k)) * pools[:, None]).astype(np.int32)
    drawn.sort(axis=1)
    todo, part = np.arange(len(pools)), drawn
    while True:
        repeated = part[:, 1:] == part[:, :-1]
        bad = np.flatnonzero(repeated.any(axis=1))
        if not bad.size:
            return drawn
        todo, part, repeated = todo[bad], part[bad], repeated[bad]
        row, column = np.nonzero(repeated)
        part[row, column + 1] = rng.random(row.size) * pools[todo[row]]
        part.sort(axis=1)
        drawn[todo] = part


def _distinct(
    rng: np.random.Generator, counts: NDArray[np.int64], pools: NDArray[np.int64], k: int
) -> list[NDArray[np.int32]]:
    """Draw ``min(k, pools[c])`` distinct sorted numbers below ``pools[c]`` for each of ``counts[c]`` rows."""
    if pools.min() >= KEYS_BELOW * k:
        drawn = _distinct_by_rejection(rng, np.repeat(pools, counts), k)
        return np.split(drawn, np.cumsum(counts)[:-1])
    groups = []
    for count, pool in zip(counts.tolist(), pools.tolist(), strict=True):
        if pool <= 0 or k <= 0:
            groups.append(np.empty((count, 0), dtype=np.int32))
        elif pool >= KEYS_BELOW * k:
            groups.append(_distinct_by_rejection(rng, np.full(count, pool), k))
        else:
            groups.append(_distinct_by_keys(rng, count, pool, min(k, pool)))
    return groups


def _union(groups: list[NDArray[np.int32]], n: int) -> csr_array:
    """Join lists of neighbours (one sorted row per point) with their transpose, unit weights."""
    indices = np.concatenate([group.ravel() for group in groups])
    indptr = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(np.concatenate([np.full(len(g), g.shape[1]) for g in groups]), out=indptr[1:])
    directed = csr_array((np.ones(indices.size, dtype=np.int32), indices, indptr), shape=(n, n))
    directed.has_canonical_format = True
    reverse = directed.T.tocsr()
    reverse.has_canonical_format = True
    return directed.maximum(reverse)


def label_affinity(
    y: ArrayLike, n_similar: int, n_dissimilar: int, rng: np.random.Generator
) -> tuple[csr_array, csr_array]:
    """Sample similar and dissimilar pairs from class labels.

    Parameters
    ----------
    y : array_like of int, shape (N,)
        Labels; in increasing order they cost nothing to bring in order.
    n_similar, n_dissimilar : int
        Neighbours drawn for every point without replacement, from its own class (itself excluded) and from
        the other classes; all there are when there are fewer.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    positive, negative : csr_array of int32, shape (N, N)
        Symmetric matrices of ones: the similar pairs and the dissimilar pairs.
    """
    y = np.asarray(y)
    n = len(y)
    order = None if np.all(y[1:] >= y[:-1]) else np.argsort(y, kind="stable")
    ordered = y if order is None else y[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, n])

    similar = _distinct(rng, sizes, sizes - 1, n_similar)
    for group, start, size in zip(similar, starts, sizes, strict=True):
        group += group >= np.arange(size, dtype=np.int32)[:, None]  # step over the point itself
        group += np.int32(start)
    dissimilar = _distinct(rng, sizes, n - sizes, n_dissimilar)
    for group, start, size in zip(dissimilar, starts, sizes, strict=True):
        group += (group >= start) * np.int32(size)  # step over the class of the point
    positive, negative = _union(similar, n), _union(dissimilar, n)
    if order is None:
        return positive, negative
    back = np.argsort(order)
    return _reordered(positive, back), _reordered(negative, back)


def _reordered(matrix: csr_array, order: NDArray[np.int64]) -> csr_array:
    """Permute the rows and the columns of a matrix alike."""
    result = matrix[order][:, order]
    result.sort_indices()
    return result


class _Block:
    """Points ``start`` to ``stop``, which have no negative weight among themselves."""

    def __init__(self, positive: csr_array, negative: csr_array, start: int, stop: int, flow: Flow) -> None:
        self.rows = slice(start, stop)
        self.negative = negative[start:stop]
        self.cross: csr_array | None = None  # positive weights that leave the block
        self.inside = positive[start:stop]  # those that stay
        here = (self.inside.indices >= start) & (self.inside.indices < stop)
        if here.all():
            parts = (self.inside.data, self.inside.indices - np.int32(start), self.inside.indptr)
            self.inside = csr_array(parts, shape=(stop - start, stop - start))
        else:
            self.cross, self.inside = self.inside.copy(), self.inside[:, start:stop]
            self.cross.data[here] = 0
            self.cross.eliminate_zeros()
        self.weight = int(self.inside.data.sum(dtype=np.int64)) // 2
        self.flow = flow
        self.cut: Cut | None = None
        self.unary: NDArray[np.int32] | None = None  # of the last solution
        self.version = -1  # number of changes, of any block, that the last solution knew

    def pull(self, z: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the unary terms: what the points outside the block ask of each point in it."""
        unary = -(self.negative @ z)
        if self.cross is not None:
            unary += self.cross @ z
        return unary

    def solve(self, unary: NDArray[np.int32], old: Codes) -> Codes | None:
        """Return the codes of lowest energy, or None if the old ones are as good."""
        above, below = np.maximum(unary, 0), np.maximum(-unary, 0)
        all_minus, all_plus = (int(a.sum(dtype=np.int64)) for a in (above, below))  # values of two cuts
        value, read = 0, None
        if all_minus and all_plus:
            if self.cut is None:
                self.cut = {"pymaxflow": _pymaxflow_cut, "scipy": _scipy_cut}[self.flow](self.inside)
            value, read = self.cut(above, below)
        best = 2 * value - all_minus - all_plus - self.weight
        pull = 2 * unary + self.inside @ old  # energy: half of its product with the codes, negated
        if 2 * best >= -int(np.sum(pull * old, dtype=np.int64)):
            return None
        if read is None or value in (all_minus, all_plus):
            return np.full_like(old, 1 if value == all_plus else -1)
        return read()


def _pymaxflow_cut(weights: csr_array) -> Cut:
    """Prepare min-cuts with PyMaxflow: edges once, a graph for every call.

    A fresh graph costs about as much as copying a prepared one, and both little beside the flow. Edges go in
    backwards because the library prepends them to the lists of their nodes.
    """
    import maxflow

    size = weights.shape[0]
    nodes = np.arange(size)
    row = np.repeat(nodes, np.diff(weights.indptr))
    upper = np.flatnonzero(row < weights.indices)[::-1]
    head, tail = weights.indices[upper].astype(np.int64), row[upper]
    capacity = weights.data[upper].astype(np.int64)

    def cut(above: NDArray[np.int32], below: NDArray[np.int32]) -> tuple[int, Callable[[], Codes]]:
        graph = maxflow.GraphInt(size, upper.size)
        graph.add_nodes(size)
        graph.add_edges(head, tail, capacity, capacity)
        graph.add_grid_tedges(nodes, above, below)
        value = int(graph.maxflow())
        return value, lambda: np.where(graph.get_grid_segments(nodes), np.int32(-1), np.int32(1))

    return cut


def _scipy_cut(weights: csr_array) -> Cut:
    """Prepare min-cuts with SciPy: the network once, its terminal capacities in every call.

    Source and sink are the last two nodes, joined to every point in both directions. All capacities are
    symmetric (those into the source and out of the sink carry nothing), so that capacity + flow is the
    residual network turned round, and a search from the sink finds the points that still reach it.
    """
    size, inner = weights.shape[0], weights.nnz + 2 * weights.shape[0]
    weights.sort_indices()
    last = weights.indptr[1:] + np.arange(1, 2 * size, 2, dtype=np.int32)  # the entry of the sink in each row
    inside = np.ones(inner, dtype=bool)
    inside[last] = inside[last - 1] = False
    indptr = np.concatenate([[0], last + 1, [inner + size, inner + 2 * size]]).astype(np.int32)
    indices, capacity = (np.empty(inner + 2 * size, dtype=np.int32) for _ in range(2))
    indices[:inner][inside], capacity[:inner][inside] = weights.indices, weights.data
    indices[last - 1], indices[last] = size, size + 1
    indices[inner:] = np.tile(np.arange(size, dtype=np.int32), 2)
    network = csr_array((capacity, indices, indptr), shape=(size + 2, size + 2))

    def cut(above: NDArray[np.int32], below: NDArray[np.int32]) -> tuple[int, Callable[[], Codes]]:
        capacity[last - 1] = capacity[inner : inner + size] = above
        capacity[last] = capacity[inner + size :] = below
        result = maximum_flow(network, size, size + 1, method="dinic")

        def read() -> Codes:
            residual = csr_array((capacity + result.flow.data, indices.copy(), indptr.copy()), network.shape)
            residual.eliminate_zeros()
            codes = np.ones(size + 2, dtype=np.int32)
            codes[breadth_first_order(residual, size + 1, return_predecessors=False)] = -1
            return codes[:size]

        return int(result.flow_value), read

    return cut


def alternate(
    positive: csr_array,
    negative: csr_array,
    blocks: Sequence[NDArray[np.int64]],
    z: ArrayLike,
    rng: np.random.Generator,
    flow: Flow = "scipy",
    max_sweeps: int = 100,
) -> tuple[NDArray[np.int8], int]:
    """Lower the energy of a bit block by block, each block exactly by a min-cut.

    Parameters
    ----------
    positive, negative : csr_array of int, shape (N, N)
        Symmetric non-negative weights without diagonal.
    blocks : sequence of ndarray of int
        A partition of the points; there must be no negative weight inside a block.
    z : array_like, shape (N,)
        Codes to start from, -1 or +1.
    rng : numpy.random.Generator
        Decides the order of the blocks in every sweep.
    flow : {'pymaxflow', 'scipy'}
        Library for the min-cut; both find the same codes.
    max_sweeps : int
        Bound on the sweeps; normally one without any change ends the search.

    Returns
    -------
    z : ndarray of int8
        The codes found.
    sweeps : int
        Sweeps made.
    """
    n = positive.shape[0]
    positive, negative = (m.astype(np.int32, copy=False) for m in (positive, negative))
    order = np.concatenate(blocks)
    contiguous = np.array_equal(order, np.arange(n))
    codes = np.asarray(z).astype(np.int32)
    if not contiguous:
        positive, negative, codes = _reordered(positive, order), _reordered(negative, order), codes[order]
    ends = np.cumsum([len(b) for b in blocks]).tolist()
    parts = [
        _Block(positive, negative, start, stop, flow)
        for start, stop in zip([0, *ends[:-1]], ends, strict=True)
        if start < stop
    ]
    sweeps = _sweep_until_stable(parts, codes, rng, max_sweeps)
    result = np.empty(n, dtype=np.int8)
    result[order] = codes
    return result, sweeps


def _sweep_until_stable(
    parts: list[_Block], codes: NDArray[np.int32], rng: np.random.Generator, max_sweeps: int
) -> int:
    """Sweep over the blocks in random order, changing ``codes`` in place; return the number of sweeps."""
    version = 0  # accepted changes so far
    for sweep in range(max_sweeps):
        before = version
        for index in rng.permutation(len(parts)):
            block = parts[index]
            if block.version == version:
                continue  # nothing at all has changed since
            unary = block.pull(codes)
            if block.unary is None or not np.array_equal(unary, block.unary):
                new = block.solve(unary, codes[block.rows])
                if new is not None:
                    codes[block.rows] = new
                    version += 1
            block.unary, block.version = unary, version
        if version == before:
            return sweep + 1
    return max_sweeps


def energy(positive: csr_array, negative: csr_array, z: ArrayLike) -> int:
    """Return ``-sum over ordered pairs of w_nm z_n z_m``."""
    codes = np.asarray(z).astype(np.int32)
    pull = positive @ codes - negative @ codes
    return -int(np.sum(pull * codes, dtype=np.int64))


def fit_hash_function(
    features: NDArray[np.float32], z: NDArray[np.int8], C: float, tol: float = 1e-4
) -> tuple[NDArray[np.float64], float]:
    """Fit a linear classifier (squared hinge, regularised intercept) to the codes of a bit."""
    if np.all(z == z[0]):  # LinearSVC wants two classes
        return np.zeros(features.shape[1]), float(z[0])
    dual = features.shape[0] <= features.shape[1]
    svm = LinearSVC(C=C, loss="squared_hinge", dual=dual, tol=tol, random_state=0).fit(features, z)
    return svm.coef_[0], float(svm.intercept_[0])


def train_bit(
    X: NDArray[np.float32],
    y: ArrayLike,
    rows: ArrayLike,
    *,
    C: float,
    seed: int,
    flow: Flow = "scipy",
    max_sweeps: int = 100,
    tol: float = 1e-4,
) -> PeerBit:
    """Train one bit from labels: affinity, alternating min-cut, linear SVM.

    Parameters
    ----------
    X : ndarray of float32, shape (n, D)
        Standardised features.
    y : array_like of int, shape (n,)
        Labels.
    rows : array_like of int, shape (N,)
        The training rows of this bit.
    C : float
        Penalty of the linear SVM.
    seed : int
        Seed of everything random in the bit.
    flow : {'scipy', 'pymaxflow'}
        Library for the min-cut.
    max_sweeps : int
        Bound on the sweeps of the alternating min-cut.
    tol : float
        Tolerance of the linear SVM; the default is scikit-learn's.

    Returns
    -------
    PeerBit
        Codes, hash function, energy and time by stage.
    """
    rng = np.random.default_rng(seed)
    clock = [time.perf_counter()]
    rows = np.asarray(rows)
    labels = np.take(y, rows)
    order = np.argsort(labels, kind="stable")  # classes become slices
    labels = labels[order]
    features = np.take(X, rows[order], axis=0)
    clock.append(time.perf_counter())
    positive, negative = label_affinity(labels, 100, 100, rng)
    clock.append(time.perf_counter())
    blocks = np.split(np.arange(len(rows)), np.flatnonzero(labels[1:] != labels[:-1]) + 1)
    start = 2 * rng.integers(0, 2, size=len(rows)) - 1
    z, sweeps = alternate(positive, negative, blocks, start, rng, flow, max_sweeps)
    clock.append(time.perf_counter())
    coef, intercept = fit_hash_function(features, z, C, tol)
    clock.append(time.perf_counter())
    codes = np.empty_like(z)
    codes[order] = z
    seconds = dict(zip(("gather", "affinity", "zstep", "svm"), np.diff(clock).tolist(), strict=True))
    return PeerBit(codes, coef, intercept, energy(positive, negative, z), sweeps, seconds)
