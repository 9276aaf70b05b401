"""The manifest: the one file that says which files are the store, replaced whole by every commit.

Its envelope stays as it is in every future format: a newer store is so told from a damaged one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ilhash.search._array_file import FORMAT, FileEntry
from ilhash.search._damage import Damage, DamagedStoreError, missing
from ilhash.storage import TEMPORARY, DamagedFileError, Enveloped

MANIFEST = "manifest.json"
LOCK = "lock"
_SEAL = Enveloped(MANIFEST, "a store", FORMAT)
_OURS = re.compile(rf"(segment|removed)-\d{{8,}}-[0-9a-f]{{8}}\.bin|{re.escape(TEMPORARY)}[0-9a-f]{{16}}")


@dataclass(frozen=True)
class Manifest:
    """One state of a store; files stand with the oldest first."""

    generation: int  # number of commits so far
    settings: Mapping[str, Any]  # what the store was created with
    segments: tuple[FileEntry, ...] = ()
    removals: tuple[FileEntry, ...] = ()  # dead rows of segments, one array per segment

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """All files of this state but the manifest."""
        return self.segments + self.removals

    def to_bytes(self) -> bytes:
        """Return the sealed document."""
        return _SEAL.to_bytes(asdict(self))


def read_manifest(folder: Path) -> Manifest:
    """Read and check the newest manifest of a store."""
    path = folder / MANIFEST
    try:
        document = _SEAL.read(folder)
    except DamagedFileError:
        damage = Damage(path, "a manifest", "truncated or altered: it does not match its SHA-256")
        raise DamagedStoreError([damage]) from None
    except FileNotFoundError:
        if folder.is_dir() and any(_OURS.fullmatch(file.name) for file in folder.iterdir()):
            raise DamagedStoreError([missing(path)]) from None
        raise
    segments, removals = (tuple(FileEntry(**each) for each in document[key]) for key in ("segments", "removals"))
    return Manifest(document["generation"], document["settings"], segments, removals)


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
