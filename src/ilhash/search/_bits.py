"""Items whose codes get other bits: some of those that they have, and new ones behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._fingerprints import bits_of, fingerprint_of, refuse_another
from ilhash._ids import as_ids, refuse_repeated
from ilhash.encoding import MOST_FLIPPED, flipped_bits, some_rows
from ilhash.search._margins import MarginScale, as_margins
from ilhash.search._schema import Settings
from ilhash.search._segment import Segment


class NewBits(NamedTuple):
    """New bits of all items, in the order of ascending ids."""

    ids: NDArray[Any]
    codes: NDArray[np.uint8]
    n_bits: int
    margins: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, codes: Any, n_bits: int, ids: Any, there: NDArray[Any], margins: Any, kind: str | None) -> NewBits:
        """Check what was given for the items that are there; without ids it stands in the order of theirs."""
        array = packed.check(codes, n_bits)
        values = None if margins is None else as_margins(margins, n_bits, len(array))
        if ids is None and len(array) != len(there):
            raise ValueError(f"codes must be one for each of the {len(there)} items, got {len(array)}")
        if ids is None:
            return cls(there, array, n_bits, values)
        names = as_ids(ids, len(array), kind)
        refuse_repeated(names)
        order = np.argsort(names, kind="stable")
        if len(names) != len(there) or not np.array_equal(names[order], there):
            missing, other = len(np.setdiff1d(there, names)), len(np.setdiff1d(names, there))
            raise ValueError(f"ids must be those of all items, got {missing} fewer and {other} that are not there")
        return cls(there, array[order], n_bits, None if values is None else values[order])

    def rows(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Return where the bits of some items are."""
        return np.searchsorted(self.ids, ids)


def rewritten(
    segments: Sequence[Segment], order: Sequence[int], new: NewBits | None, before: Settings, after: Settings
) -> Iterator[Segment]:
    """Give the living items of segments with other bits: ``order`` counts the old ones, then the new ones."""
    for segment in segments:
        rows = segment.rows_alive
        if not len(rows):
            continue
        ids, codes, n_bits = segment.ids.at(rows), segment.codes(rows), before.n_bits
        kept = segment.arrays["margins"][rows] if after.scale is not None else None
        if new is not None:
            own = new.rows(ids)
            codes, n_bits = packed.beside(codes, n_bits, new.codes[own], new.n_bits), n_bits + new.n_bits
            if kept is not None and after.scale is not None and new.margins is not None:
                scale = MarginScale(_unordered(after.scale.factor, order, n_bits)[before.n_bits :])
                kept = np.hstack([kept, scale.quantise(new.margins[own])])
        chosen = list(order)
        margins = None if kept is None else np.ascontiguousarray(kept[:, chosen])
        yield Segment.build(packed.take_bits(codes, n_bits, chosen), after.n_bits, ids, margins)


def _unordered(factor: NDArray[np.float32], order: Sequence[int], n_bits: int) -> NDArray[np.float32]:
    """Return the factors by the numbers that ``order`` gives, 1 where it leaves one out."""
    out = np.ones(n_bits, np.float32)
    out[list(order)] = factor
    return out


def settings_after(before: Settings, order: Sequence[int], new: NewBits | None, model: Any) -> Settings:
    """Return what an index is after its bits were changed; refuse a model that does not have these bits."""
    scale = before.scale
    if scale is not None:
        if new is not None and new.margins is None:
            raise ValueError("margins must come with new bits of this index, which keeps margins, got none")
        spans = [scale.factor] if new is None or new.margins is None else [scale.factor, _span(new.margins)]
        scale = MarginScale(np.concatenate(spans)[list(order)])
    elif new is not None and new.margins is not None:
        raise ValueError("margins must be given to the index at its start, got some with new bits")
    known = _bits_after(before, order, model)
    return Settings(len(order), before.kind, scale, _model_after(before, len(order), model), known)


def _span(margins: NDArray[np.float32]) -> NDArray[np.float32]:
    return MarginScale.of(margins).factor


def _model_after(before: Settings, n_bits: int, model: Any) -> str | None:
    if model is None and before.model is not None:
        raise ValueError(
            f"model must be given, the one whose codes the index holds from now on, since it is bound to another "
            f"({before.model[:16]}...), got None"
        )
    if hasattr(model, "functions_") and len(model.functions_) != n_bits:
        raise ValueError(f"model must have the {n_bits} bits that the index gets, got {len(model.functions_)}")
    return fingerprint_of(model)


def _bits_after(before: Settings, order: Sequence[int], model: Any) -> tuple[str, ...] | None:
    """Return the fingerprints of bits; those that stay must be the ones that the model has at their places."""
    bits = bits_of(model)
    if before.bits is None or bits is None or len(bits) != len(order):
        return bits
    stay = [(bits[place], before.bits[old]) for place, old in enumerate(order) if old < before.n_bits]
    other = sum(own != there for own, there in stay)
    if other:
        raise ValueError(f"model must have the bits that stay at their places, got {other} of {len(stay)} others")
    return bits


def refuse_codes_of_another(model: Any, first: int, codes: Any) -> None:
    """Refuse new bits that say they are of another model than the one whose bits they are to be."""
    said = getattr(codes, "model", None)
    if said is not None and hasattr(model, "functions_") and len(model.functions_) > first:
        refuse_another(model[first:].fingerprint(), said, "codes")


def refuse_other_vectors(index: Any, model: Any, kept: list[int], places: list[int], X: Any, ids: NDArray[Any]) -> None:
    """Refuse vectors whose bits are not those that the index holds; some are encoded again to see."""
    rows = some_rows(len(ids))
    there = packed.take_bits(index.codes(ids[rows]), index.n_bits, places)
    flipped = flipped_bits(model[kept], X, rows, there)
    if flipped > MOST_FLIPPED:
        raise ValueError(
            f"X must be the vectors of the items, in the order of ids, got others: {flipped:.0%} of the bits that stay "
            f"differ in {len(rows)} of them"
        )
