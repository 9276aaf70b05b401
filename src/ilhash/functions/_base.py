"""What every hash function and every learner of one has in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ilhash.vectors import Rows

__all__ = ["Fitted", "HashFunction", "Learner", "standardisation"]

Margins = NDArray[np.float32]


class HashFunction(Protocol):
    """A trained bit: a margin for every vector; the bit is margin > 0.

    Vectors come as float32 rows relative to the model's origin, with all features; a function that was trained on a
    feature subset picks its own.
    """

    @property
    def kind(self) -> str: ...

    @property
    def features(self) -> NDArray[np.int32] | None: ...

    def margins(self, X: NDArray[np.float32]) -> Margins: ...


@dataclass(frozen=True)
class Fitted:
    """A hash function with its margins on the rows it was fitted to, and the bits it was to reproduce."""

    function: HashFunction
    margins: Margins
    targets: NDArray[np.int8]


class Learner(Protocol):
    """Fits a hash function to the bits that the z-step chose; it may overwrite the rows."""

    def fit(self, rows: Rows, z: NDArray[np.int8], features: NDArray[np.int32] | None, seed: int) -> Fitted: ...


def standardisation(rows: Rows, scaling: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return shift and factor that standardise the rows: (values - shift) * factor.

    ``"columns"`` gives every feature unit variance, ``"whole"`` one factor to all, so that the mean variance is one and
    the features keep their relative sizes. Constant features get factor 0: they carry nothing.
    """
    variance = rows.variance
    # Far from the origin, what float32 leaves of a constant is rounding noise, not variance.
    varies = variance > 1e-6 * rows.mean**2
    factor = np.zeros_like(variance)
    if scaling == "columns":
        factor[varies] = 1.0 / np.sqrt(variance[varies])
    elif varies.any():
        factor[varies] = 1.0 / np.sqrt(variance[varies].mean())
    return rows.mean, factor
