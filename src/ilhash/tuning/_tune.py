"""The best model for so many bytes, with the reason."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from ilhash._checks import (
    check_callable,
    check_choice,
    check_count,
    check_fraction,
    check_jobs,
    check_positive,
    resolve_seed,
)
from ilhash._parameters import MOST_BITS
from ilhash.affinity import (
    Labels,
    LabelSets,
    SparseAffinity,
    affinity_from_matrix,
    affinity_from_pairs,
    supervision_from_labels,
)
from ilhash.cards import Measured as OnCard
from ilhash.ensemble import Mix
from ilhash.functions import scaling_for
from ilhash.starts import remembering
from ilhash.storage import Sealed, make_folder
from ilhash.tuning._candidates import Candidate, candidates
from ilhash.tuning._course import Budget, Course, Now
from ilhash.tuning._measured import Measured
from ilhash.tuning._mixes import try_best_bits, try_exact_shares, try_mixes
from ilhash.tuning._parts import parts_of
from ilhash.tuning._trials import Bench, Trial, first_bits
from ilhash.vectors import (
    as_matrix,
    fingerprint,
    gather,
    has_named_features,
    named_columns,
    origin_of,
    take_rows,
)

SAMPLE = 1_000  # rows that say how features are scaled
LATEST = 0.98  # share of the time by which training on all points must be done
_ABOUT = Sealed("tuning.json", "a search for the best model", 1, most=1 << 20)


@dataclass(frozen=True)
class Estimate:
    """What a model is worth, on points that chose nothing.

    Attributes
    ----------
    name : str, what it is
    n_bits, n_bytes : int, of a code
    value, error : float, precision at k (of pairs, the share that is found), and its standard error
    """

    name: str
    n_bits: int
    n_bytes: int
    value: float
    error: float


@dataclass(frozen=True)
class Tried:
    """A model that was tried.

    Attributes
    ----------
    name : str, what it is
    n_bits, n_bytes : int, of a code
    score : float, on the points that choose: of the best one higher than it will be on others
    encode_us : float, microseconds to encode a vector on one thread
    seconds : float, that training took
    front : bool, whether no other is as good with fewer bytes or less encoding
    """

    name: str
    n_bits: int
    n_bytes: int
    score: float
    encode_us: float
    seconds: float
    front: bool = False


@dataclass(frozen=True, eq=False)
class Tuning:
    """What :func:`tune` found.

    Attributes
    ----------
    model : trained model, the best
    name : str, what it is
    n_bits, n_bytes : int, of a code
    k : int, nearest items that were asked for
    measure : str, what the numbers are
    reports : dict of str to Estimate
        By what is searched, on points that chose nothing: "new" items, which training did not see, "seen" ones, and
        "unseen classes" where these count.
    judged_by : str, the report that corresponds to what chose
    vectors : float, optional, the same among new items by the vectors themselves
    half, twice : Estimate, optional, the best with half of the bytes, and the same recipe with twice as many
    tried : list of Tried, best first
    left_out : dict of str to str, what was not tried to the end, and why
    reason : str, why this model, in sentences
    refitted : bool, whether the model was trained on all points in the end, for which there was time; the numbers are
        those of the same bits trained without the points held out
    complete : bool, whether all that was planned was tried; False: the clock came first
    seconds : float, that it took
    """

    model: Any
    name: str
    n_bits: int
    n_bytes: int
    k: int
    measure: str
    reports: dict[str, Estimate]
    judged_by: str
    vectors: float | None
    half: Estimate | None
    twice: Estimate | None
    tried: list[Tried]
    left_out: dict[str, str]
    reason: str
    refitted: bool
    complete: bool
    seconds: float

    def results(self) -> list[OnCard]:
        """Return what the model is worth on points that chose nothing, as it remembers it.

        Returns
        -------
        list of Measured
        """
        among = {"new": "new items", "seen": "items of training"}
        return [
            OnCard(among.get(name, name), self.measure, one.value, one.error, "tune")
            for name, one in self.reports.items()
            if np.isfinite(one.value)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and dictionaries, for JSON.

        Returns
        -------
        dict, all but the model
        """
        return asdict(replace(self, model=None))


