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


def check_choice(name: str, value: Any, choices: Sequence[str | int]) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least ``least``."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def check_fraction(name: str, value: Any, what: str) -> None:
    """Refuse what is not a number between 0 and 1; ``what`` is what it stands for."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise ValueError(f"{name} must be {what} between 0 and 1, got {value!r}")


def check_threads(n_threads: Any) -> int:
    """Return a number of threads, which for -1 is that of the cores."""
    if not (is_whole(n_threads) and (n_threads >= 1 or n_threads == -1)):
        raise ValueError(f"n_threads must be a whole number from 1 on, or -1 for one per core, got {n_threads!r}")
    return int(n_threads) if n_threads > 0 else os.cpu_count() or 1


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, True and False not being any."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_positive(name: str, value: Any) -> float:
    """Return a finite number above zero."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    return float(value)


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
    """Return which of n bits a slice, a number or a list of numbers means."""
    if isinstance(which, slice):
        chosen = list(range(n))[which]
    else:
        wanted = np.atleast_1d(np.asarray(which))
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise TypeError(f"bits must be chosen by a slice or whole numbers, got {which!r}")
        if ((wanted < -n) | (wanted >= n)).any():
            raise IndexError(f"bits must lie between 0 and {n - 1}, got {which!r}")
        chosen = [int(i) % n for i in wanted]
    if not chosen:
        raise ValueError(f"a model must keep at least one bit, got {which!r} of {n} bits")
    return chosen


def one_bit(bit: Any, n: int) -> int:
    """Return the place of one bit of n, also counted from the end."""
    if not is_whole(bit):
        raise TypeError(f"bit must be a whole number, got {bit!r}")
    return chosen_bits(int(bit), n)[0]
