"""faiss: a binary index file over distinct codes, and its items beside it.

``"exact"`` keeps an IndexBinaryFlat, ``"ivf"`` an IndexBinaryIVF, ``"hnsw"`` an IndexBinaryHNSW. Bytes of codes are
those of ilhash, most significant bit first, filled up with zeros: Hamming distances are the same in any order of bits,
as long as all codes of an index have the same one.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._checks import check_choice
from ilhash._extras import require
from ilhash.engines._contract import Engine
from ilhash.engines._faiss_file import parse
from ilhash.engines._postings import PostingsEngine
from ilhash.engines._settings import Codes, Ids
from ilhash.engines._shelf import Found, Scan
from ilhash.storage import read_file, write_file

LINKS = 16  # of a code in a graph, as faiss counts them
LEAST_EFFORT = 128  # codes that a search in a graph keeps in sight
SAMPLE = 50  # codes per list from which the centres of lists are learned
PROBED = 8  # one list in so many is looked at


def _faiss() -> Any:
    return require("faiss", "faiss", "the engine faiss")


class Faiss(PostingsEngine):
    """Items whose distinct codes a faiss index holds."""

    name = "faiss"
    modes = ("exact", "ivf", "hnsw")
    promise = (
        "A change is in the files wholly or not at all, and durable when add, update or remove return; each of them "
        "writes both files anew, so many items at once cost little more than one."
    )

    def _version(self) -> str:
        return str(_faiss().__version__)

    def _built(self, mode: str, codes: Codes) -> Any:
        return _built(mode, codes)

    def _grown(self, index: Any, mode: str, codes: Codes, first: int) -> Any:
        if mode == "ivf" and (first == 0 or _n_lists(len(codes)) > 1.5 * index.nlist):  # none yet, or too long ones
            return _built(mode, codes)
        index.add(np.ascontiguousarray(codes[first:]))
        return index

    def _dumped(self, index: Any) -> Any:
        return _faiss().serialize_index_binary(index)

    def _loaded(self, data: bytes, mode: str) -> tuple[Any, Codes]:
        codes, _, _ = parse(data, str(self.pair.path))  # which refuses what faiss would believe
        index = _faiss().deserialize_index_binary(np.frombuffer(data, np.uint8))
        return index, codes

    def _asked(self, index: Any, queries: Codes, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        if self._kind == "hnsw":
            index.hnsw.efSearch = max(LEAST_EFFORT, 2 * k)
        else:
            index.nprobe = max(8, -(-index.nlist // PROBED))
        distances, numbers = index.search(np.ascontiguousarray(queries), k)
        return numbers, distances

    def _scan(self, codes: Codes) -> Scan:
        return _FlatScan(codes)


class _FlatScan:
    """Exact search with IndexBinaryFlat."""

    def __init__(self, codes: Codes) -> None:
        self.index = _built("exact", codes)

    def nearest(self, queries: Codes, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        distances, rows = self.index.search(np.ascontiguousarray(queries), k)
        return distances, rows

    def within(self, query: Codes, radius: int) -> Found:
        _, distances, rows = self.index.range_search(np.ascontiguousarray(query), radius + 1)  # faiss means "below"
        return rows, distances.astype(np.int32)


def _n_lists(n: int) -> int:
    return max(1, min(math.isqrt(n), n // SAMPLE))


def _built(mode: str, codes: Codes) -> Any:
    """Return an index over codes, numbered from 0."""
    index = _trained(mode, codes)
    if len(codes):
        index.add(np.ascontiguousarray(codes))
    return index


def _trained(mode: str, codes: Codes) -> Any:
    """Return an empty index that is ready for codes."""
    faiss = _faiss()
    n_bits = 8 * codes.shape[1]
    if mode == "hnsw":
        index = faiss.IndexBinaryHNSW(n_bits, LINKS)
    elif mode == "ivf":
        index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(n_bits), n_bits, _n_lists(len(codes)))
        index.cp.min_points_per_centroid = 1  # below its default faiss prints a warning, which nobody can act upon
        if len(codes):
            sample = np.random.default_rng(0).permutation(len(codes))[: SAMPLE * index.nlist]
            index.train(np.ascontiguousarray(codes[np.sort(sample)]))
    else:
        index = faiss.IndexBinaryFlat(n_bits)
    return index


def import_index(path: str | os.PathLike[str]) -> tuple[Codes, Ids, int]:
    """Return codes and ids of a faiss binary index file: Flat, IVF, HNSW, IDMap or IDMap2.

    The file is read by ilhash, not by faiss, so that a damaged or hostile one is refused and crashes nothing.
    Bytes are taken as they are. Codes that something else made least significant bit first have the same distances to
    each other, but not to codes of ilhash: put them through :func:`ilhash.codes.from_lsb_first`.

    Parameters
    ----------
    path : str or path, the file

    Returns
    -------
    codes, ids and n_bits : uint8 array (n, n_bits / 8), int64 array (n,), ascending, and bits, a multiple of 8
    """
    file = Path(path)
    codes, ids, n_bits = parse(read_file(file, most=2**62), str(file))
    return codes, ids, n_bits


def export_index(engine: Engine, path: str | os.PathLike[str], kind: str = "flat") -> None:
    """Write all items of an engine, of any kind, to a file that ``faiss.read_index_binary`` opens.

    It is an IndexBinaryIDMap2 over one row per item, whose codes are filled up with zeros to whole bytes.

    Parameters
    ----------
    engine : Engine, whose ids are numbers other than -1, which faiss takes for "nothing"
    path : str or path, the file, which is replaced
    kind : {"flat", "ivf", "hnsw"}, default "flat"; where codes repeat, a graph over rows misses near items
    """
    check_choice("kind", kind, ("flat", "ivf", "hnsw"))
    if engine.settings.ids != "int":
        raise ValueError("engine must have numbers as ids to become an index of faiss, got texts")
    blocks = list(engine.blocks())
    ids = np.concatenate([ids for ids, _ in blocks]) if blocks else np.zeros(0, np.int64)
    if (ids == -1).any():
        raise ValueError("engine must have ids other than -1, which means nothing to faiss, got one of it")
    faiss = _faiss()
    width = -(-engine.n_bits // 8)
    codes = np.concatenate([codes for _, codes in blocks]) if blocks else np.zeros((0, width), np.uint8)
    inner = _trained(kind, codes)  # which must live as long as what is built over it
    index = faiss.IndexBinaryIDMap2(inner)
    if len(ids):
        index.add_with_ids(np.ascontiguousarray(codes), ids)
    write_file(Path(path), [faiss.serialize_index_binary(index)])
