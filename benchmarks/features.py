"""Real 320-d features for timing: gradient orientations of CIFAR-10 images, or a stand-in without data."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from ilhash import datasets


def oriented_gradients(images: np.ndarray) -> np.ndarray:
    """4 x 4 cells x 20 orientations of images (n, 32, 32): one histogram of gradient directions per cell."""
    rows, columns = np.gradient(images.astype(np.float32), axis=(1, 2))
    strength = np.hypot(rows, columns)
    direction = np.minimum((np.arctan2(rows, columns) + np.pi) * (20 / (2 * np.pi)), 19).astype(np.int64)
    cell = (np.arange(32) // 8)[:, None] * 4 + (np.arange(32) // 8)[None, :]
    bins = np.arange(len(images))[:, None, None] * 320 + cell * 20 + direction
    return np.bincount(bins.ravel(), strength.ravel(), len(images) * 320).reshape(-1, 320)


def standardised_320() -> tuple[np.ndarray, np.ndarray, str]:
    """Return 60,000 x 320 float32 features of unit variance, their labels, and where they come from."""
    try:
        cifar = datasets.load("cifar10")
    except FileNotFoundError:
        return *_synthetic(), "synthetic classes (CIFAR-10 not found)"
    grey = cifar.X.reshape(-1, 3, 1024).mean(axis=1).reshape(-1, 32, 32)
    features = np.concatenate([oriented_gradients(part) for part in np.array_split(grey, 20)])
    return _standardise(np.sqrt(features)), cifar.y, "oriented gradients of CIFAR-10"


def cifar_features() -> tuple[np.ndarray, np.ndarray, str]:
    """Return the GIST features of CIFAR-10 where the datasets have them, otherwise oriented gradients."""
    if "cifar10-gist" in {entry.name for entry in datasets.available() if entry.present}:
        gist = datasets.load("cifar10-gist")
        return _standardise(np.asarray(gist.X, dtype=np.float64)), gist.y, "GIST of CIFAR-10"
    return standardised_320()


def principal_components(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return pixels as 160 principal components of 5,000 training points; fewer than 400 features as they are."""
    if X.shape[1] < 400:
        return X
    some = np.random.default_rng(0).permutation(train)[:5_000]
    return PCA(160, svd_solver="covariance_eigh").fit(X[some].astype(np.float32)).transform(X.astype(np.float32))


def _synthetic() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 60_000)
    mixing = rng.normal(size=(320, 320)) * np.geomspace(1.0, 0.1, 320)
    return _standardise((rng.normal(size=(10, 320))[labels] * 0.5 + rng.normal(size=(60_000, 320))) @ mixing), labels


def _standardise(features: np.ndarray) -> np.ndarray:
    return ((features - features.mean(axis=0)) / features.std(axis=0)).astype(np.float32)
