"""Files and folders that are wholly there or not at all, also after a crash.

That takes: a temporary file, fsync, rename, fsync of the folder.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if sys.platform == "darwin":
    import fcntl

__all__ = ["TEMPORARY", "library_version", "make_folder", "new_folder", "stage", "sync_folder", "write_file"]

TEMPORARY = ".writing-"  # beginning of the names of files that are not finished; left behind only by a crash

Bytes = Any  # bytes, memoryview or a flat uint8 array: what os.write takes (typing has no name for it before 3.12)


def write_file(path: Path, chunks: Iterable[Bytes]) -> None:
    """Write a file whole, replacing one of that name; the name is durable only after ``sync_folder``."""
    temporary = stage(path.parent, chunks)
    try:
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def stage(folder: Path, chunks: Iterable[Bytes]) -> Path:
    """Write and flush a file under a temporary name, and return that name."""
    temporary = folder / f"{TEMPORARY}{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        try:
            for chunk in chunks:
                _write_all(descriptor, memoryview(chunk))
            _flush(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _write_all(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _flush(descriptor: int) -> None:
    """Flush a file to the medium: on macOS fsync alone stops at the drive's own cache."""
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError:
            pass  # network drives do not know it
    os.fsync(descriptor)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder that takes the name ``path`` when all went well, and is removed otherwise."""
    if path.exists():
        raise ValueError(f"path must be a new folder, got {path}, which exists")
    temporary = path.with_name(f".{path.name}.writing-{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            _sync_file(file)
        os.rename(temporary, path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise OSError(f"{path} could not be written, and nothing is left of it: {reason}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(path.parent)


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        _flush(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable (Windows has no such call and needs none)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _flush(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing, all durably."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        sync_folder(folder.parent)


def library_version() -> str:
    """Return the version of this library, which everything it writes carries."""
    from ilhash import __version__

    return __version__
