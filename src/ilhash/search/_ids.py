"""The names of items: whole numbers or texts, in ascending order, so that a row number is a rank.

Texts lie one behind the other in one array of bytes (UTF-8, whose order is the order of Python's strings), so that they
can be mapped from a file like numbers.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


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
        ends = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(encoded[row]) for row in order], out=ends[1:])
        text = np.frombuffer(b"".join(encoded[row] for row in order), np.uint8)
        return cls(text, ends), np.array(order, np.int64)

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
        rows = np.full(len(ids), -1)
        for position, wanted in enumerate(ids):
            row = bisect.bisect_left(range(len(self)), wanted, key=self.__getitem__)
            if row < len(self) and self[row] == wanted:
                rows[position] = row
        return rows

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"id_ends": self.ends, "id_text": self.text}


Ids = IntIds | StrIds


def as_ids(ids: Any, n: int, kind: str | None) -> NDArray[Any]:
    """Return ids as int64 or as an array of str objects; ``kind`` is what the index has, None if it is open."""
    array = np.asarray(ids)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"ids must be a sequence of one id per item, got shape {array.shape} for {n} items")
    if n == 0:
        return np.zeros(0, object if kind == "str" else np.int64)
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"ids must fit 64 signed bits, got {array.max()}")
        found, array = "int", array.astype(np.int64)
    elif array.dtype.kind in "UTO" and all(isinstance(value, str) for value in array.tolist()):
        found, array = "str", array.astype(object)
    else:
        raise TypeError(f"ids must be whole numbers or texts, got {array.dtype}")
    if kind is not None and found != kind:
        raise TypeError(f"ids must be of the kind of this index ({kind}), got {found}")
    return array


def ids_from_arrays(arrays: Mapping[str, NDArray[Any]], kind: str) -> Ids:
    """Return the ids that :meth:`to_arrays` wrote."""
    return IntIds(arrays["ids"]) if kind == "int" else StrIds(arrays["id_text"], arrays["id_ends"])


def refuse_repeated(ids: NDArray[Any]) -> None:
    """Refuse ids that are not distinct."""
    if ids.dtype == object:
        repeated = len(ids) - len(set(ids.tolist()))
    else:
        ranked = ids if (ids[:-1] < ids[1:]).all() else np.sort(ids)
        repeated = int(np.count_nonzero(ranked[:-1] == ranked[1:]))
    if repeated:
        raise ValueError(f"ids must be distinct, got {repeated} of {len(ids)} again")
