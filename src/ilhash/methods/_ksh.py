"""Supervised hashing with kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from ilhash._parameters import count
from ilhash.diversity import seed_for
from ilhash.methods._base import KernelMethod, TrainingSet
from ilhash.methods._ksh_loss import label_pairs
from ilhash.methods._pairs import AllPairs
from ilhash.methods._signs import signs

_DEGENERATE = 1e-6  # variance of kernel features, as a share of the largest, that single precision cannot tell from 0

Floats = NDArray[np.float64]


def whitened(phi: NDArray[np.float32]) -> tuple[NDArray[np.float32], Floats, Floats]:
    """Return features P = (phi - mean) T with P'P = N I, T, and the mean.

    KSH's projections K a under |K a|^2 = N are P u with |u| = 1: the generalised eigenproblem of its start becomes an
    ordinary one, and its gradient steps are not slowed down by kernel features that are nearly the same.
    """
    mean = phi.mean(axis=0, dtype=np.float64)
    centred = phi - mean.astype(np.float32)
    variances, axes = scipy.linalg.eigh((centred.T @ centred).astype(np.float64) / len(phi))
    kept = variances > _DEGENERATE * max(variances[-1], np.finfo(np.float32).tiny)
    if not kept.any():  # one and the same vector everywhere
        kept[-1], variances[-1] = True, 1.0
    T = axes[:, kept] / np.sqrt(variances[kept])
    return centred @ T.astype(np.float32), T, mean


def _leading(matrix: Floats) -> Floats:
    last = len(matrix) - 1
    return np.asarray(scipy.linalg.eigh(matrix, subset_by_index=(last, last))[1][:, 0])


class Residue:
    """R = b y - sum of h h' over the bits found so far: what they leave of the similarities, never formed."""

    def __init__(self, pairs: AllPairs, n_bits: int) -> None:
        self._F = (pairs.F * np.sqrt(n_bits)).astype(np.float32)
        self._sign = pairs.sign.astype(np.float32)

    def add(self, h: NDArray[np.float32]) -> None:
        """Take the product h h' of a bit off."""
        self._F = np.column_stack([self._F, h])
        self._sign = np.append(self._sign, np.float32(-1.0))

    def times(self, v: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return R v."""
        return np.asarray(self._F @ (self._sign * (v @ self._F)))

    def between(self, P: NDArray[np.float32]) -> Floats:
        """Return P'R P."""
        FP = self._F.T @ P
        return np.asarray(FP.T @ (self._sign[:, None] * FP), dtype=np.float64)

    def smoothed(self, u: Floats, P: NDArray[np.float32]) -> tuple[float, Floats]:
        """Return -s'R s / N^2 and its gradient, s = 2 / (1 + exp(-P u)) - 1 being a smooth sign of P u."""
        n = len(P)
        s = np.tanh((P @ u.astype(np.float32)) / np.float32(2.0))
        Rs = self.times(s)
        gradient = (Rs * (np.float32(1.0) - s * s)) @ P
        return -float(s.astype(np.float64) @ Rs) / n**2, -gradient.astype(np.float64) / n**2


class PairResidue(Residue):
    """The same over some pairs alone: R_nm = b y_nm - sum of h_n h_m where there is a pair, 0 elsewhere."""

    def __init__(self, y: scipy.sparse.csr_array, n_bits: int) -> None:
        self._R = scipy.sparse.csr_array((y.data.astype(np.float32) * n_bits, y.indices, y.indptr), shape=y.shape)
        self._n_bits = n_bits
        self._rows = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))

    def add(self, h: NDArray[np.float32]) -> None:
        """Take the product h h' of a bit off."""
        self._R.data -= h[self._rows] * h[self._R.indices]

    def times(self, v: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return R v."""
        return np.asarray(self._R @ v)

    def leading(self, P: NDArray[np.float32]) -> Floats:
        """Return the leading eigenvector of P'R P, which is not formed."""
        n = P.shape[1]
        if n == 1:
            return np.ones(1)
        shape = scipy.sparse.linalg.LinearOperator(
            (n, n), matvec=lambda u: P.T @ self.times(P @ np.ravel(u).astype(np.float32)), dtype=np.float64
        )
        return np.asarray(scipy.sparse.linalg.eigsh(shape, k=1, which="LA", v0=np.ones(n), tol=1e-4)[1][:, 0])

    def loss(self) -> float:
        """Return the mean of (h_n'h_m / b - y_nm)^2 over the pairs, once all bits were added."""
        return float(np.mean((self._R.data / self._n_bits) ** 2))


@dataclass(eq=False, repr=False, kw_only=True)
class KSH(KernelMethod):
    """Kernel functions whose codes' inner products match the similarities, learnt greedily one bit after the other.

    Minimises ``|H H' / b - y|^2`` over H = sign(K A), K being centred kernel features (N, m) and y_nm = +1 for points
    that share a label and -1 for others, all pairs. Bit k maximises h'R_k h with R_k = b y - sum over the bits before
    it of h h': first without the sign (an eigenproblem), then with a sigmoid in its place, by L-BFGS from there. Of the
    two the one with the larger h'R_k h is kept.

    Parameters
    ----------
    max_iter : int, default 30, limit on the gradient steps of each bit
    n_pairs : int, optional
        Learn from so many similar and as many dissimilar partners of each point, drawn as ILH draws them, instead of
        from all pairs; the ILH paper has 100.

    Attributes
    ----------
    report_ : dict
        For each bit, ``smoothed_start`` and ``smoothed``, the smoothed objective -s'R s / N^2 at the eigenvector and
        after the gradient steps; ``quality_start`` and ``quality``, h'R h / N^2 of the eigenvector's bits and of those
        that were kept; and ``loss``, the mean of (h_n'h_m / b - y_nm)^2 over the pairs in the end.

    References
    ----------
    W. Liu, J. Wang, R. Ji, Y.-G. Jiang and S.-F. Chang, Supervised hashing with kernels, CVPR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) + np.repeat([[0], [3]], 50, axis=0)
    >>> KSH(n_bits=4, n_centers=20).fit(X, np.repeat([0, 1], 50)).transform(X).shape
    (100, 1)
    """

    renamed: ClassVar[dict[str, str]] = {"iterations": "max_iter"}
    pair_residue: ClassVar[type[PairResidue]] = PairResidue  # what some pairs leave, and pairs that are not given

    max_iter: int = count(30)
    n_pairs: int | None = count(None)

    def _weights(self, phi: NDArray[np.float32], training: TrainingSet, seed: int) -> tuple[Floats, Floats]:
        P, T, mean = whitened(phi)
        self.n_iter_ = 0
        found = self._from_all_pairs(P, training) if self.n_pairs is None else self._from_some_pairs(P, training, seed)
        A = T @ found
        return A, -(mean @ A)

    def _from_some_pairs(self, P: NDArray[np.float32], training: TrainingSet, seed: int) -> Floats:
        n = int(self.n_pairs or 0)
        residue = self.pair_residue(label_pairs(training.labels, n, n, seed_for(seed, "graph")), self.n_bits)
        found = np.empty((P.shape[1], self.n_bits))
        for bit in range(self.n_bits):
            found[:, bit], h = self._next_bit(P, residue, residue.leading(P))
            residue.add(h)
        self.report_["loss"] = residue.loss()
        return found

    def _from_all_pairs(self, P: NDArray[np.float32], training: TrainingSet) -> Floats:
        pairs = AllPairs.of_labels(training.labels)
        residue = Residue(pairs, self.n_bits)
        between = residue.between(P)  # P'R P, brought up to date bit by bit
        found, bits = np.empty((P.shape[1], self.n_bits)), np.empty((len(P), self.n_bits), np.float32)
        for bit in range(self.n_bits):
            found[:, bit], bits[:, bit] = self._next_bit(P, residue, _leading(between))
            residue.add(bits[:, bit])
            image = (bits[:, bit] @ P).astype(np.float64)
            between -= np.outer(image, image)
        self.report_["loss"] = pairs.loss(bits)
        return found

    def _next_bit(self, P: NDArray[np.float32], residue: Residue, start: Floats) -> tuple[Floats, NDArray[np.float32]]:
        if np.sum((P @ start) ** 3) < 0:  # eigenvectors come with either sign; the sign of the skewness hardly wavers
            start = -start
        end = scipy.optimize.minimize(
            residue.smoothed, start, args=(P,), jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter}
        )
        self.n_iter_ = max(self.n_iter_, int(end.nit))
        codes = [signs(P @ u.astype(np.float32)) for u in (start, end.x)]
        quality = [float(h.astype(np.float64) @ residue.times(h)) / len(P) ** 2 for h in codes]
        better = int(quality[1] > quality[0])
        for name, value in (
            ("smoothed_start", residue.smoothed(start, P)[0]),
            ("smoothed", float(end.fun)),
            ("quality_start", quality[0]),
            ("quality", quality[better]),
        ):
            self.report_.setdefault(name, []).append(value)
        return (start, end.x)[better], codes[better]
