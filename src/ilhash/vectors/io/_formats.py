"""What readers of all formats share: the door, what a file may claim, and one sentence for whatever is wrong.

Every call into a library that parses the file runs under `decoding`, so that a corrupt file is a ValueError
that names the path, whatever the library throws. Our own refusals are raised outside of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ilhash._extras import require
from ilhash.storage import open_file

Array = npt.NDArray[Any]

LARGE = 256 << 20  # bytes; what is declared up to this size needs no explanation
EXPANSION = 1100  # bytes of values that a stored byte may explain: deflate makes at most 1,032 of one
LARGEST_CHUNK = 1 << 30  # bytes that a library may have to decode at once


@dataclass(frozen=True)
class Declared:
    """What a file says that it holds, where that is no array that could be read: for the sentence of the refusal."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.shape)

    def __len__(self) -> int:
        return min(self.shape[0], 2**62) if self.shape else 0


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Turn any failure of a library to parse the file into one sentence."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
        must = f"{path} must be a valid {path.suffix.lower()} file"
        raise ValueError(f"{must}, but it could not be decoded ({reason})") from error


def reader(module: str, path: Path) -> Any:
    """Import the library that reads a file."""
    return require(module, "io", f"reading {path}")


def open_users_file(path: Path) -> IO[bytes]:
    """Open a regular file; links are the user's own, but they must not lead to a pipe or a device."""
    return open_file(Path(os.path.realpath(path)))


def in_one_line(names: Sequence[str]) -> str:
    """Return names in one line, however they are called and however many there are."""
    shown = ", ".join(" ".join(name.split())[:100] for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def pick(path: Path, key: str | None, names: Sequence[str], what: str) -> str:
    """Name the array meant by `key`, or the only one there is."""
    listed = in_one_line(names) or "none"
    if key is not None and key not in names:
        raise ValueError(f"{path} must hold {what} {key!r}, got: {listed}")
    if key is None and len(names) != 1:
        raise ValueError(f"{path} must hold one {what}, or be given as {path.name}::key, got: {listed}")
    return names[0] if key is None else key


def refuse_expansion(path: Path, what: str, declared: int, stored: int, large: int | None = None) -> None:
    """Refuse what claims to be far more than its bytes in the file can hold."""
    if declared > max(LARGE if large is None else large, EXPANSION * stored):
        must = f"{path} must store at least one byte for every {EXPANSION} bytes of values"
        raise ValueError(f"{must}, got {stored} for {declared} of {what}")


def refuse_large_chunk(path: Path, declared: int) -> None:
    """Refuse what would have to be decoded at once, if it is too much."""
    if declared > LARGEST_CHUNK:
        raise ValueError(f"{path} must hold chunks of at most {LARGEST_CHUNK} bytes each, got chunks of {declared}")


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether values of a type are numbers or texts of fixed width."""
    return dtype.kind in "biufSU" and dtype.names is None and dtype.subdtype is None and dtype.itemsize > 0
