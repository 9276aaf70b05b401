"""Data that many tests share: small, with an obvious right answer, or bundled with scikit-learn."""

from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest

from ilhash import datasets
from ilhash.tuning import _course

hypothesis.settings.register_profile("ilhash", deadline=None)  # how long an example takes is the machine's affair
hypothesis.settings.load_profile("ilhash")


@pytest.fixture(scope="session")
def digits():
    data = datasets.load("digits")
    return data.X, data.y


@pytest.fixture
def no_clock(monkeypatch):
    """Let a search for the best model go by its plan: a busy machine must not decide."""
    monkeypatch.setattr(_course, "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(_course.Budget, "left", lambda self: 0.0)


@pytest.fixture(scope="session")
def blobs():
    """Four well separated clouds in ten dimensions, 200 points each."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 200)
    centres = np.zeros((4, 10))
    centres[np.arange(4), np.arange(4)] = 12.0
    order = rng.permutation(len(y))
    return (centres[y] + rng.normal(size=(800, 10)))[order].astype(np.float32), y[order]


@pytest.fixture(scope="session")
def mnist():
    """Base and queries of MNIST; skips where the data are not."""
    try:
        data = datasets.load("mnist")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    order = np.random.default_rng(0).permutation(len(data.X))
    queries, base = order[:2_000], order[2_000:]
    return data.X[base], data.y[base], data.X[queries], data.y[queries]
