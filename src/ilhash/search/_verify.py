"""Reading a whole store and listing everything that is wrong with it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ilhash.search._array_file import damages_of_file
from ilhash.search._damage import Damage, DamagedStoreError
from ilhash.search._manifest import MANIFEST, leftovers, read_manifest


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


def verify(path: str | os.PathLike[str]) -> Report:
    """Read every byte of a store, whether or not it can be opened, and report all damages.

    Judged is the state at the beginning, without the files that a writer drops meanwhile.

    Parameters
    ----------
    path : path-like, the folder

    Returns
    -------
    Report, what was read, and what is wrong with it
    """
    folder = Path(path)
    try:
        manifest = read_manifest(folder)
        found = [(entry, damage) for entry in manifest.files for damage in damages_of_file(folder, entry)]
        now = read_manifest(folder)
    except DamagedStoreError as error:  # of the manifest: without it nothing else can be judged
        return Report(folder, 1, 0, error.damages, ())
    damages = tuple(damage for entry, damage in found if entry in now.files)
    size = (folder / MANIFEST).stat().st_size + sum(entry.bytes for entry in manifest.files)
    return Report(folder, 1 + len(manifest.files), size, damages, tuple(leftovers(folder, now)))
