"""Bits of several families in one code: shares of the best families, and the best bits of all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ilhash.ensemble import Mix
from ilhash.evaluation import PrecisionBitByBit
from ilhash.tuning._candidates import Candidate
from ilhash.tuning._course import Course
from ilhash.tuning._parts import Retrieval
from ilhash.tuning._trials import Bench, Trial, encode_microseconds

FAMILIES = 3  # the best, whose mixes are tried; what is cheap and jointly learnt comes beside them
BESIDE = ("ITQ", "CCAITQ")
LEADERS = 2  # families that have the larger share of a mix
QUERIES = 500  # that choose bits one by one, and as many points at least that then judge the choice
MIXES_END = 0.92  # share of the time after which no more are tried
ERRORS = 1.0  # standard errors by which chosen bits must be better than what there was


def try_mixes(course: Course, candidates: list[Candidate]) -> None:
    """Try codes that share their bits among families: all bits, and half of them.

    A family that has fewer bits than its share gives what it has, and what is cheap fills the code. With half of the
    bits there is at least what a search for half of the bytes would have: so a longer code is never chosen for want of
    a better short one.

    Parameters
    ----------
    course : Course, after its run
    candidates : list of Candidate, those it was of
    """
    families = _families(course, {candidate.name: candidate for candidate in candidates})
    course.say("mixes of the best")
    for n_bits in (course.n_bits, course.n_bits // 2):
        if n_bits < 4:
            return
        _try_prefixes(course, families, n_bits)
        for leader in families[:LEADERS]:
            for other in families:
                if other is not leader:
                    _try_pair(course, leader, other, n_bits)
        if n_bits == course.n_bits:
            for others in combinations(families[1:], 2):
                largest = min(n_bits - 2 * (n_bits // 4), families[0].most)
                quarter = (n_bits - largest) // 2
                _try(course, [(families[0], largest), (others[0], n_bits - largest - quarter), (others[1], quarter)])


def _try_prefixes(course: Course, families: list[_Family], n_bits: int) -> None:
    """Judge the first bits of families that have more of them."""
    for family in families:
        have = [trial for trial in course.bench.trials if trial.name == family.name and trial.n_bits == n_bits]
        if family.best.n_bits > n_bits and family.best.model.nested and not have and _in_time(course):
            first = course.bench.prefix(family.best, n_bits)
            course.bench.keep(family.name, first.model, first.bits, first.encode_us, first.seconds, first.recipe)


def _try_pair(course: Course, leader: _Family, other: _Family, n_bits: int) -> None:
    shares = [min(n_bits - n_bits // 4, leader.most)]
    if leader.place < other.place and n_bits // 2 < shares[0]:
        shares.append(n_bits // 2)
    for share in shares:
        _try(course, [(leader, share), (other, n_bits - share)])


class _Family:
    """A candidate of which any number of bits can be had."""

    def __init__(self, bench: Bench, candidate: Candidate, best: Trial, place: int) -> None:
        self.name, self.place, self.best = candidate.name, place, best
        self._bench, self._candidate = bench, candidate
        self._trials = {trial.n_bits: trial for trial in bench.trials if trial.name == candidate.name}

    @property
    def most(self) -> int:
        """The bits that can be had at once: all that were trained, or as many as are wanted where they are cheap."""
        return self.best.n_bits if self.best.model.nested else self._bench.n_bits

    def of(self, n_bits: int) -> Trial | None:
        """Return a trial of so many bits; None where there are none."""
        if n_bits in self._trials:
            return self._trials[n_bits]
        if self.best.model.nested:
            if n_bits > self.best.n_bits:
                return None
            return self._bench.prefix(self.best, n_bits)
        trial = self._bench.try_candidate(self._candidate, n_bits)
        if trial is not None:
            self._trials[n_bits] = trial
        return trial


def _families(course: Course, known: dict[str, Candidate]) -> list[_Family]:
    """Return the best candidates, and what is cheap beside them, each as it is with most bits."""
    longest: dict[str, Trial] = {}
    for trial in course.bench.trials:
        if trial.name in known and (trial.name not in longest or trial.n_bits > longest[trial.name].n_bits):
            longest[trial.name] = trial
    ranked = sorted(longest.values(), key=lambda trial: -trial.score)
    chosen = ranked[:FAMILIES] + [trial for trial in ranked[FAMILIES:] if trial.name in BESIDE]
    return [_Family(course.bench, known[trial.name], trial, place) for place, trial in enumerate(chosen)]


def _try(course: Course, shares: list[tuple[_Family, int]]) -> None:
    if not _in_time(course):
        return
    parts = [family.of(n_bits) for family, n_bits in shares]
    if any(part is None for part in parts):
        return
    own = [part for part in parts if part is not None]
    name = " + ".join(f"{n_bits} of {family.name}" for family, n_bits in shares)
    bits = {where: np.hstack([part.bits[where] for part in own]) for where in own[0].bits}
    model = Mix.of([part.model for part in own])
    seconds = sum(part.seconds for part in own)
    recipe = tuple((family.name, n_bits) for family, n_bits in shares)
    course.bench.keep(name, model, bits, sum(part.encode_us for part in own), seconds, recipe)


def _in_time(course: Course) -> bool:
    late = course.budget.over(MIXES_END)
    course.complete = course.complete and not late
    return not late


def try_best_bits(course: Course) -> Trial | None:
    """Choose the bits that retrieve best together out of those of the best families, one by one.

    Half of the points choose them; they count only if they are better on the other half than what there was.
    """
    bench = course.bench
    retrieval = bench.parts.choosing.get("new")
    if retrieval is None or retrieval.finds or len(bench.parts.choosing) > 1 or len(retrieval.rows) < 2 * QUERIES:
        return None
    pool = _pool(bench)
    if sum(trial.n_bits for trial in pool) <= course.n_bits or course.budget.over(MIXES_END):
        return None
    course.say("the best bits of all families")
    half = len(retrieval.rows) // 2
    bits = np.hstack([trial.bits["new"] for trial in pool])
    chosen = _greedy(bits[:half], retrieval, half, course.n_bits, bench.n_threads)
    leader = max(filter(course.allowed, bench.trials), key=lambda trial: trial.score, default=None)
    if leader is None:
        return None
    gain = _other_half(bench, bits[:, chosen], half) - _other_half(bench, leader.bits["new"], half)
    if gain.mean() <= ERRORS * gain.std() / np.sqrt(len(gain)):
        return None
    model = Mix.of([trial.model for trial in pool])._with_bits(chosen)
    name = f"the best {course.n_bits} of {bits.shape[1]} bits of " + ", ".join(trial.name for trial in pool)
    seconds = sum(trial.seconds for trial in pool)
    trial = bench.keep(name, model, {"new": bits[:, chosen]}, encode_microseconds(model, bench.X), seconds)
    # By the half that did not choose them: the other would say too much good of them.
    bench.trials[-1] = replace(trial, score=leader.score + float(gain.mean()))
    return bench.trials[-1]


def _pool(bench: Bench) -> list[Trial]:
    """Return the best families, each once and with most of its bits."""
    longest: dict[str, Trial] = {}
    for trial in bench.trials:
        if trial.single and trial.n_bits >= longest.get(trial.name, trial).n_bits:
            longest[trial.name] = trial
    return sorted(longest.values(), key=lambda trial: -trial.score)[: FAMILIES + 1]


def _greedy(bits: NDArray[np.bool_], retrieval: Retrieval, half: int, n_bits: int, n_threads: int) -> list[int]:
    """Return the bits that make precision highest, each with those before it."""
    queries = np.arange(min(QUERIES, half))
    relevant = np.zeros((len(queries), half), bool)
    for query in queries:
        rows = np.asarray(retrieval.relevance.rows(int(query)), np.int64)
        relevant[query, rows[rows < half]] = True
    k = max(1, min(retrieval.k // 2, half - 1))
    # A query is among its own base: its place, always the first and relevant, is given to all alike.
    relevant[queries, queries] = True
    precision = PrecisionBitByBit(relevant, k + 1, n_threads=n_threads)
    pool = precision.pack(bits, bits[queries])
    available = np.ones(bits.shape[1], bool)
    chosen: list[int] = []
    for _ in range(n_bits):
        best = int(np.argmax(np.where(available, precision.of_each_packed(*pool), -1.0)))
        available[best] = False
        chosen.append(best)
        precision.add(bits[:, best], bits[queries, best])
    return chosen


def _other_half(bench: Bench, bits: NDArray[np.bool_], half: int) -> NDArray[np.float64]:
    return bench.values("new", bits)[half:]
