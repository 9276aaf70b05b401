"""Readers of text: .csv matrices, .csv and .txt labels. Errors name the line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ._formats import in_one_line, open_users_file

INTEGER = re.compile(r"[+-]?[0-9]+")
# The names a column of text labels is given; anything else could itself be a label.
LABEL_HEADERS = frozenset({"class", "label", "labels", "target", "targets"})
ID_HEADERS = frozenset({"id", "ids"})


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


def _opened(path: Path, newline: str | None = "") -> IO[str]:
    return io.TextIOWrapper(open_users_file(path), encoding="utf-8-sig", newline=newline)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is not empty."""
    with _utf8(path), _opened(path) as file:
        reader = csv.reader(file)
        for cells in reader:
            if cells:
                yield reader.line_num, cells


def read_csv(path: Path, key: str | None = None) -> npt.NDArray[np.float64]:
    """Read the features of a table: columns of numbers; with a header those that the key chooses, or that are features.

    The key is names with commas between them: these columns, or after ``!`` all features but these. Ids and labels, by
    their names, and columns of text are no features.
    """
    header, skip = _header(path)
    if header is None:
        if key is not None:
            raise ValueError(f"{path} must have a header, a first line without any number, to choose {key!r} by")
        return _numbers(path, skip, None)
    chosen = _features(path, header, skip, key)
    if not chosen:
        fault = _first_fault(path, skip, None) if key is None else None
        alone = f"must hold a column of numbers, got ids, labels and text alone: {in_one_line(header)}"
        raise ValueError(f"{path} {fault or alone}")
    return _numbers(path, skip, None if chosen == list(range(len(header))) else chosen)


def csv_features(path: Path, key: str | None) -> list[str]:
    """Return the names of the columns that `read_csv` reads; none where there is no header."""
    header, skip = _header(path)
    return [] if header is None else [header[column] for column in _features(path, header, skip, key)]


def csv_columns(path: Path) -> list[str]:
    """Return the names of all columns of a table; none where there is no header."""
    return _header(path)[0] or []


def _header(path: Path) -> tuple[list[str] | None, int]:
    """Return the names of the columns, or None, and the lines before the numbers; a header holds no number."""
    first = list(islice(_rows(path), 2))
    header = bool(first) and not any(_is_number(cell) for cell in first[0][1])
    if len(first) <= header:
        raise ValueError(f"{path} must hold a row of numbers, got {'only a header' if header else 'blank lines'}")
    return ([cell.strip() for cell in first[0][1]], first[0][0]) if header else (None, 0)


def _features(path: Path, header: list[str], skip: int, key: str | None) -> list[int]:
    """Return the columns that a key names, or those that are features."""
    if key is not None and not key.startswith("!"):
        return [_place(path, header, name) for name in key.split(",")]
    left_out = set() if key is None else {_place(path, header, name) for name in key[1:].split(",")}
    left_out |= {column for column, name in enumerate(header) if name.lower() in LABEL_HEADERS | ID_HEADERS}
    maybe = [column for column in range(len(header)) if column not in left_out]
    _, cells = next(row for row in _rows(path) if row[0] > skip)
    text = {column for column in maybe if column < len(cells) and not _is_number(cells[column])}
    _refuse_numbers_among_text(path, header, skip, text)
    return [column for column in maybe if column not in text]


def _refuse_numbers_among_text(path: Path, header: list[str], skip: int, text: set[int]) -> None:
    """Refuse a column that begins with text and holds numbers further down: something is wrong with it."""
    first = None
    for line, cells in _rows(path) if text else ():
        if line <= skip:
            continue
        first = first or (line, cells)
        for column in text:
            if column < len(cells) and _is_number(cells[column]):
                raise ValueError(
                    f"{path} must hold numbers in all lines of column {_shown(header[column])} or in none, got "
                    f"{_shown(first[1][column])} in line {first[0]} and {_shown(cells[column])} in line {line}; "
                    f"{path.name}::!{in_one_line([header[column]])} leaves it out"
                )


