"""Binary autoencoder, by the method of auxiliary coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ilhash._checks import check_positive
from ilhash._parameters import checked, count, jobs, one_of, positive
from ilhash.diversity import seed_for
from ilhash.functions import Fitted, HashFunction, LinearLearner, standardization
from ilhash.methods._base import Method, TrainingData, TrainingSet
from ilhash.methods._signs import cyclic_descent, signs
from ilhash.parallel import run
from ilhash.rotations import random_rotation, rotate_to_corners
from ilhash.vectors import GatheredRows

ENUMERATED = 8  # codes of up to so many bits are found among all of them
_ROTATIONS = 50  # alternations of ITQ, where it is the start
_MAX_CYCLES = 50  # of coordinate descent over the bits of a code
_ROWS = 4096  # codes compared with all others at a time

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Decoder:
    """f(z) = z A + c."""

    A: Floats  # (b, D), by rows what each bit adds
    c: Floats  # (D,)

    @classmethod
    def fitted(cls, Z: Floats, X: Floats) -> Decoder:
        """Fit by least squares; where bits are linearly dependent, with the smallest weights."""
        mean_z, mean_x = Z.mean(axis=0, dtype=np.float64), X.mean(axis=0, dtype=np.float64)
        centred = Z - mean_z
        A = scipy.linalg.pinvh(centred.T @ centred) @ (centred.T @ (X - mean_x.astype(np.float32)))
        return cls(A.astype(np.float32), (mean_x - mean_z @ A).astype(np.float32))

    def error(self, Z: Floats, X: Floats) -> float:
        """Return the mean over points of |x - f(z)|^2."""
        return float(np.sum((X - Z @ self.A - self.c) ** 2, dtype=np.float64)) / len(X)


def best_codes(Z: Floats, outputs: Floats, X: Floats, decoder: Decoder, mu: float) -> Floats:
    """Minimise |x - f(z)|^2 + mu |z - h(x)|^2 over the code z of each point: the Z-step.

    Up to 8 bits by looking at all codes; more by exact minimisation over one bit at a time, beginning with the codes
    given, until nothing changes.
    """
    pull = (X - decoder.c) @ decoder.A.T + np.float32(mu) * outputs  # the cost is z'G z - 2 pull'z and a constant
    G = decoder.A @ decoder.A.T
    if Z.shape[1] <= ENUMERATED:
        return _by_enumeration(pull, G)
    return np.ascontiguousarray(cyclic_descent(Z, pull, G, _MAX_CYCLES))


def _by_enumeration(pull: Floats, G: Floats) -> Floats:
    b = len(G)
    everything = np.where((np.arange(1 << b)[:, None] >> np.arange(b)) & 1, np.float32(1.0), np.float32(-1.0))
    own = np.einsum("kb,kb->k", everything @ G, everything)
    found = [
        (own - 2.0 * (pull[first : first + _ROWS] @ everything.T)).argmin(axis=1)
        for first in range(0, len(pull), _ROWS)
    ]
    return np.asarray(everything[np.concatenate(found)])


@dataclass
class _Encoder:
    """The functions h and their outputs on the training points, (N, b) of -1 and +1."""

    functions: list[HashFunction | None]
    outputs: Floats

    def refit(self, rows: GatheredRows, Z: Floats, learner: LinearLearner, n_jobs: int | None) -> None:
        """Fit a linear SVM to each bit; one that agrees with its bit less often than the one before is not taken.

        An SVM minimises a bound on the number of errors, not their number. Without the comparison the penalised
        objective could rise.
        """

        def fit(bit: int) -> Fitted:
            return learner.fit(rows.copy(), Z[:, bit].astype(np.int8), None, 0)

        wanted = [bit for bit in range(Z.shape[1]) if not np.array_equal(self.outputs[:, bit], Z[:, bit])]
        wanted = sorted({*wanted, *(bit for bit, function in enumerate(self.functions) if function is None)})
        for bit, fitted in zip(wanted, run(fit, wanted, n_jobs=n_jobs, prefer="threads"), strict=True):
            outputs = signs(fitted.margins)
            errors = [np.count_nonzero(h != Z[:, bit]) for h in (outputs, self.outputs[:, bit])]
            if self.functions[bit] is None or errors[0] <= errors[1]:
                self.functions[bit], self.outputs[:, bit] = fitted.function, outputs


def _check_growth(name: str, value: Any) -> None:
    if check_positive(name, value) < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}")


@dataclass(eq=False, repr=False, kw_only=True)
class BA(Method):
    """Linear hash functions whose codes a linear decoder turns back into the vectors: a binary autoencoder.

    Minimises ``sum |x_n - f(h(x_n))|^2`` by auxiliary coordinates: ``sum |x_n - f(z_n)|^2 + mu |z_n - h(x_n)|^2`` over
    codes z_n in {-1,+1}, the decoder f (least squares) and the encoder h (one linear SVM per bit) in turn, mu growing
    until z_n = h(x_n) for all points or the iterations are over. For a fixed mu the objective never rises. X is centred
    and scaled by one factor to a mean variance of 1.

    Parameters
    ----------
    n_bits : int, default 64, number of bits b, at most the number of directions in which the training points vary
    init : {"itq", "pca"}, default "itq", codes to begin with
    mu, growth : float, default 0.01 and 2
        The first mu, in units of the variance of X (summed over features) per bit, and what it is multiplied by in
        each iteration.
    max_iter : int, default 12, limit on the values of mu
    C : float, default 0.1, weight of the SVMs' loss
    n_train : int or "auto", default "auto", training points N; "auto" is up to 10,000
    n_jobs : int, optional, workers that fit the encoder

    Attributes
    ----------
    report_ : dict
        For each mu, ``objective`` after the decoder's, the Z- and the encoder's step, and before them; ``error``,
        ``|x - f(h(x))|^2`` per point and feature, at the start and after each mu.

    References
    ----------
    M. A. Carreira-Perpinan and R. Raziperchikolaei, Hashing with binary autoencoders, CVPR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = BA(n_bits=4).fit(X)
    >>> model.report_["error"][-1] < 1
    True
    """

    auto_train: ClassVar[int] = 10_000
    renamed: ClassVar[dict[str, str]] = {"start": "init", "iterations": "max_iter"}

    init: str = one_of("itq", "pca")
    mu: float = positive(0.01)
    growth: float = checked(2.0, _check_growth)
    max_iter: int = count(12)
    C: float = positive(0.1)
    n_jobs: int | None = jobs()

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        training = data.training_set()
        rows = training.rows
        shift, factor = (part.astype(np.float32) for part in standardization(rows, "whole"))
        X = (rows.values - shift) * factor
        Z = self._first_codes(training, data.seed)
        learner = LinearLearner(self.C, "whole")
        encoder = _Encoder([None] * self.n_bits, Z.copy())
        encoder.refit(rows, Z, learner, self.n_jobs)
        unit = float(np.sum(X**2, dtype=np.float64)) / X.size * X.shape[1] / self.n_bits
        objectives: list[list[float]] = []
        errors = [self._error(encoder, X)]
        for step in range(self.max_iter):
            mu = self.mu * self.growth**step * unit
            decoder = Decoder.fitted(Z, X)
            course = [_objective(Z, encoder.outputs, X, decoder, mu)]
            Z = best_codes(Z, encoder.outputs, X, decoder, mu)
            course.append(_objective(Z, encoder.outputs, X, decoder, mu))
            encoder.refit(rows, Z, learner, self.n_jobs)
            course.append(_objective(Z, encoder.outputs, X, decoder, mu))
            objectives.append(course)
            errors.append(self._error(encoder, X))
            if np.array_equal(Z, encoder.outputs):
                break
        self.n_iter_ = len(objectives)
        self.report_.update({"objective": objectives, "error": errors})
        return [function for function in encoder.functions if function is not None]

    def _first_codes(self, training: TrainingSet, seed: int) -> Floats:
        _, axes = self._principal_axes(training, ", for the codes to begin with")
        V = training.centered() @ axes[:, : self.n_bits].astype(np.float32)
        if self.init == "itq":
            first = random_rotation(self.n_bits, np.random.default_rng(seed_for(seed, "start")))
            V = V @ rotate_to_corners(V, first, _ROTATIONS)[0].astype(np.float32)
        return signs(V)

    def _error(self, encoder: _Encoder, X: Floats) -> float:
        return float(Decoder.fitted(encoder.outputs, X).error(encoder.outputs, X) / X.shape[1])


def _objective(Z: Floats, outputs: Floats, X: Floats, decoder: Decoder, mu: float) -> float:
    """Return the mean over points of |x - f(z)|^2 + mu |z - h(x)|^2."""
    return float(decoder.error(Z, X) + mu * 4.0 * np.count_nonzero(outputs != Z) / len(X))
