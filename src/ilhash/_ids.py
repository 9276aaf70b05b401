"""The names of items as they are given: whole numbers or texts, one per item, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**63 - 1  # id that there can be


def as_ids(ids: Any, n: int, kind: str | None, where: str = "index") -> NDArray[Any]:
    """Return ids as int64 or as an array of str objects; ``kind`` is what the index has, None if it is open.

    Texts of a list are kept as they are. NumPy's own arrays of texts cannot hold NULs at the end, which are gone before
    anybody sees them.
    """
    array = _as_array(ids)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"ids must be a sequence of one id per item, got shape {array.shape} for {n} items")
    if n == 0:
        return np.zeros(0, object if kind == "str" else np.int64)
    found, array = _recognized(array)
    if kind is not None and found != kind:
        raise TypeError(f"ids must be of the kind of this {where} ({kind}), got {found}")
    return array


def _as_array(ids: Any) -> NDArray[Any]:
    if isinstance(ids, list | tuple) and any(isinstance(value, str) for value in ids):
        texts = np.empty(len(ids), object)
        texts[:] = ids  # NumPy would make all of them texts, and cut NULs off their ends
        return texts
    try:
        return np.asarray(ids)
    except (ValueError, TypeError):  # lists of several lengths
        raise ValueError("ids must be a sequence of whole numbers or texts, got something else") from None


def _recognized(array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the kind of ids, and the ids as the index wants them."""
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.max() > LARGEST:
            raise ValueError(f"ids must fit 64 signed bits, got {array.max()}")
        return "int", array.astype(np.int64)  # a copy: nobody else's array
    values: list[Any] = array.tolist() if array.dtype.kind in "UTO" else [None]
    if all(isinstance(value, str) for value in values):
        _refuse_no_utf8(values)
        return "str", array.astype(object)
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        beyond = [value for value in values if not -LARGEST - 1 <= value <= LARGEST]
        if beyond:
            raise ValueError(f"ids must fit 64 signed bits, got {len(beyond)} of {len(values)} others")
        return "int", array.astype(np.int64)
    raise TypeError(f"ids must be whole numbers or texts, got {array.dtype}")


def _refuse_no_utf8(texts: Sequence[str]) -> None:
    """Refuse texts with half a character, which no file could hold."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        wrong = sum(any("\ud800" <= letter <= "\udfff" for letter in text) for text in texts)
        raise ValueError(
            f"ids must be texts of whole characters, got {wrong} of {len(texts)} with surrogates"
        ) from None


def n_repeated(ids: NDArray[Any]) -> int:
    """Return how many ids are there again."""
    if ids.dtype == object:
        return len(ids) - len(set(ids.tolist()))
    ranked = ids if (ids[:-1] < ids[1:]).all() else np.sort(ids)
    return int(np.count_nonzero(ranked[:-1] == ranked[1:]))


def refuse_repeated(ids: NDArray[Any]) -> None:
    """Refuse ids that are not distinct."""
    repeated = n_repeated(ids)
    if repeated:
        raise ValueError(f"ids must be distinct, got {repeated} of {len(ids)} again")
