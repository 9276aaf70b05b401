"""The parameter n_threads."""

from __future__ import annotations

import os
from typing import Any

from ilhash._parameters import is_whole


def thread_count(n_threads: Any) -> int:
    """Check n_threads, and count the cores for -1."""
    if not (is_whole(n_threads) and (n_threads >= 1 or n_threads == -1)):
        raise ValueError(f"n_threads must be a whole number from 1 on, or -1 for one per core, got {n_threads!r}")
    return int(n_threads) if n_threads > 0 else os.cpu_count() or 1
