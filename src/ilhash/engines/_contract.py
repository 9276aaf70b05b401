"""What every engine does, and what one file per engine must bring: codes in, exact answers out.

The public methods of :class:`Engine` check what they are given, and are the same for all; an engine writes the hooks
below them, which get arrays that are right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import check_choice, check_count
from ilhash._fingerprints import fingerprint_of, refuse_another
from ilhash._ids import LARGEST, as_ids, refuse_repeated
from ilhash.engines import _order as order_of
from ilhash.search import Hits, RangeHits

Codes = NDArray[np.uint8]
Ids = NDArray[Any]
Columns = Mapping[str, NDArray[Any]]  # of the user, by name; one value per item
COLUMN_KINDS = ("int", "float", "text", "bool")
BLOCK = 1 << 16  # items that are read or written at once


class EngineError(OSError):
    """An engine cannot be reached, or will not do what it is asked: one sentence that says why."""


@dataclass(frozen=True)
class Settings:
    """What an engine keeps beside the items, and what must be given to make a place for them.

    Attributes
    ----------
    n_bits : int, bits of a code
    ids : {"int", "str"}, the kind of ids
    model : str, optional, fingerprint of the model that made the codes
    columns : mapping, further columns of an item: name to "int", "float", "text" or "bool"
    """

    n_bits: int
    ids: str = "int"
    model: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count("n_bits", self.n_bits, 1, 65_535)
        check_choice("ids", self.ids, ("int", "str"))
        _check_mapping("columns", self.columns)
        for kind in self.columns.values():
            check_choice("columns", kind, COLUMN_KINDS)


@dataclass(frozen=True)
class Filter:
    """Which items may be answers: ids, or a condition on columns with named parameters, ``price < :most``."""

    allowed: Ids | None = None
    where: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.allowed is not None or self.where is not None


class Engine(ABC):
    """Items with codes in an engine; open one with :func:`ilhash.engines.open`.

    Attributes
    ----------
    settings : Settings, bits, kind of ids, model, columns
    mode : str, "exact" or the name of an approximate mode of this engine
    """

    name: ClassVar[str]
    modes: ClassVar[tuple[str, ...]] = ("exact",)  # the first is the default
    has_columns: ClassVar[bool] = False  # whether items can have columns, and conditions on them
    several_writers: ClassVar[bool] = False  # whether two clients can have it open and change it
    rows_at_once: ClassVar[int] = BLOCK  # items that `ilhash push` adds in one step
    promise: ClassVar[str]  # what is left when a process is killed while it changes something

    settings: Settings
    mode: str

    # -------------------------------------------------------------------------------------------- what is in it

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.settings.n_bits

    @property
    def model(self) -> str | None:
        """Fingerprint of the model that made the codes, None where it is not known."""
        return self.settings.model

    def __len__(self) -> int:
        return self.count()

    def describe(self) -> dict[str, Any]:
        """Say what this is.

        Returns
        -------
        dict, engine, version, mode, whether searches are exact, bits, kind of ids, items, columns, promise
        """
        return {
            "engine": self.name,
            "version": self._version(),
            "mode": self.mode,
            "exact": self.mode == "exact",
            "n_bits": self.n_bits,
            "ids": self.settings.ids,
            "model": self.model,
            "columns": dict(self.settings.columns),
            "items": self.count(),
            "promise": self.promise,
        }

    def codes(self, ids: Any) -> Codes:
        """Return the packed codes of items.

        Parameters
        ----------
        ids : array_like, ids of items that are there

        Returns
        -------
        uint8 array (n, ceil(n_bits / 8)), in the order of the ids
        """
        names = self._names(ids)
        distinct, where = np.unique(names, return_inverse=True)
        found, codes = self._codes(distinct)
        if len(found) < len(distinct):
            missing = np.setdiff1d(distinct, found)
            raise ValueError(f"ids must be in the engine, got {len(missing)} that are not, first {missing[0]!r}")
        return codes[np.argsort(found)][where]

    def contains(self, ids: Any) -> NDArray[np.bool_]:
        """Say which items are there.

        Parameters
        ----------
        ids : array_like, ids

        Returns
        -------
        bool array, one per id
        """
        names = self._names(ids)
        return np.isin(names, self._codes(np.unique(names))[0]) if len(names) else np.zeros(0, np.bool_)

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[Ids, Codes]]:
        """Yield ids and codes of all items, ids ascending, so many at a time.

        Parameters
        ----------
        size : int, default 65536, items of a block
        """
        yield from self._blocks(check_count("size", size))

    # -------------------------------------------------------------------------------------------- changes

    def add(self, codes: Any, ids: Any = None, columns: Mapping[str, Any] | None = None) -> Ids:
        """Add items, all of them or, where the engine keeps its promise, none.

        Parameters
        ----------
        codes : uint8 array (n, ceil(n_bits / 8)), packed codes; those that say they are another model's are refused
        ids : array_like (n,), optional, new ids; by default the largest that is there and one, and so on
        columns : mapping, optional, name to array_like (n,), of each column that the engine was made with

        Returns
        -------
        array (n,), the ids
        """
        new = self._checked(codes)
        names = self._automatic_ids(len(new)) if ids is None else as_ids(ids, len(new), self.settings.ids)
        refuse_repeated(names)
        given = self._columns(columns, len(new))
        if len(new):
            self._add(new, names, given)
        return names.copy()

    def update(self, codes: Any, ids: Any) -> None:
        """Give items that are there other codes.

        Parameters
        ----------
        codes, ids : uint8 array (n, ceil(n_bits / 8)) and array_like (n,), codes and whose they are
        """
        new = self._checked(codes)
        names = as_ids(ids, len(new), self.settings.ids)
        refuse_repeated(names)
        if len(new):
            self._update(new, names)

    def remove(self, ids: Any) -> None:
        """Remove items.

        Parameters
        ----------
        ids : array_like, ids of items that are there
        """
        names = self._names(ids)
        refuse_repeated(names)
        if len(names):
            self._remove(names)

    # -------------------------------------------------------------------------------------------- search

    def search(
        self,
        codes: Any,
        k: int = 10,
        *,
        allowed: Any = None,
        where: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Hits:
        """Return the k nearest items of each code (all items where there are fewer than k).

        Parameters
        ----------
        codes : uint8 array (n_queries, ceil(n_bits / 8)), the queries
        k : int, default 10, how many
        allowed : array_like, optional, ids that may be answers, whether the engine holds them or not
        where : str, optional, a condition on columns in the engine's SQL, values as ``:name``
        parameters : mapping, optional, the values of the names in ``where``

        Returns
        -------
        Hits, ids and Hamming distances in the order (distance, id); ``exact`` tells whether nothing can be missing
        """
        queries, k = self._checked(codes), check_count("k", k)
        wanted = self._filter(allowed, where, parameters)
        k = self._at_most(k)
        if k == 0 or len(queries) == 0:
            shape = (len(queries), 0 if len(queries) else k)
            return Hits(np.zeros(shape, np.int32), np.zeros(shape, self._id_type), exact=self.mode == "exact")
        return self._nearest(queries, k, wanted)

    def within(
        self,
        codes: Any,
        radius: int,
        *,
        allowed: Any = None,
        where: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> RangeHits:
        """Return all items whose distance is at most ``radius``, exactly, in any mode.

        Parameters
        ----------
        codes, allowed, where, parameters : as in :meth:`search`
        radius : int, the largest distance that is still an answer

        Returns
        -------
        RangeHits, ids and Hamming distances, query by query
        """
        queries = self._checked(codes)
        radius = min(check_count("radius", radius, 0), self.n_bits)
        return self._within(queries, radius, self._filter(allowed, where, parameters))

    def search_asymmetric(self, margins: Any, k: int = 10, *, shortlist: int | None = None, **wanted: Any) -> Hits:
        """Return k of the nearest items in Hamming space, where a bit counts as much as the query was sure of it.

        Parameters
        ----------
        margins : float array (n_queries, n_bits), ``model.decision_function(queries)``
        k : int, default 10, how many
        shortlist : int, optional, how many items the engine is asked for; by default 10 k, at least 1,000
        **wanted : allowed, where and parameters, as in :meth:`search`

        Returns
        -------
        Hits, ids and weighted distances; exact where the shortlist held all items
        """
        return order_of.asymmetric(self, margins, check_count("k", k), shortlist, wanted)

    def search_margins(
        self, margins: Any, items: Any, k: int = 10, *, ids: Any = None, shortlist: int | None = None, **wanted: Any
    ) -> Hits:
        """Return k of the nearest items in Hamming space, in the order of the angle between margins.

        Parameters
        ----------
        margins : float array (n_queries, n_bits), ``model.decision_function(queries)``
        items : array (n, n_bits), margins of the items, such as a memory map; only rows of the shortlist are read
        k : int, default 10, how many
        ids : array_like (n,), optional, the id of each row of items; by default ids are row numbers
        shortlist : int, optional, as in :meth:`search_asymmetric`
        **wanted : allowed, where and parameters, as in :meth:`search`

        Returns
        -------
        Hits, ids and distances between margins scaled to length 1; not exact
        """
        return order_of.by_margins(self, margins, items, check_count("k", k), ids, shortlist, wanted)

    def search_vectors(
        self, model: Any, X: Any, k: int = 10, *, order: str = "hamming", shortlist: int | None = None, **wanted: Any
    ) -> Hits:
        """Return the k nearest items of each vector, by the codes that the engine's own model gives it.

        Parameters
        ----------
        model : the fitted model whose codes the engine holds; another one is refused
        X : array (n_queries, D), vectors
        k : int, default 10, how many
        order : {"hamming", "asymmetric"}, default "hamming"; for the order of margins or vectors that lie elsewhere
            put the hits through :func:`ilhash.search.rescore`
        shortlist : int, optional, as in :meth:`search_asymmetric`
        **wanted : allowed, where and parameters, as in :meth:`search`

        Returns
        -------
        Hits, ids and distances of that order
        """
        check_choice("order", order, ("hamming", "asymmetric"))
        self.check_model(model)
        if order == "hamming":
            return self.search(model.transform(X), k, **wanted)
        return self.search_asymmetric(model.decision_function(X), k, shortlist=shortlist, **wanted)

    def check_model(self, model: Any) -> None:
        """Refuse a model that is not the one whose codes the engine holds; where that is not known, by its bits alone.

        Parameters
        ----------
        model : a fitted model, or the fingerprint of one
        """
        if hasattr(model, "functions_") and len(model.functions_) != self.n_bits:
            raise ValueError(f"model must have the {self.n_bits} bits of the codes, got {len(model.functions_)}")
        refuse_another(self.model, fingerprint_of(model), "codes")

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -------------------------------------------------------------------------------------------- hooks

    @classmethod
    @abstractmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> Engine:
        """Open what is at a URL; where nothing is, make it with the new settings, after :meth:`self_check`.

        Where settings are new and something is there, what is there counts; :func:`ilhash.engines.open` compares them.
        """

    @abstractmethod
    def count(self) -> int:
        """Return the number of items."""

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
        _check_mapping("columns", columns)
        given, wanted = dict(columns or {}), self.settings.columns
        if given.keys() != wanted.keys():
            raise ValueError(f"columns must be {sorted(wanted) or 'none'}, as the engine was made, got {sorted(given)}")
        out = {name: _as_column(name, given[name], kind) for name, kind in wanted.items()}
        wrong = [name for name, values in out.items() if values.shape != (n,)]
        if wrong:
            raise ValueError(f"columns must have one value per item, got shape {out[wrong[0]].shape} of {wrong[0]!r}")
        return out

    def _filter(self, allowed: Any, where: Any, parameters: Any) -> Filter:
        if where is not None and not self.has_columns:
            raise ValueError(f"where must be left out with {self.name}, which has no columns, got {where!r}")
        if where is not None and not (isinstance(where, str) and where.strip()):
            raise ValueError(f"where must be a condition such as 'price < :most', got {where!r}")
        _check_mapping("parameters", parameters)
        ids = None if allowed is None else np.unique(self._names(allowed))
        return Filter(ids, where, dict(parameters or {}))


def _check_mapping(name: str, value: Any) -> None:
    if value is not None and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
        raise TypeError(f"{name} must be a mapping of names, got {type(value).__name__}")


_COLUMN_TYPES = {"int": np.int64, "float": np.float64, "text": object, "bool": np.bool_}


def _as_column(name: str, values: Any, kind: str) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.asarray(values, _COLUMN_TYPES[kind])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"columns must hold what they were made for, {kind} in {name!r}, got others: {error}"
        ) from None
    if kind == "text" and not all(value is None or isinstance(value, str) for value in array.ravel().tolist()):
        raise ValueError(f"columns must hold what they were made for, text in {name!r}, got others")
    return array


def taken(n_taken: int, n: int) -> ValueError:
    """Return the refusal of ids that are there already."""
    return ValueError(f"ids must be new, got {n_taken} of {n} that are there; see update")


def absent(n_absent: int, n: int) -> ValueError:
    """Return the refusal of ids that are not there."""
    return ValueError(f"ids must be in the engine, got {n_absent} of {n} that are not")