def tune(
    X: Any,
    y: Any = None,
    *,
    n_bytes: int = 16,
    pairs: Any = None,
    affinity: Any = None,
    ids: str | None = None,
    k: int = 10,
    minutes: float = 5.0,
    base: str = "new",
    unseen: float = 0.0,
    max_encode_us: float | None = None,
    unlabeled: Any = -1,
    random_state: Any = 0,
    n_jobs: int | None = -1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[Now], None] | None = None,
) -> Tuning:
    """Find the best model for so many bytes per item: functions, training sets, starts, methods, mixes, single bits.

    Points are held out: some choose, others report what the choice is worth. What is tried is planned from expected
    seconds, so that the same call gives the same model on any machine that is not much slower.

    Parameters
    ----------
    X : array (n, D), also a memory map or what ilhash.open_vectors gives, which is read by rows; or a frame
    y : array (n,) or (n, L), list of sets, or str, optional
        Labels, or the name of their column, as in ``ILH.fit``; nothing: near vectors are similar.
    n_bytes : int, default 16, of a code, at most
    pairs, affinity : as in ``ILH.fit``, optional, instead of y
    ids : str, optional, the column of a frame that holds ids, as in ``ILH.fit``
    k : int, default 10
        Nearest items that are looked at, among as many as X has; held-out points are fewer, and fewer of them count.
    minutes : float, default 5, that it may take
    base : {"new", "seen"}, default "new"
        Whether choosing points search new items, which no model was trained on, or training points.
    unseen : float, default 0, what classes that training does not see count when choosing, from 0 to 1
    max_encode_us : float, optional, microseconds that encoding a vector on one thread may take
    unlabeled : label or None, default -1, the label that means unknown
    random_state : int, RandomState, Generator or None, default 0
    n_jobs : int, default -1, workers, as in joblib
    checkpoint : path-like, optional, a directory for what is trained; a search that was killed goes on from there
    progress : callable, optional, called with Now before each step

    Returns
    -------
    Tuning, the model, what it is worth, what else was tried, and why it was chosen

    Examples
    --------
    >>> from ilhash import datasets
    >>> digits = datasets.load("digits")
    >>> found = tune(digits.X, digits.y, n_bytes=2, minutes=0.02)
    >>> found.model.transform(digits.X).shape[1] <= 2, found.reports["new"].value > 0.5
    (True, True)
    """
    begin = time.perf_counter()
    n_bits = 8 * _checked(n_bytes, minutes, base, unseen, max_encode_us, n_jobs, progress)
    X, y, names = named_columns(X, y, ids)
    matrix = as_matrix(X)
    X = X if has_named_features(X) else matrix  # a frame stays one: its columns have names
    supervision = _supervision(X, y, pairs, affinity, unlabeled)
    if check_count("k", k) >= len(X):
        raise ValueError(f"k must be below the {len(X)} items that are searched, got {k}")
    seed, workers = resolve_seed(random_state), max(1, joblib.effective_n_jobs(n_jobs))
    parts = parts_of(X, supervision, k, base=base, unseen=float(unseen), seed=seed)
    about = {"n_bytes": n_bytes, "k": k, "base": base, "unseen": unseen, "seed": seed, "minutes": minutes}
    folder = _folder(checkpoint, {**about, "workers": workers, "data": _fingerprint(matrix, supervision)})
    budget = Budget(60.0 * minutes, workers)
    bench = Bench(X, parts, n_bits, workers, folder)
    course = Course(bench, budget, n_bits, max_encode_us, progress or (lambda now: None))
    known, on_all = (_candidates(vectors, supervision, seed, n_jobs) for vectors in (parts.X, X))
    with remembering():
        course.run(known)
        try_mixes(course, known)
        try_exact_shares(course, known)
        try_best_bits(course)
        found = _Conclusion(course, known, on_all, k, begin).tuning()
    found.model.leave_out(names)
    found.model.remember(found)
    return found


