"""Answers to searches, many at once: one encoding and one scan for all that ask for the same."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash.search import HammingIndex, Hits
from ilhash.serve._codes import signs
from ilhash.serve._state import Other, State
from ilhash.vectors import nearest_rows

ORDERS = ("hamming", "asymmetric", "margins", "vectors")
CURRENT = "current"


@dataclass(frozen=True)
class Asked:
    """A search: of vectors, codes or ids, one of which is given.

    Attributes
    ----------
    vectors : float32 array (n, D) or None
    codes : list of str or None, hexadecimal
    ids : list or None
    k : int
    order : str, one of ORDERS
    n_bits : int or None, how many bits at the beginning of the code count
    model : str, "current" or another
    without_self : bool, whether an item that is asked for is no answer
    radius : float or None, the distance up to which items are answers
    """

    vectors: NDArray[np.float32] | None = None
    codes: list[str] | None = None
    ids: list[Any] | None = None
    k: int = 10
    order: str = "hamming"
    n_bits: int | None = None
    model: str = CURRENT
    without_self: bool = True
    radius: float | None = None

    def __len__(self) -> int:
        given = self.vectors if self.vectors is not None else self.codes if self.codes is not None else self.ids
        return 0 if given is None else len(given)

    @property
    def _more(self) -> int:
        """How many answers are wanted beyond k."""
        return int(self.ids is not None and self.without_self)

    @property
    def likeness(self) -> tuple[Any, ...]:
        """What searches must have in common to be answered together."""
        return self.k + self._more, self.order, self.n_bits, self.model


@dataclass(frozen=True)
class Answer:
    """What came of a search.

    Attributes
    ----------
    ids, distances : lists, one per query
    exact : bool
    order : str
    n_bits : int or None, how many bits counted
    model : str
    """

    ids: list[list[Any]]
    distances: list[list[float]]
    exact: bool
    order: str
    n_bits: int | None
    model: str


class NotThereError(ValueError):
    """Something that was named is not there."""


def answer(state: State, others: Mapping[str, Other], asked: Sequence[Asked]) -> list[Answer | Exception]:
    """Answer searches; what is wrong with one is its own affair."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, one in enumerate(asked):
        groups.setdefault(one.likeness, []).append(place)
    out: list[Answer | Exception] = [ValueError("a search must be answered, got none")] * len(asked)
    for places in groups.values():
        for place, found in zip(places, _of_a_kind(state, others, [asked[place] for place in places]), strict=True):
            out[place] = found
    return out


def _of_a_kind(state: State, others: Mapping[str, Other], asked: list[Asked]) -> Sequence[Answer | Exception]:
    try:
        return _Search(state, others, asked[0]).of(asked)
    except Exception as error:
        if len(asked) == 1:
            return [error]
    return [_of_a_kind(state, others, [one])[0] for one in asked]  # one of them is wrong: each by itself


