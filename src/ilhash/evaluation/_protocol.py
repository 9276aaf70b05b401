"""Protocols: everything that must be fixed before numbers can be compared, with a hash to print beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence, Sized
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import as_array, check_choice, check_count
from ilhash._labels import labels_array, missing_labels
from ilhash._parameters import MOST
from ilhash.evaluation._codes_statistics import CodeTally
from ilhash.evaluation._histograms import distance_histograms
from ilhash.evaluation._labels import known_only, label_codes, one_label_each
from ilhash.evaluation._measures import Histograms, Ties, check_empty, check_ties
from ilhash.evaluation._relevance import Relevance, by_label, by_neighbors, by_shared_labels
from ilhash.evaluation._report import Evaluation, evaluate

FORMAT = 1  # of the hash: raise it when the same fields come to mean another split or measure
BASES = ("all", "seen", "new")
_RELEVANCE = ("labels", "shared labels", "neighbors")
_LATER = {"base": "all", "n_new": None}
_HASHED_AS = {"n_neighbors": "n_neighbours", "neighbors": "neighbours"}  # hashes outlive names

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers, ascending.

    Attributes
    ----------
    base, queries, train : int64 array, what is searched, what is searched for, and what may be learned from; queries
        are in neither of the others
    seen, new : int64 array, items that may be learned from, and items that are not; of equal numbers where the protocol
        searches one of them, else all of the base
    """

    base: Rows
    queries: Rows
    train: Rows
    seen: Rows
    new: Rows


@dataclass(frozen=True, eq=False)
class UnseenSplit:
    """Training on seen classes; retrieval among unseen ones, and among seen ones for comparison.

    Attributes
    ----------
    unseen, seen : Split, of held-out classes and of the others; ``train`` is a part of the base of the others
    held_out : tuple of labels, of the held-out classes
    """

    unseen: Split
    seen: Split
    held_out: tuple[Any, ...]

    @property
    def train(self) -> Rows:
        """What may be learned from."""
        return self.seen.train


