"""Packed codes: uint8 rows of ceil(b/8) bytes, most significant bit first, padding bits zero.

This is the layout of ``numpy.packbits`` and of PostgreSQL's ``bit`` type; the number of bits travels beside the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bytes_per_code", "pack", "unpack"]


def bytes_per_code(n_bits: int) -> int:
    """Return the number of bytes that hold ``n_bits`` bits."""
    return (n_bits + 7) // 8


def pack(bits: NDArray[Any]) -> NDArray[np.uint8]:
    """Pack rows of booleans into codes.

    Examples
    --------
    >>> pack(np.array([[True, False, False, False, False, False, False, False, True]]))
    array([[128, 128]], dtype=uint8)
    """
    bits = np.asarray(bits)
    if bits.ndim != 2 or bits.dtype != np.bool_:
        raise ValueError(f"bits must be a 2-D array of bool, got {bits.ndim}-D {bits.dtype}")
    return np.packbits(bits, axis=1)


def unpack(codes: NDArray[np.uint8], n_bits: int) -> NDArray[np.bool_]:
    """Return the bits of packed codes as rows of booleans, the inverse of :func:`pack`."""
    codes = np.asarray(codes)
    width = bytes_per_code(n_bits)
    if codes.ndim != 2 or codes.dtype != np.uint8 or codes.shape[1] != width:
        raise ValueError(
            f"codes of {n_bits} bits must be a 2-D uint8 array of {width} columns, got shape {codes.shape} "
            f"{codes.dtype}"
        )
    return np.unpackbits(codes, axis=1, count=n_bits).astype(np.bool_)
