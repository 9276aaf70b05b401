"""Checks of ILH's parameters: one sentence each, before any work begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash import objective as objectives
from ilhash._checks import check_count, is_whole
from ilhash._parameters import MOST

AUTO_TRAIN = 5_000
# With a focus, where half of the points are of few classes, 4,000 teach these as well as 5,000 do on MNIST and
# Fashion-MNIST and nearly as well on CIFAR-10 (benchmarks/learning.py), in less time.
AUTO_FOCUSED = 4_000
AUTO_JUDGED = 10_000  # points with pairs: a bit sees all of them, or as many

# mu as a multiple of the mean pull of the graph on a point: from a hint to a command.
MAC_PENALTIES = tuple(2.0**power for power in range(-6, 2))


def check_objective(name: str, value: Any) -> None:
    """Refuse what is no objective."""
    objectives.resolve(value)


def check_letters(name: str, letters: Any) -> str:
    """Return diversity letters in the order i, t, f."""
    if not isinstance(letters, str) or set(letters) - set("itf") or len(set(letters)) != len(letters):
        raise ValueError(
            f"{name} must be a combination of the letters i (initialisation), t (training sets) and f (features), "
            f"each at most once, got {letters!r}"
        )
    return "".join(letter for letter in "itf" if letter in letters)


def check_range(name: str, value: Any) -> int | tuple[int, int]:
    """Return a number of neighbours, or the smallest and largest of a range."""
    if isinstance(value, tuple | list) and len(value) == 2:
        low, high = (check_count(name, part, 1, MOST) for part in value)
        if low > high:
            raise ValueError(f"{name} as a range must be (smallest, largest), got {value!r}")
        return low, high
    return check_count(name, value, 1, MOST)


def refuse_dense_functions(kind: Any) -> None:
    """Refuse functions that cannot be learnt from sparse vectors."""
    if not (isinstance(kind, str) and kind == "linear"):
        raise TypeError(
            f"hash_function must be 'linear' for sparse X, got {kind!r}: for others make it dense with fewer columns, "
            "as by sklearn.decomposition.TruncatedSVD"
        )


CENTERS_PER_POINT = 0.3  # "auto"; at N = 5,000 precision still rose from 1,000 to 1,500 on four datasets
FEWEST_CENTERS, MOST_CENTERS = 100, 1_500


def check_centers(name: str, value: Any) -> int | str:
    """Return a number of centres, or "auto"."""
    if isinstance(value, str) and value == "auto":
        return value
    if isinstance(value, str):
        raise ValueError(f"{name} must be 'auto' or a whole number of at least 1, got {value!r}")
    return check_count(name, value, 1, MOST)


def number_of_centers(value: int | str, n_train: int) -> int:
    """Return how many centres a kernel function has."""
    if isinstance(value, str):
        return min(max(FEWEST_CENTERS, round(CENTERS_PER_POINT * n_train)), MOST_CENTERS)
    return value


def drawn_features(value: Any, n_features: int) -> int:
    """Return d for a number d or a fraction d/D."""
    if is_whole(value):
        if not 1 <= value <= n_features:
            raise ValueError(f"n_features must lie between 1 and the {n_features} features of X, got {value}")
        return int(value)
    if isinstance(value, float | np.floating) and 0.0 < value <= 1.0:
        return max(1, round(float(value) * n_features))
    raise ValueError(f"n_features must be a number of features or a fraction in (0, 1], got {value!r}")


def training_size(value: Any, available: int, focused: bool = False) -> tuple[int, bool]:
    """Return N and whether all points are used because more were asked for than there are."""
    if value == "auto":
        return max(2, min(AUTO_FOCUSED if focused else AUTO_TRAIN, available // 2)), False
    return min(int(value), available), value > available


def training_sizes(
    value: Any, judged: int, available: int, in_pairs: bool = False, focused: bool = False
) -> tuple[int, int, bool]:
    """Return N, how many points without supervision join, and whether all are used because more were asked for.

    ``available`` points may be drawn, of which something is known of ``judged``. Others fill up the training set of a
    model where they may join; elsewhere ``available`` is ``judged``. What is known ``in_pairs`` is known of few pairs
    of any two thousand points: there a training set is as large as it can be.
    """
    size, cut = training_size(value, available, focused)
    known = min(max(size, AUTO_JUDGED) if in_pairs and value == "auto" else size, judged)
    return known, min(max(size - known, 0), available - judged), cut


def mac_penalties(name: str, value: Any) -> tuple[float, ...]:
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
        raise ValueError(f"{name} must be True, False or a growing sequence of positive penalties, got {value!r}")
    return schedule
