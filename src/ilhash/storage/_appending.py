"""A file that only grows: what is appended is durable when the call returns, or the file is as it was.

The one file of a folder that is changed in place. So whoever reads it must know where the last complete part ends, and
takes what stands behind that for a write that was cut off.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ilhash.storage._damage import DamagedFileError
from ilhash.storage._descriptors import opened
from ilhash.storage._durable import Bytes, flush

_FLAGS = os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def append_to_file(path: Path, size: int, chunks: Iterable[Bytes]) -> int:
    """Append to a file of ``size`` bytes; return the bytes that it has then.

    Whatever fails or interrupts, the file is cut back to what it was before; only where that fails too, which raises
    the same error, it must be cut by ``cut_file`` before anything else is appended.

    Parameters
    ----------
    path : Path, the file
    size : int, bytes that it must have now
    chunks : iterable of bytes, what is written behind these

    Returns
    -------
    int, bytes that the file has when the call returns, all of them durable
    """
    with opened(path, _FLAGS) as (descriptor,):
        _check(path, descriptor)
        got = os.fstat(descriptor).st_size
        if got != size:
            raise DamagedFileError(f"{path} must have {size} bytes, got {got}: somebody else changed it")
        place = size
        try:
            for chunk in chunks:
                data = memoryview(chunk)
                while data:
                    os.lseek(descriptor, place, os.SEEK_SET)
                    written = os.write(descriptor, data)
                    place, data = place + written, data[written:]
            flush(descriptor)
        except BaseException:
            with contextlib.suppress(OSError):  # what failed first is what is said
                os.ftruncate(descriptor, size)
                flush(descriptor)
            raise
    return place


def cut_file(path: Path, size: int) -> None:
    """Cut a file to its first bytes, which are durable when this returns."""
    with opened(path, _FLAGS) as (descriptor,):
        _check(path, descriptor)
        if os.fstat(descriptor).st_size < size:
            raise DamagedFileError(f"{path} must have at least {size} bytes, got fewer: somebody else changed it")
        os.ftruncate(descriptor, size)
        flush(descriptor)


def _check(path: Path, descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise DamagedFileError(f"{path} must be a regular file, got a special one")
