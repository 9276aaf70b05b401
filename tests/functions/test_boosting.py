"""Boosted trees and their margins against twins that follow the definitions row by row."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from tests.oracles import mix64

from ilhash import _core
from ilhash.functions import Encoder, TreeBooster, TreeFunction
from ilhash.functions._boosting import PENALTY, Bins, bin_edges
from ilhash.functions._trees import trees_of

MASK64 = (1 << 64) - 1
ONE = 1 << 24  # derivatives of the loss are whole multiples of 1 / ONE


# -------------------------------------------------------------------------------- twins


class Draws:
    def __init__(self, seed):
        self.counter = mix64((seed & MASK64) ^ 0x5851F42D4C957F2D)

    def below(self, n):
        self.counter = (self.counter + 0x9E3779B97F4A7C15) & MASK64
        return ((mix64(self.counter) >> 32) * n) >> 32


class TwinBooster:
    """Trees as nested tuples (feature, edge, left, right) and leaves as numbers, from X itself instead of bins."""

    def __init__(self, X, z, edges, n_trees, depth, rate, seed):
        self.X, self.z, self.edges, self.rate = X.astype(np.float64), z, edges, rate
        self.draws, self.pool = Draws(seed), [j for j in range(X.shape[1]) if len(edges[j])]
        self.n_tried = int(np.sqrt(X.shape[1]))
        self.bias = 2 * float(z.sum()) / len(z)
        self.margins = np.full(len(X), self.bias)
        self.trees = []
        for _ in range(n_trees):
            p = np.floor(ONE / (1 + np.exp(-np.clip(self.margins, -30, 30))) + 0.5).astype(np.int64)
            first = p - ONE * (z > 0)
            self.slopes = list(zip(first.tolist(), (p * (ONE - p) // ONE).tolist(), strict=True))
            self.trees.append(self.grow(depth))

    def sums(self, rows):
        return tuple(sum(self.slopes[i][k] for i in rows) / ONE for k in (0, 1))

    def score(self, rows):
        first, second = self.sums(rows)
        return first * first / (second + PENALTY)

    def grow(self, depth):
        """Level by level, since that is the order of the draws."""
        root = {"rows": list(range(len(self.X))), "depth": 0}
        queue = [root]
        for node in queue:
            rows = node["rows"]
            split = self.best(rows) if node["depth"] < depth else None
            if split is None:
                first, second = self.sums(rows)
                node["value"] = -self.rate * (first / (second + PENALTY))
                self.margins[rows] += node["value"]
                continue
            feature, edge = node["split"] = split
            left = self.X[rows, feature] <= edge
            node["children"] = [
                {"rows": list(np.array(rows)[side]), "depth": node["depth"] + 1} for side in (left, ~left)
            ]
            queue += node["children"]
        return self.nested(root)

    def nested(self, node):
        return node["value"] if "value" in node else (*node["split"], *map(self.nested, node["children"]))

    def best(self, rows):
        highest, found = self.score(rows), None
        for k in range(len(self.pool)):
            if k >= self.n_tried and found is not None:
                break
            other = k + self.draws.below(len(self.pool) - k)
            self.pool[k], self.pool[other] = self.pool[other], self.pool[k]
            feature = self.pool[k]
            for edge in self.edges[feature]:
                below = [i for i in rows if self.X[i, feature] <= edge]
                above = [i for i in rows if self.X[i, feature] > edge]
                if self.score(below) + self.score(above) > highest:
                    highest, found = self.score(below) + self.score(above), (feature, edge)
        return found


def nested_tree(function, node):
    if function.left[node] == node:
        assert function.right[node] == node
        return function.value[node]
    children = (nested_tree(function, side[node]) for side in (function.left, function.right))
    return (function.feature[node], function.threshold[node], *children)


def assert_same_tree(found, wanted):
    if not isinstance(wanted, tuple):
        assert found == pytest.approx(wanted, abs=1e-6)
        return
    assert found[:2] == wanted[:2]
    for one, other in zip(found[2:], wanted[2:], strict=True):
        assert_same_tree(one, other)


def margins_row_by_row(function, X):
    """Walk every row down every tree, with NumPy's numbers."""
    total = np.full(len(X), function.bias)
    for root in function.roots:
        for i, x in enumerate(X):
            node = root
            while function.left[node] != node:
                side = function.left if x[function.feature[node]] <= function.threshold[node] else function.right
                node = side[node]
            total[i] += function.value[node]
    return total.astype(np.float32)


# -------------------------------------------------------------------------------- boosting


