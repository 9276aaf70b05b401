"""What can be wrong with a store's files, and how it is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ilhash.storage import DamagedFileError


@dataclass(frozen=True)
class Damage:
    """One damaged place."""

    file: Path
    region: str  # the whole file, its header, or an array, with the bytes of the file
    problem: str  # missing, truncated, extended, altered, or unreadable, with numbers

    def __str__(self) -> str:
        return f"{self.file} must be as it was written, got {self.region} {self.problem}"


def missing(file: Path) -> Damage:
    """Return the damage of a file that is not there."""
    return Damage(file, "no such file:", "it is missing")


class DamagedStoreError(DamagedFileError):
    """A file of the store is missing or not as it was written; nothing of the damaged part was served.

    Attributes
    ----------
    damages : tuple of Damage, every damage that was found
    """

    def __init__(self, damages: Sequence[Damage]) -> None:
        more = f" (and {len(damages) - 1} more damages; verify lists all)" if len(damages) > 1 else ""
        super().__init__(f"{damages[0]}{more}")
        self.damages = tuple(damages)
