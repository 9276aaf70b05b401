"""The file of a log: what is complete, what was cut off, what is damaged.

Complete are the lines up to the last that ends an ``add``. What stands behind them, up to a piece without a line's end,
is an ``add`` that was cut off by a kill or a loss of power: nobody was told that it had happened. Whatever else does
not match its seal is damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

from ilhash.feedback._columns import Columns
from ilhash.feedback._lines import LONGEST, Judgement, Sealer, from_line, read_header
from ilhash.storage import DamagedFileError, StorageError, open_file

T = TypeVar("T")

FILE = "judgements.jsonl"
LOCK = "lock"


@dataclass
class Known:
    """What was read of a log.

    Attributes
    ----------
    sealer : Sealer, of its lines
    columns : Columns, the judgements
    size : int, bytes up to the end of the last complete ``add``
    last : bytes, the last line before that place, by which a log is recognised
    torn : int, bytes behind that place when the file was read last
    """

    sealer: Sealer
    size: int
    last: bytes
    columns: Columns = field(default_factory=Columns)
    torn: int = 0

    @property
    def n_lines(self) -> int:
        """Complete lines, the first among them."""
        return 1 + len(self.columns)


def read_log(folder: Path) -> Known:
    """Read and verify a log whole."""
    path = folder / FILE
    if not os.path.lexists(path):
        raise FileNotFoundError(f"{folder} must be a folder of feedback with a {FILE}, got none: not a log")
    with open_file(path) as file:
        first = file.readline(LONGEST + 1)
        if not first.endswith(b"\n"):
            raise DamagedFileError(f"{path}, line 1, must be whole, got {len(first)} bytes without an end of line")
        known = Known(read_header(first, path), len(first), first)
        _read_on(file, path, known)
        return known


def read_more(folder: Path, known: Known) -> bool:
    """Read what has been added; return False where the file is no continuation of what was read."""
    path = folder / FILE
    with open_file(path) as file:
        file.seek(max(0, known.size - len(known.last)))
        if file.read(len(known.last)) != known.last:
            return False
        _read_on(file, path, known)
        return True


def _read_on(file: IO[bytes], path: Path, known: Known) -> None:
    """Take over the complete ``add``s from where the file stands, and say how much was cut off behind them."""
    pending: list[Judgement] = []
    size, expected, expected_kind = known.size, None, known.columns.kind
    while line := file.readline(LONGEST + 1):
        number = known.n_lines + len(pending)
        where = f"{path}, line {number + 1},"
        if not line.endswith(b"\n"):
            _check_torn(file, line, number, known.sealer, where)
            break
        if not known.sealer.holds(number, line[:-1]):
            raise DamagedFileError(f"{where} must be as it was written, got content that does not match its seal")
        one, left = from_line(line, where)
        if expected is not None and left != expected:
            raise DamagedFileError(f"{where} must be followed by {expected} of the same add, got {left}")
        kind = "int" if type(one.query) is int else "str"
        if kind != (expected_kind or kind):
            raise DamagedFileError(f"{where} must have ids of the kind of the log ({expected_kind}), got {kind}")
        expected_kind = kind
        pending.append(one)
        size, expected = size + len(line), left - 1
        if left == 0:
            for each in pending:
                known.columns.append(each)
            known.size, known.last = size, line
            pending, expected = [], None
    known.torn = os.fstat(file.fileno()).st_size - known.size


def _check_torn(file: IO[bytes], piece: bytes, number: int, sealer: Sealer, where: str) -> None:
    """Refuse a last piece of a file that no ``add`` leaves that was cut off.

    Such a piece is the beginning of a line; a file system that lost power may have NULs behind it, which no line has.
    """
    begun = piece.rstrip(b"\0")
    if sealer.holds(number, piece[:-1]):
        raise DamagedFileError(f"{where} must end with the line, got another byte in its place")
    if len(begun) > LONGEST:
        raise DamagedFileError(f"{where} must have at most {LONGEST} bytes, got more")
    if len(begun) == len(piece):
        return
    for rest in iter(lambda: file.read(1 << 20), b""):
        if rest.strip(b"\0"):
            raise DamagedFileError(f"{where} must be as it was written, got bytes that are 0")


@dataclass(frozen=True)
class Report:
    """What ``verify`` found.

    Attributes
    ----------
    path : Path, folder of the log
    n_judgements : int, complete ones
    n_bytes : int, of them and the first line
    torn : int, bytes behind them, of an ``add`` that was cut off or is under way: harmless, and removed by the next
        writer that opens the log
    damage : str or None, what is not as it was written
    """

    path: Path
    n_judgements: int
    n_bytes: int
    torn: int
    damage: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return self.damage is None

    def __str__(self) -> str:
        if self.damage is not None:
            return f"{self.path}: damaged: {self.damage}"
        torn = f", {self.torn} bytes of an add that was cut off" if self.torn else ""
        return f"{self.path}: feedback, {self.n_judgements} judgements, {self.n_bytes} bytes, nothing damaged{torn}"


def verify(path: str | os.PathLike[str]) -> Report:
    """Read every byte of a log and report what is damaged.

    Parameters
    ----------
    path : str or path, the folder

    Returns
    -------
    Report, ``ok`` where all is well
    """
    folder = as_path(path)
    try:
        known = patiently(lambda: read_log(folder))
    except (StorageError, FileNotFoundError) as error:
        return Report(folder, 0, 0, 0, str(error))
    return Report(folder, len(known.columns), known.size, known.torn)


def as_path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise TypeError(f"path must be a folder, got {type(path).__name__}") from None


def patiently(read: Callable[[], T]) -> T:
    """Read again where a log looked damaged: a writer may have cut off, and replaced, what stood behind its end."""
    for _ in range(2):
        try:
            return read()
        except DamagedFileError:
            pass
    return read()
