"""Tasks over joblib: threads, processes, or what joblib.parallel_config names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any, Generic

import joblib

from ilhash.parallel._blas import single_threaded_blas
from ilhash.parallel._task import Item, Result, TaskFailed, attempt

MOST_WORKERS = 1024


def finished(
    task: Callable[[Item], Result], items: list[Item], n_jobs: int | None, prefer: str
) -> Generator[tuple[Item, Result]]:
    """Give items and results as they finish."""
    calls = _Calls(task)
    if n_jobs is not None and n_jobs > 0:
        n_jobs = min(n_jobs, max(1, len(items)), MOST_WORKERS)  # joblib starts all of them at once
    with single_threaded_blas():
        # One bit at a time: a bit is long enough to be sent alone, and batches would leave workers idle at the end.
        parallel = joblib.Parallel(n_jobs=n_jobs, prefer=prefer, batch_size=1, return_as="generator_unordered")
        try:
            yield from parallel(joblib.delayed(calls)(item) for item in items)
        finally:
            calls.end()


class _Calls(Generic[Item, Result]):
    """Calls a task, and knows how many calls threads of this process are at.

    joblib leaves its threads to themselves when a run ends early, by an error or by Ctrl-C. They would go on with what
    nobody waits for, and be torn down in the middle of it when Python exits.
    """

    def __init__(self, task: Callable[[Item], Result]) -> None:
        self._task = task
        self._change = threading.Condition()
        self._under_way, self._over = 0, False

    def __reduce__(self) -> Any:
        return _Calls, (self._task,)  # worker processes are joblib's to end

    def __call__(self, item: Item) -> tuple[Item, Result]:
        with self._change:
            if self._over:
                raise TaskFailed(item, "RuntimeError", "the run is over", "")
            self._under_way += 1
        try:
            result = attempt(self._task, item)
        finally:
            with self._change:
                self._under_way -= 1
                self._change.notify_all()
        if isinstance(result, TaskFailed):
            raise result  # which makes joblib end the others
        return item, result

    def end(self) -> None:
        """Begin no other call, and wait for those that are under way; Ctrl-C ends the waiting."""
        with self._change:
            self._over = True
            while self._under_way:
                self._change.wait(0.1)  # on Windows, Ctrl-C comes through between two waits only
