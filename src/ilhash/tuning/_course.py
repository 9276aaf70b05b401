"""Successive halving: all candidates with few bits, the better half with more, the best with all.

What is trained is decided by expected seconds, not by the clock, so that the same call gives the same model; only where
a machine takes twice as long or more does the clock matter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ilhash.tuning._candidates import Candidate
from ilhash.tuning._trials import Bench, Trial

CHEAP = 0.3  # share of the budget for what is trained to the end without a contest
SPARE = 0.3  # share of the budget that a refinement may need: more of it is for the contest itself
TOO_SHORT = 0.4  # share of the time below which nothing is told of how slow a machine is
SHARES = (0.6, 0.75, 0.85)  # of the budget that is spent by the end of each round; the rest is for mixes and the report


@dataclass(frozen=True)
class Now:
    """How far a search has come.

    Attributes
    ----------
    done, total : int, core seconds of what was planned, spent and in all
    seconds_left : float, at most
    current : str, what is tried, and what leads
    """

    done: int
    total: int
    seconds_left: float
    current: str


@dataclass(eq=False)
class Budget:
    """Core seconds that may be spent, as expected, and the clock.

    Parameters
    ----------
    seconds : float, of the clock
    workers : int
    """

    seconds: float
    workers: int
    planned: float = 0.0  # core seconds, as expected, of what was done
    begin: float = field(default_factory=time.monotonic)
    slowness: int = 1  # 2, 4, ... while a machine takes that much longer than expected

    @property
    def total(self) -> float:
        """Core seconds in all."""
        return self.seconds * self.workers

    def over(self, share: float = 1.0) -> bool:
        """Whether the clock says that such a share of the time has gone."""
        return time.monotonic() - self.begin > share * self.seconds

    @property
    def spent(self) -> float:
        """Core seconds of what was done."""
        return self.planned * self.slowness

    def spend(self, expected: float) -> None:
        """Note what was done; where the clock says that it took much longer, so will the rest."""
        self.planned += expected
        passed = time.monotonic() - self.begin
        if passed < TOO_SHORT * self.seconds:
            return
        self.slowness = 1
        while passed * self.workers > 2 * self.spent:
            self.slowness *= 2

    def left(self) -> float:
        """Seconds left on the clock."""
        return max(0.0, self.seconds - (time.monotonic() - self.begin))


@dataclass(eq=False)
class Course:
    """The search for the best candidate.

    Parameters
    ----------
    bench : Bench
    budget : Budget
    n_bits : int, of the code
    max_encode_us : float, optional, what encoding a vector may take
    progress : callable, called with Now before each step
    """

    bench: Bench
    budget: Budget
    n_bits: int
    max_encode_us: float | None
    progress: Callable[[Now], None]
    left_out: dict[str, str] = field(default_factory=dict)  # candidates and why they were not tried to the end
    complete: bool = True  # whether the clock let all of it happen

    def run(self, candidates: list[Candidate]) -> None:
        """Try candidates; the trials are the bench's.

        What is cheap is trained to the end before anything else is begun: whatever happens then, there is an answer.
        """
        rounds = sorted({max(1, self.n_bits // 4), max(1, self.n_bits // 2), self.n_bits})
        cheap, others = self._divided(self._affordable(candidates))
        for place, candidate in enumerate(cheap):
            limit = CHEAP * self.budget.total if place else math.inf  # one must be had
            have = 0
            for n_bits in rounds:
                if self._step(candidate, have, n_bits, limit) is None:
                    break
                have = n_bits
        self._halve({candidate.name: candidate for candidate in others}, rounds)

    def _divided(self, candidates: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
        """Return what is cheap, the cheapest first, and the rest."""
        ordered = sorted(candidates, key=lambda candidate: self.expected(candidate, 0, self.n_bits))
        together, n_cheap = 0.0, 0
        for candidate in ordered:
            again = 1.0 if candidate.grows or candidate.at_once else 1.75  # half of the bits, and a quarter, before
            together += again * self.expected(candidate, 0, self.n_bits)
            if n_cheap and together > CHEAP * self.budget.total:
                break
            n_cheap += 1
        return ordered[:n_cheap], ordered[n_cheap:]

    def _halve(self, alive: dict[str, Candidate], rounds: list[int]) -> None:
        have = dict.fromkeys(alive, 0)
        for number, n_bits in enumerate(rounds):
            limit = SHARES[number + len(SHARES) - len(rounds)] * self.budget.total
            last: dict[str, Trial] = {}
            # Once there are scores the best comes first: the leader must not lack the time.
            for candidate in sorted(alive.values(), key=lambda one: -self._best_score(one.name)):
                trial = self._step(candidate, have[candidate.name], n_bits, limit)
                if trial is not None:
                    last[candidate.name] = trial
                    have[candidate.name] = n_bits
            if n_bits < self.n_bits:
                alive = self._survivors(alive, last)

    def _affordable(self, candidates: list[Candidate]) -> list[Candidate]:
        """Leave out what could never be trained to the end; the cheapest always can."""
        cheapest = min(candidates, key=lambda candidate: self.expected(candidate, 0, self.n_bits))
        kept = []
        for candidate in candidates:
            needed = self.expected(candidate, 0, self.n_bits)
            share = SPARE if candidate.spare else SHARES[-1]
            if candidate is cheapest or needed <= share * self.budget.total:
                kept.append(candidate)
            else:
                minutes = needed / self.budget.workers / 60 / share
                self.left_out[candidate.name] = f"it would take a search of about {minutes:.0f} minutes"
        return kept

    def expected(self, candidate: Candidate, have: int, n_bits: int) -> float:
        """Return core seconds; what keeps one core busy lets the others wait."""
        return candidate.more(have, n_bits) * (1 if candidate.parallel else self.budget.workers)

    def _best_score(self, name: str) -> float:
        return max((trial.score for trial in self.bench.trials if trial.name == name), default=-1.0)

    def _step(self, candidate: Candidate, have: int, n_bits: int, limit: float) -> Trial | None:
        expected = self.expected(candidate, have, n_bits)
        needed = expected * self.budget.slowness
        late = self.budget.over(SHARES[-1]) and limit < math.inf
        if late or self.budget.spent + needed > limit:
            self.complete = self.complete and not late and self.budget.slowness == 1
            self.left_out[candidate.name] = f"the time did not suffice for {n_bits} bits"
            return None
        self.say(f"{candidate.name}, {n_bits} bits")
        trial = self.bench.try_candidate(candidate, n_bits, lambda: limit < math.inf and self.budget.over(SHARES[-1]))
        self.budget.spend(expected)
        if trial is not None and trial.n_bits < n_bits:
            self.complete = False
            self.left_out[candidate.name] = f"the time sufficed for {trial.n_bits} of {n_bits} bits"
        if trial is None:
            self.left_out[candidate.name] = f"it has no {n_bits} bits on these data"
            return None
        encoding = trial.encode_us * self.n_bits / trial.n_bits
        if self.max_encode_us is not None and encoding > self.max_encode_us:
            self.left_out[candidate.name] = f"encoding would take about {encoding:.0f} microseconds"
            return None
        return trial

    def _survivors(self, alive: dict[str, Candidate], last: dict[str, Trial]) -> dict[str, Candidate]:
        """Keep the better half; who was passed over has no more to say."""
        ranked = sorted(last, key=lambda name: -last[name].score)
        kept = ranked[: (len(ranked) + 1) // 2]
        for name in ranked[len(kept) :]:
            self.left_out[name] = f"others were better with {last[name].n_bits} bits"
        return {name: alive[name] for name in kept}

    def say(self, current: str) -> None:
        """Tell what is tried now, and what leads."""
        leader = max(self.bench.trials, key=lambda trial: trial.score, default=None)
        leads = "" if leader is None else f"; leads: {leader.name}, {leader.n_bits} bits, {leader.score:.3f}"
        done, total = min(self.budget.spent, self.budget.total), self.budget.total
        self.progress(Now(round(done), max(1, round(total)), self.budget.left(), current + leads))

    def allowed(self, trial: Trial) -> bool:
        """Whether a model may be chosen."""
        return self.max_encode_us is None or trial.encode_us <= self.max_encode_us
