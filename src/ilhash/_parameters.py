"""Parameters of a model as fields of a dataclass, each with its default and what it must be.

    max_iter: int = count(30)          a whole number of at least 1
    rho: float | None = positive(None)  a positive number, or None where that is the default
    init: str = one_of("itq", "pca")   one of these, by default the first

``check_parameters`` is called before any work begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any

from ilhash._checks import Unavailable, check_choice, check_count, check_jobs, check_positive, refuse_unavailable

MOST = 2**31 - 1  # of anything that is counted
MOST_BITS = 65_535  # of a code: no search could look at more


def count(default: Any, least: int = 1, most: int = MOST) -> Any:
    """Declare a whole number of at least ``least`` and at most ``most``."""
    return checked(default, check_count, least, most)


def bits(default: Any) -> Any:
    """Declare a number of bits."""
    return count(default, 1, MOST_BITS)


def jobs() -> Any:
    """Declare a number of workers, as in joblib."""
    return checked(None, check_jobs)


def positive(default: Any) -> Any:
    """Declare a finite number above zero."""
    return checked(default, check_positive)


def one_of(*choices: str | int) -> Any:
    """Declare one of some values, the first being the default."""
    return checked(choices[0], check_choice, choices)


def training_points() -> Any:
    """Declare a size of training sets, by default "auto"."""
    return checked("auto", _check_training_points)


def checked(default: Any, check: Callable[..., object], *limits: Any) -> Any:
    """Declare what ``check(name, value, *limits)`` refuses if it is wrong."""
    return field(default=default, metadata={"check": check, "limits": limits})


def check_parameters(model: Any, lost: bool = False) -> None:
    """Refuse the first parameter that is not what its field says, or, unless ``lost``, that a file could not hold."""
    for one in fields(model):
        value = getattr(model, one.name)
        if not lost:
            refuse_unavailable(value)
        if isinstance(value, Unavailable) or (value is None and one.default is None):
            continue
        if "check" in one.metadata:
            one.metadata["check"](one.name, value, *one.metadata["limits"])


def _check_training_points(name: str, value: Any) -> None:
    if not isinstance(value, str):
        check_count(name, value, 2)
    elif value != "auto":
        raise ValueError(f"{name} must be 'auto' or a whole number of at least 2, got {value!r}")
