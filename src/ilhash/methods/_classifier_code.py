"""Codes of the predicted class: the baseline that every method which learns from labels must be compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash._parameters import one_of
from ilhash.diversity import seed_for
from ilhash.functions import LEARNERS, CodewordFunction, HashFunction, KernelFunction, LinearFunction
from ilhash.methods._base import TrainingData, TrainingSet, UndefinedError
from ilhash.methods._two_step import TwoStepMethod

_KINDS = ("linear", "kernel", *sorted(set(LEARNERS) - {"linear", "kernel"}))  # that scores may be functions of
CANDIDATES = 32  # splits of the classes among which the best is taken for each bit


def codewords(n_classes: int, n_bits: int, seed: int) -> NDArray[np.uint8]:
    """Return codewords (n_bits, n_classes), each bit a balanced split of the classes.

    Bit i is, among some splits drawn from (seed, i), the one that leaves the closest two codewords farthest apart, and
    the fewest pairs that close: it does not depend on how many bits follow.
    """
    words = np.zeros((n_bits, n_classes), np.uint8)
    apart = np.zeros((n_classes, n_classes), np.int64)
    upper = np.triu_indices(n_classes, 1)
    template = np.arange(n_classes) % 2
    for bit in range(n_bits):
        rng = np.random.default_rng(seed_for(seed, "direction", bit))
        best: tuple[int, int] | None = None
        for _ in range(CANDIDATES):
            split = rng.permutation(template)
            distances = (apart + (split[:, None] != split[None, :]))[upper]
            rank = (int(distances.min()), -int(np.count_nonzero(distances == distances.min())))
            if best is None or rank > best:
                best, words[bit] = rank, split
        apart += words[bit][:, None] != words[bit][None, :]
    return words


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierCode(TwoStepMethod):
    """The predicted class as a code: one-hot, a codeword of b bits, or random projections of the class scores.

    A one-against-rest SVM gives every class a score. Under protocols that count points of one label as relevant this
    beats many hashing methods (Sablayrolles et al.), and it says nothing about classes that were not in y: compare
    with it. Codewords are error-correcting output codes used forwards: nearly balanced splits of the classes, chosen
    so that codewords are far apart.

    Parameters
    ----------
    n_bits : int, default 64, number of bits b; for ``code="one-hot"`` it must be the number of classes
    code : {"ecoc", "one-hot", "scores"}, default "ecoc"
        The codeword of the class with the highest score, one bit per class, or signs of Gaussian projections of the
        centred scores.
    hash_function : {"linear", "kernel"}, default "linear", what the scores are functions of; also the name of another
        registered kind, for codes other than "scores"
    n_train : int or "auto", default "auto", training points N; "auto" is up to 50,000
    random_state : int, RandomState, Generator or None, default 0
        What codewords or projections are drawn from, bit i from (random_state, i).

    References
    ----------
    A. Sablayrolles, M. Douze, N. Usunier and H. Jegou, How should we evaluate supervised hashing?, ICASSP 2017,
    arXiv:1609.06753.
    T. Dietterich and G. Bakiri, Solving multiclass learning problems via error-correcting output codes, JAIR 2, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(3).repeat(20, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(60, 3))
    >>> model = ClassifierCode(n_bits=3, code="one-hot", C=10).fit(X, np.repeat([0, 1, 2], 20))
    >>> np.unpackbits(model.transform(np.eye(3)), axis=1)[:, :3]
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1]], dtype=uint8)
    """

    auto_train: ClassVar[int] = 50_000

    code: str = one_of("ecoc", "one-hot", "scores")
    hash_function: str = one_of(*_KINDS)

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """Whether the first bits of a longer model are the shorter model: not of one-hot codes."""
        return self.code != "one-hot"

    def _bits(self, training: TrainingSet, seed: int) -> NDArray[np.int8]:
        return np.where(training.labels > 0, 1, -1).astype(np.int8)

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        if self.code == "scores" and self.hash_function not in ("linear", "kernel"):
            got = repr(self.hash_function)
            raise ValueError(
                f"hash_function must be 'linear' or 'kernel' for code='scores', sums of functions, got {got}"
            )
        scores = super()._learn(data)
        n_classes = len(scores)
        if self.code == "scores":
            return self._projections(scores, data)
        if self.code == "ecoc":
            words = codewords(n_classes, self.n_bits, data.seed)
        elif self.n_bits == n_classes:
            words = np.eye(n_classes, dtype=np.uint8)
        else:
            raise UndefinedError(f"n_bits must be {n_classes} for one-hot codes, one per class, got {self.n_bits}")
        shared = tuple(scores)
        return [CodewordFunction(shared, ones) for ones in words]

    def _projections(self, scores: list[HashFunction], data: TrainingData) -> list[HashFunction]:
        # A class without training points has a constant score: it changes no mixture, and has no kernel.
        scores = [score for score in scores if isinstance(score, KernelFunction)] or scores
        rows = data.training_set().rows
        mean = np.array([score.margins(rows.values).mean(dtype=np.float64) for score in scores])
        seeds = (seed_for(data.seed, "direction", bit) for bit in range(self.n_bits))
        return [_mixture(scores, np.random.default_rng(own).standard_normal(len(scores)), mean) for own in seeds]


def _mixture(scores: list[Any], shares: NDArray[np.float64], mean: NDArray[np.float64]) -> HashFunction:
    """Return the function sum_c share_c (score_c - mean_c): linear functions add up to linear ones."""
    weights = (shares @ np.stack([score.weights for score in scores])).astype(np.float32)
    bias = np.float32(shares @ (np.array([score.bias for score in scores]) - mean))
    if isinstance(scores[0], KernelFunction):
        return KernelFunction(scores[0].basis, weights, bias)
    return LinearFunction(weights, bias)
