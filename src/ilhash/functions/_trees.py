"""Trees as plain arrays: a margin that is a sum over decision trees of the value in the leaf that is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.storage import Values, reading

from ._base import (
    ONE_SUBSET,
    Features,
    Floats,
    HashFunction,
    Stored,
    features_in,
    own_columns,
    stacked_fields,
)

_NODES = {"feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "value": np.float64}
_TABLE = (*_NODES, "roots")
MOST_LEVELS = 10_000  # of a tree: a row takes as many steps


@dataclass(frozen=True, eq=False)
class TreeFunction(HashFunction):
    """h(x) = bias + sum over trees of value[leaf(x)]; nodes of all trees stand in one table.

    A row goes left where x[feature] <= threshold. Leaves have left == right == their own index, and the children of
    other nodes stand behind them. ``roots`` are the first nodes of the trees; ``feature`` counts within ``features``.
    """

    kind: ClassVar[str] = "trees"
    schema: ClassVar[dict[str, Values]] = {
        "feature": Values("int32", ("nodes",)),  # the core checks what stands in these
        "threshold": Values("float64", ("nodes",), finite=False),
        "left": Values("int32", ("nodes",)),
        "right": Values("int32", ("nodes",)),
        "value": Values("float64", ("nodes",), finite=False),
        "roots": Values("int32", ("trees",)),
        "bias": Values("float64", ("bits",)),
        "features": ONE_SUBSET,
    }
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    roots: NDArray[np.int32]
    bias: float = 0.0
    features: Features = None

    def margins(self, X: Floats) -> Floats:
        return self.own_margins(own_columns(X, self.features))

    def own_margins(self, own: Floats) -> Floats:
        """Return the margins of rows that hold the function's own features only."""
        return _margins(_core.tree_margins([self._table(None)], own.shape[1]), own)[:, 0]

    def encoding_group(self, n_features: int) -> object:
        """All are computed together: features are put between the thresholds of all of them at once."""
        return None

    @classmethod
    def stacked(cls, functions: Sequence[TreeFunction], n_features: int) -> Callable[[Floats], Floats]:
        @cache  # made when it is first used: parts of models are made of other models, and may never encode
        def trees() -> _core.TreeMargins:
            return _core.tree_margins([function._table(function.features) for function in functions], n_features)

        return lambda X: _margins(trees(), X)

    def _table(self, columns: Features) -> tuple[Any, ...]:
        return (*(getattr(self, name) for name in _TABLE), self.bias, columns)

    @classmethod
    def to_stored(cls, functions: Sequence[TreeFunction]) -> Stored:
        table = {name: getattr(functions[0], name) for name in _TABLE}
        return Stored(table | stacked_fields(functions, "bias", "features"))

    @classmethod
    def from_stored(cls, stored: Stored) -> list[TreeFunction]:
        arrays = stored.arrays
        table: dict[str, Any] = {name: arrays[name] for name in _TABLE}
        features = features_in(arrays)
        n_features = stored.n_features if features is None else len(features)
        with reading(f"{stored.where} must be trees of {n_features} features"):
            _core.check_trees(**table, n_features=n_features, max_depth=MOST_LEVELS)
        if _reached_twice(arrays["left"], arrays["right"], arrays["roots"]):
            raise stored.damaged("be trees of which a node is reached in one way, got several ways to the same")
        return [cls(**table, bias=float(arrays["bias"][0]), features=features)]


def _margins(trees: _core.TreeMargins, X: Floats) -> Floats:
    """Return the margins (n, tables) of rows."""
    X = np.asarray(X, np.float32)
    if X.strides[1] != X.itemsize:
        X = np.ascontiguousarray(X)
    out = np.empty((len(X), trees.n_tables), np.float32)
    if len(X):
        trees.margins(X, out)
    return out


def _reached_twice(left: NDArray[np.int32], right: NDArray[np.int32], roots: NDArray[np.int32]) -> bool:
    """Whether nodes have several parents, or roots one: then a row would take more steps than there are nodes."""
    size = len(left)
    ways = np.bincount(left, minlength=size) + np.bincount(right, minlength=size)
    ways -= 2 * (left == np.arange(size))  # a leaf leads to itself
    ways += np.bincount(roots, minlength=size)
    return bool(ways.max() > 1)


def trees_of(classifier: Any, features: Features) -> TreeFunction | None:
    """Convert a fitted binary scikit-learn tree, forest or gradient boosting; None for other classifiers."""
    from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    if isinstance(classifier, DecisionTreeClassifier):
        return _join([classifier.tree_], _vote, features)
    if isinstance(classifier, RandomForestClassifier | ExtraTreesClassifier):
        members = [member.tree_ for member in classifier.estimators_]
        return _join(members, lambda tree: _vote(tree) / len(members), features)
    if isinstance(classifier, GradientBoostingClassifier) and classifier.loss == "log_loss" and classifier.init is None:
        members = [member.tree_ for member in classifier.estimators_[:, 0]]
        prior = float(classifier.init_.class_prior_[1])
        rate = classifier.learning_rate
        return _join(members, lambda tree: rate * tree.value[:, 0, 0], features, bias=np.log(prior / (1.0 - prior)))
    return None


def _vote(tree: Any) -> NDArray[np.float64]:
    """Return p(+1) - 1/2 at every node."""
    counts = tree.value[:, 0, :]
    return np.asarray(counts[:, 1] / counts.sum(axis=1) - 0.5)


def _join(trees: list[Any], value_of: Any, features: Features, bias: float = 0.0) -> TreeFunction:
    deepest = max(tree.max_depth for tree in trees)
    if deepest > MOST_LEVELS:
        raise ValueError(f"max_depth of trees must be at most {MOST_LEVELS}, got trees of {deepest} levels")
    sizes = [tree.node_count for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    table: dict[str, list[NDArray[Any]]] = {name: [] for name in _NODES}
    for tree, root in zip(trees, roots, strict=True):
        own = np.arange(tree.node_count)
        leaf = tree.children_left < 0
        table["left"].append(root + np.where(leaf, own, tree.children_left))
        table["right"].append(root + np.where(leaf, own, tree.children_right))
        table["feature"].append(np.where(leaf, 0, tree.feature))
        table["threshold"].append(tree.threshold)
        table["value"].append(value_of(tree))
    joined = {name: np.concatenate(table[name]).astype(dtype) for name, dtype in _NODES.items()}
    return TreeFunction(**joined, roots=roots, bias=float(bias), features=features)
