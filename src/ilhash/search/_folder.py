"""Segments of an index as a store holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash.search._ids import StrIds
from ilhash.search._margins import MarginScale, as_margins
from ilhash.search._segment import Segment
from ilhash.search._store import StoredSegment

__all__ = ["segment_from", "settings_of"]


class _StoredArrays(Mapping[str, NDArray[Any]]):
    """Arrays of a file; each is read and checked when it is asked for."""

    def __init__(self, stored: StoredSegment) -> None:
        self._stored = stored

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._stored.array_names:
            raise KeyError(name)
        return self._stored[name]

    def __contains__(self, name: object) -> bool:
        return name in self._stored.array_names

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored.array_names)

    def __len__(self) -> int:
        return len(self._stored.array_names)


def segment_from(stored: StoredSegment, n_bits: int, kind: str, before: Mapping[str, Segment]) -> Segment:
    """Return a segment of the store; ``before`` are those at hand, whose arrays were read already."""
    n_rows = stored.n_rows - 1 if kind == StrIds.kind else stored.n_rows  # ends of texts: one more than there are
    segment = before.get(stored.name)
    if segment is None:
        segment = Segment(n_bits, n_rows, _StoredArrays(stored), kind, stored.name)
    removed = stored.removed
    return segment.without(removed) if len(removed) > len(segment.removed) else segment


def settings_of(n_bits: int, ids: str, margins: Any) -> dict[str, Any]:
    """Return what a store of a new index keeps beside the segments."""
    packed.bytes_per_code(n_bits)
    if ids not in ("int", "str"):
        raise ValueError(f"ids must be 'int' or 'str', the kind of ids of a new index, got {ids!r}")
    settings: dict[str, Any] = {"n_bits": int(n_bits), "ids": ids}
    if margins is not None:
        settings["margin_scale"] = MarginScale.of(as_margins(margins, n_bits, None)).to_list()
    return settings
