"""What codes look like, whatever they stand for: how many differ, how balanced the bits are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core, codes

__all__ = ["CodeStatistics", "code_statistics"]

_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class CodeStatistics:
    """Statistics of a set of codes.

    Attributes
    ----------
    n_codes, n_distinct : number of codes, and of different ones
    top10_share : share of the codes that equal one of the 10 commonest
    code_entropy : entropy of the distribution of codes, in bits; at most log2 of their number
    bit_balance : float64 (n_bits,), share of ones in each bit
    bit_entropy : float64 (n_bits,), entropy of each bit; 1 where it is balanced
    """

    n_codes: int
    n_distinct: int
    top10_share: float
    code_entropy: float
    bit_balance: NDArray[np.float64]
    bit_entropy: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, for JSON."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}


def code_statistics(packed: Any, n_bits: int | None = None) -> CodeStatistics:
    """Count distinct codes, and measure the balance and entropy of the bits and of the codes.

    Examples
    --------
    >>> found = code_statistics(np.array([[0b10000000], [0b10000000], [0], [0b01000000]], np.uint8), n_bits=2)
    >>> found.n_distinct, found.code_entropy, found.bit_balance
    (3, 1.5, array([0.5 , 0.25]))
    """
    packed = codes.check(packed, n_bits)
    if len(packed) == 0:
        raise ValueError("codes must have rows to be described, got none")
    repeats = np.sort(_repeats(packed))[::-1]
    ones = np.zeros(8 * packed.shape[1], np.int64)
    for first in range(0, len(packed), _BLOCK_ROWS):
        ones += np.unpackbits(packed[first : first + _BLOCK_ROWS], axis=1).sum(axis=0, dtype=np.int64)
    balance = ones[:n_bits] / len(packed)
    return CodeStatistics(
        n_codes=len(packed),
        n_distinct=len(repeats),
        top10_share=float(repeats[:10].sum() / len(packed)),
        code_entropy=float(_surprise(repeats / len(packed)).sum()),
        bit_balance=balance,
        bit_entropy=_surprise(balance) + _surprise(1.0 - balance),
    )


def _repeats(packed: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each distinct row occurs."""
    first_rows, offsets, _ = _core.group_codes(np.ascontiguousarray(packed))
    if not len(offsets):
        return np.ones(len(first_rows), np.int64)
    counts: NDArray[np.int64] = np.diff(offsets).astype(np.int64)
    return counts


def _surprise(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """-p log2 p, and 0 at p = 0."""
    return np.abs(p * np.log2(np.where(p > 0, p, 1.0)))
