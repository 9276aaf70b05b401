"""Minimal loss hashing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash._parameters import count, one_of, positive
from ilhash.diversity import seed_for
from ilhash.functions import standardization
from ilhash.methods._base import LinearMethod, SupervisedMethod, TrainingSet
from ilhash.methods._signs import signs

_MOMENTUM = 0.9

Floats = NDArray[np.float32]


def pair_losses(similar: NDArray[np.bool_], n_bits: int, rho: float, lam: float) -> Floats:
    """Return the loss of pairs at every Hamming distance 0 .. n_bits, (pairs, n_bits + 1).

    max(d - rho + 1, 0) for similar pairs and lam max(rho - d + 1, 0) for others.
    """
    d = np.arange(n_bits + 1)
    near, far = np.maximum(d - rho + 1.0, 0.0), lam * np.maximum(rho - d + 1.0, 0.0)
    return np.asarray(np.where(similar[:, None], near, far), dtype=np.float32)


def loss_adjusted(a: Floats, c: Floats, losses: Floats) -> tuple[Floats, Floats, Floats]:
    """Maximise loss(|g - k|) + g'a + k'c over pairs of codes g, k in {-1,+1}, for each row of a and c.

    At a given distance the best codes differ in those bits where |a - c| - |a + c| is largest, so that sorting finds
    the best codes at every distance and the best distance.

    Returns the codes g and k, and the maximum.
    """
    gain = np.abs(a - c) - np.abs(a + c)
    order = np.argsort(-gain, axis=1, kind="stable")
    totals = losses.copy()
    totals[:, 1:] += np.cumsum(np.take_along_axis(gain, order, axis=1), axis=1)
    distance = totals.argmax(axis=1)
    differs = np.empty(a.shape, np.bool_)
    np.put_along_axis(differs, order, np.arange(a.shape[1]) < distance[:, None], axis=1)
    g = signs(np.where(differs, a - c, a + c))
    best = totals[np.arange(len(a)), distance] + np.abs(a + c).sum(axis=1)
    return g, np.where(differs, -g, g), best


@dataclass(eq=False, repr=False, kw_only=True)
class MLH(SupervisedMethod, LinearMethod):
    """Linear functions by a hinge-like loss of Hamming distances, through structured prediction.

    A similar pair costs max(d - rho + 1, 0) at Hamming distance d, another one lam max(rho - d + 1, 0). Stochastic
    gradient descent with momentum on the upper bound of structured prediction, max over codes g, k of
    ``loss(|g - k|) + g'W x + k'W x'`` less the maximum over h, h' of ``h'W x + h''W x'``, and a penalty on
    ``|W|^2``. Features are standardised and scaled so that the vectors have length 1 on average.

    Parameters
    ----------
    rho : float, optional, distance around which the loss turns; default 3 b / 8
    lam : float, default 1, weight lambda of pairs that are not similar
    max_iter : int, default 10000, gradient steps: the stated limit, there is no other stopping rule
    batch_size : int, default 100, pairs in a gradient step; about half of them similar
    learning_rate : float, default 0.5, step size; it falls linearly to zero
    alpha : float, default 0.001, weight of the penalty on W
    scaling : {"columns", "whole"}, default "columns"
        Whether each feature is standardised on its own, or all by one factor (pixels).

    Attributes
    ----------
    report_ : dict, ``bound`` and ``loss``, means over the pairs of each tenth of the steps

    References
    ----------
    M. Norouzi and D. J. Fleet, Minimal loss hashing for compact binary codes, ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) + np.repeat([[0], [3]], 50, axis=0)
    >>> MLH(n_bits=4, max_iter=50).fit(X, np.repeat([0, 1], 50)).transform(X).shape
    (100, 1)
    """

    renamed: ClassVar[dict[str, str]] = {
        "steps": "max_iter",
        "batch": "batch_size",
        "rate": "learning_rate",
        "decay": "alpha",
    }

    rho: float | None = positive(None)
    lam: float = positive(1.0)
    max_iter: int = count(10_000)
    batch_size: int = count(100)
    learning_rate: float = positive(0.5)
    alpha: float = positive(0.001)
    scaling: str = one_of("columns", "whole")

    def _directions(self, training: TrainingSet, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        shift, factor = standardization(training.rows, self.scaling)
        factor = factor / np.sqrt(float(np.count_nonzero(factor)) or 1.0)
        X = training.rows.with_ones.copy()
        X[:, :-1] -= shift.astype(np.float32)
        X[:, :-1] *= factor.astype(np.float32)
        W = self._descend(X, training.labels, np.random.default_rng(seed_for(seed, "start"))).astype(np.float64)
        return W[:-1] * factor[:, None], -W[-1]

    def _descend(self, X: Floats, labels: Floats, rng: np.random.Generator) -> Floats:
        W = rng.standard_normal((X.shape[1], self.n_bits)).astype(np.float32)
        W[-1] = 0.0
        rho = 3 * self.n_bits / 8 if self.rho is None else self.rho
        velocity = np.zeros_like(W)
        course = np.empty((self.max_iter, 2))
        pairs = _Pairs(labels)
        for step in range(self.max_iter):
            first, second, similar = pairs.draw(self.batch_size, rng)
            losses = pair_losses(similar, self.n_bits, rho, self.lam)
            a, c = X[first] @ W, X[second] @ W
            g, k, best = loss_adjusted(a, c, losses)
            h, h2 = signs(a), signs(c)
            bound = best - np.abs(a).sum(axis=1) - np.abs(c).sum(axis=1)
            course[step] = bound.mean(), losses[np.arange(len(a)), np.count_nonzero(h != h2, axis=1)].mean()
            gradient = (X[first].T @ (g - h) + X[second].T @ (k - h2)) / np.float32(len(a))
            velocity = np.float32(_MOMENTUM) * velocity - (gradient + np.float32(self.alpha) * W)
            W = W + np.float32(self.learning_rate * (1.0 - step / self.max_iter)) * velocity
        self.n_iter_ = self.max_iter
        tenths = [part.mean(axis=0) for part in np.array_split(course, min(10, self.max_iter))]
        self.report_["bound"], self.report_["loss"] = (np.array(tenths)[:, i].tolist() for i in (0, 1))
        return W


class _Pairs:
    """Pairs of points at random, about half of them with a label in common."""

    def __init__(self, labels: Floats) -> None:
        self._labels = labels
        point, label = np.nonzero(labels)
        self._label, self._label_begin = label, np.searchsorted(point, np.arange(len(labels) + 1))
        by_label = np.argsort(label, kind="stable")
        self._member = point[by_label]
        self._member_begin = np.searchsorted(label[by_label], np.arange(labels.shape[1] + 1))

    def draw(
        self, count: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """Return both ends of some pairs and whether they are similar."""
        first = rng.integers(0, len(self._labels), count)
        second = rng.integers(0, len(self._labels), count)
        half = count // 2
        label = self._label[self._among(self._label_begin, first[:half], rng)]
        second[:half] = self._member[self._among(self._member_begin, label, rng)]
        similar = np.einsum("ij,ij->i", self._labels[first], self._labels[second]) > 0
        return first, second, similar

    @staticmethod
    def _among(begin: NDArray[np.intp], which: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
        """Return a random place in the range of each of some groups."""
        return np.asarray(rng.integers(begin[which], begin[which + 1]))
