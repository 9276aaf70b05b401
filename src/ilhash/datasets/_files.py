"""Where dataset files are looked for, and whether they are the right ones."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ._registry import Spec, Sums

VARIABLE = "ILHASH_DATA"


def data_home(path: str | os.PathLike[str] | None = None) -> Path:
    """Folder that holds one sub-folder per dataset.

    Parameters
    ----------
    path : path-like, optional
        Used as it is. By default the environment variable ``ILHASH_DATA``, or ``~/.cache/ilhash`` where
        it is unset or empty.

    Returns
    -------
    pathlib.Path
        The folder; it need not exist.
    """
    if path is None:
        path = os.environ.get(VARIABLE) or Path("~", ".cache", "ilhash")
    return Path(path).expanduser()


@dataclass(frozen=True)
class Folder:
    """A folder and the checksums of the files that are to be read from it."""

    path: Path
    sums: Sums

    def missing(self) -> list[str]:
        """Names of the files that are not there."""
        return [name for name in self.sums if not (self.path / name).is_file()]

    def read(self, name: str) -> bytes:
        """Read a file once, and give its bytes only if their SHA-256 is the expected one."""
        data = (self.path / name).read_bytes()
        got = hashlib.sha256(data).hexdigest()
        if got != self.sums[name]:
            raise ValueError(f"{self.path / name} must have SHA-256 {self.sums[name]}, got {got}")
        return data


def best_folder(path: Path, spec: Spec) -> Folder:
    """Pick the layout of which the fewest files are missing; the first of equals."""
    folders = [Folder(path, sums) for sums in spec.layouts]
    return min(folders, key=lambda folder: len(folder.missing()))


def complete_folder(name: str, spec: Spec, path: Path) -> Folder:
    """Pick a layout of which no file is missing, or say what is missing and how to get it."""
    folder = best_folder(path, spec)
    missing = folder.missing()
    if missing:
        raise FileNotFoundError(
            f"dataset {name!r} is missing {', '.join(missing)} in {path}: put there {spec.source}, or let "
            f"the environment variable {VARIABLE} name the folder that holds them in a sub-folder {path.name!r}"
        )
    return folder
