"""Nearly constant features: no method may give them a weight that lets a little noise decide bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash import ILH, methods
from ilhash.functions import standardization
from ilhash.vectors import gather

SLOW = {"BRE": {"n_train": 200}, "MLH": {"n_train": 200}}
KINDS = {
    "ILH": lambda: ILH(n_bits=16, n_similar=20, n_dissimilar=20),
    "ILH random": lambda: ILH(n_bits=16, n_similar=20, n_dissimilar=20, start="random"),
    "ILH kernel": lambda: ILH(n_bits=16, n_similar=20, n_dissimilar=20, hash_function="kernel", n_centers=50),
    **{
        name: (lambda name=name: methods.get(name)(n_bits=16, **SLOW.get(name, {})))
        for name in ("CCAITQ", "STH", "AGH", "SPLH", "KSH", "KSHcut", "FastHash", "SDH", "BA", "ClassifierCode")
    },
}


def dusty_data(size, n_dusty, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 600)
    X = rng.normal(size=(600, 24)) + 2.0 * rng.normal(size=(4, 24))[y]
    X[:, :n_dusty] = size * rng.integers(0, 2, (600, n_dusty))
    return X.astype(np.float32), y, rng.normal(size=X.shape).astype(np.float32) * 0.02 * X[:, n_dusty:].std()


def flips(model, X, y, noise):
    model.fit(X, y)
    return float(np.mean((model.decision_function(X) > 0) != (model.decision_function(X + noise) > 0)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
@given(size=st.sampled_from([6e-8, 1e-6, 3e-5]), n_dusty=st.integers(1, 4), seed=st.integers(0, 99))
@settings(max_examples=3, deadline=None)
def test_noise_in_all_features_flips_about_as_many_bits_as_for_itq(name, size, n_dusty, seed):
    X, y, noise = dusty_data(size, n_dusty, seed)
    assert flips(KINDS[name](), X, y, noise) <= 3.0 * flips(methods.ITQ(n_bits=16), X, y, noise) + 0.02


@given(shares=st.lists(st.floats(-3.9, 3.0), min_size=3, max_size=10), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_features_of_other_units_keep_their_factors(shares, seed):
    """What is no dust is standardised as it always was: byte for byte 1 / its standard deviation."""
    X = np.random.default_rng(seed).normal(size=(300, len(shares))) * 10.0 ** np.minimum(shares, max(shares))
    rows = gather(X, np.arange(300), np.zeros(len(shares), np.float32))
    small = rows.variance <= 1e-8 * rows.variance.mean()
    factor = standardization(rows, "columns")[1]
    assert (factor[~small] == 1.0 / np.sqrt(rows.variance[~small])).all()
    assert (factor[small] == 0.0).all()
