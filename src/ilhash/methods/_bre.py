"""Supervised binary reconstructive embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash._parameters import count
from ilhash.diversity import seed_for
from ilhash.methods._base import KernelMethod, TrainingSet
from ilhash.methods._pairs import AllPairs
from ilhash.methods._signs import signs

Floats = NDArray[np.float64]
Factors = NDArray[np.float32]


def best_change(margins: Floats, column: Floats, factors: Factors, sign: Factors) -> float:
    """Return the t for which z = sign(margins + t column) makes sum_j sign_j (factors_j'z)^2 smallest.

    Point n changes sign at t_n = -margins_n / column_n and nowhere else. With the points sorted by t_n, the factors'
    products with z are running sums, and the objective between any two neighbouring t_n comes in one sweep. Margins and
    column are (N,), factors (r, N), and sign (r,) of -1 and +1.
    """
    moves = column != 0.0
    thresholds = -margins[moves] / column[moves]
    order = np.argsort(thresholds, kind="stable")
    thresholds = thresholds[order]
    first = signs(margins)
    first[moves] = np.where(column[moves] > 0, -1.0, 1.0)  # far to the left
    turned = np.flatnonzero(moves)[order]
    products = np.empty((len(factors), len(turned) + 1), np.float32)
    products[:, 0] = factors @ first.astype(np.float32)
    products[:, 1:] = factors[:, turned] * (-2.0 * first[turned]).astype(np.float32)
    np.cumsum(products, axis=1, out=products)
    np.square(products, out=products)
    return _inside(thresholds, int((sign @ products).argmin()))


def _inside(thresholds: Floats, place: int) -> float:
    """Return a number between two neighbouring thresholds, or beyond the first or last of them."""
    if len(thresholds) == 0:
        return 0.0
    if place == 0:
        return float(thresholds[0] - max(1.0, abs(thresholds[0])))
    if place == len(thresholds):
        return float(thresholds[-1] + max(1.0, abs(thresholds[-1])))
    return float(0.5 * (thresholds[place - 1] + thresholds[place]))


@dataclass(eq=False, repr=False, kw_only=True)
class BRE(KernelMethod):
    """Kernel functions whose Hamming distances match 0 and 1 for similar and other points, weight by weight.

    Minimises the sum over all pairs of (d_nm - t_nm)^2, d being the share of bits in which two points differ, t = 0 for
    points that share a label and 1 for others, over the weights W of bits sign(W'phi(x)), phi being centred radial
    basis functions. Coordinate descent: the best value of one weight, all others fixed, is found exactly. The sum over
    all pairs of N points costs N (b + L) here because the similarities of labels are a product of small factors.

    Parameters
    ----------
    n_weights : int, default 50, basis functions of each bit that have a weight, drawn at random among the centres
    max_iter : int, default 3
        Limit on the times that every weight has its turn; it ends sooner where a pass changes nothing.

    Attributes
    ----------
    report_ : dict, ``loss``, the mean of (d_nm - t_nm)^2 over all pairs, at the start and after each bit's turn

    References
    ----------
    B. Kulis and T. Darrell, Learning to hash with binary reconstructive embeddings, NIPS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) + np.repeat([[0], [3]], 50, axis=0)
    >>> model = BRE(n_bits=4, n_centers=20, n_weights=5).fit(X, np.repeat([0, 1], 50))
    >>> model.report_["loss"][-1] < model.report_["loss"][0]
    True
    """

    renamed: ClassVar[dict[str, str]] = {"passes": "max_iter"}

    n_weights: int = count(50)
    max_iter: int = count(3)

    def _weights(self, phi: NDArray[np.float32], training: TrainingSet, seed: int) -> tuple[Floats, Floats]:
        mean = phi.mean(axis=0, dtype=np.float64)
        columns = np.ascontiguousarray((phi - mean).T)  # one centre after the other
        n_weights = min(self.n_weights, len(columns))
        pairs = AllPairs.of_labels(training.labels)
        W = np.zeros((len(columns), self.n_bits))
        chosen = []
        for bit in range(self.n_bits):
            rng = np.random.default_rng(seed_for(seed, "start", bit))
            chosen.append(rng.permutation(len(columns))[:n_weights])
            W[chosen[bit], bit] = rng.standard_normal(n_weights)
        Z = signs(columns.T @ W)
        loss = [pairs.loss(Z) / 4]
        for _ in range(self.max_iter):
            changed = False
            for bit in range(self.n_bits):
                changed |= self._lower(bit, chosen[bit], columns, W, Z, pairs)
                loss.append(pairs.loss(Z) / 4)
            if not changed:
                break
        self.report_["loss"] = loss
        self.n_iter_ = (len(loss) - 1) // self.n_bits
        return W, -(mean @ W)

    def _lower(
        self, bit: int, chosen: NDArray[np.intp], columns: Floats, W: Floats, Z: Floats, pairs: AllPairs
    ) -> bool:
        """Give each weight of a bit its best value; True if that changed one.

        d - t = (y - z_n'z_m / b) / 2, so the loss over one bit z is z'(H H' - b y)z and a constant, H being the others.
        """
        others = np.delete(Z, bit, axis=1)
        factors = np.ascontiguousarray(np.column_stack([others, np.sqrt(self.n_bits) * pairs.F]).T, dtype=np.float32)
        sign = np.concatenate([np.ones(others.shape[1]), -pairs.sign]).astype(np.float32)
        z = Z[:, bit]
        margins = W[:, bit] @ columns
        best = _form(z, factors, sign)
        changed = False
        for center in chosen:
            t = best_change(margins, columns[center], factors, sign)
            moved = margins + t * columns[center]
            energy = _form(signs(moved), factors, sign)
            if energy < best - 1e-9 * abs(best):  # running sums are in single precision: only what is really lower
                W[center, bit] += t
                margins, best, changed = moved, energy, True
        Z[:, bit] = signs(margins)
        return changed


def _form(z: Floats, factors: Factors, sign: Factors) -> float:
    products = (factors @ z.astype(np.float32)).astype(np.float64)
    return float(sign @ products**2)
