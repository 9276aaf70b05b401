"""Rows that bits draw, copied once from a source that is slow to read at random.

A row of a Parquet file or of a compressed chunk costs the decoding of all rows around it, and training sets are spread
over the whole of X: read bit by bit, the file would be decoded once per bit. So the rows of all bits are copied in one
pass, in the order of the file, to a temporary file that is then mapped into memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.diversity import Plan
from ilhash.vectors import VectorSource, opened, portable


class DrawnRows(VectorSource):
    """A source, some of whose rows are in a memory map; the others (of a second draw) are read from the source."""

    def __init__(self, base: VectorSource, numbers: NDArray[np.int64], copies: NDArray[Any]) -> None:
        super().__init__()
        self.base, self.numbers, self.copies = base, numbers, copies
        self.shape, self.dtype = base.shape, base.dtype

    def __str__(self) -> str:
        return str(self.base)

    @property
    def nbytes(self) -> int:
        """Bytes of the copied rows, the only ones that must be at hand."""
        return int(self.copies.nbytes)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "copies": portable(self.copies)}

    def fingerprint(self) -> str:
        """Identify the vectors by those of the source."""
        return self.base.fingerprint()

    def in_memory(self) -> DrawnRows:
        """Return the same with the copied rows in memory."""
        return DrawnRows(self.base, self.numbers, np.array(opened(self.copies)))

    def open(self) -> DrawnRows:
        """Open the temporary file in this process; the source is opened when a second draw needs it."""
        opened(self.copies)
        return self

    def _pick(self, rows: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        copies, numbers = opened(self.copies), self.numbers
        places = np.minimum(np.searchsorted(numbers, rows), len(numbers) - 1)
        there = numbers[places] == rows
        if there.all():
            yield copies[places]
            return
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        out[there], out[~there] = copies[places[there]], self.base.take(rows[~there])
        yield out

    def _blocks(self, first: int, last: int, step: int) -> Iterator[NDArray[Any]]:
        return self.base.blocks(step, first, last)


@contextmanager
def with_drawn_rows(X: Any, plan: Plan, bits: Iterable[int]) -> Iterator[Any]:
    """Give X as the bits read it: a source that is slow at random with its drawn rows copied, all else as it is."""
    if not isinstance(X, VectorSource) or X.by_row:
        yield X
        return
    numbers = np.empty(0, np.int64)
    for bit in bits:
        draw = plan.draw(bit)
        numbers = np.union1d(numbers, np.union1d(draw.rows, draw.others))
    if not len(numbers):
        yield X
        return
    with tempfile.TemporaryDirectory(prefix="ilhash-") as folder:
        file = Path(folder) / "rows"
        with file.open("wb") as stream:
            for piece in X.pick(numbers):
                stream.write(np.ascontiguousarray(piece, dtype=X.dtype).data)
        yield DrawnRows(X, numbers, np.memmap(file, X.dtype, "r", 0, (len(numbers), X.shape[1])))
