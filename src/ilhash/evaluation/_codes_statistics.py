"""What codes look like, whatever they stand for: how many differ, how balanced the bits are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core, codes

_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class CodeStatistics:
    """Statistics of a set of codes.

    Attributes
    ----------
    n_codes, n_distinct : int, number of codes, and of different ones
    top10_share : float, share of the codes that equal one of the 10 commonest
    code_entropy : float, entropy of the distribution of codes, in bits; at most log2 of their number
    bit_balance : float64 array (n_bits,), share of ones in each bit
    bit_entropy : float64 array (n_bits,), entropy of each bit; 1 where it is balanced
    """

    n_codes: int
    n_distinct: int
    top10_share: float
    code_entropy: float
    bit_balance: NDArray[np.float64]
    bit_entropy: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, for JSON.

        Returns
        -------
        dict, all attributes
        """
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}


def code_statistics(packed: Any, n_bits: int | None = None) -> CodeStatistics:
    """Count distinct codes, and measure the balance and entropy of the bits and of the codes.

    Parameters
    ----------
    packed : uint8 array (n, ceil(n_bits / 8)), packed codes
    n_bits : int, optional, bits of a code; by default all bits of every byte

    Returns
    -------
    CodeStatistics, counts, balance and entropy

    Examples
    --------
    >>> found = code_statistics(np.array([[0b10000000], [0b10000000], [0], [0b01000000]], np.uint8), n_bits=2)
    >>> found.n_distinct, found.code_entropy, found.bit_balance
    (3, 1.5, array([0.5 , 0.25]))
    """
    tally = CodeTally(n_bits)
    tally.add(packed)
    return tally.statistics()


class CodeTally:
    """Counts codes that come in blocks; what stays in memory are the distinct ones."""

    def __init__(self, n_bits: int | None = None) -> None:
        self.n_bits, self._n_codes = n_bits, 0
        self._known: list[NDArray[np.uint8]] = []  # distinct codes, and behind them blocks that were not grouped yet
        self._repeats = np.zeros(0, np.int64)  # of the distinct ones
        self._ones: Any = 0

    def add(self, packed: Any) -> None:
        """Count a block of codes."""
        block = codes.check(packed, self.n_bits)
        for first in range(0, len(block), _BLOCK_ROWS):
            some = np.unpackbits(block[first : first + _BLOCK_ROWS], axis=1)
            self._ones = self._ones + some.sum(axis=0, dtype=np.int64)
        self._n_codes += len(block)
        self._known.append(block)
        if sum(map(len, self._known)) >= 2 * len(self._repeats):  # a code is so grouped a logarithmic number of times
            self._group()

    def _group(self) -> None:
        known = np.ascontiguousarray(np.concatenate(self._known))
        weights = np.concatenate([self._repeats, np.ones(len(known) - len(self._repeats), np.int64)])
        first_rows, offsets, rows = _core.group_codes(known)
        self._known = [known[first_rows]]
        self._repeats = np.add.reduceat(weights[rows], offsets[:-1]) if len(offsets) else weights[first_rows]

    def statistics(self) -> CodeStatistics:
        """Return what was counted."""
        if not self._n_codes:
            raise ValueError("codes must have rows to be described, got none")
        self._group()
        repeats = np.sort(self._repeats)[::-1]
        balance = self._ones[: self.n_bits] / self._n_codes
        return CodeStatistics(
            n_codes=self._n_codes,
            n_distinct=len(repeats),
            top10_share=float(repeats[:10].sum() / self._n_codes),
            code_entropy=float(_surprise(repeats / self._n_codes).sum()),
            bit_balance=balance,
            bit_entropy=_surprise(balance) + _surprise(1.0 - balance),
        )


def _surprise(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """-p log2 p, and 0 at p = 0."""
    return np.abs(p * np.log2(np.where(p > 0, p, 1.0)))
