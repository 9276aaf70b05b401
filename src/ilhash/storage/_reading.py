"""The one door through which files of strangers come in: what a file is, how much of it is really there, what it says.

Whoever made a file may have recomputed its checksums. So every value that is taken from one is checked here, by what it
must be, and whatever is wrong is a :class:`StorageError` of one sentence.
"""

from __future__ import annotations

import math
import os
import re
import reprlib
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ilhash.storage._damage import DamagedFileError, StorageError
from ilhash.storage._descriptors import opened, to_file

LARGE = 64 << 20  # bytes; smaller files may have as many holes as they like
HOLES = 64  # bytes of a large file for each that is really there: what is sparser was made to exhaust somebody
LARGEST_DOCUMENT = 256 << 20  # bytes of JSON

# What a library raises on its way through content that is not what it should be.
_RAW = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError, EOFError)
_OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


def open_file(path: Path) -> IO[bytes]:
    """Open a file of a folder of ours: a regular one, neither a link to elsewhere nor a pipe that would block.

    Parameters
    ----------
    path : Path, the file

    Returns
    -------
    binary file, open for reading
    """
    if path.is_symlink():
        raise DamagedFileError(f"{path} must be a file of its own, got a symbolic link")
    try:
        with opened(path, _OPEN) as held:
            about = os.fstat(held[0])
            if not stat.S_ISREG(about.st_mode):
                raise DamagedFileError(f"{path} must be a regular file, got a {_kind(about.st_mode)}")
            _refuse_holes(path, held[0], about.st_size)
            return to_file(held)
    except OSError as error:
        if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
            raise DamagedFileError(f"{path} must be a regular file, got a socket") from error
        raise


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "directory", stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
    return kinds.get(stat.S_IFMT(mode), "special file")


def _refuse_holes(path: Path, descriptor: int, size: int) -> None:
    """Refuse a large file that is hardly there: reading it would take what no disk had to hold."""
    if size <= LARGE or not hasattr(os, "SEEK_HOLE"):
        return
    try:
        there, place = 0, 0
        while place < size and there * HOLES < size:
            begin = os.lseek(descriptor, place, os.SEEK_DATA)
            place = os.lseek(descriptor, begin, os.SEEK_HOLE)
            there += place - begin
    except OSError:  # ENXIO: no data behind this place
        pass
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)
    if there * HOLES < size:
        raise DamagedFileError(f"{path} must hold its {size} bytes, got a file of holes, of which {there} are there")


def read_file(path: Path, most: int = LARGEST_DOCUMENT, size: int | None = None) -> bytes:
    """Read a file of a folder of ours whole.

    Parameters
    ----------
    path : Path, the file
    most : int, optional, bytes that it may have
    size : int, optional, bytes that it must have

    Returns
    -------
    bytes
    """
    with open_file(path) as file:
        got = os.fstat(file.fileno()).st_size
        if size is not None and got != size:
            raise DamagedFileError(f"{path} must have {size} bytes, got {got}: it was truncated or extended")
        if got > most:
            raise DamagedFileError(f"{path} must have at most {most} bytes, got {got}")
        return file.read(got)  # not `most`: Python makes room for all that it is asked for


@contextmanager
def reading(what: str, kinds: tuple[type[Exception], ...] = _RAW) -> Iterator[None]:
    """Turn whatever content that is not as it should be makes Python or a library raise into one sentence.

    Errors of the system, of missing modules and of our own doors pass as they are.

    Parameters
    ----------
    what : str, the beginning of the sentence: the file, and what it must be
    kinds : tuple of types, optional, the errors that are meant; by default those that Python itself has for content
    """
    try:
        yield
    except (StorageError, ImportError, OSError):
        raise
    except kinds as error:
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        raise DamagedFileError(f"{what}, got something else ({type(error).__name__}: {reason})") from error


