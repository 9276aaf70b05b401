"""Readers of text: .csv matrices, .csv and .txt labels. Errors name the line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

INTEGER = re.compile(r"[+-]?[0-9]+")
# The names a column of text labels is given; anything else could itself be a label.
LABEL_HEADERS = frozenset({"class", "label", "labels", "target", "targets"})


def _is_number(cell: str) -> bool:
    # float() would take the digit groups of Python source, "1_000"; numpy does not.
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")


@contextmanager
def _utf8(path: Path) -> Iterator[None]:
    try:
        yield
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} must be UTF-8 text, but it could not be decoded ({error})") from error


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is not empty."""
    with _utf8(path), path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        for cells in reader:
            if cells:
                yield reader.line_num, cells


def read_csv(path: Path) -> npt.NDArray[np.float64]:
    """Read comma-separated numbers; a first line without any number is a header."""
    first = list(islice(_rows(path), 2))
    header = bool(first) and not any(_is_number(cell) for cell in first[0][1])
    if len(first) <= header:
        raise ValueError(f"{path} must hold a row of numbers, got {'only a header' if header else 'blank lines'}")
    skip = first[0][0] if header else 0
    try:
        return np.loadtxt(
            path, delimiter=",", comments=None, quotechar='"', ndmin=2, skiprows=skip, encoding="utf-8-sig"
        )
    except ValueError as error:
        # The fast reader counts rows, users count lines: look again, slowly, for the culprit.
        raise ValueError(f"{path} {_first_fault(path, skip) or f'must hold numbers, got: {error}'}") from error


def _first_fault(path: Path, skip: int) -> str | None:
    width = None
    for line, cells in _rows(path):
        if line <= skip:
            continue
        for column, cell in enumerate(cells, 1):
            if not _is_number(cell):
                return f"must hold a number in line {line}, column {column}, got {_shown(cell)}"
        width = len(cells) if width is None else width
        if len(cells) != width:
            return f"must hold {width} cells in line {line}, as in the lines before, got {len(cells)}"
    return None


def read_csv_labels(path: Path) -> npt.NDArray[Any]:
    """Read one column of labels, or several columns of numbers."""
    rows = [(line, cells) for line, cells in _rows(path) if len(cells) > 1 or cells[0].strip()]
    if any(len(cells) > 1 for _, cells in rows):
        return read_csv(path)
    labels = _column(path, [(line, cells[0]) for line, cells in rows])
    return as_labels(labels[1:] if _has_header(labels) else labels)


def _has_header(labels: Sequence[str]) -> bool:
    first, others = labels[0], labels[1:]
    if not others or INTEGER.fullmatch(first):
        return False
    named = first.lower() in LABEL_HEADERS and first not in others
    return named or all(INTEGER.fullmatch(label) for label in others)


def read_txt_labels(path: Path) -> npt.NDArray[Any]:
    """Read one label per line."""
    with _utf8(path), path.open(encoding="utf-8-sig") as file:
        lines = list(enumerate(file.read().split("\n"), 1))
    return as_labels(_column(path, [(line, text) for line, text in lines if text.strip()]))


def _column(path: Path, lines: Sequence[tuple[int, str]]) -> list[str]:
    """Strip the labels, and refuse a gap: a skipped line would shift every label after it."""
    if not lines:
        raise ValueError(f"{path} must hold one label per line, got only blank lines")
    for expected, (line, _) in enumerate(lines, 1):
        if line != expected:
            raise ValueError(f"{path} must hold a label in line {expected}, got a blank line")
    return [text.strip() for _, text in lines]


def as_labels(labels: Sequence[str]) -> npt.NDArray[Any]:
    """Integers if every label is one, otherwise strings."""
    if all(INTEGER.fullmatch(label) for label in labels):
        try:
            return np.array([int(label) for label in labels], dtype=np.int64)
        except OverflowError:  # long identifiers stay what they are
            pass
    return np.array(labels, dtype=np.str_)
