"""What all routes share: the service, its batches, and how it is going to end."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from fastapi import Request

from ilhash.serve._batches import Batcher
from ilhash.serve._guard import Coming
from ilhash.serve._learning import Learning
from ilhash.serve._limits import Bucket, Limits
from ilhash.serve._metrics import Metrics
from ilhash.serve._searching import ORDERS, Answer, Asked
from ilhash.serve._service import Change, Service

T = TypeVar("T")

_log = logging.getLogger("ilhash.serve")

REMEMBERED = 64  # answers about bits and precision
FOLLOWED = 1.0  # seconds after which a server that only reads looks at its folder again
FOLLOWED_ENGINE = 5.0  # and an engine, which it opens anew


class Context:
    """A service at work.

    Parameters
    ----------
    service : Service
    limits : Limits
    batching : bool, whether searches that arrive together are answered together
    wait : float, seconds that a search waits for others which are on their way
    """

    def __init__(self, service: Service, limits: Limits, *, batching: bool = True, wait: float = 0.001) -> None:
        self.service, self.limits = service, limits
        self.metrics, self.coming, self.bucket = Metrics(service), Coming(), Bucket(limits.vectors_per_second)
        self.learning = Learning(service, lambda state: self.metrics.learning.labels(state).inc())
        self._batching, self._wait = batching, wait
        self.closing = False
        self._followed = threading.Event()
        self._known: dict[Any, Any] = {}

    def begin(self) -> None:
        """Start the threads; in the process and loop that answers."""
        service, metrics = self.service, self.metrics

        def scanned(rows: int, asked: int) -> None:
            metrics.batches.observe(rows)
            metrics.together.observe(asked)

        def batcher(name: str) -> Batcher[Asked, Answer]:
            batch = self.limits.batch
            return Batcher(name, service.search, most=batch, wait=self._wait, coming=self.coming, seen=scanned)

        one = batcher("searches") if service.layout.engine is not None else None  # an engine is asked by one thread
        self._searches = {order: one or batcher(f"searches-{order}") for order in ORDERS} if self._batching else {}
        self._changes: Batcher[Change, list[Any]] = Batcher(
            "changes", service.change, most=self.limits.items, wait=0.0, seen=lambda rows, n: metrics.writes.observe(n)
        )
        self._scans = anyio.CapacityLimiter(os.cpu_count() or 1)
        self._looks = anyio.CapacityLimiter(4)
        self._follower = threading.Thread(target=self._follow, name="following", daemon=True)
        if not service.writable:
            self._follower.start()

    def end(self) -> None:
        """Answer what waits, stop what runs, let go of the folder."""
        self.closing = True
        self._followed.set()
        if self._follower.is_alive():
            self._follower.join()
        for batcher in set(self._searches.values()):
            batcher.close()
        self._changes.close()
        self.learning.close()
        self.service.close()

    def _follow(self) -> None:
        pause = FOLLOWED if self.service.layout.engine is None else FOLLOWED_ENGINE
        while not self._followed.wait(pause):
            try:
                self.service.refresh()
            except Exception as error:  # perhaps a writer is at it: the next look tells
                _log.warning("the folder could not be read again: %s", error)

    async def search(self, asked: Asked, request: Request) -> Answer:
        """Answer a search, together with others."""
        arrival = request.scope.get("arrival")
        if not self._batching:
            (found,) = await anyio.to_thread.run_sync(
                self.service.search, [asked], limiter=self._scans, abandon_on_cancel=True
            )
            self.metrics.batches.observe(len(asked))
            if isinstance(found, Exception):
                raise found
            return found
        waiting = asyncio.ensure_future(self._searches[asked.order].ask(asked))
        await asyncio.sleep(0)  # it is in the queue now
        if arrival is not None:
            arrival.arrived()
        return await waiting

    async def change(self, change: Change) -> list[Any]:
        """Make a change, together with others."""
        return await self._changes.ask(change)

    async def look(self, work: Callable[..., T], *given: Any) -> T:
        """Do in a thread what takes its time."""
        return await anyio.to_thread.run_sync(
            self.service.patiently, work, *given, limiter=self._looks, abandon_on_cancel=True
        )

    def remembered(self, key: tuple[Any, ...], work: Callable[[Any], T]) -> T:
        """Return what work makes of the state, once for each state and key."""
        with self.service.reading() as state:
            place = (state.number, *key)
            if place in self._known:
                found: T = self._known[place]
                return found
            found = work(state)
        if len(self._known) >= REMEMBERED:
            self._known = {}
        self._known[place] = found
        return found
