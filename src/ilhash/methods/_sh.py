"""Spectral hashing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ilhash.functions import CosineFunction, HashFunction
from ilhash.methods._axes import principal_axes
from ilhash.methods._base import Method, TrainingData, UndefinedError


def smoothest_modes(ranges: NDArray[np.float64], n_bits: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return axis and mode number k >= 1 of the functions cos(k pi t / range) of smallest eigenvalue, in their order.

    The eigenvalue 1 - exp(-eps^2 / 2 (k pi / range)^2) grows with k / range, whatever eps is. Ties go to the axis of
    larger variance.
    """
    axis, mode = (grid.ravel() for grid in np.indices((len(ranges), n_bits)))
    mode = mode + 1
    order = np.argsort(mode / ranges[axis], kind="stable")[:n_bits]
    return axis[order], mode[order]


class SH(Method):
    """Spectral hashing: the smoothest eigenfunctions of a uniform distribution along the principal axes.

    Along an axis on which the points fill [a, a + range], the eigenfunctions of the Laplacian are
    cos(k pi (t - a) / range), k = 1, 2, ... The b of smallest eigenvalue over the first min(b, D) axes are taken, so
    that long axes give several bits and any number of bits can be had. More bits bring further axes into the choice: a
    prefix is not the shorter model.

    Attributes
    ----------
    report_ : dict, ``axes`` and ``modes``, which axis (from 0) and which k each bit has

    References
    ----------
    Y. Weiss, A. Torralba and R. Fergus, Spectral hashing, NIPS 2008.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 8)[:, None]
    >>> np.unpackbits(SH(n_bits=2).fit(X).transform(X), axis=1)[:, :2].T
    array([[1, 1, 1, 1, 0, 0, 0, 0],
           [1, 1, 0, 0, 0, 0, 1, 1]], dtype=uint8)
    """

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        training = data.training_set()
        variances, axes = principal_axes(training.rows)
        axes = axes[:, : self.n_bits]
        if not len(variances):
            raise UndefinedError(f"X must vary, got {self.n_train_} training points that are all equal")
        positions = (training.centered() @ axes.astype(np.float32)).astype(np.float64)
        low, ranges = positions.min(axis=0), np.ptp(positions, axis=0)
        axis, mode = smoothest_modes(ranges, self.n_bits)
        self.report_ |= {"axes": axis.tolist(), "modes": mode.tolist()}
        frequency = np.pi * mode / ranges[axis]
        weights = (axes[:, axis] * frequency).T
        phase = -(weights @ training.rows.mean) - frequency * low[axis]
        return [CosineFunction(w.astype(np.float32), np.float32(p)) for w, p in zip(weights, phase, strict=True)]
