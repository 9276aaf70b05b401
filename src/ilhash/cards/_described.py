"""What a model says of itself, and the results that it remembers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ilhash._version import __version__
from ilhash.cards._facts import Card, Curve, Measured
from ilhash.storage import Record

MOST_RESULTS = 1_000  # that a model remembers
KINDS = ("labels", "pairs", "a graph", "vectors alone")  # what a model can be learnt from
MOST_SAID = 8  # parameters other than default that a card names


class Described:
    """The part of a model that is for people; what it needs of the model is what every model has."""

    # Results, each with the fingerprint of the model that it was measured with: others are not said of this one.
    remembered_: Sequence[tuple[str, Measured]] = ()
    learnt_from_: str | None = None  # the kind of supervision, where it is known

    def remember(self, result: Any, name: str | None = None) -> None:
        """Remember what was measured with this model, for its card; ``save`` keeps it.

        What is said stands with the model as it is: models of some of its bits, or with further ones, do not say it.

        Parameters
        ----------
        result : Evaluation, Tuning, Growth, Pruning or Measured
            What ``evaluate`` or a protocol, ``tune``, ``grow`` or ``prune`` found; models that the last three give
            remember it already.
        name : str, optional, what was searched, in words, where the result does not say it
        """
        found = [result] if isinstance(result, Measured) else _results_of(result)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a text or None, got {type(name).__name__}")
        if not all(math.isfinite(number) for one in found for number in (one.value, one.error or 0.0, *one.curve)):
            raise ValueError("result must hold finite numbers, got NaN or infinity")
        own = self.fingerprint()  # type: ignore[attr-defined]
        renamed = [one if name is None else _named(one, name) for one in found]
        before = [(by, one) for by, one in self.remembered_ if by == own]
        self.remembered_ = (before + [(own, one) for one in renamed])[-MOST_RESULTS:]

    def measured(self) -> list[Measured]:
        """Return what was measured with this very model.

        Returns
        -------
        list of Measured
        """
        if not self.remembered_:
            return []
        own = self.fingerprint()  # type: ignore[attr-defined]
        return [one for by, one in self.remembered_ if by == own]

    def card(self) -> Card:
        """Describe the model: what it is, where its bits came from, what it is worth.

        Returns
        -------
        Card, which ``ilhash.cards.markdown`` and ``ilhash.cards.page`` put into form
        """
        model: Any = self
        n_bits, kind = len(model.functions_), type(self).__name__
        facts: dict[str, object] = {
            "method": kind,
            "bits": n_bits,
            "bytes per item": -(-n_bits // 8),
            "features": model.n_features_in_,
            "functions": ", ".join(sorted({function.kind for function in model.functions_})),
            "learnt from": self.learnt_from_ or "not known",
            **self._card_facts(),
            "parameters other than default": _changed(model),
            "seed": getattr(model, "seed_", "those of its families"),
            "fingerprint": model.fingerprint(),
            "ilhash": __version__,
        }
        measured = self.measured()
        drawn = {
            one.measure: {other.name: other.curve for other in measured if other.measure == one.measure}
            for one in measured
            if len(one.curve)
        }
        curves = [Curve(f"{measure} with the first bits", "bits", measure, lines) for measure, lines in drawn.items()]
        title = f"{kind}, {n_bits} bits"
        return Card(title, facts, _origin(model.provenance()), measured, [*curves, *self._card_curves()], n_bits)

    def _card_facts(self) -> dict[str, object]:
        """Return what this kind of model adds to the facts."""
        return {}

    def _card_curves(self) -> list[Curve]:
        """Return what this kind of model can draw of its bits."""
        return []

    def _remembered_document(self) -> dict[str, Any]:
        measured = self.measured()
        document: dict[str, Any] = {"measured": [one.to_document() for one in measured]} if measured else {}
        return {**document, **({"learnt_from": self.learnt_from_} if self.learnt_from_ else {})}

    def _read_remembered(self, record: Record) -> None:
        if "learnt_from" in record:
            self.learnt_from_ = record.one_of("learnt_from", KINDS)
        if "measured" in record:
            own = self.fingerprint()  # type: ignore[attr-defined]
            found = record.records("measured")[:MOST_RESULTS]
            self.remembered_ = [(own, Measured.from_record(one)) for one in found]


def kind_of_supervision(y: Any, graph: Mapping[str, Any]) -> str:
    """Say what a model is learnt from.

    Parameters
    ----------
    y : labels or None
    graph : mapping, ``affinity`` and ``pairs``, each given or None

    Returns
    -------
    str

    Examples
    --------
    >>> kind_of_supervision([0, 1], {})
    'labels'
    """
    given = (y, graph.get("pairs"), graph.get("affinity"))
    return next((kind for kind, one in zip(KINDS, given, strict=False) if one is not None), KINDS[-1])


def _results_of(result: Any) -> list[Measured]:
    if isinstance(result, type) or not hasattr(result, "results"):
        kinds = "an Evaluation, Tuning, Growth, Pruning or Measured"
        raise TypeError(f"result must be {kinds}, got {type(result).__name__}")
    return list(result.results())


def _named(one: Measured, name: str) -> Measured:
    return Measured(name, one.measure, one.value, one.error, one.protocol, one.curve)


def _changed(model: Any) -> str:
    if hasattr(model, "families_"):
        return "those of its families"
    defaults = type(model)().get_params(deep=False)
    given = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    changed = [f"{name}={value}" for name, value in given.items() if value != repr(defaults.get(name))]
    more = f" and {len(changed) - MOST_SAID} more" if len(changed) > MOST_SAID else ""
    return ", ".join(changed[:MOST_SAID]) + more if changed else "none"


def _origin(bits: Sequence[Any]) -> list[str]:
    """Say where bits came from, one line for those that came together."""
    ends = [place for place in range(1, len(bits) + 1) if place == len(bits) or bits[place] != bits[place - 1]]
    lines = []
    for first, end in zip([0, *ends], ends, strict=False):
        one = bits[first]
        name = f" {one.name!r}" if one.name else ""
        points = "" if one.n_points is None else f" on {one.n_points:,} points"
        data = "" if one.data is None else f", data {one.data[:12]}"
        trained = f", trained {one.date[:10]}{points}" if one.date else ""
        lines.append(f"bits {first} to {end - 1}: {one.method}, generation {one.generation}{name}{trained}{data}")
    return lines
