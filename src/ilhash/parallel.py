"""Bits over workers: joblib threads or processes, with BLAS kept to one thread per bit.

One thread per bit is not only what avoids oversubscription: it also makes every bit the same bytes for any number of
workers, because a BLAS may add up in another order when it uses more threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

__all__ = ["run", "single_threaded_blas"]

Item = TypeVar("Item")
Result = TypeVar("Result")

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


def _call(task: Callable[[Item], Result], item: Item) -> tuple[Item, Result]:
    with single_threaded_blas():
        return item, task(item)


def run(
    task: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    n_jobs: int | None = None,
    prefer: str = "threads",
    done: Callable[[Item], None] | None = None,
) -> list[Result]:
    """Return the results in the order of ``items``; ``done`` is called in this process as each one finishes.

    ``prefer`` is a hint: joblib.parallel_config(backend=...) overrules it.
    """
    items = list(items)
    results: dict[Item, Result] = {}
    with single_threaded_blas():
        # One bit at a time: a bit is long enough to be sent alone, and batches would leave workers idle at the end.
        parallel = joblib.Parallel(n_jobs=n_jobs, prefer=prefer, batch_size=1, return_as="generator_unordered")
        for item, result in parallel(joblib.delayed(_call)(task, item) for item in items):
            results[item] = result
            if done is not None:
                done(item)
    return [results[item] for item in items]
