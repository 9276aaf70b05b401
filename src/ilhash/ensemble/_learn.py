"""New bits from a few judged pairs, as many as held-out judgements find them worth, and none where they would hurt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_is_fitted

from ilhash import _core
from ilhash._checks import check_callable, check_count, resolve_seed
from ilhash.affinity import Judged, affinity_from_pairs
from ilhash.diversity import seed_for
from ilhash.ensemble._generations import check_name
from ilhash.ensemble._ilh import ILH
from ilhash.ensemble._mix import join
from ilhash.hasher import Hasher
from ilhash.vectors import as_matrix, has_named_features, take_rows, without_columns

FOLDS = 5
FEWEST = 40  # judged pairs, and
FEWEST_OF_A_KIND = 5  # similar ones and dissimilar ones, below which nothing can be told from those held out
NUMBERS = (8, 16, 32, 64)  # of new bits that are tried
SHARE = 2  # new bits are at most one for so many old ones: where judgements say nothing the old notion decides
WAYS = (("within", 0.5), ("contrast", 0.5))  # how directions are made from judged pairs
OTHERS = 4_000  # points beside the judged ones that trial bits are trained on
ERRORS = 0.5  # standard errors by which new bits must be better, on judgements that did not choose them
HEAVIEST = 3.0  # a pair counts at most so many times the median

Rows = NDArray[np.int64]
Bits = NDArray[np.float32]  # -1 and +1


@dataclass(frozen=True, eq=False)
class Learning:
    """What came of judgements.

    Attributes
    ----------
    model : the model with new bits behind the others, or the one that was given where they are not better
    n_new : int, new bits
    before, after : float
        How often a judged similar pair has a smaller Hamming distance than a judged dissimilar one, ties counting half,
        with the model as it was and with new bits. By cross-validation: bits were learnt from other judgements, and
        their number was chosen by others, too. NaN where there were too few to tell.
    error : float, standard error of the difference
    n_pairs : int, judged pairs
    better : bool, whether there are new bits
    reason : str, in words
    table : list of dict, what was tried: view, n_new, score of each by all judgements held out
    """

    model: Any
    n_new: int
    before: float
    after: float
    error: float
    n_pairs: int
    reason: str
    table: list[dict[str, Any]]

    @property
    def better(self) -> bool:
        """Whether there are new bits."""
        return self.n_new > 0


def learn(
    model: Any,
    X: Any,
    pairs: Any,
    *,
    n_bits: int | None = None,
    name: str | None = "feedback",
    random_state: Any = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Learning:
    """Add bits that follow what people judged to be similar, if held-out judgements say that this helps.

    From a hundred judgements on, of which some may be wrong. The bits that there are stay as they are, so that where
    nobody has judged anything the old notion decides.

    Parameters
    ----------
    model : trained ILH, Mix or another method; it stays what it is
    X : array (n, D), vectors, those that the pairs name and others of the same kind
    pairs : as in fit, what ``Feedback.pairs(ids)`` gives: rows (i, j, weight), above 0 similar, below 0 dissimilar
    n_bits : int, optional
        New bits; they join only if they help. By default as many of 8, 16, 32 or 64 as held-out judgements find best,
        at most half as many as there are.
    name : str, optional, what to call the new bits; ``ilhash info`` shows it
    random_state : int, default 0, of the folds
    progress : callable, optional, called with (steps done, steps in all)

    Returns
    -------
    Learning, the model, how many bits are new, and what they are worth

    Examples
    --------
    >>> import ilhash
    >>> digits = ilhash.datasets.load("digits")
    >>> model = ilhash.ILH(n_bits=32).fit(digits.X, digits.y // 5)  # told apart: 0 to 4, 5 to 9
    >>> rows = np.random.default_rng(0).integers(0, len(digits.X), (600, 2))
    >>> near = rows[(digits.y[rows] // 5).std(axis=1) == 0]
    >>> same = np.where(digits.y[near[:, 0]] == digits.y[near[:, 1]], 1, -1)
    >>> learning = ilhash.learn(model, digits.X, np.column_stack([near, same]))
    >>> learning.better, learning.model.n_bits == 32 + learning.n_new, learning.after > learning.before
    (True, True, True)
    """
    X, judged, most, seed = _checked(model, X, pairs, n_bits, name, random_state, progress)
    kinds = [int(np.count_nonzero(sign * judged.weights > 0)) for sign in (1, -1)]
    numbers = [most] if n_bits is not None else [n for n in NUMBERS if n <= most] or [most]
    if sum(kinds) < FEWEST or kinds[0] < FEWEST_OF_A_KIND or 0 < kinds[1] < FEWEST_OF_A_KIND:
        needed = f"{FEWEST} or more are needed, {FEWEST_OF_A_KIND} of each kind"
        reason = (
            f"{kinds[0]} similar and {kinds[1]} dissimilar pairs are too few to tell whether new bits help: {needed}"
        )
        return Learning(model, 0, np.nan, np.nan, np.nan, len(judged.pairs), reason, [])
    trials = _Trials(model, X, judged, numbers, seed, progress)
    chosen, found = trials.choose()
    gain = found.after - found.before
    table = trials.table()
    tried = f"{len(judged.pairs):,} judged pairs, {FOLDS} times a fifth of them held out"
    if gain <= ERRORS * found.error:
        worth = f"{gain:+.3f}, with a standard error of {found.error:.3f}"
        reason = f"new bits do not surely help, they change how held-out pairs are ordered by {worth}; {tried}"
        return Learning(model, 0, found.before, found.after, found.error, len(judged.pairs), reason, table)
    view, n_new = chosen
    grown = _with_new_bits(model, n_new, X, judged.given(view), name)
    reason = f"they order held-out pairs better by {gain:+.3f} (view {view[0]!r}); {tried}"
    return Learning(grown, n_new, found.before, found.after, found.error, len(judged.pairs), reason, table)


def _checked(
    model: Any, X: Any, pairs: Any, n_bits: int | None, name: Any, random_state: Any, progress: Any
) -> tuple[Any, _Judgements, int, int]:
    if not isinstance(model, Hasher):
        raise TypeError(f"model must be a trained model of ilhash, got {type(model).__name__}")
    check_is_fitted(model)
    check_callable("progress", progress)
    check_name(name)
    X = without_columns(X, model.left_out_)
    X = X if has_named_features(X) and hasattr(model, "feature_names_in_") else as_matrix(X)
    affinity = affinity_from_pairs(pairs, len(X), similar_only=True)
    most = max(NUMBERS[0], len(model.functions_) // SHARE) if n_bits is None else check_count("n_bits", n_bits, 1, 1024)
    upper = scipy.sparse.triu(affinity.matrix, 1).tocoo()
    ends = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    size = np.abs(upper.data)
    weights = np.sign(upper.data) * np.minimum(size, HEAVIEST * np.median(size))
    return X, _Judgements(ends, weights), most, resolve_seed(random_state)


@dataclass(frozen=True, eq=False)
class _Judgements:
    """Pairs of rows (m, 2), and signed weights."""

    pairs: Rows
    weights: NDArray[np.float64]

    def given(self, view: tuple[str, float]) -> Judged:
        return Judged((self.pairs, self.weights), *view)

    def folds(self, seed: int) -> NDArray[np.int64]:
        """Deal pairs to folds, those that share points to the same one as far as that can be."""
        rows, places = np.unique(self.pairs, return_inverse=True)
        places = places.reshape(-1, 2)
        table = scipy.sparse.coo_array((np.ones(len(places)), places.T), shape=(len(rows), len(rows)))
        group = connected_components(table, directed=False)[1][places[:, 0]]
        if np.bincount(group).max() * FOLDS > 2 * len(places):  # most hang together: by the point with more pairs
            degree = np.bincount(places.ravel(), minlength=len(rows))
            more = degree[places[:, 0]] >= degree[places[:, 1]]
            hubs, leaves = np.where(more, places[:, 0], places[:, 1]), np.where(more, places[:, 1], places[:, 0])
            crowded = np.bincount(hubs)[hubs] * FOLDS > 2 * len(places)  # somebody judged many items for one query:
            group = np.where(crowded, len(rows) + leaves, hubs)  # those of this query are dealt one by one
        names, group = np.unique(group, return_inverse=True)
        order = _core.permuted(len(names), seed, 0, len(names))
        # One after the other to the fold that has fewest: groups may be of any size.
        sizes, fold, counts = np.bincount(group), np.empty(len(names), np.int64), np.zeros(FOLDS)
        for name in order[np.argsort(-sizes[order], kind="stable")]:
            fold[name] = int(np.argmin(counts))
            counts[fold[name]] += sizes[name]
        return fold[group]


@dataclass(frozen=True)
class _Found:
    """Scores by judgements that chose nothing."""

    before: float
    after: float
    error: float


class _Trials:
    """Bits of every fold and view, judged by the fold that they were not learnt from.

    Trial bits are trained on the judged points and a sample of others; the first of them are those of a smaller number.
    """

    def __init__(self, model: Any, X: Any, judged: _Judgements, numbers: list[int], seed: int, progress: Any) -> None:
        rows = np.unique(judged.pairs)
        others = np.setdiff1d(_core.permuted(len(X), seed_for(seed, "feedback"), 0, min(len(X), OTHERS)), rows)
        self._sample = take_rows(X, np.concatenate([rows, np.sort(others)]))
        self._judged = _Judgements(np.searchsorted(rows, judged.pairs), judged.weights)
        self._n_rows, self._seed, self._numbers = len(rows), seed, numbers
        self._old = _signs(model, self._sample[: self._n_rows])
        self._folds = self._judged.folds(seed_for(seed, "feedback", 1))
        self.options = [(view, n) for view in WAYS for n in numbers]
        self._measure(progress)

    def _measure(self, progress: Any) -> None:
        """Fill in, for each option and pair, the share of opposite pairs of its fold that it is rightly ordered to."""
        m = len(self._judged.pairs)
        self._random = self._random_pairs() if not (self._judged.weights < 0).any() else None
        self._before = np.zeros(m)
        self._after = np.zeros((len(self.options), m))
        for done, (fold, view) in enumerate(self._steps()):
            held = np.flatnonzero(self._folds == fold)
            new = self._new_bits(fold, view)
            old = self._distances(self._old, held)
            self._before[held] = _placements(old, self._signs_of(held))[: len(held)]
            for number, option in enumerate(self.options):
                if option[0] == view:
                    both = old + self._distances(new[:, : option[1]], held)
                    self._after[number, held] = _placements(both, self._signs_of(held))[: len(held)]
            if progress is not None:
                progress(done + 1, FOLDS * len(WAYS))

    def _steps(self) -> Iterator[tuple[int, tuple[str, float]]]:
        return ((fold, view) for fold in range(FOLDS) for view in WAYS)

    def _random_pairs(self) -> Rows:
        """Draw pairs of judged points, which stand for dissimilar ones where nobody named any."""
        rng = np.random.default_rng(self._seed)
        drawn = rng.integers(0, self._n_rows, (len(self._judged.pairs), 2))
        return np.asarray(drawn[drawn[:, 0] != drawn[:, 1]])

    def _new_bits(self, fold: int, view: tuple[str, float]) -> Bits:
        known = np.flatnonzero(self._folds != fold)
        some = _Judgements(self._judged.pairs[known], self._judged.weights[known])
        part = ILH(n_bits=max(self._numbers), random_state=seed_for(self._seed, "feedback", 2) % 2**31)
        part.fit(self._sample, pairs=some.given(view), check=False)
        return _signs(part, self._sample[: self._n_rows])

    def _pairs_of(self, held: Rows) -> Rows:
        own = self._judged.pairs[held]
        return own if self._random is None else np.concatenate([own, self._random])

    def _signs_of(self, held: Rows) -> NDArray[np.float64]:
        own = np.sign(self._judged.weights[held])
        return own if self._random is None else np.append(own, np.full(len(self._random), -1.0))

    def _distances(self, bits: Bits, held: Rows) -> NDArray[np.float64]:
        pairs = self._pairs_of(held)
        agreement = np.einsum("ij,ij->i", bits[pairs[:, 0]], bits[pairs[:, 1]], dtype=np.float64)
        return np.asarray((bits.shape[1] - agreement) / 2.0)

    # -------------------------------------------------------------------------------------------- choosing

    def choose(self) -> tuple[tuple[tuple[str, float], int], _Found]:
        """Return the option that all judgements find best, and what choosing so is worth.

        The latter by every fold in turn, with the option that the other folds find best.
        """
        best = int(np.argmax([self._score(after) for after in self._after]))
        honest = np.empty(len(self._folds))
        for fold in range(FOLDS):
            held = self._folds == fold
            others = [self._score(after, ~held) for after in self._after]
            honest[held] = self._after[int(np.argmax(others)), held]
        before, after = self._score(self._before), self._score(honest)
        return self.options[best], _Found(before, after, self._error(honest - self._before))

    def _score(self, placements: NDArray[np.float64], some: Any = slice(None)) -> float:
        signs = self._judged.weights[some] > 0
        kinds = [placements[some][signs == kind] for kind in (True, False) if (signs == kind).any()]
        return float(np.mean([one.mean() for one in kinds]))

    def _error(self, gains: NDArray[np.float64]) -> float:
        signs = self._judged.weights > 0
        kinds = [gains[signs == kind] for kind in (True, False) if (signs == kind).any()]
        return float(np.sqrt(sum(one.var() / len(one) for one in kinds)))  # both kinds measure the same difference

    def table(self) -> list[dict[str, Any]]:
        """Return the score of every option."""
        rows: list[dict[str, Any]] = [{"view": None, "n_new": 0, "score": self._score(self._before)}]
        for (view, n), after in zip(self.options, self._after, strict=True):
            rows.append({"view": view[0], "n_new": n, "score": self._score(after)})
        return rows


def _placements(distances: NDArray[np.float64], signs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each pair, the share of pairs of the other sign that are on its right side, ties counting half."""
    out = np.full(len(distances), 0.5)
    similar, others = np.sort(distances[signs > 0]), np.sort(distances[signs < 0])
    if len(similar) and len(others):
        sides = [np.searchsorted(others, distances[signs > 0], side) for side in ("left", "right")]
        out[signs > 0] = 1.0 - (sides[0] + sides[1]) / (2.0 * len(others))
        sides = [np.searchsorted(similar, distances[signs < 0], side) for side in ("left", "right")]
        out[signs < 0] = (sides[0] + sides[1]) / (2.0 * len(similar))
    return out


def _signs(model: Any, X: Any) -> Bits:
    return np.where(model.decision_function(X) > 0, np.float32(1.0), np.float32(-1.0))


def _with_new_bits(model: Any, n: int, X: Any, pairs: Judged, name: str | None) -> Any:
    """Return a copy of the model with n more bits."""
    plain = {"start": "auto", "hash_function": "linear", "mac": False, "objective": "laplacian"}
    if isinstance(model, ILH):
        grown, own = model[:], {key: model.get_params(deep=False)[key] for key in plain}
        return grown.set_params(**plain).extend(n, X, pairs=pairs, name=name, check=False).set_params(**own)
    part = ILH(n_bits=n, random_state=getattr(model, "seed_", 0)).fit(X, pairs=pairs, check=False)
    part.generation_ = replace(part.generation_, name=check_name(name))
    return join(model, part)
