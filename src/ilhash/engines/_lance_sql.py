"""Texts of Lance: values in its conditions, which have no parameters, and its errors as one sentence."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ilhash.engines._settings import EngineError
from ilhash.engines._statements import named_values, replaced_names

_RUST = re.compile(r",? ?(?:LanceError[^,]*, )?/\S+\.rs:\d+(?::\d+)?")


def literal(value: Any) -> str:
    """Return a value as Lance's SQL writes it, which has no parameters: a number, a text or a truth, nothing else.

    Examples
    --------
    >>> [literal(value) for value in (3, 0.5, True, "it's")]
    ['3', '0.5', 'TRUE', "'it''s'"]
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) and -(2**63) < value < 2**63:
        return str(int(value))
    if isinstance(value, int) and value == -(2**63):
        return f"({value + 1} - 1)"  # its digits without the sign are no whole number of 64 bits: it became a float
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise ValueError(f"parameters must be finite numbers of 64 bits, texts or bools with lance, got {value!r}")


def condition_of(where: str, parameters: Mapping[str, Any]) -> str:
    """Return a condition in brackets with its values in it.

    Lance reads the first condition that a text begins with and forgets the rest: brackets make it read all.

    Examples
    --------
    >>> condition_of("price < :most AND note <> ':no; --'", {"most": 3})
    "(price < 3 AND note <> ':no; --')"
    """
    renamed, values = named_values(where, parameters)
    return f"({replaced_names(renamed, lambda name: literal(values[name]))})"


@contextlib.contextmanager
def one_sentence(what: str) -> Iterator[None]:
    """Turn errors of Lance, some of which are panics of Rust, into one sentence."""
    try:
        yield
    except EngineError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        said = _RUST.sub("", " ".join(str(error).split()))
        raise EngineError(f"{what}, got an error: {said[:400]}") from None
