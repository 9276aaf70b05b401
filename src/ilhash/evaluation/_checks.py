"""Checks that several measures share."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_whole"]


def check_whole(name: str, value: Any, least: int) -> int:
    """Return a whole number, or say what was got instead."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)