class _Search:
    """Searches of one order, number of bits and model."""

    def __init__(self, state: State, others: Mapping[str, Other], like: Asked) -> None:
        self._state, self._like, self._k = state, like, like.likeness[0]
        self._other = others.get(like.model)
        self._model = state.model if self._other is None else self._other.model
        most = len(self._model.functions_)
        if self._other is None and like.model not in (CURRENT, state.name):
            if like.model not in state.before:
                known = ", ".join([CURRENT, *state.before, *others])
                raise NotThereError(f"model must be one of {known}, got {like.model!r}")
            most = state.before[like.model]
        self._all = len(self._model.functions_)
        wanted = like.n_bits or most
        if wanted > most:
            raise ValueError(f"n_bits must be at most the {most} of the model, got {wanted}")
        self._n_bits = wanted
        self._check_order(like.order)

    def _check_order(self, order: str) -> None:
        orders = self._state.orders if self._other is None else ("hamming", "asymmetric", "vectors")
        if order not in orders:
            raise ValueError(f"order must be one of {', '.join(orders)} here, got {order!r}")
        if order == "margins" and self._n_bits < self._all:
            raise ValueError(f"n_bits must be left out with order margins, got {self._n_bits} of {self._all}")

    def of(self, asked: list[Asked]) -> list[Answer]:
        hits = self._hits(asked)
        ids, distances = hits.ids.tolist(), hits.distances.tolist()
        out, first = [], 0
        for one in asked:
            last = first + len(one)
            rows = list(zip(ids[first:last], distances[first:last], strict=True))
            if one.ids is not None and one.without_self:
                rows = [_without(own, *row) for own, row in zip(one.ids, rows, strict=True)]
            n_bits = None if one.order == "vectors" else self._n_bits
            counts = [_within(one.radius, row[1], one.k) for row in rows]
            each = [[row[part][:n] for row, n in zip(rows, counts, strict=True)] for part in (0, 1)]
            out.append(Answer(each[0], each[1], hits.exact, one.order, n_bits, one.model))
            first = last
        return out

    def _hits(self, asked: list[Asked]) -> Hits:
        order, view = self._like.order, self._state.view
        if order == "vectors":
            return self._by_vectors(self._vectors(asked))
        if order == "hamming":
            codes = self._codes(asked)
            if self._n_bits == self._all:
                return view.nearest(codes, self._k) if self._other is None else self._index().search(codes, self._k)
            hits = self._weighed(signs(codes, self._all, self._n_bits))
            return Hits(hits.distances.astype(np.int32), hits.ids, hits.exact)
        margins = self._model.decision_function(self._vectors(asked))
        if order == "margins":
            return view.by_margins(margins, self._k)
        margins[:, self._n_bits :] = 0.0
        if self._other is None and self._n_bits == self._all:
            return view.asymmetric(margins, self._k)
        return self._weighed(margins)

    def _weighed(self, margins: NDArray[np.float32]) -> Hits:
        if self._other is None:
            return self._state.view.weighed(margins, self._k)
        return self._index().search_asymmetric(margins, self._k)

    def _index(self) -> HammingIndex:
        assert self._other is not None
        return self._other.index(self._state)

    def _codes(self, asked: list[Asked]) -> NDArray[np.uint8]:
        given = [one.vectors for one in asked if one.vectors is not None]
        encoded = self._model.transform(np.concatenate(given)) if given else None
        parts, first = [], 0
        for one in asked:
            if one.vectors is not None and encoded is not None:
                parts.append(encoded[first : first + len(one)])
                first += len(one)
            elif one.codes is not None:
                parts.append(packed.from_hex(one.codes, self._all))
            else:
                self._check_there(one)
                own = self._state.view if self._other is None else self._index()
                parts.append(own.codes(one.ids))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _vectors(self, asked: list[Asked]) -> NDArray[np.float32]:
        parts = []
        for one in asked:
            if one.vectors is not None:
                parts.append(one.vectors)
            elif one.codes is not None:
                raise ValueError(f"order {one.order} must be asked with vectors or ids, got codes")
            elif not self._state.has_vectors:
                raise ValueError(f"order {one.order} must be asked with vectors here, where none are kept, got ids")
            else:
                self._check_there(one)
                parts.append(self._state.vectors_of(one.ids or []))
        return np.concatenate(parts)

    def _check_there(self, one: Asked) -> None:
        refuse_missing(self._state, one.ids or [])

    def _by_vectors(self, queries: NDArray[np.float32]) -> Hits:
        ids, base = self._state.base
        k = min(self._k, len(ids))
        if k == 0:
            return Hits(np.zeros((len(queries), 0), np.float32), np.zeros((len(queries), 0), np.int64))
        rows = nearest_rows(base, queries, k, ranked=True)
        near = np.asarray(base[rows.ravel()], np.float64).reshape(*rows.shape, -1)
        distances = np.sqrt(((near - queries[:, None, :]) ** 2).sum(axis=2))
        return Hits(distances.astype(np.float32), ids[rows])


def refuse_missing(state: State, ids: list[Any]) -> None:
    """Refuse ids that the service does not hold."""
    there = state.view.contains(ids)
    if not all(there):
        first = ids[there.index(False)]
        raise NotThereError(f"ids must be in the index, got {there.count(False)} of {len(ids)} others, first {first!r}")


def _within(radius: float | None, distances: list[float], k: int) -> int:
    """Return how many of distances in ascending order are answers."""
    return min(k, len(distances) if radius is None else bisect_right(distances, radius))


def _without(own: Any, ids: list[Any], distances: list[float]) -> tuple[list[Any], list[float]]:
    if own not in ids:
        return ids, distances
    place = ids.index(own)
    return ids[:place] + ids[place + 1 :], distances[:place] + distances[place + 1 :]
