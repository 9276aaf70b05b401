"""Precision at k while bits are added one by one, and for every bit that could come next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import as_array, check_count, check_threads

Bits = NDArray[np.bool_]


class PrecisionBitByBit:
    """Tie-aware precision at k of codes that grow by a bit at a time, exactly that of :func:`precision_at_k`.

    Distances are whole numbers that a bit raises by 0 or 1, so the place where the k nearest end moves by at most one
    distance, and only the points around it need to be looked at.

    Parameters
    ----------
    relevant : bool array (n_queries, n_base), what is relevant to each query
    k : int, number of nearest codes
    n_threads : int, default 1, threads that share the queries; the values are the same for any number

    Examples
    --------
    >>> precision = PrecisionBitByBit(np.array([[True, True, False]]), k=1)
    >>> round(precision.value, 3)  # without bits all are tied
    0.667
    >>> precision.of_each(np.array([[0, 1], [0, 0], [1, 0]], bool), np.array([[0, 1]], bool))
    array([1., 1.])
    >>> precision.add(np.array([0, 0, 1], bool), np.array([0], bool))
    >>> precision.value, precision.n_bits
    (1.0, 1)
    """

    def __init__(self, relevant: Any, k: int, *, n_threads: int = 1) -> None:
        relevant = np.asarray(as_array("relevant", relevant))
        if relevant.ndim != 2 or relevant.dtype != np.bool_ or relevant.size == 0:
            raise ValueError(f"relevant must be a 2-D array of bool, got shape {relevant.shape} {relevant.dtype}")
        self.k = check_count("k", k, 1)
        if k > relevant.shape[1]:
            raise ValueError(f"k must be a whole number between 1 and the {relevant.shape[1]} base points, got {k}")
        self.n_threads = check_threads(n_threads)
        self.n_queries, self.n_base = relevant.shape
        self.n_bits = 0
        self._counts = _core.cut_counts(relevant.view(np.uint8), self.k)

    @property
    def value(self) -> float:
        """Mean over the queries, with the bits that were added."""
        cuts = np.empty((self.n_queries, 4), np.int32)
        self._counts.now(cuts)
        return float(_mean_precision(cuts[:, None], self.k)[0])

    def add(self, base_bits: Bits, query_bits: Bits) -> None:
        """Add one bit.

        Parameters
        ----------
        base_bits, query_bits : bool array (n_base,) and (n_queries,), the bit of each item
        """
        base = _bool("base_bits", base_bits, (self.n_base,))
        queries = _bool("query_bits", query_bits, (self.n_queries,))
        self._counts.add(base.view(np.uint8), queries.view(np.uint8), self.n_threads)
        self.n_bits += 1

    def of_each(self, base_bits: Bits, query_bits: Bits) -> NDArray[np.float64]:
        """Return the precision for each bit of a pool, if it were added.

        Parameters
        ----------
        base_bits, query_bits : bool array (n_base, B) and (n_queries, B), a pool of bits

        Returns
        -------
        float64 array (B,), one value per bit
        """
        return self.of_each_packed(*self.pack(base_bits, query_bits))

    def pack(self, base_bits: Bits, query_bits: Bits) -> tuple[NDArray[np.uint64], NDArray[np.uint64], int]:
        """Return a pool of bits in the form in which it is looked at many times.

        Parameters
        ----------
        base_bits, query_bits : as in :meth:`of_each`

        Returns
        -------
        tuple, what :meth:`of_each_packed` takes
        """
        base_bits = as_array("base_bits", base_bits)
        n_bits = base_bits.shape[1] if base_bits.ndim == 2 else 0
        base = _bool("base_bits", base_bits, (self.n_base, n_bits))
        queries = _bool("query_bits", query_bits, (self.n_queries, n_bits))
        return _words(base), _words(queries), n_bits

    def of_each_packed(self, base: NDArray[np.uint64], queries: NDArray[np.uint64], n_bits: int) -> NDArray[np.float64]:
        """Do what :meth:`of_each` does, with what :meth:`pack` returned.

        Parameters
        ----------
        base, queries, n_bits : uint64 array, uint64 array and int, what :meth:`pack` gave

        Returns
        -------
        float64 array (B,), one value per bit
        """
        n_words = (check_count("n_bits", n_bits) + 63) // 64
        pools = (("base", base, self.n_base), ("queries", queries, self.n_queries))
        base, queries = (_pool(name, words, (n, n_words)) for name, words, n in pools)
        cuts = np.empty((self.n_queries, n_bits, 4), np.int32)
        self._counts.with_each(base, queries, n_bits, self.n_threads, cuts)
        return _mean_precision(cuts, self.k)


def _mean_precision(cuts: NDArray[np.int32], k: int) -> NDArray[np.float64]:
    """Each of the points at the edge has the same chance to be among those that fill the places up to k."""
    before, hits_before, places, hits = np.moveaxis(cuts, -1, 0).astype(np.float64)
    return np.asarray(((hits_before + hits * (k - before) / places) / k).mean(axis=0))


def _bool(name: str, bits: Any, shape: tuple[int, ...]) -> Bits:
    array = np.asarray(as_array(name, bits))
    if array.dtype != np.bool_ or array.shape != shape or array.size == 0:
        raise ValueError(f"{name} must be bool {shape}, got {array.dtype} {array.shape}")
    return np.ascontiguousarray(array)


def _pool(name: str, words: Any, shape: tuple[int, int]) -> NDArray[np.uint64]:
    array = np.asarray(as_array(name, words))
    if array.dtype != np.uint64 or array.shape != shape:
        raise ValueError(f"{name} must be uint64 {shape}, what pack gave, got {array.dtype} {array.shape}")
    return np.ascontiguousarray(array)


def _words(bits: Bits) -> NDArray[np.uint64]:
    """Bit j of a row is bit j % 64 of its word j // 64."""
    packed = np.packbits(np.pad(bits, ((0, 0), (0, -bits.shape[1] % 64))), axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)
