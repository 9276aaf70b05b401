"""Three sizes of the same experiments: seconds on bundled digits, minutes on real data, hours as in the paper."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Data:
    """A dataset and how it is split."""

    source: str  # name for ``ilhash.datasets``; "infinite digits" and "infinite mnist" are the endless sets
    title: str  # as figures call it
    n_base: int  # points that are searched and learned from
    n_queries: int  # points that are searched for
    k: int  # neighbours retrieved for the headline number; also the true neighbours K where there are no labels
    labelled: bool = True  # whether equal labels are relevant, or else the K nearest in Euclidean space


@dataclass(frozen=True)
class Scale:
    """Everything that differs between scales."""

    name: str
    about: str
    images: Data  # for CIFAR of the paper
    digits: Data  # for infinite MNIST
    words: Data  # for Flickr
    edges: Data  # the features that the paper has of Flickr
    n_train: int  # the standard N
    sizes: tuple[int, ...]  # N of the diversity mechanisms and of the runtime
    wide_sizes: tuple[int, ...]  # N up to all the data, where training sets cease to differ
    neighbours: int  # similar and dissimilar ones of each point
    bits: tuple[int, ...]  # b of the mechanisms and the feature fractions
    compared_bits: tuple[int, ...]  # b of the comparison and of orthogonality
    grid: tuple[int, ...]  # b at which curves over the number of bits are drawn; the last is the longest model
    coupled_grid: tuple[int, ...]  # the same for methods that start anew for every b
    n_seeds: int  # training sets behind error bars, on the images and words
    n_seeds_digits: int  # and on the many digits
    fractions: tuple[float, ...]  # d/D
    n_centers: int  # radial basis functions of kernel functions
    limit: float  # seconds that a method may train
    held_out: int = 3  # classes that the unseen-class protocol keeps from training

    @property
    def max_bits(self) -> int:
        """Bits of the longest model."""
        return self.grid[-1]

    @property
    def seeds(self) -> range:
        """Seeds behind error bars."""
        return range(self.n_seeds)

    def data(self, dataset: str) -> Data:
        """Return one of the datasets by its name here: images, digits, words or edges."""
        found: Data = getattr(self, dataset)
        return found

    def seeds_of(self, dataset: str) -> range:
        """Seeds behind error bars on one of the datasets."""
        return range(self.n_seeds_digits if dataset == "digits" else self.n_seeds)

    @property
    def hash(self) -> str:
        """Changes when anything of the scale does."""
        return _hash(asdict(self))

    @property
    def former_hash(self) -> str:
        """The hash from before there were edge histograms: cells of that time mean the same, and none is of these."""
        return _hash({name: value for name, value in asdict(self).items() if name != "edges"})


def _hash(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode("ascii")).hexdigest()[:12]


_SMOKE = Scale(
    name="smoke",
    about="the 8 x 8 digits bundled with scikit-learn, tiny models: shows that everything runs, under two minutes",
    images=Data("digits", "digits", n_base=1_497, n_queries=300, k=50),
    digits=Data("infinite digits", "infinite digits", n_base=6_000, n_queries=200, k=100),
    words=Data("digits", "digits without labels", n_base=1_497, n_queries=300, k=15, labelled=False),
    edges=Data("digits", "fewer digits without labels", n_base=1_200, n_queries=200, k=12, labelled=False),
    n_train=120,
    sizes=(120, 240, 480),
    wide_sizes=(120, 480, 1_497),
    neighbours=8,
    bits=(8, 16, 32),
    compared_bits=(8, 16, 32),
    grid=(1, 2, 4, 8, 16, 24, 32, 48),
    coupled_grid=(8, 16, 32),
    n_seeds=2,
    n_seeds_digits=1,
    fractions=(0.02, 0.25, 0.5, 1.0),
    n_centers=50,
    limit=60.0,
)

_SMALL = Scale(
    name="small",
    about="real data at reduced size: a first look at every figure in about half an hour",
    images=Data("cifar10-gist", "CIFAR-10", n_base=20_000, n_queries=1_000, k=200),
    digits=Data("infinite mnist", "infinite MNIST", n_base=100_000, n_queries=1_000, k=1_000),
    words=Data("glove-6b-100d", "GloVe words", n_base=20_000, n_queries=1_000, k=200, labelled=False),
    edges=Data("cifar10-edges", "edge histograms", n_base=20_000, n_queries=1_000, k=200, labelled=False),
    n_train=2_000,
    sizes=(1_000, 2_000, 5_000),
    wide_sizes=(1_000, 2_000, 5_000, 10_000, 20_000),
    neighbours=100,
    bits=(32, 64),
    compared_bits=(32, 64, 128),
    grid=(1, 2, 4, 8, 16, 32, 48, 64, 96, 128),
    coupled_grid=(8, 32, 64, 128),
    n_seeds=2,
    n_seeds_digits=2,
    fractions=(0.02, 0.1, 0.25, 0.5, 0.75, 1.0),
    n_centers=300,
    limit=120.0,
)

_PAPER = Scale(
    name="paper",
    about="as in the paper: CIFAR-10 58,000 / 2,000, infinite MNIST 1,000,000 / 2,000, GloVe for Flickr; about 4 hours",
    images=Data("cifar10-gist", "CIFAR-10", n_base=58_000, n_queries=2_000, k=500),
    digits=Data("infinite mnist", "infinite MNIST", n_base=1_000_000, n_queries=2_000, k=10_000),
    words=Data("glove-6b-100d", "GloVe words", n_base=98_000, n_queries=2_000, k=980, labelled=False),
    edges=Data("cifar10-edges", "edge histograms", n_base=58_000, n_queries=2_000, k=580, labelled=False),
    n_train=5_000,
    sizes=(2_000, 5_000, 10_000, 20_000),
    wide_sizes=(2_000, 5_000, 10_000, 20_000, 40_000, 58_000),
    neighbours=100,
    bits=(32, 64, 128),
    compared_bits=(32, 64, 128, 200),
    grid=(1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 144, 160, 176, 200, 224, 256),
    coupled_grid=(8, 16, 32, 64, 80, 128, 200, 256),
    n_seeds=5,
    n_seeds_digits=5,
    fractions=(0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0),
    n_centers=500,
    limit=900.0,
)

SCALES = {scale.name: scale for scale in (_SMOKE, _SMALL, _PAPER)}


def get_scale(name: str) -> Scale:
    """Return a scale by its name.

    Parameters
    ----------
    name : {"smoke", "small", "paper"}

    Returns
    -------
    Scale

    Examples
    --------
    >>> get_scale("paper").images.k
    500
    """
    if name not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {name!r}")
    return SCALES[name]
