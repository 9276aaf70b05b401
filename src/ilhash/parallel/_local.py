"""Tasks over joblib: threads, processes, or what joblib.parallel_config names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import joblib

from ilhash.parallel._blas import single_threaded_blas
from ilhash.parallel._task import Item, Result, TaskFailed, attempt


def finished(
    task: Callable[[Item], Result], items: list[Item], n_jobs: int | None, prefer: str
) -> Iterator[tuple[Item, Result]]:
    """Give items and results as they finish."""
    with single_threaded_blas():
        # One bit at a time: a bit is long enough to be sent alone, and batches would leave workers idle at the end.
        parallel = joblib.Parallel(n_jobs=n_jobs, prefer=prefer, batch_size=1, return_as="generator_unordered")
        yield from parallel(joblib.delayed(_call)(task, item) for item in items)


def _call(task: Callable[[Item], Result], item: Item) -> tuple[Item, Result]:
    result = attempt(task, item)
    if isinstance(result, TaskFailed):
        raise result  # which makes joblib end the others
    return item, result
