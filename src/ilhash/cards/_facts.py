"""A card without form: facts, results, curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ilhash.storage import DamagedFileError, Record

MOST_POINTS = 1 << 16  # of a curve that is kept


@dataclass(frozen=True)
class Measured:
    """A result of a model, with what must be known to compare it.

    Attributes
    ----------
    name : str, among what was searched: "new items"
    measure : str, what the number is: "precision@10"
    value : float
    error : float, optional, its standard error
    protocol : str, optional, hash of the protocol it was measured under, or another word on how
    curve : sequence of float, the measure with the first 1, 2, ... bits; empty where that is not known

    Examples
    --------
    >>> Measured("new items", "precision@10", 0.91, 0.004).value
    0.91
    """

    name: str
    measure: str
    value: float
    error: float | None = None
    protocol: str | None = None
    curve: Sequence[float] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", tuple(map(float, self.curve)))  # a frozen dataclass, while it is made

    def to_document(self) -> dict[str, Any]:
        """Return plain values for a file.

        Returns
        -------
        dict
        """
        return {**asdict(self), "curve": list(self.curve)}

    @classmethod
    def from_record(cls, record: Record) -> Measured:
        """Do the inverse of :meth:`to_document`, with what a file of a stranger says.

        Parameters
        ----------
        record : Record, values that are not checked yet

        Returns
        -------
        Measured
        """
        numbers = {name: record.document.get(name) for name in ("value", "error")}
        texts = {name: record.document.get(name) for name in ("name", "measure", "protocol")}
        curve = record.all_of("curve", float, int) if "curve" in record else []
        finite = all(_is_finite(value) for name, value in numbers.items() if value is not None or name == "value")
        named = all(isinstance(value, str) for name, value in texts.items() if value is not None or name != "protocol")
        if not (finite and named and len(curve) <= MOST_POINTS):
            raise DamagedFileError(f"{record.where} must be a result with a name, a measure and numbers, got another")
        return cls(**{**texts, **numbers, "curve": tuple(curve)})  # type: ignore[arg-type]


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Curve:
    """Lines over whole numbers from 1 on.

    Attributes
    ----------
    title, over, unit : str, what it shows, what goes to the right, and upwards
    lines : mapping of str to sequence of float

    Examples
    --------
    >>> Curve("Precision", "bits", "precision@10", {"new items": [0.3, 0.4]}).over
    'bits'
    """

    title: str
    over: str
    unit: str
    lines: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Card:
    """What a card says.

    Attributes
    ----------
    title : str
    facts : mapping of str to object, what the model is
    origin : sequence of str, where bits came from, a line for those that came together
    measured : sequence of Measured
    curves : sequence of Curve
    n_bits : int

    Examples
    --------
    >>> Card("digits", {"method": "ILH"}, ["bits 0 to 7: labels"], [], n_bits=8).facts["method"]
    'ILH'
    """

    title: str
    facts: Mapping[str, object]
    origin: Sequence[str]
    measured: Sequence[Measured]
    curves: Sequence[Curve] = field(default=())
    n_bits: int = 0
