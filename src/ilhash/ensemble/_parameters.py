"""Checks of ILH's parameters: one sentence each, before any work begins."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [
    "MAC_PENALTIES",
    "Unavailable",
    "check_choice",
    "check_count",
    "check_letters",
    "check_range",
    "chosen_bits",
    "drawn_features",
    "mac_penalties",
    "refuse_unavailable",
    "resolve_seed",
    "training_size",
]

AUTO_TRAIN = 5000

# mu as a multiple of the mean pull of the graph on a point: from a hint to a command.
MAC_PENALTIES = tuple(2.0**power for power in range(-6, 2))


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
            f"{value.parameter} must be given again before bits are added: {value.description} was not saved with the "
            f"model; call set_params({value.parameter}=...)"
        )


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least ``least``."""
    if not _is_whole(value) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_letters(letters: Any) -> str:
    """Return diversity letters in the order i, t, f."""
    if not isinstance(letters, str) or set(letters) - set("itf") or len(set(letters)) != len(letters):
        raise ValueError(
            "diversity must be a combination of the letters i (initialisation), t (training sets) and f (features), "
            f"each at most once, got {letters!r}"
        )
    return "".join(letter for letter in "itf" if letter in letters)


def check_range(name: str, value: Any) -> int | tuple[int, int]:
    """Return a number of neighbours, or the smallest and largest of a range."""
    if isinstance(value, tuple | list) and len(value) == 2:
        low, high = (check_count(name, part) for part in value)
        if low > high:
            raise ValueError(f"{name} as a range must be (smallest, largest), got {value!r}")
        return low, high
    return check_count(name, value)


def drawn_features(value: Any, n_features: int) -> int:
    """Return d for a number d or a fraction d/D."""
    if _is_whole(value):
        if not 1 <= value <= n_features:
            raise ValueError(f"n_features must lie between 1 and the {n_features} features of X, got {value}")
        return int(value)
    if isinstance(value, float | np.floating) and 0.0 < value <= 1.0:
        return max(1, round(float(value) * n_features))
    raise ValueError(f"n_features must be a number of features or a fraction in (0, 1], got {value!r}")


def training_size(value: Any, available: int) -> tuple[int, bool]:
    """Return N and whether all points are used because more were asked for than there are."""
    if isinstance(value, str) and value == "auto":
        return (AUTO_TRAIN if available >= 2 * AUTO_TRAIN else max(2, available // 2)), False
    if isinstance(value, str):
        raise ValueError(f"n_train must be 'auto' or a whole number of at least 2, got {value!r}")
    wanted = check_count("n_train", value, 2)
    return min(wanted, available), wanted > available


def mac_penalties(value: Any) -> tuple[float, ...]:
    """Return the schedule of mu: none, the default one, or the user's."""
    if value is None or value is False:
        return ()
    if value is True:
        return MAC_PENALTIES
    try:
        schedule = tuple(float(mu) for mu in value)
    except (TypeError, ValueError):
        schedule = ()
    if not schedule or any(mu <= 0 or not np.isfinite(mu) for mu in schedule) or list(schedule) != sorted(schedule):
        raise ValueError(f"mac must be True, False or a growing sequence of positive penalties, got {value!r}")
    return schedule


def resolve_seed(random_state: Any) -> int:
    """Return one whole number for whatever scikit-learn accepts as random_state."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    if _is_whole(random_state) and random_state >= 0:
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
