"""Models by name: ILH, the other methods, and the variants that the paper speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash import ILH, Mix, methods
from ilhash.affinity import EuclideanNeighbours
from ilhash.diversity import seed_for
from ilhash.functions import HashFunction, make_learner
from ilhash.hasher import Hasher
from ilhash.methods import KSHcut
from ilhash.methods._base import Source, TrainingSet
from ilhash.methods._kshcut import cut_codes
from ilhash.methods._two_step import function_for_bit
from ilhash.zstep import graph_couplings

__all__ = ["NeighbourKSHcut", "PrivateKSHcut", "fit_model", "make_model"]


class PrivateKSHcut(KSHcut):
    """KSHcut whose kernel functions have centres of their own, drawn for each bit among the training points."""

    def _learn(self, source: Source) -> list[HashFunction]:
        training = source.training_set()
        learner = make_learner(
            "kernel", C=self.C, scaling=self.scaling, n_centers=self.n_centers, common_sample=lambda: None
        )
        bits = self._bits(training, source.seed)
        return [
            function_for_bit(training.rows, bits[:, bit], learner, seed_for(source.seed, "centers", bit))
            for bit in range(bits.shape[1])
        ]


class NeighbourKSHcut(KSHcut):
    """KSHcut without labels: the nearest neighbours of a training point are similar, random others dissimilar."""

    supervised: ClassVar[bool] = False

    def _supervision(self, n_points: int, y: Any) -> Any:
        return None

    def _bits(self, training: TrainingSet, seed: int) -> NDArray[np.int8]:
        n = len(training.rows.values)
        drawn = EuclideanNeighbours(n).graph(
            np.arange(n),
            "laplacian",
            self.n_similar,
            self.n_dissimilar,
            seed_for(seed, "graph"),
            lambda: np.asarray(training.rows.values),
        )
        y = scipy.sparse.csr_array(graph_couplings(drawn.graph))
        y.data = np.sign(y.data)
        bits, self.report_["loss"] = cut_codes(y, self._start(training), passes=self.passes, seed=seed)
        return bits


_OWN: dict[str, type[Hasher]] = {"ILH": ILH, "PrivateKSHcut": PrivateKSHcut, "NeighbourKSHcut": NeighbourKSHcut}


def make_model(name: str, settings: Mapping[str, Any], n_bits: int, seed: int) -> Any:
    """Return an unfitted model."""
    kind = _OWN.get(name) or methods.get(name)
    return kind(n_bits=n_bits, random_state=seed, **settings)


def fit_model(
    name: str, settings: Mapping[str, Any], n_bits: int, seed: int, X: NDArray[Any], y: NDArray[Any] | None
) -> Any:
    """Train a model.

    ``start`` among the settings holds the settings of an ILH model to start from; ``parts`` those of the families of a
    mix, which share the bits equally.
    """
    own = dict(settings)
    if name == "Mix":
        share = n_bits // len(own["parts"])
        return Mix([make_model(part, about, share, seed) for part, about in own["parts"].items()]).fit(X, y)
    if "start" in own:
        own["start"] = ILH(n_bits=n_bits, random_state=seed, **own["start"]).fit(X, y)
    model = make_model(name, own, n_bits, seed)
    supervised = name == "ILH" or getattr(model, "supervised", False)
    return model.fit(X, y) if supervised and y is not None else model.fit(X)
