"""Models by name: ILH, the other methods, and the variants that the paper speaks of."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import ILH, Mix, methods
from ilhash.affinity import EuclideanNeighbors
from ilhash.diversity import seed_for
from ilhash.functions import HashFunction, KernelLearner, LearnerSettings
from ilhash.graph import graph_couplings
from ilhash.hasher import Hasher, with_current_names
from ilhash.methods import KSHcut
from ilhash.methods.authoring import TrainingData, TrainingSet, function_for_bit


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


_OWN: dict[str, type[Hasher]] = {"ILH": ILH, "PrivateKSHcut": PrivateKSHcut, "NeighbourKSHcut": NeighbourKSHcut}

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
