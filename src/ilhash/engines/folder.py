"""Our own durable folder under the contract of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ilhash._version import __version__
from ilhash.engines._bits import Appended, BitChange, Selected
from ilhash.engines._contract import Engine
from ilhash.engines._places import path_of
from ilhash.engines._settings import Codes, Columns, Filter, Ids, Settings
from ilhash.search import HammingIndex, Hits, RangeHits


class Folder(Engine):
    """A :class:`ilhash.HammingIndex` in a folder."""

    name = "folder"
    promise = (
        "What add, update and remove have done is on disk when they return; a change is there wholly or not at all."
    )

    def __init__(self, index: HammingIndex, settings: Settings) -> None:
        self.index, self.settings, self.mode = index, settings, "exact"

    @classmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> Folder:
        """Open the folder, or make it."""
        made: dict[str, Any] = {} if new is None else {"n_bits": new.n_bits, "ids": new.ids, "model": new.model}
        index = HammingIndex.open(path_of(url), writable=writable, **made)
        engine = cls(index, Settings(index.n_bits, index.id_kind or "int", index.model))
        try:
            engine.self_check()
        except BaseException:
            engine.close()
            raise
        return engine

    def count(self) -> int:
        """Return the number of items."""
        return len(self.index)

    def close(self) -> None:
        """Let go of the folder."""
        self.index.close()

    def _version(self) -> str:
        return __version__

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self.index.add(codes, ids)

    def _update(self, codes: Codes, ids: Ids) -> None:
        self.index.update(codes, ids)

    def _remove(self, ids: Ids) -> None:
        self.index.remove(ids)

    def _recode(self, change: BitChange) -> None:
        index: Any = self.index
        if isinstance(change, Selected):
            index.select_bits(change.bits, model=change.model)
        elif isinstance(change, Appended):
            ids = self.index.ids if change.ids is None else change.ids
            if len(change.codes) != len(self.index):
                raise ValueError(f"codes must be one per item, got {len(change.codes)} for {len(self.index)} items")
            n_new = change.settings.n_bits - change.n_before
            index.append_bits(change.codes, n_bits=n_new, ids=ids, model=change.model)
        self.settings = change.settings

    def _codes(self, ids: Ids) -> tuple[Ids, Codes]:
        there = self._as_ids([name for name in ids.tolist() if name in self.index])
        return there, self.index.codes(there)

    def _blocks(self, size: int) -> Iterator[tuple[Ids, Codes]]:
        ids = self.index.ids
        for first in range(0, len(ids), size):
            some = ids[first : first + size]
            yield some, self.index.codes(some)

    def _largest_id(self) -> int:
        return int(self.index.ids.max(initial=-1))

    def _nearest(self, queries: Codes, k: int, wanted: Filter) -> Hits:
        return self.index.search(queries, k, n_threads=-1, allowed=wanted.allowed)

    def _within(self, queries: Codes, radius: int, wanted: Filter) -> RangeHits:
        return self.index.within(queries, radius, n_threads=-1, allowed=wanted.allowed)

    def _measured(self, codes: Codes, query: Codes) -> tuple[Codes, Sequence[int]]:
        rows = np.arange(len(codes))
        scratch = HammingIndex(codes, n_bits=self.n_bits)
        hits = scratch.search(query, len(codes))
        return scratch.codes(rows), hits.distances[0][np.argsort(hits.ids[0])].tolist()
