"""The names of items: whole numbers or texts, in ascending order, so that a row number is a rank.

Texts lie one behind the other in one array of bytes (UTF-8, whose order is the order of Python's strings), so that they
can be mapped from a file like numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core

Rows = NDArray[np.int64]
LARGEST = 2**63 - 1  # id that there can be


class IntIds:
    """Ascending int64."""

    kind = "int"

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values

    @classmethod
    def sorted(cls, values: NDArray[np.int64]) -> tuple[IntIds, Rows | None]:
        """Return the ids in ascending order and the order that brings them there (None: they are)."""
        if len(values) < 2 or (values[:-1] < values[1:]).all():
            return cls(values), None
        order = np.argsort(values, kind="stable")
        return cls(values[order]), order

    def __len__(self) -> int:
        return len(self.values)

    def at(self, rows: Rows) -> NDArray[np.int64]:
        """Return the ids of rows (any shape)."""
        return self.values[rows]

    def find(self, ids: NDArray[Any]) -> Rows:
        """Return the row of each id, -1 where there is none."""
        if not len(self.values):
            return np.full(len(ids), -1)
        rows = np.minimum(np.searchsorted(self.values, ids), len(self.values) - 1)
        return np.where(self.values[rows] == ids, rows, -1)

    def find_all(self, others: Any) -> Rows:
        """Return the row of each id of others of this kind, -1 where there is none."""
        return self.find(others.values)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file holds of them."""
        return {"ids": self.values}


class StrIds:
    """Ascending texts, with the methods of IntIds."""

    kind = "str"

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self.text, self.ends = text, ends  # ends[row + 1] is where text `row` ends

    @classmethod
    def sorted(cls, values: NDArray[Any]) -> tuple[StrIds, Rows | None]:
        encoded = [value.encode() for value in values]
        order = sorted(range(len(encoded)), key=encoded.__getitem__)
        return cls(*_joined([encoded[row] for row in order])), np.array(order, np.int64)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, row: int) -> str:
        return bytes(self.text[self.ends[row] : self.ends[row + 1]]).decode()

    def at(self, rows: Rows) -> NDArray[Any]:
        """Return the ids of rows (any shape), as an array of str objects."""
        distinct, where = np.unique(rows, return_inverse=True)
        texts = np.empty(len(distinct), object)
        texts[:] = [self[row] for row in distinct]
        return texts[where].reshape(np.shape(rows))

    def find(self, ids: NDArray[Any]) -> Rows:
        return _core.find_texts(self.text, self.ends, *_joined([wanted.encode() for wanted in ids]))

    def find_all(self, others: Any) -> Rows:
        return _core.find_texts(self.text, self.ends, others.text, others.ends)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"id_ends": self.ends, "id_text": self.text}


Ids = IntIds | StrIds


def _joined(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return texts one behind the other, and where they end, after a 0."""
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return np.frombuffer(b"".join(texts), np.uint8), ends


def as_ids(ids: Any, n: int, kind: str | None) -> NDArray[Any]:
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
        raise TypeError(f"ids must be of the kind of this index ({kind}), got {found}")
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


def ids_from_arrays(arrays: Mapping[str, NDArray[Any]], kind: str) -> Ids:
    """Return the ids that :meth:`to_arrays` wrote."""
    return IntIds(arrays["ids"]) if kind == "int" else StrIds(arrays["id_text"], arrays["id_ends"])


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
