"""Bits of several trained models in one code: families of a mix, or generations of an ensemble that was extended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.functions import HashFunction
from ilhash.hasher import Hasher
from ilhash.storage import Contents, DamagedFileError, Record, checked_array


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Trained models, and which of them each bit is of: the i-th bit of a model is the i-th that ``owner`` names.

    Each model has an origin of its own, which its functions are relative to.
    """

    models: list[Any]
    owner: NDArray[np.int64]

    @classmethod
    def of(cls, models: list[Any]) -> SideBySide:
        """Return all bits of the models, in their order."""
        return cls(models, np.repeat(np.arange(len(models)), [len(model.functions_) for model in models]))

    @cached_property
    def places(self) -> list[NDArray[np.int64]]:
        """Where the bits of each model are."""
        return [np.flatnonzero(self.owner == number) for number in range(len(self.models))]

    @cached_property
    def inside(self) -> NDArray[np.int64]:
        """The number of each bit within its model."""
        numbers = np.empty(len(self.owner), np.int64)
        for own in self.places:
            numbers[own] = np.arange(len(own))
        return numbers

    @property
    def functions(self) -> list[HashFunction]:
        """The functions of all bits, in the order of the bits."""
        return self.of_each(lambda model: model.functions_)

    def of_each(self, parts: Any) -> list[Any]:
        """Return what ``parts`` gives for the bits of each model, in the order of the bits."""
        found = [parts(model) for model in self.models]
        return [found[owner][number] for owner, number in zip(self.owner, self.inside, strict=True)]

    @property
    def numbers_per_row(self) -> int:
        """What the margins of a row take at once, beside the row."""
        return max([len(self.owner), *(int(model._numbers_per_row) for model in self.models)])

    def margins(self, block: NDArray[Any], name: str) -> NDArray[np.float32]:
        """Return the margins of some rows of X; errors call them by the name."""
        out = np.empty((len(block), len(self.owner)), np.float32)
        for places, model in zip(self.places, self.models, strict=True):
            out[:, places] = model._margins(block, name)
        return out

    def chosen(self, bits: list[int]) -> SideBySide:
        """Return some of the bits, of models that keep at least one."""
        places = np.array(bits)
        owner = self.owner[places]
        kept = [number for number in range(len(self.models)) if (owner == number).any()]
        models = [self.models[number]._with_bits(self.inside[places[owner == number]].tolist()) for number in kept]
        return SideBySide(models, np.searchsorted(kept, owner))

    # -------------------------------------------------------------------------------------------- files

    def to_contents(self, document: dict[str, Any], name: str, plural: str) -> Contents:
        """Return a description with those of the models under ``plural``, and whose each bit is as array ``name``."""
        arrays: dict[str, NDArray[Any]] = {name: self.owner.astype(np.int32)}
        blobs: dict[str, bytes] = {}
        documents = []
        for number, model in enumerate(self.models):
            own = model._to_contents()
            documents.append(own.document)
            arrays |= {f"{number}.{part}": array for part, array in own.arrays.items()}
            blobs |= {f"classifier-{number}.{part}": blob for part, blob in own.blobs.items()}
        return Contents({**document, "n_bits": len(self.owner), plural: documents}, arrays, blobs)

    @classmethod
    def from_contents(
        cls, contents: Contents, name: str, plural: str, trusted: list[str] | None, class_of: Any
    ) -> SideBySide:
        """Do the inverse; ``class_of`` gives the class of a model's description, or refuses it."""
        record = Record(contents.document, contents.where)
        models: list[Hasher] = []
        names, n_blobs = {name}, 0
        for number, part in enumerate(record.records(plural)):
            kind = class_of(part)
            arrays = _of_model(number, contents.arrays, "")
            blobs = _of_model(number, contents.blobs, "classifier-")
            names |= {f"{number}.{one}" for one in arrays}
            n_blobs += len(blobs)
            own = Contents(part.document, arrays, blobs, part.where)
            models.append(kind._from_contents(own, trusted, class_of))
        if set(contents.arrays) - names or len(contents.blobs) != n_blobs:
            raise DamagedFileError(f"{record.where} must come with arrays and files of its {plural}, got others too")
        return cls(models, _checked_owner(contents.arrays.get(name), models, record, name, plural))


def _of_model(number: int, named: Mapping[str, Any], before: str) -> dict[str, Any]:
    beginning = f"{before}{number}."
    return {name.removeprefix(beginning): value for name, value in named.items() if name.startswith(beginning)}


def _checked_owner(owner: Any, models: list[Any], record: Record, name: str, plural: str) -> NDArray[np.int64]:
    """Return whose each bit is, if all models are whole and see the same features."""
    sizes = [len(one.functions_) for one in models]
    if not models or len({one.n_features_in_ for one in models}) > 1:
        raise DamagedFileError(f"{record.where} must be of {plural} with the same features, got others, or none")
    length, most = record.whole("n_bits", 1), len(models) - 1
    checked_array(owner, f"{name} of {record.where}", np.int32, (length,), least=0, most=most)
    if np.bincount(owner, minlength=len(sizes)).tolist() != sizes:
        raise DamagedFileError(f"{name} of {record.where} must name each of its {plural} as often as it has bits")
    return np.asarray(owner, np.int64)
