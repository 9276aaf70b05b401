"""Other bits for items that are there: what becomes of every code, block by block.

A change goes through all items in the order of their ids. It refuses what does not fit them before anything is final.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ilhash import codes as packed
from ilhash.engines._settings import Codes, Ids, Settings


class BitChange(ABC):
    """A change of bits.

    Attributes
    ----------
    settings : Settings, of the place afterwards
    n_before : int, bits that items have before it
    model : fitted model or its fingerprint, or None, as it was given
    """

    def __init__(self, settings: Settings, n_before: int, model: Any) -> None:
        self.settings, self.n_before, self.model = settings, n_before, model

    @abstractmethod
    def recoded(self, ids: Ids, codes: Codes) -> Codes:
        """Return the new codes of the next items, in the order of their ids."""

    def finish(self) -> None:  # noqa: B027 (most changes fit any items)
        """Refuse a change that is not for exactly the items that have gone through it."""


class Appended(BitChange):
    """New bits behind the old ones; ``ids`` says whose they are, None all items in the order of their ids."""

    def __init__(self, settings: Settings, n_before: int, model: Any, codes: Codes, ids: Ids | None) -> None:
        super().__init__(settings, n_before, model)
        self.codes, self.ids = codes, ids
        if ids is not None:
            order = np.argsort(ids)
            self.codes, self.ids = codes[order], ids[order]
        self.done = 0

    def recoded(self, ids: Ids, codes: Codes) -> Codes:
        some = slice(self.done, self.done + len(ids))
        self.done += len(ids)
        if self.ids is not None:
            self._refuse_others(self.ids[some], ids)
        new = self.codes[some]
        if len(new) < len(ids):
            raise ValueError(f"codes must be one per item, got {len(self.codes)} for at least {self.done} items")
        return packed.beside(codes, self.n_before, new, self.settings.n_bits - self.n_before)

    def _refuse_others(self, given: Ids, there: Ids) -> None:
        for name, item in zip(given.tolist(), there.tolist(), strict=False):
            if name != item:  # both ascend: the smaller one has no partner
                got = f"{name!r}, which is none" if name < item else f"none for {item!r}"
                raise ValueError(f"ids must be those of the items, all of them, got {got}")

    def finish(self) -> None:
        if self.done != len(self.codes):
            raise ValueError(f"codes must be one per item, got {len(self.codes)} for {self.done} items")


class Selected(BitChange):
    """Some of the bits, in an order of their own."""

    def __init__(self, settings: Settings, n_before: int, model: Any, bits: list[int]) -> None:
        super().__init__(settings, n_before, model)
        self.bits = bits

    def recoded(self, ids: Ids, codes: Codes) -> Codes:
        return packed.take_bits(codes, self.n_before, self.bits)