def some_rows(rng, n, d, kind):
    X = rng.standard_normal((n, d)).astype(np.float32)
    if kind == "few values":
        X = np.round(X)
    elif kind == "constant features":
        X[:, rng.random(d) < 0.6] = 3.5
    elif kind == "repeated rows":
        X = X[rng.integers(0, max(1, n // 3), n)]
    return X


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(1, 40),
    d=st.integers(1, 11),
    kind=st.sampled_from(["real", "few values", "constant features", "repeated rows"]),
    most_bins=st.sampled_from([2, 5, 64, 256]),
    depth=st.integers(1, 4),
    rate=st.sampled_from([0.2, 1.0]),
    ones=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**64 - 1),
)
def test_trees_are_those_of_the_definition(n, d, kind, most_bins, depth, rate, ones, seed):
    rng = np.random.default_rng(seed)
    X = some_rows(rng, n, d, kind)
    z = np.where(rng.random(n) < ones, 1, -1).astype(np.int8)
    booster = TreeBooster(X, n_trees=3, depth=depth, learning_rate=rate, most_bins=most_bins)
    fitted = booster.fit(z, seed)
    twin = TwinBooster(X, z, [bin_edges(column, most_bins) for column in X.T], 3, depth, rate, seed)
    assert fitted.function.bias == twin.bias
    for root, tree in zip(fitted.function.roots, twin.trees, strict=True):
        assert_same_tree(nested_tree(fitted.function, root), tree)
    np.testing.assert_allclose(fitted.margins, twin.margins, rtol=1e-6, atol=1e-6)
    assert np.array_equal(fitted.function.margins(X), fitted.margins)
    if ones in (0.0, 1.0):
        assert ((fitted.margins > 0) == (z > 0)).all()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 300), st.integers(2, 256), st.integers(1, 400), st.integers(0, 10_000))
