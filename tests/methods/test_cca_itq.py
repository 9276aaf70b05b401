import numpy as np
import pytest
import scipy.linalg
from sklearn.cross_decomposition import CCA
from tests.methods.contract import MethodContract

from ilhash.methods import CCAITQ, LSH
from ilhash.methods._base import TrainingSet
from ilhash.methods._cca_itq import canonical_directions
from ilhash.vectors import gather


class TestCCAITQ(MethodContract):
    name = "CCAITQ"
    checks = {"regularization": 0.1}  # noqa: RUF012


@pytest.fixture
def training(digits):
    X, y = digits
    indicator = (y[:, None] == np.arange(10)).astype(np.float32)
    return TrainingSet(gather(X, np.arange(len(X)), np.zeros(64, np.float32)), indicator)


def test_canonical_directions_solve_the_generalised_eigenproblem(training):
    directions, correlations = canonical_directions(training, 1e-3)
    assert len(correlations) == 9  # one less than classes
    X = training.rows.values.astype(np.float64)
    X -= X.mean(axis=0)
    Y = training.labels.astype(np.float64)
    Y -= Y.mean(axis=0)
    n = len(X)
    sxx, sxy, syy = X.T @ X / n, X.T @ Y / n, Y.T @ Y / n
    sxx += 1e-3 * np.trace(sxx) / 64 * np.eye(64)
    squares, vectors = scipy.linalg.eigh(sxy @ np.linalg.pinv(syy, rcond=1e-10) @ sxy.T, sxx)
    np.testing.assert_allclose(correlations**2, squares[::-1][:9], rtol=1e-4)
    assert squares[::-1][9] < 1e-8
    wanted = vectors[:, ::-1][:, :9]
    wanted *= np.sign(np.sum(wanted * directions, axis=0))
    np.testing.assert_allclose(directions, wanted, atol=1e-4 * np.abs(wanted).max())
    np.testing.assert_allclose(directions.T @ sxx @ directions, np.eye(9), atol=1e-5)


def test_canonical_correlations_agree_with_scikit_learn(training):
    """Where the regularization is next to nothing, and on features that are not collinear."""
    X = training.rows.values[:, [10, 20, 28, 36, 42, 43, 53]]
    own = TrainingSet(gather(X, np.arange(len(X)), np.zeros(7, np.float32)), training.indicator)
    _, correlations = canonical_directions(own, 1e-9)
    a, b = CCA(n_components=3, scale=False, max_iter=5000, tol=1e-9).fit_transform(X, training.labels[:, :9])
    wanted = [np.corrcoef(a[:, i], b[:, i])[0, 1] for i in range(3)]
    np.testing.assert_allclose(correlations[:3], wanted, rtol=1e-3)


def test_more_bits_than_directions_are_hyperplanes_in_their_space(digits):
    X, y = digits
    model = CCAITQ(n_bits=40).fit(X, y)
    W = np.stack([f.weights for f in model.functions_]).astype(np.float64)
    assert len(model.report_["correlations"]) == 9
    assert np.linalg.matrix_rank(W, tol=1e-4 * np.linalg.norm(W, 2)) == 9
    assert len({row.tobytes() for row in W > 0}) > 30  # they differ all the same
    assert (np.diff(model.report_["loss"]) <= 1e-5).all()
    few = CCAITQ(n_bits=5).fit(X, y)
    assert len(few.report_["correlations"]) == 5


def test_labels_help(digits):
    from ilhash.evaluation import precision_at_k

    X, y = digits
    scores = []
    for method in (CCAITQ, LSH):
        codes = method(n_bits=32).fit(X[300:], y[300:]).transform(X)
        scores.append(precision_at_k(codes[300:], y[300:], codes[:300], y[:300], 50))
    assert scores[0] > scores[1] + 0.1


def test_labels_that_x_tells_nothing_about():
    X = np.ones((40, 3))
    with pytest.raises(ValueError, match="X must be correlated with the labels"):
        CCAITQ(n_bits=4).fit(X, np.arange(40) % 2)
