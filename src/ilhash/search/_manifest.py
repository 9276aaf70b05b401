"""The manifest: the one file that says which files are the store, replaced whole by every commit.

Its envelope stays as it is in every future format: a newer store is so told from a damaged one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ilhash.search._damage import DamagedStoreError, missing, sound
from ilhash.search._header import ALIGNMENT, FORMAT, LARGEST_HEADER, FileEntry
from ilhash.storage import TEMPORARY, DamagedFileError, Enveloped, Record, reading

MANIFEST = "manifest.json"
LOCK = "lock"
DEEPEST = 8  # levels of lists and objects in settings
MOST_GENERATIONS = 2**62  # that a manifest may state: commits go on from there, and no store gets so far
_SEAL = Enveloped(MANIFEST, "a store", FORMAT, most=32 << 20)  # some 100,000 files
# Names of our files, and of nothing else: what is in a manifest may be opened and deleted.
_NAME = "-[0-9]{8,20}-[0-9a-f]{8}"
SEGMENT = re.compile(f"segment{_NAME}")
_FILES = {"segments": re.compile(rf"segment{_NAME}\.bin"), "removals": re.compile(rf"removed{_NAME}\.bin")}
_OURS = re.compile(rf"(segment|removed){_NAME}\.bin|{re.escape(TEMPORARY)}[0-9a-f]{{16}}")
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Manifest:
    """One state of a store; files stand with the oldest first."""

    generation: int  # number of commits so far
    settings: Mapping[str, Any]  # what the store was created with
    segments: tuple[FileEntry, ...] = ()
    removals: tuple[FileEntry, ...] = ()  # dead rows of segments, one array per segment
    notes: Mapping[str, Any] = field(default_factory=dict)  # what commits keep beside the segments

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """All files of this state but the manifest."""
        return self.segments + self.removals

    def is_same(self, other: Manifest) -> bool:
        """Whether another manifest is of the same state: no commit repeats number and names."""
        return (self.generation, self.files) == (other.generation, other.files)

    def to_bytes(self) -> bytes:
        """Return the sealed document."""
        return _SEAL.to_bytes(asdict(self))


def read_manifest(folder: Path) -> Manifest:
    """Read and check the newest manifest of a store."""
    path = folder / MANIFEST
    try:
        whatever = "a manifest, truncated, altered or one"
        with sound(path, whatever), reading(f"{path} must say which files are the store"):
            return _checked(Record(_SEAL.read(folder), f"the manifest {path}"), path)
    except FileNotFoundError:
        if folder.is_dir() and any(_OURS.fullmatch(file.name) for file in folder.iterdir()):
            raise DamagedStoreError([missing(path)]) from None
        raise


def _checked(document: Record, path: Path) -> Manifest:
    entries = {key: tuple(_entry(each, names) for each in document.records(key)) for key, names in _FILES.items()}
    for key, files in entries.items():
        if len({entry.file for entry in files}) != len(files):
            raise DamagedFileError(f"the manifest {path} must name each file once, got some again in {key!r}")
    notes = document.record("notes").document if "notes" in document else {}
    settings = document.record("settings").document
    if not _is_flat([settings, notes], DEEPEST):  # or writing it again would leave the stack
        raise DamagedFileError(f"the manifest {path} must have settings and notes of {DEEPEST} levels, got deeper ones")
    with reading(f"{path} must have settings and notes that can be written again"):
        storable_settings({"settings": settings, "notes": notes})  # JSON reads 1e999 as infinity, which it cannot hold
    generation = document.whole("generation", most=MOST_GENERATIONS)
    return Manifest(generation, settings, entries["segments"], entries["removals"], notes)


def _is_flat(value: Any, levels: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not parts or (levels > 0 and all(_is_flat(part, levels - 1) for part in parts))


def _entry(described: Record, names: re.Pattern[str]) -> FileEntry:
    size = described.whole("bytes", ALIGNMENT)
    header = described.whole("header_bytes", ALIGNMENT, min(size, LARGEST_HEADER))
    return FileEntry(described.text("file", names), size, header, described.text("header_sha256", _SHA256))


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
