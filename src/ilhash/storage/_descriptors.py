"""Descriptors of open files that no interrupt can lose.

Python handles a signal after the return of a call and before its value is kept: a descriptor that ``os.open`` gives
back could be lost there, and one that was closed could be closed again, when its number is another file's. So what
opens, hands over and closes here is one call of code in C, which no signal divides, on a list that is there before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

Path = str | os.PathLike[str]


def open_into(held: list[int], path: Path, flags: int) -> None:
    """Open a file and append its descriptor to a list."""
    held.extend(map(os.open, [path], [flags], [0o666]))


def close_all(held: list[int]) -> None:
    """Close the descriptors of a list and take them from it."""
    while held:
        next(map(os.close, iter(held.pop, None)), None)


def to_file(held: list[int]) -> IO[bytes]:
    """Hand the last descriptor of a list over to a file object for reading."""
    return next(map(open, iter(held.pop, None), ["rb"]))


@contextmanager
def opened(path: Path, flags: int) -> Iterator[list[int]]:
    """Give a list of the descriptor of a file, and close at the end what is still in it."""
    held: list[int] = []
    try:
        open_into(held, path, flags)
        yield held
    finally:
        for descriptor in held:  # at once: a function of ours could be interrupted before it begins
            os.close(descriptor)
