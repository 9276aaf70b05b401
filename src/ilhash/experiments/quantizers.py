"""Quantisers of faiss, peers at equal bytes: PQ, PQ of principal components, OPQ, RaBitQ; float queries, no labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._extras import require
from ilhash.methods import UndefinedError

RABITQ_FACTORS = 8  # bytes of two floats beside the bits of each item, without which distances cannot be estimated
CODEWORDS = 256  # of each part of a product quantiser: a byte
ROTATIONS = 8  # rounds of OPQ; faiss makes 50, which take minutes: what they would add was not measured
MOST_POINTS = 10_000  # that k-means learns from; faiss itself takes 256 per codeword at most
DIMENSIONS_PER_PART = 4  # that principal components keep before PCA-PQ and OPQ: what faiss advises
LEAST_DIMENSIONS = 32  # but so many in all: at 4 bytes 16 are too few (on MNIST)

Floats = NDArray[np.float32]


@dataclass
class Quantizer:
    """An index of faiss behind a rotation, with codes of so many bytes.

    Attributes
    ----------
    name : str, "PQ", "PCA-PQ", "OPQ" or "RaBitQ"
    n_bytes : int, of each item in memory, all counted
    """

    name: str
    n_bytes: int
    _rotations: list[Any]
    _index: Any

    def fit(self, X: Floats) -> Quantizer:
        """Learn rotations and codewords.

        Parameters
        ----------
        X : float32 array (n, D), training vectors

        Returns
        -------
        self
        """
        some = X[np.linspace(0, len(X) - 1, min(len(X), MOST_POINTS)).astype(np.int64)]
        for rotation in self._rotations:
            rotation.train(some)
            some = rotation.apply(some)
        self._index.train(some)
        return self

    def encode(self, X: Floats) -> NDArray[np.uint8]:
        """Return what the index keeps of vectors.

        Parameters
        ----------
        X : float32 array (n, D)

        Returns
        -------
        uint8 array (n, n_bytes)
        """
        return np.asarray(self._index.sa_encode(self._rotated(X)))

    def nearest(self, codes: NDArray[np.uint8], queries: Floats, k: int) -> NDArray[np.int64]:
        """Search codes with float queries.

        Parameters
        ----------
        codes : uint8 array (n, n_bytes), what is searched
        queries : float32 array (m, D)
        k : int, at most n

        Returns
        -------
        int64 array (m, k), rows of the codes, nearest first
        """
        self._index.reset()
        self._index.add_sa_codes(np.ascontiguousarray(codes))
        return np.asarray(self._index.search(self._rotated(queries), k)[1])

    def _rotated(self, X: Floats) -> Floats:
        X = np.ascontiguousarray(X, dtype=np.float32)
        for rotation in self._rotations:
            X = rotation.apply(X)
        return X


def make_quantizer(name: str, n_bytes: int, n_features: int, n_points: int) -> Quantizer:
    """Return a quantiser that is not trained yet, on one thread.

    Parameters
    ----------
    name : {"PQ", "PCA-PQ", "OPQ", "RaBitQ"}
    n_bytes, n_features, n_points : int, bytes of a code, D, and vectors that it will learn from

    Returns
    -------
    Quantizer
        Refused (:class:`ilhash.methods.UndefinedError`) where there is none of so few bytes, dimensions or points.
    """
    faiss = require("faiss", "faiss", name)
    faiss.omp_set_num_threads(1)
    if name == "RaBitQ":
        return _rabitq(faiss, n_bytes, n_features)
    if n_points < CODEWORDS:
        raise UndefinedError(f"{name} must have {CODEWORDS} points to learn from, one per codeword, got {n_points}")
    if n_bytes > n_features:
        raise UndefinedError(f"{name} must have a dimension for each byte, got {n_bytes} bytes for {n_features}")
    if name == "PQ":  # the vectors as they are, filled up with zeros so that all parts are of one size
        dimensions = -(-n_features // n_bytes) * n_bytes
        rotations = [faiss.RemapDimensionsTransform(n_features, dimensions, False)]
    else:
        per_part = max(DIMENSIONS_PER_PART, LEAST_DIMENSIONS // n_bytes)
        dimensions = min(per_part, n_features // n_bytes) * n_bytes
        rotations = [faiss.PCAMatrix(n_features, dimensions)]
    if name == "OPQ":
        rotations.append(_optimized_rotation(faiss, dimensions, n_bytes))
    index = faiss.IndexPQ(dimensions, n_bytes, 8)
    index.pq.cp.min_points_per_centroid = 1  # a warning on the screen otherwise
    return Quantizer(name, n_bytes, rotations, index)


def _optimized_rotation(faiss: Any, dimensions: int, n_parts: int) -> Any:
    rotation = faiss.OPQMatrix(dimensions, n_parts)
    rotation.niter = ROTATIONS
    inner = faiss.ProductQuantizer(dimensions, n_parts, 8)
    inner.cp.min_points_per_centroid = 1
    inner.this.disown()  # the rotation frees it
    rotation.pq = inner
    return rotation


def _rabitq(faiss: Any, n_bytes: int, n_features: int) -> Quantizer:
    dimensions = min(8 * (n_bytes - RABITQ_FACTORS), n_features // 8 * 8)
    if dimensions <= 0:
        got = f"{n_bytes} bytes and {n_features} dimensions"
        raise UndefinedError(f"RaBitQ must have a byte of bits beside its {RABITQ_FACTORS} of factors, got {got}")
    index = faiss.IndexRaBitQ(dimensions, faiss.METRIC_L2)
    rotation = faiss.PCAMatrix(n_features, dimensions, 0.0, True)  # randomly rotated, as the method asks for
    return Quantizer("RaBitQ", dimensions // 8 + RABITQ_FACTORS, [rotation], index)
