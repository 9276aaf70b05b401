"""The KSH loss on a sparse graph of pairs, lowered one bit at a time by min-cut: what KSHcut and FastHash share."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import _core
from ilhash.affinity import Labels, LabelSets
from ilhash.graph import graph_couplings
from ilhash.zstep import ZStep


def label_pairs(indicator: NDArray[np.float32], similar: int, dissimilar: int, seed: int) -> scipy.sparse.csr_array:
    """Draw pairs of points with y = +1 where they share a label and -1 where they do not, as ILH does for a bit.

    Returns a symmetric matrix (N, N) with ``similar`` and ``dissimilar`` partners for each point, united over both
    ends of a pair.
    """
    supervision: Labels | LabelSets
    if (indicator.sum(axis=1) == 1).all():
        supervision = Labels(indicator.argmax(axis=1).astype(np.int32), np.arange(indicator.shape[1]))
    else:
        supervision = LabelSets(scipy.sparse.csr_array(indicator.astype(np.int8)))
    order = supervision.arrange(np.arange(len(indicator)))
    drawn = supervision.graph(order, "laplacian", similar, dissimilar, seed, lambda: np.empty((0, 0), np.float32))
    y = graph_couplings(drawn.graph).tocoo()
    return scipy.sparse.csr_array((np.sign(y.data), (order[y.row], order[y.col])), shape=y.shape)


class PairLoss:
    """sum over pairs of (z_n'z_m - b y_nm)^2, y a symmetric matrix of +1 and -1, for codes that change bit by bit.

    In one bit, the others being fixed, the loss is -2 sum w_nm z_n z_m plus a constant, with w_nm = b y_nm - s_nm and
    s_nm the product of the other bits. |s| <= b - 1, so that w keeps the sign of y: the pairs that may share a block of
    the z-step are the same for every bit.
    """

    def __init__(self, y: scipy.sparse.csr_array, codes: NDArray[np.int8]) -> None:
        y.sort_indices()
        self._pairs = _core.PairLoss.of_pairs(
            y.indptr.astype(np.uint32), y.indices.astype(np.uint32), y.data.astype(np.int8)
        )
        for bit in range(codes.shape[1]):
            self.add(codes[:, bit])

    def add(self, z: NDArray[np.int8]) -> None:
        """Let the codes have one bit more."""
        self._pairs.add(np.ascontiguousarray(z))

    def remove(self, z: NDArray[np.int8]) -> None:
        """Take a bit out of the codes."""
        self._pairs.remove(np.ascontiguousarray(z))

    def value(self) -> float:
        """Return the mean over pairs of (z_n'z_m / b - y_nm)^2."""
        return self._pairs.value()

    def next_bit(self, start: NDArray[np.int8], n_bits: int, seed: int, max_sweeps: int) -> ZStep:
        """Lower the loss over one more bit, of ``n_bits`` in all, by min-cuts; the codes stay as they are."""
        return ZStep(*self._pairs.lower(np.ascontiguousarray(start), n_bits, seed, max_sweeps))
