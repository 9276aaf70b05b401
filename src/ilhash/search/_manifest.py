"""The manifest: the one file that says which files are the store, replaced whole by every commit.

It is JSON, ``{"sha256": "...", "manifest": {...}}``, where the SHA-256 is that of the inner document's bytes exactly as
they stand in the file. This seal stays as it is in every future format: a newer store is so told from a damaged one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ilhash._files import TEMPORARY, library_version
from ilhash.search._array_file import FORMAT, FileEntry
from ilhash.search._damage import Damage, DamagedStoreError, missing

__all__ = ["LOCK", "MANIFEST", "Manifest", "leftovers", "looks_empty", "read_manifest", "storable_settings"]

MANIFEST = "manifest.json"
LOCK = "lock"
_SEAL = b'{"sha256": "%s", "manifest": %s}\n'
_SEALED = re.compile(rb'\{"sha256": "([0-9a-f]{64})", "manifest": (.*)\}\n', re.DOTALL)
_OURS = re.compile(rf"(segment|removed)-\d{{8,}}-[0-9a-f]{{8}}\.bin|{re.escape(TEMPORARY)}[0-9a-f]{{16}}")


@dataclass(frozen=True)
class Manifest:
    """One state of a store.

    Attributes
    ----------
    generation : number of commits so far
    settings : what the store was created with
    segments : files of the live segments, oldest first
    removals : files with the dead rows of segments, one array per segment, oldest first
    """

    generation: int
    settings: Mapping[str, Any]
    segments: tuple[FileEntry, ...] = ()
    removals: tuple[FileEntry, ...] = ()

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """All files of this state but the manifest."""
        return self.segments + self.removals

    def to_bytes(self) -> bytes:
        """Return the sealed document."""
        document = {"format": FORMAT, "ilhash": library_version(), **asdict(self)}
        body = json.dumps(document, indent=1).encode()
        return _SEAL % (hashlib.sha256(body).hexdigest().encode(), body)


def read_manifest(folder: Path) -> Manifest:
    """Read and check the newest manifest of a store."""
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if folder.is_dir() and any(_OURS.fullmatch(file.name) for file in folder.iterdir()):
            raise DamagedStoreError([missing(path)]) from None
        raise FileNotFoundError(f"store {folder} must be a folder with a {MANIFEST}, got none: not a store") from None
    document = json.loads(_unsealed(data, path))
    if document["format"] != FORMAT:
        raise ValueError(
            f"store {folder} must have format {FORMAT}, got format {document['format']} written by ilhash "
            f"{document['ilhash']}: upgrade ilhash"
        )
    segments, removals = (tuple(FileEntry(**each) for each in document[key]) for key in ("segments", "removals"))
    return Manifest(document["generation"], document["settings"], segments, removals)


def _unsealed(data: bytes, path: Path) -> bytes:
    parts = _SEALED.fullmatch(data)
    if not parts:
        damage = Damage(path, f"a whole file of {len(data)} bytes", "truncated or altered: it is no sealed manifest")
        raise DamagedStoreError([damage])
    if hashlib.sha256(parts[2]).hexdigest().encode() != parts[1]:
        raise DamagedStoreError([Damage(path, "the manifest", "altered: it does not match its SHA-256")])
    return parts[2]


def storable_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they will be read again; refuse those that JSON would change."""
    given = dict(settings)
    try:
        again: dict[str, Any] = json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"settings must be what JSON can hold, got something else: {error}") from None
    if again != given:
        raise TypeError(f"settings must be what JSON can hold, got {given!r}, which would be read as {again!r}")
    return again


def looks_empty(folder: Path) -> bool:
    """Tell whether a folder holds nothing, or only what an interrupted creation of a store leaves."""
    return all(file.name == LOCK or file.name.startswith(TEMPORARY) for file in folder.iterdir())


def leftovers(folder: Path, manifest: Manifest) -> list[Path]:
    """Return files that a write left behind when it was interrupted: ours by name, but in no manifest."""
    named = {entry.file for entry in manifest.files}
    return sorted(file for file in folder.iterdir() if _OURS.fullmatch(file.name) and file.name not in named)
