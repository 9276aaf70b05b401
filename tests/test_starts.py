"""Starts that follow the data: directions, their choice, and the contract that a bit is its own."""

import json

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import ilhash
from ilhash import ILH, HoldOut
from ilhash.affinity import (
    EuclideanNeighbors,
    SharedLabels,
    SimilarPairs,
    affinity_from_pairs,
    joined_classes,
    supervision_from_labels,
)
from ilhash.ensemble._ways import Mixture
from ilhash.starts import (
    WAYS,
    Contrast,
    Moments,
    Shape,
    contrast_slope,
    directions,
    judge_of_pairs,
    learn_projection,
    sides_of_classes,
    sides_of_points,
)
from ilhash.storage import DamagedFileError, Record

SMALL = {"n_similar": 10, "n_dissimilar": 10}


@pytest.fixture(scope="module")
def classes():
    """Sixty classes of ten points, told apart in 6 of 12 directions, the others of which vary more."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 10)
    X = rng.normal(size=(600, 12)) * np.r_[np.full(6, 0.3), np.full(6, 4.0)]
    X[:, :6] += rng.normal(size=(60, 6))[y]
    order = rng.permutation(600)
    return X[order].astype(np.float32), y[order]


def pairs_of(y, seed=0, n=4000):
    ij = np.random.default_rng(seed).integers(0, len(y), (n, 2))
    ij = np.unique(np.sort(ij[ij[:, 0] != ij[:, 1]], axis=1), axis=0)
    same = np.flatnonzero(y[ij[:, 0]] == y[ij[:, 1]])
    near = np.stack([np.flatnonzero(y == c)[[0, 1]] for c in np.unique(y)])
    near = np.concatenate([near, [np.flatnonzero(y == c)[[k, k + 1]] for c in np.unique(y) for k in range(1, 5)]])
    ij = np.unique(np.concatenate([ij[same], near, ij[:300]]), axis=0)
    return ij, np.where(y[ij[:, 0]] == y[ij[:, 1]], 1.0, -1.0)


def supervisions(y):
    few = np.where(np.arange(len(y)) % 3 == 0, y % 20, -1)
    sets = [{int(c), f"kind {c % 9}"} if c % 7 else set() for c in y]
    i, j = pairs_of(y)[0].T
    w = pairs_of(y)[1]
    graph = scipy.sparse.coo_array((w, (i, j)), shape=(len(y), len(y))).tocsr()
    return {
        "many classes": {"y": y},
        "few labels": {"y": few},
        "one large class": {"y": np.where(y < 50, 0, y)},
        "sets": {"y": sets},
        "withheld": {"y": HoldOut(50).labels(y % 20)},
        "pairs": {"pairs": pairs_of(y)},
        "similar pairs": {"pairs": (pairs_of(y)[0][w > 0], w[w > 0])},
        "graph": {"affinity": graph + graph.T},
        "none": {},
    }


KINDS = ["many classes", "few labels", "one large class", "sets", "withheld", "pairs", "similar pairs", "graph", "none"]


def same_bits(a, b):
    assert len(a.functions_) == len(b.functions_)
    for f, g in zip(a.functions_, b.functions_, strict=True):
        assert f.weights.tobytes() == g.weights.tobytes()
        assert np.float32(f.bias).tobytes() == np.float32(g.bias).tobytes()


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 50), n=st.integers(1, 14), more=st.integers(1, 12))
@settings(max_examples=3, deadline=None)
def test_a_bit_depends_on_seed_number_and_data_alone(kind, classes, tmp_path_factory, seed, n, more):
    X, y = classes
    given_ = supervisions(y)[kind]
    how = {"random_state": seed, "start": "projection", **SMALL}
    whole = ILH(n_bits=n + more, **how).fit(X, **given_)
    same_bits(whole[:n], ILH(n_bits=n, **how).fit(X, **given_))
    same_bits(whole, ILH(n_bits=n, **how).fit(X, **given_).add_bits(more, X, **given_))
    same_bits(whole, ILH(n_bits=n + more, n_jobs=2, **how).fit(X, **given_))
    folder = tmp_path_factory.mktemp("bits")
    ILH(n_bits=n, **how).fit(X, **given_, checkpoint=folder)
    same_bits(whole, ILH(n_bits=n + more, **how).fit(X, **given_, checkpoint=folder))


def test_the_start_travels_with_the_model(classes, tmp_path):
    X, y = classes
    model = ILH(n_bits=4, **SMALL).fit(X, y)
    model.save(tmp_path / "m")
    loaded = ilhash.load(tmp_path / "m")
    assert loaded.start_ == model.start_
    assert loaded.start == "auto"
    same_bits(loaded.add_bits(3, X, y), ILH(n_bits=7, **SMALL).fit(X, y))


@pytest.mark.parametrize(
    ("kind", "ways"),
    [
        ("many classes", WAYS),
        ("few labels", WAYS),
        ("one large class", WAYS),
        ("sets", ("hyperplane", "graph")),
        ("pairs", ("hyperplane", "graph")),
        ("similar pairs", ("hyperplane",)),
        ("none", ("hyperplane",)),
    ],
)
def test_the_rule(classes, kind, ways):
    X, y = classes
    model = ILH(n_bits=2, **SMALL).fit(X, **supervisions(y)[kind])
    about = model.start_
    assert about["kind"] == "projection"
    scores = {name[3:]: score for name, score in about.items() if name.startswith("by ")}
    tried = {name: score for name, score in scores.items() if " and " not in name}
    assert tuple(tried) in ((), ways)  # a single way, or too few points to hold any out, is not tried
    assert about["ways"][0] in ways
    if tried and len(about["ways"]) == 1:
        assert about["ways"][0] in ("hyperplane", max(tried, key=tried.get))
    assert [report.way for report in model.bits_] == [about["ways"][bit % len(about["ways"])] for bit in range(2)]
    assert {report.start for report in model.bits_} == {"projection"}


@pytest.mark.parametrize("way", WAYS)
def test_each_way(classes, way, monkeypatch):
    """A hyperplane is the function itself; classes lie whole on one side; a graph moves what it has reason to."""
    X, y = classes
    monkeypatch.setattr("ilhash.ensemble._ilh.choose_way", lambda ways, *others: (Mixture((way,)), {}))
    model = ILH(n_bits=8, start="projection", n_train=600, sampling="random", **SMALL).fit(X, y)
    assert {report.way for report in model.bits_} == {way}
    if way == "hyperplane":
        assert {report.accuracy for report in model.bits_} == {1.0}
        margins = model.decision_function(X)
        assert np.abs(margins).mean(axis=0) == pytest.approx(np.ones(8), rel=1e-4)
        assert (margins > 0).mean(axis=0) == pytest.approx(np.full(8, 0.5), abs=0.01)
    else:
        assert all(0.0 < report.moved < 0.5 for report in model.bits_)


def test_a_hyperplane_is_fitted_where_a_kind_of_function_has_none(classes):
    X, _ = classes
    model = ILH(n_bits=4, start="projection", hash_function="kernel", n_centers=50, **SMALL).fit(X)
    assert {report.way for report in model.bits_} == {"hyperplane"}
    assert 0.7 < min(report.accuracy for report in model.bits_) < 1.0  # rounding decides whether one of them has 1.0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_sides_of_classes_are_those_of_their_means_and_as_balanced_as_can_be(seed):
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(4, 60)), int(rng.integers(2, 9))
    own = rng.integers(-1, n_classes, n).astype(np.int32)
    along = rng.normal(size=n).astype(np.float32)
    sides = sides_of_classes(along, own)
    names = np.unique(own[own >= 0])
    if len(names) < 2:
        assert np.array_equal(sides, sides_of_points(along))
        return
    means = {c: along[own == c].astype(np.float64).mean() for c in names}
    side = {c: set(sides[own == c].tolist()) for c in names}
    assert all(len(found) == 1 for found in side.values())
    above, below = ([means[c] for c in names if side[c] == {sign}] for sign in (1, -1))
    assert min(above) > max(below)
    ordered = sorted(names, key=means.get)
    known = np.count_nonzero(own >= 0)
    cuts = [abs(2 * sum(np.count_nonzero(own == c) for c in ordered[:k]) - known) for k in range(1, len(ordered))]
    assert abs(int(sides[own >= 0].sum())) == min(cuts)
    unknown = own < 0
    assert np.array_equal(sides[unknown] > 0, along[unknown] > (min(above) + max(below)) / 2.0)


def test_later_bits_take_more_directions_and_no_two_rotations_are_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 200)).astype(np.float32)
    basis = learn_projection(X, EuclideanNeighbors(2000), np.zeros(200, np.float32), 0).bases[0]
    widths = [basis.place(turn)[0] for turn in range(500)]
    assert widths == sorted(widths)
    assert set(widths) == {w for w in (16, 32, 64, 128) if w >= basis.width} | {200}
    places = [basis.place(turn) for turn in range(500)]
    assert len(set(places)) == 500
    assert all(column < width and first <= turn < first + width for turn, (width, first, column) in enumerate(places))


def test_few_filled_classes_keep_the_paper_start_byte_for_byte(classes):
    X, y = classes
    auto, paper = (ILH(n_bits=4, start=start, **SMALL).fit(X, y % 5) for start in ("auto", "random"))
    assert auto.start_["kind"] == "random"
    assert "5 classes" in auto.start_["reason"]
    same_bits(auto, paper)


def test_an_array_is_taken_as_it_is(classes):
    X, y = classes
    table = np.where(np.random.default_rng(0).random((600, 3)) > 0.5, 1, -1)
    model = ILH(n_bits=3, start=table, **SMALL).fit(X, y % 5)
    assert {report.start for report in model.bits_} == {"given"}
    for bad, message in (
        (table[:, :2], "one for each of 3 bits"),
        (table[:9], "each of the 600 points"),
        (table * 2, "-1 and"),
    ):
        with pytest.raises(ValueError, match=message):
            ILH(n_bits=3, start=bad, **SMALL).fit(X, y % 5)
    with pytest.raises(ValueError, match="start must be one of 'auto', 'random', 'projection' or an array, got 'x'"):
        ILH(start="x").fit(X, y)


# -------------------------------------------------------------------------------------------- directions


def pair_scatter(X, weight):
    """The slow twin: a loop over pairs."""
    total, weights = np.zeros((X.shape[1],) * 2), np.zeros(len(X))
    for i in range(len(X)):
        for j in range(i):
            total += weight[i, j] * np.outer(X[i] - X[j], X[i] - X[j])
            weights[[i, j]] += weight[i, j]
    return total, weights


@given(seed=st.integers(0, 99), several=st.booleans())
@settings(max_examples=15, deadline=None)
def test_scatter_and_degrees_equal_a_loop_over_pairs(seed, several):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 4)).astype(np.float32)
    labels = rng.random((25, 5)) < 0.3 if several else rng.integers(0, 5, 25)[:, None] == np.arange(5)
    similarity = SharedLabels(np.arange(25), scipy.sparse.csr_array(labels, dtype=np.float32))
    sizes = labels.sum(axis=0)
    own = np.where(sizes > 1, np.maximum(sizes, 1) ** -0.5 / np.maximum(sizes - 1, 1), 0.0)
    scatter, degrees = pair_scatter(X, (labels * own) @ labels.T)
    np.testing.assert_allclose(similarity.scatter(X), scatter, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(similarity.degrees, degrees, rtol=1e-6, atol=1e-9)
    ij = np.array([(i, j) for i in range(25) for j in range(i) if rng.random() < 0.2])
    weights = rng.random(len(ij)) + 0.1
    table = np.zeros((25, 25))
    table[ij[:, 0], ij[:, 1]] = weights
    scatter, degrees = pair_scatter(X, table)
    pairs = SimilarPairs(np.arange(25), ij, weights)
    np.testing.assert_allclose(pairs.scatter(X), scatter, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(pairs.degrees, degrees, rtol=1e-6)


@given(seed=st.integers(0, 99), shrinkage=st.sampled_from([0.01, 0.3]), scale=st.sampled_from(["agreement", "excess"]))
@settings(max_examples=15, deadline=None)
def test_directions_are_generalised_eigenvectors_scaled_as_stated(seed, shrinkage, scale):
    rng = np.random.default_rng(seed)
    factor, mixing = rng.normal(size=(6, 6)), rng.normal(size=(6, 6))
    within = factor @ factor.T
    moments = Moments(within + mixing[:, :3] @ mixing[:, :3].T, within)
    W = directions(moments, moments.total, Shape(shrinkage, scale, 2))
    S = (1 - shrinkage) * within + shrinkage * np.trace(within) / 6 * np.eye(6)
    ratios = scipy.linalg.eigvals(np.linalg.solve(S, moments.total)).real
    best = np.sort(ratios)[::-1][: W.shape[1]]
    variances = np.diag(W.T @ moments.total @ W)
    np.testing.assert_allclose(variances, best - 1 if scale == "excess" else 1 - 1 / best, rtol=1e-6)
    np.testing.assert_allclose(variances / np.diag(W.T @ S @ W), best, rtol=1e-6)


def test_scale_of_the_data_does_not_matter(classes):
    X, y = classes
    origin = np.zeros(12, np.float32)
    codes = []
    for factor in (1.0, 1024.0):
        projection = learn_projection(X * np.float32(factor), supervision_from_labels(y, 600), origin, 3)
        codes.append((X * np.float32(factor) - projection.mean) @ projection.directions_of(range(16)).T > 0)
    assert np.mean(codes[0] != codes[1]) < 0.001


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_directions_along_which_similar_points_agree_are_preferred(classes, kind):
    X, y = classes
    supervision = supervision_from_labels(y, 600) if kind == "labels" else affinity_from_pairs(pairs_of(y), 600)
    projection = learn_projection(X, supervision, np.zeros(12, np.float32), 0)
    assert projection.shape.shrinkage is not None
    assert projection.scores["score"] > projection.scores["principal"]
    W = projection.directions_of(range(12))
    assert np.linalg.norm(W[:, :6]) > 3 * np.linalg.norm(W[:, 6:])


def test_labels_that_say_nothing_often_leave_principal_directions(classes):
    """Ten shapes are tried and one standard error is wanted: that some have it by chance is the price of few labels."""
    X, _ = classes

    def shrinkage(seed):
        nonsense = np.random.default_rng(seed).integers(0, 60, 600)
        return learn_projection(X, supervision_from_labels(nonsense, 600), np.zeros(12, np.float32), 0).shape.shrinkage

    assert sum(shrinkage(seed) is None for seed in range(12)) >= 4


def test_points_that_are_held_out_are_not_read(classes):
    X, y = classes
    held_out = HoldOut(100)
    labels = held_out.labels(y % 20)
    spoilt = X.copy()
    spoilt[labels.withheld] = np.random.default_rng(0).normal(size=(len(labels.withheld), 12)) * 1e3
    a, b = (learn_projection(Z, labels, np.zeros(12, np.float32), 0).directions_of(range(8)) for Z in (X, spoilt))
    assert a.tobytes() == b.tobytes()


def test_sets_and_lists_mean_the_same_as_their_indicator(classes):
    X, y = classes
    sets = [{int(c), f"kind {c % 9}"} for c in y]
    lists = [[f"kind {c % 9}", int(c)] for c in y]
    indicator = np.concatenate([y[:, None] == np.arange(60), (y % 9)[:, None] == np.arange(9)], axis=1).astype(int)
    relevant = ILH(n_bits=6, **SMALL).fit(X, indicator).transform(X)
    for several in (sets, lists, np.array(sets, dtype=object)):
        found = ILH(n_bits=6, **SMALL).fit(X, several).transform(X)
        assert np.mean(np.unpackbits(found ^ relevant, axis=1)) < 0.2  # labels are numbered in another order


# -------------------------------------------------------------------------------------------- what files say


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("start", "ways"), ["hyperplane", "magic"]),
        (("start", "ways"), "graph"),
        (("start", "ways"), [["graph"]]),
        (("start", "by classes"), "best"),
        (("start", "by graph"), float("inf")),
        (("start", "steps"), -1),
        (("start", "refined"), "much"),
        (("start", "kind"), None),
        (("start", "reason"), 5),
        (("scaling",), "rows"),
        (("scaling",), None),
        (("bits", 0, "way"), "magic"),
        (("draws", 0, "whole_classes"), 1),
    ],
    ids=str,
)
def test_what_a_file_says_of_starts_is_checked(classes, path, value):
    X, y = classes
    model = ILH(n_bits=2, **SMALL).fit(X, y)
    document = json.loads(json.dumps({"parameters": model.get_params(), **model._own_document()}, default=str))
    again = ILH(n_bits=2, **SMALL)
    again.functions_ = model.functions_
    again._read_own_document(Record(document, "a model"))
    assert again.start_ == model.start_
    assert again.scaling_ == model.scaling_
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(DamagedFileError, match="a model must have"):
        again._read_own_document(Record(document, "a model"))


@pytest.mark.parametrize("supervision", ["labels", "pairs", "several labels"])
def test_supervision_that_says_nothing_of_the_vectors(supervision):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2_000, 4)), np.minimum(np.arange(2_000) % 7, 2)
    given = {"y": y}
    if supervision == "pairs":
        given = {"pairs": np.column_stack(pairs_of(y))}
    if supervision == "several labels":
        given = {"y": (rng.random((2_000, 5)) < 0.3).astype(int)}
    model = ILH(n_bits=2, start="projection", **SMALL).fit(X, check=False, **given)
    assert model.transform(X).shape == (2_000, 1)


# -------------------------------------------------------------------------------------------- refined by similar pairs


def cross_entropy(first, second, W, alike):
    """The slow twin: a loop over the points of a batch."""
    one, other = np.tanh(first @ W), np.tanh(second @ W)
    total = 0.0
    for i in range(len(one)):
        counted = [j for j in range(len(one)) if j == i or not alike[i, j]]
        agreement = np.array([one[i] @ other[j] for j in counted]) / (0.25 * np.sqrt(W.shape[1]))
        total -= agreement[counted.index(i)] - np.log(np.exp(agreement).sum())
    return total / len(one)


@given(seed=st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_the_slope_of_contrast_equals_differences_of_the_loss(seed):
    rng = np.random.default_rng(seed)
    first, second, W = (rng.normal(size=size) for size in ((6, 3), (6, 3), (3, 2)))
    alike = rng.random((6, 6)) < 0.3
    np.fill_diagonal(alike, False)
    expected = np.zeros_like(W)
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = 1e-5
        expected[place] = (
            cross_entropy(first, second, W + step, alike) - cross_entropy(first, second, W - step, alike)
        ) / 2e-5
    found = contrast_slope(*(part.astype(np.float32) for part in (first, second, W)), alike)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def neighbours_alike(codes, y):
    agreement = codes @ codes.T
    np.fill_diagonal(agreement, -np.inf)
    return np.mean(y[np.argsort(-agreement, axis=1, kind="stable")[:, :5]] == y[:, None])


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_refined_directions_find_what_is_similar_and_are_the_same_each_time(classes, kind):
    X, y = classes
    labels = SharedLabels(np.arange(600), scipy.sparse.csr_array((y[:, None] == np.arange(60)).astype(np.float32)))
    pairs = labels.pairs(np.arange(600))
    similarity = labels if kind == "labels" else SimilarPairs(np.arange(600), pairs, np.ones(len(pairs)))
    contrast = Contrast(X, similarity)
    start = np.random.default_rng(1).normal(size=(12, 16))
    short, long = contrast.refined(start, 3, (20, 150), 0.0)
    for again in contrast.refined(start, 3, (20, 150), 0.0), contrast.refined(start, 3, (20, 150, 151), 0.0):
        np.testing.assert_array_equal(again[0], short)
        np.testing.assert_array_equal(again[1], long)
    assert not np.array_equal(contrast.refined(start, 4, (20,), 0.0)[0], short)
    assert not np.array_equal(contrast.refined(start, 3, (20,), 0.5)[0], short)
    before, after = (neighbours_alike(np.where(X @ W > 0, 1.0, -1.0), y) for W in (start, long))
    assert after > before + 0.1
    assert contrast.lengths() == tuple(sorted(set(contrast.lengths())))


def test_pairs_that_judge_are_not_learnt_from():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 4)).astype(np.float32)
    pairs = np.unique(np.sort(rng.integers(0, 400, (20_000, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    rows = np.arange(400) * 2  # of X
    judge = judge_of_pairs(SimilarPairs(rows, pairs, np.ones(len(pairs))), points, points, 0)
    learnt = {tuple(pair) for pair in judge.learnt.rows[judge.learnt.pairs].tolist()}
    held = {tuple(pair) for pair in judge.held.tolist()}
    known = {tuple(pair) for pair in rows[pairs].tolist()}
    assert held
    assert learnt
    assert not held & learnt
    assert held | learnt <= known
    assert len(judge.weights) == 2 * len(held)  # as many of points that are held out
    assert len(judge.learnt.rows) == 300
    assert held | learnt == {pair for pair in known if set(pair) <= set(judge.learnt.rows.tolist())}


def test_start_says_how_directions_were_refined(classes):
    X, y = classes
    about = ILH(n_bits=2, **SMALL).fit(X, y).start_
    assert {"refined", "steps"} <= set(about)
    assert (about["steps"] > 0) == ("noise" in about)
    assert "refined" not in ILH(n_bits=2, **SMALL).fit(X).start_  # nothing is known to be similar


# -------------------------------------------------------------------------------------------- classes that pairs imply


def drawn_pairs(y, n, seed=0):
    ij = np.random.default_rng(seed).integers(0, len(y), (n, 2))
    ij = np.unique(np.sort(ij[ij[:, 0] != ij[:, 1]], axis=1), axis=0)
    return ij, np.where(y[ij[:, 0]] == y[ij[:, 1]], 1.0, -1.0)


def joined(y, ij, values):
    matrix = scipy.sparse.coo_array((values, (ij[:, 0], ij[:, 1])), shape=(len(y), len(y))).tocsr()
    return joined_classes(scipy.sparse.csr_array(matrix + matrix.T))


@given(seed=st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_pairs_of_classes_imply_them(seed):
    y = np.random.default_rng(seed).integers(0, 3, 240)
    ij, values = drawn_pairs(y, 4000, seed)
    codes = joined(y, ij, values)
    known = codes >= 0
    assert known.mean() > 0.9
    assert (codes[known][:, None] == codes[known]).tolist() == (y[known][:, None] == y[known]).tolist()


def test_pairs_imply_no_classes_where_they_contradict_themselves_or_say_too_little():
    y = np.random.default_rng(0).integers(0, 3, 240)
    ij, values = drawn_pairs(y, 4000)
    assert joined(y, ij, values) is not None
    apart = np.flatnonzero(values < 0)
    wrong = values.copy()
    wrong[apart[0]] = 1.0  # one wrong pair joins two classes, which the others contradict
    assert joined(y, ij, wrong) is None
    chance = values.copy()
    chance[np.random.default_rng(1).permutation(len(values))[: len(values) // 3]] = -1.0  # of similar points, too
    assert joined(y, ij, chance) is None
    alike = values > 0
    assert joined(y, ij[alike], values[alike]) is None  # nothing tells classes apart
    told = alike | (np.isin(y[ij], (0, 1)).all(axis=1))
    assert joined(y, ij[told], values[told]) is None  # nor the third from the others
    few = np.append(np.flatnonzero(alike), apart[:50])
    assert joined(y, ij[few], values[few]) is None
    assert joined(y, *drawn_pairs(np.arange(240) // 4, 400)) is None  # no class has enough points
