"""Any scikit-learn binary classifier as a hash function; and which learner a parameter ``hash_function`` means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ilhash._extras import require
from ilhash.vectors import GatheredRows

from ._base import Features, Floats, HashFunction, Stored, features_in, own_columns, stacked_fields
from ._kinds import LEARNERS, register
from ._learner import Fitted, Learner, LearnerSettings, standardization
from ._trees import trees_of


@register
@dataclass(frozen=True, eq=False)
class ClassifierFunction(HashFunction):
    """A fitted classifier on features (x - shift) * factor: its margin, or p(+1) - 1/2 where it has none."""

    kind: ClassVar[str] = "classifier"
    classifier: Any
    shift: Floats
    factor: Floats
    features: Features = None

    def margins(self, X: Floats) -> Floats:
        return self.own_margins(own_columns(X, self.features))

    def own_margins(self, own: Floats) -> Floats:
        """Return the margins of rows that hold the function's own features only."""
        scaled = (own - self.shift) * self.factor
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
        return Stored(arrays | stacked_fields(functions, "features"), _to_skops(own.classifier))

    @classmethod
    def from_stored(cls, stored: Stored) -> list[ClassifierFunction]:
        arrays, classifier = stored.arrays, _from_skops(stored.blob, stored.trusted)
        return [cls(classifier, arrays["shift"], arrays["factor"], features_in(arrays))]


@dataclass(frozen=True)
class ClassifierLearner(Learner):
    """Fits clones of a classifier; trees and forests become plain arrays at once."""

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
        function = ClassifierFunction(classifier, shift, factor, features)
        classifier.fit((rows.values - shift) * factor, z)
        return Fitted(function, function.own_margins(rows.values), z)


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


def _skops() -> Any:
    return require("skops.io", "skops", "saving and loading classifiers other than SVMs and trees")


def _to_skops(classifier: Any) -> bytes:
    io = _skops()
    data: bytes = io.dumps(classifier)
    unknown = io.get_untrusted_types(data=data)
    own = type(classifier).__name__
    if unknown and not type(classifier).__module__.startswith("sklearn."):
        raise ValueError(
            f"hash_function must be a classifier of scikit-learn for the model to be saved, got {own}, which would "
            f"bring types that a loader does not trust: {', '.join(unknown)}"
        )
    return data


def _from_skops(data: bytes | None, trusted: Sequence[str]) -> Any:
    if data is None:
        raise ValueError("a saved classifier must come with its file of skops, got none")
    io = _skops()
    unknown = [name for name in io.get_untrusted_types(data=data) if name not in trusted]
    unknown = [name for name in unknown if not name.startswith(("sklearn.", "numpy.", "scipy."))]
    if unknown:
        raise ValueError(
            f"a saved classifier must hold types that are trusted, got {', '.join(unknown)}; ilhash.load(path, "
            "trusted=[...]) names those you trust"
        )
    return io.loads(data, trusted=io.get_untrusted_types(data=data))
