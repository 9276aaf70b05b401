import numpy as np
import pytest
from tests.methods.contract import MethodContract

from ilhash.evaluation import precision_at_k
from ilhash.methods import SPLH


class TestSPLH(MethodContract):
    name = "SPLH"
    parameters = {"n_labeled": 600}  # noqa: RUF012
    seeded = False

    def assert_read(self, rows, reads):
        """The rows of the covariance and those of the labelled pairs."""
        for own in rows:
            assert np.array_equal(own, np.unique(np.concatenate(reads)))


def pairs(labels):
    return np.where(labels[:, None] == labels[None, :], 1.0, -1.0)


def directions(model):
    """Unit weights, as columns."""
    W = np.stack([f.weights for f in model.functions_]).astype(np.float64).T
    return W / np.linalg.norm(W, axis=0)


def test_the_first_bit_is_the_first_eigenvector_of_the_adjusted_covariance(digits):
    X, y = digits[0][:300].astype(np.float64), digits[1][:300]
    centred = X - X.mean(axis=0)
    fit, variance = centred.T @ pairs(y) @ centred, centred.T @ centred
    adjusted = fit / np.linalg.norm(fit, 2) + 0.7 * variance / np.linalg.norm(variance, 2)
    wanted = np.linalg.eigh(adjusted)[1][:, -1]
    got = directions(SPLH(n_bits=1, eta=0.7).fit(X, y))[:, 0]
    assert abs(abs(wanted @ got) - 1.0) < 1e-6


def test_the_slow_twin_finds_the_same_directions(digits):
    """The sequence written out in double precision with explicit loops over pairs."""
    X, y = digits[0][:60].astype(np.float64), digits[1][:60]
    X = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    S, C = pairs(y), X.T @ X / 60
    fit_norm, variance_norm = np.linalg.norm(X.T @ S @ X, 2), np.linalg.norm(C, 2)
    model = SPLH(n_bits=6, eta=0.2, alpha=0.3).fit(X, y)
    for bit, got in enumerate(directions(model).T):
        w = np.linalg.eigh(X.T @ S @ X / fit_norm + 0.2 * C / variance_norm)[1][:, -1]
        assert abs(abs(w @ got) - 1.0) < 1e-3, bit
        p = X @ w
        p /= np.sqrt(np.mean(p**2))
        for i in range(60):
            for j in range(60):
                if p[i] * p[j] * S[i, j] < 0:
                    S[i, j] -= 0.3 * p[i] * p[j]
        keep = np.eye(64) - np.outer(w, w)
        C = keep @ C @ keep


def test_unlabelled_points_count_for_the_variance(digits):
    X, y = digits
    few = np.where(np.arange(len(y)) < 100, y, -1)
    alone = SPLH(n_bits=8).fit(X[:100], y[:100])
    with_others = SPLH(n_bits=8).fit(X, few)
    assert with_others.n_train_ == len(X)
    assert not np.array_equal(alone.transform(X), with_others.transform(X))


def test_bits_go_on_improving_beyond_the_number_of_classes(digits):
    X, y = digits
    model = SPLH(n_bits=32).fit(X[300:], y[300:])
    scores = []
    for part in (model[:8], model):
        codes = part.transform(X)
        scores.append(precision_at_k(codes[300:], y[300:], codes[:300], y[:300], 50))
    assert scores[1] > scores[0] + 0.05


def test_parameters_are_checked(digits):
    for change, message in (
        ({"eta": 0.0}, "eta must be a positive number"),
        ({"alpha": -1}, "alpha must be a positive number"),
        ({"n_labeled": 1}, "n_labeled must be a whole number of at least 2"),
    ):
        with pytest.raises(ValueError, match=message):
            SPLH(n_bits=2, **change).fit(*digits)
