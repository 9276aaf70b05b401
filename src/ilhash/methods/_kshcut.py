"""The KSH loss by alternating min-cut over the bits."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import codes
from ilhash._parameters import check_count, refuse_unavailable
from ilhash.diversity import seed_for
from ilhash.hasher import Hasher
from ilhash.methods._base import TrainingSet
from ilhash.methods._ksh_loss import PairLoss, label_pairs
from ilhash.methods._two_step import TwoStepMethod
from ilhash.zstep import MAX_SWEEPS

__all__ = ["KSHcut", "cut_codes", "flip_some"]


def cut_codes(
    y: scipy.sparse.csr_array, start: NDArray[np.int8], *, passes: int = 1, seed: int = 0, max_sweeps: int = MAX_SWEEPS
) -> tuple[NDArray[np.int8], list[float]]:
    """Lower the KSH loss of codes, bit after bit, each by alternating min-cut with the others fixed.

    Parameters
    ----------
    y : symmetric sparse matrix of +1 (similar) and -1 (dissimilar), empty diagonal
    start : int8 (N, b) of -1 and +1
    passes : times that every bit has its turn; it ends sooner where a pass changes nothing
    seed : of the order of the blocks
    max_sweeps : limit on the sweeps of each z-step

    Returns
    -------
    The codes, and the mean of (z_n'z_m / b - y_nm)^2 over pairs at the start and after each bit, never increasing.
    """
    Z, n_bits = np.asfortranarray(start).copy(order="F"), start.shape[1]
    loss = PairLoss(y, Z)
    course = [loss.value()]
    for turn in range(passes):
        changed = False
        for bit in range(n_bits):
            loss.remove(Z[:, bit])
            z = loss.next_bit(Z[:, bit], n_bits, seed_for(seed, "order", bit, turn), max_sweeps).z
            changed |= not np.array_equal(z, Z[:, bit])
            Z[:, bit] = z
            loss.add(z)
            course.append(loss.value())
        if not changed:
            break
    return Z, course


def flip_some(bits: NDArray[np.int8], share: float, seed: int) -> NDArray[np.int8]:
    """Flip a random share of codes in {-1,+1}."""
    flipped = np.random.default_rng(seed).permutation(bits.size)[: round(share * bits.size)]
    out = bits.copy()
    out.reshape(-1)[flipped] *= -1
    return out


class KSHcut(TwoStepMethod):
    """KSH's loss over coupled bits, each lowered by min-cut in turn, then one classifier per bit.

    The baseline of the ILH paper (its section 4): E(Z) = sum over pairs of (z_n'z_m - b y_nm)^2, y = +1 for points of a
    label and -1 for others, over codes Z in {-1,+1}; first from all ones, each bit by the alternating min-cut of ILH
    with the other bits fixed, then a hash function fitted to each bit.

    Parameters
    ----------
    n_bits : int, default 64
        Number of bits b.
    hash_function, C, n_centers, kernel_width, scaling : as in ILH
    passes : int, default 1
        Times that every bit has its turn; the paper does it once.
    start : "ones", a fitted model, or packed codes of all rows of X, default "ones"
        Codes to begin with; a model of ILHt makes it the paper's KSHcut-ILHt.
    flip : float, default 0
        Share of the codes that is flipped at random at the optimum, before the classifiers are fitted: if the optimum
        is one, this raises the loss and lowers the precision.
    n_similar, n_dissimilar : int, default 100
        Partners of each training point in pairs.
    max_sweeps : int, default 1000
        Limit on the sweeps of each bit's z-step.
    n_train : int or "auto", default "auto"
        Training points N; "auto" is up to 5,000.
    unlabeled : label or None, default -1
        The label that means unknown.
    random_state : int, RandomState, Generator or None, default 0
        Training points, pairs, and the order of blocks.
    n_jobs : int, optional
        Workers that fit the classifiers.

    Attributes
    ----------
    report_ : ``loss``, the mean of (z_n'z_m / b - y_nm)^2 at the start and after each bit; ``flipped_loss`` after flips

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

    def __init__(
        self,
        n_bits: int = 64,
        *,
        hash_function: Any = "linear",
        C: float | str = "auto",
        n_centers: int = 500,
        kernel_width: float | None = None,
        scaling: str = "columns",
        passes: int = 1,
        start: Any = "ones",
        flip: float = 0.0,
        n_similar: int = 100,
        n_dissimilar: int = 100,
        max_sweeps: int = MAX_SWEEPS,
        n_train: int | str = "auto",
        unlabeled: Any = -1,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_bits,
            hash_function=hash_function,
            C=C,
            n_centers=n_centers,
            kernel_width=kernel_width,
            scaling=scaling,
            n_train=n_train,
            unlabeled=unlabeled,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.passes = passes
        self.start = start
        self.flip = flip
        self.n_similar = n_similar
        self.n_dissimilar = n_dissimilar
        self.max_sweeps = max_sweeps

    def _check_parameters(self) -> None:
        super()._check_parameters()
        refuse_unavailable(self.start)
        for name in ("passes", "n_similar", "n_dissimilar", "max_sweeps"):
            check_count(name, getattr(self, name))
        flip: Any = self.flip
        if not isinstance(flip, numbers.Real) or not 0 <= float(flip) <= 1:
            raise ValueError(f"flip must be a share between 0 and 1, got {flip!r}")

    def _bits(self, training: TrainingSet, seed: int) -> NDArray[np.int8]:
        y = label_pairs(training.labels, self.n_similar, self.n_dissimilar, seed_for(seed, "graph"))
        start = self._start(training)
        bits, self.report_["loss"] = cut_codes(y, start, passes=self.passes, seed=seed, max_sweeps=self.max_sweeps)
        if self.flip > 0:
            bits = flip_some(bits, self.flip, seed_for(seed, "start"))
            self.report_["flipped_loss"] = PairLoss(y, bits).value()
        return bits

    def _start(self, training: TrainingSet) -> NDArray[np.int8]:
        n = len(training.rows.values)
        if isinstance(self.start, str) and self.start == "ones":
            return np.ones((n, self.n_bits), np.int8)
        if isinstance(self.start, Hasher):
            given = self.start.transform(training.rows.values + self.origin_)
        elif isinstance(self.start, np.ndarray) and self.start.ndim == 2 and self.start.dtype == np.uint8:
            if training.numbers is None or training.numbers.max() >= len(self.start):
                raise ValueError(f"start must hold the codes of all rows of X, got {len(self.start)} codes")
            given = self.start[training.numbers]
        else:
            raise ValueError(
                "start must be 'ones', a fitted model, or packed codes (uint8, one row per row of X), got "
                f"{type(self.start).__name__} {self.start!r:.60}"
            )
        if given.shape[1] != codes.bytes_per_code(self.n_bits):
            raise ValueError(
                f"start must hold codes of {self.n_bits} bits, {codes.bytes_per_code(self.n_bits)} bytes each, got "
                f"{given.shape[1]} bytes"
            )
        return np.where(codes.unpack(given, self.n_bits), np.int8(1), np.int8(-1))
