"""Models by name: ILH, the other methods, and the variants that the paper speaks of."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import ILH, Mix, codes, methods
from ilhash._parameters import one_of
from ilhash.affinity import EuclideanNeighbors
from ilhash.diversity import seed_for
from ilhash.functions import HashFunction, KernelLearner, LearnerSettings
from ilhash.graph import graph_couplings
from ilhash.hasher import Hasher, with_current_names
from ilhash.methods import KSHcut
from ilhash.methods.authoring import TrainingData, TrainingSet, TwoStepMethod, function_for_bit


class PrivateKSHcut(KSHcut):
    """KSHcut whose kernel functions have centres of their own, drawn for each bit among the training points."""

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        training = data.training_set()
        settings = LearnerSettings(C=self.C, scaling=self.scaling, n_centers=self.n_centers)
        learner = KernelLearner.from_settings(settings)
        bits = self._bits(training, data.seed)
        return [
            function_for_bit(training.rows, bits[:, bit], learner, seed_for(data.seed, "centers", bit))
            for bit in range(bits.shape[1])
        ]


class NeighbourKSHcut(KSHcut):
    """KSHcut without labels: the nearest neighbours of a training point are similar, random others dissimilar."""

    supervised: ClassVar[bool] = False

    def _supervision(self, n_points: int, y: Any) -> Any:
        return None

    def _pairs(self, training: TrainingSet, seed: int) -> scipy.sparse.csr_array:
        values = np.asarray(training.rows.values)
        neighbours = EuclideanNeighbors(len(values))
        drawn = neighbours.graph(
            np.arange(len(values)), "laplacian", self.n_similar, self.n_dissimilar, seed, lambda: values
        )
        y = scipy.sparse.csr_array(graph_couplings(drawn.graph))
        y.data = np.sign(y.data)
        return y


@dataclass(eq=False, repr=False, kw_only=True)
class Refitted(TwoStepMethod):
    """A code for each class, which another method finds, fitted bit by bit with functions of any kind.

    SDH has kernels and CCAITQ hyperplanes of their own. What either has learnt of the labels is a code for each class
    (here: what most of its training points have, bit by bit); whatever is better or worse with other functions is then
    the functions' doing.

    Parameters
    ----------
    codes_of : {"SDH", "CCAITQ"}, default "SDH"
    """

    codes_of: str = one_of("SDH", "CCAITQ")

    def _bits(self, training: TrainingSet, seed: int) -> NDArray[np.int8]:
        kind, classes = methods.get(self.codes_of), training.labels.argmax(axis=1)
        known = inspect.signature(kind).parameters
        own = {name: getattr(self, name) for name in ("n_centers", "scaling") if name in known}
        values = np.asarray(training.rows.values)
        model = kind(n_bits=self.n_bits, n_train=len(values), random_state=seed, **own).fit(values, classes)
        bits = codes.unpack(model.transform(values), self.n_bits).astype(np.float32)
        majority = training.labels.T @ (2.0 * bits - 1.0) >= 0
        return np.where(majority[classes], 1, -1).astype(np.int8)


_OWN: dict[str, type[Hasher]] = {"ILH": ILH, "PrivateKSHcut": PrivateKSHcut, "NeighbourKSHcut": NeighbourKSHcut}
_OWN["Refitted"] = Refitted

PAPER = {"start": "random", "scaling": "columns", "n_centers": 500}  # of cells that do not name them


def stored_parameters(name: str) -> set[str]:
    """Return the parameters of a method, also by the names that cells were first stored under."""
    kind = methods.get(name)
    return {*inspect.signature(kind).parameters, *kind.renamed}


def make_model(name: str, settings: Mapping[str, Any], n_bits: int, seed: int) -> Any:
    """Return an unfitted model; settings are those of a cell."""
    kind = _OWN.get(name) or methods.get(name)
    paper = PAPER if kind is ILH else {}
    return kind(n_bits=n_bits, random_state=seed, **{**paper, **with_current_names(kind, settings)})


def fit_model(
    name: str, settings: Mapping[str, Any], n_bits: int, seed: int, X: NDArray[Any], y: NDArray[Any] | None
) -> Any:
    """Train a model.

    ``start`` among the settings of another method holds those of an ILH model to start from; ``parts`` those of the
    families of a mix, which share the bits equally.
    """
    own = dict(settings)
    if name == "Mix":
        share = n_bits // len(own["parts"])
        return Mix([make_model(family, about, share, seed) for family, about in own["parts"].items()]).fit(X, y)
    if isinstance(own.get("start"), Mapping):
        own["start"] = make_model("ILH", own["start"], n_bits, seed).fit(X, y)
    model = make_model(name, own, n_bits, seed)
    supervised = name == "ILH" or getattr(model, "supervised", False)
    return model.fit(X, y) if supervised and y is not None else model.fit(X)
