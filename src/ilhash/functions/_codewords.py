"""Hash functions that spell the codeword of the class with the highest score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.storage import Values

from ._base import Arrays, Floats, HashFunction, RowFunction, Stored, stacked_fields
from ._encoder import Encoder
from ._kinds import functions_from_arrays, functions_to_arrays, register

_SCORES = "scores."  # beginning of the names of the arrays of the scores


@register
@dataclass(frozen=True, eq=False)
class CodewordFunction(RowFunction):
    """The highest score of the classes with a 1 in this place of their codeword, minus the highest of the others.

    Attributes
    ----------
    scores : tuple of HashFunction, one per class, the same for all bits of a model
    ones : uint8 (L,), this bit of each class's codeword; both values occur
    """

    kind: ClassVar[str] = "codeword"
    row: ClassVar[tuple[str, ...]] = ("ones",)
    schema: ClassVar[dict[str, Values]] = {"ones": Values("uint8", ("bits", "L"), most=1)}
    inner: ClassVar[str | None] = _SCORES
    scores: tuple[HashFunction, ...]
    ones: NDArray[np.uint8]

    def margins(self, X: Floats) -> Floats:
        scores = np.stack([score.margins(X) for score in self.scores], axis=1)
        return codeword_margins(scores, self.ones[None])[:, 0]

    def numbers_per_row(self, n_bits: int) -> int:
        n_classes = len(self.scores)
        return max(n_bits, n_classes, *(score.numbers_per_row(n_classes) for score in self.scores))

    @classmethod
    def stacked(cls, functions: Sequence[CodewordFunction], n_features: int) -> Callable[[Floats], Floats]:
        scores, words = Encoder(functions[0].scores, n_features), stacked_fields(functions, "ones")["ones"]
        return lambda X: codeword_margins(scores.margins(X), words)

    def storage_group(self) -> object:
        return id(self.scores)

    def shared_arrays(self) -> Arrays:
        scores, _ = functions_to_arrays(self.scores)
        return {_SCORES + name: array for name, array in scores.items()}

    @classmethod
    def shared_from(cls, stored: Stored) -> tuple[tuple[HashFunction, ...]]:
        inner = {name[len(_SCORES) :]: array for name, array in stored.arrays.items() if name.startswith(_SCORES)}
        if any(name.startswith((cls.kind, "classifier")) for name in inner):
            raise stored.damaged("have scores of other kinds, got scores that are codewords or classifiers")
        scores = functions_from_arrays(inner, {}, stored.n_features, where=f"{stored.where}.scores")
        ones = stored.arrays["ones"]
        if ones.shape[1] != len(scores):
            raise stored.damaged(f"have one score for each class, got {len(scores)} of {ones.shape[1]}")
        if not ((ones == 0).any(axis=1) & (ones == 1).any(axis=1)).all():
            raise stored.damaged("have classes of both values for each bit, got bits of one value")
        return (tuple(scores),)


def codeword_margins(scores: Floats, words: NDArray[np.uint8]) -> Floats:
    """Return margins (n, bits) from scores (n, L) and codewords (bits, L)."""
    out = np.empty((len(scores), len(words)), np.float32)
    for bit, ones in enumerate(words.astype(np.bool_)):
        out[:, bit] = scores[:, ones].max(axis=1) - scores[:, ~ones].max(axis=1)
    return out
