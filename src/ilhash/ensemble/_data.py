"""What an ensemble takes from the data as a whole: which rows may be drawn, a sample of them, a fingerprint."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.affinity import Labels, LabelSets, SparseAffinity, Supervision
from ilhash.diversity import ClassOrder, NeighborhoodOrder, RowOrder, UniformOrder, seed_for
from ilhash.vectors import fingerprint

MEMBERS = 20  # of a class in a training set, on average, below which whole classes are drawn
SAMPLE = 1000  # rows that the origin and the scaling are taken from


def sample_rows(supervision: Supervision, seed: int, size: int = SAMPLE) -> NDArray[np.int64]:
    """Draw rows from the seed alone, the same for every bit."""
    order = UniformOrder(supervision.n_points, supervision.drawable)
    return order.take(seed_for(seed, "sample"), 0, min(size, order.size))


def is_focused(supervision: Supervision) -> bool:
    """Tell whether points are of the few classes that bits are for, and of others beside them."""
    return isinstance(supervision, Labels) and supervision.focused


def draws_classes(supervision: Supervision, n_train: int) -> bool:
    """Whether whole classes are drawn: a uniform draw would hold fewer than twenty points of each, on average."""
    return isinstance(supervision, Labels) and MEMBERS * len(supervision.names) > n_train


def row_order(supervision: Supervision, whole_classes: bool = False) -> RowOrder:
    """Return the seeded orders in which training sets are drawn."""
    if whole_classes and isinstance(supervision, Labels):
        return ClassOrder.of(supervision.codes)
    if isinstance(supervision, SparseAffinity):
        matrix = supervision.matrix
        return NeighborhoodOrder(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
    return UniformOrder(supervision.n_points, supervision.drawable)


def other_order(supervision: Supervision) -> UniformOrder | None:
    """Return the order of the points that nothing is known of and that may be drawn; None: there are none."""
    drawable = supervision.drawable
    if drawable is None:
        return None
    known = np.zeros(supervision.n_points, bool)
    known[drawable] = True
    withheld = supervision.withheld if isinstance(supervision, Labels | LabelSets) else None
    if withheld is not None:
        known[withheld] = True
    others = np.flatnonzero(~known)
    return UniformOrder(supervision.n_points, others) if len(others) else None


def data_fingerprint(X: NDArray[Any], supervision: Supervision) -> str:
    """Identify vectors and supervision together."""
    return f"{fingerprint(X)}-{supervision.digest()}"
