"""Successive halving: all candidates with few bits, the better half with more, the best as far as the time goes.

What is cheap is trained to the end first: whatever happens then, there are bits that fill a code. What is trained is
decided by expected seconds, not by the clock, so that the same call gives the same model. Where the clock says that a
machine is slower than expected, it decides too: by what things took so far, nothing is begun that would not be
finished, and nothing else takes the time that the best needs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ilhash.tuning._candidates import Candidate
from ilhash.tuning._trials import SHORT, Bench, Trial

CHEAP = 0.3  # share of the budget for what is trained to the end without a contest
SPARE = 0.3  # share of the budget that a refinement may need: more of it is for the contest itself
SHARES = (0.5, 0.85)  # of the budget that is spent by the end of the first round and of training; the rest is for mixes
LATER = 0.03  # share of the time by which the clock may be behind the plan
END = 0.97  # share of the time after which there is nothing left to do
JUDGEMENTS = 40  # of mixes, and those that report, which must have their time after training
LOOKS = 0.05  # share of the budget that is trained between two looks at the clock, at most
EXPECTED = 0.05  # share of the budget that is believed to have gone as expected, before anything is known
SLOW = 1.5  # times what was expected, below which a machine is not called slow
FIRST = 16  # bits of the first round, or a quarter of the code
HEAD_START = 64  # bits of what is cheap and grows: longer codes must not leave less time for what is better
LEAST = 32  # bits, or half of the code, that must be within reach of what is begun
FILLED = 3  # of the best, whose bits are for mixes too
GRAIN = 8  # bits by which the best grows where the time does not suffice for a whole round


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
    begin: float = field(default_factory=lambda: time.monotonic())
    slowness: float = 1.0  # what things take, in units of what was expected; 1 while they do not take much longer

    @property
    def total(self) -> float:
        """Core seconds in all."""
        return self.seconds * self.workers

    @property
    def passed(self) -> float:
        """Seconds on the clock."""
        return time.monotonic() - self.begin

    def over(self, share: float = 1.0) -> bool:
        """Whether the clock says that such a share of the time has gone."""
        return self.passed > share * self.seconds

    @property
    def spent(self) -> float:
        """Core seconds of what was done."""
        return self.planned * self.slowness

    def spend(self, expected: float) -> None:
        """Note what was done; where the clock says that it took much longer, so will the rest."""
        self.planned += expected
        believed = EXPECTED * self.total
        took = (self.passed * self.workers + believed) / (self.planned + believed)
        self.slowness = took if took > SLOW else 1.0

    def left(self) -> float:
        """Seconds left on the clock."""
        return max(0.0, self.seconds - self.passed)

    def room(self, share: float, *, by_clock: bool) -> float:
        """Return the core seconds, as expected, that are left of a share of the budget: by the plan, or the clock."""
        if not by_clock:
            return share * self.total - self.planned
        return (share * self.seconds - self.passed) * self.workers / self.slowness


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

    @property
    def rounds(self) -> list[int]:
        """Numbers of bits that candidates are compared at: those of a code half as long, and all of them."""
        numbers = [max(1, min(self.n_bits // 4, FIRST))]
        while 2 * numbers[-1] < self.n_bits:
            numbers.append(2 * numbers[-1])
        return [*numbers, self.n_bits]

    def run(self, candidates: list[Candidate]) -> None:
        """Try candidates; the trials are the bench's.

        What is cheap is trained to the end before anything else is begun: whatever happens then, there is an answer.
        """
        cheap, others = self._divided(self._affordable(candidates))
        for place, candidate in enumerate(cheap):
            n_bits = self._head_start(candidate) if place else self.n_bits  # one must be had
            self._step(candidate, n_bits, CHEAP if place else math.inf)
        alive, screened = self._screened(others, cheap)
        self._grow(alive)
        self._fill(screened)

    def _divided(self, candidates: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
        """Return what is cheap, the cheapest first, and the rest."""
        ordered = sorted(candidates, key=lambda candidate: self.expected(candidate, 0, self._head_start(candidate)))
        together, n_cheap = 0.0, 0
        for candidate in ordered:
            again = 1.0 if candidate.grows or candidate.at_once else 1.75  # half of the bits, and a quarter, for mixes
            together += again * self.expected(candidate, 0, self._head_start(candidate))
            if n_cheap and together > CHEAP * self.budget.total:
                break
            n_cheap += 1
        return ordered[:n_cheap], ordered[n_cheap:]

    def _head_start(self, candidate: Candidate) -> int:
        return min(self.n_bits, HEAD_START) if candidate.grows else self.n_bits

    def _screened(
        self, candidates: list[Candidate], cheap: list[Candidate]
    ) -> tuple[dict[str, Candidate], list[Candidate]]:
        """Train few bits of each; of refinements after what they refine, those of the best first.

        Returns the better half, with what is cheap and grows, and all that was compared, the best first.
        """
        waiting, first, known = list(candidates), self.rounds[0], {one.name for one in cheap}
        found = {one.name: (one, self._first_bits(one, first)) for one in cheap if one.grows}
        last: dict[str, Trial] = {name: trial for name, (_, trial) in found.items() if trial is not None}
        alive = {name: found[name][0] for name in last}
        while ready := [one for one in waiting if one.after is None or one.after in last or one.after in known]:
            waiting = [one for one in waiting if one not in ready]
            scores = {name: trial.score for name, trial in last.items()}
            for candidate in sorted(
                ready, key=lambda one: (-scores.get(one.after or "", 0.0), self.expected(one, 0, first))
            ):
                trial = self._step(candidate, first, SHARES[0], finish=True)
                if trial is not None:
                    last[candidate.name], alive[candidate.name] = trial, candidate
        alive = self._survivors(alive, last)
        for one in waiting:
            self.left_out[one.name] = f"it refines {one.after}, which was not tried"
        ranked = sorted(last, key=lambda name: -last[name].score)
        return alive, [one for name in ranked for one in (*candidates, *cheap) if one.name == name]

    def _first_bits(self, candidate: Candidate, n_bits: int) -> Trial | None:
        """Return the trial of so many bits, where there are as many; None otherwise, or where they are too slow."""
        own = [trial for trial in self.bench.trials if trial.name == candidate.name]
        longest = max(own, key=lambda trial: trial.n_bits, default=None)
        if not candidate.grows or longest is None or longest.n_bits < n_bits or not self._quick(longest):
            return None
        for trial in own:
            if trial.n_bits == n_bits:
                return trial
        first = self.bench.prefix(longest, n_bits)
        return self.bench.keep(first.name, first.model, first.bits, first.encode_us, first.seconds, first.recipe)

    def _grow(self, alive: dict[str, Candidate]) -> None:
        """Give the better half more and more bits; the best first, and others only what it will not need."""
        for n_bits in self.rounds[1:]:
            last: dict[str, Trial] = {}
            leader: Candidate | None = None
            for candidate in sorted(alive.values(), key=lambda one: -self._last_score(one.name)):
                trial = self._first_bits(candidate, n_bits)
                trial = trial or self._step(candidate, n_bits, SHARES[-1], leader=leader)
                if trial is None and leader is None:
                    self._as_far_as_it_goes(candidate, n_bits)
                leader = leader or candidate
                if trial is not None:
                    last[candidate.name] = trial
            if n_bits < self.n_bits:
                alive = self._survivors(alive, last)

    def _as_far_as_it_goes(self, candidate: Candidate, n_bits: int) -> None:
        have = self._have(candidate)
        if not candidate.grows or not have:
            return
        for wanted in range(n_bits - GRAIN, have, -GRAIN):
            if self._fits(self.expected(candidate, have, wanted), SHARES[-1]):
                self._step(candidate, wanted, SHARES[-1])
                return

    def _fill(self, screened: list[Candidate]) -> None:
        """Give the time that is left to more bits of the best kinds: mixes take them."""
        for n_bits in self.rounds[1:]:
            for candidate in screened[:FILLED]:
                have = self._have(candidate)
                if not 0 < have < n_bits:
                    continue
                # What is left must suffice for training the best on all points.
                ends = 2 * self.expected(screened[0], 0, self.n_bits)
                if self._fits(self.expected(candidate, have, n_bits), SHARES[-1], ends=ends):
                    self._step(candidate, n_bits, SHARES[-1])

    def _have(self, candidate: Candidate) -> int:
        """Return how many bits there are to add to."""
        model = self.bench.models.get(candidate.name) if candidate.grows else None
        return 0 if model is None else len(model.functions_)

    def _affordable(self, candidates: list[Candidate]) -> list[Candidate]:
        """Leave out what could never be a good part of a code; the cheapest always can."""
        cheapest = min(candidates, key=lambda candidate: self.expected(candidate, 0, self.n_bits))
        kept = []
        for candidate in candidates:
            needed = self.expected(candidate, 0, self._least(candidate))
            share = SPARE if candidate.spare else SHARES[0]
            if candidate is cheapest or needed <= share * self.budget.total:
                kept.append(candidate)
            else:
                minutes = needed / self.budget.workers / 60 / share
                self.left_out[candidate.name] = f"it would take a search of about {minutes:.0f} minutes"
        return kept

    def _least(self, candidate: Candidate) -> int:
        """Return the bits below which it is not worth beginning."""
        return max(1, min(self.n_bits // 2, LEAST)) if candidate.grows else self.n_bits

    def expected(self, candidate: Candidate, have: int, n_bits: int) -> float:
        """Return core seconds; what keeps one core busy lets the others wait."""
        return candidate.more(have, n_bits) * (1 if candidate.parallel else self.budget.workers)

    def _fits(self, needed: float, share: float, leader: Candidate | None = None, *, ends: float = 0.0) -> bool:
        """Whether there is time for so many core seconds, by the plan and by the clock, also for what the leader needs.

        ``ends`` are core seconds that there must be until the end of training.
        """
        for by_clock in (False, True):
            later = LATER if by_clock else 0.0
            room, all_of_it = (self.budget.room(one + later, by_clock=by_clock) for one in (share, SHARES[-1]))
            if by_clock:
                all_of_it = min(all_of_it, self.budget.room(END, by_clock=True) - JUDGEMENTS * self.bench.judging)
            if needed > min(room, all_of_it - self._reserved(leader, all_of_it)) or ends > all_of_it:
                self.complete = self.complete and not by_clock
                return False
        return True

    def _reserved(self, leader: Candidate | None, room: float) -> float:
        """Return what the leader needs to become as much of the code as the time allows."""
        if leader is None or not leader.grows:
            return 0.0
        have = self._have(leader)
        for quarters in (4, 3, 2, 1):
            needed = self.expected(leader, have, max(have, quarters * self.n_bits // 4))
            if needed <= room:
                return needed
        return 0.0

    def has_time(self, needed: float) -> bool:
        """Whether so many core seconds are left after all else, by the plan and by the clock; if so they are spent."""
        if needed > self.budget.room(1.0, by_clock=False):
            return False
        in_time = needed <= self.budget.room(END, by_clock=True) and not self.budget.over(END)
        self.complete = self.complete and in_time
        if in_time:
            self.budget.spend(needed)
        return in_time

    def _late(self) -> bool:
        """Whether mixes and the report need the time that is left."""
        needed = JUDGEMENTS * self.bench.judging * self.budget.slowness / self.budget.total
        return self.budget.over(min(SHARES[-1] + LATER, END - needed))

    def _last_score(self, name: str) -> float:
        return next((trial.score for trial in reversed(self.bench.trials) if trial.name == name), -1.0)

    def _step(
        self,
        candidate: Candidate,
        n_bits: int,
        share: float,
        *,
        leader: Candidate | None = None,
        finish: bool = False,
    ) -> Trial | None:
        """Train a candidate to so many bits, if a share of the budget suffices."""
        expected = self.expected(candidate, self._have(candidate), n_bits)
        if share < math.inf:
            ends = self.expected(candidate, 0, self._least(candidate)) if finish else 0.0
            late = self._late()
            self.complete = self.complete and not late
            if late or not self._fits(expected, share, leader, ends=ends):
                self.left_out[candidate.name] = f"the time did not suffice for {n_bits} bits"
                return None
        self.say(f"{candidate.name}, {n_bits} bits")
        self.bench.short = min(SHORT, LOOKS * self.budget.total) / self.budget.slowness
        trial = self.bench.try_candidate(candidate, n_bits, lambda: share < math.inf and self._late())
        self.budget.spend(expected)
        if trial is not None and trial.n_bits < n_bits:
            self.complete = False
            self.left_out[candidate.name] = f"the time sufficed for {trial.n_bits} of {n_bits} bits"
        if trial is None:
            self.left_out[candidate.name] = f"it has no {n_bits} bits on these data"
            return None
        if not self._quick(trial):
            encoding = trial.encode_us * self.n_bits / trial.n_bits
            self.left_out[candidate.name] = f"encoding would take about {encoding:.0f} microseconds"
            return None
        return trial

    def _quick(self, trial: Trial) -> bool:
        return self.max_encode_us is None or trial.encode_us * self.n_bits / trial.n_bits <= self.max_encode_us

    def _survivors(self, alive: dict[str, Candidate], last: dict[str, Trial]) -> dict[str, Candidate]:
        """Keep the better half; who was passed over has no more to say."""
        ranked = sorted((name for name in last if name in alive), key=lambda name: -last[name].score)
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
