"""Trained candidates, their codes of the points that choose, and what these are worth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes, models
from ilhash.ensemble import Mix
from ilhash.methods import UndefinedError
from ilhash.parallel import single_threaded_blas
from ilhash.storage import make_folder
from ilhash.tuning._candidates import DISTANCE, Candidate
from ilhash.tuning._measured import Measured
from ilhash.tuning._parts import Parts
from ilhash.vectors import take_rows

Bits = NDArray[np.bool_]
Values = NDArray[np.float64]

ENCODED = 2_000  # vectors that encoding is timed on, at most
LONG_ENOUGH = 0.05  # seconds that the timing of encoding takes
SHORT = 20.0  # core seconds that need no look at the clock, at most


@dataclass(frozen=True)
class Share:
    """The first bits of a candidate.

    Attributes
    ----------
    name : str, the candidate
    n_bits : int
    of : int, how many were trained together, of a method that learns its bits together; else ``n_bits``
    """

    name: str
    n_bits: int
    of: int


@dataclass(frozen=True, eq=False)
class Trial:
    """A trained model and what it is worth.

    Attributes
    ----------
    name : str, what it is
    model : trained model
    score : float, on the points that choose
    encode_us : float, microseconds to encode a vector on one thread
    seconds : float, that training took
    values : mapping of str to float64 array, of each query that chooses, by what is searched
    bits : mapping of str to bool array, of the points that choose
    recipe : tuple of Share, what its bits are of; empty where they were chosen one by one
    """

    name: str
    model: Any
    score: float
    encode_us: float
    seconds: float
    values: Mapping[str, Values]
    bits: Mapping[str, Bits] = field(repr=False)
    recipe: tuple[Share, ...] = ()

    @property
    def single(self) -> bool:
        """Whether all its bits are of one candidate."""
        return len(self.recipe) == 1

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return len(self.model.functions_)

    @property
    def n_bytes(self) -> int:
        """Bytes of a code."""
        return codes.bytes_per_code(self.n_bits)


@dataclass(eq=False)
class Bench:
    """Trains candidates and judges them; a folder keeps what was trained.

    Parameters
    ----------
    X : array or VectorSource, all vectors
    parts : Parts, what is trained on, and who chooses
    n_bits : int, of the code that is wanted
    n_threads : int, that judge
    folder : Path, optional
    short : float, core seconds, as expected, that are trained between two looks at the clock
    """

    X: Any
    parts: Parts
    n_bits: int
    n_threads: int
    folder: Path | None = None
    short: float = SHORT
    trials: list[Trial] = field(default_factory=list)
    models: dict[str, Any] = field(default_factory=dict)  # the longest of each candidate whose first bits will do
    taken: dict[str, float] = field(default_factory=dict)  # seconds of training it
    _vectors: dict[str, Any] = field(default_factory=dict)
    _known: dict[tuple[str, str], Bits] = field(default_factory=dict)  # bits of points, of what grows

    def try_candidate(
        self, candidate: Candidate, n_bits: int, stop: Callable[[], bool] = lambda: False
    ) -> Trial | None:
        """Train a candidate to so many bits, or fewer where it is told to stop; None where these data have none."""
        begin = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a candidate is worth is measured
                model = self._trained(candidate, n_bits, stop)
        except UndefinedError:
            return None
        took = time.perf_counter() - begin
        if candidate.grows:
            took = self.taken[candidate.name] = self.taken.get(candidate.name, 0.0) + took
        bits = {where: self._bits(candidate, model, where) for where in self.parts.choosing}
        encode_us = encode_microseconds(model, self.X)
        have = len(model.functions_)
        return self.keep(candidate.name, model, bits, encode_us, took, (Share(candidate.name, have, have),))

    def keep(
        self,
        name: str,
        model: Any,
        bits: Mapping[str, Bits],
        encode_us: float,
        seconds: float,
        recipe: tuple[Share, ...] = (),
    ) -> Trial:
        """Return the trial of bits, and keep it."""
        values = {where: self.values(where, own) for where, own in bits.items()}
        trial = Trial(name, model, self.score(values), encode_us, seconds, values, bits, recipe)
        self.trials.append(trial)
        return trial

    def values(self, where: str, bits: Bits) -> Values:
        """Return the value of each query that chooses."""
        return self.parts.choosing[where].of_codes(codes.pack(bits), bits.shape[1], self.n_threads)

    def score(self, values: Mapping[str, Values]) -> float:
        """Return what the values come to."""
        return float(sum(weight * values[where].mean() for where, weight in self.parts.weights.items()))

    @property
    def judging(self) -> float:
        """Core seconds that it takes to judge a code, as expected."""
        return sum(DISTANCE * len(one.queries) * len(one.base) for one in self.parts.choosing.values())

    def prefix(self, trial: Trial, n_bits: int) -> Trial:
        """Return the first bits of a trial of a candidate, as a trial that is not kept."""
        if n_bits == trial.n_bits:
            return trial
        share = n_bits / trial.n_bits
        return replace(
            trial,
            model=first_bits(trial.model, n_bits),
            encode_us=trial.encode_us * share,
            seconds=trial.seconds * share,
            bits={where: own[:, :n_bits] for where, own in trial.bits.items()},
            recipe=tuple(Share(one.name, n_bits, n_bits if trial.model.nested else one.of) for one in trial.recipe),
        )

    def on_everything(self, recipe: Sequence[tuple[Candidate, Share]], stop: Callable[[], bool]) -> Any | None:
        """Return a model trained on all points; None where it was told to stop, or where these data have none."""
        folder = None if self.folder is None else self.folder / "all"
        if folder is not None:
            make_folder(folder)
        parts = replace(self.parts, X=self.X, given=self.parts.everything)
        own = Bench(self.X, parts, self.n_bits, self.n_threads, folder, self.short)
        found = []
        for candidate, share in recipe:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = own._trained(candidate, share.of, stop)
            except UndefinedError:
                return None
            if len(model.functions_) < share.of or stop():
                return None
            found.append(first_bits(model, share.n_bits))
        return found[0] if len(found) == 1 else Mix.of(found)

    def report(self, model: Any, wanted: Collection[str] | None = None) -> dict[str, Measured]:
        """Return what the points that chose nothing say of a model, by what is searched."""
        retrievals = {where: one for where, one in self.parts.reporting.items() if wanted is None or where in wanted}
        rows = np.unique(np.concatenate([one.rows for one in retrievals.values()]))
        packed = model.transform(take_rows(self.X, rows))
        return {
            where: one.measured(packed[np.searchsorted(rows, one.rows)], len(model.functions_), self.n_threads)
            for where, one in retrievals.items()
        }

    def _bits(self, candidate: Candidate, model: Any, where: str) -> Bits:
        """Return the bits of the points that choose; those that there were before are known."""
        if where not in self._vectors:
            self._vectors[where] = take_rows(self.X, self.parts.choosing[where].rows)
        n_bits, known = len(model.functions_), self._known.get((candidate.name, where))
        if known is None or known.shape[1] >= n_bits:
            found = np.asarray(model.decision_function(self._vectors[where]) > 0)
        else:
            new = model[known.shape[1] :].decision_function(self._vectors[where]) > 0
            found = np.hstack([known, new])
        if candidate.grows:
            self._known[candidate.name, where] = found
        return found

    def _trained(self, candidate: Candidate, n_bits: int, stop: Callable[[], bool]) -> Any:
        if candidate.grows:
            return self._grown(candidate, n_bits, stop)
        if not candidate.at_once:
            return self._fitted(candidate, n_bits)
        known = self.models.get(candidate.name)
        if known is None or len(known.functions_) < n_bits:
            known = self.models[candidate.name] = self._fitted(candidate, max(n_bits, self.n_bits))
        return known[:n_bits]

    def _grown(self, candidate: Candidate, n_bits: int, stop: Callable[[], bool]) -> Any:
        given, X = self.parts.given, self.parts.X
        checkpoint = None if self.folder is None else self.folder / _slug(candidate.name)
        model = self.models.get(candidate.name)
        have = 0 if model is None else len(model.functions_)
        at_once = n_bits
        while at_once > self.n_threads and candidate.more(have, have + at_once) > self.short:
            at_once -= max(1, at_once // 4)
        if model is None:
            model = candidate.make(min(n_bits, at_once)).fit(X, **given, checkpoint=checkpoint, check=False)
        while len(model.functions_) < n_bits and not stop():
            model.add_bits(min(at_once, n_bits - len(model.functions_)), X, **given, checkpoint=checkpoint)
        self.models[candidate.name] = model
        return model[: min(n_bits, len(model.functions_))]

    def _fitted(self, candidate: Candidate, n_bits: int) -> Any:
        path = None if self.folder is None else self.folder / f"{_slug(candidate.name)}-{n_bits}"
        if path is not None and path.exists():
            return models.load(path)
        model = candidate.make(n_bits)
        with single_threaded_blas():
            model.fit(self.parts.X, self.parts.given.get("y"))
        if path is not None:
            model.save(path)
        return model


def first_bits(model: Any, n_bits: int) -> Any:
    """Return a model of the first bits; of methods that learn their bits together these are not the shorter model."""
    return model[:n_bits] if model.nested else model._with_bits(list(range(n_bits)))


def encode_microseconds(model: Any, X: Any) -> float:
    """Return what it takes to encode a vector on one thread, in microseconds of its own, not of a busy machine."""
    vectors = take_rows(X, np.arange(min(ENCODED, len(X))))
    n = min(ENCODED // 10, len(vectors))
    best = _seconds(model, vectors[:n])
    if best < LONG_ENOUGH:
        n = len(vectors)
        best = min(_seconds(model, vectors), _seconds(model, vectors))
    return best / n * 1e6


def _seconds(model: Any, vectors: Any) -> float:
    begin = time.process_time()
    for _block in model.encode_blocks(vectors, n_threads=1):
        pass
    return time.process_time() - begin


def _slug(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
