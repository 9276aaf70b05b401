import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from tests.methods.contract import MethodContract

from ilhash.evaluation import retrieval_scorer
from ilhash.methods import KSH
from ilhash.methods._ksh import PairResidue, Residue, whitened
from ilhash.methods._ksh_loss import label_pairs
from ilhash.methods._pairs import AllPairs


class TestKSH(MethodContract):
    name = "KSH"
    parameters = {"n_centers": 60, "max_iter": 10}  # noqa: RUF012

    @pytest.mark.parametrize("factor", [1000.0, 0.001, 7.0])
    def test_scale_and_shift_do_not_matter(self, data, model, factor):
        """Each bit is fitted to what the ones before leave: rounding may send later bits another, equally good way."""
        X = factor * data[0].astype(np.float64)
        other = self.make().fit(X, data[1])
        assert ((other.decision_function(X) > 0) != (model.decision_function(data[0]) > 0))[:, :2].mean() < 2e-2
        assert other.report_["loss"] == pytest.approx(model.report_["loss"], rel=0.02)


def shared_labels(indicator):
    """y by definition, pair by pair."""
    return np.array([[1.0 if (a * b).any() else -1.0 for b in indicator] for a in indicator])


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(2, 5), st.booleans(), st.integers(0, 10_000))
def test_factors_multiply_to_all_similarities_and_the_loss_is_what_it_says(n, n_labels, several, seed):
    rng = np.random.default_rng(seed)
    indicator = np.eye(n_labels)[rng.integers(0, n_labels, n)]
    if several:
        indicator = np.maximum(indicator, rng.random((n, n_labels)) < 0.3)
    pairs, y = AllPairs.of_labels(indicator.astype(np.float32)), shared_labels(indicator)
    np.testing.assert_allclose((pairs.F * pairs.sign) @ pairs.F.T, y, atol=1e-9)
    Z = rng.choice([-1.0, 1.0], (n, 3))
    np.testing.assert_allclose(pairs.loss(Z), np.mean((Z @ Z.T / 3 - y) ** 2), atol=1e-9)


@pytest.fixture
def problem():
    """Random kernel features with labels, the residue after two bits, and the same as a dense matrix."""
    rng = np.random.default_rng(0)
    phi = rng.random((40, 6)).astype(np.float32)
    indicator = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 40)]
    H = rng.choice(np.array([-1.0, 1.0], np.float32), (40, 2))
    residue = Residue(AllPairs.of_labels(indicator), 5)
    for h in H.T:
        residue.add(h)
    return phi, residue, 5 * shared_labels(indicator) - H @ H.T


def test_the_residue_is_that_of_the_definition(problem):
    phi, residue, R = problem
    np.testing.assert_allclose(residue.times(phi[:, 0]), R @ phi[:, 0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(residue.between(phi), phi.T @ R @ phi, rtol=1e-3, atol=1e-2)


def test_the_start_solves_the_generalised_eigenproblem(problem):
    """max a'K'R K a subject to |K a|^2 = N, as the paper states it."""
    phi, residue, R = problem
    P, T, mean = whitened(phi)
    K = phi.astype(np.float64) - mean
    np.testing.assert_allclose(P.T @ P, 40 * np.eye(P.shape[1]), atol=1e-3)
    np.testing.assert_allclose(K @ T, P, atol=1e-4)
    values = scipy.linalg.eigh(K.T @ R @ K, K.T @ K / 40, eigvals_only=True)
    np.testing.assert_allclose(np.linalg.eigvalsh(residue.between(P)), values, rtol=1e-3, atol=1e-2)


def test_the_smoothed_objective_and_its_gradient(problem):
    phi, residue, R = problem
    P = whitened(phi)[0]
    u = np.random.default_rng(1).normal(size=P.shape[1])
    s = 2.0 / (1.0 + np.exp(-(P @ u))) - 1.0
    assert residue.smoothed(u, P)[0] == pytest.approx(-s @ R @ s / 40**2, rel=1e-4)
    error = check_grad(lambda v: residue.smoothed(v, P)[0], lambda v: residue.smoothed(v, P)[1], u, epsilon=1e-2)
    assert error < 0.02 * np.linalg.norm(residue.smoothed(u, P)[1])


def test_no_bit_gets_worse_by_the_gradient_steps(digits):
    report = KSH(n_bits=16, n_centers=100).fit(*digits).report_
    start, end = np.array(report["smoothed_start"]), np.array(report["smoothed"])
    assert (end <= start + 1e-6).all()
    assert (end < start - 1e-3).any()
    assert (np.array(report["quality"]) >= np.array(report["quality_start"])).all()


def test_the_loss_falls_with_the_number_of_bits_and_is_that_of_the_codes(digits):
    X, y = digits[0][:700], digits[1][:700]
    losses = []
    for n_bits in (1, 4, 16):
        model = KSH(n_bits=n_bits, n_centers=100).fit(X, y)
        Z = np.where(model.decision_function(X) > 0, 1.0, -1.0)
        losses.append(model.report_["loss"])
        assert losses[-1] == pytest.approx(
            np.mean((Z @ Z.T / n_bits - np.where(y[:, None] == y, 1, -1)) ** 2), abs=0.01
        )
    assert losses[0] > losses[1] > losses[2]


def test_iterations_must_be_a_number(digits):
    with pytest.raises(ValueError, match="max_iter must be a whole number"):
        KSH(n_bits=4, max_iter=0).fit(*digits)


def test_the_residue_of_some_pairs_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    indicator = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 40)]
    y = label_pairs(indicator, 4, 5, 0)
    H = rng.choice(np.array([-1.0, 1.0], np.float32), (40, 5))
    residue, pattern = PairResidue(y, 5), y.toarray() != 0
    assert 0 < pattern.sum() < 40 * 39
    assert (y.toarray()[pattern] == shared_labels(indicator)[pattern]).all()
    for h in H.T[:2]:
        residue.add(h)
    R = np.where(pattern, 5 * y.toarray() - H[:, :2] @ H[:, :2].T, 0.0)
    v = rng.normal(size=40).astype(np.float32)
    np.testing.assert_allclose(residue.times(v), R @ v, rtol=1e-4, atol=1e-4)
    P = whitened(rng.random((40, 6)).astype(np.float32))[0].astype(np.float64)
    values, vectors = np.linalg.eigh(P.T @ R @ P)
    found = residue.leading(P.astype(np.float32))
    assert found @ P.T @ R @ P @ found == pytest.approx(values[-1], rel=1e-3)
    assert abs(found @ vectors[:, -1]) == pytest.approx(1.0, abs=1e-2)
    for h in H.T[2:]:
        residue.add(h)
    assert residue.loss() == pytest.approx(np.mean(((H @ H.T) / 5 - y.toarray())[pattern] ** 2), rel=1e-5)


def test_some_pairs_do_nearly_as_well_as_all(digits):
    X, y = digits[0][:900], digits[1][:900]
    scores = {}
    for n_pairs in (None, 2, 100):
        model = KSH(n_bits=16, n_centers=100, n_pairs=n_pairs).fit(X, y)
        scores[n_pairs] = retrieval_scorer(20)(model, digits[0][900:], digits[1][900:])
    assert scores[2] < scores[100] < scores[None] + 0.02
    assert scores[100] > scores[None] - 0.05
    with pytest.raises(ValueError, match="n_pairs must be a whole number"):
        KSH(n_bits=4, n_pairs=0).fit(X, y)
