"""Labels as they come: which of them are missing, and the others as plain numbers or text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def labels_array(labels: Any) -> NDArray[Any]:
    """Return labels as an array in which missing ones stay what they are (NumPy would make the text "nan" of one)."""
    if isinstance(labels, list | tuple) and any(_is_missing(label) for label in labels):
        array = np.empty(len(labels), object)
        array[:] = labels
        return array
    return np.asarray(labels)


def missing_labels(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels, one per item, are unknown: None, NaN, or the NA of pandas."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels), np.bool_)
    if labels.dtype.kind == "O":
        return np.array([_is_missing(label) for label in labels.tolist()], np.bool_)
    return np.zeros(len(labels), np.bool_)


def plain_labels(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return labels without missing ones that are Python objects as numbers or text; refuse a mixture."""
    if labels.dtype.kind != "O":
        return labels
    values = labels.tolist()
    if all(isinstance(value, str) for value in values):
        return np.asarray(values, dtype=np.str_)
    if all(isinstance(value, bool | int | float | np.number | np.bool_) for value in values):
        return np.asarray(values)
    kinds = sorted({type(value).__name__ for value in values})
    raise ValueError(f"{name} must be all whole numbers or all text, got {', '.join(kinds)}")


def _is_missing(label: Any) -> bool:
    # pandas' NA refuses to be compared, and pandas need not be there: it is known by its class.
    if label is None or type(label).__name__ == "NAType":
        return True
    return isinstance(label, float | np.floating) and bool(label != label)
