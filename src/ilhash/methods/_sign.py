"""The sign of each feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilhash._parameters import bits
from ilhash.functions import HashFunction, LinearFunction
from ilhash.methods._base import Method, TrainingData


@dataclass(eq=False, repr=False)
class Sign(Method):
    """Sign of each centred feature: what vector databases ship as binary quantisation.

    Parameters
    ----------
    n_bits : int, optional
        Number of bits b; by default one per feature. Fewer keep the features of largest variance, in their order.
    n_train : int or "auto", default "auto", points that mean and variance are taken of; "auto" is up to 50,000

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 5.0], [2.0, 3.0]])
    >>> np.unpackbits(Sign().fit(X).transform(X), axis=1)[:, :2]
    array([[0, 1],
           [1, 0]], dtype=uint8)
    """

    n_bits: int | None = bits(None)  # type: ignore[assignment]  # one per feature is not known before fit

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        rows = data.training_set().rows
        n_features = len(rows.mean)
        if self.n_bits is not None:
            self._refuse_bits_beyond(n_features, "one per feature")
        kept = np.sort(np.argsort(-rows.variance, kind="stable")[: self.n_bits]).astype(np.int32)
        one = np.ones(1, np.float32)
        return [LinearFunction(one, np.float32(-rows.mean[feature]), kept[[i]]) for i, feature in enumerate(kept)]
