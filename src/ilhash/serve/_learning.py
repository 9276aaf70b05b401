"""New bits from judgements, in the background, swapped in when they are better."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from ilhash.ensemble import learn
from ilhash.serve._service import Service


class BusyError(Exception):
    """Something is being learnt already."""


class _Stopped(Exception):  # noqa: N818 (no error)
    """The service ends."""


class Learning:
    """One run at a time, and what came of the last one."""

    def __init__(self, service: Service, ended: Callable[[str], None] = lambda state: None) -> None:
        self._service, self._ended = service, ended
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._said: dict[str, Any] = _idle()

    def document(self) -> dict[str, Any]:
        """Return how far it is; another document whenever that changes."""
        return self._said

    def begin(self, n_bits: int | None) -> int:
        """Begin to learn, and return the number of the task."""
        with self._mutex:
            if self._said["state"] == "running":
                raise BusyError
            task = int(self._said["task"]) + 1
            self._said = {**_idle(), "state": "running", "task": task}
            self._thread = threading.Thread(target=self._run, args=(n_bits,), name="learning", daemon=True)
            self._thread.start()
            return task

    def close(self) -> None:
        """Give up what is being learnt; what was swapped in stays."""
        self._closed = True
        if self._thread is not None:
            self._thread.join()

    def _say(self, **news: Any) -> None:
        self._said = {**self._said, **news}

    def _run(self, n_bits: int | None) -> None:
        begin = time.monotonic()
        try:
            state, news = self._learnt(n_bits)
        except _Stopped:
            state, news = "failed", {"reason": "the service ended"}
        except Exception as error:
            state, news = "failed", {"reason": str(error) or type(error).__name__}
        self._say(state=state, seconds=time.monotonic() - begin, **news)
        self._ended(state)

    def _progress(self, done: int, total: int) -> None:
        if self._closed:
            raise _Stopped
        self._say(done=done, total=total)

    def _learnt(self, n_bits: int | None) -> tuple[str, dict[str, Any]]:
        with self._service.reading() as state:
            ids, vectors = state.base
        pairs = self._service.pairs(ids)
        if not len(pairs):
            return "unchanged", {"reason": "there are no judgements about items that are here"}
        found = learn(state.model, vectors, pairs, n_bits=n_bits, progress=self._progress)
        news = {
            "before": _finite(found.before),
            "after": _finite(found.after),
            "error": _finite(found.error),
            "pairs": found.n_pairs,
            "reason": found.reason,
        }
        if not found.better:
            return "unchanged", news
        self._progress(self._said["total"], self._said["total"])
        self._service.adopt(found.model, found.n_new)
        return "done", {**news, "n_new": found.n_new}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _idle() -> dict[str, Any]:
    nothing = dict.fromkeys(("before", "after", "error", "reason", "seconds"))
    return {"state": "idle", "task": 0, "done": 0, "total": 0, "n_new": 0, "pairs": 0, **nothing}
