"""How long methods are expected to take, and what is left once some have been timed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ilhash.experiments.engine.standard import PER_BIT

UNKNOWN = 0.01  # seconds a bit of a method that users brought
BESIDE = 0.05  # seconds of encoding and measuring, at least


def expected_seconds(method: str, parameters: Mapping[str, Any], n_bits: int, n_train: int) -> float:
    """Return seconds of one core for training, from what was measured on 320 features; good to a factor of a few."""
    kernel = parameters.get("hash_function") == "kernel"
    if method == "ILH":
        per_bit = 0.028 if not kernel else 0.12 if parameters.get("centers") == "private" else 0.1
    elif method == "BRE":
        per_bit = 0.009 * n_bits  # more bits, more rounds over all of them
    else:
        per_bit = PER_BIT.get(method, UNKNOWN) * (2.0 if kernel else 1.0)
    return BESIDE + per_bit * n_bits * n_train / 5_000


@dataclass
class TimeLeft:
    """Expected seconds of pieces of work, corrected by what pieces of the same kind took, or else by all of them.

    Parameters
    ----------
    expected : mapping of (kind, size) to float, seconds of each piece

    Examples
    --------
    >>> left = TimeLeft({("fast", 32): 1.0, ("slow", 32): 10.0, ("fast", 64): 2.0, ("slow", 64): 20.0})
    >>> left.finished(("fast", 32), 3.0)  # everything takes three times as long as expected
    >>> left.seconds
    96.0
    >>> left.finished(("slow", 32), 10.0)  # but not what is slow
    >>> left.seconds
    26.0
    """

    expected: Mapping[tuple[Hashable, Hashable], float]
    taken: dict[tuple[Hashable, Hashable], float] = field(default_factory=dict)

    def finished(self, piece: tuple[Hashable, Hashable], seconds: float) -> None:
        """Note what a piece took.

        Parameters
        ----------
        piece : tuple, its kind and size
        seconds : float, that it took
        """
        self.taken[piece] = seconds

    @property
    def seconds(self) -> float:
        """Seconds that the pieces not finished yet will take."""
        missing = [piece for piece in self.expected if piece not in self.taken]
        return sum(self.expected[piece] * self._factor(piece[0]) for piece in missing)

    def _factor(self, kind: Hashable) -> float:
        same = [piece for piece in self.taken if piece[0] == kind] or list(self.taken)
        if not same:
            return 1.0
        return sum(self.taken[piece] for piece in same) / sum(self.expected[piece] for piece in same)
