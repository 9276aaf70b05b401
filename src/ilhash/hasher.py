"""What every model has in common: hash functions that encode vectors, and a directory that it is saved to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ilhash import codes
from ilhash._parameters import Unavailable
from ilhash.functions import Encoder, HashFunction, functions_from_arrays, functions_to_arrays
from ilhash.persistence import Contents, save
from ilhash.vectors import as_matrix, chunks

__all__ = ["Hasher"]

Own = TypeVar("Own", bound="Hasher")

_PLAIN = (str, int, float, bool, type(None))


class Hasher(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer from vectors to packed codes; ``fit`` is what each method adds.

    Attributes
    ----------
    functions_ : list of hash functions, one per bit
    origin_ : what is subtracted from every vector
    seed_ : the whole number that random_state came to
    n_features_in_, feature_names_in_ : as in scikit-learn
    """

    functions_: list[HashFunction]
    origin_: NDArray[np.float32]
    seed_: int

    # -------------------------------------------------------------------------------------------- encoding

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return the margins, float32 (n, n_bits); a bit is margin > 0."""
        matrix = self._input(X)
        out = np.empty((len(matrix), len(self.functions_)), np.float32)
        for rows, margins in self._margins(matrix):
            out[rows] = margins
        return out

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """Return packed codes, uint8 (n, ceil(n_bits / 8)), most significant bit first, padding zero."""
        matrix = self._input(X)
        out = np.empty((len(matrix), codes.bytes_per_code(len(self.functions_))), np.uint8)
        for rows, margins in self._margins(matrix):
            out[rows] = codes.pack(margins > 0)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return one name per byte of a code."""
        check_is_fitted(self)
        width = codes.bytes_per_code(len(self.functions_))
        return np.asarray([f"{type(self).__name__.lower()}_byte{i}" for i in range(width)], dtype=object)

    def _prepare_encoder(self) -> None:
        self._encoder = Encoder(self.functions_, self.n_features_in_)

    def _input(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self._read(X, reset=False)

    def _read(self, X: Any, reset: bool) -> NDArray[Any]:
        matrix = as_matrix(X)
        validate_data(self, X if hasattr(X, "columns") else matrix, reset=reset, skip_check_array=True)
        return matrix

    def _margins(self, matrix: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        for rows, chunk in chunks(matrix, self.origin_):
            yield rows, self._encoder.margins(chunk)

    # -------------------------------------------------------------------------------------------- training

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the model as it was if training fails."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _with_bits(self: Own, chosen: list[int]) -> Own:
        """Return a model of some of the bits."""
        part = type(self)(**{**self.get_params(deep=False), "n_bits": len(chosen)})
        for name, value in vars(self).items():
            if name.endswith("_"):
                setattr(part, name, value)
        part.functions_ = [self.functions_[i] for i in chosen]
        part._prepare_encoder()
        return part

    # -------------------------------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a directory of its own; ilhash.load reads it."""
        check_is_fitted(self)
        save(self, path)

    def _to_contents(self) -> Contents:
        arrays, blobs = functions_to_arrays(self.functions_)
        arrays["origin"] = self.origin_
        document = {
            "model": type(self).__name__,
            "parameters": {name: _to_json(value) for name, value in self.get_params(deep=False).items()},
            "n_bits": len(self.functions_),
            "n_features": self.n_features_in_,
            "feature_names": [str(name) for name in getattr(self, "feature_names_in_", ())],
            "seed": self.seed_,
            **self._own_document(),
        }
        return Contents(document, arrays, blobs)

    @classmethod
    def _from_contents(cls: type[Own], contents: Contents, trusted: list[str] | None) -> Own:
        document, arrays = contents.document, dict(contents.arrays)
        model = cls(**{name: _from_json(name, value) for name, value in document["parameters"].items()})
        model.origin_ = arrays.pop("origin")
        model.functions_ = functions_from_arrays(arrays, contents.blobs, trusted)
        model.n_features_in_ = document["n_features"]
        if document["feature_names"]:
            model.feature_names_in_ = np.asarray(document["feature_names"], dtype=object)
        model.seed_ = document["seed"]
        model._read_own_document(document)
        model._prepare_encoder()
        return model

    def _own_document(self) -> dict[str, Any]:
        """Return what this kind of model adds to the description of a model."""
        return {}

    def _read_own_document(self, document: dict[str, Any]) -> None:
        """Do the inverse of :meth:`_own_document`."""

    # -------------------------------------------------------------------------------------------- scikit-learn

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_encoder"}  # closures do not travel

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "functions_"):
            self._prepare_encoder()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _to_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [_to_json(part) for part in value]
    if isinstance(value, Unavailable):
        return {"unavailable": value.description}
    return value if isinstance(value, _PLAIN) else {"unavailable": repr(value)}


def _from_json(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return Unavailable(name, value["unavailable"])
    if isinstance(value, list):
        parts = [_from_json(name, part) for part in value]
        lost = next((part for part in parts if isinstance(part, Unavailable)), None)
        return lost if lost is not None else parts
    return value
