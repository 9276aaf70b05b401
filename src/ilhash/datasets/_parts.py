"""A directory of files as one matrix: their rows one after the other, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.sources import VectorSource, opened, portable

from ._formats import Array

ROWS_AT_ONCE = 8192  # taken from a memory map


class PartsSource(VectorSource):
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
        self.begins = np.concatenate([[0], np.cumsum([len(part) for part in self.parts])]).astype(np.int64)
        self.shape = (int(self.begins[-1]), width)
        self.dtype = np.result_type(*(part.dtype for part in self.parts))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "parts": [portable(part) for part in self.parts]}

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> PartsSource:
        """Open all files in this process."""
        self.parts = [opened(part) for part in self.parts]
        super().open()
        return self

    def _part(self, number: int) -> Any:
        self.parts[number] = opened(self.parts[number])
        return self.parts[number]

    def _pick(self, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
        part_of = np.searchsorted(self.begins, rows, side="right") - 1
        for number in np.unique(part_of):
            begin, end = np.searchsorted(part_of, [number, number + 1])
            for piece in _picked(self._part(number), rows[begin:end] - self.begins[number]):
                yield np.asarray(piece, dtype=self.dtype)

    def _blocks(self, first: int, last: int, step: int) -> Iterator[Array]:
        for number in range(len(self.parts)):
            begin = int(self.begins[number])
            low, high = max(0, first - begin), min(int(self.begins[number + 1]), last) - begin
            if low < high:
                for block in _blocks_of(self._part(number), low, high, step):
                    yield np.asarray(block, dtype=self.dtype)


def _blocks_of(part: Any, first: int, last: int, step: int) -> Iterator[Array]:
    if isinstance(part, VectorSource):
        yield from part.blocks(step, first, last)
    else:
        for begin in range(first, last, step):
            yield part[begin : min(begin + step, last)]


def _picked(part: Any, rows: npt.NDArray[np.int64]) -> Iterator[Array]:
    if isinstance(part, VectorSource):
        yield from part.pick(rows)
    else:
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            yield part[rows[begin : begin + ROWS_AT_ONCE]]
