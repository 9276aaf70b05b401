"""Signed sparse graphs between the points of a training set, to and from sparse matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from ilhash import _core

__all__ = ["coupling_graph", "graph_couplings"]


def coupling_graph(couplings: scipy.sparse.csr_array) -> _core.SignedGraph:
    """Build the core's graph from a symmetric sparse matrix of couplings w_nm with an empty diagonal."""
    w = couplings.copy()
    w.eliminate_zeros()
    w.sort_indices()
    return _core.SignedGraph.from_couplings(
        w.indptr.astype(np.uint32), w.indices.astype(np.uint32), w.data.astype(np.float64)
    )


def graph_couplings(graph: _core.SignedGraph) -> scipy.sparse.csr_array:
    """Return the couplings w_nm of a core graph as a sparse matrix."""
    source, target, coupling = graph.triplets()
    shape = (graph.n_points, graph.n_points)
    return scipy.sparse.csr_array((coupling, (source.astype(np.int64), target.astype(np.int64))), shape=shape)
