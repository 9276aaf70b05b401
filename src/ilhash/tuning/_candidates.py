"""What may be tried: kinds of models, and about how long each trains."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ilhash import methods
from ilhash.ensemble import ILH

LARGE = 20_000  # points of a bit, or all but a fifth where there are fewer than 25,000
SMALL = 5_000
FEW_CENTERS = 300  # of kernels that are quick to encode
TREES = 200  # that `_SECONDS` is of
MANY_TREES = 400  # better on new items, too, at twice the time


@dataclass(frozen=True)
class Candidate:
    """A kind of model that may be tried.

    Attributes
    ----------
    name : str
    make : callable, returns the untrained model of so many bits
    seconds : callable, returns about what training so many bits takes one core
    grows : bool, whether bits can be added, so that what is trained is never trained again
    at_once : bool, whether all bits cost as much as one, so that all are trained, and fewer are the first of them
    parallel : bool, whether it is trained on all cores
    spare : bool, whether it is for time that others leave
    after : str, optional, the candidate that it refines and that is tried before it
    """

    name: str
    make: Callable[[int], Any]
    seconds: Callable[[int], float]
    grows: bool = False
    at_once: bool = False
    parallel: bool = False
    spare: bool = False
    after: str | None = None

    def more(self, have: int, want: int) -> float:
        """Return about the core seconds from so many bits to so many."""
        if self.at_once and have:
            return 0.0
        return self.seconds(want) - (self.seconds(have) if self.grows and have else 0.0)


def candidates(
    kind: str, n_points: int, n_features: int, *, n_classes: int, scaling: str, seed: int, n_jobs: int | None
) -> list[Candidate]:
    """Return what is worth trying on such data.

    Parameters
    ----------
    kind : {"labels", "sets", "pairs", "none"}, of supervision
    n_points, n_features : int, of the vectors that may be trained on
    n_classes : int, of labels
    scaling : {"columns", "whole"}, of methods that do not decide it themselves
    seed : int, random_state of all of them
    n_jobs : int, optional, workers

    Returns
    -------
    list of Candidate
    """
    data = _Data(n_points, n_features, scaling, {"random_state": seed}, n_jobs)
    starts = ("projection", "random") if kind in ("labels", "sets") else ("auto",)
    found = [data.ilh("linear", start=start) for start in starts]
    if kind != "none":
        found += [data.ilh("linear", large=True)]
        found += [data.ilh("kernel", n_centers=FEW_CENTERS)]
        for functions in ("kernel", "trees"):
            small = data.ilh(functions)
            found += [small, data.ilh(functions, large=True, after=small.name)]
        found += [data.ilh("trees", large=True, n_trees=MANY_TREES, after=found[-1].name)]
    found.append(data.method("ITQ", 0.0, 7e-10 * n_features))
    if kind in ("labels", "sets"):
        found += [data.method("CCAITQ", 0.0, 5e-10 * n_features), data.method("SDH", 7e-5, 5e-7)]
    if kind == "labels":
        per_class = {kind: _SECONDS[kind](1, n_features, 500) * n_classes for kind in ("kernel", "trees")}
        for functions, code in (("kernel", "scores"), ("kernel", "ecoc"), ("trees", "ecoc")):
            found += [data.method("ClassifierCode", per_class[functions], 0.0, hash_function=functions, code=code)]
        found += [data.method("FastHash", 0.0, 2e-6 * math.sqrt(n_features), n_train=SMALL)]
    if kind == "none":
        found += [data.method("BA", 1e-5, 2e-6), data.method("OrthogonalProjection", 0.0, 1e-9)]
    return found


@dataclass(frozen=True)
class _Data:
    n_points: int
    n_features: int
    scaling: str
    seed: dict[str, int]
    n_jobs: int | None

    def judging(self, n_bits: int) -> float:
        """Seconds that judging codes takes: points that choose are encoded and searched for."""
        return 0.05 + 1.5e-7 * n_bits * min(self.n_points // 6, 6_000) + DISTANCE * min(self.n_points // 6, 6_000) ** 2

    def axes(self, n_points: int) -> float:
        """Seconds that the principal directions of some points take."""
        return 2.5e-11 * n_points * self.n_features**2 + 1e-9 * self.n_features**3

    def ilh(self, functions: str, *, large: bool = False, after: str | None = None, **parameters: Any) -> Candidate:
        """Return ILH with such functions; bits of many points also differ by their start, if their points cannot."""
        small = min(SMALL, self.n_points // 2)
        n_train = min(LARGE, 4 * self.n_points // 5) if large else small
        own: dict[str, Any] = {"hash_function": functions, "n_jobs": self.n_jobs, **self.seed, **parameters}
        if large:
            own |= {"n_train": n_train, "diversity": "it"}
        name = f"ILH {functions}"
        name += f", {parameters['start']} start" if parameters.get("start", "auto") != "auto" else ""
        name += f", {parameters['n_centers']} centres" if "n_centers" in parameters else ""
        name += f", {parameters['n_trees']} trees a bit" if "n_trees" in parameters else ""
        name += f", {n_train:,} points a bit" if large else ""
        per_bit = _SECONDS[functions](n_train, self.n_features, own.get("n_centers", min(1_500, 3 * n_train // 10)))
        per_bit *= int(parameters.get("n_trees", TREES)) / TREES

        # Directions of starts are learnt once for all candidates, whichever comes first.
        beginning = 0.1 + 2e-7 * self.n_points * math.sqrt(self.n_features)
        beginning += 0.2 * self.axes(min(self.n_points, 10_000))

        def seconds(n_bits: int) -> float:
            return beginning + per_bit * n_bits + self.judging(n_bits)

        spare = "n_trees" in parameters
        how = {"grows": True, "parallel": True, "spare": spare}
        return Candidate(name, lambda n_bits: ILH(n_bits, **own), seconds, **how, after=after)

    def method(
        self, name: str, per_point: float, per_bit: float, n_train: int | None = None, **parameters: Any
    ) -> Candidate:
        """Return another method, which learns its bits together, and takes so many seconds per point, and bit."""
        kind = methods.get(name)
        n_train = min(n_train or 50_000, self.n_points)
        known = kind().get_params()
        more = {key: value for key, value in (("scaling", self.scaling), ("n_jobs", self.n_jobs)) if key in known}
        own = {"n_train": n_train, **self.seed, **more, **parameters}
        with_functions = "".join(f", {value}" for value in parameters.values() if isinstance(value, str))

        beginning = 0.1 + self.axes(n_train)

        def seconds(n_bits: int) -> float:
            return beginning + n_train * (per_point + per_bit * n_bits) + self.judging(n_bits)

        how = {"at_once": per_bit == 0.0, "parallel": "n_jobs" in known}
        return Candidate(name + with_functions, lambda n_bits: kind(n_bits, **own), seconds, after=None, **how)


DISTANCE = 6e-9  # seconds to count one
# Of one bit on one core: points, features, centres.
_SECONDS: dict[str, Callable[[int, int, int], float]] = {
    "linear": lambda n, d, _: 1.3e-8 * n * (d + 50),
    "kernel": lambda n, d, m: n * m * (6e-11 * d + 2.5e-8),
    "trees": lambda n, d, _: 2.2e-6 * n * math.sqrt(d),
}
