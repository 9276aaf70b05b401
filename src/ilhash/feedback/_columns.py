"""Judgements in memory, by columns: some forty bytes each, and every id and name once."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.feedback._lines import Judgement


class Columns:
    """Judgements in the order in which they were made."""

    def __init__(self) -> None:
        self.kind: str | None = None  # of the ids, None as long as there are none
        self._ids: dict[int | str, int] = {}
        self._names: dict[str, int] = {}
        self._query, self._item, self._who = array("q"), array("q"), array("q")
        self._weight, self._time = array("d"), array("d")  # a weight below 0 is that of dissimilar ones

    def __len__(self) -> int:
        return len(self._time)

    def append(self, one: Judgement) -> None:
        """Add a judgement, whose ids are of this kind."""
        self._query.append(self._ids.setdefault(one.query, len(self._ids)))
        self._item.append(self._ids.setdefault(one.item, len(self._ids)))
        self._who.append(-1 if one.who is None else self._names.setdefault(one.who, len(self._names)))
        self._weight.append(one.weight if one.similar else -one.weight)
        self._time.append(one.time)
        self.kind = "int" if isinstance(one.query, int) else "str"

    def __iter__(self) -> Iterator[Judgement]:
        ids, names = list(self._ids), [*self._names, None]
        columns = (self._query, self._item, self._weight, self._who, self._time)
        for query, item, weight, who, time in zip(*columns, strict=True):
            yield Judgement(ids[query], ids[item], weight > 0, abs(weight), names[who], time)

    @property
    def n_people(self) -> int:
        """People who judged, those without a name not among them."""
        return len(self._names)

    def ids(self) -> NDArray[Any]:
        """Return all ids, in the order in which they first came up."""
        if self.kind == "int":
            return np.fromiter(self._ids, np.int64, len(self._ids))
        texts = np.empty(len(self._ids), object)
        texts[:] = list(self._ids)
        return texts

    def ends(self) -> NDArray[np.int64]:
        """Return the ids that were compared, (n, 2), as places among ``ids()``."""
        return np.column_stack([np.array(self._query, np.int64), np.array(self._item, np.int64)])

    def weights(self) -> NDArray[np.float64]:
        """Return signed weights, (n,)."""
        return np.array(self._weight, np.float64)

    def people(self) -> NDArray[np.int64]:
        """Return the person of each judgement as a number, -1 where nobody is named."""
        return np.array(self._who, np.int64)

    def times(self) -> NDArray[np.float64]:
        """Return seconds since 1970."""
        return np.array(self._time, np.float64)
