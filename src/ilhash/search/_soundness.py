"""What must hold of the numbers in a segment before they are used as places in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 20  # numbers that are compared at a time, so that memory stays bounded


def check_ascending(values: NDArray[Any], name: str) -> None:
    """Refuse numbers that do not ascend from one to the next."""
    for first in range(0, len(values) - 1, _BLOCK):
        some = values[first : first + _BLOCK + 1]
        if not (some[:-1] < some[1:]).all():
            raise ValueError(f"{name} must ascend, got some that do not")


def check_segment(
    tiles: NDArray[np.uint8],
    n_codes: int,
    n_bits: int,
    offsets: NDArray[np.uint32] | None,
    rows: NDArray[np.uint32] | None,
    pivots: NDArray[np.uint8] | None,
    ranges: NDArray[np.uint16] | None,
) -> None:
    """Refuse codes, posting lists and pivots that no index writes; their shapes are taken for granted."""
    padding = (1 << -n_bits % 8) - 1
    _refuse_if(padding and (tiles[:, -1] & padding).any(), "codes must have zeros behind their last bit")
    if offsets is not None:
        ends = int(rows.shape[0]) if rows is not None else 0
        _refuse_if(offsets[0] != 0 or offsets[-1] != ends, "offsets must begin at 0 and end with the rows")
        check_ascending(offsets, "offsets")
    if rows is not None:
        _check_lists(offsets, rows, ordered=pivots is None)
    if pivots is not None and ranges is not None:
        _refuse_if((pivots[:, -1] & padding).any(), "pivots must have zeros behind their last bit")
        _refuse_if((ranges[:, 0] >= len(pivots)).any(), "ranges must name pivots that there are")
        wrong = (ranges[:, 1] > ranges[:, 2]) | (ranges[:, 2] > n_bits)
        _refuse_if(wrong.any(), "ranges must hold distances that ascend and are at most the number of bits")


def _check_lists(offsets: NDArray[np.uint32] | None, rows: NDArray[np.uint32], *, ordered: bool) -> None:
    seen = np.zeros(len(rows), np.bool_)
    _refuse_if(len(rows) and rows.max() >= len(rows), "rows must be numbers of items")
    seen[rows] = True
    _refuse_if(not seen.all(), "rows must name each item once")
    if offsets is None:
        _refuse_if(ordered and (rows[:-1] >= rows[1:]).any(), "first rows of lists must ascend")
        return
    first = np.zeros(len(rows), np.bool_)
    first[offsets[:-1]] = True
    _refuse_if((~first[1:] & (rows[:-1] >= rows[1:])).any(), "rows must ascend in each list")
    begins = rows[offsets[:-1]]
    _refuse_if(ordered and (begins[:-1] >= begins[1:]).any(), "first rows of lists must ascend")


def _refuse_if(wrong: Any, message: str) -> None:
    if wrong:
        raise ValueError(f"{message}, got others")
