"""Scorers for scikit-learn's searches: what they give is precision@k without the query itself."""

import pickle

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ilhash import ILH, Mix, methods
from ilhash.evaluation import hamming_distances, precision_at_k, retrieval_scorer

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


class Codes:
    """A model that knows its codes."""

    def __init__(self, packed):
        self.packed = packed

    def transform(self, X):
        return self.packed


def by_hand(packed, relevant, k, queries):
    """Mean over queries of the expected share of relevant ones among the k nearest others."""
    values = []
    for query in queries:
        others = np.flatnonzero(np.arange(len(packed)) != query)
        distances = hamming_distances(packed[[query]], packed[others])[0]
        edge = np.sort(distances)[k - 1]
        before, at = distances < edge, distances == edge
        truth = relevant[query][others]
        places = (k - before.sum()) / at.sum()
        values.append((truth[before].sum() + truth[at].sum() * places) / k)
    return np.mean(values)


@pytest.mark.parametrize("k", [1, 7, 59])
def test_a_point_never_finds_itself(k):
    rng = np.random.default_rng(k)
    packed, y = rng.integers(0, 8, (60, 1), dtype=np.uint8), rng.integers(0, 3, 60)
    score = retrieval_scorer(k)(Codes(packed), None, y)
    assert score == pytest.approx(by_hand(packed, y[:, None] == y, k, range(60)), abs=1e-12)
    texts = np.array(["a", "b", "c"])[y]
    assert retrieval_scorer(k)(Codes(packed), None, texts.tolist()) == score
    column = pandas.Series(texts, index=np.arange(60)[::-1])
    assert retrieval_scorer(k)(Codes(packed), None, column) == score


def test_several_labels_and_points_without_any():
    rng = np.random.default_rng(0)
    packed, table = rng.integers(0, 8, (60, 1), dtype=np.uint8), rng.random((60, 4)) < 0.25
    assert (~table.any(axis=1)).sum() > 5
    wanted = by_hand(packed, (table.astype(int) @ table.T) > 0, 7, range(60))
    sets = [set(np.flatnonzero(row).tolist()) for row in table]
    for y in (table.astype(int), scipy.sparse.csr_array(table.astype(int)), sets):
        assert retrieval_scorer(7)(Codes(packed), None, y) == pytest.approx(wanted, abs=1e-12)


def test_unknown_labels_are_left_out():
    rng = np.random.default_rng(0)
    packed, y = rng.integers(0, 8, (60, 1), dtype=np.uint8), rng.integers(0, 3, 60).astype(float)
    y[::4] = np.nan
    known = ~np.isnan(y)
    scorer = retrieval_scorer(5)
    assert scorer(Codes(packed), None, y) == scorer(Codes(packed[known]), None, y[known])


def test_the_seed_draws_queries():
    rng = np.random.default_rng(0)
    model, y = Codes(rng.integers(0, 255, (300, 1), dtype=np.uint8)), rng.integers(0, 3, 300)
    drawn = {seed: retrieval_scorer(5, n_queries=20, seed=seed)(model, None, y) for seed in range(4)}
    assert len(set(drawn.values())) > 1
    assert retrieval_scorer(5, n_queries=20, seed=1)(model, None, y) == drawn[1]
    everybody = retrieval_scorer(5, n_queries=None)(model, None, y)
    assert everybody == retrieval_scorer(5, n_queries=300)(model, None, y)
    assert np.mean(list(drawn.values())) == pytest.approx(everybody, abs=0.1)
    assert retrieval_scorer(5, n_threads=2)(model, None, y) == everybody


def test_best_and_worst_orders_of_ties_stand_around_the_mean():
    rng = np.random.default_rng(0)
    model, y = Codes(rng.integers(0, 4, (50, 1), dtype=np.uint8)), rng.integers(0, 3, 50)
    worst, mean, best = (
        retrieval_scorer(5, ties=ties)(model, None, y) for ties in ("pessimistic", "expected", "optimistic")
    )
    assert worst < mean < best


def test_grid_search_finds_the_better_model(digits):
    X, y = digits
    grid = GridSearchCV(methods.ITQ(), {"n_bits": [2, 32]}, scoring=retrieval_scorer(k=10), cv=FOLDS).fit(X, y)
    assert grid.best_params_ == {"n_bits": 32}
    few, many = grid.cv_results_["mean_test_score"]
    assert few + 0.3 < many
    assert grid.score(X, y) == retrieval_scorer(k=10)(grid.best_estimator_, X, y)


