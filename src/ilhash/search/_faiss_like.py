"""An index in the clothes of faiss: for code that asks ``index.search(x, k)`` and expects ``D, I``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import as_array, check_count
from ilhash._extras import require
from ilhash._ids import as_ids
from ilhash.search._index import HammingIndex

NOTHING = -1  # the id, and below the distance, that faiss gives where there are fewer than k items
FARTHEST = 2**31 - 1


class FaissLike:
    """A :class:`HammingIndex` behind the methods and attributes of ``faiss.IndexBinary``; made by :func:`as_faiss`.

    Parameters
    ----------
    index : HammingIndex, what is searched: changes of either are changes of both

    Examples
    --------
    >>> import numpy as np
    >>> view = as_faiss(HammingIndex(np.array([[0], [7]], np.uint8), n_bits=8))
    >>> view.ntotal, view.d
    (2, 8)
    """

    is_trained = True

    def __init__(self, index: HammingIndex) -> None:
        self.index = index

    @property
    def d(self) -> int:
        """Bits of a code, filled up to whole bytes as faiss wants them."""
        return 8 * self.code_size

    @property
    def code_size(self) -> int:
        """Bytes of a code."""
        return packed.bytes_per_code(self.index.n_bits)

    @property
    def ntotal(self) -> int:
        """Number of items."""
        return len(self.index)

    def search(self, x: Any, k: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the k nearest items of each code; of equal distances the smallest ids, always.

        Parameters
        ----------
        x : uint8 array (n, code_size), packed codes
        k : int, how many; beyond the number of items ids are -1 and distances 2^31 - 1, as in faiss

        Returns
        -------
        D : int32 array (n, k), Hamming distances
        I : int64 array (n, k), ids
        """
        wanted = check_count("k", k)
        hits = self.index.search(x, min(wanted, max(1, self.ntotal)))
        distances = np.full((len(hits.ids), wanted), FARTHEST, np.int32)
        ids = np.full((len(hits.ids), wanted), NOTHING, np.int64)
        found = hits.ids.shape[1]
        distances[:, :found], ids[:, :found] = hits.distances, hits.ids
        return distances, ids

    def range_search(self, x: Any, radius: int) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.int64]]:
        """Return all items whose distance is below a radius, which itself is not an answer, as in faiss.

        Parameters
        ----------
        x : uint8 array (n, code_size), packed codes
        radius : int, the smallest distance that is no answer

        Returns
        -------
        lims : uint64 array (n + 1,), the answers to query i stand at lims[i] to lims[i + 1] of the others
        D : float32 array, Hamming distances
        I : int64 array, ids
        """
        if check_count("radius", radius, 0) == 0:
            queries = packed.check(x, self.index.n_bits, "x")
            return np.zeros(len(queries) + 1, np.uint64), np.zeros(0, np.float32), np.zeros(0, np.int64)
        hits = self.index.within(x, radius - 1)
        return hits.offsets.astype(np.uint64), hits.distances.astype(np.float32), hits.ids.astype(np.int64)

    def add(self, x: Any) -> None:
        """Add items, numbered on.

        Parameters
        ----------
        x : uint8 array (n, code_size), packed codes
        """
        self.index.add(x)

    def add_with_ids(self, x: Any, ids: Any) -> None:
        """Add items with ids of their own.

        Parameters
        ----------
        x : uint8 array (n, code_size), packed codes
        ids : array_like (n,), whole numbers other than -1, each new
        """
        codes = packed.check(x, self.index.n_bits, "x")
        names = as_ids(ids, len(codes), "int")
        if (names == NOTHING).any():
            raise ValueError("ids must be other than -1, which means nothing to faiss, got one of it")
        self.index.add(codes, names)

    def remove_ids(self, ids: Any) -> int:
        """Remove items.

        Parameters
        ----------
        ids : array_like, whole numbers; those that are not there are passed over

        Returns
        -------
        int, how many were removed
        """
        wanted = np.atleast_1d(as_array("ids", ids))
        there = [name for name in np.unique(as_ids(wanted, wanted.size, "int")).tolist() if name in self.index]
        if there:
            self.index.remove(there)
        return len(there)

    def reconstruct(self, key: int) -> NDArray[np.uint8]:
        """Return the code of an item.

        Parameters
        ----------
        key : int, its id

        Returns
        -------
        uint8 array (code_size,)
        """
        code: NDArray[np.uint8] = self.index.codes([key])[0]
        return code

    def to_faiss(self) -> Any:
        """Return a copy that is faiss's own, for what asks for no less: ``faiss.write_index_binary``, for one.

        Returns
        -------
        faiss.IndexBinaryIDMap2 over an IndexBinaryFlat, with the same codes and ids
        """
        faiss = require("faiss", "faiss", "to_faiss")
        flat = faiss.IndexBinaryFlat(self.d)
        copy = faiss.IndexBinaryIDMap2(flat)
        ids = self.index.ids
        if len(ids):
            copy.add_with_ids(np.ascontiguousarray(self.index.codes(ids)), np.ascontiguousarray(ids, np.int64))
        copy.referenced_objects = [flat]  # which lives as long as what is built over it
        return copy


def as_faiss(index: HammingIndex) -> FaissLike:
    """Let an index be used by code that was written for ``faiss.IndexBinaryFlat``; nothing is copied, faiss not needed.

    Parameters
    ----------
    index : HammingIndex, whose ids are numbers

    Returns
    -------
    FaissLike, with search, range_search, add, add_with_ids, remove_ids, reconstruct, ntotal, d and code_size

    Examples
    --------
    >>> import numpy as np
    >>> D, I = as_faiss(HammingIndex(np.array([[0], [7]], np.uint8), n_bits=8)).search(np.array([[3]], np.uint8), 3)
    >>> I.tolist(), D[0, :2].tolist()
    ([[1, 0, -1]], [1, 2])
    """
    if not isinstance(index, HammingIndex):
        raise TypeError(f"index must be a HammingIndex, got {type(index).__name__}")
    if index.id_kind == "str":
        raise ValueError("index must have numbers as ids to be used like one of faiss, got texts")
    return FaissLike(index)
