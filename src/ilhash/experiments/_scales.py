"""Three sizes of the same experiments: seconds on bundled digits, minutes on real data, hours as in the paper."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

__all__ = ["SCALES", "Data", "Scale", "get_scale"]


@dataclass(frozen=True)
class Data:
    """A dataset and how it is split.

    Attributes
    ----------
    source : name for ``ilhash.datasets``; "infinite digits" and "infinite mnist" are the endless sets
    title : as figures call it
    n_base, n_queries : points that are searched and learned from, and points that are searched for
    k : neighbours retrieved for the headline number; also the true neighbours K where there are no labels
    labelled : whether equal labels are relevant, or else the K nearest in Euclidean space
    """

    source: str
    title: str
    n_base: int
    n_queries: int
    k: int
    labelled: bool = True


@dataclass(frozen=True)
class Scale:
    """Everything that differs between scales.

    Attributes
    ----------
    images, digits, words : the parts that CIFAR, infinite MNIST and Flickr play in the paper
    n_train : the standard N
    sizes : N of the diversity mechanisms and of the runtime
    wide_sizes : N up to all the data, where training sets cease to differ
    neighbours : similar and dissimilar neighbours of each point
    bits : b of the mechanisms and the feature fractions
    compared_bits : b of the comparison and of orthogonality
    grid : b at which curves over the number of bits are drawn; the last is the longest model
    coupled_grid : the same for methods that start anew for every b
    n_seeds, n_seeds_digits : training sets behind error bars, on the images and words, and on the many digits
    fractions : d/D
    n_centers : radial basis functions of kernel functions
    limit : seconds that a method may train
    held_out : classes that the unseen-class protocol keeps from training
    """

    name: str
    about: str
    images: Data
    digits: Data
    words: Data
    n_train: int
    sizes: tuple[int, ...]
    wide_sizes: tuple[int, ...]
    neighbours: int
    bits: tuple[int, ...]
    compared_bits: tuple[int, ...]
    grid: tuple[int, ...]
    coupled_grid: tuple[int, ...]
    n_seeds: int
    n_seeds_digits: int
    fractions: tuple[float, ...]
    n_centers: int
    limit: float
    held_out: int

    @property
    def max_bits(self) -> int:
        """Bits of the longest model."""
        return self.grid[-1]

    @property
    def seeds(self) -> range:
        """Seeds behind error bars."""
        return range(self.n_seeds)

    def data(self, part: str) -> Data:
        """Return the data that play a part."""
        found: Data = getattr(self, part)
        return found

    def seeds_of(self, part: str) -> range:
        """Seeds behind error bars on one of the datasets."""
        return range(self.n_seeds_digits if part == "digits" else self.n_seeds)

    @property
    def hash(self) -> str:
        """Changes when anything of the scale does."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode("ascii")).hexdigest()[:12]


_SMOKE = Scale(
    name="smoke",
    about="the 8 x 8 digits bundled with scikit-learn, tiny models: shows that everything runs, under two minutes",
    images=Data("digits", "digits", n_base=1_497, n_queries=300, k=50),
    digits=Data("infinite digits", "infinite digits", n_base=6_000, n_queries=200, k=100),
    words=Data("digits", "digits without labels", n_base=1_497, n_queries=300, k=15, labelled=False),
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
    held_out=3,
)

_SMALL = Scale(
    name="small",
    about="real data at reduced size: a first look at every figure in about half an hour",
    images=Data("cifar10-gist", "CIFAR-10", n_base=20_000, n_queries=1_000, k=200),
    digits=Data("infinite mnist", "infinite MNIST", n_base=100_000, n_queries=1_000, k=1_000),
    words=Data("glove-6b-100d", "GloVe words", n_base=20_000, n_queries=1_000, k=200, labelled=False),
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
    held_out=3,
)

_GRID = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 144, 160, 176, 200, 224, 256)
_PAPER = Scale(
    name="paper",
    about="as in the paper: CIFAR-10 58,000 / 2,000, infinite MNIST 1,000,000 / 2,000, GloVe for Flickr; about 4 hours",
    images=Data("cifar10-gist", "CIFAR-10", n_base=58_000, n_queries=2_000, k=500),
    digits=Data("infinite mnist", "infinite MNIST", n_base=1_000_000, n_queries=2_000, k=10_000),
    words=Data("glove-6b-100d", "GloVe words", n_base=98_000, n_queries=2_000, k=980, labelled=False),
    n_train=5_000,
    sizes=(2_000, 5_000, 10_000, 20_000),
    wide_sizes=(2_000, 5_000, 10_000, 20_000, 40_000, 58_000),
    neighbours=100,
    bits=(32, 64, 128),
    compared_bits=(32, 64, 128, 200),
    grid=_GRID,
    coupled_grid=(8, 16, 32, 64, 80, 128, 200, 256),
    n_seeds=5,
    n_seeds_digits=5,
    fractions=(0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0),
    n_centers=500,
    limit=900.0,
    held_out=3,
)

SCALES = {scale.name: scale for scale in (_SMOKE, _SMALL, _PAPER)}


def get_scale(name: str) -> Scale:
    """Return a scale by its name.

    Examples
    --------
    >>> get_scale("paper").images.k
    500
    """
    if name not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {name!r}")
    return SCALES[name]
