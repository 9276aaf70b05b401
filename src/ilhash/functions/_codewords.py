"""Hash functions that spell the codeword of the class with the highest score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.functions._base import HashFunction, Margins

__all__ = ["CodewordFunction", "codeword_margins"]


@dataclass(frozen=True, eq=False)
class CodewordFunction:
    """The highest score of the classes with a 1 in this place of their codeword, minus the highest of the others.

    Attributes
    ----------
    scores : one function per class, the same for all bits of a model
    ones : uint8 (L,), this bit of each class's codeword; both values occur
    """

    kind: ClassVar[str] = "codeword"
    features: ClassVar[None] = None
    scores: tuple[HashFunction, ...]
    ones: NDArray[np.uint8]

    def margins(self, X: NDArray[np.float32]) -> Margins:
        """Return the margin of every row."""
        scores = np.stack([score.margins(X) for score in self.scores], axis=1)
        return codeword_margins(scores, self.ones[None])[:, 0]


def codeword_margins(scores: NDArray[np.float32], words: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return margins (n, bits) from scores (n, L) and codewords (bits, L)."""
    out = np.empty((len(scores), len(words)), np.float32)
    for bit, ones in enumerate(words.astype(np.bool_)):
        out[:, bit] = scores[:, ones].max(axis=1) - scores[:, ~ones].max(axis=1)
    return out
