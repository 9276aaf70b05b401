"""Locality-sensitive hashing by random projections."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.diversity import seed_for
from ilhash.methods._base import LinearMethod, TrainingSet


class LSH(LinearMethod):
    """Signs of random Gaussian projections of the centred vectors; needs nothing but the mean.

    Two vectors at angle theta (seen from the mean) agree in a bit with probability 1 - theta / pi. Bit i is drawn from
    (random_state, i): any number of bits, and a prefix is the shorter model.

    Parameters
    ----------
    n_train : int or "auto", default "auto", points that the mean is taken of; "auto" is up to 50,000
    random_state : int, RandomState, Generator or None, default 0, what the projections are drawn from

    References
    ----------
    M. Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002.
    A. Andoni and P. Indyk, Near-optimal hashing algorithms for approximate nearest neighbor in high dimensions,
    Communications of the ACM 51(1), 2008.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> LSH(n_bits=12).fit(X).transform(X).shape
    (100, 2)
    """

    nested: ClassVar[bool] = True

    def _directions(self, training: TrainingSet, seed: int) -> tuple[NDArray[np.floating[Any]], None]:
        n_features = training.rows.values.shape[1]
        seeds = (seed_for(seed, "direction", bit) for bit in range(self.n_bits))
        return np.stack([np.random.default_rng(own).standard_normal(n_features) for own in seeds], axis=1), None
