"""What becomes of a start that follows the data: trial bits of each way are judged by held-out points or pairs.

Trial bits are linear and live in the space of the leading principal directions, so that trying costs little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Mixture:
    """What bits become in turn: one way, or two; the second of the same directions or of principal ones."""

    ways: tuple[str, ...]
    principal: bool = False

    @property
    def name(self) -> str:
        second = "principal" if self.principal else self.ways[-1]
        return f"by {self.ways[0]}" if len(self.ways) == 1 else f"by {self.ways[0]} and {second}"


def choose_way(
    ways: tuple[str, ...], trial: Trial, supervision: Supervision, plan: Plan, objective: str | Loss, max_sweeps: int
) -> tuple[Mixture, dict[str, float]]:
    """Return what held-out points or pairs find best, and the scores of all that was tried.

    First each way for all bits, then the best of them in turn with the hyperplane, of the same directions and of
    principal ones. ``plan`` is that of the model, of which trial bits take the numbers of neighbours.
    """
    known = supervision
    if isinstance(known, SparseAffinity) and len(trial.judge.held):
        known = known.without(trial.judge.held)
    trials = _Trials(trial, known.among(trial.rows), plan, objective, max_sweeps)
    shares = {Mixture((way,)): trial.judge.of(trials.codes(Mixture((way,)))) for way in ways}
    best = _best(shares, Mixture(("hyperplane",)))
    others = [one for one in shares if one.ways != ("hyperplane",)]
    mixtures = [Mixture((*max(others, key=lambda one: shares[one].sum()).ways, "hyperplane"))] if others else []
    mixtures += [] if trial.principal is None else [Mixture((*best.ways, "hyperplane"), True)]
    shares |= {one: trial.judge.of(trials.codes(one)) for one in mixtures}
    best = _best({one: shares[one] for one in (best, *mixtures)}, best)
    return best, {one.name: float(share.sum()) for one, share in shares.items()}


def _best(shares: dict[Mixture, NDArray[np.float64]], simplest: Mixture) -> Mixture:
    """Return the best, but the simplest where it is not beaten by more than noise."""
    best = max(shares, key=lambda one: shares[one].sum())
    return best if beaten_by(shares[simplest], shares[best], ERRORS) else simplest


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
        self._known: dict[tuple[str, int, bool], HashFunction] = {}
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

    def codes(self, mixture: Mixture) -> _Codes:
        """Train what a mixture has of each of its kinds, as many trial bits for every mixture."""
        each = BITS // len(mixture.ways)
        functions: list[HashFunction] = []
        for number, way in enumerate(mixture.ways):
            principal = mixture.principal and number > 0
            first = 0 if principal else number * each
            functions += [self._function(way, bit, principal) for bit in range(first, first + each)]
        return _Codes(functions)

    def _function(self, way: str, bit: int, principal: bool) -> HashFunction:
        if (way, bit, principal) not in self._known:
            self._known[way, bit, principal] = self._trainer(way, principal)(bit).function
        return self._known[way, bit, principal]

    def _trainer(self, way: str, principal: bool) -> BitTrainer:
        zeros = np.zeros(self._trial.values.shape[1], np.float32)
        directions = self._trial.directions
        if principal and self._trial.principal is not None:
            directions = self._trial.principal
        return BitTrainer(
            X=self._trial.values,
            origin=zeros,
            supervision=self._supervision,
            plan=self._plan,
            objective=self._objective,
            learners=[make_learner("linear", LearnerSettings(scaling="whole"))],
            max_sweeps=self._max_sweeps,
            start=ProjectedStart(0, directions, zeros, (way,)),
        )


class _Codes:
    """The codes of trial bits, as numbers -1 and +1."""

    def __init__(self, functions: list[HashFunction]) -> None:
        self._functions = functions

    def __call__(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        margins = np.stack([function.margins(values) for function in self._functions], axis=1)
        return np.where(margins > 0, np.float32(1.0), np.float32(-1.0))