@dataclass(frozen=True)
class _Rules:
    """What both protocols fix, their hash, and the measures they ask for."""

    n_queries: int
    k: int | Sequence[int]
    n_train: int | None = None
    relevance: str = "labels"
    ties: Ties = "expected"
    radius: int = 2
    empty: int | str = 0
    seed: int = 0
    n_neighbors: int | None = None

    def __post_init__(self) -> None:
        check_ties(self.ties)
        check_empty(self.empty)
        check_choice("relevance", self.relevance, _RELEVANCE)
        if (self.n_neighbors is not None) != (self.relevance == "neighbors"):
            got = f"{self.n_neighbors!r} with {self.relevance!r}"
            raise ValueError(f"n_neighbors must be given with relevance='neighbors' and only with it, got {got}")
        # Plain numbers, so that equal protocols have equal hashes whatever they were written with.
        self._set("k", tuple(check_count("k", entry, 1) for entry in np.atleast_1d(np.asarray(self.k)).tolist()))
        if not self.ks:
            raise ValueError("k must hold at least one number of neighbours, got none")
        self._set("empty", "skip" if self.empty == "skip" else 0)
        for name, least in (("n_queries", 1), ("n_train", 1), ("radius", 0), ("seed", 0), ("n_neighbors", 1)):
            if getattr(self, name) is not None or name not in ("n_train", "n_neighbors"):
                self._set(name, check_count(name, getattr(self, name), least))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # a frozen dataclass, while it is made

    @property
    def ks(self) -> tuple[int, ...]:
        """The numbers of neighbours."""
        return tuple(np.atleast_1d(np.asarray(self.k)).tolist())

    @property
    def hash(self) -> str:
        """The first 12 hexadecimal digits of the SHA-256 of all fields: equal protocols, equal hash, everywhere."""
        fields = {_HASHED_AS.get(name, name): value for name, value in asdict(self).items()}
        for name, value in _LATER.items():  # fields that came later are not in the hashes of before
            if name in fields and fields[name] == value:
                del fields[name]
        fields["relevance"] = _HASHED_AS.get(self.relevance, self.relevance)
        stated = {"format": FORMAT, "protocol": type(self).__name__, **fields}
        text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]

    def evaluate(
        self,
        base_codes: Any,
        base_truth: Any,
        query_codes: Any,
        query_truth: Any,
        *,
        n_bits: int | None = None,
        n_threads: int = 1,
    ) -> Evaluation:
        """Measure as the protocol says.

        Parameters
        ----------
        base_codes, query_codes, n_bits, n_threads : as in :func:`evaluate`
        base_truth, query_truth : array_like, labels, or vectors for relevance "neighbors"
            Codes whose label is None or NaN are left out.

        Returns
        -------
        Evaluation, all measures, with the hash of the protocol
        """
        how = {"n_bits": n_bits, "n_threads": n_threads, **self._asked}
        base_codes, base_truth = self._judged(base_codes, base_truth, "base_truth")
        query_codes, query_truth = self._judged(query_codes, query_truth, "query_truth")
        return evaluate(base_codes, None, query_codes, None, relevance=self._relevance(base_truth, query_truth), **how)

    def evaluate_blocks(
        self,
        base_blocks: Iterable[tuple[Any, Any]],
        query_codes: Any,
        query_truth: Any,
        *,
        n_bits: int | None = None,
        n_threads: int = 1,
    ) -> Evaluation:
        """Measure as ``evaluate`` does, with one block of the base at a time in memory.

        Parameters
        ----------
        base_blocks : iterable of (codes, labels)
        query_codes, query_truth, n_bits, n_threads : as in ``evaluate``

        Returns
        -------
        Evaluation, all measures, with the hash of the protocol
        """
        if self.relevance == "neighbors":
            raise ValueError("relevance must be of labels for a base in blocks, got 'neighbors', which need all of it")
        if not isinstance(base_blocks, Iterable):
            raise TypeError(f"base_blocks must be pairs of codes and labels, got {type(base_blocks).__name__}")
        found: Histograms | None = None
        tally = CodeTally(n_bits)
        query_codes, query_truth = self._judged(query_codes, query_truth, "query_truth")
        for block in base_blocks:
            if not isinstance(block, Sequence) or isinstance(block, str | bytes) or len(block) != 2:
                raise TypeError(f"base_blocks must be pairs of codes and labels, got {type(block).__name__}")
            codes, truth = self._judged(*block, "base_truth", may_be_none=True)
            relevance = self._relevance(truth, query_truth)
            part = distance_histograms(codes, query_codes, relevance, n_bits=n_bits, n_threads=n_threads)
            found = part if found is None else found + part
            tally.add(codes)
        if found is None:
            raise ValueError("base_blocks must hold codes to be searched, got none")
        return Evaluation.of(found, tally.statistics(), **self._asked)

    @property
    def _asked(self) -> dict[str, Any]:
        """The measures that the protocol asks for."""
        rules = {name: getattr(self, name) for name in ("ks", "radius", "ties", "empty")}
        return {**rules, "protocol_hash": self.hash, "base": getattr(self, "base", None)}

    def _judged(self, codes: Any, truth: Any, name: str, **how: bool) -> tuple[Any, Any]:
        """Leave out codes whose label is unknown."""
        return known_only(codes, truth, name, **how) if self.relevance == "labels" else (codes, truth)

    def _relevance(self, base_truth: Any, query_truth: Any) -> Relevance:
        if self.relevance == "labels":
            return by_label(base_truth, query_truth)
        if self.relevance == "shared labels":
            return by_shared_labels(base_truth, query_truth)
        return by_neighbors(base_truth, query_truth, self.n_neighbors or 0)

    def _permuted(self, rows: Rows, stream: int) -> Rows:
        """Rows in a seeded order: the core's permutation, which is fixed for ever, as NumPy's is not."""
        seed = int(np.random.SeedSequence([self.seed, stream]).generate_state(1, np.uint64)[0])
        return rows[_core.permuted(len(rows), seed, 0, len(rows))]

    def _cut(self, order: Rows, what: str) -> tuple[Rows, Rows]:
        """Take queries from the front and the rest as base, both still in random order."""
        wanted = self.n_queries + max(self.ks)
        if len(order) < wanted:
            raise ValueError(f"there must be at least n_queries + max(k) = {wanted} {what}, got {len(order)}")
        return order[: self.n_queries], order[self.n_queries :]

    def _train(self, base: Rows) -> Rows:
        wanted = len(base) if self.n_train is None else self.n_train
        if wanted > len(base):
            raise ValueError(f"n_train must be at most the {len(base)} points that may be learned from, got {wanted}")
        return base[:wanted]


