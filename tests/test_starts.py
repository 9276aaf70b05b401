"""Starts that follow the data: directions, their choice, and the contract that a bit is its own."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import ilhash
from ilhash import ILH, HoldOut
from ilhash.affinity import SharedLabels, SimilarPairs, affinity_from_pairs, supervision_from_labels
from ilhash.starts import Moments, Shape, directions, learn_projection

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
    ("kind", "wanted", "graph"),
    [
        ("many classes", "projection", True),
        ("few labels", "projection", True),
        ("one large class", "projection", False),
        ("sets", "projection", True),
        ("pairs", "projection", False),
        ("similar pairs", "projection", False),
        ("none", "projection", False),
    ],
)
def test_the_rule(classes, kind, wanted, graph):
    X, y = classes
    model = ILH(n_bits=2, **SMALL).fit(X, **supervisions(y)[kind])
    assert (model.start_["kind"], model.start_["uses_graph"]) == (wanted, graph), model.start_["reason"]
    assert {report.start for report in model.bits_} == {wanted}


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


def test_labels_that_say_nothing_leave_principal_directions(classes):
    X, _ = classes
    nonsense = np.random.default_rng(5).integers(0, 60, 600)
    projection = learn_projection(X, supervision_from_labels(nonsense, 600), np.zeros(12, np.float32), 0)
    assert projection.shape.shrinkage is None


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
