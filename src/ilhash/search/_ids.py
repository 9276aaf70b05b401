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


def ids_from_arrays(arrays: Mapping[str, NDArray[Any]], kind: str) -> Ids:
    """Return the ids that :meth:`to_arrays` wrote."""
    return IntIds(arrays["ids"]) if kind == "int" else StrIds(arrays["id_text"], arrays["id_ends"])
