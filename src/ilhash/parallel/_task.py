"""What a worker does with one item, and how it tells that it failed: in words, because not every exception travels."""

from __future__ import annotations

import builtins
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from ilhash.parallel._blas import single_threaded_blas

Item = TypeVar("Item")
Result = TypeVar("Result")


class TaskFailed(Exception):  # noqa: N818 (a message, not what the caller sees)
    """An item's task raised; holds only texts, so that any worker can send it."""

    def __init__(self, item: Any, kind: str, reason: str, worker_trace: str) -> None:
        super().__init__(item, kind, reason, worker_trace)
        self.item, self.kind, self.reason, self.worker_trace = item, kind, reason, worker_trace

    def as_raised(self, name: str) -> Exception:
        """Return what the caller sees: the item and the cause, once."""
        item = f"{name} {self.item}"
        sentence = self.reason if self.reason.startswith(f"{item} ") else f"{item}: {self.reason}"
        kind = getattr(builtins, self.kind, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(sentence)
            except TypeError:  # such as UnicodeDecodeError, which is not made of one text
                pass
        return RuntimeError(sentence if kind is not None else f"{item}: {self.kind}: {self.reason}")

    def trace(self) -> Exception:
        """Return the worker's traceback as the cause of what the caller sees."""
        return _InWorker(f"\n{self.worker_trace}")


class _InWorker(Exception):  # noqa: N818 (its name is read above a traceback)
    """Shows the traceback of a worker."""


def attempt(task: Callable[[Item], Result], item: Item) -> Result | TaskFailed:
    """Run one task with one BLAS thread; return its result, or what went wrong."""
    with single_threaded_blas():
        try:
            return task(item)
        except Exception as error:
            kind = type(error)
            known = kind.__module__ == "builtins"
            return TaskFailed(
                item,
                kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}",
                str(error) or kind.__name__,
                "".join(traceback.format_exception(error)),
            )
