import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.contract import MethodContract

from ilhash.methods import BRE
from ilhash.methods._bre import best_change


class TestBRE(MethodContract):
    name = "BRE"
    parameters = {"n_centers": 40, "n_weights": 8, "max_iter": 1}  # noqa: RUF012
    tolerance = 2e-2  # a weight may fall between two other points


def form(z, factors, sign):
    return float(sign @ (factors @ z) ** 2)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 10_000))
def test_the_best_value_of_a_weight_beats_all_others(n, r, seed):
    """Against every order of signs that a weight can give, tried one by one."""
    rng = np.random.default_rng(seed)
    margins, column = rng.normal(size=n), rng.normal(size=n) * (rng.random(n) > 0.2)
    factors, sign = rng.normal(size=(r, n)), rng.choice([-1.0, 1.0], r)

    def at(t):
        return form(np.where(margins + t * column > 0, 1.0, -1.0), factors, sign)

    turns = np.sort(-margins[column != 0] / column[column != 0])
    tried = [0.0, *(turns[:-1] + turns[1:]) / 2, *(turns[:1] - 1.0), *(turns[-1:] + 1.0)]
    found = at(best_change(margins, column, factors.astype(np.float32), sign.astype(np.float32)))
    assert found == pytest.approx(min(at(t) for t in tried), rel=1e-3, abs=1e-3)


def test_the_loss_never_rises_and_is_that_of_the_codes(digits):
    X, y = digits[0][:600], digits[1][:600]
    model = BRE(n_bits=10, n_centers=60, n_weights=20).fit(X, y)
    loss = np.array(model.report_["loss"])
    assert (np.diff(loss) <= 1e-12).all()
    assert loss[-1] < 0.9 * loss[0]
    bits = model.decision_function(X) > 0
    share = (bits[:, None] != bits[None]).mean(axis=2)
    assert loss[-1] == pytest.approx(np.mean((share - (y[:, None] != y)) ** 2), abs=2e-3)


def test_it_ends_where_no_weight_can_be_improved(blobs):
    X, y = blobs[0][:200], blobs[1][:200]
    short, long = (BRE(n_bits=3, n_centers=10, n_weights=4, max_iter=p).fit(X, y) for p in (60, 120))
    assert len(short.report_["loss"]) < 1 + 60 * 3
    assert short.report_["loss"] == long.report_["loss"]


def test_a_bit_has_as_many_weights_as_said(digits):
    model = BRE(n_bits=5, n_centers=30, n_weights=7, max_iter=1).fit(digits[0][:300], digits[1][:300])
    assert all(np.count_nonzero(function.weights) <= 7 for function in model.functions_)
    assert len({tuple(np.flatnonzero(function.weights)) for function in model.functions_}) == 5


@pytest.mark.parametrize("name", ["n_weights", "max_iter"])
def test_bad_parameters(digits, name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        BRE(n_bits=4, **{name: 0}).fit(*digits)
