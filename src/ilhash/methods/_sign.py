"""The sign of each feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.functions import HashFunction, LinearFunction
from ilhash.methods._base import Method, Source

__all__ = ["Sign"]


class Sign(Method):
    """Sign of each centred feature: what vector databases ship as binary quantisation.

    Parameters
    ----------
    n_bits : int, optional
        Number of bits b; by default one per feature. Fewer keep the features of largest variance, in their order.
    n_train : int or "auto", default "auto"
        Points that mean and variance are taken of; "auto" is up to 50,000.
    random_state : int, RandomState, Generator or None, default 0
        Which points are drawn, where there are more than N.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 5.0], [2.0, 3.0]])
    >>> np.unpackbits(Sign().fit(X).transform(X), axis=1)[:, :2]
    array([[0, 1],
           [1, 0]], dtype=uint8)
    """

    def __init__(self, n_bits: int | None = None, *, n_train: int | str = "auto", random_state: Any = 0) -> None:
        super().__init__(64 if n_bits is None else n_bits, n_train=n_train, random_state=random_state)
        self.n_bits = n_bits  # type: ignore[assignment]  # one per feature is not known before fit

    def _check_bits(self) -> None:
        if self.n_bits is not None:
            super()._check_bits()

    def _learn(self, source: Source) -> list[HashFunction]:
        rows = source.training_set().rows
        n_features = len(rows.mean)
        if self.n_bits is not None:
            self._refuse_bits_beyond(n_features, "one per feature")
        kept = np.sort(np.argsort(-rows.variance, kind="stable")[: self.n_bits]).astype(np.int32)
        one = np.ones(1, np.float32)
        return [LinearFunction(one, np.float32(-rows.mean[feature]), kept[[i]]) for i, feature in enumerate(kept)]