def test_a_fold_is_scored_as_by_hand(digits):
    X, y = digits
    scores = cross_val_score(ILH(16, n_train=200), X, y, scoring=retrieval_scorer(5, n_queries=None), cv=FOLDS)
    for score, (train, held_out) in zip(scores, FOLDS.split(X, y), strict=True):
        codes = ILH(16, n_train=200).fit(X[train], y[train]).transform(X[held_out])
        truth = y[held_out]
        # Itself is at distance 0: with k + 1 places, without ties, it would be one hit more.
        relevant = truth[:, None] == truth
        assert score == pytest.approx(by_hand(codes, relevant, 5, range(len(truth))), abs=1e-12)
        assert score < precision_at_k(codes, truth, codes, truth, 5)


@pytest.mark.parametrize("name", methods.available())
def test_every_method_can_be_scored(name, digits):
    X, y = digits[0][:300], digits[1][:300]
    chosen = {"code": "one-hot"} if name == "ClassifierCode" else {}
    few = {"BRE": {"max_iter": 1}, "MLH": {"max_iter": 100}, "FastHash": {"n_estimators": 5}, "BA": {"max_iter": 1}}
    model = methods.get(name)(n_bits=10, **chosen, **few.get(name, {}))
    scores = cross_val_score(model, X, y, scoring=retrieval_scorer(5), cv=2, error_score="raise")
    assert (scores > 0.2).all()


def test_mixes_and_pipelines(digits):
    X, y = digits[0][:400], digits[1][:400]
    mix = Mix([ILH(8, n_train=100), methods.ITQ(8)])
    for model in (mix, make_pipeline(StandardScaler(), ILH(16, n_train=100))):
        scores = cross_val_score(model, X, y, scoring=retrieval_scorer(5), cv=2, error_score="raise")
        assert (scores > 0.5).all()
    grid = {"ilh__n_bits": [4, 16]}
    pipeline = make_pipeline(StandardScaler(), ILH(n_train=100))
    found = GridSearchCV(pipeline, grid, scoring=retrieval_scorer(5), cv=2, n_jobs=2).fit(X, y)
    assert found.best_params_ == {"ilh__n_bits": 16}


def test_scorers_travel():
    scorer = retrieval_scorer(3, n_queries=7, seed=2)
    assert pickle.loads(pickle.dumps(scorer)) == scorer  # noqa: S301


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"n_queries": 0}, "n_queries must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"ties": "lucky"}, "ties must be 'expected', 'optimistic' or 'pessimistic', got 'lucky'"),
        ({"n_threads": 0}, "n_threads must be a whole number from 1 on"),
    ],
)
def test_bad_parameters_are_refused_before_the_search(given, message):
    with pytest.raises(ValueError, match=message):
        retrieval_scorer(**given)


def test_bad_folds_get_a_sentence(digits):
    X, y = digits[0][:20], digits[1][:20]
    model = methods.ITQ(8).fit(X)
    with pytest.raises(ValueError, match="k must be at most the 19 other labelled points of the fold, got 20"):
        retrieval_scorer(20)(model, X, y)
    with pytest.raises(ValueError, match="y must hold labels, by which what is found is judged, got None"):
        retrieval_scorer(5)(model, X)
    with pytest.raises(ValueError, match="y must hold labels, got None or NaN in all 20"):
        retrieval_scorer(5)(model, X, [None] * 20)
    with pytest.raises(ValueError, match="y must hold one entry for each of the 20 points, got 19"):
        retrieval_scorer(5)(model, X, y[:19])
    with pytest.raises(TypeError, match=r"estimator must give packed codes \(uint8\).* got float"):
        retrieval_scorer(5)(StandardScaler().fit(X), X, y)
    with pytest.raises(TypeError, match=r"estimator must be a fitted model of ilhash .* got ITQ"):
        retrieval_scorer(5)(methods.ITQ, X, y)
    with pytest.raises(ValueError, match="k must be at most the 9 other"):
        cross_val_score(methods.ITQ(8), X, y, scoring=retrieval_scorer(10), cv=2, error_score="raise")
