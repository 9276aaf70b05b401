"""Codes of -1 and +1: signs of numbers, and codes by exact minimisation over one bit at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def signs(margins: NDArray[Any]) -> NDArray[Any]:
    """Return +1 where a margin is above 0 and -1 elsewhere, in the margins' precision."""
    one = margins.dtype.type(1.0)
    return np.asarray(np.where(margins > 0, one, -one))


def cyclic_descent(B: NDArray[Any], Q: NDArray[Any], G: NDArray[Any], max_cycles: int = 100) -> NDArray[Any]:
    """Lower sum of b'G b - 2 q'b over codes b in {-1,+1}, the rows of B, one column (bit) at a time.

    A bit given the others is optimal in closed form, b = sign(q - B' g') with the bit itself left out; where both
    values are equally good it stays. It ends where nothing changes, mostly after a handful of cycles.
    """
    B = B.copy(order="F")
    for _ in range(max_cycles):
        changed = False
        for bit in range(B.shape[1]):
            others = G[:, bit].copy()
            others[bit] = 0.0
            pull = Q[:, bit] - B @ others
            new = np.where(pull == 0, B[:, bit], signs(pull))
            changed |= not np.array_equal(new, B[:, bit])
            B[:, bit] = new
        if not changed:
            break
    return B