@dataclass(frozen=True)
class Protocol(_Rules):
    """A retrieval protocol: random queries, the rest as base, training on the base or a part of it.

    Parameters
    ----------
    n_queries : int, number of queries
    k : int or sequence of int, numbers of neighbours that are looked at
    n_train : int, optional, points to learn from, a random part of the base; None: all of it
    relevance : {"labels", "shared labels", "neighbors"}, default "labels", equal ones, a shared one, or nearest vectors
    ties, radius, empty : as in :func:`evaluate`
    seed : int, default 0, of the draws
    n_neighbors : int, optional, how many are relevant under "neighbors"
    base : {"all", "seen", "new"}, default "all"
        What is searched: all points but the queries, those of training too; or, of points some of which are never
        trained on, as many that may be trained on ("seen") or as many that are not ("new"). What a bit was trained on
        carries its label in its code: items that come after training are "new".
    n_new : int, optional, points that are never trained on, for "seen" and "new"; None: half of what is no query

    Examples
    --------
    >>> protocol = Protocol(n_queries=2, k=(1, 3), seed=7)
    >>> split = protocol.split(6)
    >>> len(split.base), len(split.queries), sorted([*split.base, *split.queries]) == list(range(6))
    (4, 2, True)
    >>> len(protocol.hash)
    12
    >>> split = Protocol(n_queries=2, k=1, base="new").split(12)
    >>> len(split.train), len(split.base), np.intersect1d(split.train, split.base).tolist()
    (5, 5, [])
    """

    base: str = "all"
    n_new: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("base", self.base, BASES)
        if self.n_new is None:
            return
        if self.base == "all":
            raise ValueError(f"n_new must be None where all points are searched (base='all'), got {self.n_new!r}")
        self._set("n_new", check_count("n_new", self.n_new))

    def split(self, data: Any) -> Split:
        """Draw queries, base and training points.

        Parameters
        ----------
        data : int or sized, the number of points, or anything that has a length: labels, vectors

        Returns
        -------
        Split, rows of each
        """
        queries, others = self._cut(self._permuted(np.arange(_size(data)), 0), "points")
        if self.base == "all":
            return _split(others, queries, self._train(others))
        n_new = len(others) // 2 if self.n_new is None else self.n_new
        if n_new >= len(others):
            raise ValueError(f"n_new must leave some of the {len(others)} points to learn from, got {n_new}")
        train, new = self._train(others[: len(others) - n_new]), others[len(others) - n_new :]
        n_base = min(len(train), len(new))
        if n_base < max(self.ks):
            raise ValueError(
                f"k must be at most the {n_base} points of the seen and of the new base, got {max(self.ks)}"
            )
        seen, new = np.sort(train[:n_base]), np.sort(new[:n_base])
        return Split(seen if self.base == "seen" else new, np.sort(queries), np.sort(train), seen, new)


@dataclass(frozen=True)
class GivenQueries(_Rules):
    """A protocol whose queries and base were chosen elsewhere; :meth:`of` makes it. The seed has no meaning here.

    The hash knows them by their labels: whoever measures other codes on the same items gets the same hash.

    Parameters
    ----------
    n_queries, k, n_train, relevance, ties, radius, empty, seed, n_neighbors : as in :class:`Protocol`
    truth : str, default "", SHA-256 of the labels of the base and of the queries, in their order

    Examples
    --------
    >>> one, other = (GivenQueries.of([0, 1, 1], [query], k=2) for query in (0, 1))
    >>> one.hash == other.hash
    False
    """

    truth: str = ""

    @classmethod
    def of(cls, base_labels: Any, query_labels: Any, k: int | Sequence[int], **rules: Any) -> GivenQueries:
        """Return the protocol of these labels.

        Parameters
        ----------
        base_labels, query_labels : array_like, one label each, or a dense indicator matrix
        k : int or sequence of int, numbers of neighbours
        **rules : further parameters of :class:`Protocol`

        Returns
        -------
        GivenQueries, the protocol
        """
        sides = {"base_labels": base_labels, "query_labels": query_labels}
        plain = [_plain_truth(_labels_of(side, name), name) for name, side in sides.items()]
        truth = hashlib.sha256(json.dumps(plain, default=repr).encode("ascii")).hexdigest()
        return cls(n_queries=len(plain[1]), k=k, truth=truth, **rules)


