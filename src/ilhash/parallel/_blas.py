"""BLAS kept to one thread per task.

That is not only what avoids oversubscription: it also makes every bit the same bytes for any number of workers, because
a BLAS may add up in another order when it uses more threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@functools.cache
def _controller() -> Any:
    """Look for the BLAS libraries of this process once: workers would spend milliseconds on it for every bit."""
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS to one thread while any thread of this process is inside; the last one out restores it."""
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
            _limit.__enter__()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.__exit__(None, None, None)
