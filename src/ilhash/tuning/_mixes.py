"""Bits of several families in one code: shares of the best families, and the best bits of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
MIXES_END = 0.95  # share of the time after which no more are tried
ALWAYS = 4  # mixes that are tried whatever the clock says: of the best, with what there is of all others
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
    for place, shares in enumerate(_recipes(families, course.n_bits)):
        if place >= ALWAYS and not _in_time(course):
            return
        _try(course, shares)
    if course.n_bits >= 2:
        _try_prefixes(course, families, course.n_bits // 2)
    for shares in _recipes(families, course.n_bits // 2):
        if not _in_time(course):
            return
        _try(course, shares)


def _recipes(families: list[_Family], n_bits: int) -> Iterator[Shares]:
    """Give the mixes that are tried, those of the best family first."""
    for other in families[1:]:
        yield _shares(families[0], other, n_bits)[0]
    for leader in families[:LEADERS]:
        for other in families:
            if other is not leader:
                yield from _shares(leader, other, n_bits)
    for one, two in combinations(families[1:], 2):
        largest = min(n_bits - 2 * (n_bits // 4), families[0].best.n_bits)
        quarter = (n_bits - largest) // 2
        yield [(families[0], largest), (one, n_bits - largest - quarter), (two, quarter)]


def _try_prefixes(course: Course, families: list[_Family], n_bits: int) -> None:
    """Judge the first bits of families that have more of them."""
    for family in families:
        have = [trial for trial in course.bench.trials if trial.name == family.name and trial.n_bits == n_bits]
        if family.best.n_bits > n_bits and family.best.model.nested and not have and _in_time(course):
            first = course.bench.prefix(family.best, n_bits)
            course.bench.keep(family.name, first.model, first.bits, first.encode_us, first.seconds, first.recipe)


def _shares(leader: _Family, other: _Family, n_bits: int) -> list[Shares]:
    """Return the ways in which two families may share a code: three quarters of it are the leader's, or half."""
    shares = [min(n_bits - n_bits // 4, leader.best.n_bits)]
    if leader.place < other.place and n_bits // 2 < shares[0]:
        shares.append(n_bits // 2)
    return [[(leader, share), (other, n_bits - share)] for share in shares]


@dataclass(frozen=True)
class _Family:
    """A candidate with most of its bits, of which it gives the first ones."""

    candidate: Candidate
    best: Trial
    place: int

    @property
    def name(self) -> str:
        """What it is."""
        return self.candidate.name

    def of(self, bench: Bench, n_bits: int) -> Trial | None:
        """Return a trial of so many bits; None where there are none.

        Of a method that learns its bits together they are bits of the longer model: good enough to see what a mix is
        worth, and there at once.
        """
        return bench.prefix(self.best, n_bits) if n_bits <= self.best.n_bits else None


Shares = list[tuple[_Family, int]]  # families, and how many bits of each


def _families(course: Course, known: dict[str, Candidate]) -> list[_Family]:
    """Return the best candidates, and what is cheap beside them, each as it is with most bits."""
    longest: dict[str, Trial] = {}
    for trial in course.bench.trials:
        if trial.name in known and (trial.name not in longest or trial.n_bits > longest[trial.name].n_bits):
            longest[trial.name] = trial
    ranked = sorted(longest.values(), key=lambda trial: -trial.score)
    chosen = ranked[:FAMILIES] + [trial for trial in ranked[FAMILIES:] if trial.name in BESIDE]
    return [_Family(known[trial.name], trial, place) for place, trial in enumerate(chosen)]


def _try(course: Course, shares: Shares) -> None:
    name = " + ".join(f"{n_bits} of {family.name}" for family, n_bits in shares)
    if any(n_bits < 1 for _, n_bits in shares) or any(trial.name == name for trial in course.bench.trials):
        return
    found = [family.of(course.bench, n_bits) for family, n_bits in shares]
    parts = [part for part in found if part is not None]
    if len(parts) == len(shares):
        _keep(course.bench, parts)


def _keep(bench: Bench, parts: list[Trial]) -> Trial:
    """Judge trials side by side."""
    bits = {where: np.hstack([part.bits[where] for part in parts]) for where in parts[0].bits}
    return bench.keep(
        " + ".join(f"{part.n_bits} of {part.name}" for part in parts),
        Mix.of([part.model for part in parts]),
        bits,
        sum(part.encode_us for part in parts),
        sum(part.seconds for part in parts),
        tuple(share for part in parts for share in part.recipe),
    )


def try_exact_shares(course: Course, candidates: list[Candidate]) -> None:
    """Train methods of the best mix that learn their bits together to just their share of it.

    Parameters
    ----------
    course : Course, after its mixes
    candidates : list of Candidate, those it was of
    """
    bench, known = course.bench, {candidate.name: candidate for candidate in candidates}
    best = max(filter(course.allowed, bench.trials), key=lambda trial: trial.score, default=None)
    if best is None or all(share.n_bits == share.of for share in best.recipe) or not _in_time(course):
        return
    needed = sum(course.expected(known[one.name], 0, one.n_bits) for one in best.recipe if one.n_bits < one.of)
    if not course.has_time(needed):
        return
    course.say(f"{best.name}: methods of just their bits")
    parts = []
    for share in best.recipe:
        if share.n_bits < share.of:
            part = bench.try_candidate(known[share.name], share.n_bits)
        else:
            longest = max((one for one in bench.trials if one.name == share.name), key=lambda one: one.n_bits)
            part = bench.prefix(longest, share.n_bits)
        if part is None:
            return
        parts.append(part)
    if len(parts) > 1:
        _keep(bench, parts)


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
