"""A directory of files as one matrix: their rows one after the other, in the order of their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.vectors import VectorSource, blocks, opened, portable

from ._formats import Array

ROWS_AT_ONCE = 8192  # taken from an array
MOST_ENTRIES = 1_000_000  # files and folders that are looked at
MOST_FOREIGN = 1_000  # files of no known kind after which nothing more is looked at
MOST_DEEP = 16  # folders within folders


def runs(numbers: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return begin and end of every run of equal numbers."""
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    return list(pairwise([*begins, len(numbers)]))


class Begins:
    """The first rows of parts that stand one after the other, and the number of all rows."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.rows = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def of_rows(self, rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Give each part that holds some of the ascending rows, and their numbers within it."""
        part_of = np.searchsorted(self.rows, rows, side="right") - 1
        for begin, end in runs(part_of):
            part = int(part_of[begin])
            yield part, rows[begin:end] - self.rows[part]

    def of_stretch(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Give each part that holds some of the rows from first to last, and where they begin and end within it."""
        for part, (begin, end) in enumerate(pairwise(self.rows.tolist())):
            low, high = max(0, first - begin), min(end, last) - begin
            if low < high:
                yield part, low, high


class DirectorySource(VectorSource):
    """Several matrices of equal width, memory maps or sources, as one."""

    def __init__(self, path: Path, names: Sequence[str], parts: Sequence[Any]) -> None:
        super().__init__()
        self.path = path
        self.parts = list(parts)
        width = self.parts[0].shape[1]
        other = [(name, part) for name, part in zip(names, parts, strict=True) if part.shape[1] != width]
        if other:
            raise ValueError(
                f"{path} must hold files of one width, got {width} columns in {names[0]} and "
                f"{other[0][1].shape[1]} in {other[0][0]} ({len(other)} of {len(names)} files differ from the first)"
            )
        self.begins = Begins([len(part) for part in self.parts])
        self.shape = (int(self.begins.rows[-1]), width)
        self.dtype = np.result_type(*(part.dtype for part in self.parts))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "parts": [portable(part) for part in self.parts]}

    def __str__(self) -> str:
        return str(self.path)

    def files(self) -> list[Path]:
        """Return the files of all parts."""
        return [file for part in self.parts if isinstance(part, VectorSource) for file in part.files()]

    @property
    def by_row(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(getattr(part, "by_row", True) for part in self.parts)

    def open(self) -> DirectorySource:
        """Open all files in this process."""
        self.parts = [opened(part) for part in self.parts]
        super().open()
        return self

    def _part(self, number: int) -> Any:
        self.parts[number] = opened(self.parts[number])
        return self.parts[number]

    def _pick(self, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
        for number, own in self.begins.of_rows(rows):
            for piece in _picked(self._part(number), own):
                yield np.asarray(piece, dtype=self.dtype)

    def _blocks(self, first: int, last: int, step: int) -> Iterator[Array]:
        for number, low, high in self.begins.of_stretch(first, last):
            for block in blocks(self._part(number), step, low, high):
                yield np.asarray(block, dtype=self.dtype)


def _picked(part: Any, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
    if isinstance(part, VectorSource):
        yield from part.pick(rows)
    else:
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            yield part[rows[begin : begin + ROWS_AT_ONCE]]


def parts_of(folder: Path, suffixes: Sequence[str], is_store: Callable[[Path], bool]) -> list[Path]:
    """Return files in the order of their names, without those that tools leave beside them (_SUCCESS, .crc).

    A folder that is no collection of vectors, such as a whole disk, is left after its first thousand foreign files.

    Parameters
    ----------
    folder : Path, where to look, also in folders within
    suffixes : sequence of str, of the files that are looked for
    is_store : callable, whether a folder is a file in this sense

    Returns
    -------
    list of Path
    """
    found: list[Path] = []
    seen = foreign = 0
    waiting: list[tuple[Path, tuple[Any, ...]]] = [(folder, ())]
    while waiting:
        current, above = waiting.pop()
        if current is not folder and not (current.is_dir() and not is_store(current)):
            found.append(current)
            foreign += current.suffix.lower() not in suffixes
            if foreign > MOST_FOREIGN:
                must = f"{folder} must hold files of one of {', '.join(suffixes)}"
                raise ValueError(f"{must}, got {foreign} others before anything else was looked at")
            continue
        inside = _names_of(current, above)
        seen += len(inside)
        if seen > MOST_ENTRIES:
            raise ValueError(f"{folder} must hold at most {MOST_ENTRIES} files and folders, got more")
        about = os.stat(current)
        waiting += [(current / name, (*above, (about.st_dev, about.st_ino))) for name in reversed(inside)]
    return found


def _names_of(folder: Path, above: tuple[Any, ...]) -> list[str]:
    about = os.stat(folder)
    if (about.st_dev, about.st_ino) in above:
        raise ValueError(f"{folder} must be a folder of files, got a link to a folder that it is in")
    if len(above) > MOST_DEEP:
        raise ValueError(f"{folder} must be at most {MOST_DEEP} folders deep, got more")
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, MOST_ENTRIES + 1)]
    return sorted(name for name in names if not name.startswith(("_", ".")))
