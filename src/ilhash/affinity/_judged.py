"""A few pairs that people judged: what bits learn where to look from, rather than what to cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash._checks import check_choice, check_fraction
from ilhash.affinity._base import digest_of
from ilhash.affinity._matrix import SparseAffinity

VIEWS = ("within", "contrast")


@dataclass(frozen=True, eq=False)
class Judged:
    """Pairs of a few points, to be given to ``fit`` or ``extend`` as pairs, that say along which directions to look.

    A hundred judgements are too few to cut a graph by. Their differences have second moments, and these, shrunk towards
    the data's own, give directions; bits are hyperplanes across them. ``ilhash.learn`` chooses how.

    Parameters
    ----------
    pairs : as in fit, rows (i, j, weight) or a tuple of index pairs and weights
    view : {"contrast", "within"}, default "contrast"
        Directions along which dissimilar points differ more than similar ones do, or along which similar points agree.
        Without dissimilar pairs random ones take their place.
    shrinkage : float, default 0.5, share of the data's own moments, from 0 to 1

    Examples
    --------
    >>> import ilhash
    >>> digits = ilhash.datasets.load("digits")
    >>> rows = [[i, i + 1, 1 if digits.y[i] == digits.y[i + 1] else -1] for i in range(0, 400, 2)]
    >>> model = ilhash.ILH(n_bits=16).fit(digits.X, digits.y)
    >>> model.extend(8, digits.X, pairs=Judged(rows)).n_bits
    24
    """

    pairs: Any
    view: str = "contrast"
    shrinkage: float = 0.5

    def __post_init__(self) -> None:
        check_choice("view", self.view, VIEWS)
        check_fraction("shrinkage", self.shrinkage, "a share")


@dataclass(frozen=True)
class JudgedAffinity(SparseAffinity):
    """The matrix of judged pairs, and how directions are made from them."""

    view: str = "contrast"
    shrinkage: float = 0.5

    def differences(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the rows that are judged, the pairs as places among them (m, 2), and signed weights (m,)."""
        upper = scipy.sparse.triu(self.matrix, 1).tocoo()
        ends = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
        rows, places = np.unique(ends, return_inverse=True)
        return rows, places.reshape(-1, 2), np.asarray(upper.data, np.float64)

    def among(self, rows: NDArray[np.int64]) -> SparseAffinity:
        return replace(self, matrix=super().among(rows).matrix)

    def digest(self) -> str:
        how = np.frombuffer(f"{self.view} {self.shrinkage!r}".encode(), np.uint8)
        return digest_of(np.frombuffer(super().digest().encode(), np.uint8), how)
