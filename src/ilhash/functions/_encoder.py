"""All functions of a model at once; each kind says which of its functions are computed together, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ilhash.vectors import SparseRows

from ._base import Floats, HashFunction, grouped


class Encoder:
    """Margins of many hash functions.

    Parameters
    ----------
    functions : sequence of HashFunction, one per bit
    n_features : int, number of features D of the vectors

    Attributes
    ----------
    numbers_per_row : int, what the margins of a row take at once, beside the row
    """

    def __init__(self, functions: Sequence[HashFunction], n_features: int) -> None:
        self.n_bits = len(functions)
        groups = grouped(functions, lambda function: function.encoding_group(n_features))
        widths = (function.numbers_per_row(len(members)) for _, members in groups for function in members[:1])
        self.numbers_per_row = max([self.n_bits, *widths])
        self._groups = [(bits, type(members[0]).stacked(members, n_features)) for bits, members in groups]
        self._dense_only = sorted({function.kind for function in functions if not function.takes_sparse})

    def margins(self, chunk: Any) -> Floats:
        """Return the margins (n, bits) of vectors (n, D) relative to the model's origin, sparse ones of linear bits."""
        if self._dense_only and isinstance(chunk, SparseRows):
            kinds = ", ".join(self._dense_only)
            raise TypeError(f"X must be dense for functions of kind {kinds}, got a sparse matrix: encode X.toarray()")
        if len(self._groups) == 1:
            return self._groups[0][1](chunk)
        out = np.empty((len(chunk), self.n_bits), np.float32)
        for bits, margins in self._groups:
            out[:, bits] = margins(chunk)
        return out
