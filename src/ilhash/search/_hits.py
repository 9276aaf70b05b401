"""What a search returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Hits:
    """The nearest items of each query, in the order (distance, id).

    Attributes
    ----------
    distances : array (n_queries, k), int32 Hamming distances, or float32 where bits or vectors were weighed
    ids : array (n_queries, k), int64 or str; k is smaller than asked for where index or filter hold fewer items
    exact : bool, default True, whether no item that is not here can be nearer than one that is
    """

    distances: NDArray[Any]
    ids: NDArray[Any]
    exact: bool = True

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class RangeHits:
    """All items within a radius of each query: those of query q stand at ``offsets[q] : offsets[q + 1]``.

    Attributes
    ----------
    offsets : int64 array (n_queries + 1,), where the answers of each query begin
    ids : array, int64 or str, of all queries one after the other
    distances : int32 array, Hamming distances
    exact : bool, always True
    """

    offsets: NDArray[np.int64]
    ids: NDArray[Any]
    distances: NDArray[np.int32]
    exact: bool = True

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[tuple[NDArray[Any], NDArray[np.int32]]]:
        """Yield (ids, distances) of one query after the other."""
        for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.ids[begin:end], self.distances[begin:end]
