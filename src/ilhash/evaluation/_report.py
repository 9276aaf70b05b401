"""Everything about one retrieval in one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ilhash import codes
from ilhash._checks import check_choice
from ilhash.cards import Measured
from ilhash.evaluation._codes_statistics import CodeStatistics, code_statistics
from ilhash.evaluation._histograms import distance_histograms
from ilhash.evaluation._labels import known_only
from ilhash.evaluation._measures import TIES, Histograms, Ties, check_empty, check_ties, mean_defined
from ilhash.evaluation._relevance import Relevance, relevance_from_labels

# What the base is to the model, in words.
BASES: dict[str | None, str] = {
    "all": "all items but the queries, those of training among them",
    "seen": "items that training may have seen, whose codes may carry their labels",
    "new": "items that training did not see",
    None: "not stated whether training saw its items",
}


@dataclass(frozen=True)
class WithinRadius:
    """Means over queries of what is within a Hamming radius.

    Attributes
    ----------
    radius : int, the largest distance that is still a result
    precision : float, mean over queries, an empty result counted as ``empty`` says (NaN if all were skipped)
    recall : float, mean over the queries that have a relevant item (NaN if none has)
    empty_share : float, share of the queries whose result is empty
    empty : {0, "skip"}, what an empty result counted
    """

    radius: int
    precision: float
    recall: float
    empty_share: float
    empty: int | str

    @classmethod
    def of(cls, found: Histograms, radius: int, empty: int | str) -> WithinRadius:
        """Measure one radius.

        Parameters
        ----------
        found, radius, empty : Histograms of the queries, int and {0, "skip"}, as in :func:`within_radius`

        Returns
        -------
        WithinRadius, means over the queries
        """
        if np.ndim(radius):
            raise ValueError(f"radius must be one number here, got {radius!r}")
        precision = float(mean_defined(found.precision_within(radius, empty)))
        recall = float(mean_defined(found.recall_within(radius)))
        return cls(radius, precision, recall, float(found.empty_within(radius).mean()), empty)


@dataclass(frozen=True)
class Scores:
    """Means over queries under one rule for ties; recall and mAP over the queries that have a relevant item.

    Attributes
    ----------
    precision, recall, map_at : dict of int to float, value by k
    map : float, mean average precision of the whole ranking
    """

    precision: dict[int, float]
    recall: dict[int, float]
    map_at: dict[int, float]
    map: float

    @classmethod
    def of(cls, found: Histograms, ks: Sequence[int], ties: Ties) -> Scores:
        """Measure at every k.

        Parameters
        ----------
        found, ks, ties : Histograms of the queries, sequence of int and str, as in :func:`precision_at_k`

        Returns
        -------
        Scores, means over the queries
        """
        precision = dict(zip(ks, mean_defined(found.precision_at_k(ks, ties)).tolist(), strict=True))
        recall = dict(zip(ks, mean_defined(found.recall_at_k(ks, ties)).tolist(), strict=True))
        map_at = {k: float(mean_defined(found.average_precision(k, ties))) for k in ks}
        return cls(precision, recall, map_at, float(mean_defined(found.average_precision(None, ties))))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What :func:`evaluate` found; ``print`` it, or take ``to_dict()`` for JSON.

    Attributes
    ----------
    n_base, n_queries, n_bits : int, sizes
    n_without_relevant : int, queries without any relevant base item: out of recall and mAP, precision 0
    expected, pessimistic, optimistic : Scores, under each rule for ties
    ties : str, the rule whose scores ``precision``, ``recall``, ``map`` and ``map_at`` are
    within, codes : WithinRadius, means within a radius, and CodeStatistics, of the base
    histograms : Histograms, what all of this was computed from; not in ``to_dict()``
    protocol_hash : str, which protocol this was measured under, if one was stated
    base : {"all", "seen", "new"}, whether items that training saw were searched, others, or both, if that was stated
    """

    n_base: int
    n_queries: int
    n_bits: int
    n_without_relevant: int
    expected: Scores
    pessimistic: Scores
    optimistic: Scores
    ties: Ties
    within: WithinRadius
    codes: CodeStatistics
    histograms: Histograms
    protocol_hash: str | None = None
    base: str | None = None

    @classmethod
    def of(
        cls,
        found: Histograms,
        codes: CodeStatistics,
        *,
        ks: int | Sequence[int],
        radius: int,
        ties: Ties,
        empty: int | str,
        protocol_hash: str | None,
        base: str | None = None,
    ) -> Evaluation:
        """Compute every measure from the histograms of distances.

        Parameters
        ----------
        found, codes : Histograms of the queries and CodeStatistics of the base
        ks, radius, ties, empty, protocol_hash, base : as in :func:`evaluate`

        Returns
        -------
        Evaluation
        """
        chosen = np.atleast_1d(np.asarray(ks)).tolist()
        return cls(
            n_base=found.n_base,
            n_queries=found.n_queries,
            n_bits=found.n_bits,
            n_without_relevant=int(np.count_nonzero(found.n_relevant == 0)),
            **{rule: Scores.of(found, chosen, rule) for rule in TIES},
            ties=ties,
            within=WithinRadius.of(found, radius, empty),
            codes=codes,
            histograms=found,
            protocol_hash=protocol_hash,
            base=base,
        )

    def results(self) -> list[Measured]:
        """Return precision at every k and mAP, as a model remembers them.

        Returns
        -------
        list of Measured
        """
        among = BASES[self.base] if self.base in BASES else str(self.base)
        how = self.protocol_hash or f"{self.n_queries:,} queries, {self.n_base:,} items, {self.ties} ties"
        found = {**{f"precision@{k}": value for k, value in self.precision.items()}, "mAP": self.scores.map}
        return [Measured(among, name, value, protocol=how) for name, value in found.items() if np.isfinite(value)]

    @property
    def scores(self) -> Scores:
        """Scores under the rule ``ties``."""
        return {"expected": self.expected, "pessimistic": self.pessimistic, "optimistic": self.optimistic}[self.ties]

    @property
    def precision(self) -> dict[int, float]:
        """Precision by k."""
        return self.scores.precision

    @property
    def recall(self) -> dict[int, float]:
        """Recall by k."""
        return self.scores.recall

    @property
    def map(self) -> float:
        """Mean average precision of the whole ranking."""
        return self.scores.map

    @property
    def map_at(self) -> dict[int, float]:
        """Mean average precision by k."""
        return self.scores.map_at

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and dictionaries, for JSON; what is undefined is None.

        Returns
        -------
        dict, all attributes
        """
        parts = {name: vars(getattr(self, name)) for name in (*TIES, "within")}
        plain: dict[str, Any] = _plain({**vars(self), **parts, "codes": self.codes.to_dict()})
        return {name: value for name, value in plain.items() if name != "histograms"}

    def __str__(self) -> str:
        skipped = "left out of" if self.within.empty == "skip" else "0 in"
        stated = self.protocol_hash or "not stated"
        balance, entropy = self.codes.bit_balance, self.codes.bit_entropy
        lines = [
            f"{self.n_queries:,} queries, {self.n_base:,} base items, {self.n_bits} bits; protocol {stated}",
            f"base: {BASES[self.base]}",
            f"{'':<16}{self.ties:<13}[pessimistic, optimistic]",
            *self._rows(),
            f"within radius {self.within.radius}: precision {self.within.precision:.4f}, recall "
            f"{self.within.recall:.4f}, empty {self.within.empty_share:.1%} ({skipped} precision)",
            f"queries without a relevant item: {self.n_without_relevant:,} (left out of recall and mAP)",
            f"codes: {self.codes.n_distinct:,} distinct, the 10 commonest cover {self.codes.top10_share:.1%}, "
            f"entropy {self.codes.code_entropy:.2f} bits",
            f"bits: share of ones {balance.min():.3f} to {balance.max():.3f}, mean entropy {entropy.mean():.3f}",
        ]
        return "\n".join(lines)

    def _rows(self) -> list[str]:
        def row(name: str, values: list[float]) -> str:
            return f"{name:<16}{values[0]:<13.4f}[{values[1]:.4f}, {values[2]:.4f}]"

        shown = (self.scores, self.pessimistic, self.optimistic)
        rows = []
        for name, field in (("precision", "precision"), ("recall", "recall"), ("mAP", "map_at")):
            rows += [row(f"{name}@{k}", [getattr(s, field)[k] for s in shown]) for k in self.precision]
        return [*rows, row("mAP", [s.map for s in shown])]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    return None if isinstance(value, float) and np.isnan(value) else value


def evaluate(
    base_codes: Any,
    base_labels: Any,
    query_codes: Any,
    query_labels: Any,
    *,
    ks: int | Sequence[int] = (10, 100),
    radius: int = 2,
    n_bits: int | None = None,
    n_threads: int = 1,
    ties: Ties = "expected",
    empty: int | str = 0,
    relevance: Relevance | None = None,
    protocol_hash: str | None = None,
    base: str | None = None,
) -> Evaluation:
    """Measure a retrieval in every way at once; the distances are computed once.

    Parameters
    ----------
    base_codes, query_codes : uint8 array (n, ceil(n_bits / 8)) and (n_queries, ceil(n_bits / 8)), packed codes
    base_labels, query_labels : array_like, as in :func:`precision_at_k`; None with ``relevance``
    ks : int or sequence of int, default (10, 100), numbers of neighbours for precision, recall and mAP at k
    radius : int, default 2, of the Hamming ball
    n_bits : int, optional, bits of a code; None: all bits of every byte
    n_threads : int, default 1, threads that share the queries
    ties : {"expected", "optimistic", "pessimistic"}, default "expected", the rule of the headline; others beside it
    empty : {0, "skip"}, default 0, what an empty ball counts for precision: 0, or "skip" to leave it out
    relevance : Relevance, optional, instead of labels, such as :func:`by_neighbors`
    protocol_hash : str, optional, the hash of the protocol that chose all this; :meth:`Protocol.evaluate` fills it in
    base : {"all", "seen", "new"}, optional, what the base is to the model, which codes do not tell: items of which some
        were trained on, only such as may have been, or only such as were not; filled in likewise, and printed

    Returns
    -------
    Evaluation, all measures

    Examples
    --------
    >>> base, queries = np.array([[0], [1], [1]], np.uint8), np.array([[0]], np.uint8)
    >>> result = evaluate(base, [7, 7, 8], queries, [7], ks=2, n_bits=8)
    >>> result.precision[2], result.pessimistic.precision[2], result.optimistic.precision[2]
    (0.75, 0.5, 1.0)
    """
    check_ties(ties)
    check_empty(empty)
    if base is not None:
        check_choice("base", base, [name for name in BASES if name])
    if relevance is None:
        base_codes, base_labels = known_only(base_codes, base_labels, "base_labels")
        query_codes, query_labels = known_only(query_codes, query_labels, "query_labels")
        relevance = relevance_from_labels(base_labels, query_labels)
    elif base_labels is not None or query_labels is not None:
        raise ValueError("base_labels and query_labels must be None where relevance is given, got both")
    packed = codes.check(base_codes, n_bits, "base_codes")
    if len(packed) == 0:
        raise ValueError("base_codes must have rows to be searched, got none")
    found = distance_histograms(packed, query_codes, relevance, n_bits=n_bits, n_threads=n_threads)
    stated = {"protocol_hash": protocol_hash, "base": base}
    return Evaluation.of(found, code_statistics(packed, n_bits), ks=ks, radius=radius, ties=ties, empty=empty, **stated)
