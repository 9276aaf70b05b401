"""Vectors that stay where they are: files that are read by rows, and that travel to workers by name.

``VectorSource`` is what a file format must offer; ``ilhash.vectors.io`` has one per format. A memory map needs none of
it while it stays in its process; to travel, it becomes a ``MappedFile``.
"""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.vectors._sparse import SparseRows

Array = NDArray[Any]


def fingerprint(X: Any) -> str:
    """Identify X by shape, type and up to 64 rows spread over it: cheap, also for a map larger than memory."""
    return X.fingerprint() if isinstance(X, VectorSource | SparseRows) else _fingerprint(X)


def _fingerprint(X: Any) -> str:
    digest = hashlib.sha256(f"{X.shape} {X.dtype.str}".encode())
    digest.update(np.ascontiguousarray(X[np.unique(np.linspace(0, len(X) - 1, 64).astype(np.int64))]).tobytes())
    return digest.hexdigest()


class VectorSource(ABC):
    """A matrix in a file, read by rows: what ``fit`` and ``transform`` take in the place of an array.

    A source gives ``shape`` and ``dtype`` without reading vectors, ``_pick`` for some rows and ``_blocks`` for a
    stretch of them. It pickles by name and opens its file anew in the process that it comes to.
    """

    ndim = 2
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    by_row = False  # whether a row costs no more than its bytes, wherever it is: nothing around it is decoded
    content: str | None = None  # fingerprint in the process that it comes from
    _content: str | None = None  # and in this one

    def __init__(self) -> None:
        self._lock = threading.RLock()  # no format's library promises to be read by several threads at once

    @abstractmethod
    def _pick(self, rows: NDArray[np.int64]) -> Iterator[Array]:
        """Give some rows, whose numbers are in ascending order without repetition, in pieces of any length."""

    @abstractmethod
    def _blocks(self, first: int, last: int, step: int) -> Iterator[Array]:
        """Give the rows from ``first`` to ``last`` in blocks of at most ``step``."""

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix as an array."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: NDArray[np.int64]) -> Array:
        """Return some rows, in any order, also repeated; only what holds them is read."""
        distinct, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        if len(distinct) and not (distinct[0] >= 0 and distinct[-1] < len(self)):
            raise IndexError(f"rows must lie between 0 and {len(self) - 1}, got {distinct[0]} to {distinct[-1]}")
        found = np.empty((0, self.shape[1]), self.dtype)
        done = 0
        for piece in self.pick(distinct):
            if len(piece) == len(distinct):
                found = piece
            else:
                found = found if len(found) else np.empty((len(distinct), self.shape[1]), self.dtype)
                found[done : done + len(piece)] = piece
            done += len(piece)
        if done != len(distinct):
            raise ValueError(f"{self} must hold the {len(self)} rows that it declares, got fewer")
        in_order = len(distinct) == len(rows) and bool((np.diff(places) > 0).all())
        return found if in_order else found[places]

    def pick(self, rows: NDArray[np.int64]) -> Iterator[Array]:
        """Give rows, whose numbers ascend without repetition, in pieces: in bounded memory and one pass."""
        return self._locked(self._pick(rows))

    def blocks(self, step: int, first: int = 0, last: int | None = None) -> Iterator[Array]:
        """Give the rows from ``first`` to ``last``, by default all, in order and in blocks of at most ``step``."""
        end = len(self) if last is None else last
        return self._complete(self._locked(self._blocks(first, end, step)), end - first)

    def _complete(self, parts: Iterator[Array], n_rows: int) -> Iterator[Array]:
        for part in parts:
            n_rows -= len(part)
            yield part
        if n_rows > 0:
            raise ValueError(f"{self} must hold the {len(self)} rows that it declares, got {n_rows} fewer")

    def _locked(self, parts: Iterator[Array]) -> Iterator[Array]:
        while True:
            with self._lock:  # not while the caller works on a part
                part = next(parts, None)
            if part is None:
                return
            yield part

    def __getitem__(self, which: Any) -> Array:
        if isinstance(which, slice):
            first, last, stride = which.indices(len(self))
            if stride != 1:
                return self.take(np.arange(first, last, stride))
            parts = list(self.blocks(max(1, last - first), first, last))
            if len(parts) == 1:
                return parts[0]
            return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)
        if isinstance(which, int | np.integer):
            row: Array = self.take(np.array([range(len(self))[which]]))[0]
            return row
        rows = np.asarray(which)
        return self.take(np.flatnonzero(rows) if rows.dtype == bool else rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a source of vectors cannot be an array without a copy")
        return np.asarray(self[:], dtype=dtype)

    def files(self) -> list[Path]:
        """Return the files that hold the vectors."""
        return [self.path] if hasattr(self, "path") else []

    def fingerprint(self) -> str:
        """Identify the vectors, as those of an array; read once."""
        if self._content is None:
            self._content = _fingerprint(self)
        return self._content

    def open(self) -> VectorSource:
        """Open the file in this process, or say why that cannot be, or that it is another file; return itself."""
        if self.content is not None and self.fingerprint() != self.content:
            raise ValueError(f"{self} must be the same on a worker, got other content")
        return self

    def in_memory(self) -> Any:
        """Return all vectors as an array."""
        return np.asarray(self)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return {**state, "content": self.content or self.fingerprint()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        VectorSource.__init__(self)
        self.__dict__.update(state)


# ------------------------------------------------------------------------------------------------ memory maps


@dataclass(frozen=True)
class MappedFile:
    """A memory map by name, for a worker that can open the file itself; what it finds there is compared."""

    path: str
    offset: int  # where the array begins, in bytes
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    size: int  # of the file, in bytes
    content: str  # fingerprint of the array

    @classmethod
    def of(cls, X: Array) -> MappedFile | None:
        """Describe a memory map or a view of one; None where the file may not hold what the array does."""
        root = _root(X)
        if root is None or root.filename is None or root.mode == "c" or min(X.strides) < 0:
            return None
        try:
            size = os.stat(root.filename).st_size
        except OSError:
            return None
        begin = X.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        path = os.path.abspath(root.filename)
        return cls(path, root.offset + begin, X.shape, X.strides, X.dtype.str, size, fingerprint(X))

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix as an array."""
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def open(self) -> Array:
        """Map the file in this process, once, and make sure that it is the same."""
        try:
            file = os.stat(self.path)
        except OSError as error:
            raise FileNotFoundError(f"{self.path} must be there for a worker to open, got none: {error}") from None
        return _kept(file, self, partial(self._map, file.st_size))

    def _map(self, size: int) -> Array:
        if size != self.size:
            raise ValueError(f"{self.path} must be the same file on a worker, got {size} bytes instead of {self.size}")
        dtype = np.dtype(self.dtype)
        extent = sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)) + dtype.itemsize
        flat = np.memmap(self.path, np.uint8, "r", self.offset, (extent,))
        array: Array = np.ndarray(self.shape, dtype, flat, 0, self.strides)
        if fingerprint(array) != self.content:
            raise ValueError(f"{self.path} must be the same file on a worker, got other content")
        return array


_keeping = threading.Lock()
_last_kept: list[tuple[Any, Array]] = []


def _kept(file: os.stat_result, part: Any, mapped: Callable[[], Array]) -> Array:
    """Return the map of a part of a file that this process keeps, which is the one it was last asked for."""
    # A file that was written anew since is another file.
    key = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, part)
    with _keeping:
        if not _last_kept or _last_kept[0][0] != key:
            _last_kept[:] = [(key, mapped())]
        return _last_kept[0][1]


def kept_map(X: Array) -> Array:
    """Return the memory map that this process already has of the same part of the same file, or keep this one.

    A worker process receives a new map of X with every bit, and each would read all its pages in anew. Any other array
    is given back as it is.
    """
    if not isinstance(X, np.memmap) or X.filename is None:
        return X
    return _kept(os.stat(X.filename), (X.offset, X.shape, X.strides, X.dtype.str), lambda: X)


def _root(X: Any) -> Any:
    """Return the memory map that an array is a view of, however far back, or None."""
    root = None
    while isinstance(X, np.ndarray):
        root = X if isinstance(X, np.memmap) else root
        X = X.base
    return root


# ------------------------------------------------------------------------------------------------ either


class SelectedRows(VectorSource):
    """Some rows of an array, a map or a source, in ascending order, none of them copied."""

    def __init__(self, base: Any, numbers: NDArray[np.int64]) -> None:
        super().__init__()
        self.base, self.numbers = base, numbers
        self.shape, self.dtype = (len(numbers), base.shape[1]), base.dtype

    def __str__(self) -> str:
        return f"{len(self)} rows of {self.base if isinstance(self.base, VectorSource) else 'X'}"

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "base": portable(self.base)}

    @property
    def by_row(self) -> bool:  # type: ignore[override]
        """Whether the rows are selected from what is read by row."""
        return bool(getattr(self.base, "by_row", True))

    def files(self) -> list[Path]:
        """Return the files that hold the vectors."""
        return self.base.files() if isinstance(self.base, VectorSource) else []

    def open(self) -> SelectedRows:
        """Open what the rows are of in this process."""
        self.base = opened(self.base)
        super().open()
        return self

    def _pick(self, rows: NDArray[np.int64]) -> Iterator[Array]:
        base, numbers = opened(self.base), self.numbers[rows]
        return base.pick(numbers) if isinstance(base, VectorSource) else iter([base[numbers]])

    def _blocks(self, first: int, last: int, step: int) -> Iterator[Array]:
        for begin in range(first, last, step):
            yield self.take(np.arange(begin, min(begin + step, last)))


def on_disk(X: Any) -> bool:
    """Whether X is a source, a memory map, or a view of one, so that reading a row may read a disk."""
    return isinstance(X, VectorSource) or _root(X) is not None


def state_of_files(X: Any) -> str | None:
    """Identify the files behind a source or a map by their sizes and the times of their last change.

    None of an array in memory. Whoever writes to one of the files changes it, which a look at 64 rows may not see.
    """
    if isinstance(X, VectorSource):
        files = X.files()
    else:
        root = _root(X)
        files = [Path(root.filename)] if root is not None and root.filename is not None else []
    if not files:
        return None
    about = sorted(map(_size_and_time, files))
    return hashlib.sha256(repr(about).encode()).hexdigest()


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        about = os.stat(path)
    except OSError:  # a map outlives the name of its file
        return -1, -1
    return about.st_size, about.st_mtime_ns


def portable(X: Any) -> Any:
    """Return what travels in the place of an array or source: a MappedFile where it is a map, X itself otherwise."""
    return (MappedFile.of(X) or X) if isinstance(X, np.ndarray) else X


def in_memory(X: Any) -> Any:
    """Return an array, or a source, that travels with all its rows."""
    if isinstance(X, SparseRows):
        return X
    return X.in_memory() if isinstance(X, VectorSource) else np.array(opened(X))


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of an array, a source, or a frame, which stays one: its columns have names."""
    if isinstance(X, VectorSource):
        return X.take(rows)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if hasattr(X, "column_names") else X[rows]


def blocks(X: Any, step: int, first: int = 0, last: int | None = None) -> Iterator[Array]:
    """Give a stretch of rows of an array or a source, by default all, in order and in blocks of at most ``step``."""
    end = len(X) if last is None else last
    if isinstance(X, VectorSource):
        return X.blocks(step, first, end)
    return (X[begin : min(begin + step, end)] for begin in range(first, end, step))


def opened(X: Any) -> Any:
    """Return what is read by rows: the array, the map of this process where X is a MappedFile, or the source."""
    return X.open() if isinstance(X, MappedFile) else X
