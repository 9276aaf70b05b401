"""Packed codes: uint8 rows of ceil(b/8) bytes, most significant bit first, padding bits zero.

This is the layout of ``numpy.packbits`` and of PostgreSQL's ``bit`` type; the number of bits travels beside the array.
Every other layout has a pair of functions, ``to_...`` and ``from_...``, and is never guessed:

=================  =====================================================================================
``lsb_first``      bit i is the i % 8-th lowest of byte i // 8 (``packbits(bitorder="little")``)
``int8_offset``    int8 = byte - 128 (what sentence-transformers calls "binary")
``int8_view``      the same bytes read as int8 (for engines without unsigned bytes)
``hex``            two hexadecimal digits per byte
``text``           one character '0' or '1' per bit
=================  =====================================================================================

:func:`from_layout` and :func:`to_layout` know them by the names of the tools that write them; :func:`layouts` lists
those. :func:`pack` and :func:`unpack` convert from and to a matrix of bool.

Examples
--------
>>> packed = pack(np.array([[True, False, True, False, False, False, False, False, True]]))
>>> packed, bytes_per_code(9)
(array([[160, 128]], dtype=uint8), 2)
>>> to_lsb_first(packed, 9), to_int8_offset(packed, 9), to_int8_view(packed, 9)
(array([[5, 1]], dtype=uint8), array([[32,  0]], dtype=int8), array([[ -96, -128]], dtype=int8))
>>> to_hex(packed, 9), to_text(packed, 9)
(['a080'], ['101000001'])
>>> from_text(["101"], 3), unpack(from_hex(["a0"], 3), 3)
(array([[160]], dtype=uint8), array([[ True, False,  True]]))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import as_array, check_choice, check_count, some_bits

__all__ = ["bytes_per_code", "check", "pack", "to_tiles", "unpack"]
__all__ += ["from_hex", "from_int8_offset", "from_int8_view", "from_lsb_first", "from_text"]
__all__ += ["from_layout", "layouts", "to_layout"]
__all__ += ["beside", "take_bits"]
__all__ += ["to_hex", "to_int8_offset", "to_int8_view", "to_lsb_first", "to_text"]

Codes = NDArray[np.uint8]
_UNPACKED = 1 << 16  # codes that are unpacked at once

_REVERSED: Codes = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)), bitorder="little")
_HEX = re.compile("[0-9a-fA-F]*")
_ZEROS_AND_ONES = re.compile("[01]*")


def bytes_per_code(n_bits: int) -> int:
    """Return the number of bytes that hold ``n_bits`` bits.

    Parameters
    ----------
    n_bits : int, bits of a code

    Returns
    -------
    int, bytes of a code

    Examples
    --------
    >>> bytes_per_code(64), bytes_per_code(65)
    (8, 9)
    """
    return (check_count("n_bits", n_bits) + 7) // 8


def check(codes: Any, n_bits: int | None = None, name: str = "codes") -> Codes:
    """Return codes as an array, or say in one sentence what is wrong with them.

    Parameters
    ----------
    codes : array_like, what should be uint8 (n, ceil(n_bits / 8)) with zeros in the padding bits; n may be 0
    n_bits : int, optional, the number of bits; None: all bits of every byte
    name : str, default "codes", what the sentence calls them

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), the codes, not copied where they are an array

    Examples
    --------
    >>> check(np.array([[1]], np.uint8), 7)
    Traceback (most recent call last):
    ...
    ValueError: codes must have zeros in the 1 padding bits after bit 7, got others in 1 of 1 rows
    """
    array = _table(codes, n_bits, name, np.uint8)
    spare = 0 if n_bits is None else 8 * array.shape[1] - n_bits
    if spare:
        bad = int(np.count_nonzero(array[:, -1] & ((1 << spare) - 1)))
        if bad:
            rule = f"{name} must have zeros in the {spare} padding bits after bit {n_bits}"
            raise ValueError(f"{rule}, got others in {bad} of {len(array)} rows")
    return array


def _table(codes: Any, n_bits: int | None, name: str, dtype: type[np.generic]) -> NDArray[Any]:
    array, wanted = np.asarray(as_array(name, codes)), np.dtype(dtype)
    width = None if n_bits is None else bytes_per_code(n_bits)
    if array.ndim != 2 or array.dtype != wanted or not array.shape[1] or width not in (None, array.shape[1]):
        of_bits, of_columns = (f" of {n_bits} bits", f" of {width} columns") if width else ("", "")
        rule = f"{name}{of_bits} must be a 2-D {wanted} array{of_columns}"
        raise ValueError(f"{rule}, got shape {array.shape} {array.dtype}")
    return array


def pack(bits: NDArray[Any]) -> Codes:
    """Pack rows of booleans into codes.

    Parameters
    ----------
    bits : bool array (n, n_bits), one row per code

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), packed codes

    Examples
    --------
    >>> pack(np.array([[True, False, True]]))
    array([[160]], dtype=uint8)
    """
    bits = np.asarray(as_array("bits", bits))
    if bits.ndim != 2 or bits.dtype != np.bool_ or bits.shape[1] == 0:
        raise ValueError(f"bits must be a 2-D array of bool, got shape {bits.shape} {bits.dtype}")
    return np.packbits(bits, axis=1)


def unpack(codes: Codes, n_bits: int) -> NDArray[np.bool_]:
    """Return the bits of packed codes as rows of booleans, the inverse of :func:`pack`.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each

    Returns
    -------
    bool array (n, n_bits), one row per code

    Examples
    --------
    >>> unpack(np.array([[160]], np.uint8), 3)
    array([[ True, False,  True]])
    """
    array = check(codes, check_count("n_bits", n_bits))
    return np.unpackbits(array, axis=1, count=n_bits).view(np.bool_)


def take_bits(codes: Codes, n_bits: int, bits: Any) -> Codes:
    """Return codes of some of the bits, in their order.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each
    bits : slice or sequence of int, which bits

    Returns
    -------
    uint8 array (n, ceil(len(bits) / 8))

    Examples
    --------
    >>> to_text(take_bits(from_text(["10010"], 5), 5, [3, 0, 1]), 3)
    ['110']
    """
    array, chosen = check(codes, check_count("n_bits", n_bits)), some_bits(bits, n_bits)
    if chosen == list(range(n_bits)):
        return array.copy()
    return _in_blocks(lambda rows: unpack(array[rows], n_bits)[:, chosen], len(array), len(chosen))


def beside(codes: Codes, n_bits: int, more: Codes, n_more: int) -> Codes:
    """Return codes with more bits behind those that they have.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each
    more, n_more : uint8 array (n, ceil(n_more / 8)) and int, the bits that follow

    Returns
    -------
    uint8 array (n, ceil((n_bits + n_more) / 8))

    Examples
    --------
    >>> to_text(beside(from_text(["101"], 3), 3, from_text(["01"], 2), 2), 5)
    ['10101']
    """
    first, second = check(codes, check_count("n_bits", n_bits)), check(more, check_count("n_more", n_more), "more")
    if len(first) != len(second):
        raise ValueError(f"more must be one code for each of the {len(first)}, got {len(second)}")
    if n_bits % 8 == 0:
        return np.hstack([first, second])

    def both(rows: slice) -> NDArray[np.bool_]:
        return np.hstack([unpack(first[rows], n_bits), unpack(second[rows], n_more)])

    return _in_blocks(both, len(first), n_bits + n_more)


def _in_blocks(bits: Callable[[slice], NDArray[np.bool_]], n: int, n_bits: int) -> Codes:
    """Pack the bits of n codes; no more of them are unpacked at once than memory will notice."""
    out = np.empty((n, bytes_per_code(n_bits)), np.uint8)
    for first in range(0, n, _UNPACKED):
        rows = slice(first, min(first + _UNPACKED, n))
        out[rows] = pack(bits(rows))
    return out


def to_lsb_first(codes: Codes, n_bits: int) -> Codes:
    """Reverse the bits of every byte: bit i becomes the i % 8-th lowest of byte i // 8.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), the same codes, least significant bit first

    Examples
    --------
    >>> to_lsb_first(np.array([[160]], np.uint8), 3)
    array([[5]], dtype=uint8)
    """
    return np.take(_REVERSED, check(codes, n_bits))


def from_lsb_first(codes: Codes, n_bits: int) -> Codes:
    """Do the inverse of :func:`to_lsb_first`; padding, there the highest bits of the last byte, must be zero.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, what :func:`to_lsb_first` gave and bits of a code

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), packed codes

    Examples
    --------
    >>> from_lsb_first(np.array([[5]], np.uint8), 3)
    array([[160]], dtype=uint8)
    """
    return check(np.take(_REVERSED, _table(codes, n_bits, "codes", np.uint8)), n_bits)


def to_int8_offset(codes: Codes, n_bits: int) -> NDArray[np.int8]:
    """Subtract 128 from every byte: sentence-transformers' precision "binary".

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each

    Returns
    -------
    int8 array (n, ceil(n_bits / 8)), the same codes

    Examples
    --------
    >>> to_int8_offset(np.array([[160]], np.uint8), 8)
    array([[32]], dtype=int8)
    """
    return (check(codes, n_bits) ^ np.uint8(128)).view(np.int8)


def from_int8_offset(codes: NDArray[np.int8], n_bits: int) -> Codes:
    """Do the inverse of :func:`to_int8_offset`.

    Parameters
    ----------
    codes, n_bits : int8 array (n, ceil(n_bits / 8)) and int, what :func:`to_int8_offset` gave and bits of a code

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), packed codes

    Examples
    --------
    >>> from_int8_offset(np.array([[32]], np.int8), 8)
    array([[160]], dtype=uint8)
    """
    return check(_table(codes, n_bits, "codes", np.int8).view(np.uint8) ^ np.uint8(128), n_bits)


def to_int8_view(codes: Codes, n_bits: int) -> NDArray[np.int8]:
    """Read the same bytes as int8; nothing is copied.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each

    Returns
    -------
    int8 array (n, ceil(n_bits / 8)), the same memory

    Examples
    --------
    >>> to_int8_view(np.array([[160]], np.uint8), 8)
    array([[-96]], dtype=int8)
    """
    return check(codes, n_bits).view(np.int8)


def from_int8_view(codes: NDArray[np.int8], n_bits: int) -> Codes:
    """Do the inverse of :func:`to_int8_view`; nothing is copied.

    Parameters
    ----------
    codes, n_bits : int8 array (n, ceil(n_bits / 8)) and int, what :func:`to_int8_view` gave and bits of a code

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), packed codes

    Examples
    --------
    >>> from_int8_view(np.array([[-96]], np.int8), 8)
    array([[160]], dtype=uint8)
    """
    return check(_table(codes, n_bits, "codes", np.int8).view(np.uint8), n_bits)


def to_tiles(codes: Codes, rows: NDArray[Any] | None = None) -> Codes:
    """Return codes, or the rows of them that are named, as the scan of the core wants them.

    Tiles of 64 codes, byte j of all 64 together: (ceil(n / 64), bytes, 64); the last tile is filled up with zeros.

    Parameters
    ----------
    codes : uint8 array (n, bytes), packed codes
    rows : int array, optional, which of them, in this order

    Returns
    -------
    uint8 array (ceil(n / 64), bytes, 64), the tiles

    Examples
    --------
    >>> to_tiles(np.array([[1, 2], [3, 4]], np.uint8))[0, :, :3].tolist()
    [[1, 3, 0], [2, 4, 0]]
    """
    codes = np.ascontiguousarray(check(codes))
    chosen = None if rows is None else _row_numbers(rows, len(codes))
    n = len(codes) if chosen is None else len(chosen)
    tiles = np.empty((-(-n // 64), codes.shape[1], 64), np.uint8)
    _core.to_tiles(codes, chosen, tiles)
    return tiles


def _row_numbers(rows: Any, n: int) -> NDArray[np.uint32]:
    array = np.asarray(as_array("rows", rows))
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"rows must be a 1-D array of whole numbers, got shape {array.shape} {array.dtype}")
    outside = int(np.count_nonzero((array < 0) | (array >= n)))
    if outside:
        raise ValueError(f"rows must lie between 0 and {n - 1}, got {outside} of {len(array)} outside")
    return array.astype(np.uint32)


def to_hex(codes: Codes, n_bits: int) -> list[str]:
    """Return one string of hexadecimal digits per code, two per byte.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each

    Returns
    -------
    list of str, one per code

    Examples
    --------
    >>> to_hex(np.array([[160, 128]], np.uint8), 9)
    ['a080']
    """
    array = check(codes, n_bits)
    return _cut(array.tobytes().hex(), 2 * array.shape[1])


def from_hex(texts: Sequence[str], n_bits: int) -> Codes:
    """Do the inverse of :func:`to_hex`; upper case is accepted too.

    Parameters
    ----------
    texts, n_bits : sequence of str, one per code, and int, bits of a code

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), packed codes

    Examples
    --------
    >>> from_hex(['a080'], 9)
    array([[160, 128]], dtype=uint8)
    """
    width = bytes_per_code(n_bits)
    joined = _joined(texts, 2 * width, _HEX, f"hexadecimal digits each for {n_bits} bits")
    return check(np.frombuffer(bytes.fromhex(joined), np.uint8).reshape(-1, width).copy(), n_bits, "texts")


def to_text(codes: Codes, n_bits: int) -> list[str]:
    """Return one string of '0' and '1' per code, first bit first.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each

    Returns
    -------
    list of str, one per code

    Examples
    --------
    >>> to_text(np.array([[160]], np.uint8), 3)
    ['101']
    """
    digits = unpack(codes, n_bits).view(np.uint8) + np.uint8(ord("0"))
    return _cut(digits.tobytes().decode("ascii"), n_bits)


def from_text(texts: Sequence[str], n_bits: int) -> Codes:
    """Do the inverse of :func:`to_text`.

    Parameters
    ----------
    texts, n_bits : sequence of str, one per code, and int, bits of a code

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), packed codes

    Examples
    --------
    >>> from_text(['101'], 3)
    array([[160]], dtype=uint8)
    """
    bytes_per_code(n_bits)
    joined = _joined(texts, n_bits, _ZEROS_AND_ONES, "characters '0' or '1' each")
    return pack(np.frombuffer(joined.encode("ascii"), np.uint8).reshape(-1, n_bits) == ord("1"))


def _cut(joined: str, length: int) -> list[str]:
    return [joined[first : first + length] for first in range(0, len(joined), length)]


def _joined(texts: Any, length: int, alphabet: re.Pattern[str], what: str) -> str:
    """Join texts of one length and alphabet; count those that are not."""
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a sequence of str, got one {type(texts).__name__}")
    if isinstance(texts, np.ndarray) and (texts.ndim != 1 or texts.dtype.kind not in "UTO"):
        raise TypeError(f"texts must be a sequence of str, got an array of shape {texts.shape} {texts.dtype}")
    rows = list(texts)
    for problem, bad in (
        ("that are no str", [row for row in rows if not isinstance(row, str)]),
        ("of another length", [row for row in rows if isinstance(row, str) and len(row) != length]),
        ("with other characters", [row for row in rows if isinstance(row, str) and not alphabet.fullmatch(row)]),
    ):
        if bad:
            first = bad[0] if isinstance(bad[0], str) else type(bad[0]).__name__
            got = f"{len(bad)} of {len(rows)} rows {problem}, the first {first!r}"
            raise ValueError(f"texts must be {length} {what}, got {got}")
    return "".join(rows)


# ------------------------------------------------------------------------------------------------ by the tool's name


def _same(codes: Codes, n_bits: int) -> Codes:
    return check(codes, n_bits)


_LAYOUTS: dict[str, tuple[Callable[[Any, int], Codes], Callable[[Codes, int], Any]]] = {
    "sentence-transformers:ubinary": (_same, _same),
    "sentence-transformers:binary": (from_int8_offset, to_int8_offset),
    "faiss": (_same, _same),
    "faiss:lsh": (from_lsb_first, to_lsb_first),
    "usearch": (_same, _same),
    "lancedb": (_same, _same),
    "sqlite-vec": (_same, _same),
    "sqlite-vec:quantize": (from_lsb_first, to_lsb_first),
    "pgvector": (from_text, to_text),
    "duckdb": (from_text, to_text),
    "clickhouse:hex": (from_hex, to_hex),
}


def layouts() -> tuple[str, ...]:
    """Return the names of layouts that :func:`from_layout` and :func:`to_layout` know.

    Returns
    -------
    tuple of str: a tool, and where it has several ways to write codes, which

    Examples
    --------
    >>> layouts()[:3]
    ('sentence-transformers:ubinary', 'sentence-transformers:binary', 'faiss')
    """
    return tuple(_LAYOUTS)


def from_layout(values: Any, n_bits: int, layout: str) -> Codes:
    """Return packed codes of what another tool wrote.

    Parameters
    ----------
    values : array or sequence of str, what the tool wrote: uint8 or int8 rows, or texts
    n_bits : int, bits of a code
    layout : str, one of :func:`layouts`; nothing is guessed

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), packed codes

    Examples
    --------
    >>> from_layout(np.array([[127, -128]], np.int8), 16, "sentence-transformers:binary")
    array([[255,   0]], dtype=uint8)
    """
    check_choice("layout", layout, layouts())
    return _LAYOUTS[layout][0](values, check_count("n_bits", n_bits))


def to_layout(codes: Codes, n_bits: int, layout: str) -> Any:
    """Return packed codes as another tool writes them, the inverse of :func:`from_layout`.

    Parameters
    ----------
    codes, n_bits : uint8 array (n, ceil(n_bits / 8)) and int, packed codes and the bits of each
    layout : str, one of :func:`layouts`

    Returns
    -------
    array of uint8 or int8, or list of str, as the tool has them

    Examples
    --------
    >>> to_layout(np.array([[160, 128]], np.uint8), 9, "sqlite-vec:quantize")
    array([[5, 1]], dtype=uint8)
    """
    check_choice("layout", layout, layouts())
    return _LAYOUTS[layout][1](codes, check_count("n_bits", n_bits))
