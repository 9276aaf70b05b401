"""Other bits for items that are there: what becomes of every code, block by block.

A change goes through all items in the order of their ids. It refuses what does not fit them before anything is final.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import chosen_bits
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
        return joined(codes, self.n_before, new, self.settings.n_bits - self.n_before)

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

    def __init__(self, settings: Settings, n_before: int, model: Any, bits: NDArray[np.intp]) -> None:
        super().__init__(settings, n_before, model)
        self.bits = bits

    def recoded(self, ids: Ids, codes: Codes) -> Codes:
        # NumPy picks columns into another order of memory, and packs it so; engines take the memory as it is.
        return np.ascontiguousarray(packed.pack(packed.unpack(codes, self.n_before)[:, self.bits]))


def joined(codes: Codes, n_bits: int, others: Codes, n_others: int) -> Codes:
    """Return the bits of codes, and behind them those of others.

    Examples
    --------
    >>> joined(np.array([[0b10100000]], np.uint8), 3, np.array([[0b11000000]], np.uint8), 2).tolist()
    [[184]]
    """
    if n_bits % 8 == 0:
        return np.ascontiguousarray(np.concatenate([codes, others], axis=1))
    bits = (packed.unpack(codes, n_bits), packed.unpack(others, n_others))
    return np.ascontiguousarray(packed.pack(np.concatenate(bits, axis=1)))


def which_bits(bits: Any, n: int) -> NDArray[np.intp]:
    """Return the places of bits that are to stay, as ``model[bits]`` means them."""
    try:
        return np.array(chosen_bits(bits, n), np.intp)
    except IndexError:
        raise ValueError(f"bits must lie between 0 and {n - 1}, got others") from None
    except TypeError:  # whose sentence may hold the whole array
        raise TypeError(f"bits must be a slice or whole numbers, got {type(bits).__name__}") from None
    except ValueError:
        raise ValueError(f"bits must be at least one of {n}, got none") from None
