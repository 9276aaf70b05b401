"""Models as directories: config.json and safetensors, never pickle.

A model is a directory of ``config.json`` (format number, library version, parameters, what each bit reported, and size
and SHA-256 of every other file and of itself) and of files named after their content. Writing is: each file to a
temporary name, fsync, rename, fsync of the directory, and config.json last. Until that last rename the old model is
whole, and after it the new one is; a crash in between leaves files that nobody names, which the next save removes.

One process saves at a time; readers need no lock: whoever finds that a file has gone since config.json was read, reads
that again.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.storage._arrays import arrays_in
from ilhash.storage._damage import DamagedFileError, check_sha256, sha256_of
from ilhash.storage._durable import TEMPORARY, make_folder, write_file
from ilhash.storage._lock import StoreLockedError, WriterLock
from ilhash.storage._reading import Record, open_file, read_file
from ilhash.storage._sealed import Sealed

ARRAYS = "arrays"
_ROLE = r"(?:classifier-[0-9]+\.)?[a-z_]+-[0-9]+"  # of a file that is not arrays; of a mix, behind that of its family
_FILES = rf"{ARRAYS}-[0-9a-f]{{16}}\.safetensors|{_ROLE}-[0-9a-f]{{16}}\.skops"
_CONFIG = Sealed("config.json", "a model of ilhash", 1, before=_FILES, most=64 << 20)
_LOCK = f"{TEMPORARY}lock"
_CARD = "README.md"
_LARGEST = 1 << 40  # bytes of one file: what is not there was refused before

_PAUSES = (0, 0, 0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0)  # seconds before a description is read again
WAIT = 20.0  # seconds for another process that saves to the same directory


@dataclass
class Contents:
    """What is in a model's directory: a JSON document, arrays, opaque files by name, a card; where, for sentences."""

    document: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    blobs: dict[str, bytes]
    where: str = "the model"
    card: str = ""  # for people; nothing reads it, and its first line says whose it is


def write_directory(path: Path, contents: Contents) -> None:
    """Write contents to a new or existing model directory."""
    from safetensors.numpy import save as to_safetensors

    arrays = {name: np.ascontiguousarray(array) for name, array in contents.arrays.items()}
    parts = {ARRAYS: to_safetensors(arrays), **contents.blobs}
    _CONFIG.begun(path)
    make_folder(path)
    lock: WriterLock | None = None
    try:
        try:
            lock = _waited_for(path)
            _replace(path, contents.document, parts, contents.card)
        finally:
            if lock is not None:
                lock.remove()
    finally:  # once more: an interrupt may come between any two steps, and a traceback would keep the lock
        if lock is not None:
            lock.release()


def _replace(path: Path, document: dict[str, Any], parts: dict[str, bytes], card: str) -> None:
    _remove_leftovers(path, keep=_in_use(path))
    files: dict[str, dict[str, Any]] = {}
    for role, data in parts.items():
        digest = sha256_of([data])
        files[role] = {"name": _file_name(role, digest), "bytes": len(data), "sha256": digest}
        write_file(path / files[role]["name"], [data])
    # Between these two there is no card: one of another model would be worse.
    ours = _remove_card(path, card.partition("\n")[0])
    _CONFIG.write(path, {**document, "files": files})
    _remove_leftovers(path, keep={entry["name"] for entry in files.values()})
    if card and ours:
        write_file(path / _CARD, [card.encode("utf-8")])


def _remove_card(path: Path, mark: str) -> bool:
    """Remove the card of an earlier save; say whether there may be a new one, which there may not beside another's."""
    card = path / _CARD
    if not os.path.lexists(card):
        return True
    try:
        with open_file(card) as file:  # a regular one, and no link
            ours = bool(mark) and file.read(len(mark.encode()) + 1) == f"{mark}\n".encode()
    except (DamagedFileError, PermissionError):  # whatever it is, it is not ours; a failing disk ends the save instead
        return False
    if ours:
        card.unlink()
    return ours


def _file_name(role: str, digest: str) -> str:
    return f"{role}-{digest[:16]}{'.safetensors' if role == ARRAYS else '.skops'}"


def _in_use(path: Path) -> set[str]:
    """Return all files where there is a model: before a new one is whole, nothing of the old one may go."""
    if (path / _CONFIG.name).exists():
        return {file.name for file in path.iterdir() if not file.name.startswith(TEMPORARY)}
    return set()


def _remove_leftovers(path: Path, keep: set[str]) -> None:
    for file in path.iterdir():
        if _CONFIG.leftover(file.name) and file.name not in keep and file.name != _LOCK:
            with contextlib.suppress(
                OSError
            ):  # what cannot go now (open elsewhere, on Windows) goes with the next save
                file.unlink()


def _waited_for(path: Path) -> WriterLock:
    """Return the lock of a directory, whose file is there only while somebody saves."""
    end = time.monotonic() + WAIT
    while True:
        lock: WriterLock | None = None
        try:
            lock = WriterLock(path / _LOCK)
            if lock.in_place():  # not one whose file the last holder removed while this one waited
                return lock
            lock.release()
        except StoreLockedError as error:
            if time.monotonic() > end:
                got = f"another that did not finish in {WAIT:g} s: {error}"
                raise StoreLockedError(f"model {path} must be saved by one at a time, got {got}") from None
            time.sleep(0.01)
        except BaseException:
            if lock is not None:
                lock.release()
            raise


def read_directory(path: Path) -> Contents:
    """Read and verify a model directory; whatever is wrong with it is said in one sentence."""
    if not path.exists():
        raise FileNotFoundError(f"model {path} must be a directory written by save, got a path that does not exist")
    missing = ""
    for pause in _PAUSES:
        document = _CONFIG.read(path)
        try:
            return _contents(path, document)
        except FileNotFoundError as error:  # perhaps another model was saved here since the description was read
            missing = Path(error.filename or "").name
            time.sleep(pause)
    raise FileNotFoundError(f"model {path} must contain {missing}, got no such file")


def _contents(path: Path, document: dict[str, Any]) -> Contents:
    record = Record(document, str(path / _CONFIG.name))
    files = record.record("files")
    blobs = {role: _read_file(path, role, files.record(role)) for role in files.document}
    if ARRAYS not in blobs:
        raise DamagedFileError(f"{files.where} must name the file of the arrays, got {len(blobs)} others")
    arrays = arrays_in(blobs.pop(ARRAYS), path / files.record(ARRAYS).text("name"))
    return Contents(document, arrays, blobs, record.where)


def _read_file(path: Path, role: str, entry: Record) -> bytes:
    digest, name = entry.text("sha256", "[0-9a-f]{64}"), entry.text("name")
    if not (role == ARRAYS or re.fullmatch(_ROLE, role)) or name != _file_name(role, digest):
        raise DamagedFileError(f"{entry.where} must have the name of its role and content, got {name[:80]!r}")
    data = read_file(path / name, _LARGEST, entry.whole("bytes"))
    check_sha256(path / name, digest, sha256_of([data]))
    return data
