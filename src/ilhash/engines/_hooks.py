"""What one file per engine must bring, and the tools for it: hooks get arrays that are right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._fingerprints import refuse_another
from ilhash._ids import LARGEST, as_ids
from ilhash.engines._bits import BitChange
from ilhash.engines._settings import (
    BLOCK,
    Codes,
    Columns,
    EngineError,
    Filter,
    Ids,
    Settings,
    as_column,
    as_parameters,
    check_mapping,
)
from ilhash.search import Hits, RangeHits


class Hooks(ABC):
    """The inner side of :class:`ilhash.engines.Engine`."""

    name: ClassVar[str]
    modes: ClassVar[tuple[str, ...]] = ("exact",)  # the first is the default
    has_columns: ClassVar[bool] = False  # whether items can have columns, and conditions on them
    several_writers: ClassVar[bool] = False  # whether two clients can have it open and change it
    rows_at_once: ClassVar[int] = BLOCK  # items that `ilhash push` adds in one step
    promise: ClassVar[str]  # what is left when a process is killed while it changes something

    settings: Settings
    mode: str

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.settings.n_bits

    @property
    def model(self) -> str | None:
        """Fingerprint of the model that made the codes, None where it is not known."""
        return self.settings.model

    # -------------------------------------------------------------------------------------------- hooks

    @classmethod
    @abstractmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> Any:
        """Open what is at a URL; where nothing is, make it with the new settings, after :meth:`self_check`.

        Where settings are new and something is there, what is there counts; :func:`ilhash.engines.open` compares them.

        Parameters
        ----------
        url, table, mode, writable : as in :func:`ilhash.engines.open`
        new : Settings, optional, with which a place may be made

        Returns
        -------
        Engine
        """

    @abstractmethod
    def count(self) -> int:
        """Return the number of items.

        Returns
        -------
        int
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the engine; twice is as good as once."""

    @abstractmethod
    def _version(self) -> str:
        """Name the engine's version."""

    @abstractmethod
    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        """Add items, at least one; refuse ids that are there with :func:`taken`."""

    @abstractmethod
    def _update(self, codes: Codes, ids: Ids) -> None:
        """Change codes; refuse ids that are not there with :func:`absent`."""

    @abstractmethod
    def _remove(self, ids: Ids) -> None:
        """Remove items; refuse ids that are not there with :func:`absent`."""

    @abstractmethod
    def _recode(self, change: BitChange) -> None:
        """Give every item the code that a change of bits makes of its own, and the place the settings of the change.

        Blocks of items go through ``change.recoded`` in the order of ids; ``change.finish`` comes before anything that
        cannot be taken back.
        """

    @abstractmethod
    def _codes(self, ids: Ids) -> tuple[Ids, Codes]:
        """Return which of these distinct ids are there, in any order, and their codes."""

    @abstractmethod
    def _blocks(self, size: int) -> Iterator[tuple[Ids, Codes]]:
        """Yield all items in the order of their ids."""

    @abstractmethod
    def _largest_id(self) -> int:
        """Return the largest id, -1 where there is no item."""

    @abstractmethod
    def _nearest(self, queries: Codes, k: int, wanted: Filter) -> Hits:
        """Return the nearest of at least one query; k is at most the number of items, wanted or not."""

    @abstractmethod
    def _within(self, queries: Codes, radius: int, wanted: Filter) -> RangeHits:
        """Return all items within a radius."""

    @abstractmethod
    def _measured(self, codes: Codes, query: Codes) -> tuple[Codes, Sequence[int]]:
        """Let the engine itself take codes, give them back, and measure their distances to a query; nothing is kept."""

    # -------------------------------------------------------------------------------------------- tools of the hooks

    def _at_most(self, k: int) -> int:
        """Return how many answers there can be; an engine to which counting is work, and k is only a limit, says k."""
        return min(k, self.count())

    @property
    def _id_type(self) -> Any:
        return np.int64 if self.settings.ids == "int" else object

    def _as_ids(self, values: Sequence[Any]) -> Ids:
        """Return ids that an engine gave, in the type that users get."""
        out: Ids = np.empty(len(values), self._id_type)
        out[:] = values
        return out

    def _hits(self, found: Sequence[tuple[Ids, NDArray[Any]]], k: int, *, exact: bool) -> Hits:
        """Put the answers of queries (ids, distances, in their order) under each other.

        Where an approximate search found fewer for some query, all are cut to as many, and nothing is padded.
        """
        width = min([k, *(len(ids) for ids, _ in found)])
        ids = np.empty((len(found), width), self._id_type)
        distances = np.empty((len(found), width), np.int32)
        for row, (names, far) in enumerate(found):
            ids[row], distances[row] = names[:width], far[:width]
        return Hits(distances, ids, exact=exact)

    def _range_hits(self, found: Sequence[tuple[Ids, NDArray[Any]]]) -> RangeHits:
        """Put the answers of queries one behind the other."""
        offsets = np.cumsum([0, *(len(ids) for ids, _ in found)], dtype=np.int64)
        ids = np.concatenate([ids for ids, _ in found]) if found else np.zeros(0, self._id_type)
        distances = np.concatenate([far for _, far in found]) if found else np.zeros(0, np.int32)
        return RangeHits(offsets, ids, distances.astype(np.int32))

    def self_check(self) -> None:
        """Refuse an engine that orders bits in another way or measures something else; part of making a place."""
        rng = np.random.default_rng(0)
        bits = np.zeros((5, self.n_bits), np.bool_)
        bits[1, 0] = bits[2, -1] = True  # the two ends of a code, where a wrong order of bits or padding shows
        bits[3], bits[4] = True, rng.random(self.n_bits) < 0.3
        known = packed.pack(bits)
        read, distances = self._measured(known, known[4:])
        expected = (bits != bits[4]).sum(axis=1).tolist()
        if not np.array_equal(read, known) or list(map(int, distances)) != expected:
            raise EngineError(
                f"{self.name} must give back the codes of its self-check and their distances {expected}, got "
                f"{list(map(int, distances))}{'' if np.array_equal(read, known) else ' and other codes'}"
            )

    # -------------------------------------------------------------------------------------------- input

    def _checked(self, codes: Any) -> Codes:
        refuse_another(self.model, getattr(codes, "model", None), "codes")
        return np.ascontiguousarray(packed.check(codes, self.n_bits))

    def _names(self, ids: Any) -> Ids:
        given = ids if isinstance(ids, list | tuple) or np.ndim(ids) >= 1 else [ids]
        return as_ids(given, len(given), self.settings.ids)

    def _automatic_ids(self, n: int) -> Ids:
        if self.settings.ids == "str":
            raise ValueError("ids must be given to an engine whose ids are texts, got none")
        first = self._largest_id() + 1
        if first + n > LARGEST + 1:
            raise ValueError(f"ids must be given where automatic ones would pass {LARGEST}, got none for {n} items")
        return np.arange(max(first, 0), max(first, 0) + n, dtype=np.int64)

    def _columns(self, columns: Mapping[str, Any] | None, n: int) -> dict[str, NDArray[Any]]:
        check_mapping("columns", columns)
        given, wanted = dict(columns or {}), self.settings.columns
        if given.keys() != wanted.keys():
            raise ValueError(f"columns must be {sorted(wanted) or 'none'}, as the engine was made, got {sorted(given)}")
        out = {name: as_column(name, given[name], kind) for name, kind in wanted.items()}
        wrong = [name for name, values in out.items() if values.shape != (n,)]
        if wrong:
            raise ValueError(f"columns must have one value per item, got shape {out[wrong[0]].shape} of {wrong[0]!r}")
        return out

    def _filter(self, allowed: Any, where: Any, parameters: Any) -> Filter:
        if where is not None and not self.has_columns:
            raise ValueError(f"where must be left out with {self.name}, which has no columns, got {where!r}")
        if where is not None and not (isinstance(where, str) and where.strip()):
            raise ValueError(f"where must be a condition such as 'price < :most', got {where!r}")
        ids = None if allowed is None else np.unique(self._names(allowed))
        return Filter(ids, where, as_parameters(parameters))
