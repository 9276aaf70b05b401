"""Agreement with faiss, where it has the same method; faiss is no dependency, its absence skips."""

import numpy as np
import pytest

from ilhash.methods import TPCA
from ilhash.rotations import random_rotation, rotate_to_corners

faiss = pytest.importorskip("faiss", reason="faiss is a peer to compare with: pip install faiss-cpu")


def test_thresholded_pca_has_the_bits_of_faiss(digits):
    X = digits[0].astype(np.float32)
    peer = faiss.PCAMatrix(64, 16)
    peer.train(X)
    wanted, margins = peer.apply(X), TPCA(n_bits=16).fit(X).decision_function(X)
    wanted *= np.sign(np.sum(wanted * margins, axis=0))
    clear = np.abs(wanted) > 1e-2
    assert ((wanted > 0) == (margins > 0))[clear].all()
    assert clear.mean() > 0.99


@pytest.fixture
def clouds():
    V = (np.random.default_rng(0).standard_normal((2000, 12)) * np.linspace(2.0, 0.5, 12)).astype(np.float32)
    return V, random_rotation(12, np.random.default_rng(1))


def itq_of_faiss(V, start, iterations):
    """The rotation, as rows."""
    peer = faiss.ITQMatrix(V.shape[1])
    peer.max_iter = iterations
    faiss.copy_array_to_vector(start.ravel(), peer.init_rotation)
    peer.train(V)
    return faiss.vector_to_array(peer.A).reshape(V.shape[1], -1).astype(np.float64)


def test_a_step_of_itq_is_that_of_faiss_or_differs_by_its_known_slip(clouds):
    """The rotation closest to B given V is U Q', where U S Q' is the SVD of B'V. Faiss (1.15) takes U Q."""
    V, start = clouds
    B = np.where(V @ start > 0, 1.0, -1.0)
    U, _, Qt = np.linalg.svd(B.T @ V)
    R, _ = rotate_to_corners(V, start, 1)
    np.testing.assert_allclose(R.T, U @ Qt, atol=1e-4)
    peer = itq_of_faiss(V, start, 1)
    agrees = np.allclose(peer, R.T, atol=1e-4)
    slips = np.allclose(np.abs(U.T @ peer), np.abs(Qt.T), atol=1e-5)  # up to the signs of singular vectors
    assert agrees or slips


def test_itq_ends_no_higher_than_faiss(clouds):
    V, start = clouds
    for iterations in (1, 5, 20, 50):
        rotated = V @ itq_of_faiss(V, start, iterations).T
        peer = np.sum((np.sign(rotated) - rotated) ** 2) / len(V)
        assert rotate_to_corners(V, start, iterations)[1][-1] <= 1.01 * peer
