"""Codes of a model some of whose bits were encoded before: only the others are computed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes
from ilhash._fingerprints import bits_of
from ilhash.encoding._stored import Codes, StoredCodes
from ilhash.vectors import take_rows

CHECKED = 64  # rows of which the known bits are encoded again, to see whether they are of these vectors
MOST_FLIPPED = 0.02  # share of bits that may differ then: margins near zero round to either side


class Continued:
    """A model that takes bits which are known from codes in files; it encodes like the model itself.

    Parameters
    ----------
    model : fitted model
    known : StoredCodes, codes of the same vectors by a model that has some of its bits
    X : vectors
    """

    def __init__(self, model: Any, known: StoredCodes, X: Any) -> None:
        there, bits = known.bit_fingerprints, bits_of(model)
        if there is None or bits is None:
            raise ValueError(f"known must say which bits it holds, got codes of an earlier version in {known.path}")
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if len(known) != n_rows:
            raise ValueError(f"known must be codes of the {n_rows} vectors, got {len(known)}")
        place = {name: number for number, name in enumerate(there)}
        self.model, self.known, self.functions_ = model, known, model.functions_
        self.kept = [number for number, name in enumerate(bits) if name in place]
        self.places = [place[bits[number]] for number in self.kept]
        self.missing = [number for number, name in enumerate(bits) if name not in place]
        if not self.kept:
            raise ValueError(f"known must hold some bits of the model, got none of them in {known.path}")
        # Bits stand as the known ones and then the new ones: where each bit of the model is among these.
        self.order = np.argsort([*self.kept, *self.missing]).tolist()
        self._refuse_other_vectors(X)

    def fingerprint(self) -> str:
        """Identify the model, which this one does what it does."""
        found: str = self.model.fingerprint()
        return found

    def bit_fingerprints(self) -> list[str]:
        """Identify the model's bits."""
        found: list[str] = self.model.bit_fingerprints()
        return found

    def encode_blocks(self, X: Any, first: int = 0, last: int | None = None) -> Generator[tuple[slice, Codes]]:
        """Give the codes of a stretch of rows, block by block."""
        if not self.missing:
            size = len(self.known) if last is None else last
            for begin in range(first, size, 1 << 16):
                rows = slice(begin, min(begin + (1 << 16), size))
                yield rows, self._kept_bits(rows)
            return
        with closing(self.model[self.missing].encode_blocks(X, first, last)) as blocks:
            for rows, new in blocks:
                both = codes.beside(self._kept_bits(rows), len(self.kept), new, len(self.missing))
                yield rows, codes.take_bits(both, len(self.functions_), self.order)

    def _kept_bits(self, rows: slice) -> Codes:
        there = self.known.take(np.arange(rows.start, rows.stop))
        kept = codes.take_bits(there, self.known.n_bits, self.places)
        return kept if self.missing else codes.take_bits(kept, len(self.kept), self.order)

    def _refuse_other_vectors(self, X: Any) -> None:
        rows = some_rows(len(self.known))
        there = codes.take_bits(self.known.take(rows), self.known.n_bits, self.places)
        flipped = flipped_bits(self.model[self.kept], X, rows, there)
        if flipped > MOST_FLIPPED:
            raise ValueError(
                f"known must be codes of these vectors, got others: {flipped:.0%} of the bits of {len(rows)} differ"
            )


def some_rows(n: int) -> NDArray[np.int64]:
    """Return rows that are looked at.

    Parameters
    ----------
    n : int, how many rows there are

    Returns
    -------
    int64 array, ascending

    Examples
    --------
    >>> some_rows(3).tolist()
    [0, 1, 2]
    """
    return np.unique(np.linspace(0, n - 1, CHECKED).astype(np.int64))


def flipped_bits(model: Any, X: Any, rows: NDArray[np.int64], there: Codes) -> float:
    """Return the share of bits of some rows that are other ones when they are encoded again.

    Parameters
    ----------
    model, X : fitted model and vectors
    rows : int array, which rows of X
    there : uint8 array, codes that they are said to have

    Returns
    -------
    float
    """
    now, n_bits = model.transform(take_rows(X, rows)), len(model.functions_)
    return float((codes.unpack(now, n_bits) != codes.unpack(there, n_bits)).mean())
