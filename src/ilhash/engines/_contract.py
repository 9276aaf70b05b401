"""What every engine does: codes in, exact answers out.

The public methods of :class:`Engine` check what they are given, and are the same for all; an engine writes the hooks
(``_hooks.py``), which get arrays that are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import check_choice, check_count, some_bits
from ilhash._fingerprints import fingerprint_of, refuse_another
from ilhash._ids import as_ids, refuse_repeated
from ilhash.engines import _order as order_of
from ilhash.engines._bits import Appended, Selected
from ilhash.engines._hooks import Hooks
from ilhash.engines._settings import BLOCK, MOST_BITS, Codes, Ids, Settings
from ilhash.search import Hits, RangeHits


class Engine(Hooks):
    """Items with codes in an engine; open one with :func:`ilhash.engines.open`.

    Attributes
    ----------
    settings : Settings, bits, kind of ids, model, columns
    mode : str, "exact" or the name of an approximate mode of this engine
    """

    # -------------------------------------------------------------------------------------------- what is in it

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

        Yields
        ------
        ids and codes : array (m,) and uint8 array (m, ceil(n_bits / 8))
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

    def next_ids(self, n: int) -> Ids:
        """Return the ids that so many items without ids would get from :meth:`add`, if nobody else adds any.

        Parameters
        ----------
        n : int, how many

        Returns
        -------
        array (n,)
        """
        return self._automatic_ids(check_count("n", n, 0))

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

    def append_bits(self, codes: Any, n_bits: int, ids: Any = None, model: Any = None) -> None:
        """Append bits to the code of every item; what else an item has stays, approximate indexes are built anew.

        Other clients that have the place open are told to open it again.

        Parameters
        ----------
        codes : uint8 array (n, ceil(n_bits / 8)), packed codes of the new bits alone, one per item
        n_bits : int, how many bits are new
        ids : array_like (n,), optional, whose they are, all items in any order; by default all items, ids ascending
        model : fitted model or its fingerprint, optional, what makes all bits from now on; must be given where the
            place knows its model
        """
        check_count("n_bits", n_bits, 1, MOST_BITS - self.n_bits)
        new = packed.check(codes, n_bits)
        names = None if ids is None else as_ids(ids, len(new), self.settings.ids)
        if names is not None:
            refuse_repeated(names)
        settings = self._with_bits(self.n_bits + n_bits, model)
        self._recode(Appended(settings, self.n_bits, model, new, names))

    def select_bits(self, bits: Any, model: Any = None) -> None:
        """Keep some bits of the code of every item, in this order; the rest as in :meth:`append_bits`.

        Parameters
        ----------
        bits : slice or array_like of int, which bits, as ``model[bits]`` means them
        model : fitted model or its fingerprint, optional, as in :meth:`append_bits`
        """
        chosen = some_bits(bits, self.n_bits)
        self._recode(Selected(self._with_bits(len(chosen), model), self.n_bits, model, chosen))

    def _with_bits(self, n_bits: int, model: Any) -> Settings:
        """Return the settings with other bits, of a model that has as many."""
        if self.model is not None and model is None:
            raise ValueError("model must be given to a place that knows its model, whose bits are others now, got None")
        if hasattr(model, "functions_") and len(model.functions_) != n_bits:
            raise ValueError(f"model must have the {n_bits} bits of the new codes, got {len(model.functions_)}")
        return replace(self.settings, n_bits=n_bits, model=fingerprint_of(model))

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
