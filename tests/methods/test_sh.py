import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.contract import MethodContract

from ilhash.methods import SH
from ilhash.methods._sh import smoothest_modes


class TestSH(MethodContract):
    name = "SH"
    seeded = False


@pytest.mark.parametrize("low", [-3.0, 0.0, 40.0])
def test_one_uniform_dimension_gives_cosines_of_growing_frequency(low):
    x = np.linspace(low, low + 2.0, 1001)
    margins = SH(n_bits=5).fit(x[:, None]).decision_function(x[:, None])
    wanted = np.cos(np.pi * np.arange(1, 6) * (x - low)[:, None] / 2.0)
    np.testing.assert_allclose(margins, wanted, atol=2e-5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), st.integers(1, 20))
def test_modes_are_the_smallest_eigenvalues_in_order(ranges, n_bits):
    ranges = np.array(ranges)
    axis, mode = smoothest_modes(ranges, n_bits)
    taken = mode / ranges[axis]
    assert (np.diff(taken) >= 0).all()
    every = {(a, k): k / ranges[a] for a in range(len(ranges)) for k in range(1, n_bits + 1)}
    np.testing.assert_allclose(np.sort(list(every.values()))[:n_bits], taken)
    assert len(set(zip(axis.tolist(), mode.tolist(), strict=True))) == n_bits


def test_the_formula_written_out_for_two_axes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2)) * [6.0, 2.5]
    model = SH(n_bits=3).fit(X)
    centred = X - X.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    axes *= np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, None]
    positions = centred @ axes.T
    low, high = positions.min(axis=0), positions.max(axis=0)
    # Ranges are some 12 and 5: the first two modes of the long axis come before the first one of the short axis.
    assert (model.report_["axes"], model.report_["modes"]) == ([0, 0, 1], [1, 2, 1])
    for bit, (axis, k) in enumerate([(0, 1), (0, 2), (1, 1)]):
        wanted = np.sin(np.pi / 2 + k * np.pi / (high[axis] - low[axis]) * (positions[:, axis] - low[axis]))
        np.testing.assert_allclose(model.decision_function(X)[:, bit], wanted, atol=1e-4)


def test_equal_points_are_refused():
    with pytest.raises(ValueError, match="X must vary"):
        SH(n_bits=2).fit(np.ones((9, 3)))
