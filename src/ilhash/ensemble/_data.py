"""What an ensemble takes from the data as a whole: which rows may be drawn, a sample of them, a fingerprint."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.affinity import SparseAffinity, Supervision
from ilhash.diversity import NeighborhoodOrder, RowOrder, UniformOrder, seed_for
from ilhash.vectors import fingerprint

SAMPLE = 1000  # rows that the origin, and common kernel centres and their width, are taken from


def sample_rows(supervision: Supervision, seed: int, size: int = SAMPLE) -> NDArray[np.int64]:
    """Draw rows from the seed alone, the same for every bit."""
    order = UniformOrder(supervision.n_points, supervision.drawable)
    return order.take(seed_for(seed, "sample"), 0, min(size, order.size))


def row_order(supervision: Supervision) -> RowOrder:
    """Return the seeded orders in which training sets are drawn."""
    if isinstance(supervision, SparseAffinity):
        matrix = supervision.matrix
        return NeighborhoodOrder(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
    return UniformOrder(supervision.n_points, supervision.drawable)


def data_fingerprint(X: NDArray[Any], supervision: Supervision) -> str:
    """Identify vectors and supervision together."""
    return f"{fingerprint(X)}-{supervision.digest()}"
