"""Requests that arrive at the same time are worked on together, by one thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class Batcher(Generic[Asked, Answered]):
    """Puts what is asked at the same time into one call.

    While a call runs others gather for the next. Besides, a call waits for those that are known to be on their way,
    ``wait`` seconds at most, and for nobody where nobody is.

    Parameters
    ----------
    name : str, of the thread
    work : callable, gets many that ask, returns what each gets: an answer, or an exception that it sees
    most : int, rows of a call, by ``len``; one that asks for more has a call of its own
    wait : float, seconds
    coming : callable, says how many are on their way
    seen : callable, gets the rows and the number of those that ask of every call
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[Asked]], Sequence[Answered | Exception]],
        *,
        most: int = 1024,
        wait: float = 0.001,
        coming: Callable[[], int] = lambda: 0,
        seen: Callable[[int, int], None] = lambda rows, asked: None,
    ) -> None:
        self._work, self._most, self._wait, self._coming, self._seen = work, most, wait, coming, seen
        self._waiting: list[tuple[Asked, asyncio.Future[Answered], asyncio.AbstractEventLoop]] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def ask(self, asked: Asked) -> Answered:
        """Wait for the answer to one."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answered] = loop.create_future()
        with self._changed:
            if self._closed:
                raise RuntimeError("a closed batcher is asked")
            self._waiting.append((asked, future, loop))
            self._changed.notify()
        return await future

    def close(self) -> None:
        """Answer all that wait, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                self._gather()
                taken = self._take()
            self._answer(taken)

    def _gather(self) -> None:
        """Wait for those on their way."""
        end = time.monotonic() + self._wait
        while self._coming() > 0 and self._rows(self._waiting) < self._most and not self._closed:
            left = end - time.monotonic()
            if left <= 0 or not self._changed.wait(left):
                return

    @staticmethod
    def _rows(waiting: Sequence[tuple[Any, Any, Any]]) -> int:
        return sum(len(one) for one, _, _ in waiting)

    def _take(self) -> list[tuple[Asked, asyncio.Future[Answered], asyncio.AbstractEventLoop]]:
        rows, n = 0, 0
        for one, _, _ in self._waiting:
            if n and rows + len(one) > self._most:  # type: ignore[arg-type]
                break
            rows, n = rows + len(one), n + 1  # type: ignore[arg-type]
        taken, self._waiting = self._waiting[:n], self._waiting[n:]
        return taken

    def _answer(self, taken: list[tuple[Asked, asyncio.Future[Answered], asyncio.AbstractEventLoop]]) -> None:
        try:
            answers: Sequence[Any] = self._work([one for one, _, _ in taken])
        except Exception as error:
            answers = [error] * len(taken)
        self._seen(self._rows(taken), len(taken))
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Any, Any]]] = {}
        for (_, future, loop), found in zip(taken, answers, strict=True):
            by_loop.setdefault(loop, []).append((future, found))
        for loop, pairs in by_loop.items():
            with contextlib.suppress(RuntimeError):  # a loop that ended waits for nothing
                loop.call_soon_threadsafe(_deliver, pairs)


def _deliver(pairs: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, found in pairs:
        if future.done():  # whoever asked has gone
            continue
        if isinstance(found, Exception):
            future.set_exception(found)
        else:
            future.set_result(found)
