"""Reading a whole store and listing everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ilhash.search._array_file import damages_of_file
from ilhash.search._damage import Damage, DamagedStoreError, missing
from ilhash.search._header import FileEntry
from ilhash.search._manifest import MANIFEST, Manifest, leftovers, read_manifest

# Raises DamagedStoreError where a file, whose bytes are as they were written, holds what it must not. Called for the
# manifest first, with None.
Examination = Callable[[Path, Manifest, FileEntry | None], None]


@dataclass(frozen=True)
class Report:
    """What ``verify`` found.

    Attributes
    ----------
    path : Path, folder of the store
    n_files, n_bytes : int, files that were read, the manifest among them, and their bytes
    damages : tuple of Damage, everything that is not as it was written
    leftovers : tuple of Path, files of a write that was interrupted or is under way: harmless, and removed by the next
        writer that opens the store
    """

    path: Path
    n_files: int
    n_bytes: int
    damages: tuple[Damage, ...]
    leftovers: tuple[Path, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages

    def __str__(self) -> str:
        count = f"{len(self.damages)} damages" if self.damages else "nothing damaged"
        lines = [f"{self.path}: {self.n_files} files, {self.n_bytes} bytes, {count}, {len(self.leftovers)} leftovers"]
        return "\n".join([*lines, *map(str, self.damages)])


def verify_files(path: str | os.PathLike[str], examine: Examination | None = None) -> Report:
    """Read every byte of a store, whether or not it can be opened, and report all damages.

    Judged is the state at the beginning, without the files that a writer drops meanwhile.
    """
    folder = Path(path)
    try:
        manifest = read_manifest(folder)
        if examine:
            examine(folder, manifest, None)
        found = [(entry, damage) for entry in manifest.files for damage in _damages(folder, manifest, entry, examine)]
        now = read_manifest(folder)
    except DamagedStoreError as error:  # of the manifest: without it nothing else can be judged
        return Report(folder, 1, 0, error.damages, ())
    damages = tuple(damage for entry, damage in found if entry in now.files)
    size = (folder / MANIFEST).stat().st_size + sum(entry.bytes for entry in manifest.files)
    return Report(folder, 1 + len(manifest.files), size, damages, tuple(leftovers(folder, now)))


def _damages(folder: Path, manifest: Manifest, entry: FileEntry, examine: Examination | None) -> list[Damage]:
    found = damages_of_file(folder, entry)
    if found or not examine:
        return found
    try:
        examine(folder, manifest, entry)
    except DamagedStoreError as error:
        return list(error.damages)
    except FileNotFoundError:  # dropped since it was read
        return [missing(folder / entry.file)]
    return []
