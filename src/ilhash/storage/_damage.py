"""How damage is noticed and said: SHA-256, and one family of errors, so that a reader of files can catch one class."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class StorageError(ValueError):
    """A file cannot be taken for what it should be; nothing of it was used."""


class DamagedFileError(StorageError):
    """A file is not as it was written: it was truncated, extended or altered."""


class UnknownFormatError(StorageError):
    """A file is of another kind, or was written by a newer version of ilhash."""


class UntrustedFileError(StorageError):
    """A file brings types that are not made from files of strangers, unless the caller names them."""


def sha256_of(chunks: Iterable[Any]) -> str:
    """Return the SHA-256 of bytes in pieces (bytes, memoryviews or contiguous arrays)."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file of any size."""
    with path.open("rb") as file:  # hashlib.file_digest is of Python 3.11
        return sha256_of(iter(lambda: file.read(1 << 20), b""))


def check_sha256(path: Path, wanted: str, got: str, advice: str = "") -> None:
    """Refuse a file whose SHA-256 is another than it should be."""
    if got != wanted:
        raise DamagedFileError(f"{path} must have SHA-256 {wanted}, got {got}: it was altered{advice}")
