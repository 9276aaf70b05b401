"""Labels as they come, read for comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash._labels import labels_array, missing_labels, plain_labels


def one_label_each(labels: Any, name: str) -> NDArray[Any]:
    """Return one label per item as an array, in which some may be missing."""
    if scipy.sparse.issparse(labels):
        raise ValueError(f"{name} must be one label per item, got a sparse matrix of shape {labels.shape}")
    try:
        array = labels_array(labels)
    except ValueError:
        raise ValueError(f"{name} must be one label per item, got rows of different lengths") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"{name} must be one label per item, got {array.ndim}-D with shape {array.shape}")
    return array


def known_only(packed: Any, labels: Any, name: str, *, may_be_none: bool = False) -> tuple[Any, Any]:
    """Leave out codes whose label is None or NaN: nobody can say whether they were found rightly.

    That none is left is refused, unless ``may_be_none``: of a part of the labels.
    """
    if not _may_miss(labels):
        return packed, labels
    array = one_label_each(labels, name)
    known = ~missing_labels(array)
    if known.all() or len(known) != len(packed):  # the latter is refused where codes and labels meet
        return packed, labels
    if not known.any() and not may_be_none:
        raise ValueError(f"{name} must hold labels, got None or NaN in all {len(known)} entries")
    return np.asarray(packed)[known], array[known]


def _may_miss(labels: Any) -> bool:
    """Whether these are labels one each: sets and matrices have no None or NaN for an entry."""
    dtype = getattr(labels, "dtype", None)
    if getattr(labels, "ndim", 1) != 1:
        return False
    if isinstance(dtype, np.dtype):
        return dtype.kind in "fO"
    return isinstance(labels, Iterable) and any(
        not isinstance(label, set | frozenset | list | tuple | np.ndarray) for label in labels
    )


def label_codes(labels: Any, name: str) -> NDArray[Any]:
    """Return one label per item, none missing, as int64 or text: to be sorted and compared without surprise."""
    array = one_label_each(labels, name)
    missing = int(np.count_nonzero(missing_labels(array)))
    if missing:
        raise ValueError(f"{name} must hold labels, got None or NaN in {missing} of {len(array)} entries")
    array = plain_labels(array, name)
    if array.dtype.kind == "f":
        return _from_floats(array, name)
    if array.dtype.kind == "u" and len(array) and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be whole numbers within int64, got {array.max()}")
    if array.dtype.kind in "biu":
        return array.astype(np.int64)
    if array.dtype.kind not in "US":
        raise ValueError(f"{name} must be whole numbers or text, got {array.dtype}")
    return array


def _from_floats(array: NDArray[Any], name: str) -> NDArray[np.int64]:
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
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return False
    if scipy.sparse.issparse(labels) or not isinstance(labels, Collection) or len(labels) == 0:
        return False
    return all(isinstance(entry, set | frozenset) for entry in labels)


def _from_sets(sets: Any, numbers: dict[Any, int]) -> scipy.sparse.csr_array:
    """Labels that no base item has are left out: nothing shares them."""
    known = [sorted(numbers[label] for label in labels if label in numbers) for labels in sets]
    offsets = np.cumsum([0, *map(len, known)])
    columns = np.array([number for row in known for number in row], np.int64)
    return scipy.sparse.csr_array((np.ones(len(columns), np.bool_), columns, offsets), (len(known), len(numbers)))


def _indicator(labels: Any, name: str) -> scipy.sparse.csr_array:
    rule = f"{name} must be an indicator matrix of 0 and 1 or a sequence of sets"
    try:
        given = labels if scipy.sparse.issparse(labels) else np.asarray(labels)
    except (TypeError, ValueError):
        raise ValueError(f"{rule}, got {type(labels).__name__} of something else") from None
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise ValueError(f"{rule}, got {given.ndim}-D {given.dtype}")
    table = scipy.sparse.csr_array(given)
    other = int(np.count_nonzero((table.data != 0) & (table.data != 1)))
    if other:
        raise ValueError(f"{name} must be an indicator matrix of 0 and 1, got {other} other values")
    table = table.astype(np.bool_)
    table.eliminate_zeros()
    return table
