"""A fitted ILH as the contents of a model directory, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ilhash.ensemble._bit import BitReport
from ilhash.ensemble._parameters import Unavailable
from ilhash.functions import functions_from_arrays, functions_to_arrays
from ilhash.persistence import Contents

__all__ = ["from_contents", "to_contents"]

_PLAIN = (str, int, float, bool, type(None))


def to_contents(model: Any) -> Contents:
    """Describe a fitted ILH."""
    arrays, blobs = functions_to_arrays(model.functions_)
    arrays["origin"] = model.origin_
    document = {
        "model": "ILH",
        "parameters": {name: _to_json(value) for name, value in model.get_params(deep=False).items()},
        "n_bits": len(model.functions_),
        "n_features": model.n_features_in_,
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", ())],
        "seed": model.seed_,
        "n_train": model.n_train_,
        "n_disjoint": model.n_disjoint_,
        "fingerprint": model.fingerprint_,
        "bits": [asdict(report) for report in model.bits_],
    }
    return Contents(document, arrays, blobs)


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


def from_contents(kind: Any, contents: Contents, trusted: list[str] | None) -> Any:
    """Build the ILH that was described."""
    document = contents.document
    arrays = dict(contents.arrays)
    model = kind(**{name: _from_json(name, value) for name, value in document["parameters"].items()})
    model.origin_ = arrays.pop("origin")
    model.functions_ = functions_from_arrays(arrays, contents.blobs, trusted)
    model.bits_ = [BitReport(**report) for report in document["bits"]]
    model.n_features_in_ = document["n_features"]
    if document["feature_names"]:
        model.feature_names_in_ = np.asarray(document["feature_names"], dtype=object)
    model.seed_ = document["seed"]
    model.n_train_ = document["n_train"]
    model.n_disjoint_ = document["n_disjoint"]
    model.fingerprint_ = document["fingerprint"]
    return model
