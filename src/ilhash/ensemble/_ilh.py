"""The estimator: Independent Laplacian Hashing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ilhash import objective as objectives
from ilhash._parameters import check_choice, check_count, chosen_bits, refuse_unavailable
from ilhash.affinity import (
    EuclideanNeighbours,
    Supervision,
    affinity_from_matrix,
    affinity_from_pairs,
    supervision_from_labels,
)
from ilhash.diversity import Plan
from ilhash.ensemble import _parameters as parameters
from ilhash.ensemble._bit import BitReport, BitTrainer, TrainedBit, warn_of_shortages
from ilhash.ensemble._checkpoint import Checkpoint, seed_of_run
from ilhash.ensemble._data import SAMPLE, data_fingerprint, row_source, sample_rows
from ilhash.ensemble._spool import drawn_rows
from ilhash.functions import (
    ClassifierLearner,
    KernelExpansions,
    Learner,
    in_one_kernel,
    make_learner,
    padded_weights,
    share_common_basis,
)
from ilhash.hasher import Hasher
from ilhash.parallel import run
from ilhash.vectors import Rows, gather, on_disk, origin_of, refuse_non_finite_anywhere
from ilhash.zstep import MAX_SWEEPS

__all__ = ["ILH"]

Progress = Callable[[int, int], None]


class ILH(Hasher):
    """Independent Laplacian Hashing: b hash functions, each trained alone, different because of diversity.

    Parameters
    ----------
    n_bits : int, default 64
        Number of hash functions, the paper's b.
    diversity : str, default "t"
        Any combination of the letters i (initialisation), t (training sets) and f (feature subsets), or "".
    sampling : {"disjoint", "random", "bootstrap"}, default "disjoint"
        How training sets differ under the letter t: slices of one permutation, draws without or with replacement.
    n_train : int or "auto", default "auto"
        Points in the training set of each bit, the paper's N. "auto" is 5,000, or half of the data where there are
        fewer than 10,000 points.
    objective : {"laplacian", "ksh", "bre"} or callable, default "laplacian"
        The single-bit objective; a callable gets a Hamming distance (0 or 1) and affinities y (see ilhash.objective).
    hash_function : {"linear", "kernel"}, scikit-learn classifier, or a list of these, default "linear"
        What is fitted to the bits of the training points; a list is cycled over the bits.
    C : float or "auto", default "auto"
        Weight of the SVM's loss; "auto" is 0.01 for linear and 10 for kernel functions.
    n_similar, n_dissimilar : int or (int, int), default 100
        Neighbours drawn for each point. A range draws another number for each bit: another graph per bit.
    n_features : int or float, default 0.5
        Features that a bit sees under the letter f: a number d, or a fraction d/D.
    centers : {"common", "private"}, default "common"
        Whether kernel functions share their centres.
    n_centers : int, default 500
        Number of radial basis functions of a kernel function.
    kernel_width : float, optional
        s in exp(-|x - c|^2 / s), on features scaled as ``scaling`` says; default half the mean squared distance.
    scaling : {"columns", "whole"}, default "columns"
        Whether each feature is standardised on its own, or all by one factor (pixels), from each bit's own rows.
    block_order : {"random", "fixed"}, default "random"
        Order in which the z-step visits its blocks.
    max_sweeps : int, default 1000
        Limit on the sweeps of the z-step.
    mac : bool or sequence of float, default False
        Alternate z-step and classifier with the method of auxiliary coordinates; a sequence is the schedule of mu,
        as multiples of the mean pull of the graph on a point.
    unlabeled : label or None, default -1
        The label that means unknown; None: there is no such label.
    random_state : int, RandomState, Generator or None, default 0
        Bit i depends on (random_state, i) and the data alone.
    n_jobs : int, optional
        Workers, as in joblib; joblib.parallel_config chooses the backend (default: threads, or processes for
        scikit-learn classifiers). The result is the same bytes for any number and kind of them.

    Attributes
    ----------
    functions_ : list of hash functions
    bits_ : list of reports, one per bit: seed, sweeps, energies, balance, accuracy, seconds by stage
    n_train_ : points in each training set
    n_disjoint_ : disjoint training sets that the data can give; bits beyond it begin a fresh permutation
    seed_ : the whole number that random_state came to
    origin_ : what is subtracted from every vector
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np, ilhash
    >>> X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 50, axis=0) + np.random.default_rng(0).normal(size=(100, 2))
    >>> model = ilhash.ILH(n_bits=8, n_similar=10, n_dissimilar=10).fit(X, np.repeat([0, 1], 50))
    >>> model.transform(X).shape
    (100, 1)
    """

    def __init__(
        self,
        n_bits: int = 64,
        *,
        diversity: str = "t",
        sampling: str = "disjoint",
        n_train: int | str = "auto",
        objective: Any = "laplacian",
        hash_function: Any = "linear",
        C: float | str = "auto",
        n_similar: int | tuple[int, int] = 100,
        n_dissimilar: int | tuple[int, int] = 100,
        n_features: int | float = 0.5,
        centers: str = "common",
        n_centers: int = 500,
        kernel_width: float | None = None,
        scaling: str = "columns",
        block_order: str = "random",
        max_sweeps: int = MAX_SWEEPS,
        mac: Any = False,
        unlabeled: Any = -1,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.diversity = diversity
        self.sampling = sampling
        self.n_train = n_train
        self.objective = objective
        self.hash_function = hash_function
        self.C = C
        self.n_similar = n_similar
        self.n_dissimilar = n_dissimilar
        self.n_features = n_features
        self.centers = centers
        self.n_centers = n_centers
        self.kernel_width = kernel_width
        self.scaling = scaling
        self.block_order = block_order
        self.max_sweeps = max_sweeps
        self.mac = mac
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -------------------------------------------------------------------------------------------- training

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        affinity: Any = None,
        pairs: Any = None,
        progress: Progress | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> ILH:
        """Train all bits.

        Parameters
        ----------
        X : array (n, D), also a memory map or what datasets.open_vectors gives; only drawn rows are read
        y : labels (n,), or an indicator matrix (n, L); without any supervision Euclidean neighbours are used
        affinity : sparse symmetric matrix (n, n) of signed weights, instead of y
        pairs : rows (i, j, weight), or a tuple of pairs (m, 2) and weights (m,), instead of y
        progress : called with (bits done, bits in all) as bits finish
        client : a dask.distributed client whose workers train the bits, instead of n_jobs workers of joblib
        checkpoint : a directory for finished bits; a run that was killed goes on from there, with the same result
        """
        with self._all_or_nothing():
            self._check_parameters()
            X = self._read(X, reset=True)
            supervision = self._supervision(X, y, affinity, pairs)
            self.seed_ = seed_of_run(self.random_state, checkpoint)
            self.fingerprint_ = data_fingerprint(X, supervision)
            self.origin_ = origin_of(X, sample_rows(supervision, self.seed_))
            self.functions_ = []
            self.bits_: list[BitReport] = []
            self._train(range(self.n_bits), X, supervision, progress, client, checkpoint)
        return self

    def add_bits(
        self,
        n: int,
        X: Any,
        y: Any = None,
        *,
        affinity: Any = None,
        pairs: Any = None,
        progress: Progress | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> ILH:
        """Train n more bits on the data that the model was fitted on; b1 bits and b2 more are b1 + b2 at once.

        ``client`` and ``checkpoint`` are those of ``fit``; one directory may hold the bits of both.
        """
        check_is_fitted(self)
        n = check_count("n", n)
        self._check_parameters()
        X = self._read(X, reset=False)
        supervision = self._supervision(X, y, affinity, pairs)
        if data_fingerprint(X, supervision) != self.fingerprint_:
            raise ValueError(
                "X and its supervision must be the data that the model was fitted on, got other data: bits of one "
                "model share their training sets' permutation; fit a new model instead"
            )
        first = max(report.bit for report in self.bits_) + 1
        with self._all_or_nothing():
            self._train(range(first, first + n), X, supervision, progress, client, checkpoint)
            self.n_bits = len(self.functions_)
        return self

    def _check_parameters(self) -> None:
        check_count("n_bits", self.n_bits)
        parameters.check_letters(self.diversity)
        check_choice("sampling", self.sampling, ("disjoint", "random", "bootstrap"))
        check_choice("centers", self.centers, ("common", "private"))
        check_choice("scaling", self.scaling, ("columns", "whole"))
        check_choice("block_order", self.block_order, ("random", "fixed"))
        check_count("max_sweeps", self.max_sweeps)
        check_count("n_centers", self.n_centers)
        parameters.check_range("n_similar", self.n_similar)
        parameters.check_range("n_dissimilar", self.n_dissimilar)
        refuse_unavailable(self.objective)
        refuse_unavailable(self.hash_function)
        objectives.resolve(self.objective)
        parameters.mac_penalties(self.mac)

    def _supervision(self, X: NDArray[Any], y: Any, affinity: Any, pairs: Any) -> Supervision:
        given = [name for name, value in (("y", y), ("affinity", affinity), ("pairs", pairs)) if value is not None]
        if len(given) > 1:
            raise ValueError(f"supervision must be one of y, affinity and pairs, got {' and '.join(given)}")
        if len(X) < 2:
            raise ValueError(f"X must have at least 2 rows to compare, got n_samples={len(X)}, 1 sample")
        if not on_disk(X):
            refuse_non_finite_anywhere(X)
        if affinity is not None:
            return affinity_from_matrix(affinity, len(X), self.objective)
        if pairs is not None:
            return affinity_from_pairs(pairs, len(X), self.objective)
        if y is not None:
            return supervision_from_labels(y, len(X), self.unlabeled)
        return EuclideanNeighbours(len(X))

    def _train(
        self,
        bits: range,
        X: NDArray[Any],
        supervision: Supervision,
        progress: Progress | None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, self.get_params(deep=False), self.seed_, self.fingerprint_)
        plan, learners = self._plan(X, supervision), self._learners(X, supervision)
        trained = {} if kept is None else kept.read(bits)
        missing = [bit for bit in bits if bit not in trained]

        def one_more(bit: int, result: TrainedBit) -> None:
            if kept is not None:
                kept.write(bit, result)
            trained[bit] = result
            if progress is not None:
                progress(len(trained), len(bits))

        if trained and progress is not None:
            progress(len(trained), len(bits))
        own_kernels = all(not isinstance(learner, ClassifierLearner) for learner in learners)
        prefer = "threads" if own_kernels else "processes"
        with drawn_rows(X, plan, missing) as rows:
            trainer = BitTrainer(
                X=rows,
                origin=self.origin_,
                supervision=supervision,
                plan=plan,
                objective=self.objective,
                learners=learners,
                max_sweeps=self.max_sweeps,
                penalties=parameters.mac_penalties(self.mac),
            )
            run(trainer, missing, n_jobs=self.n_jobs, prefer=prefer, client=client, done=one_more)
        self._keep([trained[bit] for bit in bits])

    def _plan(self, X: NDArray[Any], supervision: Supervision) -> Plan:
        source = row_source(supervision)
        self.n_train_, cut = parameters.training_size(self.n_train, source.size)
        if cut:
            warnings.warn(
                f"n_train={self.n_train} is more than the {source.size} points that can be drawn: all of them are "
                "used, and training sets do not differ",
                stacklevel=4,
            )
        plan = Plan(
            random_state=self.seed_,
            letters=parameters.check_letters(self.diversity),
            sampling=self.sampling,
            n_train=self.n_train_,
            n_features=X.shape[1],
            n_features_drawn=parameters.drawn_features(self.n_features, X.shape[1]),
            similar=parameters.check_range("n_similar", self.n_similar),
            dissimilar=parameters.check_range("n_dissimilar", self.n_dissimilar),
            block_order=self.block_order,
            source=source,
        )
        self.n_disjoint_ = plan.n_disjoint
        return plan

    def _learners(self, X: NDArray[Any], supervision: Supervision) -> list[Learner]:
        wanted = list(self.hash_function) if isinstance(self.hash_function, list | tuple) else [self.hash_function]
        if not wanted:
            raise ValueError("hash_function must name at least one function, got an empty list")
        return [self._learner(kind, X, supervision) for kind in wanted]

    def _learner(self, kind: Any, X: NDArray[Any], supervision: Supervision) -> Learner:
        def common_sample() -> Rows | None:
            if self.centers != "common":
                return None
            return gather(X, sample_rows(supervision, self.seed_, max(SAMPLE, self.n_centers)), self.origin_)

        return make_learner(
            kind,
            C=self.C,
            scaling=self.scaling,
            n_centers=self.n_centers,
            kernel_width=self.kernel_width,
            common_sample=common_sample,
        )

    def _keep(self, trained: Sequence[TrainedBit]) -> None:
        self.functions_ = share_common_basis([*self.functions_, *(bit.function for bit in trained)])
        self.bits_ = [*self.bits_, *(bit.report for bit in trained)]
        self._prepare_encoder()
        warn_of_shortages([bit.report for bit in trained], self.n_similar)
        unfinished = [bit.report.bit for bit in trained if not bit.report.converged]
        if unfinished:
            warnings.warn(
                f"the z-step of {len(unfinished)} of {len(trained)} bits stopped at max_sweeps={self.max_sweeps} "
                f"before it converged (bit {unfinished[0]} first): raise max_sweeps",
                stacklevel=4,
            )

    # -------------------------------------------------------------------------------------------- parts

    def weights(self) -> NDArray[np.float32]:
        """Return the weights of linear functions, (n_bits, D), zero where a function does not look; without biases."""
        check_is_fitted(self)
        return padded_weights(self.functions_, self.n_features_in_)

    def kernel_expansions(self) -> KernelExpansions:
        """Return coefficients and centres of kernel functions, and s: what evaluation.kernel_dot_products takes."""
        check_is_fitted(self)
        return in_one_kernel(self.functions_)

    def __getitem__(self, which: Any) -> ILH:
        """Return a model of some of the bits: ``model[:32]``, ``model[[3, 5, 8]]``, ``model[0]``."""
        check_is_fitted(self)
        chosen = chosen_bits(which, len(self.functions_))
        part = self._with_bits(chosen)
        part.bits_ = [self.bits_[i] for i in chosen]
        return part

    def _own_document(self) -> dict[str, Any]:
        return {
            "n_train": self.n_train_,
            "n_disjoint": self.n_disjoint_,
            "fingerprint": self.fingerprint_,
            "bits": [asdict(report) for report in self.bits_],
        }

    def _read_own_document(self, document: dict[str, Any]) -> None:
        self.n_train_ = document["n_train"]
        self.n_disjoint_ = document["n_disjoint"]
        self.fingerprint_ = document["fingerprint"]
        self.bits_ = [BitReport(**report) for report in document["bits"]]