def _place(path: Path, header: list[str], name: str) -> int:
    """Return the column of a name that occurs once."""
    places = [column for column, own in enumerate(header) if own == name.strip()]
    if len(places) != 1:
        found = in_one_line(header) if not places else f"{len(places)} columns of this name"
        raise ValueError(f"{path} must hold one column {name.strip()!r}, got: {found}")
    return places[0]


def _numbers(path: Path, skip: int, columns: list[int] | None) -> npt.NDArray[np.float64]:
    how: dict[str, Any] = {"delimiter": ",", "comments": None, "quotechar": '"'}
    try:
        with _opened(path) as file:  # a name would be looked at for an address or a compressed file
            return np.loadtxt(file, ndmin=2, skiprows=skip, usecols=columns, **how)
    except ValueError as error:
        # The fast reader counts rows, users count lines: look again, slowly, for the culprit.
        fault = _first_fault(path, skip, columns)
        raise ValueError(f"{path} {fault or f'must hold numbers, got: {error}'}") from error


def _first_fault(path: Path, skip: int, columns: list[int] | None) -> str | None:
    width = None
    for line, cells in _rows(path):
        if line <= skip:
            continue
        for column, cell in enumerate(cells):
            if (columns is None or column in columns) and not _is_number(cell):
                return f"must hold a number in line {line}, column {column + 1}, got {_shown(cell)}"
        width = len(cells) if width is None else width
        if len(cells) != width:
            return f"must hold {width} cells in line {line}, as in the lines before, got {len(cells)}"
    return None


def read_csv_labels(path: Path, key: str | None = None) -> npt.NDArray[Any]:
    """Read one column of labels, or several columns of numbers; or the column that the key names."""
    if key is not None:
        return _named_labels(path, key)
    rows = [(line, cells) for line, cells in _rows(path) if len(cells) > 1 or cells[0].strip()]
    if any(len(cells) > 1 for _, cells in rows):
        header, skip = _header(path)
        try:
            return _numbers(path, skip, None)
        except ValueError as error:
            hint = "" if header is None else f"; {path.name}::column chooses one of {in_one_line(header)}"
            raise ValueError(f"{error}{hint}") from None
    labels = _column(path, [(line, cells[0]) for line, cells in rows])
    return as_labels(labels[1:] if _has_header(labels) else labels)


def _named_labels(path: Path, key: str) -> npt.NDArray[Any]:
    """Read the labels of a column that the first line names; an empty cell is unknown, None."""
    rows = list(_rows(path))
    header = [cell.strip() for cell in rows[0][1]] if rows else []
    column = _place(path, header, key)
    short = next((line for line, cells in rows if len(cells) != len(header)), None)
    if short is not None:
        raise ValueError(f"{path} must hold {len(header)} cells in line {short}, as many as its header, got others")
    labels = [cells[column].strip() for _, cells in rows[1:]]
    if not any(labels):
        raise ValueError(f"{path} must hold labels in column {key!r}, got none")
    known = as_labels([label for label in labels if label])
    if all(labels):
        return known
    found = np.full(len(labels), None, object)
    found[np.array([bool(label) for label in labels])] = known.tolist()
    return found


def _has_header(labels: Sequence[str]) -> bool:
    first, others = labels[0], labels[1:]
    if not others or INTEGER.fullmatch(first):
        return False
    named = first.lower() in LABEL_HEADERS and first not in others
    return named or all(INTEGER.fullmatch(label) for label in others)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text, as they are.

    Parameters
    ----------
    path : pathlib.Path, a text in UTF-8

    Returns
    -------
    list of str, without what ends a line
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} must be a file of one text per line, got none")
    with _utf8(path), _opened(path, None) as file:
        return file.read().removesuffix("\n").split("\n")


def read_txt_labels(path: Path) -> npt.NDArray[Any]:
    """Read one label per line."""
    lines = enumerate(read_lines(path), 1)
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
