"""Checks of parameters that models share: one sentence each, before any work begins."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from typing import Any

import numpy as np


class Unavailable:
    """Stands for a parameter that a file cannot hold, such as a function; says so when it is used."""

    def __init__(self, parameter: str, description: str) -> None:
        self.parameter = parameter
        self.description = description

    def __repr__(self) -> str:
        return f"<{self.description}, not saved with the model>"


def refuse_unavailable(value: Any) -> None:
    """Raise if a parameter was lost on the way through a file."""
    if isinstance(value, Unavailable):
        raise ValueError(
            f"{value.parameter} must be given again before training: {value.description} was not saved with the model; "
            f"call set_params({value.parameter}=...)"
        )


def as_array(name: str, value: Any) -> Any:
    """Return what NumPy makes of a value; what it can make nothing of is refused."""
    try:
        return np.asanyarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        reason = "rows of different lengths" if "inhomogeneous" in str(error) else f"what is none ({error})"
        raise ValueError(f"{name} must be an array, got {reason}") from None


def as_numbers(name: str, value: Any) -> Any:
    """Return real numbers as a float64 array of any shape."""
    array = as_array(name, value)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got an array of {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def check_choice(name: str, value: Any, choices: Sequence[str | int]) -> None:
    """Refuse what is not one of the choices."""
    plain = isinstance(value, str | int | np.integer) and not isinstance(value, bool)  # arrays compare entry by entry
    if not plain or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return a whole number of at least ``least``, and of at most ``most`` where there is a limit."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        too_many = most is not None and is_whole(value) and value > most
        rule = f"of at most {most}" if too_many else f"of at least {least}"
        raise ValueError(f"{name} must be a whole number {rule}, got {value!r}")
    return int(value)


def check_fraction(name: str, value: Any, what: str) -> None:
    """Refuse what is not a number between 0 and 1; ``what`` is what it stands for."""
    if not is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be {what} between 0 and 1, got {value!r}")


MOST_THREADS = 1024  # more are taken for these; the core never starts more than there are processors


def check_threads(n_threads: Any) -> int:
    """Return a number of threads, which for -1 is that of the cores."""
    if not (is_whole(n_threads) and (n_threads >= 1 or n_threads == -1)):
        raise ValueError(f"n_threads must be a whole number from 1 on, or -1 for one per core, got {n_threads!r}")
    return min(int(n_threads), MOST_THREADS) if n_threads > 0 else os.cpu_count() or 1


def check_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_callable(name: str, value: Any) -> None:
    """Refuse what cannot be called; None means that nobody is."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function or None, got {value!r}")


def check_encoder(model: Any) -> None:
    """Refuse what does not encode vectors."""
    if isinstance(model, type) or not hasattr(model, "encode_blocks"):
        raise TypeError(f"model must be a model of ilhash, got {type(model).__name__}")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, True and False not being any."""
    # The first is told at once: a lone query asks three times, and the registry of numbers takes half a microsecond.
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def is_number(value: Any) -> bool:
    """Whether a value is a real number, True and False not being any."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


# Beyond these a square leaves single precision.
SMALLEST, LARGEST = 1e-18, 1e18


def check_positive(name: str, value: Any, most: float = LARGEST) -> float:
    """Return a number above zero that single precision can hold with its square."""
    if not is_number(value) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    if not SMALLEST <= value <= most:
        raise ValueError(f"{name} must be a positive number from {SMALLEST:g} to {most:g}, got {value!r}")
    return float(value)


def check_jobs(name: str, value: Any) -> int | None:
    """Return a number of workers as joblib counts them: None, from 1 on, or below zero."""
    if value is not None and (not is_whole(value) or value == 0):
        raise ValueError(f"{name} must be None, a whole number from 1 on, or -1 for all cores, got {value!r}")
    return value if value is None else int(value)


def resolve_seed(random_state: Any) -> int:
    """Return one whole number for whatever scikit-learn accepts as random_state."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    if is_whole(random_state) and random_state >= 0:
        return int(random_state)
    raise ValueError(f"random_state must be None, a whole number of at least 0 or a generator, got {random_state!r}")


def chosen_bits(which: Any, n: int) -> list[int]:
    """Return which of n bits a slice, a number or a list of numbers means.

    A number beyond the bits is an IndexError: it ends a loop over ``model[0]``, ``model[1]``, ...
    """
    if isinstance(which, slice):
        chosen = list(range(n))[which]
    else:
        wanted = np.atleast_1d(as_array("bits", which))
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise TypeError(f"bits must be chosen by a slice or whole numbers, got {_told(which)}")
        if ((wanted < -n) | (wanted >= n)).any():
            raise IndexError(f"bits must lie between 0 and {n - 1}, got {_told(which)}")
        chosen = [int(i) % n for i in wanted]
    if not chosen:
        raise ValueError(f"a model must keep at least one bit, got {which!r} of {n} bits")
    return chosen


def _told(value: Any) -> str:
    """Return a value in one line: of an array what it is, not what it holds."""
    return f"{value.dtype} of shape {value.shape}" if hasattr(value, "shape") else repr(value)


def some_bits(which: Any, n: int) -> list[int]:
    """Return which of n bits are meant, as :func:`chosen_bits`; numbers beyond them are a ValueError, as elsewhere."""
    if isinstance(which, slice) and not range(n)[which]:
        raise ValueError(f"bits must be at least one of {n}, got none")
    try:
        return chosen_bits(which, n)
    except IndexError as error:
        raise ValueError(str(error)) from None


def one_bit(bit: Any, n: int) -> int:
    """Return the place of one bit of n, also counted from the end."""
    if not is_whole(bit):
        raise TypeError(f"bit must be a whole number, got {bit!r}")
    if not -n <= bit < n:
        raise ValueError(f"bit must lie between 0 and {n - 1}, got {bit!r}")
    return int(bit) % n
