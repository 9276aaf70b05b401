"""Sequential projection learning for hashing, semi-supervised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from numpy.typing import NDArray

from ilhash._parameters import count, positive
from ilhash.affinity import Labels, LabelSets
from ilhash.diversity import UniformOrder, seed_for
from ilhash.functions import HashFunction
from ilhash.hasher import Given
from ilhash.methods._axes import covariance, one_way_round
from ilhash.methods._base import SupervisedMethod, TrainingData, linear_functions
from ilhash.storage import Record

_LANCZOS_FROM = 50  # features; below, all eigenvectors are found as fast


def sequential_projections(
    C: NDArray[np.float64], Xl: NDArray[np.float32], S: NDArray[np.float32], n_bits: int, eta: float, alpha: float
) -> NDArray[np.float64]:
    """Return directions (D, n_bits), each the first eigenvector of Xl' S Xl + eta C, S and C being updated in between.

    C is the covariance of all points, Xl the labelled points, centred, and S is +1 for pairs of them with a common
    label and -1 for others; see :class:`SPLH`.
    """
    C, S = C.copy(), S.copy()
    tiny = np.finfo(np.float32).tiny
    unit_fit, unit_variance = 0.0, eta / max(scipy.linalg.norm(C, 2), tiny)
    directions = np.empty((len(C), n_bits))
    for bit in range(n_bits):
        fit = (Xl.T @ (S @ Xl)).astype(np.float64)
        if bit == 0:
            unit_fit = 1.0 / max(scipy.linalg.norm(fit, 2), tiny)
        w = _first_eigenvector(unit_fit * fit + unit_variance * C)
        directions[:, bit] = w
        position = Xl @ w.astype(np.float32)
        position /= max(np.sqrt(np.mean(position**2)), tiny)
        predicted = np.outer(position, position)
        S -= np.float32(alpha) * np.where(predicted * S < 0, predicted, np.float32(0.0))
        Cw = C @ w
        C += (w @ Cw) * np.outer(w, w) - np.outer(w, Cw) - np.outer(Cw, w)  # (I - w w') C (I - w w')
    return directions


def _first_eigenvector(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix = (matrix + matrix.T) / 2.0
    if len(matrix) < _LANCZOS_FROM:
        vectors = np.linalg.eigh(matrix)[1][:, -1:]
    else:
        start = matrix[:, np.diag(matrix).argmax()] + np.diag(matrix)
        vectors = scipy.sparse.linalg.eigsh(matrix, 1, which="LA", v0=start)[1]
    return np.asarray(one_way_round(vectors)[:, 0])


@dataclass(eq=False, repr=False, kw_only=True)
class SPLH(SupervisedMethod):
    """Directions learnt one after the other, each to mend the pairs that the ones before got wrong; semi-supervised.

    Direction k is the first eigenvector of the adjusted covariance X_l' S_k X_l + eta C_k: X_l are the labelled points,
    S_1 is +1 for pairs of one label and -1 for others, and C_1 is the covariance of all points, labelled or not. Pairs
    that a bit contradicts get more weight, S_k+1 = S_k - alpha T(p p', S_k), where p = X_l w_k scaled to unit mean
    square and T keeps the entries of other sign than S_k; from C the direction is removed. X_l stays as it is: were
    the directions removed from it too, nothing would be left to correct after L - 1 bits, and precision would fall with
    the number of bits (on MNIST from .45 at 16 bits to .38 at 64, instead of rising to .66). Both terms are divided by
    their first norm, so that eta does not depend on units.

    Parameters
    ----------
    eta : float, default 1.0, weight of the variance of all points against the fit to the labelled pairs
    alpha : float, default 0.5, how much a wrong pair gains in weight
    n_labeled : int, default 1000, labelled points l that pairs are made of, at most N: the matrix S is (l, l)
    n_train : int or "auto", default "auto", points N that the covariance is taken of; "auto" is up to 50,000

    References
    ----------
    J. Wang, S. Kumar and S.-F. Chang, Sequential projection learning for hashing with compact codes, ICML 2010.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> SPLH(n_bits=4).fit(X, X[:, 0] > 0).transform(X).shape
    (100, 1)
    """

    nested: ClassVar[bool] = True
    auto_train: ClassVar[int] = 50_000
    _kept: ClassVar[dict[str, Callable[[Record, str], Any]]] = {
        **SupervisedMethod._kept,
        "n_labeled": Record.whole,
        "all_labeled": Record.truth,
    }

    eta: float = positive(1.0)
    alpha: float = positive(0.5)
    n_labeled: int = count(1000, least=2)

    def _drawable(self, supervision: Labels | LabelSets | None) -> None:
        """Let unlabelled points be drawn too: they count for the variance."""

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        everything = data.training_set().rows
        known = super()._drawable(data.supervision)
        self.all_labeled_ = known is None
        self.n_labeled_ = min(self.n_labeled, self.n_train_, len(data.X) if known is None else len(known))
        pairs = data.training_set(self._drawn_labelled(len(data.X), data.supervision))
        scale = 1.0 / np.sqrt(max(everything.variance.mean(), np.finfo(float).tiny))  # keeps float32 far from its ends
        Xl = ((pairs.rows.values - everything.mean) * scale).astype(np.float32)
        S = np.where(pairs.labels @ pairs.labels.T > 0, np.float32(1.0), np.float32(-1.0))
        W = sequential_projections(covariance(everything) * scale**2, Xl, S, self.n_bits, self.eta, self.alpha)
        return linear_functions(everything, W)

    def _drawn_labelled(self, n_rows: int, supervision: Labels | LabelSets | None) -> NDArray[np.int64]:
        known = UniformOrder(n_rows, super()._drawable(supervision))
        return np.sort(known.take(seed_for(self.seed_, "graph"), 0, self.n_labeled_))

    def _rows_of_bit(self, bit: int, X: Any, y: Any, graph: Given) -> NDArray[np.int64]:
        """Return the rows of the covariance and those of the labelled pairs, each once."""
        rows = super()._rows_of_bit(bit, X, y, graph)
        if X is None and not self.all_labeled_:
            raise ValueError("X and y must be given again, since SPLH knows only where all rows have a label, got no X")
        n_rows = int(self.n_rows_ or 0) if X is None else len(X)
        return np.union1d(rows, self._drawn_labelled(n_rows, None if X is None else self._supervision(n_rows, y)))

    def _read_own_document(self, record: Record) -> None:
        n_labeled = min(self.n_labeled, record.whole("n_train"))
        super()._read_own_document(record.completed({"n_labeled": n_labeled, "all_labeled": False}))  # not kept earlier
