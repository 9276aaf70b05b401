"""Rows of numbers that lie in a file in one piece: of a .npy file, or of an HDF5 file that keeps them so.

They are read, not mapped: a map of a file that somebody cuts kills the process, and nothing can be said any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ilhash.vectors import VectorSource

from ._formats import Array, open_users_file

PIECE = 8 << 20  # bytes that are read by one call where rows are scattered
DENSE = 8  # rows of such a piece for each that is wanted: up to there one call is better than one for each row
AT_ONCE = 64 << 20  # bytes of rows that are read one by one and given together


class RowsInFile(VectorSource):
    """A matrix in one piece of a file, in C or Fortran order.

    Parameters
    ----------
    path : Path, the file
    offset : int, where the matrix begins, in bytes
    shape : (int, int), rows and columns
    dtype : dtype of the values
    fortran : bool, whether columns, not rows, lie one behind the other
    """

    by_row = True
    _state: tuple[int, int] | None = None  # size and time of the file as this process found it

    def __init__(
        self, path: Path, offset: int, shape: tuple[int, int], dtype: np.dtype[Any], fortran: bool = False
    ) -> None:
        super().__init__()
        self.path, self.offset, self.shape, self.dtype, self.fortran = path, offset, shape, dtype, fortran
        with open_users_file(path) as file:
            self._same(file)

    def __str__(self) -> str:
        return str(self.path)

    def _same(self, file: IO[bytes]) -> None:
        """Refuse a file that was cut, extended or written since it was opened."""
        about = os.fstat(file.fileno())
        now = (about.st_size, about.st_mtime_ns)
        self._state = self._state or now
        if now != self._state or about.st_size < self.offset + self.nbytes:
            raise ValueError(
                f"{self.path} must stay as it is while it is read, got {now[0]} bytes, written at {now[1]}, after "
                f"{self._state[0]} bytes, written at {self._state[1]}"
            )

    def _fill(self, file: IO[bytes], out: Array, place: int) -> None:
        room = out.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(room):
            got = _read_at(file, room[done:], self.offset + place + done)
            if not got:
                raise ValueError(f"{self.path} must stay as it is while it is read, got its end before all of its rows")
            done += got

    def _read(self, file: IO[bytes], first: int, last: int) -> Array:
        self._same(file)
        n, width = self.shape
        size = self.dtype.itemsize
        if not self.fortran:
            rows = np.empty((last - first, width), self.dtype)
            self._fill(file, rows, first * width * size)
            return rows
        columns = np.empty((width, last - first), self.dtype)
        for j in range(width):
            self._fill(file, columns[j], (j * n + first) * size)
        return columns.T

    def _pick(self, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
        row_bytes = max(1, self.shape[1] * self.dtype.itemsize)
        most = max(1, PIECE // row_bytes)
        with open_users_file(self.path) as file:
            while len(rows):
                # As many rows as are read together: those of one piece of the file, or else one by one.
                near = int(np.searchsorted(rows, rows[0] + most))
                together = self.fortran or near * DENSE >= most
                wanted = rows[: near if together else max(1, AT_ONCE // row_bytes)]
                yield self._around(file, wanted) if together else self._one_by_one(file, wanted)
                rows = rows[len(wanted) :]

    def _around(self, file: IO[bytes], rows: npt.NDArray[np.int64]) -> Array:
        piece = self._read(file, int(rows[0]), int(rows[-1]) + 1)
        return piece if len(piece) == len(rows) else piece[rows - rows[0]]

    def _one_by_one(self, file: IO[bytes], rows: npt.NDArray[np.int64]) -> Array:
        self._same(file)
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        room, size = out.reshape(-1).view(np.uint8).data, self.shape[1] * self.dtype.itemsize
        for number, row in enumerate(rows.tolist()):
            part = room[number * size : (number + 1) * size]
            if _read_at(file, part, self.offset + row * size) != size:
                self._fill(file, out[number], row * size)  # an interrupted call: what is missing comes with the next
        return out

    def _blocks(self, first: int, last: int, step: int) -> Iterator[Array]:
        with open_users_file(self.path) as file:
            while first < last:
                until = min(last, first + step)
                yield self._read(file, first, until)
                first = until


def _read_at(file: IO[bytes], room: memoryview, place: int) -> int:
    """Read what fits from a place of a file on; return how much it was."""
    if hasattr(os, "preadv"):
        return os.preadv(file.fileno(), [room], place)
    file.seek(place)
    return file.readinto(room)  # type: ignore[attr-defined, no-any-return]
