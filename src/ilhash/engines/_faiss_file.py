"""Codes and ids of a faiss index file, read without faiss.

faiss believes the numbers in a file, so a hostile one can crash it. This reads the four kinds that hold codes as they
are (Flat, IDMap and IDMap2, IVF, HNSW), takes nothing beyond the end of the file, and uses no more memory than the file
has bytes. Anything else is refused by its name.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.storage import DamagedFileError

Part = tuple[NDArray[np.uint8], NDArray[np.int64]]  # codes, ids
MOST_NESTED = 4  # an IDMap over an IVF over a Flat is three


def parse(data: bytes, where: str) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
    """Return what an index holds.

    Parameters
    ----------
    data : bytes, the file
    where : str, its name, for sentences

    Returns
    -------
    codes (n, bytes), ids (n,) and bits of a code; ids ascend
    """
    reader = _Reader(data, where)
    codes, ids = reader.index(MOST_NESTED)
    if reader.place != len(data):
        raise reader.refusal(f"{len(data) - reader.place} bytes behind its end")
    order = np.argsort(ids, kind="stable")
    return codes[order], ids[order], 8 * codes.shape[1]


class _Reader:
    """A place in the bytes of a file, which goes forward."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where, self.place = data, where, 0

    def refusal(self, got: str) -> DamagedFileError:
        rule = f"{self.where} must be a faiss index of codes (IndexBinaryFlat, IVF, HNSW or IDMap)"
        return DamagedFileError(f"{rule}, got {got}")

    def take(self, n: int) -> memoryview:
        if not 0 <= n <= len(self.data) - self.place:
            raise self.refusal("a file that ends before its content")
        self.place += n
        return memoryview(self.data)[self.place - n : self.place]

    def values(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def array(self, dtype: str, n: int) -> NDArray[Any]:
        return np.frombuffer(self.take(n * np.dtype(dtype).itemsize), dtype)

    def vector(self, dtype: str) -> NDArray[Any]:
        return self.array(dtype, self.values("<Q")[0])

    def index(self, levels: int) -> Part:
        """Read one index, with those inside it."""
        name = bytes(self.take(4))
        kinds = {b"IBxF": self.flat, b"IBMp": self.mapped, b"IBM2": self.mapped, b"IBwF": self.ivf, b"IBHf": self.hnsw}
        if name not in kinds or levels == 0:
            raise self.refusal(f"one of kind {name!r}")
        n_bits, width, n, _, _ = self.values("<iiq?i")
        if width < 1 or n_bits != 8 * width or n < 0:
            raise self.refusal(f"{n} codes of {n_bits} bits in {width} bytes")
        codes, ids = kinds[name](n, width, levels - 1)
        if codes.shape != (n, width) or len(ids) != n:
            raise self.refusal(f"{n} codes of {width} bytes announced, and {codes.shape} there")
        return codes, ids

    def flat(self, n: int, width: int, levels: int) -> Part:
        content = self.vector("u1")
        if len(content) != n * width:
            raise self.refusal(f"{len(content)} bytes for {n} codes of {width}")
        return content.reshape(n, width), np.arange(n)

    def mapped(self, n: int, width: int, levels: int) -> Part:
        codes, inner = self.index(levels)
        ids = self.vector("<i8")
        self.check_range(inner, 0, len(ids))
        return codes, ids[inner]

    def ivf(self, n: int, width: int, levels: int) -> Part:
        n_lists, _ = self.values("<QQ")
        self.index(levels)  # of the centres
        (direct,) = self.values("<b")
        self.vector("<i8")
        if direct == 2:
            self.vector("<i8,<i8")
        codes, ids = self.lists(n_lists, width)
        return codes, ids

    def lists(self, n_lists: int, width: int) -> Part:
        name, n_there, width_there = bytes(self.take(4)), *self.values("<QQ")
        if name != b"ilar" or (n_there, width_there) != (n_lists, width):
            raise self.refusal(f"lists of kind {name!r} with codes of {width_there} bytes")
        kind = bytes(self.take(4))
        if kind not in (b"full", b"sprs"):
            raise self.refusal(f"lists of kind {kind!r}")
        sizes = self.vector("<u8")
        sizes = sizes if kind == b"full" else sizes[1::2]  # of pairs of a list's number and its size
        codes, ids = [np.zeros((0, width), np.uint8)], [np.zeros(0, np.int64)]
        for size in sizes.tolist():
            codes.append(self.array("u1", size * width).reshape(size, width))
            ids.append(self.array("<i8", size))
        return np.concatenate(codes), np.concatenate(ids)

    def hnsw(self, n: int, width: int, levels: int) -> Part:
        self.vector("<f8")
        steps, heights, offsets, neighbours = (self.vector(kind) for kind in ("<i4", "<i4", "<u8", "<i4"))
        entry, top, _, _, _ = self.values("<iiiii")
        self.check_range(neighbours, -1, n)
        self.check_range(np.array([entry]), -1, n)
        ends = offsets.astype(np.int64)
        self.check_range(steps, 0, len(neighbours) + 1 if n else 1 << 30)
        self.check_range(heights, 1, len(steps))
        whole = len(heights) == n and len(offsets) == n + 1 and ends[0] == 0 and ends[-1] == len(neighbours)
        if not whole or (np.diff(ends) != steps[heights]).any() or top != heights.max(initial=0) - 1:
            raise self.refusal("a graph whose parts do not fit")
        return self.index(levels)

    def check_range(self, values: NDArray[Any], least: int, beyond: int) -> None:
        if values.size and (values.min() < least or values.max() >= beyond):
            raise self.refusal(f"numbers of codes from {values.min()} to {values.max()}, of {beyond} that there are")