def test_bins_are_told_apart_by_edges_and_hold_alike_many_rows(n, most_bins, n_values, seed):
    rng = np.random.default_rng(seed)
    column = rng.standard_normal(n_values).astype(np.float32)[rng.integers(0, n_values, n)]
    edges = bin_edges(column, most_bins)
    assert len(edges) == len(np.unique(edges)) <= most_bins - 1
    assert (np.diff(edges) > 0).all()
    assert not np.isin(edges, column).any()
    counts = np.bincount(np.searchsorted(edges, column), minlength=len(edges) + 1)
    assert counts.min() > 0
    if len(np.unique(column)) <= most_bins:
        assert len(edges) == len(np.unique(column)) - 1
    elif len(np.unique(column)) == n:
        assert counts.max() - counts.min() <= 2


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(1, 8), st.integers(2, 256), st.booleans(), st.integers(0, 10_000))
def test_rows_are_placed_as_by_a_search_of_sorted_edges(n, d, most_bins, subset, seed):
    """Rows that the edges were not made of, some on an edge, some beyond all of them; layouts with gaps."""
    rng = np.random.default_rng(seed)
    bins = Bins.of(some_rows(rng, n, d, "few values" if seed % 2 else "real"), most_bins)
    features = np.sort(rng.permutation(d)[: 1 + d // 2]).astype(np.int32) if subset else None
    own = range(d) if features is None else features
    rows = (2 * rng.standard_normal((77, len(own) + 1))).astype(np.float32)[:, :-1]
    rows[::5] = np.round(rows[::5] * 2) / 2
    placed = bins.only(features).place(rows)
    assert placed.shape == rows.T.shape
    for column, j, found in zip(rows.T, own, placed, strict=True):
        assert np.array_equal(found, np.searchsorted(bins.edges[bins.begin[j] : bins.begin[j + 1]], column))


@pytest.mark.parametrize("n_tried", [1, 7, 8, 9, 17, 30])
def test_features_looked_at_together_give_the_trees_of_one_after_the_other(n_tried):
    """More features than are looked at together, of which many cannot split: groups of every size."""
    rng = np.random.default_rng(n_tried)
    X = some_rows(rng, 60, n_tried**2, "constant features")
    z = np.where(rng.random(60) < 0.5, 1, -1).astype(np.int8)
    function = TreeBooster(X, n_trees=2, depth=2, learning_rate=0.2).fit(z, 3).function
    twin = TwinBooster(X, z, [bin_edges(column, 64) for column in X.T], 2, 2, 0.2, 3)
    for root, tree in zip(function.roots, twin.trees, strict=True):
        assert_same_tree(nested_tree(function, root), tree)


def test_neighbouring_floats_are_told_apart():
    for value in (1.0, -3e-7, 1e18, 1e-44, 0.0):
        pair = np.array([value, np.nextafter(np.float32(value), np.float32(np.inf))], np.float32)
        (edge,) = bin_edges(pair, 64)
        assert (pair <= edge).tolist() == [True, False]


def test_as_good_as_scikit_learns_boosting(digits):
    X, y = digits[0].astype(np.float32), digits[1]
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:900], order[900:]
    scores = []
    for k, classes in enumerate(([0, 1, 2, 3, 4], [0, 2, 4, 6, 8], [1, 4, 5, 7, 9])):
        z = np.where(np.isin(y, classes), 1, -1).astype(np.int8)
        booster = TreeBooster(X[train], n_trees=40, depth=4, learning_rate=0.2)
        own = booster.fit(z[train], k).function.margins(X[test]) > 0
        peer = GradientBoostingClassifier(n_estimators=40, max_depth=4, max_features="sqrt", learning_rate=0.2)
        peer.set_params(random_state=k).fit(X[train], z[train])
        scores.append(((own == (z[test] > 0)).mean(), peer.score(X[test], z[test])))
    own, peer = np.mean(scores, axis=0)
    assert own > peer - 0.01
    assert own > 0.95


def test_the_seed_decides_and_bits_do_not_touch_each_other(digits):
    X, z = digits[0][:300].astype(np.float32), np.where(digits[1][:300] < 5, 1, -1).astype(np.int8)
    booster = TreeBooster(X, n_trees=5, depth=3, learning_rate=0.2)
    first, other, again = booster.fit(z, 0), booster.fit(z, 1), booster.fit(z, 0)
    assert np.array_equal(first.margins, again.margins)
    assert not np.array_equal(first.margins, other.margins)


def test_trees_are_the_same_bytes_everywhere():
    """The table for a fixed training set, as first made on x86-64."""
    i = np.arange(200)
    X = np.stack([i * 37 % 101, i * 53 % 97, i * 11 % 7], axis=1).astype(np.float32)
    z = np.where((X[:, 0] > 50) ^ (X[:, 1] > 40), 1, -1).astype(np.int8)
    function = TreeBooster(X, n_trees=20, depth=3, learning_rate=0.2).fit(z, 7).function
    table = (function.feature, function.threshold, function.left, function.right, function.value)
    digest = hashlib.sha256(b"".join(array.astype(array.dtype.newbyteorder("<")).tobytes() for array in table))
    assert len(function.value) == 266
    assert digest.hexdigest()[:16] == "41768cd032611c92"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bins": np.full((1, 3), 9, np.uint8)}, "a bin must be at most the number"),
        ({"edge_begin": np.array([0, 5], np.uint32)}, "all edges"),
        ({"z": np.zeros(3, np.int8)}, "-1 and"),
        ({"z": np.ones(4, np.int8)}, "one value per row"),
        ({"penalty": 0.0}, "penalty"),
        ({"bins": np.empty((1, 0), np.uint8)}, "there must be rows"),
    ],
)
def test_what_cannot_be_boosted_is_refused(change, message):
    good = {
        "bins": np.array([[0, 1, 2]], np.uint8),
        "edge_begin": np.array([0, 2], np.uint32),
        "edges": np.array([0.5, 1.5]),
        "z": np.array([1, -1, 1], np.int8),
        "n_trees": 2,
        "depth": 2,
        "n_tried": 1,
        "rate": 0.2,
        "penalty": 1.0,
        "seed": 0,
    }
    assert len(_core.boosted_trees(**good)[-1]) == 3
    with pytest.raises(ValueError, match=message):
        _core.boosted_trees(**good | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"out": np.empty((2, 3), np.uint8)}, "one row per feature"),
        ({"edge_begin": np.array([0, 5], np.uint32)}, "all edges"),
        ({"edge_begin": np.array([0, 1, 2], np.uint32)}, "one entry more"),
        ({"edges": np.array([1.5, 0.5])}, "ascend"),
        ({"edges": np.array([0.5, np.nan])}, "finite"),
        ({"edges": np.arange(256.0), "edge_begin": np.array([0, 256], np.uint32)}, "at most 255"),
    ],
)
def test_what_cannot_be_placed_is_refused(change, message):
    good = {"x": np.zeros((3, 1), np.float32), "edge_begin": np.array([0, 2], np.uint32), "edges": np.array([0.5, 1.5])}
    given = {**good, "out": np.empty((1, 3), np.uint8), **change}
    with pytest.raises(ValueError, match=message):
        _core.place_in_bins(**given)


