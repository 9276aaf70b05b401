"""Arguments of searches."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["refuse_repeated", "threads", "whole"]


def whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(min(value, 2**31 - 1))


def threads(n_threads: Any) -> int:
    return os.cpu_count() or 1 if n_threads == -1 else whole("n_threads", n_threads, 1)


def refuse_repeated(ids: NDArray[Any]) -> None:
    """Refuse ids that are not distinct."""
    if ids.dtype == object:
        repeated = len(ids) - len(set(ids.tolist()))
    else:
        ranked = ids if (ids[:-1] < ids[1:]).all() else np.sort(ids)
        repeated = int(np.count_nonzero(ranked[:-1] == ranked[1:]))
    if repeated:
        raise ValueError(f"ids must be distinct, got {repeated} of {len(ids)} again")
