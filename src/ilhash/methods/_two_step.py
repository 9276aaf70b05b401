"""Methods in two steps: bits for the training points, then a classifier x -> bit for each, as in ILH itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._parameters import count, jobs, one_of, positive
from ilhash.diversity import UniformOrder, seed_for
from ilhash.functions import (
    MOST_LEVELS,
    HashFunction,
    Learner,
    LearnerSettings,
    LinearFunction,
    make_learner,
    share_common_basis,
)
from ilhash.methods._base import SupervisedMethod, TrainingData, TrainingSet
from ilhash.parallel import run
from ilhash.vectors import GatheredRows


@dataclass(eq=False, repr=False, kw_only=True)
class TwoStepMethod(SupervisedMethod):
    """A method that finds bits for its training points and fits a classifier to each bit.

    Parameters
    ----------
    hash_function : {"linear", "kernel", "trees"} or scikit-learn classifier, default "linear"
        What is fitted to the bits of the training points.
    C : float or "auto", default "auto"
        Weight of the SVM's loss; "auto" is 0.01 for linear and 10 for kernel functions.
    n_centers : int, default 500, number of radial basis functions of a kernel function
    kernel_width : float, optional, s, on features scaled as ``scaling`` says; default half the mean squared distance
    scaling : {"columns", "whole"}, default "columns"
        Whether each feature is standardised on its own, or all by one factor (pixels).
    n_trees, tree_depth : int, default 200 and 6, trees of a bit, and their depth, where functions are trees
    learning_rate : float, default 0.2, share of each tree that is added
    n_jobs : int, optional, workers that fit the classifiers, as in joblib
    """

    hash_function: Any = "linear"
    C: float | str = "auto"
    n_centers: int = count(500)
    kernel_width: float | None = positive(None)
    scaling: str = one_of("columns", "whole")
    n_trees: int = count(200)
    tree_depth: int = count(6, 1, MOST_LEVELS)
    learning_rate: float = positive(0.2)
    n_jobs: int | None = jobs()

    @abstractmethod
    def _bits(self, training: TrainingSet, seed: int) -> NDArray[np.int8]:
        """Return bits of -1 and +1 for the training points, (N, n_bits)."""

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        training = data.training_set()
        learner = self._learner(training, data.seed)  # first, so that what is wrong with it is said at once
        return functions_for_bits(training.rows, self._bits(training, data.seed), learner, data.seed, self.n_jobs)

    def _learner(self, training: TrainingSet, seed: int) -> Learner:
        def sample(size: int) -> GatheredRows:
            n = len(training.rows.values)
            return training.rows.take(UniformOrder(n).take(seed_for(seed, "centers"), 0, min(size, n)))

        settings = LearnerSettings(
            C=self.C,
            scaling=self.scaling,
            n_centers=self.n_centers,
            kernel_width=self.kernel_width,
            n_trees=self.n_trees,
            tree_depth=self.tree_depth,
            learning_rate=self.learning_rate,
            sample=sample,
        )
        return make_learner(self.hash_function, settings)


def functions_for_bits(
    rows: GatheredRows, bits: NDArray[np.int8], learner: Learner, seed: int, n_jobs: int | None = None
) -> list[HashFunction]:
    """Fit one function to each column of bits; the same bytes for any number of workers."""

    def fit(bit: int) -> HashFunction:
        return function_for_bit(rows, bits[:, bit], learner, seed)

    return share_common_basis(run(fit, range(bits.shape[1]), n_jobs=n_jobs, prefer=learner.runs_in))


def function_for_bit(rows: GatheredRows, z: NDArray[np.int8], learner: Learner, seed: int) -> HashFunction:
    """Fit one function to bits z; bits that are all alike, which many classifiers refuse, make a constant function."""
    if (z == z[0]).all():
        return LinearFunction(np.zeros(rows.values.shape[1], np.float32), np.float32(z[0]))
    own = rows.copy()  # a learner may overwrite its rows
    return learner.fit(own, np.ascontiguousarray(z), None, seed_for(seed, "classifier")).function
