"""What models of the same data have in common, learnt once while several of them are trained in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Found = TypeVar("Found")

_KNOWN: ContextVar[dict[Any, Any] | None] = ContextVar("known starts", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Keep what :func:`remembered` computes until the end of the block."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def remembered(key: Any, compute: Callable[[], Found]) -> Found:
    """Return what ``compute`` gives, within :func:`remembering` once for each key.

    The key must name all that the result depends on.
    """
    known = _KNOWN.get()
    if known is None:
        return compute()
    if key not in known:
        known[key] = compute()
    found: Found = known[key]
    return found
