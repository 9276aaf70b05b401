"""What becomes of a start that follows the data: trial bits of each way are judged by held-out points or pairs.

Trial bits are linear and live in the space of the leading principal directions, so that trying costs little.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ilhash.affinity import SparseAffinity, Supervision
from ilhash.diversity import ClassOrder, Plan, seed_for
from ilhash.ensemble._bit import BitTrainer
from ilhash.ensemble._data import other_order, row_order
from ilhash.ensemble._ilh_parameters import training_sizes
from ilhash.functions import HashFunction, LearnerSettings, make_learner
from ilhash.objective import Loss
from ilhash.starts import ProjectedStart, Trial, beaten_by

BITS = 32
POINTS = 3_000  # in the training set of a trial bit, at most
ERRORS = 1.0  # standard errors by which another way must be better than the hyperplane, the simplest


def choose_way(
    ways: tuple[str, ...], trial: Trial, supervision: Supervision, plan: Plan, objective: str | Loss, max_sweeps: int
) -> tuple[str, dict[str, float]]:
    """Return the way that held-out points or pairs find best, and the scores of all.

    ``plan`` is that of the model, of which trial bits take the numbers of neighbours.
    """
    known = supervision
    if isinstance(known, SparseAffinity) and len(trial.judge.held):
        known = known.without(trial.judge.held)
    own = _Trials(trial, known.among(trial.rows), plan, objective, max_sweeps)
    shares = {way: trial.judge.of(own.codes(way)) for way in ways}
    best = max(ways, key=lambda way: shares[way].sum())
    if best != "hyperplane" and not beaten_by(shares["hyperplane"], shares[best], ERRORS):
        best = "hyperplane"
    return best, {way: float(share.sum()) for way, share in shares.items()}


class _Trials:
    """Trains a few bits of each way on what is not held out."""

    def __init__(
        self, trial: Trial, supervision: Supervision, plan: Plan, objective: str | Loss, max_sweeps: int
    ) -> None:
        order = row_order(supervision)
        n_train, n_others, _ = training_sizes(min(POINTS, len(trial.rows)), order.size, len(trial.rows))
        if isinstance(plan.row_order, ClassOrder):
            order = row_order(supervision, whole_classes=True)
        d = trial.values.shape[1]
        self._trial, self._supervision = trial, supervision
        self._objective, self._max_sweeps = objective, max_sweeps
        self._plan = replace(
            plan,
            random_state=seed_for(plan.random_state, "directions", 4) % 2**63,
            letters="t",
            sampling="random",
            n_train=n_train,
            n_features=d,
            n_features_drawn=d,
            row_order=order,
            n_others=n_others,
            other_order=other_order(supervision) if n_others else None,
        )

    def codes(self, way: str) -> _Codes:
        zeros = np.zeros(self._trial.values.shape[1], np.float32)
        trainer = BitTrainer(
            X=self._trial.values,
            origin=zeros,
            supervision=self._supervision,
            plan=self._plan,
            objective=self._objective,
            learners=[make_learner("linear", LearnerSettings(scaling="whole"))],
            max_sweeps=self._max_sweeps,
            start=ProjectedStart(0, self._trial.directions, zeros, (way,)),
        )
        return _Codes([trainer(bit).function for bit in range(BITS)])


class _Codes:
    """The codes of trial bits, as numbers -1 and +1."""

    def __init__(self, functions: list[HashFunction]) -> None:
        self._functions = functions

    def __call__(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        margins = np.stack([function.margins(values) for function in self._functions], axis=1)
        return np.where(margins > 0, np.float32(1.0), np.float32(-1.0))
