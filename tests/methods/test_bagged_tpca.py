import numpy as np
import pytest
from tests.methods.contract import MethodContract

import ilhash
from ilhash.diversity import seed_for
from ilhash.methods import BaggedTPCA


class BaggedContract(MethodContract):
    def assert_read(self, rows, reads):
        """Bits of a member learn from its sample, which repeats some rows."""
        for bit, own in enumerate(rows):
            assert np.array_equal(own, np.sort(reads[bit // self.parameters["member_bits"]]))


class TestBaggedTPCA(BaggedContract):
    name = "BaggedTPCA"
    parameters = {"member_bits": 4}  # noqa: RUF012
    checks = {"member_bits": 1}  # noqa: RUF012


class TestBaggedTPCAOfSingleBits(BaggedContract):
    name = "BaggedTPCA"
    parameters = {"member_bits": 1}  # noqa: RUF012


def test_members_of_one_bit_all_estimate_the_first_axis():
    X = np.random.default_rng(0).normal(size=(500, 4)) * [10.0, 1.0, 1.0, 1.0]
    bits = BaggedTPCA(n_bits=9, member_bits=1, n_train=100).fit(X).decision_function(X) > 0
    agreement = np.abs(2 * (bits == bits[:, :1]).mean(axis=0) - 1)
    assert agreement.min() > 0.8
    assert agreement[1:].max() < 1.0


def test_members_are_the_principal_axes_of_their_own_bootstrap_samples(digits):
    X = digits[0].astype(np.float64)
    model = BaggedTPCA(n_bits=11, member_bits=4, n_train=300).fit(X)
    margins = model.decision_function(X)
    for member, bits in enumerate((range(0, 4), range(4, 8), range(8, 11))):
        rows = np.random.default_rng(seed_for(0, "rows", member)).integers(0, len(X), 300)
        centre = X[rows].mean(axis=0)
        axes = np.linalg.svd(X[rows] - centre, full_matrices=False)[2][: len(bits)]
        wanted = (X - centre) @ axes.T
        wanted *= np.sign(np.sum(wanted * margins[:, bits], axis=0))
        np.testing.assert_allclose(margins[:, bits], wanted, rtol=1e-3, atol=2e-3)


def test_members_with_more_bits_than_dimensions_are_refused(digits):
    with pytest.raises(ValueError, match=r"member_bits must be at most 5\d .* got 64"):
        BaggedTPCA(n_bits=128, member_bits=64, n_train=100).fit(digits[0])
    with pytest.raises(ValueError, match="member_bits must be a whole number"):
        BaggedTPCA(member_bits=0).fit(digits[0])


def test_a_part_knows_the_members_of_its_bits(digits, tmp_path):
    model = BaggedTPCA(n_bits=8, member_bits=3, n_train=50).fit(digits[0])
    part = model[[7, 2]]
    assert (part.members_, model.members_) == ([2, 0], [0, 0, 0, 1, 1, 1, 2, 2])
    part.save(tmp_path / "m")
    for own in (part, ilhash.load(tmp_path / "m")):
        assert np.array_equal(own.training_rows(0), model.training_rows(6))
