"""Descriptors of open files that no interrupt can lose."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO


class Descriptors(list[int]):
    """Open descriptors, each closed once: by ``close``, by the file that took it over, or with this object.

    Python handles a signal after the return of a call and before its value is kept: a descriptor that ``os.open`` gives
    back could be lost there, and one that is closed could be closed again, when the number is another file's. So what
    opens, hands over and closes here is one call of code in C, which no signal divides.
    """

    def open(self, path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
        """Open a file, which this object now holds."""
        self.extend(map(os.open, [path], [flags], [mode]))
        return self[-1]

    def to_file(self) -> IO[bytes]:
        """Hand the last descriptor over to a file object for reading."""
        return next(map(open, iter(self.pop, None), ["rb"]))

    def close(self) -> None:
        """Close what is held; a second time does nothing."""
        while self:
            next(map(os.close, iter(self.pop, None)), None)

    def __enter__(self) -> Descriptors:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()


def open_descriptor(path: Path, flags: int) -> Descriptors:
    """Open a file and return its one descriptor, to be used in a ``with`` statement."""
    opened = Descriptors()
    opened.open(path, flags)
    return opened
