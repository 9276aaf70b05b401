"""Anchor graph hashing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ilhash._parameters import count, one_of
from ilhash.diversity import seed_for
from ilhash.functions import AnchorFunction, Anchors, HashFunction, RadialBasis
from ilhash.methods._axes import one_way_round
from ilhash.methods._base import Method, TrainingData, TrainingSet


@dataclass(eq=False, repr=False, kw_only=True)
class AGH(Method):
    """Eigenvectors of a neighbourhood graph that goes through a few hundred anchors (k-means centres).

    A point is a mixture z(x) of its s nearest anchors, and two points are neighbours as far as their mixtures overlap:
    A = Z Lambda^-1 Z', Lambda = diag(Z'1). Its eigenvectors of largest eigenvalue are functions y(x) = w'z(x) of any
    point. With one layer a bit is y > 0; with two layers each eigenvector also gives a second bit, which cuts both
    sides of the first in two where the graph is cut least: the smooth eigenvectors are used twice.

    Parameters
    ----------
    n_bits : int, default 64, number of bits b; below the number of anchors, or twice that with two layers
    layers : {1, 2}, default 1, 1-AGH or 2-AGH; the two bits of an eigenvector stand side by side
    n_anchors : int, default 300, number of anchors m, or of training points where these are fewer
    n_nearest : int, default 5, anchors that a point is a mixture of, the paper's s
    n_train : int or "auto", default "auto", training points N; "auto" is up to 20,000

    Attributes
    ----------
    report_ : dict, ``eigenvalues`` of the eigenvectors used

    References
    ----------
    W. Liu, J. Wang, S. Kumar and S.-F. Chang, Hashing with graphs, ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> AGH(n_bits=12, n_anchors=20).fit(X).transform(X).shape
    (100, 2)
    """

    nested: ClassVar[bool] = True
    auto_train: ClassVar[int] = 20_000

    layers: int = one_of(1, 2)
    n_anchors: int = count(300, least=2)
    n_nearest: int = count(5)

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        training = data.training_set()
        anchors, Z = self._anchors(training, data.seed)
        W, eigenvalues = graph_eigenvectors(Z)
        self._refuse_bits_beyond(
            self.layers * len(eigenvalues),
            f"{self.layers} per eigenvector of the graph of {Z.shape[1]} anchors (n_anchors)",
        )
        count = -(-self.n_bits // self.layers)
        self.report_["eigenvalues"] = eigenvalues[:count].tolist()
        functions: list[HashFunction] = []
        for w in W[:, :count].T:
            weights = w.astype(np.float32)
            functions.append(AnchorFunction(anchors, weights))
            if self.layers == 2:
                functions.append(AnchorFunction(anchors, weights, second_layer(Z, w).astype(np.float32)))
        return functions[: self.n_bits]

    def _anchors(self, training: TrainingSet, seed: int) -> tuple[Anchors, scipy.sparse.csr_array]:
        """Place the anchors and express the training points in them, Z (N, m)."""
        rows = training.rows
        variance = rows.variance.mean()
        factor = np.full(rows.values.shape[1], 1.0 / np.sqrt(variance) if variance > 0 else 1.0, np.float32)
        centers = _kmeans(rows.values * factor, min(self.n_anchors, len(rows.values)), seed)
        anchors = Anchors(RadialBasis(centers, factor, 1.0, common=True), min(self.n_nearest, len(centers)))
        distances = anchors.basis.squared_distances(rows.values)
        farthest = np.partition(distances, anchors.nearest - 1, axis=1)[:, anchors.nearest - 1]
        width = float(np.sqrt(farthest).mean(dtype=np.float64)) ** 2
        anchors = Anchors(RadialBasis(centers, factor, width if width > 0 else 1.0, common=True), anchors.nearest)
        which, share = anchors.of(rows.values)
        begin = np.arange(len(which) + 1) * which.shape[1]
        Z = scipy.sparse.csr_array((share.ravel().astype(np.float64), which.ravel(), begin), (len(which), len(centers)))
        return anchors, Z


def _kmeans(values: NDArray[np.float32], count: int, seed: int) -> NDArray[np.float32]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # A few rounds are enough, says the paper. One thread: sums of several come in any order, and other bytes with it.
    search = KMeans(count, n_init=1, max_iter=10, random_state=seed_for(seed, "centers") % 2**32)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than anchors: some coincide
        centers: NDArray[np.float32] = search.fit(values).cluster_centers_
    return np.unique(centers, axis=0)


def graph_eigenvectors(Z: scipy.sparse.csr_array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return W (m, r), whose columns make Z W the eigenvectors of Z Lambda^-1 Z' of unit mean square, and eigenvalues.

    The constant eigenvector, which tells nothing, is left out; eigenvalues are above 0 and in descending order.
    """
    n = Z.shape[0]
    degree = np.asarray(Z.sum(axis=0)).ravel()
    root = np.sqrt(np.where(degree > 0, degree, 1.0))  # an anchor that no point is near to has a row of zeros in Z'Z
    small = (Z.T @ Z).toarray() / np.outer(root, root)
    constant = np.where(degree > 0, root, 0.0) / np.sqrt(n)
    small -= np.outer(constant, constant)
    eigenvalues, vectors = scipy.linalg.eigh(small, driver="evd")
    kept = eigenvalues > 1e-8
    eigenvalues, vectors = eigenvalues[kept][::-1], one_way_round(vectors[:, kept][:, ::-1])
    return np.sqrt(n) * vectors / root[:, None] / np.sqrt(eigenvalues), eigenvalues


def second_layer(Z: scipy.sparse.csr_array, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cuts (upper, lower) of the second bit of an eigenvector y = Z w.

    f is y - upper where y > 0 and lower - y elsewhere; among the cuts that make f sum to 0, those that minimize f'Lf,
    L = I - Z Lambda^-1 Z', are taken. With f = p + upper * q that is a quadratic function of one number.
    """
    y = Z @ w
    above = y > 0
    n_above, n_below = np.count_nonzero(above), np.count_nonzero(~above)
    excess = np.abs(y).sum()
    p = np.abs(y) - np.where(above, 0.0, excess / n_below)
    q = np.where(above, -1.0, n_above / n_below)
    degree = np.asarray(Z.sum(axis=0)).ravel()
    weight = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    zp, zq = Z.T @ p, Z.T @ q
    upper = -(q @ p - zq @ (weight * zp)) / (q @ q - zq @ (weight * zq))
    return np.array([upper, (n_above * upper - excess) / n_below])
