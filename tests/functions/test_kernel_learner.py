"""Kernel functions: widths in closed form, basis functions by definition, SVMs at their minimum."""

import numpy as np
import pytest

from ilhash import ILH, datasets
from ilhash.functions import KernelLearner, LearnerSettings, PoolFunction
from ilhash.functions import _kernel as kernel
from ilhash.functions._kernel import BLOCK, RadialBasis
from ilhash.functions._svm import fit_squared_hinge_float64, squared_hinge_objective
from ilhash.vectors import gather

CLOSE = 2e-5  # relative, of the objective


def rows_of(n, d, seed, features=None):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) @ (rng.standard_normal((d, d)) * np.geomspace(1, 0.1, d)) + 20.0).astype(
        np.float32
    )
    return gather(X, np.arange(n), np.median(X, axis=0).astype(np.float32), features)


def bits(rows, seed):
    rng = np.random.default_rng(seed)
    values = (rows.values - rows.mean) / np.sqrt(rows.variance)
    curve = np.sin(2 * values[:, :4]).sum(axis=1) + 0.5 * rng.standard_normal(len(values))
    return np.where(curve > 0, 1, -1).astype(np.int8)


def by_definition(basis, values):
    scaled = values.astype(np.float64) * basis.factor
    squared = ((scaled[:, None, :] - basis.centers.astype(np.float64)) ** 2).sum(axis=2)
    return np.exp(-squared / basis.width)


def gap(fitted, rows, C):
    """Relative distance of the objective from its minimum; of a pool, over the centres that the bit uses."""
    function = fitted.function
    chosen = function.chosen if isinstance(function, PoolFunction) else slice(None)
    phi = np.ones((len(rows.values), len(function.weights) + 1))
    phi[:, :-1] = by_definition(function.basis, rows.values)[:, chosen]
    w, z = np.append(function.weights, function.bias).astype(np.float64), fitted.targets.astype(np.float64)
    best = squared_hinge_objective(phi, z, fit_squared_hinge_float64(phi, z, C), C)
    return squared_hinge_objective(phi, z, w, C) / best - 1.0


@pytest.mark.parametrize("scaling", ["columns", "whole"])
@pytest.mark.parametrize("own", [True, False])
def test_the_width_is_half_the_mean_squared_distance(scaling, own):
    rows = rows_of(300, 12, 0)
    basis = RadialBasis.around(rows, np.arange(40) if own else np.array([7, 3]), scaling, None)
    scaled = rows.values.astype(np.float64) * basis.factor
    squared = ((scaled[:, None, :] - basis.centers.astype(np.float64)) ** 2).sum(axis=2)
    assert basis.width == pytest.approx(0.5 * squared.mean(), rel=1e-5)
    assert RadialBasis.around(rows, np.arange(3), scaling, 2.5).width == 2.5


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_basis_functions_are_as_defined_in_any_number_of_blocks(n):
    rows = rows_of(n + 5, 9, 1)
    basis = RadialBasis.around(rows, np.arange(5), "columns", 4.0)
    values = rows.values[:n]
    wanted = by_definition(basis, values)
    assert basis.of(values) == pytest.approx(wanted, abs=2e-6)
    rng = np.random.default_rng(2)
    weights, bias = rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal(3).astype(np.float32)
    assert basis.products(values, weights, bias) == pytest.approx(wanted @ weights.T + bias, abs=2e-5)


def counted(monkeypatch):
    calls, exact = [], kernel.fit_squared_hinge
    monkeypatch.setattr(kernel, "fit_squared_hinge", lambda *given, **more: calls.append(more) or exact(*given, **more))
    return calls


@pytest.mark.parametrize("centers", ["common", "pool", "private"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_svms_are_at_their_minimum(centers, C, monkeypatch):
    calls = counted(monkeypatch)
    sample = rows_of(2500, 10, 3)
    learner = KernelLearner.from_settings(
        LearnerSettings(
            C=C, centers=centers, n_centers=60, n_train=1200, sample=lambda n: sample.take(np.arange(n)[:2500])
        )
    )
    assert (learner.preconditioner is None) == (centers == "private")
    for seed in range(3):
        rows = sample.take(np.random.default_rng(seed).permutation(2500)[:1200])
        fitted = learner.fit(rows, bits(rows, seed), None, seed)
        assert gap(fitted, rows, C) <= CLOSE
        assert fitted.function.margins(rows.values) == pytest.approx(fitted.margins, abs=2e-3)
    assert not calls, "the preconditioner was to be enough"


@pytest.mark.parametrize("centers", ["common", "private"])
def test_few_rows_and_subsets_of_features_take_the_exact_path(centers, monkeypatch):
    calls = counted(monkeypatch)
    sample, features = rows_of(500, 10, 4), np.array([0, 2, 3, 5, 8], np.int32)
    settings = LearnerSettings(
        centers=centers, n_centers=60, n_train=100, sample=lambda n: sample.take(np.arange(n)[:500])
    )
    rows = rows_of(100, 10, 4, features)
    fitted = KernelLearner.from_settings(settings).fit(rows, bits(rows, 0), features, 0)
    assert len(calls) == 1
    assert gap(fitted, rows, 10.0) <= 1e-4


def test_common_functions_of_a_model_share_one_basis_and_stay_independent():
    data = datasets.load("digits")
    how = {"hash_function": "kernel", "n_centers": 40, "n_train": 400, "n_similar": 10, "start": "random"}
    one, three = (ILH(n_bits=b, **how).fit(data.X, data.y) for b in (1, 3))
    assert len({id(function.basis) for function in three.functions_}) == 1
    assert one.functions_[0].weights.tobytes() == three.functions_[0].weights.tobytes()
    more = one.add_bits(2, data.X, data.y)
    assert [f.weights.tobytes() for f in more.functions_] == [f.weights.tobytes() for f in three.functions_]
