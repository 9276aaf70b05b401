"""Methods in two steps: bits for the training points, then a classifier x -> bit for each, as in ILH itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._parameters import check_choice, check_count, check_positive, refuse_unavailable
from ilhash.diversity import UniformRows, seed_for
from ilhash.functions import ClassifierLearner, HashFunction, Learner, LinearFunction, make_learner, share_common_basis
from ilhash.methods._base import Source, SupervisedMethod, TrainingSet
from ilhash.parallel import run
from ilhash.vectors import Rows

__all__ = ["TwoStepMethod", "function_for_bit", "functions_for_bits"]

COMMON_SAMPLE = 1000  # rows that the width of a kernel is taken from


class TwoStepMethod(SupervisedMethod):
    """A method that finds bits for its training points and fits a classifier to each bit.

    Parameters
    ----------
    hash_function : {"linear", "kernel"} or scikit-learn classifier, default "linear"
        What is fitted to the bits of the training points.
    C : float or "auto", default "auto"
        Weight of the SVM's loss; "auto" is 0.01 for linear and 10 for kernel functions.
    n_centers, kernel_width, scaling : as in ILH
    n_jobs : int, optional
        Workers that fit the classifiers, as in joblib.
    """

    def __init__(
        self,
        n_bits: int = 64,
        *,
        hash_function: Any = "linear",
        C: float | str = "auto",
        n_centers: int = 500,
        kernel_width: float | None = None,
        scaling: str = "columns",
        n_train: int | str = "auto",
        unlabeled: Any = -1,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_bits, n_train=n_train, unlabeled=unlabeled, random_state=random_state)
        self.hash_function = hash_function
        self.C = C
        self.n_centers = n_centers
        self.kernel_width = kernel_width
        self.scaling = scaling
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        refuse_unavailable(self.hash_function)
        check_count("n_centers", self.n_centers)
        check_choice("scaling", self.scaling, ("columns", "whole"))
        if self.kernel_width is not None:
            check_positive("kernel_width", self.kernel_width)

    @abstractmethod
    def _bits(self, training: TrainingSet, seed: int) -> NDArray[np.int8]:
        """Return bits of -1 and +1 for the training points, (N, n_bits)."""

    def _learn(self, source: Source) -> list[HashFunction]:
        training = source.training_set()
        learner = self._learner(training, source.seed)  # first, so that what is wrong with it is said at once
        return functions_for_bits(training.rows, self._bits(training, source.seed), learner, source.seed, self.n_jobs)

    def _learner(self, training: TrainingSet, seed: int) -> Learner:
        def common_sample() -> Rows:
            n = len(training.rows.values)
            size = min(max(COMMON_SAMPLE, self.n_centers), n)
            return training.rows.take(UniformRows(n).take(seed_for(seed, "centers"), 0, size))

        return make_learner(
            self.hash_function,
            C=self.C,
            scaling=self.scaling,
            n_centers=self.n_centers,
            kernel_width=self.kernel_width,
            common_sample=common_sample,
        )


def functions_for_bits(
    rows: Rows, bits: NDArray[np.int8], learner: Learner, seed: int, n_jobs: int | None = None
) -> list[HashFunction]:
    """Fit one function to each column of bits; the same bytes for any number of workers."""

    def fit(bit: int) -> HashFunction:
        return function_for_bit(rows, bits[:, bit], learner, seed)

    prefer = "processes" if isinstance(learner, ClassifierLearner) else "threads"
    return share_common_basis(run(fit, range(bits.shape[1]), n_jobs=n_jobs, prefer=prefer))


def function_for_bit(rows: Rows, z: NDArray[np.int8], learner: Learner, seed: int) -> HashFunction:
    """Fit one function to bits z; bits that are all alike, which many classifiers refuse, make a constant function."""
    if (z == z[0]).all():
        return LinearFunction(np.zeros(rows.values.shape[1], np.float32), np.float32(z[0]))
    own = rows.copy()  # a learner may overwrite its rows
    return learner.fit(own, np.ascontiguousarray(z), None, seed_for(seed, "classifier")).function