class Record:
    """One JSON object of a file, of which every value is checked when it is taken.

    Parameters
    ----------
    document : the object, as JSON gave it
    where : str, the file and the place in it, for sentences
    """

    def __init__(self, document: Any, where: str) -> None:
        if not isinstance(document, dict):
            raise DamagedFileError(f"{where} must be an object, got {_shown(document)}")
        self.document, self.where = document, where

    def __contains__(self, key: str) -> bool:
        return key in self.document

    def _take(self, key: str, fits: Callable[[Any], bool], must: str) -> Any:
        value = self.document.get(key, _MISSING)
        if value is _MISSING or not fits(value):
            raise self._refusal(key, must)
        return value

    def _refusal(self, key: str, must: str) -> DamagedFileError:
        got = _shown(self.document.get(key, _MISSING))
        return DamagedFileError(f"{self.where} must have {key!r}, {must}, got {got}")

    def whole(self, key: str, least: int = 0, most: int = 2**63 - 1) -> int:
        """Return a whole number between two others."""
        value = self.document.get(key)
        if type(value) is int and least <= value <= most:
            return value
        raise self._refusal(key, f"a whole number from {least} to {most}")

    def number(self, key: str, least: float = -math.inf, most: float = math.inf) -> float:
        """Return a finite number between two others, whole or not, as it stands there."""
        value: Any = self.document.get(key)
        if type(value) in (int, float) and abs(value) < math.inf and least <= value <= most:
            return float(value) if type(value) is float else int(value)
        raise self._refusal(key, "a finite number" + ("" if least == -math.inf else f" from {least} to {most}"))

    def truth(self, key: str) -> bool:
        """Return true or false."""
        return bool(self._take(key, lambda value: isinstance(value, bool), "true or false"))

    def text(self, key: str, pattern: str | re.Pattern[str] | None = None, most: int = 1 << 20) -> str:
        """Return a text; of a pattern that all of it must match, if one is given."""
        value = self.document.get(key)
        if isinstance(value, str) and len(value) <= most and (pattern is None or re.fullmatch(pattern, value)):
            return value
        matching = "" if pattern is None else f" that matches {getattr(pattern, 'pattern', pattern)}"
        raise self._refusal(key, f"a text of at most {most} characters{matching}")

    def one_of(self, key: str, choices: Sequence[str]) -> str:
        """Return one of some texts."""
        return str(self._take(key, lambda value: isinstance(value, str) and value in choices, f"one of {choices}"))

    def record(self, key: str) -> Record:
        """Return an object within this one."""
        value = self.document.get(key)
        if isinstance(value, dict):
            return Record(value, f"{key!r} of {self.where}")
        raise self._refusal(key, "an object")

    def items(self, key: str, n: int | None = None) -> list[Any]:
        """Return a list, whose parts are not checked yet; of n parts, if that is given."""

        def fits(value: Any) -> bool:
            return isinstance(value, list) and n in (None, len(value))

        return list(self._take(key, fits, "a list" if n is None else f"a list of {n} parts"))

    def all_of(self, key: str, *kinds: type, n: int | None = None) -> list[Any]:
        """Return a list of values of these kinds alone; numbers are finite."""
        found = self.items(key, n)
        if set(map(type, found)) <= {*kinds} and (float not in kinds or all(map(math.isfinite, found))):
            return found
        names = " or ".join(kind.__name__ for kind in kinds)
        raise self._refusal(key, f"a list of {names} that are finite" if float in kinds else f"a list of {names}")

    def shallow(self, key: str, levels: int = 8) -> dict[str, Any]:
        """Return an object of anything that is not deeper than that."""

        def fits(value: Any, left: int) -> bool:
            parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            return left > 0 and all(fits(part, left - 1) for part in parts if isinstance(part, dict | list))

        must = f"an object of at most {levels} levels"
        return dict(self._take(key, lambda value: isinstance(value, dict) and fits(value, levels), must))

    def records(self, key: str) -> list[Record]:
        """Return a list of objects."""
        return [Record(part, f"{key}[{place}] of {self.where}") for place, part in enumerate(self.items(key))]

    def whole_or_none(self, key: str) -> int | None:
        """Return a whole number from 0 on, or None where it is null."""
        return None if self.document.get(key, _MISSING) is None else self.whole(key)

    def completed(self, defaults: dict[str, Any]) -> Record:
        """Return a record that has these values where this one has none."""
        return Record({**defaults, **self.document}, self.where)


_MISSING = object()


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = reprlib.repr(value)  # which does not go through all that a hostile value may be
    return text if len(text) <= 80 else f"{text[:80]}..."


def checked_array(
    array: Any,
    name: str,
    dtype: npt.DTypeLike,
    shape: Sequence[int | None],
    *,
    least: float | None = None,
    most: float | None = None,
    finite: bool = True,
) -> npt.NDArray[Any]:
    """Return an array of a file if it is what it must be.

    Parameters
    ----------
    array : what the file holds, None where it holds nothing of that name
    name : str, the file and the array's name, for sentences
    dtype : dtype, which it must have exactly
    shape : sequence of int or None, its lengths; None for one that may be any
    least, most : float, optional, bounds of all its values
    finite : bool, whether floats must be finite

    Returns
    -------
    ndarray, the same
    """
    if array is None:
        raise DamagedFileError(f"{name} must be an array of {np.dtype(dtype)}, got nothing of that name")
    fits = array.shape == shape or (
        len(array.shape) == len(shape) and all(w in (None, n) for n, w in zip(array.shape, shape, strict=True))
    )
    if array.dtype != dtype or not fits:
        wanted = "x".join("any" if length is None else str(length) for length in shape)
        got = f"{array.dtype} of shape {array.shape}"
        raise DamagedFileError(f"{name} must be {np.dtype(dtype)} of shape ({wanted}), got {got}")
    finite = finite and array.dtype.kind == "f"
    if array.size and (finite or least is not None or most is not None):
        _check_values(array, name, least, most, finite)
    return np.asarray(array)


def _check_values(array: npt.NDArray[Any], name: str, least: float | None, most: float | None, finite: bool) -> None:
    lowest, highest = array.min(), array.max()  # NaN, if there is any
    if finite and not (np.isfinite(lowest) and np.isfinite(highest)):
        wrong = np.count_nonzero(~np.isfinite(array))
        raise DamagedFileError(f"{name} must be finite, got {wrong} of {array.size} values that are not")
    if (least is not None and lowest < least) or (most is not None and highest > most):
        bounds = " and ".join(
            f"at {how} {bound}" for how, bound in (("least", least), ("most", most)) if bound is not None
        )
        raise DamagedFileError(f"{name} must be {bounds}, got values from {lowest} to {highest}")
