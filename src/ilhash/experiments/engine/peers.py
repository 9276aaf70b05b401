"""One bit of Independent Laplacian Hashing assembled from NumPy, SciPy, PyMaxflow and scikit-learn.

This is the competitor that the benchmarks of the compiled trainer run against: what a careful engineer gets
from public packages, with every stage vectorised. Every choice below was measured against its alternatives:

* points are gathered in the order of their classes, so that the blocks of the alternation are slices;
* sampling: draw, sort the rows, draw the repeats again; random keys and a partial sort only for small pools;
* union of the two directions: CSR maximum with the transpose, both in canonical form;
* min-cut: integer capacities, and either SciPy (Dinic) or PyMaxflow (Boykov-Kolmogorov);
* classifier: LIBLINEAR's primal solver, the faster one as soon as there are more points than features.

A bit is a vector ``z`` of -1 and +1 with a low energy ``-z' W z``; ``W`` is 1 for similar, -1 for dissimilar pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow
from sklearn.svm import LinearSVC

Flow = Literal["pymaxflow", "scipy"]
Integers = NDArray[np.int32]
Cut = Callable[[Integers, Integers], tuple[int, Callable[[], Integers]]]

NEIGHBOURS = 100  # similar and dissimilar ones drawn for each point, or all there are
KEYS_BELOW = 4  # pools smaller than this many times the sample are drawn by sorting random keys
MAX_SWEEPS = 100  # normally a sweep without any change ends the search


def _distinct_by_keys(rng: np.random.Generator, count: int, pool: int, k: int) -> Integers:
    """Draw ``k`` distinct numbers below ``pool`` for ``count`` rows: the k smallest of random keys.

    The low bits of a key hold the number itself, so a plain partition is enough: it is vectorised in NumPy,
    argpartition is not.
    """
    low = np.uint32((1 << (pool - 1).bit_length()) - 1)
    keys = rng.integers(0, 1 << 32, size=(count, pool), dtype=np.uint32)
    keys &= ~low
    keys |= np.arange(pool, dtype=np.uint32)
    if k < pool:
        keys.partition(k - 1, axis=1)
    drawn = (keys[:, :k] & low).astype(np.int32)
    drawn.sort(axis=1)
    return drawn


def _distinct_by_rejection(rng: np.random.Generator, pools: NDArray[np.int64], k: int) -> Integers:
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


def _distinct(rng: np.random.Generator, counts: NDArray[np.int64], pools: NDArray[np.int64]) -> list[Integers]:
    """Draw neighbours for each of ``counts[c]`` rows: distinct sorted numbers below ``pools[c]``."""
    few = KEYS_BELOW * NEIGHBOURS
    if pools.min() >= few:
        drawn = _distinct_by_rejection(rng, np.repeat(pools, counts), NEIGHBOURS)
        return np.split(drawn, np.cumsum(counts)[:-1])
    return [
        _distinct_by_keys(rng, count, pool, min(NEIGHBOURS, pool))
        if pool < few
        else _distinct_by_rejection(rng, np.full(count, pool), NEIGHBOURS)
        for count, pool in zip(counts.tolist(), pools.tolist(), strict=True)
    ]


def _union(groups: list[Integers]) -> csr_array:
    """Join lists of neighbours (one sorted row per point) with their transpose, unit weights."""
    indices = np.concatenate([group.ravel() for group in groups])
    lengths = np.concatenate([np.full(len(group), group.shape[1], dtype=np.int32) for group in groups])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    directed = csr_array((np.ones(indices.size, dtype=np.int32), indices, indptr), shape=(len(lengths), len(lengths)))
    reverse = directed.T.tocsr()
    directed.has_canonical_format = reverse.has_canonical_format = True
    return directed.maximum(reverse)


class _Block:
    """The points of a class: symmetric unit weights of similar pairs inside, dissimilar pairs with all points."""

    def __init__(self, rows: slice, similar: csr_array, dissimilar: csr_array, flow: Flow) -> None:
        self.rows, self.similar, self.dissimilar, self.flow = rows, similar, dissimilar, flow
        self.weight = similar.nnz // 2
        self.cut: Cut | None = None
        self.unary: Integers | None = None  # of the last solution

    def improve(self, codes: Integers) -> bool:
        """Bring the codes of the block to the lowest energy beside the others; return whether they changed."""
        unary: Integers = -(self.dissimilar @ codes)  # what the points outside ask of each point
        if self.unary is not None and np.array_equal(unary, self.unary):
            return False
        self.unary = unary
        new = self._solve(unary, codes[self.rows])
        if new is not None:
            codes[self.rows] = new
        return new is not None

    def _solve(self, unary: Integers, old: Integers) -> Integers | None:
        """Return the codes of lowest energy, or None if the old ones are as good."""
        above, below = np.maximum(unary, 0), np.maximum(-unary, 0)
        all_minus, all_plus = (int(a.sum(dtype=np.int64)) for a in (above, below))  # values of two cuts
        value, read = 0, None
        if all_minus and all_plus:
            if self.cut is None:
                self.cut = {"pymaxflow": _pymaxflow_cut, "scipy": _scipy_cut}[self.flow](self.similar)
            value, read = self.cut(above, below)
        best = 2 * value - all_minus - all_plus - self.weight
        pull = 2 * unary + self.similar @ old  # energy: half of its product with the codes, negated
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

    def cut(above: Integers, below: Integers) -> tuple[int, Callable[[], Integers]]:
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
    size = weights.shape[0]
    ends = np.ones((size, 2), dtype=np.int32)
    network = block_array([[weights, ends], [ends.T, None]], format="csr")
    capacity, inner = network.data, network.indptr[size]
    last = network.indptr[1 : size + 1] - 1  # the entry of the sink in each row, after that of the source

    def cut(above: Integers, below: Integers) -> tuple[int, Callable[[], Integers]]:
        capacity[last - 1] = capacity[inner : inner + size] = above
        capacity[last] = capacity[inner + size :] = below
        result = maximum_flow(network, size, size + 1, method="dinic")

        def read() -> Integers:
            residual = network.copy()
            residual.data += result.flow.data
            residual.eliminate_zeros()
            codes = np.ones(size + 2, dtype=np.int32)
            codes[breadth_first_order(residual, size + 1, return_predecessors=False)] = -1
            return codes[:size]

        return int(result.flow_value), read

    return cut


def _blocks(labels: NDArray[Any], flow: Flow, rng: np.random.Generator) -> list[_Block]:
    """Draw for every point neighbours of its own class and of the others; labels are in ascending order."""
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    sizes = np.diff(np.r_[starts, len(labels)])
    similar = _distinct(rng, sizes, sizes - 1)
    for group, size in zip(similar, sizes, strict=True):
        group += group >= np.arange(size, dtype=np.int32)[:, None]  # step over the point itself
    dissimilar = _distinct(rng, sizes, len(labels) - sizes)
    for group, start, size in zip(dissimilar, starts, sizes, strict=True):
        group += (group >= start) * np.int32(size)  # step over the class of the point
    rows = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    negative = _union(dissimilar)
    return [_Block(own, _union([group]), negative[own], flow) for own, group in zip(rows, similar, strict=True)]


def train_bit(
    X: NDArray[np.float32], y: ArrayLike, rows: ArrayLike, *, C: float, seed: int, flow: Flow = "scipy"
) -> tuple[NDArray[np.int8], NDArray[np.float64], float]:
    """Train one bit from labels: affinity, alternating min-cut, linear SVM.

    Parameters
    ----------
    X, y : arrays (n, D) of float32 and (n,), standardised features and labels
    rows : array_like of int, shape (N,), the training rows of this bit
    C : float, penalty of the linear SVM
    seed : int, seed of everything random in the bit
    flow : {'scipy', 'pymaxflow'}, library for the min-cut; both find the same codes

    Returns
    -------
    codes, weights, intercept : the code of each training row, -1 or +1, and the linear hash function
    """
    rng = np.random.default_rng(seed)
    rows = np.asarray(rows)
    labels = np.take(y, rows)
    order = np.argsort(labels, kind="stable")  # classes become slices
    features = np.take(X, rows[order], axis=0)
    blocks = _blocks(labels[order], flow, rng)
    z = (2 * rng.integers(0, 2, size=len(rows)) - 1).astype(np.int32)
    for _ in range(MAX_SWEEPS):
        improved = [blocks[index].improve(z) for index in rng.permutation(len(blocks))]
        if not any(improved):
            break
    codes = np.empty(len(rows), dtype=np.int8)
    codes[order] = z
    if np.all(z == z[0]):  # LinearSVC wants two classes
        return codes, np.zeros(X.shape[1]), float(z[0])
    svm = LinearSVC(C=C, dual=len(rows) <= X.shape[1], random_state=0).fit(features, z)
    return codes, svm.coef_[0], float(svm.intercept_[0])
