"""Which scaling "auto" comes to, and that a model keeps it."""

import numpy as np
import pytest

import ilhash
from ilhash import ILH, datasets
from ilhash.functions import scaling_for
from ilhash.vectors import gather

PAPER = {"start": "random", "n_similar": 10}
RNG = np.random.default_rng(0)


def decided(X):
    X = np.asarray(X, np.float32)
    return scaling_for(gather(X, np.arange(min(len(X), 1000)), np.median(X[:1000], axis=0).astype(np.float32)))


def rare_words(n=1000, d=200):
    return (RNG.random((n, d)) < RNG.uniform(0.001, 0.2, d)) * RNG.uniform(0.5, 1.5, (n, d))


@pytest.mark.parametrize(
    ("X", "wanted"),
    [
        (datasets.load("digits").X, "whole"),
        (rare_words(), "whole"),
        (RNG.normal(size=(1000, 50)), "columns"),
        (RNG.normal(size=(1000, 50)) * 10.0 ** RNG.uniform(-3, 3, 50), "columns"),
        (np.concatenate([rare_words(d=20), RNG.normal(size=(1000, 20)) * 1000], axis=1), "columns"),
        (np.ones((50, 3)), "columns"),
    ],
    ids=["pixels", "words", "embeddings", "units", "words beside sums of money", "constant"],
)
def test_the_rule(X, wanted):
    assert decided(X) == wanted
    assert decided(np.asarray(X) * 1e-3 + 7.0) == wanted


def test_a_model_keeps_what_it_came_to(tmp_path):
    data = datasets.load("digits")
    model = ILH(n_bits=4, **PAPER).fit(data.X, data.y)
    assert (model.scaling, model.scaling_) == ("auto", "whole")
    plain = ILH(n_bits=4, scaling="whole", **PAPER).fit(data.X, data.y)
    assert model.weights().tobytes() == plain.weights().tobytes()
    assert (
        model.weights().tobytes() != ILH(n_bits=4, scaling="columns", **PAPER).fit(data.X, data.y).weights().tobytes()
    )
    model.save(tmp_path / "model")
    loaded = ilhash.load(tmp_path / "model")
    assert (loaded.scaling, loaded.scaling_) == ("auto", "whole")
    more = loaded.add_bits(2, data.X, data.y)
    assert more.weights().tobytes() == ILH(n_bits=6, **PAPER).fit(data.X, data.y).weights().tobytes()
