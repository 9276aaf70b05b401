"""Trees as plain arrays: a margin that is a sum over decision trees of the value in the leaf that is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.functions._base import Margins

__all__ = ["TreeFunction", "trees_of"]


@dataclass(frozen=True, eq=False)
class TreeFunction:
    """h(x) = bias + sum over trees of value[leaf(x)]; nodes of all trees stand in one table.

    A row goes left where x[feature] <= threshold. Leaves have left == right == their own index, and the children of
    other nodes stand behind them. ``roots`` are the first nodes of the trees.
    """

    kind: ClassVar[str] = "trees"
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    roots: NDArray[np.int32]
    bias: float = 0.0
    features: NDArray[np.int32] | None = None

    def margins(self, X: NDArray[np.float32]) -> Margins:
        """Return the margin of every row."""
        return self.own_margins(X if self.features is None else X[:, self.features])

    def own_margins(self, own: NDArray[np.float32]) -> Margins:
        """Return the margins of rows that hold the function's own features only."""
        own = np.asarray(own, np.float32)
        if own.strides[1] != own.itemsize:
            own = np.ascontiguousarray(own)
        table = (self.feature, self.threshold, self.left, self.right, self.value, self.roots)
        out = np.empty(len(own), np.float32)
        if len(own):
            _core.tree_margins(*table, self.bias, own, out)
        return out


def trees_of(classifier: Any, features: NDArray[np.int32] | None) -> TreeFunction | None:
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


def _join(trees: list[Any], value_of: Any, features: NDArray[np.int32] | None, bias: float = 0.0) -> TreeFunction:
    sizes = [tree.node_count for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    for tree, root in zip(trees, roots, strict=True):
        own = np.arange(tree.node_count)
        leaf = tree.children_left < 0
        parts["left"].append(root + np.where(leaf, own, tree.children_left))
        parts["right"].append(root + np.where(leaf, own, tree.children_right))
        parts["feature"].append(np.where(leaf, 0, tree.feature))
        parts["threshold"].append(tree.threshold)
        parts["value"].append(value_of(tree))
    table = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return TreeFunction(
        table["feature"].astype(np.int32),
        table["threshold"].astype(np.float64),
        table["left"].astype(np.int32),
        table["right"].astype(np.int32),
        table["value"].astype(np.float64),
        roots,
        float(bias),
        features,
    )
