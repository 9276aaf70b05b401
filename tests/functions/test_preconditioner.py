"""Linear SVMs under a model's preconditioner: at the minimum within 2e-5, whatever the preconditioner is worth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash import ILH, _core, datasets
from ilhash.functions import LearnerSettings, LinearLearner, standardization
from ilhash.functions._preconditioner import ACTIVE, Preconditioner, inverted
from ilhash.functions._svm import fit_squared_hinge_float64, squared_hinge_objective
from ilhash.vectors import gather

CLOSE = 2e-5  # relative, of the objective


def gathered(X, rows=None):
    X = np.ascontiguousarray(X, np.float32)
    rows = np.arange(len(X)) if rows is None else rows
    return gather(X, np.asarray(rows, np.int64), np.median(X[:1000], axis=0).astype(np.float32))


def vectors(n, d, seed, tail=1.0):
    """Correlated features of very different size, far from the origin."""
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((n, d)) @ (rng.standard_normal((d, d)) * np.geomspace(1, 0.05, d))
    return (np.sign(mixed) * np.abs(mixed) ** tail) * np.geomspace(0.03, 30, d) + 50.0


def bits_of(X, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    plane = Z @ rng.standard_normal(X.shape[1])
    z = np.where(plane + noise * plane.std() * rng.standard_normal(len(X)) > 0, 1, -1).astype(np.int8)
    z[:2] = 1, -1
    return z


def gap(rows, scaling, C, fitted):
    """Relative distance of the objective of a linear function from its minimum."""
    shift, factor = standardization(rows, scaling)
    design = np.hstack([(rows.values - shift) * factor, np.ones((len(rows.values), 1))])
    seen = factor > 0
    w = np.zeros(len(factor) + 1)
    w[:-1][seen] = fitted.function.weights[seen] / factor[seen]
    w[-1] = float(fitted.function.bias) + float(fitted.function.weights.astype(np.float64) @ shift)
    z = fitted.targets.astype(np.float64)
    best = squared_hinge_objective(design, z, fit_squared_hinge_float64(design, z, C), C)
    return squared_hinge_objective(design, z, w, C) / best - 1.0


def learner(sample, scaling, C, n_train):
    found = LinearLearner.from_settings(
        LearnerSettings(C=C, scaling=scaling, n_train=n_train, sample=lambda size: sample.copy())
    )
    assert found.preconditioner is not None
    return found


def counted(monkeypatch):
    """Count the problems that the preconditioner does not do for."""
    from ilhash.functions import _linear

    calls, exact = [], _linear.fit_squared_hinge

    def fit(*arguments, **more):
        calls.append(more)
        return exact(*arguments, **more)

    monkeypatch.setattr(_linear, "fit_squared_hinge", fit)
    return calls


@pytest.mark.parametrize("scaling", ["columns", "whole"])
@pytest.mark.parametrize("C", [1e-3, 1e-2, 1e-1, 1.0])
def test_the_objective_is_within_2e_5_of_its_minimum(scaling, C, monkeypatch):
    calls = counted(monkeypatch)
    X = vectors(4000, 40, 0)
    own = learner(gathered(X[:2000]), scaling, C, 1500)
    for seed in range(3):
        rows = gathered(X, np.random.default_rng(seed).permutation(4000)[:1500])
        fitted = own.fit(rows.copy(), bits_of(rows.values, seed), None, 0)
        assert -1e-6 < gap(rows, scaling, C, fitted) <= CLOSE
    assert not calls or C > 0.01, "the preconditioner was to be enough here"


def test_on_real_features_no_hessian_is_formed(monkeypatch):
    calls = counted(monkeypatch)
    data = datasets.load("digits")
    own = learner(gathered(data.X), "whole", 0.01, 900)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(data.X))[:900]
        z = np.where(np.isin(data.y[rows], rng.permutation(10)[:5]), 1, -1).astype(np.int8)
        found = gathered(data.X, rows)
        assert gap(found, "whole", 0.01, own.fit(found.copy(), z, None, 0)) <= CLOSE
    assert not calls


@pytest.mark.parametrize("C", [1e-2, 1.0])
def test_subsets_of_features_take_their_part_of_it(C):
    X = vectors(3000, 30, 1)
    own = learner(gathered(X[:1500]), "columns", C, 1200)
    rng = np.random.default_rng(2)
    features = np.sort(rng.permutation(30)[:11]).astype(np.int32)
    rows = gather(X.astype(np.float32), np.arange(1500, 2700), np.full(30, 50, np.float32), features)
    fitted = own.fit(rows.copy(), bits_of(rows.values, 3), features, 0)
    assert np.array_equal(fitted.function.features, features)
    assert gap(rows, "columns", C, fitted) <= CLOSE


def test_where_it_does_not_suit_the_rows_the_exact_path_answers(monkeypatch):
    calls = counted(monkeypatch)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 60)) * (rng.random((3000, 60)) < 0.003) * 30 + 0.01 * rng.standard_normal((3000, 60))
    other = rng.standard_normal((3000, 60)) @ (rng.standard_normal((60, 60)) * np.geomspace(1, 1e-2, 60))
    own = learner(gathered(other), "columns", 0.1, 1500)
    rows = gathered(X, np.arange(1500))
    fitted = own.fit(rows.copy(), bits_of(rows.values, 5, noise=3.0), None, 0)
    assert gap(rows, "columns", 0.1, fitted) <= CLOSE
    assert len(calls) == 1
    assert calls[0]["start"] is not None


@settings(deadline=None, max_examples=30)
@given(
    st.integers(60, 400),
    st.integers(1, 40),
    st.floats(-3, 1),
    st.floats(0.0, 3.0),
    st.floats(1.0, 3.0),
    st.integers(0, 2**32),
)
def test_any_random_problem_reaches_the_minimum_of_the_twin(n, d, log_C, noise, tail, seed):
    X, C = vectors(2 * n, d, seed, tail), 10.0**log_C
    rows = gathered(X, np.random.default_rng(seed).permutation(2 * n)[:n])
    fitted = learner(gathered(X), "columns", C, n).fit(rows.copy(), bits_of(rows.values, seed, noise), None, 0)
    assert gap(rows, "columns", C, fitted) <= 1e-4
    margins = fitted.function.margins(rows.values).astype(np.float64)
    assert np.abs(margins - fitted.margins).max() <= 1e-3 * max(1.0, np.abs(margins).max())


def test_features_that_vary_in_one_of_both_alone_do_no_harm():
    X = vectors(2000, 12, 6)
    X[:1000, 3] = X[1000:, 7] = 2.0
    own = learner(gathered(X[:1000]), "columns", 0.1, 800)
    rows = gathered(X, np.arange(1000, 1800))
    fitted = own.fit(rows.copy(), bits_of(X[1000:1800, [0, 1, 2, 3, 4]], 7), None, 0)
    assert fitted.function.weights[7] == 0
    assert gap(rows, "columns", 0.1, fitted) <= CLOSE


def test_it_is_what_the_definition_says():
    X = np.random.default_rng(8).standard_normal((500, 8)) @ np.random.default_rng(9).standard_normal((8, 8)) + 1.0
    found = Preconditioner.of(gathered(X), "columns", 0.02, 300)
    Z = np.hstack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones((500, 1))])
    hessian = np.eye(9) + 2 * 0.02 * 300 * ACTIVE * Z.T @ Z / 500
    assert found.inverse(None) == pytest.approx(np.linalg.inv(hessian), rel=1e-3, abs=1e-5)
    assert found.inverse(np.array([1, 4], np.int32)) == pytest.approx(
        np.linalg.inv(hessian[np.ix_([1, 4, 8], [1, 4, 8])]), rel=1e-3, abs=1e-5
    )


def test_where_there_are_more_features_than_rows_there_is_none():
    X = vectors(30, 40, 9)
    assert Preconditioner.of(gathered(X), "columns", 0.01, 1000) is None
    assert Preconditioner.of(gathered(vectors(300, 40, 9)), "columns", 0.01, 40) is None
    assert inverted(np.array([[1.0, 2.0], [2.0, 1.0]], np.float32)) is None


def test_bits_depend_on_data_seed_and_their_number_alone():
    data = datasets.load("digits")
    how = {"n_train": 300, "n_similar": 10, "start": "random", "scaling": "whole"}
    one, many = (ILH(n_bits=b, **how).fit(data.X, data.y) for b in (1, 3))
    assert one.weights().tobytes() == many[:1].weights().tobytes()
    assert one.add_bits(2, data.X, data.y).weights().tobytes() == many.weights().tobytes()
    other = ILH(n_bits=1, random_state=1, **how).fit(data.X, data.y)
    assert other.weights().tobytes() != many[:1].weights().tobytes()


def test_rows_are_not_written():
    X = vectors(600, 10, 10)
    rows = gathered(X, np.arange(300))
    kept = rows.with_ones.copy()
    learner(gathered(X), "columns", 0.01, 300).fit(rows, bits_of(rows.values, 1), None, 0)
    assert np.array_equal(rows.with_ones, kept)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 0.0])
def test_a_preconditioner_of_nonsense_is_told_from_a_good_one(bad):
    rows, ones = np.ones((20, 3), np.float32), np.ones(20, np.float32)
    inverse = np.full((3, 3), bad, np.float32)
    *_, solved = _core.solve_squared_hinge(rows, ones[:2] * 0, ones[:2], ones, 1.0, inverse, 1e-5)
    assert not solved


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"shift": np.zeros(3, np.float32)}, "one shift and factor per column but the last"),
        ({"y": np.zeros(20, np.float32)}, "y must hold -1"),
        ({"y": np.ones(19, np.float32)}, "one value per row"),
        ({"C": 0.0}, "C must be positive"),
        ({"C": float("nan")}, "C must be positive"),
        ({"inverse": np.eye(2, dtype=np.float32)}, "a row per column"),
        ({"rows": np.ones((20, 0), np.float32)}, "column of ones"),
    ],
)
def test_the_core_refuses_what_does_not_fit_together(change, sentence):
    ones = np.ones(20, np.float32)
    right = {"rows": np.ones((20, 3), np.float32), "shift": ones[:2], "factor": ones[:2], "y": ones, "C": 1.0}
    right |= {"inverse": np.eye(3, dtype=np.float32), "tolerance": 1e-5}
    with pytest.raises(ValueError, match=sentence):
        _core.solve_squared_hinge(**(right | change))