def _checked(n_bytes: Any, minutes: Any, base: Any, unseen: Any, max_encode_us: Any, n_jobs: Any, progress: Any) -> int:
    """Return the bytes, once all else has been looked at."""
    check_jobs("n_jobs", n_jobs)
    check_callable("progress", progress)
    check_positive("minutes", minutes)
    check_choice("base", base, ("new", "seen"))
    check_fraction("unseen", unseen, "a weight")
    if max_encode_us is not None:
        check_positive("max_encode_us", max_encode_us)
    return check_count("n_bytes", n_bytes, 1, MOST_BITS // 8)


def _supervision(X: NDArray[Any], y: Any, pairs: Any, affinity: Any, unlabeled: Any) -> Any:
    given = [name for name, value in (("y", y), ("affinity", affinity), ("pairs", pairs)) if value is not None]
    if len(given) > 1:
        raise ValueError(f"supervision must be one of y, affinity and pairs, got {' and '.join(given)}")
    if y is not None:
        return supervision_from_labels(y, len(X), unlabeled)
    if affinity is not None:
        return affinity_from_matrix(affinity, len(X), similar_only=True)
    return None if pairs is None else affinity_from_pairs(pairs, len(X), similar_only=True)


def _fingerprint(X: Any, supervision: Any) -> str:
    return f"{fingerprint(X)}-{'' if supervision is None else supervision.digest()}"


def _folder(path: str | os.PathLike[str] | None, about: dict[str, Any]) -> Path | None:
    """Return the folder of what is trained, begun or gone on with."""
    if path is None:
        return None
    folder = Path(path)
    if not _ABOUT.begun(folder, "checkpoint"):
        make_folder(folder)
        _ABOUT.write(folder, about)
        return folder
    there = _ABOUT.read(folder)
    other = [name for name, value in about.items() if there.get(name) != value]
    if other:
        name = other[0]
        raise ValueError(
            f"checkpoint {folder} must be of the same search, got another's: {name}={str(there.get(name))[:40]} there "
            f"and {str(about[name])[:40]} here"
        )
    return folder


def _candidates(vectors: Any, supervision: Any, seed: int, n_jobs: int | None) -> list[Candidate]:
    kinds = {Labels: "labels", LabelSets: "sets", SparseAffinity: "pairs", type(None): "none"}
    rows = np.linspace(0, len(vectors) - 1, min(SAMPLE, len(vectors))).astype(np.int64)
    sample = as_matrix(take_rows(vectors, rows))
    everything = np.arange(len(sample))
    scaling = scaling_for(gather(sample, everything, origin_of(sample, everything)))
    n_classes = len(supervision.names) if isinstance(supervision, Labels) else 0
    kind, (n_points, n_features) = kinds[type(supervision)], vectors.shape
    return candidates(kind, n_points, n_features, n_classes=n_classes, scaling=scaling, seed=seed, n_jobs=n_jobs)


@dataclass(eq=False)
class _Conclusion:
    """Chooses, asks the points that chose nothing, and trains the choice on all points where there is time."""

    course: Course
    known: list[Candidate]
    on_all: list[Candidate]  # the same, of all points
    k: int
    begin: float

    def tuning(self) -> Tuning:
        bench = self.course.bench
        allowed = [trial for trial in bench.trials if self.course.allowed(trial)]
        if not allowed:
            quickest = min(trial.encode_us for trial in bench.trials)
            raise ValueError(
                f"max_encode_us must be at least what the quickest code takes, got {self.course.max_encode_us:g} where "
                f"that took {quickest:.1f}"
            )
        best = max(allowed, key=lambda trial: (trial.score, -trial.n_bits))
        self.course.say(f"{best.name}: the points that report")
        reports = self._reports(best)
        half, refitted, twice = self._half(best, allowed), self._refitted(best), self._twice(best)
        retrieval = bench.parts.reporting.get("new")
        return Tuning(
            model=refitted or best.model,
            name=best.name,
            n_bits=best.n_bits,
            n_bytes=best.n_bytes,
            k=self.k,
            measure=self._measure(self._judged_by),
            reports=reports,
            judged_by=self._judged_by,
            vectors=None if retrieval is None else retrieval.of_vectors(bench.X),
            half=half,
            twice=twice,
            tried=_tried(allowed),
            left_out=self.course.left_out,
            reason=self._reason(best, allowed, refitted is not None),
            refitted=refitted is not None,
            complete=self.course.complete,
            seconds=time.perf_counter() - self.begin,
        )

    def _reports(self, trial: Trial, wanted: Collection[str] | None = None) -> dict[str, Estimate]:
        reports = self.course.bench.report(trial.model, wanted)
        return {where: _estimate(trial, measured) for where, measured in reports.items()}

    def _told(self, trial: Trial) -> Estimate:
        return self._reports(trial, (self._judged_by,))[self._judged_by]

    def _refitted(self, best: Trial) -> Any | None:
        """Return the model trained on all points; None where there is no time, or its bits were chosen one by one."""
        on_all = {one.name: whole for one, whole in zip(self.known, self.on_all, strict=True)}
        recipe = [(on_all[share.name], share) for share in best.recipe]
        needed = sum(self.course.expected(one, 0, share.of) for one, share in recipe)
        if not recipe or not self.course.has_time(needed):
            return None
        self.course.say(f"{best.name}: on all points")
        found = self.course.bench.on_everything(recipe, lambda: self.course.budget.over(LATEST))
        self.course.complete = self.course.complete and found is not None
        return found

    def _half(self, best: Trial, allowed: list[Trial]) -> Estimate | None:
        """Return what the best with at most half of the bytes is worth."""
        shorter = [trial for trial in allowed if 2 * trial.n_bytes <= best.n_bytes]
        if not shorter:
            return None
        return self._told(max(shorter, key=lambda trial: trial.score))

    def _twice(self, best: Trial) -> Estimate | None:
        """Return what the same recipe with twice the bits is worth, where the time suffices."""
        known = {candidate.name: candidate for candidate in self.known}
        parts = [(known[share.name], share) for share in best.recipe]
        complete = self.course.complete
        needed = sum(self.course.expected(one, share.of, 2 * share.of) for one, share in parts)
        in_time = parts and self.course.has_time(needed)
        self.course.complete = complete  # the model is the same with and without
        if not in_time:
            return None
        self.course.say(f"{best.name}: twice the bits")
        longer = [(self.course.bench.try_candidate(one, 2 * share.of), share) for one, share in parts]
        models = [first_bits(trial.model, 2 * share.n_bits) for trial, share in longer if trial is not None]
        if len(models) < len(parts):
            return None
        model = models[0] if len(models) == 1 else Mix.of(models)
        return self._told(replace(best, model=model))

    @property
    def _judged_by(self) -> str:
        weights = self.course.bench.parts.weights
        return max(weights, key=lambda name: weights[name])

    def _measure(self, where: str) -> str:
        parts = self.course.bench.parts
        retrieval = parts.reporting[where]
        what = "share of held-out pairs found" if retrieval.finds else "precision"
        among = f"the {retrieval.k:,} nearest of {len(retrieval.base):,}"
        return f"{what}@{self.k} of {parts.n_items:,} items, judged by {among}; held out: {parts.held}"

    def _reason(self, best: Trial, allowed: list[Trial], refitted: bool) -> str:
        ranked = sorted(allowed, key=lambda trial: -trial.score)
        others = [one for one in ranked if one.single and one.name != best.name and one.n_bytes == best.n_bytes]
        single = others[0] if others else None
        text = f"{best.name} was best on the points that choose, {best.score:.3f}"
        if single is not None:
            text += f"; next of single kinds {single.name}, {single.score:.3f}"
        itq = next((one for one in others if one.name == "ITQ"), None)
        if itq is not None and itq is not single:
            text += f"; ITQ, which knows no labels, {itq.score:.3f}"
        text += f". {len(allowed)} models were tried"
        if self.course.left_out:
            text += f", {len(self.course.left_out)} kinds not to the end"
        if refitted:
            text += "; in the end it was trained on all points, of which the numbers know nothing"
        if not self.course.complete:
            text += "; the clock came before the end of the plan, so another run may choose otherwise"
        return text + "."


def _estimate(trial: Trial, measured: Measured) -> Estimate:
    n_bits = len(trial.model.functions_)
    return Estimate(trial.name, n_bits, -(-n_bits // 8), measured.mean(), measured.error)


def _tried(trials: list[Trial]) -> list[Tried]:
    """Return what was tried, best first, with those that no other beats in all of bytes, encoding and score."""
    rows = [Tried(t.name, t.n_bits, t.n_bytes, t.score, t.encode_us, t.seconds) for t in trials]

    def beaten(row: Tried) -> bool:
        return any(
            other is not row
            and (other.score, -other.n_bytes, -other.encode_us) >= (row.score, -row.n_bytes, -row.encode_us)
            and other.score >= row.score
            and other.n_bytes <= row.n_bytes
            and other.encode_us <= row.encode_us
            for other in rows
        )

    return sorted((replace(row, front=not beaten(row)) for row in rows), key=lambda row: (-row.score, row.n_bytes))
