"""Where dataset files are looked for, and whether they are the right ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ilhash.storage import Record, Sealed, StorageError, check_sha256, read_file, sha256_of

from ._registry import Spec, Sums
from ._sources import OFFERS

VARIABLE = "ILHASH_DATA"
MADE = Sealed("made.json", "files made from what was published", 1, kind="dataset")


def data_home(path: str | os.PathLike[str] | None = None) -> Path:
    """Folder that holds one sub-folder per dataset.

    Parameters
    ----------
    path : path-like, optional
        Used as it is; by default as ``ILHASH_DATA`` names it, or ``ilhash`` in the user's folder for caches.

    Returns
    -------
    pathlib.Path, the folder; it need not exist

    Examples
    --------
    >>> data_home("vectors").as_posix()
    'vectors'
    """
    return home_of(VARIABLE) if path is None else Path(path).expanduser()


def home_of(variable: str) -> Path:
    """Return the folder that an environment variable names, or else the user's own for ilhash."""
    named = os.environ.get(variable)
    return Path(named).expanduser() if named else platformdirs.user_cache_path("ilhash", appauthor=False)


@dataclass(frozen=True)
class Folder:
    """A folder and the checksums of the files that are to be read from it."""

    path: Path
    sums: Sums

    def missing(self) -> list[str]:
        """Names of the files that are not there."""
        return [name for name in self.sums if not (self.path / name).is_file()]

    def n_bytes(self) -> int:
        """Bytes of the files that are there."""
        return sum((self.path / name).stat().st_size for name in self.sums if (self.path / name).is_file())

    def read(self, name: str) -> bytes:
        """Read a file once, and give its bytes only if their SHA-256 is the expected one.

        So nothing is unpacked but what is known byte by byte. A link may lead to it: the folder is the user's own.
        """
        data = read_file((self.path / name).resolve())
        check_sha256(self.path / name, self.sums[name], sha256_of([data]))
        return data


def best_folder(path: Path, spec: Spec) -> Folder:
    """Pick the layout of which the fewest files are missing; the first of equals."""
    layouts = list(spec.layouts)
    if spec.made:
        layouts += _layouts_that_were_made(path, spec)
    folders = [Folder(path, sums) for sums in layouts]
    return min(folders, key=lambda folder: len(folder.missing()))


def _layouts_that_were_made(path: Path, spec: Spec) -> list[Sums]:
    """Return the SHA-256 of files that were made here, of which nobody else could know them; none if none were."""
    try:
        sums = Record(MADE.read(path), str(path / MADE.name)).record("sha256")
        return [{name: sums.text(name, "[0-9a-f]{64}") for name in spec.made}]
    except (OSError, StorageError):
        return []


def complete_folder(name: str, spec: Spec, path: Path) -> Folder:
    """Pick a layout of which no file is missing, or say what is missing and how to get it."""
    folder = best_folder(path, spec)
    missing = folder.missing()
    if missing:
        advice = f" (`ilhash data get {path.name}` does)" if path.name in OFFERS else ""
        raise FileNotFoundError(
            f"dataset {name!r} is missing {', '.join(missing)} in {path}: put there {spec.source}{advice}, or let "
            f"the environment variable {VARIABLE} name the folder that holds them in a sub-folder {path.name!r}"
        )
    return folder
