"""What can be wrong with a store's files, and how it is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ilhash.storage import DamagedFileError, StorageError, UnknownFormatError


@dataclass(frozen=True)
class Damage:
    """One damaged place."""

    file: Path
    region: str  # the whole file, its header, or an array, with the bytes of the file
    problem: str  # missing, truncated, extended, altered, unreadable, or what it says that cannot be, with numbers

    def __str__(self) -> str:
        return f"{self.file} must be as it was written, got {self.region} {self.problem}"


def missing(file: Path) -> Damage:
    """Return the damage of a file that is not there."""
    return Damage(file, "no such file:", "it is missing")


class DamagedStoreError(DamagedFileError):
    """A file of the store is missing, not as it was written, or not what an index writes; nothing of it was served.

    Attributes
    ----------
    damages : tuple of Damage, every damage that was found
    """

    def __init__(self, damages: Sequence[Damage]) -> None:
        more = f" (and {len(damages) - 1} more damages; verify lists all)" if len(damages) > 1 else ""
        super().__init__(f"{damages[0]}{more}")
        self.damages = tuple(damages)


@contextmanager
def sound(file: Path, region: str) -> Iterator[None]:
    """Turn what is refused of a part of a file into a DamagedStoreError.

    Whoever made the file may have recomputed its checksums: what matches them is not yet what we wrote.
    """
    try:
        yield
    except (DamagedStoreError, UnknownFormatError):
        raise
    except StorageError as error:
        raise DamagedStoreError([Damage(file, f"{region} that no index has:", str(error))]) from error
