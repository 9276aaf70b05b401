"""Any scikit-learn binary classifier as a hash function; and which learner a parameter ``hash_function`` means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ilhash.storage import Values, reading
from ilhash.vectors import GatheredRows

from ._base import ONE_SUBSET, Features, Floats, HashFunction, Stored, features_in, own_columns, stacked_fields
from ._kinds import LEARNERS, register
from ._learner import Fitted, Learner, LearnerSettings, standardization
from ._linear import LinearFunction
from ._skops import classifier_from_bytes, classifier_to_bytes, is_linear
from ._trees import trees_of


@register
@dataclass(frozen=True, eq=False)
class ClassifierFunction(HashFunction):
    """A fitted classifier on features (x - shift) * factor: its margin, or p(+1) - 1/2 where it has none."""

    kind: ClassVar[str] = "classifier"
    schema: ClassVar[dict[str, Values]] = {
        "shift": Values("float32", ("d",)),
        "factor": Values("float32", ("d",)),
        "features": ONE_SUBSET,
    }
    classifier: Any
    shift: Floats
    factor: Floats
    features: Features = None

    def margins(self, X: Floats) -> Floats:
        return self.own_margins(own_columns(X, self.features))

    def own_margins(self, own: Floats) -> Floats:
        """Return the margins of rows that hold the function's own features only."""
        scaled = np.nan_to_num((own - self.shift) * self.factor, copy=False)  # far vectors overflow, and stay far
        if hasattr(self.classifier, "decision_function"):
            margin = self.classifier.decision_function(scaled)
        elif hasattr(self.classifier, "predict_proba"):
            margin = self.classifier.predict_proba(scaled)[:, 1] - 0.5
        else:
            margin = self.classifier.predict(scaled)
        return np.asarray(margin, dtype=np.float32)

    @classmethod
    def to_stored(cls, functions: Sequence[ClassifierFunction]) -> Stored:
        (own,) = functions
        arrays = {"shift": own.shift, "factor": own.factor}
        return Stored(arrays | stacked_fields(functions, "features"), classifier_to_bytes(own.classifier))

    @classmethod
    def from_stored(cls, stored: Stored) -> list[ClassifierFunction]:
        if stored.blob is None:
            raise stored.damaged("come with their file of skops, got none")
        arrays = stored.arrays
        classifier = classifier_from_bytes(stored.blob, stored.trusted, stored.where)
        function = cls(classifier, arrays["shift"], arrays["factor"], features_in(arrays))
        function._try(stored)
        return [function]

    def _try(self, stored: Stored) -> None:
        """Refuse a classifier that does not give one finite margin per row: what is in it came from a file."""
        rows = np.zeros((2, len(self.shift)), np.float32)
        with reading(f"{stored.where} must be a classifier of {rows.shape[1]} features", (Exception,)):
            margins = self.own_margins(rows)
        if margins.shape != (2,) or not np.isfinite(margins).all():
            raise stored.damaged(f"give one finite margin per row, got {str(margins)[:80]} for two")


@dataclass(frozen=True)
class ClassifierLearner(Learner):
    """Fits clones of a classifier; trees, forests and linear classifiers become plain arrays at once."""

    runs_in: ClassVar[Literal["processes"]] = "processes"
    classifier: Any
    scaling: str = "columns"

    def fit(self, rows: GatheredRows, z: NDArray[np.int8], features: Features, seed: int) -> Fitted:
        from sklearn.base import clone

        classifier = clone(self.classifier)
        if "random_state" in classifier.get_params() and classifier.get_params()["random_state"] is None:
            classifier.set_params(random_state=seed % 2**32)
        if _is_tree(classifier):  # trees do not care for scale, and their thresholds stay readable without it
            converted = trees_of(classifier.fit(rows.values, z), features)
            if converted is not None:
                return Fitted(converted, converted.own_margins(rows.values), z)
        shift, factor = (part.astype(np.float32) for part in standardization(rows, self.scaling))
        classifier.fit((rows.values - shift) * factor, z)
        if is_linear(classifier):
            linear = linear_of(classifier, shift, factor)
            return Fitted(replace(linear, features=features), linear.margins(rows.values), z)
        function = ClassifierFunction(classifier, shift, factor, features)
        return Fitted(function, function.own_margins(rows.values), z)


def linear_of(classifier: Any, shift: Floats, factor: Floats) -> LinearFunction:
    """Convert a fitted linear classifier on features (x - shift) * factor to a function of x."""
    weights = np.ravel(classifier.coef_).astype(np.float64) * factor
    bias = np.ravel(classifier.intercept_).astype(np.float64).sum() - weights @ shift  # a single one, or none: 0.0
    return LinearFunction(weights.astype(np.float32), np.float32(bias))


def make_learner(kind: Any, settings: LearnerSettings) -> Learner:
    """Return the learner that a parameter ``hash_function`` means.

    Parameters
    ----------
    kind : str or scikit-learn classifier, the name of a registered kind that has a learner, or any binary classifier
    settings : LearnerSettings, what a registered learner may ask for

    Returns
    -------
    Learner, of that kind
    """
    if isinstance(kind, str) and kind in LEARNERS:
        return LEARNERS[kind](settings)
    if hasattr(kind, "fit") and hasattr(kind, "predict") and hasattr(kind, "get_params"):
        return ClassifierLearner(kind, settings.scaling)
    names = ", ".join(map(repr, sorted(LEARNERS)))
    raise ValueError(f"hash_function must be {names} or a scikit-learn classifier, got {kind!r}")


def _is_tree(classifier: Any) -> bool:
    return type(classifier).__module__.startswith(("sklearn.tree.", "sklearn.ensemble._forest", "sklearn.ensemble._gb"))