@dataclass(frozen=True)
class UnseenClasses(_Rules):
    """A protocol that shows whether learning carries over: trained on some classes, queried and searched on others.

    ``n_queries`` are drawn among the held-out classes, and as many among the seen ones for comparison; each base is
    the rest of these classes.

    Parameters
    ----------
    n_queries, k, n_train, relevance, ties, radius, empty, seed, n_neighbors : as in :class:`Protocol`
    held_out : int or sequence of labels, default 1, a number of classes, drawn with the seed, or their labels

    Examples
    --------
    >>> labels = np.repeat(["cat", "dog", "cow"], 10)
    >>> split = UnseenClasses(n_queries=2, k=5, held_out=["cow"]).split(labels)
    >>> set(labels[split.unseen.base].tolist()), sorted(set(labels[split.train].tolist()))
    ({'cow'}, ['cat', 'dog'])
    """

    held_out: int | Sequence[Any] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.held_out, int | np.integer):
            self._set("held_out", check_count("held_out", self.held_out, 1))
        elif not isinstance(self.held_out, list | tuple | np.ndarray) or np.size(self.held_out) == 0:
            raise ValueError(f"held_out must be a number or a list of labels, got {self.held_out!r}")
        else:
            self._set("held_out", tuple(np.unique(label_codes(self.held_out, "held_out")).tolist()))

    def split(self, labels: Any) -> UnseenSplit:
        """Draw classes, queries, bases and training points.

        Parameters
        ----------
        labels : array_like, one label per point; those that are None or NaN belong to neither side

        Returns
        -------
        UnseenSplit, rows of each
        """
        array = one_label_each(labels, "labels")
        known = np.flatnonzero(~missing_labels(array))
        own = label_codes(array[known], "labels")
        held_out = self._classes(np.unique(own))
        unseen = np.isin(own, held_out)
        queries, base = self._cut(self._permuted(known[unseen], 0), "points of held-out classes")
        seen_queries, seen_base = self._cut(self._permuted(known[~unseen], 1), "points of seen classes")
        train = self._train(seen_base)
        unseen_rows, seen_rows = _split(base, queries, train), _split(seen_base, seen_queries, train)
        return UnseenSplit(unseen_rows, seen_rows, tuple(held_out.tolist()))

    def _classes(self, classes: NDArray[Any]) -> NDArray[Any]:
        if isinstance(self.held_out, int):
            if self.held_out >= len(classes):
                raise ValueError(f"held_out must leave a class to learn from, got {self.held_out} of {len(classes)}")
            return np.sort(classes[self._permuted(np.arange(len(classes)), 2)[: self.held_out]])
        chosen = np.asarray(self.held_out)
        unknown = [label for label in chosen.tolist() if label not in set(classes.tolist())]
        if unknown:
            raise ValueError(f"held_out must be labels of the data, got {len(unknown)} others such as {unknown[0]!r}")
        if len(chosen) == len(classes):
            raise ValueError(f"held_out must leave a class to learn from, got all {len(classes)}")
        return chosen


def _labels_of(labels: Any, name: str) -> NDArray[Any]:
    try:
        return labels_array(labels)
    except (TypeError, ValueError, OverflowError):
        return cast("NDArray[Any]", as_array(name, labels))  # which says what is wrong


def _plain_truth(labels: NDArray[Any], name: str) -> list[Any]:
    """Return labels for a hash; None for those that are unknown."""
    if labels.ndim == 2:
        if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
            raise ValueError(f"{name} as a matrix must be an indicator of 0 and 1, got {labels.dtype} of other values")
        found: list[Any] = labels.astype(np.int64).tolist()
        return found
    if labels.ndim != 1:
        raise ValueError(f"{name} must be one label each or an indicator matrix, got {labels.ndim}-D")
    known = ~missing_labels(labels)
    plain = iter(label_codes(labels[known], name).tolist())
    return [next(plain) if one else None for one in known.tolist()]


def _size(data: Any) -> int:
    if isinstance(data, int | np.integer):
        return check_count("data", data, 0, MOST)
    shape = data.shape if hasattr(data, "shape") else (len(data),) if isinstance(data, Sized) else ()
    if not shape:
        raise ValueError(f"data must be a number of points or have a length, got {data!r}")
    return check_count("the length of data", int(shape[0]), 0, MOST)


def _split(base: Rows, queries: Rows, train: Rows) -> Split:
    """Return a split of which all of the base is searched, be it seen or new."""
    base, train = np.sort(base), np.sort(train)
    return Split(base, np.sort(queries), train, np.intersect1d(base, train), np.setdiff1d(base, train))
