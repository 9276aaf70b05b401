"""The KSH loss by alternating min-cut over the bits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ilhash import codes
from ilhash._checks import check_fraction
from ilhash._parameters import checked, count
from ilhash.diversity import seed_for
from ilhash.hasher import Hasher
from ilhash.methods._base import TrainingSet
from ilhash.methods._ksh_loss import PairLoss, label_pairs
from ilhash.methods._two_step import TwoStepMethod
from ilhash.zstep import MAX_SWEEPS


def cut_codes(
    y: scipy.sparse.csr_array,
    start: NDArray[np.int8],
    *,
    max_iter: int = 1,
    seed: int = 0,
    max_sweeps: int = MAX_SWEEPS,
) -> tuple[NDArray[np.int8], list[float]]:
    """Lower the KSH loss of codes (N, b), bit after bit, each by alternating min-cut with the others fixed.

    y is +1 for similar and -1 for dissimilar pairs. Every bit has its turn ``max_iter`` times, or until a pass changes
    nothing. Returns the codes, and the mean of (z_n'z_m / b - y_nm)^2 over pairs at the start and after each bit, never
    increasing.
    """
    Z, n_bits = np.asfortranarray(start).copy(order="F"), start.shape[1]
    loss = PairLoss(y, Z)
    course = [loss.value()]
    unfinished = 0
    for turn in range(max_iter):
        changed = False
        for bit in range(n_bits):
            loss.remove(Z[:, bit])
            step = loss.next_bit(Z[:, bit], n_bits, seed_for(seed, "order", bit, turn), max_sweeps)
            unfinished += not step.converged
            changed |= not np.array_equal(step.z, Z[:, bit])
            Z[:, bit] = step.z
            loss.add(step.z)
            course.append(loss.value())
        if not changed:
            break
    if unfinished:
        warnings.warn(
            f"{unfinished} z-steps stopped at max_sweeps={max_sweeps} before they converged: raise max_sweeps",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Z, course


def flip_some(bits: NDArray[np.int8], share: float, seed: int) -> NDArray[np.int8]:
    """Flip a random share of codes in {-1,+1}."""
    flipped = np.random.default_rng(seed).permutation(bits.size)[: round(share * bits.size)]
    out = bits.copy()
    out.reshape(-1)[flipped] *= -1
    return out


@dataclass(eq=False, repr=False, kw_only=True)
class KSHcut(TwoStepMethod):
    """KSH's loss over coupled bits, each lowered by min-cut in turn, then one classifier per bit.

    The baseline of the ILH paper (its section 4): E(Z) = sum over pairs of (z_n'z_m - b y_nm)^2, y = +1 for points of a
    label and -1 for others, over codes Z in {-1,+1}; first from all ones, each bit by the alternating min-cut of ILH
    with the other bits fixed, then a hash function fitted to each bit.

    Parameters
    ----------
    max_iter : int, default 1, times that every bit has its turn; the paper does it once
    init : "ones", a fitted model, or packed codes of all rows of X, default "ones"
        Codes to begin with; a model of ILHt makes it the paper's KSHcut-ILHt.
    flip : float, default 0
        Share of the codes that is flipped at random at the optimum, before the classifiers are fitted: if the optimum
        is one, this raises the loss and lowers the precision.
    n_similar, n_dissimilar : int, default 100, partners of each training point in pairs
    max_sweeps : int, default 1000, limit on the sweeps of each bit's z-step

    Attributes
    ----------
    report_ : dict
        ``loss``, the mean of (z_n'z_m / b - y_nm)^2 at the start and after each bit; ``flipped_loss`` after flips.

    References
    ----------
    M. A. Carreira-Perpinan and R. Raziperchikolaei, An ensemble diversity approach to supervised binary hashing,
    NIPS 2016, section 4.
    G. Lin, C. Shen, Q. Shi, A. van den Hengel and D. Suter, Fast supervised hashing with decision trees for
    high-dimensional data, CVPR 2014.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) + np.repeat([[0], [3]], 50, axis=0)
    >>> model = KSHcut(n_bits=4, n_similar=10, n_dissimilar=10).fit(X, np.repeat([0, 1], 50))
    >>> model.report_["loss"][-1] < model.report_["loss"][0]
    True
    """

    renamed: ClassVar[dict[str, str]] = {"passes": "max_iter", "start": "init"}

    max_iter: int = count(1)
    init: Any = "ones"
    flip: float = checked(0.0, check_fraction, "a share")
    n_similar: int = count(100)
    n_dissimilar: int = count(100)
    max_sweeps: int = count(MAX_SWEEPS)

    def _pairs(self, training: TrainingSet, seed: int) -> scipy.sparse.csr_array:
        """Return +1 for similar and -1 for dissimilar training points; a variant without labels draws its own."""
        return label_pairs(training.labels, self.n_similar, self.n_dissimilar, seed)

    def _bits(self, training: TrainingSet, seed: int) -> NDArray[np.int8]:
        y = self._pairs(training, seed_for(seed, "graph"))
        start = self._first_codes(training)
        bits, self.report_["loss"] = cut_codes(y, start, max_iter=self.max_iter, seed=seed, max_sweeps=self.max_sweeps)
        self.n_iter_ = (len(self.report_["loss"]) - 1) // self.n_bits
        if self.flip > 0:
            bits = flip_some(bits, self.flip, seed_for(seed, "start"))
            self.report_["flipped_loss"] = PairLoss(y, bits).value()
        return bits

    def _first_codes(self, training: TrainingSet) -> NDArray[np.int8]:
        n = len(training.rows.values)
        if isinstance(self.init, str) and self.init == "ones":
            return np.ones((n, self.n_bits), np.int8)
        if isinstance(self.init, Hasher):
            given = self.init.transform(training.rows.values + self.origin_)
        elif isinstance(self.init, np.ndarray) and self.init.ndim == 2 and self.init.dtype == np.uint8:
            if training.numbers is None or training.numbers.max() >= len(self.init):
                raise ValueError(f"init must hold the codes of all rows of X, got {len(self.init)} codes")
            given = self.init[training.numbers]
        else:
            raise ValueError(
                "init must be 'ones', a fitted model, or packed codes (uint8, one row per row of X), got "
                f"{type(self.init).__name__} {self.init!r:.60}"
            )
        if given.shape[1] != codes.bytes_per_code(self.n_bits):
            raise ValueError(
                f"init must hold codes of {self.n_bits} bits, {codes.bytes_per_code(self.n_bits)} bytes each, got "
                f"{given.shape[1]} bytes"
            )
        return np.where(codes.unpack(given, self.n_bits), np.int8(1), np.int8(-1))
