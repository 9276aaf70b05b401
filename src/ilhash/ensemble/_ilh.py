"""The estimator: Independent Laplacian Hashing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ilhash._checks import check_count
from ilhash._parameters import MOST_BITS, bits, checked, count, jobs, one_of, positive, training_points
from ilhash.affinity import (
    EuclideanNeighbors,
    Judged,
    JudgedAffinity,
    LabelSets,
    SparseAffinity,
    Supervision,
    affinity_from_matrix,
    affinity_from_pairs,
    supervision_from_labels,
)
from ilhash.cards import Curve
from ilhash.diversity import ClassOrder, Plan, RowOrder, UniformOrder, drawn_others, drawn_rows
from ilhash.ensemble._bit import BitReport, BitTrainer, TrainedBit, warn_of_shortages
from ilhash.ensemble._checkpoint import Checkpoint, parameters_of_bits, seed_of_run
from ilhash.ensemble._data import data_fingerprint, draws_classes, is_focused, other_order, row_order, sample_rows
from ilhash.ensemble._drawn_rows import with_drawn_rows
from ilhash.ensemble._generations import Generation, Generational, today
from ilhash.ensemble._ilh_parameters import (
    check_centers,
    check_letters,
    check_objective,
    check_range,
    drawn_features,
    mac_penalties,
    number_of_centers,
    refuse_dense_functions,
    training_size,
    training_sizes,
)
from ilhash.ensemble._quality import warn_of_quality
from ilhash.ensemble._side_by_side import SideBySide
from ilhash.ensemble._start_rule import Rule, check_start, checked_rule, given_start, rule_for
from ilhash.ensemble._ways import choose_way
from ilhash.functions import (
    MOST_LEVELS,
    KernelExpansions,
    Learner,
    LearnerSettings,
    in_one_kernel,
    make_learner,
    padded_weights,
    scaling_for,
    share_common_basis,
)
from ilhash.hasher import Given, Progress, Provenance
from ilhash.objective import Loss
from ilhash.parallel import run, single_threaded_blas
from ilhash.starts import GivenStart, ProjectedStart, RandomStart, Start, learn_projection, remembered
from ilhash.storage import DamagedFileError, Record
from ilhash.vectors import (
    GatheredRows,
    SparseRows,
    gather,
    named_columns,
    on_disk,
    origin_of,
    refuse_non_finite_anywhere,
    take_rows,
)
from ilhash.zstep import MAX_SWEEPS

N_NEIGHBORS = 100  # the paper's number of similar, and of dissimilar, neighbours; fewer where there are fewer


@dataclass(eq=False, repr=False)
class ILH(Generational):
    """Independent Laplacian Hashing: b hash functions, each trained alone, different because of diversity.

    Parameters
    ----------
    n_bits : int, default 64, number of hash functions, the paper's b
    diversity : str, default "t"
        Any combination of the letters i (initialisation), t (training sets) and f (feature subsets), or "".
    sampling : {"disjoint", "random", "bootstrap"}, default "disjoint"
        How training sets differ under the letter t: slices of one permutation, draws without or with replacement.
    n_train : int or "auto", default "auto"
        Points in the training set of each bit, the paper's N. "auto" is 5,000, or half of the data where there are
        fewer than 10,000 points; with pairs or a graph, and a start that follows the data, all judged points up to
        10,000.
    objective : {"laplacian", "ksh", "bre"} or callable, default "laplacian"
        The single-bit objective; a callable gets a Hamming distance (0 or 1) and affinities y (see ilhash.objective).
    hash_function : {"linear", "kernel", "trees"}, scikit-learn classifier, or a list of these, default "linear"
        What is fitted to the bits of the training points; a list is cycled over the bits.
    C : float or "auto", default "auto"
        Weight of the SVM's loss; "auto" is 0.01 for linear and 10 for kernel functions, and for linear ones of sparse X
        1 over the mean squared length of the scaled rows.
    n_similar, n_dissimilar : int or (int, int), default 100
        Neighbours drawn for each point. A range draws another number for each bit: another graph per bit.
    start : {"auto", "random", "projection"} or array, default "auto"
        What the z-step begins with. "random" is the paper's. "projection" is the side of a hyperplane at the median of
        the training set, its direction from a seeded rotation of directions along which similar points agree, or of
        principal directions; held-out points or pairs choose. It differs from bit to bit whatever ``diversity`` says.
        The hyperplane is then the bit, or a function is fitted to the sides of class means, or to what a z-step that is
        held to the start makes of it: trial bits choose. "auto" is "random" for few, well-filled classes, and
        "projection" for all else; ``start_`` says which and why. An array (n,) or (n, n_bits) of -1 and +1 is taken as
        it is.
    n_features : int or float, default 0.5, features that a bit sees under the letter f: a number d, or a fraction d/D
    centers : {"common", "pool", "private"}, default "common"
        Whether kernel functions share their centres, or each draws its own from a common pool of three times as many,
        or from its own training set. Distances to private centres are computed anew for every bit.
    n_centers : int or "auto", default "auto"
        Radial basis functions of a kernel function; "auto" is .3 n_train, from 100 to 1,500.
    kernel_width : float, optional
        s in ``exp(-|x - c|^2 / s)``, on features scaled as ``scaling`` says; default half the mean squared distance.
    scaling : {"auto", "columns", "whole"}, default "auto"
        Whether each feature is standardised on its own, or all by one factor, from each bit's own rows. "auto" is
        "whole" where many features are rare and all are in one unit (pixels, words), "columns" elsewhere; ``scaling_``
        says which.
    n_trees, tree_depth : int, default 200 and 6
        Gradient boosted trees of a bit where functions are trees, and their depth: what a bit can remember.
    learning_rate : float, default 0.2, share of each tree that is added
    block_order : {"random", "fixed"}, default "random", order in which the z-step visits its blocks
    max_sweeps : int, default 1000, limit on the sweeps of the z-step
    mac : bool or sequence of float, default False
        Alternate z-step and classifier with the method of auxiliary coordinates; a sequence is the schedule of mu,
        as multiples of the mean pull of the graph on a point.
    unlabeled : label or None, default -1, the label that means unknown; None: there is no such label
    random_state : int, RandomState, Generator or None, default 0
        Bit i depends on (random_state, i) and the data alone.
    n_jobs : int, optional
        Workers, as in joblib; joblib.parallel_config chooses the backend (default: threads, or processes for
        scikit-learn classifiers). The result is the same bytes for any number and kind of them.

    Attributes
    ----------
    functions_ : list of hash functions, one per bit
    bits_ : list of BitReport, one per bit: seed, sweeps, energies, balance, accuracy, seconds by stage
    n_train_ : int, points in each training set
    n_disjoint_ : int, disjoint training sets that the data can give; bits beyond it begin a fresh permutation
    scaling_ : {"columns", "whole"}, what ``scaling`` came to
    start_ : dict, which kind of start the last bits got and why, and for projections what was chosen and by how much
    draws_ : list of dict, what training sets are drawn by, from which bit on; see :meth:`training_rows`
    seed_ : int, what random_state came to
    generations : list of ILH
        The bits of ``fit`` and of every ``extend``; where there are several, other attributes are those of the first.
    origin_ : float32 array (D,), what is subtracted from every vector
    n_features_in_, feature_names_in_ : int and array of str, as in scikit-learn

    Examples
    --------
    >>> import numpy as np, ilhash
    >>> X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 50, axis=0) + np.random.default_rng(0).normal(size=(100, 2))
    >>> model = ilhash.ILH(n_bits=8, n_similar=10, n_dissimilar=10).fit(X, np.repeat([0, 1], 50))
    >>> model.transform(X).shape
    (100, 1)
    """

    takes_sparse = True
    _kept: ClassVar[dict[str, Callable[[Record, str], Any]]] = {
        "n_train": Record.whole,
        "n_disjoint": Record.whole,
        "fingerprint": Record.text,
        "draws": lambda record, name: [_checked_draw(draw) for draw in record.records(name)],
        "start": lambda record, name: checked_rule(record.record(name)),
        "scaling": lambda record, name: record.one_of(name, ("columns", "whole")),
        "generation": lambda record, name: Generation.from_record(record.record(name)),
    }

    n_bits: int = bits(64)
    _: KW_ONLY
    diversity: str = checked("t", check_letters)
    sampling: str = one_of("disjoint", "random", "bootstrap")
    n_train: int | str = training_points()
    objective: str | Loss = checked("laplacian", check_objective)
    hash_function: Any = "linear"
    C: float | str = "auto"
    n_similar: int | tuple[int, int] = checked(N_NEIGHBORS, check_range)
    n_dissimilar: int | tuple[int, int] = checked(N_NEIGHBORS, check_range)
    start: Any = checked("auto", check_start)
    n_features: int | float = 0.5
    centers: str = one_of("common", "pool", "private")
    n_centers: int | str = checked("auto", check_centers)
    kernel_width: float | None = positive(None)
    scaling: str = one_of("auto", "columns", "whole")
    n_trees: int = count(200)
    tree_depth: int = count(6, 1, MOST_LEVELS)
    learning_rate: float = positive(0.2)
    block_order: str = one_of("random", "fixed")
    max_sweeps: int = count(MAX_SWEEPS)
    mac: bool | tuple[float, ...] = checked(False, mac_penalties)
    unlabeled: Any = -1
    random_state: Any = 0
    n_jobs: int | None = jobs()

    # -------------------------------------------------------------------------------------------- training

    def _fit(
        self,
        X: Any,
        y: Any,
        graph: Given,
        means: Given,
        progress: Progress | None,
        generation: Generation | None = None,
    ) -> None:
        self._check_parameters()
        X = self._read(X, reset=True)
        supervision = self._supervision(X, y, **graph)
        own = generation or Generation(0, seed_of_run(self.random_state, means["checkpoint"]))
        self.generation_, self._side = replace(own, n_points=len(X), date=today()), None
        self.seed_ = own.seed
        self.fingerprint_ = data_fingerprint(X, supervision)
        sample = take_rows(X, sample_rows(supervision, self.seed_))
        everything = np.arange(len(sample))
        self.origin_ = origin_of(sample, everything)
        self.scaling_ = (
            self.scaling if self.scaling != "auto" else scaling_for(gather(sample, everything, self.origin_))
        )
        self.functions_ = []
        self.bits_: list[BitReport] = []
        self.draws_: list[dict[str, Any]] = []
        self._train(range(self.n_bits), X, supervision, progress, **means)

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

        Parameters
        ----------
        n : int, how many
        X, y, affinity, pairs : as in fit, the data that the model was fitted on
        progress, client, checkpoint : as in fit, optional, one directory may hold the bits of both

        Returns
        -------
        self
        """
        check_is_fitted(self)
        X, y, _ = named_columns(X, y, None)
        with self._all_or_nothing():
            supervision, means = {"affinity": affinity, "pairs": pairs}, {"client": client, "checkpoint": checkpoint}
            self._fit_more(check_count("n", n, 1, MOST_BITS), X, y, supervision, means, progress)
        return self

    def _fit_more(self, n: int, X: Any, y: Any, graph: Given, means: Given, progress: Progress | None) -> None:
        self._check_parameters()
        X = self._read(X, reset=False)
        supervision = self._supervision(X, y, **graph)
        number, grown = self._generation_of(data_fingerprint(X, supervision))
        first = max(report.bit for report in grown.bits_) + 1
        grown._train(range(first, first + n), X, supervision, progress, **means)
        grown.n_bits = len(grown.functions_)
        if self._side is not None:
            parts = [grown if one == number else part for one, part in enumerate(self._side.models)]
            self._hold(SideBySide(parts, np.append(self._side.owner, np.repeat(number, n))))

    def _generation_of(self, data: str) -> tuple[int, ILH]:
        """Return the latest generation of these data, to be trained further under the parameters of today."""
        own = [number for number, part in enumerate(self.generations) if part.fingerprint_ == data]
        if not own:
            raise _other_data()
        if self._side is None:
            return 0, self
        part = self.generations[own[-1]][:]
        return own[-1], part.set_params(**{**self.get_params(deep=False), "n_bits": part.n_bits})

    def _check_quality(self, X: Any, y: Any, graph: Given) -> None:
        X = self._read(X, reset=False)
        warn_of_quality(self, X, self._supervision(X, y, **graph))

    def _same_supervision(self, X: NDArray[Any], y: Any, graph: Given) -> Supervision:
        """Return the supervision that the model was fitted with; refuse other data."""
        supervision = self._supervision(X, y, **graph)
        if data_fingerprint(X, supervision) != self.fingerprint_:
            raise _other_data()
        return supervision

    def _supervision(self, X: NDArray[Any], y: Any, *, affinity: Any, pairs: Any) -> Supervision:
        given = [name for name, value in (("y", y), ("affinity", affinity), ("pairs", pairs)) if value is not None]
        if len(given) > 1:
            raise ValueError(f"supervision must be one of y, affinity and pairs, got {' and '.join(given)}")
        if len(X) < 2:
            raise ValueError(f"X must have at least 2 rows to compare, got n_samples={len(X)}, 1 sample")
        if not on_disk(X):
            refuse_non_finite_anywhere(X)
        if affinity is not None:
            return affinity_from_matrix(affinity, len(X), self.objective, self._may_project)
        if isinstance(pairs, Judged):
            own = affinity_from_pairs(pairs.pairs, len(X), self.objective, similar_only=True)
            return JudgedAffinity(own.matrix, view=pairs.view, shrinkage=pairs.shrinkage)
        if pairs is not None:
            return affinity_from_pairs(pairs, len(X), self.objective, self._may_project)
        if y is not None:
            return supervision_from_labels(y, len(X), self.unlabeled)
        return EuclideanNeighbors(len(X))

    @property
    def _may_project(self) -> bool:
        return isinstance(self.start, str) and self.start != "random"

    def _train(
        self,
        bits: range,
        X: NDArray[Any],
        supervision: Supervision,
        progress: Progress | None,
        *,
        client: Any,
        checkpoint: str | os.PathLike[str] | None,
    ) -> None:
        rule = self._rule(supervision)
        plan = self._plan(X, supervision, rule)
        kept = None
        if checkpoint is not None:
            own = {**self.get_params(deep=False), "n_centers": number_of_centers(self.n_centers, self.n_train_)}
            parameters = parameters_of_bits(own, rule.kind, self.scaling_)
            kept = Checkpoint(checkpoint, parameters, self.seed_, self.fingerprint_)
        learners = self._learners(X, supervision, plan.n_train + plan.n_others)
        if rule.kind == "projection":
            supervision = _bounded(supervision)
        start = self._start_of(bits, X, supervision, rule, plan)
        self._keep_draws(bits.start, plan)
        trained = {} if kept is None else kept.read(bits, X.shape[1])
        missing = [bit for bit in bits if bit not in trained]

        def one_more(bit: int, result: TrainedBit) -> None:
            if kept is not None:
                kept.write(bit, result)
            trained[bit] = result
            if progress is not None:
                progress(len(trained), len(bits))

        if trained and progress is not None:
            progress(len(trained), len(bits))
        prefer = "threads" if all(learner.runs_in == "threads" for learner in learners) else "processes"
        with with_drawn_rows(X, plan, missing) as rows:
            trainer = BitTrainer(
                X=rows,
                origin=self.origin_,
                supervision=supervision,
                plan=plan,
                objective=self.objective,
                learners=learners,
                max_sweeps=self.max_sweeps,
                penalties=mac_penalties("mac", self.mac),
                start=start,
            )
            run(trainer, missing, n_jobs=self.n_jobs, prefer=prefer, client=client, done=one_more)
        self._keep([trained[bit] for bit in bits])

    def _rule(self, supervision: Supervision) -> Rule:
        """Decide what bits begin with, and say so in ``start_``."""
        order = row_order(supervision)
        most = np.max(check_range("n_similar", self.n_similar))
        n_train, _ = training_size(self.n_train, order.size, is_focused(supervision))
        letters = check_letters("diversity", self.diversity)
        rule = rule_for(self.start, supervision, letters, bool(mac_penalties("mac", self.mac)), n_train, int(most))
        self.start_: dict[str, Any] = {"kind": rule.kind, "reason": rule.reason, "ways": ["graph"]}
        return rule

    def _start_of(self, bits: range, X: NDArray[Any], supervision: Supervision, rule: Rule, plan: Plan) -> Start:
        if rule.kind == "given":
            return GivenStart(given_start(self.start, supervision.n_points, bits.stop))
        if rule.kind == "random":
            return RandomStart()
        with single_threaded_blas():
            data = (self.fingerprint_, self.seed_, self.origin_.tobytes())
            projection = remembered(data, lambda: learn_projection(X, supervision, self.origin_, self.seed_))
            if projection is None:
                raise ValueError("X must vary for start='projection', got rows that are all the same")
            ways, n_bases = rule.ways[:1], 1
            if projection.trial is not None and (len(rule.ways) > 1 or projection.trial.principal is not None):
                trial = (projection.trial, supervision, plan, self.objective, self.max_sweeps)
                drawn = (str((plan.similar, plan.dissimilar)), plan.block_order, type(plan.row_order))
                what = (data, rule.ways, drawn, self.objective, self.max_sweeps)
                mixture, scores = remembered(what, lambda: choose_way(rule.ways, *trial))
                ways, n_bases = mixture.ways, 2 if mixture.principal else 1
                self.start_ |= scores
            if projection.shared:
                ways, n_bases = (ways[0], "hyperplane"), 2
            self.start_ |= projection.about(n_bases)
            directions = projection.directions_of(bits, n_bases)
        self.start_["ways"] = list(ways)
        return ProjectedStart(bits.start, directions, projection.mean, ways)

    def _plan(self, X: NDArray[Any], supervision: Supervision, rule: Rule) -> Plan:
        order = row_order(supervision)
        projects = rule.kind == "projection"
        available = len(X) if self._others_join(rule) else order.size
        in_pairs = projects and isinstance(supervision, SparseAffinity)
        self.n_train_, n_others, cut = training_sizes(
            self.n_train, order.size, available, in_pairs, is_focused(supervision)
        )
        if projects and draws_classes(supervision, self.n_train_):
            order = row_order(supervision, whole_classes=True)
        if cut:
            warnings.warn(
                f"n_train={self.n_train} is more than the {self.n_train_ + n_others} points that can be drawn: all of "
                "them are used, and training sets do not differ",
                stacklevel=5,
            )
        plan = Plan(
            random_state=self.seed_,
            letters=check_letters("diversity", self.diversity),
            sampling=self.sampling,
            n_train=self.n_train_,
            n_features=X.shape[1],
            n_features_drawn=drawn_features(self.n_features, X.shape[1]),
            similar=check_range("n_similar", self.n_similar),
            dissimilar=check_range("n_dissimilar", self.n_dissimilar),
            block_order=self.block_order,
            row_order=order,
            n_others=n_others,
            other_order=other_order(supervision) if n_others else None,
        )
        self.n_disjoint_ = plan.n_disjoint
        return plan

    def _others_join(self, rule: Rule) -> bool:
        """Whether points without supervision are in training sets, at their start."""
        return rule.kind == "projection" and not mac_penalties("mac", self.mac)

    def _learners(self, X: NDArray[Any], supervision: Supervision, n_train: int) -> list[Learner]:
        wanted = list(self.hash_function) if isinstance(self.hash_function, list | tuple) else [self.hash_function]
        if not wanted:
            raise ValueError("hash_function must name at least one function, got an empty list")
        with single_threaded_blas():  # what learners compute for all bits is the same bytes, too
            return [self._learner(kind, X, supervision, n_train) for kind in wanted]

    def _learner(self, kind: Any, X: Any, supervision: Supervision, n_train: int) -> Learner:
        if isinstance(X, SparseRows):
            refuse_dense_functions(kind)

        def sample(size: int) -> GatheredRows:
            rows: GatheredRows = gather(X, sample_rows(supervision, self.seed_, size), self.origin_)
            return rows

        settings = LearnerSettings(
            C=self.C,
            scaling=self.scaling_,
            n_centers=number_of_centers(self.n_centers, self.n_train_),
            kernel_width=self.kernel_width,
            centers=self.centers,
            n_trees=self.n_trees,
            tree_depth=self.tree_depth,
            learning_rate=self.learning_rate,
            n_train=0 if isinstance(X, SparseRows) else n_train,
            sample=sample,
        )
        return make_learner(kind, settings)

    def _keep(self, trained: Sequence[TrainedBit]) -> None:
        self.functions_ = share_common_basis([*self.functions_, *(bit.function for bit in trained)])
        self.bits_ = [*self.bits_, *(bit.report for bit in trained)]
        self._prepare_encoder()
        if not (isinstance(self.start, str) and self.start == "auto" and self.n_similar == N_NEIGHBORS):
            warn_of_shortages([bit.report for bit in trained if bit.report.start == "random"], self.n_similar)
        unfinished = [bit.report.bit for bit in trained if not bit.report.converged]
        if unfinished:
            warnings.warn(
                f"the z-step of {len(unfinished)} of {len(trained)} bits stopped at max_sweeps={self.max_sweeps} "
                f"before it converged (bit {unfinished[0]} first): raise max_sweeps",
                ConvergenceWarning,
                stacklevel=5,
            )

    # -------------------------------------------------------------------------------------------- training sets

    def _rows_of_bit(self, bit: int, X: Any, y: Any, graph: Given) -> NDArray[np.int64]:
        if self._side is not None:
            part: ILH = self._side.models[self._side.owner[bit]]
            return part._rows_of_bit(int(self._side.inside[bit]), X, y, graph)
        report = self.bits_[bit]
        draw = next(draw for draw in reversed(self.draws_) if draw["first"] <= report.bit)
        order, others = self._orders_again(draw, X, y, graph)
        how = (draw["letters"], draw["sampling"], draw["n_train"])
        rows = drawn_rows(order, self.seed_, *how, report.bit, report.attempts - 1)
        extra = drawn_others(others, self.seed_, draw["letters"], draw.get("n_others", 0), report.bit)
        return np.sort(np.concatenate([rows, extra]))

    def _orders_again(self, draw: Given, X: Any, y: Any, graph: Given) -> tuple[RowOrder, RowOrder | None]:
        n_rows = draw["n_rows"]
        if X is None and n_rows is None:
            raise ValueError(
                "X and its supervision must be given again, since the model knows only where all rows could be drawn, "
                "got no X"
            )
        if X is None:
            return UniformOrder(int(n_rows or 0)), None
        X = self._read(X, reset=False)
        supervision = self._same_supervision(X, y, graph)
        return row_order(supervision, draw.get("whole_classes", False)), other_order(supervision)

    def _keep_draws(self, first: int, plan: Plan) -> None:
        """Keep what the training sets of bits from number ``first`` on are drawn by: parameters may change later."""
        order = plan.row_order
        n_rows = order.n_points if isinstance(order, UniformOrder) and order.pool is None else None
        how = {"letters": plan.letters, "sampling": plan.sampling, "n_train": plan.n_train, "n_rows": n_rows}
        how |= {"n_others": plan.n_others, "whole_classes": isinstance(order, ClassOrder)}
        self.draws_ = [*self.draws_, {"first": first, **how}]

    # -------------------------------------------------------------------------------------------- parts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kinds = self.hash_function if isinstance(self.hash_function, list | tuple) else [self.hash_function]
        tags.input_tags.sparse = all(isinstance(kind, str) and kind == "linear" for kind in kinds)
        return tags

    def weights(self) -> NDArray[np.float32]:
        """Return the weights of linear functions, without biases.

        Returns
        -------
        float32 array (n_bits, D), zero where a function does not look
        """
        check_is_fitted(self)
        return padded_weights(self.functions_, self.n_features_in_)

    def kernel_expansions(self) -> KernelExpansions:
        """Return kernel functions as sums over centres.

        Returns
        -------
        KernelExpansions, coefficients, centres and s: what evaluation.kernel_dot_products takes
        """
        check_is_fitted(self)
        if self._side is not None:
            raise ValueError("kernel_expansions must be asked of one generation (model.generations[i]), got several")
        return in_one_kernel(self.functions_)

    def _with_bits(self, chosen: list[int]) -> ILH:
        part = super()._with_bits(chosen)
        if self._side is None:
            part.bits_ = [self.bits_[i] for i in chosen]
        return part

    def _hold(self, side: SideBySide) -> None:
        self.bits_ = side.of_each(lambda part: part.bits_)
        super()._hold(side)

    def _own_provenance(self) -> list[Provenance]:
        own = self.generation_
        about = Provenance("ILH", own.number, self.seed_, self.fingerprint_, own.n_points, own.date, own.name)
        return [about] * len(self.functions_)

    def _card_facts(self) -> dict[str, object]:
        start = getattr(self, "start_", None)
        facts = {"diversity": self.diversity, "points per bit": self.n_train_, "objective": self.objective}
        return {**facts, **({"start": f"{start['kind']} ({start['reason']})"} if start else {})}

    def _card_curves(self) -> list[Curve]:
        lines = {
            "training accuracy": [report.accuracy for report in self.bits_],
            "share of +1": [report.balance for report in self.bits_],
        }
        return [Curve("Bits, one by one", "bit", "share of its training points", lines)]

    def _own_document(self) -> dict[str, Any]:
        own = super()._own_document()
        return {**own, "generation": asdict(self.generation_), "bits": [asdict(report) for report in self.bits_]}

    def _read_own_document(self, record: Record) -> None:
        letters = self.diversity if isinstance(self.diversity, str) else ""
        how = {"letters": letters, "sampling": self.sampling, "n_train": record.whole("n_train"), "n_rows": None}
        earlier: dict[str, Any] = {"draws": [{"first": 0, **how}]}  # not kept earlier
        if "scaling" not in record:  # nor was it decided by the data
            earlier["scaling"] = record.record("parameters").completed({"scaling": "columns"}).document["scaling"]
        if "start" not in record.record("parameters"):  # nor was there another start than the paper's
            self.start = "random"
            earlier["start"] = {"kind": "random", "reason": "of a version without other starts"}
        if "generation" not in record:  # there was but one
            earlier["generation"] = {"number": 0, "root_seed": record.whole("seed", most=2**128), "n_points": None}
        super()._read_own_document(record.completed(earlier))
        self.bits_ = [BitReport.from_record(report) for report in record.records("bits")]
        if len(self.bits_) != len(self.functions_):
            raise DamagedFileError(f"{record.where} must have 'bits', one report for each bit, got {len(self.bits_)}")
        if not self.draws_ or min(report.bit for report in self.bits_) < self.draws_[0]["first"]:
            raise DamagedFileError(f"{record.where} must have 'draws', what each bit was drawn by, got too few")


def _other_data() -> ValueError:
    return ValueError(
        "X and its supervision must be the data that the model was fitted on, got other data: bits of one generation "
        "share their training sets' permutation; extend trains bits on other data"
    )


def _bounded(supervision: Supervision) -> Supervision:
    """Return supervision whose graphs are weighted by how much labels agree, and no larger than wanted."""
    if isinstance(supervision, LabelSets):
        return replace(supervision, graded=True)
    return replace(supervision, thinned=True) if isinstance(supervision, SparseAffinity) else supervision


def _checked_draw(record: Record) -> dict[str, Any]:
    """Return how training sets were drawn, from a file."""
    letters = record.text("letters", "[itf]{0,3}")
    sampling = record.one_of("sampling", ("disjoint", "random", "bootstrap"))
    how = {"letters": letters, "sampling": sampling, "n_train": record.whole("n_train"), "n_rows": None}
    later = record.completed({"n_others": 0, "whole_classes": False})  # earlier versions drew neither
    how |= {"n_others": later.whole("n_others"), "whole_classes": later.truth("whole_classes")}
    return {"first": record.whole("first"), **how, "n_rows": record.whole_or_none("n_rows")}
