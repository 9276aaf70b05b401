"""usearch: an index file of bits (``b1``) over distinct codes, and its items beside it.

usearch keeps codes in a graph alone. ``"exact"`` writes the thinnest graph that it makes, in seconds, and scans;
``"hnsw"`` builds one that can be searched. Bytes of codes are those of ilhash, most significant bit first, filled up
with zeros to whole bytes; Hamming distances are the same in any order of bits that all codes of an index share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._extras import require
from ilhash.engines._postings import PostingsEngine
from ilhash.engines._settings import BLOCK, Codes
from ilhash.engines._shelf import Found, Scan

THIN = {"connectivity": 2, "expansion_add": 1}  # of a graph that nobody searches
GRAPH = {"connectivity": 16, "expansion_add": 128}
LEAST_EFFORT = 128  # codes that a search in a graph keeps in sight
FIRST = 1024  # codes that a search within a radius asks for, then eight times as many, ...


def _usearch() -> Any:
    return require("usearch.index", "usearch", "the engine usearch")


class Usearch(PostingsEngine):
    """Items whose distinct codes a usearch index holds."""

    name = "usearch"
    modes = ("exact", "hnsw")
    promise = (
        "A change is in the files wholly or not at all, and durable when add, update or remove return; each of them "
        "writes both files anew, so many items at once cost little more than one."
    )

    def _version(self) -> str:
        return str(require("usearch", "usearch", "the engine usearch").__version__)

    def _empty(self, mode: str, width: int) -> Any:
        effort = GRAPH if mode == "hnsw" else THIN
        return _usearch().Index(ndim=8 * width, metric="hamming", dtype="b1", **effort)

    def _built(self, mode: str, codes: Codes) -> Any:
        return self._grown(self._empty(mode, codes.shape[1]), mode, codes, 0)

    def _grown(self, index: Any, mode: str, codes: Codes, first: int) -> Any:
        for begin in range(first, len(codes), BLOCK):
            some = np.ascontiguousarray(codes[begin : begin + BLOCK])
            index.add(np.arange(begin, begin + len(some), dtype=np.uint64), some)
        return index

    def _dumped(self, index: Any) -> Any:
        return index.save()

    def _loaded(self, data: bytes, mode: str) -> tuple[Any, Codes]:
        width = -(-self.n_bits // 8)
        index = self._empty(mode, width)
        effort = index.expansion_add
        index.load(data)
        if index.ndim != 8 * width or str(index.dtype) != str(self._empty(mode, width).dtype):
            raise ValueError(f"{index.ndim} dimensions of {index.dtype} for codes of {width} bytes")
        index.expansion_add = effort  # which files do not hold
        codes = np.empty((len(index), width), np.uint8)
        for begin in range(0, len(codes), BLOCK):
            found = index.get(np.arange(begin, min(begin + BLOCK, len(codes)), dtype=np.uint64))
            codes[begin : begin + BLOCK] = np.stack(found)
        return index, codes

    def _asked(self, index: Any, queries: Codes, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        index.expansion_search = max(LEAST_EFFORT, 2 * k)
        numbers, distances = np.full((len(queries), k), -1), np.zeros((len(queries), k), np.int32)
        for row in range(len(queries)):  # one by one: a batch fills up rows of which fewer were found
            found = index.search(queries[row], k)
            numbers[row, : len(found)] = found.keys
            distances[row, : len(found)] = found.distances
        return numbers, distances

    def _scan(self, codes: Codes) -> Scan:
        return _Scan(codes)


class _Scan:
    """Exact search with usearch's own scan of an array."""

    def __init__(self, codes: Codes) -> None:
        self.codes = np.ascontiguousarray(codes)

    def nearest(self, queries: Codes, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        found = _usearch().search(self.codes, queries, k, "hamming", exact=True, dtype="b1")
        shape = (len(queries), k)  # of one query usearch gives one row
        return found.distances.astype(np.int32).reshape(shape), found.keys.astype(np.int64).reshape(shape)

    def within(self, query: Codes, radius: int) -> Found:
        k = min(FIRST, len(self.codes))
        while True:
            distances, rows = (part[0] for part in self.nearest(query, k))
            if distances[-1] > radius or k == len(self.codes):
                return rows[distances <= radius], distances[distances <= radius]
            k = min(8 * k, len(self.codes))
