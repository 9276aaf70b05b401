"""Minimal loss hashing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._parameters import check_choice, check_count, check_positive
from ilhash.diversity import seed_for
from ilhash.functions._base import standardisation
from ilhash.methods._base import LinearMethod, SupervisedMethod, TrainingSet

__all__ = ["MLH", "loss_adjusted", "pair_losses"]

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
    g = np.where(np.where(differs, a - c, a + c) > 0, np.float32(1.0), np.float32(-1.0))
    best = totals[np.arange(len(a)), distance] + np.abs(a + c).sum(axis=1)
    return g, np.where(differs, -g, g), best


class MLH(SupervisedMethod, LinearMethod):
    """Linear functions by a hinge-like loss of Hamming distances, through structured prediction.

    A similar pair costs max(d - rho + 1, 0) at Hamming distance d, another one lam max(rho - d + 1, 0). Stochastic
    gradient descent with momentum on the upper bound of structured prediction, max over codes g, k of
    [loss(|g - k|) + g'W x + k'W x'] - max over codes h, h' of [h'W x + h''W x'], and a penalty on |W|^2. Features are
    standardised and scaled so that the vectors have length 1 on average.

    Parameters
    ----------
    n_bits : int, default 64
        Number of bits b.
    rho : float, optional
        Distance around which the loss turns; default 3 b / 8.
    lam : float, default 1
        Weight lambda of pairs that are not similar.
    steps : int, default 10000
        Gradient steps: the stated limit, there is no other stopping rule.
    batch : int, default 100
        Pairs in a gradient step; about half of them similar.
    rate : float, default 0.5
        Step size; it falls linearly to zero.
    decay : float, default 0.001
        Weight of the penalty on W.
    scaling : {"columns", "whole"}, default "columns"
        Whether each feature is standardised on its own, or all by one factor (pixels).
    n_train : int or "auto", default "auto"
        Training points N; "auto" is up to 5,000.
    unlabeled : label or None, default -1
        The label that means unknown.
    random_state : int, RandomState, Generator or None, default 0
        Training points, the projections to begin with, and the pairs.

    Attributes
    ----------
    report_ : ``bound`` and ``loss``, means over the pairs of each tenth of the steps

    References
    ----------
    M. Norouzi and D. J. Fleet, Minimal loss hashing for compact binary codes, ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) + np.repeat([[0], [3]], 50, axis=0)
    >>> MLH(n_bits=4, steps=50).fit(X, np.repeat([0, 1], 50)).transform(X).shape
    (100, 1)
    """

    def __init__(
        self,
        n_bits: int = 64,
        *,
        rho: float | None = None,
        lam: float = 1.0,
        steps: int = 10_000,
        batch: int = 100,
        rate: float = 0.5,
        decay: float = 0.001,
        scaling: str = "columns",
        n_train: int | str = "auto",
        unlabeled: Any = -1,
        random_state: Any = 0,
    ) -> None:
        super().__init__(n_bits, n_train=n_train, unlabeled=unlabeled, random_state=random_state)
        self.rho = rho
        self.lam = lam
        self.steps = steps
        self.batch = batch
        self.rate = rate
        self.decay = decay
        self.scaling = scaling

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("steps", self.steps)
        check_count("batch", self.batch)
        check_choice("scaling", self.scaling, ("columns", "whole"))
        for name in ("lam", "rate", "decay"):
            check_positive(name, getattr(self, name))
        if self.rho is not None:
            check_positive("rho", self.rho)

    def _directions(self, training: TrainingSet, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        shift, factor = standardisation(training.rows, self.scaling)
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
        course = np.empty((self.steps, 2))
        pairs = _Pairs(labels)
        for step in range(self.steps):
            first, second, similar = pairs.draw(self.batch, rng)
            losses = pair_losses(similar, self.n_bits, rho, self.lam)
            a, c = X[first] @ W, X[second] @ W
            g, k, best = loss_adjusted(a, c, losses)
            h, h2 = _signs(a), _signs(c)
            bound = best - np.abs(a).sum(axis=1) - np.abs(c).sum(axis=1)
            course[step] = bound.mean(), losses[np.arange(len(a)), np.count_nonzero(h != h2, axis=1)].mean()
            gradient = (X[first].T @ (g - h) + X[second].T @ (k - h2)) / np.float32(len(a))
            velocity = np.float32(_MOMENTUM) * velocity - (gradient + np.float32(self.decay) * W)
            W = W + np.float32(self.rate * (1.0 - step / self.steps)) * velocity
        tenths = [part.mean(axis=0) for part in np.array_split(course, min(10, self.steps))]
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


def _signs(margins: Floats) -> Floats:
    return np.where(margins > 0, np.float32(1.0), np.float32(-1.0))
