import numpy as np
import pytest
from tests.methods.contract import MethodContract

from ilhash.codes import unpack
from ilhash.methods import Sign


class TestSign(MethodContract):
    name = "Sign"
    limit = 65
    reason = "at most 64 for Sign on these data, one per feature"
    seeded = False


def test_a_bit_is_a_feature_above_its_mean(digits):
    X = digits[0].astype(np.float64)
    model = Sign().fit(X)
    assert np.array_equal(unpack(model.transform(X), 64), X.mean(axis=0) < X)
    assert model.n_bits is None


@pytest.mark.parametrize("n_bits", [1, 7, 63])
def test_fewer_bits_are_the_features_of_largest_variance_in_their_order(digits, n_bits):
    X = digits[0].astype(np.float64)
    kept = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:n_bits])
    assert np.array_equal(unpack(Sign(n_bits).fit(X).transform(X), n_bits), (X.mean(axis=0) < X)[:, kept])


def test_other_parameters_are_checked_without_a_number_of_bits(digits):
    with pytest.raises(ValueError, match="n_train must be"):
        Sign(n_train=0).fit(digits[0])
