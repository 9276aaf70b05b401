"""Files and folders that are wholly there or not at all, also after a crash.

That takes: a temporary file, fsync, rename, fsync of the folder.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ilhash.storage._descriptors import opened

if sys.platform == "darwin":
    import fcntl

TEMPORARY = ".writing-"  # beginning of the names of files that are not finished; left behind only by a crash
_BINARY = getattr(os, "O_BINARY", 0)  # of Windows

Bytes = Any  # bytes, memoryview or a flat uint8 array: what os.write takes (typing has no name for it before 3.12)


def write_file(path: Path, chunks: Iterable[Bytes], *, sync: bool = True) -> None:
    """Write a file whole, replacing one of that name; it is durable when this returns.

    Whoever writes several may say ``sync=False``: their names are then durable only after ``sync_folder``.
    """
    write_files({path: chunks}, sync=sync)


def write_files(contents: Mapping[Path, bytes | Iterable[Bytes]], *, sync: bool = True) -> None:
    """Write files, bytes or chunks of them, that appear when all are complete; they are durable when this returns.

    They are written in this order and appear in the opposite one: a later file may say what is in the first.
    """
    staged: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            staged[path] = temporary_in(path.parent)
            stage(staged[path], [data] if isinstance(data, bytes) else data)
        for path in reversed(list(staged)):
            os.replace(staged[path], path)
            del staged[path]
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
    for folder in {path.parent for path in contents if sync}:
        sync_folder(folder)


def temporary_in(folder: Path) -> Path:
    """Return a new name for a file that is not finished."""
    return folder / f"{TEMPORARY}{secrets.token_hex(8)}"


def stage(temporary: Path, chunks: Iterable[Bytes]) -> None:
    """Write and flush a file under its temporary name; of one that fails nothing is left."""
    try:
        with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY) as (descriptor,):
            for chunk in chunks:
                _write_all(descriptor, memoryview(chunk))
            flush(descriptor)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_all(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def flush(descriptor: int) -> None:
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
        for file in temporary.rglob("*"):
            if file.is_dir():
                sync_folder(file)
            else:
                _sync(file, os.O_RDWR | _BINARY)
        os.rename(temporary, path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise OSError(f"{path} could not be written, and nothing is left of it: {reason}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable (Windows has no such call and needs none)."""
    if hasattr(os, "O_DIRECTORY"):
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    with opened(path, flags) as (descriptor,):
        flush(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing, all durably."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        sync_folder(folder.parent)
