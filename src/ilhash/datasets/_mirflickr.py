"""MPEG-7 edge histograms of MIRFLICKR-1M, read from the text files in which they are published."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ilhash._checks import check_count
from ilhash.storage import open_file

SIZE = 150
MOST = float(np.finfo(np.float32).max)
# Folders 0 ... 99 hold a file per image, 0.txt ... 999999.txt; some copies have files eh0.txt, eh1.txt, ...
NUMBERED = re.compile(r"(?:eh)?([0-9]+)(\.txt)?", re.IGNORECASE)


def read_edge_histograms(path: str | os.PathLike[str], limit: int | None = None) -> npt.NDArray[np.float32]:
    """Read edge histograms of MIRFLICKR-1M (M. Huiskes, B. Thomee and M. Lew, 2010).

    Parameters
    ----------
    path : path-like
        A text file, or a folder of numbered text files and numbered folders of them, such as
        ``features_edgehistogram`` with ``0/0.txt`` ... ``99/999999.txt``. A file holds one image in 150 lines of one
        number, as published, or any number of images in lines of 150 numbers (blanks or commas between them).
    limit : int, optional, read the first `limit` images only, or all if there are fewer

    Returns
    -------
    ndarray of shape (n, 150), float32, in the order of the numbers (2.txt before 10.txt)

    Raises
    ------
    FileNotFoundError
        The path does not exist, or a folder has no numbered text file or leaves out a number: the rows after it
        would belong to other images.
    ValueError
        A file holds something else than 150 finite numbers per image; the message says which file and line.
    """
    most = None if limit is None else check_count("limit", limit)
    start = Path(path)
    if not start.exists():
        raise FileNotFoundError(f"{start} must be a file or folder of edge histograms, got a path that does not exist")
    parts: list[npt.NDArray[np.float32]] = []
    n = 0
    for file in _files(start):
        rows = _read(file)
        n += len(rows)
        parts.append(rows)
        if most is not None and n >= most:
            break
    return np.concatenate(parts)[:most]


def _files(path: Path) -> Iterator[Path]:
    """Text files in the order of their numbers; a folder is listed when it is its turn."""
    if not path.is_dir():
        yield path
        return
    found: dict[int, Path] = {}
    for entry in path.iterdir():
        match = NUMBERED.fullmatch(entry.name)
        if match and entry.is_dir() == (match[2] is None):
            other = found.setdefault(int(match[1]), entry)
            if other is not entry:
                raise ValueError(f"{path} must hold each number once, got {other.name} and {entry.name}")
    if not found:
        raise FileNotFoundError(f"{path} must hold numbered text files or folders (0.txt, eh0.txt, 0/), got none")
    first, last = min(found), max(found)
    missing = last - first + 1 - len(found)
    if missing:
        gap = next(number for number in range(first, last) if number not in found)
        raise FileNotFoundError(
            f"{path} must hold every number from {first} to {last}, got none for {missing:,} of them, the first {gap}"
        )
    for number in range(first, last + 1):
        yield from _files(found[number])


def _read(file: Path) -> npt.NDArray[np.float32]:
    with open_file(file.resolve()) as opened:  # a regular one; a link may lead to it
        content = opened.read()
    try:
        lines = content.decode("utf-8-sig").replace(",", " ").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} must be UTF-8 text, but it could not be decoded ({error})") from None
    rows = [(line, cells) for line, text in enumerate(lines, 1) if (cells := text.split())]
    if not rows:
        raise ValueError(f"{file} must hold {SIZE} numbers, got an empty file")
    if all(len(cells) == 1 for _, cells in rows):
        if len(rows) != SIZE:
            raise ValueError(f"{file} must hold {SIZE} lines of one number, or lines of {SIZE}, got {len(rows)} lines")
    else:
        for line, cells in rows:
            if len(cells) != SIZE:
                raise ValueError(f"{file} must hold {SIZE} numbers in line {line}, got {len(cells)}")
    values = np.array([[_number(file, line, cell) for cell in cells] for line, cells in rows], np.float32)
    return values.reshape(-1, SIZE)


def _number(file: Path, line: int, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    # float() would take the digit groups of Python source, "1_000".
    if not abs(value) <= MOST or "_" in cell:
        shown = cell if len(cell) <= 40 else cell[:37] + "..."
        raise ValueError(f"{file} must hold finite numbers, got {shown!r} in line {line}")
    return value
