"""What every learner of a hash function has in common, and how features are brought to comparable size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ilhash._checks import LARGEST, SMALLEST, check_choice, check_count, check_positive, is_number
from ilhash._parameters import MOST
from ilhash.vectors import GatheredRows, GatheredSparse

from ._base import Features, Floats, HashFunction
from ._trees import MOST_LEVELS


@dataclass(frozen=True)
class Fitted:
    """A hash function, its margins on the N rows it was fitted to, and the bits in {-1,+1} it was to reproduce."""

    function: HashFunction
    margins: Floats
    targets: NDArray[np.int8]


class Learner(ABC):
    """Fits a hash function to the bits that the z-step chose."""

    # Which seed of a bit's draw it is given: one for all bits of a model, or one of the bit's own.
    seed_from: ClassVar[Literal["classifier", "centers"]] = "classifier"
    # The workers that fit many bits at once; threads, unless it holds Python's lock for long.
    runs_in: ClassVar[Literal["threads", "processes"]] = "threads"

    @abstractmethod
    def fit(self, rows: GatheredRows, z: NDArray[np.int8], features: Features, seed: int) -> Fitted:
        """Fit a function to bits.

        Parameters
        ----------
        rows : GatheredRows, the training points, own features only; they may be overwritten
        z : int8 (N,), bits in {-1,+1}
        features : int32 (d,) or None, the features that the columns of rows are, None for all
        seed : int, of what is drawn at random

        Returns
        -------
        Fitted, the function
        """

    def exactly(self, weights: Floats, bias: float, rows: GatheredRows, features: Features) -> Fitted | None:
        """Return the function of which the bit is weights'x + bias > 0, where this kind has it.

        Parameters
        ----------
        weights, bias : float32 (d,) and float, a hyperplane
        rows, features : as in fit; the rows stay as they are

        Returns
        -------
        Fitted, or None where a function must be fitted to the sides
        """
        return None


@dataclass(frozen=True)
class LearnerSettings:
    """The parameters of a model that a learner may ask for.

    Attributes
    ----------
    C : float or "auto", weight of an SVM's loss
    scaling : {"columns", "whole"}, how features are standardised
    n_centers : int, centres of a kernel function
    kernel_width : float, optional, of a kernel function; by default from the data
    centers : {"common", "pool", "private"}
        Whether all kernel functions of a model have the same centres, some of the same pool each, or their own.
    n_trees, tree_depth, learning_rate : int, int and float, of boosted trees
    n_train : int, optional
        Rows that each bit is fitted to, where that is known; linear functions then share what makes them fast.
    sample : callable, gives so many seeded rows with all features, the same for all bits, or None where there are none
    """

    C: float | str = "auto"
    scaling: str = "columns"
    n_centers: int = 500
    kernel_width: float | None = None
    centers: str = "common"
    n_trees: int = 200
    tree_depth: int = 6
    learning_rate: float = 0.2
    n_train: int = 0
    sample: Callable[[int], GatheredRows | None] = lambda size: None

    def __post_init__(self) -> None:
        check_choice("scaling", self.scaling, ("columns", "whole"))
        check_count("n_centers", self.n_centers)
        if self.kernel_width is not None:
            check_positive("kernel_width", self.kernel_width)
        check_choice("centers", self.centers, ("common", "pool", "private"))
        check_count("n_train", self.n_train, 0)
        check_count("n_trees", self.n_trees, 1, MOST)
        check_count("tree_depth", self.tree_depth, 1, MOST_LEVELS)
        check_positive("learning_rate", self.learning_rate)

    def cost(self, automatic: float) -> float:
        """Return C, or what it is automatically."""
        if isinstance(self.C, str) and self.C == "auto":
            return automatic
        if not is_number(self.C) or isinstance(self.C, str) or not SMALLEST <= self.C <= LARGEST:
            limits = f"from {SMALLEST:g} to {LARGEST:g}"
            raise ValueError(f"C must be 'auto' or a positive number {limits}, got {self.C!r}")
        return float(self.C)


# A feature whose standard deviation is below this share of the root mean square of all is dust, such as what float16
# leaves of a constant: brought to unit variance it would outweigh everything as soon as new vectors differ in it. A
# pixel that is 1 in one of 20,000 images is not dust.
DUST = 1e-4


RARE = 10.0  # standard deviations that a feature which is nearly always the same lies from its mean at times
MOST_RARE = 0.05  # share of such features
ALIKE = 10.0  # most ratio of ranges of features in one unit, a tenth of them left out at either end


def scaling_for(rows: GatheredRows | GatheredSparse) -> str:
    """Return how features should be standardised, by a sample of vectors.

    "whole" where at least a twentieth of the features are rare ones, such as border pixels or words, and all are in one
    unit: brought to unit variance each, the rare ones would outweigh the others. "columns" elsewhere.

    Parameters
    ----------
    rows : GatheredRows or GatheredSparse, the sample

    Returns
    -------
    {"columns", "whole"}
    """
    deviations = np.sqrt(rows.variance)
    varies = deviations > DUST * np.sqrt(rows.variance.mean())
    if not varies.any():
        return "columns"
    if isinstance(rows, GatheredSparse):
        ranges = rows.ranges()[varies]
    else:
        ranges = np.abs(rows.values[:, varies] - rows.mean[varies]).max(axis=0)
    rare = np.mean(ranges > RARE * deviations[varies])
    in_one_unit = np.quantile(ranges, 0.9) <= ALIKE * np.quantile(ranges, 0.1)
    return "whole" if rare >= MOST_RARE and in_one_unit else "columns"


def standardization(
    rows: GatheredRows | GatheredSparse, scaling: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return shift and factor that standardise the rows: (values - shift) * factor.

    Parameters
    ----------
    rows : GatheredRows or GatheredSparse, which is given the factor alone
    scaling : {"columns", "whole"}, unit variance for every feature, or one factor for all: unit mean variance

    Returns
    -------
    shift, factor : float64 (d,), constant features and dust get factor 0: they carry nothing
    """
    variance = rows.variance
    # Far from the origin, what float32 leaves of a constant is rounding noise, not variance.
    varies = variance > 1e-6 * rows.mean**2
    varies &= variance > DUST**2 * variance.mean()
    factor = np.zeros_like(variance)
    if scaling == "columns":
        factor[varies] = 1.0 / np.sqrt(variance[varies])
    elif varies.any():
        factor[varies] = 1.0 / np.sqrt(variance[varies].mean())
    return rows.mean, factor
