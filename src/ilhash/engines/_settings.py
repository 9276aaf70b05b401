"""What a place for items is made with, which items a search may find, and what engines say when they cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._checks import check_choice, check_count

Codes = NDArray[np.uint8]
Ids = NDArray[Any]
Columns = Mapping[str, NDArray[Any]]  # of the user, by name; one value per item
COLUMN_KINDS = ("int", "float", "text", "bool")
BLOCK = 1 << 16  # items that are read or written at once
MOST_BITS = 65_535


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
        check_count("n_bits", self.n_bits, 1, MOST_BITS)
        check_choice("ids", self.ids, ("int", "str"))
        check_mapping("columns", self.columns)
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


def check_mapping(name: str, value: Any) -> None:
    """Refuse what is neither None nor a mapping whose keys are texts."""
    if value is not None and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
        raise TypeError(f"{name} must be a mapping of names, got {type(value).__name__}")


def as_parameters(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of a condition as plain numbers, texts, truth values or None, which can be sent."""
    check_mapping("parameters", parameters)
    out = {name: value.item() if isinstance(value, np.generic) else value for name, value in (parameters or {}).items()}
    for name, value in out.items():
        if not isinstance(value, bool | int | float | str | None):
            rule = "parameters must be numbers, texts, truth values or None"
            raise ValueError(f"{rule}, got {type(value).__name__} of {name!r}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"parameters must be whole numbers of 64 bits, got {value} of {name!r}")
        if isinstance(value, str) and not is_whole(value):
            raise ValueError(f"parameters must be texts of whole characters, got one with surrogates of {name!r}")
    return out


def is_whole(text: str) -> bool:
    """Whether a text can be written as UTF-8, which halves of characters (surrogates) cannot.

    Examples
    --------
    >>> is_whole("grün"), is_whole(chr(0xD800))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_COLUMN_TYPES = {"int": np.int64, "float": np.float64, "text": object, "bool": np.bool_}


def as_column(name: str, values: Any, kind: str) -> NDArray[Any]:
    """Return the values of a column as an array of its kind."""
    try:
        array: NDArray[Any] = np.asarray(values, _COLUMN_TYPES[kind])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"columns must hold what they were made for, {kind} in {name!r}, got others: {error}"
        ) from None
    if kind == "text":
        texts = [value for value in array.ravel().tolist() if value is not None]
        if not all(isinstance(value, str) for value in texts):
            raise ValueError(f"columns must hold what they were made for, text in {name!r}, got others")
        if not is_whole("".join(texts)):  # two halves beside each other stay halves
            raise ValueError(f"columns must hold texts of whole characters, got some with surrogates in {name!r}")
    return array


def taken(n_taken: int, n: int) -> ValueError:
    """Return the refusal of ids that are there already."""
    return ValueError(f"ids must be new, got {n_taken} of {n} that are there; see update")


def absent(n_absent: int, n: int) -> ValueError:
    """Return the refusal of ids that are not there."""
    return ValueError(f"ids must be in the engine, got {n_absent} of {n} that are not")
