"""Labels as they come, read for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray


def label_codes(labels: Any, name: str) -> NDArray[Any]:
    """Return one label per item as int64 or text, which can be sorted and compared without surprise."""
    try:
        array = np.asarray(labels)
    except ValueError:
        raise ValueError(f"{name} must be one label per item, got rows of different lengths") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"{name} must be one label per item, got {array.ndim}-D with shape {array.shape}")
    if array.dtype.kind == "O":
        array = _from_objects(array, name)
    if array.dtype.kind == "f":
        return _from_floats(array, name)
    if array.dtype.kind == "u" and len(array) and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be whole numbers within int64, got {array.max()}")
    if array.dtype.kind in "biu":
        return array.astype(np.int64)
    if array.dtype.kind not in "US":
        raise ValueError(f"{name} must be whole numbers or text, got {array.dtype}")
    return array


def _from_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    values = array.tolist()
    missing = sum(value is None or value != value for value in values)
    if missing:
        raise ValueError(f"{name} must hold labels, got None or NaN in {missing} of {len(values)} entries")
    if all(isinstance(value, str) for value in values):
        return np.asarray(values, dtype=np.str_)
    if all(isinstance(value, bool | int | float | np.number | np.bool_) for value in values):
        return np.asarray(values)
    kinds = sorted({type(value).__name__ for value in values})
    raise ValueError(f"{name} must be all whole numbers or all text, got {', '.join(kinds)}")


def _from_floats(array: NDArray[Any], name: str) -> NDArray[np.int64]:
    bad = int(np.count_nonzero(np.isnan(array)))
    if bad:
        raise ValueError(f"{name} must hold labels, got None or NaN in {bad} of {len(array)} entries")
    whole = (array == np.round(array)) & (np.abs(array) < 2.0**63)
    if not whole.all():
        got = f"{np.count_nonzero(~whole)} of {len(array)} entries such as {array[~whole][0]}"
        hint = "for numbers that are never quite equal take by_neighbors"
        raise ValueError(f"{name} must be whole numbers or text, got {got}; {hint}")
    return array.astype(np.int64)


def indicators(base: Any, queries: Any) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Return indicator matrices (items x labels) of base and queries over the same labels."""
    sets = [_is_sets(labels) for labels in (base, queries)]
    if any(sets):
        if not all(sets):
            raise ValueError("query_labels must be of the form of base_labels, got sets of labels and a matrix")
        numbers = {label: number for number, label in enumerate(set().union(*base))}
        return _from_sets(base, numbers), _from_sets(queries, numbers)
    tables = _indicator(base, "base_labels"), _indicator(queries, "query_labels")
    if tables[0].shape[1] != tables[1].shape[1]:
        got = f"{tables[1].shape[1]} and {tables[0].shape[1]}"
        raise ValueError(f"query_labels must have the columns of base_labels, got {got}")
    return tables


def _is_sets(labels: Any) -> bool:
    if scipy.sparse.issparse(labels) or len(labels) == 0:
        return False
    return all(isinstance(entry, set | frozenset) for entry in labels)


def _from_sets(sets: Any, numbers: dict[Any, int]) -> scipy.sparse.csr_array:
    """Labels that no base item has are left out: nothing shares them."""
    known = [sorted(numbers[label] for label in labels if label in numbers) for labels in sets]
    offsets = np.cumsum([0, *map(len, known)])
    columns = np.array([number for row in known for number in row], np.int64)
    return scipy.sparse.csr_array((np.ones(len(columns), np.bool_), columns, offsets), (len(known), len(numbers)))


def _indicator(labels: Any, name: str) -> scipy.sparse.csr_array:
    try:
        table = scipy.sparse.csr_array(labels if scipy.sparse.issparse(labels) else np.asarray(labels))
    except (TypeError, ValueError):
        rule = f"{name} must be an indicator matrix of 0 and 1 or a sequence of sets"
        raise ValueError(f"{rule}, got {type(labels).__name__} of something else") from None
    if table.ndim != 2:
        raise ValueError(f"{name} must be an indicator matrix (items x labels), got {table.ndim}-D")
    other = int(np.count_nonzero((table.data != 0) & (table.data != 1)))
    if other:
        raise ValueError(f"{name} must be an indicator matrix of 0 and 1, got {other} other values")
    table = table.astype(np.bool_)
    table.eliminate_zeros()
    return table
