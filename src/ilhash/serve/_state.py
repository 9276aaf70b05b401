"""What requests see of a service: one state of model, codes and items, which stays as it is."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.codes import bytes_per_code
from ilhash.search import HammingIndex
from ilhash.serve._codes import View
from ilhash.serve._items import Items

IN_MEMORY = 256 << 20  # bytes of vectors that are copied for searches among them


@dataclass(frozen=True)
class State:
    """One state; whoever has it can go on with it, whatever is swapped in meanwhile.

    Attributes
    ----------
    number : int, grows with every change
    generation : int, grows with every other model
    name : str, of the model's folder
    model : trained model
    view : View, codes by that model
    items : Items, vectors, labels and texts, which only grow
    kind : {"int", "str"}, of ids
    before : mapping, names of earlier models whose bits are the first of this one's, to how many
    """

    number: int
    generation: int
    name: str
    model: Any
    view: View
    items: Items
    kind: str
    before: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.view.n_bits

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return int(self.model.n_features_in_)

    @property
    def has_vectors(self) -> bool:
        """Whether vectors are kept."""
        return bool(self.items.dimension)

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders in which can be searched."""
        return (*self.view.orders, "vectors") if self.has_vectors else self.view.orders

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The row of each id of the view among the items, -1 where nothing is known of it."""
        return self.items.rows(self.view.ids.tolist())

    @cached_property
    def base(self) -> tuple[NDArray[Any], Any]:
        """Ids, ascending, of all items with vectors, and these vectors, in memory where they are few."""
        has = self.items.with_vectors(self.rows)
        rows = self.rows[has]
        small = len(rows) * self.items.dimension * 4 <= IN_MEMORY
        return self.view.ids[has], self.items.vectors(rows) if small else self.items.source(rows)

    def vectors_of(self, ids: list[Any]) -> NDArray[np.float32]:
        """Return the vectors of items; refuse those without."""
        rows = self.items.rows(ids)
        missing = int(np.count_nonzero(~self.items.with_vectors(rows)))
        if missing:
            raise ValueError(f"ids must be of items with vectors, got {missing} of {len(ids)} without")
        return self.items.vectors(rows)

    def as_id(self, text: str) -> int | str | None:
        """Return the id that a part of an address means; None where it can be none."""
        if self.kind == "str":
            return text
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
            return None
        number = int(text)
        return number if -(2**63) <= number < 2**63 else None


class Other:
    """Another model beside the current one: all items by its codes, in memory; each vector is encoded once."""

    def __init__(self, name: str, model: Any) -> None:
        self.name, self.model = name, model
        self._mutex = threading.Lock()
        self._seen: Any = None
        self._items: Items | None = None
        self._codes = np.zeros((0, bytes_per_code(self._n_bits)), np.uint8)  # of the rows of the items
        self._index = HammingIndex(n_bits=self._n_bits)

    @property
    def _n_bits(self) -> int:
        return len(self.model.functions_)

    def index(self, state: State) -> HammingIndex:
        """Return all items of a state by the codes of this model."""
        with self._mutex:
            if self._seen is not state.view:
                has = state.items.with_vectors(state.rows)
                rows, ids = state.rows[has], state.view.ids[has]
                codes = self._coded(state.items)[rows]
                index = HammingIndex(codes, n_bits=self._n_bits, ids=ids) if len(ids) else None
                self._index = index or HammingIndex(n_bits=self._n_bits)
                self._seen = state.view
            return self._index

    def _coded(self, items: Items) -> NDArray[np.uint8]:
        """Return the codes of all rows, also of those that count no more; of rows without vectors anything."""
        if items is not self._items:
            self._items, self._codes = items, self._codes[:0]
        rows = np.arange(len(self._codes), len(items))
        if len(rows):
            new = np.zeros((len(rows), self._codes.shape[1]), np.uint8)
            has = items.with_vectors(rows)
            if has.any():
                new[has] = self.model.transform(items.source(rows[has]))
            self._codes = np.concatenate([self._codes, new])
        return self._codes