# -------------------------------------------------------------------------------- margins


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 4), st.booleans(), st.integers(0, 10_000))
def test_margins_are_those_of_a_walk(n, d, n_trees, subset, seed):
    """Trees of any shape, also single leaves; values on thresholds; layouts with gaps; feature subsets."""
    rng = np.random.default_rng(seed)
    table = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    roots = []
    for _ in range(n_trees):
        first, size = len(table["left"]), 1
        roots.append(first)
        left, right = [0], [0]
        for node in range(int(rng.integers(0, 12))):
            if node < size and rng.random() < 0.7:
                left[node], right[node] = rng.permutation([size, size + 1])
                left += [size, size + 1]
                right += [size, size + 1]
                size += 2
        table["left"] += [first + child for child in left]
        table["right"] += [first + child for child in right]
        table["feature"] += list(rng.integers(0, d, size))
        table["threshold"] += list(rng.integers(-2, 3, size).astype(float))
        table["value"] += list(rng.standard_normal(size))
    types = {"feature": np.int32, "threshold": float, "left": np.int32, "right": np.int32, "value": float}
    arrays = {name: np.array(table[name], types[name]) for name in table}
    X = rng.integers(-3, 4, (n, d + 3)).astype(np.float32)
    features = rng.permutation(d + 3)[:d].astype(np.int32) if subset else None
    function = TreeFunction(**arrays, roots=np.array(roots, np.int32), bias=0.25, features=features)
    own = X[:, features] if subset else X[:, :d]
    wanted = margins_row_by_row(function, own)
    assert np.array_equal(function.margins(X if subset else own), wanted)
    assert np.array_equal(function.own_margins(np.asfortranarray(own)), wanted)


@pytest.mark.parametrize("most_bins", [2, 64, 256])
def test_bits_together_and_many_rows_give_the_margins_of_a_walk(most_bins):
    """Bins in common and of a bit's own, subsets, trees of another maker; blocks begin after some hundred rows."""
    rng = np.random.default_rng(most_bins)
    X = rng.standard_normal((700, 9)).astype(np.float32)
    functions = []
    for k in range(6):
        features = np.sort(rng.permutation(9)[:5]).astype(np.int32) if k % 2 else None
        rows = (X if k < 3 else X[k::7])[:, slice(None) if features is None else features]
        z = np.where(rng.random(len(rows)) < 0.5, 1, -1).astype(np.int8)
        booster = TreeBooster(rows, n_trees=7, depth=2 + 2 * k, learning_rate=0.2, most_bins=most_bins)
        functions.append(replace(booster.fit(z, k).function, features=features))
    forest = RandomForestClassifier(3, min_samples_leaf=1, random_state=0).fit(X, rng.random(700) < 0.5)
    functions.append(trees_of(forest, None))
    wanted = np.stack([margins_row_by_row(f, X if f.features is None else X[:, f.features]) for f in functions], axis=1)
    encoder = Encoder(functions, 9)
    for n in (1, 7, 64, 700, 71, 72, 8, 1):
        assert np.array_equal(encoder.margins(X[:n]), wanted[:n])
    assert np.array_equal(encoder.margins(np.asfortranarray(X)), wanted)
    for function, column in zip(functions, wanted.T, strict=True):
        assert np.array_equal(function.margins(X), column)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature": [2, 0, 0]}, "feature of a tree is out of range"),
        ({"feature": [-1, 0, 0]}, "feature of a tree is out of range"),
        ({"left": [3, 1, 2]}, "must stand behind it"),
        ({"left": [-1, 1, 2]}, "must stand behind it"),
        ({"left": [1, 0, 2]}, "must stand behind it"),
        ({"right": [2, 1, 1]}, "must stand behind it"),
        ({"roots": [3]}, "a root must be a node"),
        ({"left": [1, 1]}, "the same length"),
    ],
)
def test_tables_that_lead_astray_are_refused(change, message):
    table = {"feature": [0, 0, 0], "left": [1, 1, 2], "right": [2, 1, 2], "roots": [0]}
    numbers = {"threshold": np.zeros(3), "value": np.arange(3.0)}

    def function(**changes):
        arrays = {name: np.array(values, np.int32) for name, values in (table | changes).items()}
        return TreeFunction(**arrays, **numbers)

    X = np.array([[-1, 0], [1, 0]], np.float32)
    assert function().margins(X).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=message):
        function(**change).margins(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.array([0, 2], np.int32)}, "one of the rows"),
        ({"features": np.array([-1, 1], np.int32)}, "one of the rows"),
        ({"n_features": 0}, "rows must have features"),
        ({"x": np.zeros((3, 1), np.float32)}, "as many features"),
        ({"out": np.zeros((3, 2), np.float32)}, "must be \\(rows, tables\\)"),
    ],
)
def test_rows_that_trees_were_not_made_for_are_refused(change, message):
    good = {"features": None, "n_features": 2, "x": np.zeros((3, 2), np.float32), "out": np.zeros((3, 1), np.float32)}

    def margins(features, n_features, x, out):
        nodes, numbers = [np.zeros(1, np.int32)] * 3, [np.zeros(1), np.ones(1)]
        table = nodes[0], numbers[0], nodes[1], nodes[2], numbers[1], np.zeros(2, np.int32), 0.5, features
        _core.tree_margins([table], n_features).margins(x, out)
        return out

    assert margins(**good).ravel().tolist() == [2.5] * 3
    with pytest.raises(ValueError, match=message):
        margins(**good | change)
