"""Any scikit-learn binary classifier as a hash function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.functions._base import Fitted, Margins, standardisation
from ilhash.functions._trees import trees_of
from ilhash.vectors import Rows

__all__ = ["ClassifierFunction", "ClassifierLearner"]


@dataclass(frozen=True, eq=False)
class ClassifierFunction:
    """A fitted classifier on standardised features: its margin, or p(+1) - 1/2 where it has none."""

    kind: ClassVar[str] = "classifier"
    classifier: Any
    shift: NDArray[np.float32]
    factor: NDArray[np.float32]
    features: NDArray[np.int32] | None = None

    def margins(self, X: NDArray[np.float32]) -> Margins:
        """Return the margin of every row."""
        return self.own_margins(X if self.features is None else X[:, self.features])

    def own_margins(self, own: NDArray[np.float32]) -> Margins:
        """Return the margins of rows that hold the function's own features only."""
        scaled = (own - self.shift) * self.factor
        if hasattr(self.classifier, "decision_function"):
            margin = self.classifier.decision_function(scaled)
        elif hasattr(self.classifier, "predict_proba"):
            margin = self.classifier.predict_proba(scaled)[:, 1] - 0.5
        else:
            margin = self.classifier.predict(scaled)
        return np.asarray(margin, dtype=np.float32)


@dataclass(frozen=True)
class ClassifierLearner:
    """Fits clones of a classifier; trees and forests become plain arrays at once."""

    classifier: Any
    scaling: str = "columns"

    def fit(self, rows: Rows, z: NDArray[np.int8], features: NDArray[np.int32] | None, seed: int) -> Fitted:
        """Fit to bits z in {-1,+1}."""
        from sklearn.base import clone

        classifier = clone(self.classifier)
        if "random_state" in classifier.get_params() and classifier.get_params()["random_state"] is None:
            classifier.set_params(random_state=seed % 2**32)
        if _is_tree(classifier):  # trees do not care for scale, and their thresholds stay readable without it
            converted = trees_of(classifier.fit(rows.values, z), features)
            if converted is not None:
                return Fitted(converted, converted.own_margins(rows.values), z)
        shift, factor = (part.astype(np.float32) for part in standardisation(rows, self.scaling))
        function = ClassifierFunction(classifier, shift, factor, features)
        classifier.fit((rows.values - shift) * factor, z)
        return Fitted(function, function.own_margins(rows.values), z)


def _is_tree(classifier: Any) -> bool:
    return type(classifier).__module__.startswith(("sklearn.tree.", "sklearn.ensemble._forest", "sklearn.ensemble._gb"))
