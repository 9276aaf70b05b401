"""FastHash: min-cut for the bits, boosted trees for the functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ilhash._parameters import count, positive
from ilhash.diversity import seed_for
from ilhash.functions import HashFunction, TreeBooster
from ilhash.methods._base import SupervisedMethod, TrainingData
from ilhash.methods._ksh_loss import PairLoss, label_pairs
from ilhash.zstep import MAX_SWEEPS


@dataclass(eq=False, repr=False, kw_only=True)
class FastHash(SupervisedMethod):
    """KSH's loss by min-cut one bit after the other, each followed by boosted trees that stand in for it.

    For bit k, sum over pairs of (z_n'z_m - k y_nm)^2 over codes of k bits is lowered over the last one by alternating
    min-cut, y = +1 for points of a label and -1 for others; gradient boosted trees are fitted to it; and their output
    on the training points becomes bit k, so that later bits mend what the trees got wrong. Features are put into up to
    64 bins once for all bits; trees lower the logistic loss by Newton steps.

    Parameters
    ----------
    n_estimators : int, default 100, trees of each bit
    max_depth : int, default 4, depth of the trees
    learning_rate : float, default 0.2, share of each tree that is added
    n_similar, n_dissimilar : int, default 100, partners of each training point in pairs
    random_state : int, RandomState, Generator or None, default 0
        Training points, pairs, the order of blocks, and the features that a node of a tree looks at: the square root
        of their number, drawn at random, which is part of what makes the trees quick.

    Attributes
    ----------
    report_ : dict
        For each bit, ``loss``, the mean of (z_n'z_m / k - y_nm)^2 with the bit of the min-cut, ``tree_loss`` with that
        of the trees, and ``accuracy``, the share of training points on which they agree.

    References
    ----------
    G. Lin, C. Shen, Q. Shi, A. van den Hengel and D. Suter, Fast supervised hashing with decision trees for
    high-dimensional data, CVPR 2014.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) + np.repeat([[0], [3]], 50, axis=0)
    >>> model = FastHash(n_bits=3, n_estimators=5, n_similar=10, n_dissimilar=10).fit(X, np.repeat([0, 1], 50))
    >>> len(model.report_["accuracy"])
    3
    """

    nested: ClassVar[bool] = True
    renamed: ClassVar[dict[str, str]] = {"n_trees": "n_estimators", "depth": "max_depth"}

    n_estimators: int = count(100)
    max_depth: int = count(4)
    learning_rate: float = positive(0.2)
    n_similar: int = count(100)
    n_dissimilar: int = count(100)

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        training, seed = data.training_set(), data.seed
        n = len(training.rows.values)
        y = label_pairs(training.labels, self.n_similar, self.n_dissimilar, seed_for(seed, "graph"))
        loss = PairLoss(y, np.empty((n, 0), np.int8))
        booster = TreeBooster(
            training.rows.values, n_trees=self.n_estimators, depth=self.max_depth, learning_rate=self.learning_rate
        )
        functions: list[HashFunction] = []
        report: dict[str, list[float]] = {"loss": [], "tree_loss": [], "accuracy": []}
        for bit in range(self.n_bits):
            start = np.ones(n, np.int8)
            z = loss.next_bit(start, bit + 1, seed_for(seed, "order", bit), MAX_SWEEPS).z
            fitted = booster.fit(z, seed_for(seed, "classifier", bit))
            output = np.where(fitted.margins > 0, np.int8(1), np.int8(-1))
            loss.add(z)
            report["loss"].append(loss.value())
            loss.remove(z)
            loss.add(output)
            report["tree_loss"].append(loss.value())
            report["accuracy"].append(float((output == z).mean()))
            functions.append(fitted.function)
        self.report_.update(report)
        return functions
