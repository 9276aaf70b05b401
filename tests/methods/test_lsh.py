import numpy as np
from tests.methods.contract import MethodContract

from ilhash.methods import LSH


class TestLSH(MethodContract):
    name = "LSH"


def test_points_agree_in_a_bit_with_probability_one_minus_angle_over_pi():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    X -= X.mean(axis=0)  # angles are seen from the mean
    bits = LSH(n_bits=20_000).fit(X).decision_function(X) > 0
    a, b = rng.integers(0, 400, (2, 300))
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    angle = np.arccos(np.clip(np.sum(unit[a] * unit[b], axis=1), -1, 1))
    agreement = (bits[a] == bits[b]).mean(axis=1)
    wanted = 1 - angle / np.pi
    spread = np.sqrt(wanted * (1 - wanted) / 20_000)
    assert (np.abs(agreement - wanted) <= 5 * spread + 1e-12).all()
