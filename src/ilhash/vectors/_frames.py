"""Frames of pandas and polars and tables of pyarrow: which columns are features, and which are taken by name.

A column of numbers is a feature; a column of vectors, lists of numbers of one length, is as many. None of the three
libraries is imported: a frame comes with its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LISTS = (list, tuple, np.ndarray)


def columns_of(X: Any) -> list[Any] | None:
    """Return the names of the columns of a frame or table; None of anything else."""
    if hasattr(X, "map_partitions"):  # dask's, which is many frames
        return None
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return list(X.columns)
    library = type(X).__module__.partition(".")[0]
    if library == "polars" and hasattr(X, "get_columns"):
        return list(X.columns)
    return list(X.column_names) if library == "pyarrow" and hasattr(X, "column_names") else None


def column(X: Any, name: str, what: str) -> NDArray[Any]:
    """Return a column of a frame as an array; errors say what it was to be.

    Parameters
    ----------
    X : frame or table
    name : str, of the column
    what : str, the argument that names it

    Returns
    -------
    array (n,), of objects where they are texts or lists; (n, d) of vectors of fixed length
    """
    names = columns_of(X)
    if names is None:
        got = type(X).__name__
        raise ValueError(f"{what} must be given itself unless X is a frame with a column {name!r}, got {got}")
    if names.count(name) != 1:
        listed = ", ".join(str(one) for one in names[:20])
        raise ValueError(f"{what} must name one column of X, got {name!r} among {listed}")
    own = X.column(name) if hasattr(X, "column_names") else X[name]
    if hasattr(X, "column_names"):
        return np.asarray(own.to_numpy(zero_copy_only=False))
    return np.asarray(own.to_numpy())


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """Return a frame without the columns of these names that it has; anything else as it is."""
    own = columns_of(X)
    if own is None or not set(own) & set(names):
        return X
    kept = [name for name in own if name not in names]
    return X[kept] if hasattr(X, "iloc") else X.select(kept)


def named_columns(X: Any, y: Any, ids: Any) -> tuple[Any, Any, list[str]]:
    """Take labels, and ids, that are given by the name of a column out of a frame.

    Parameters
    ----------
    X : vectors; a frame where y or ids are names
    y : labels, or the name of their column
    ids : str, optional, the name of the column of ids

    Returns
    -------
    X, y, names : X without these columns, the labels, and the names of the columns that are no features
    """
    if ids is not None and not isinstance(ids, str):
        raise TypeError(f"ids must be the name of a column of X, got {type(ids).__name__}")
    taken = []
    if ids is not None:
        column(X, ids, "ids")
        taken.append(ids)
    if isinstance(y, str):
        taken.append(y)
        y = column(X, y, "y")
    return without_columns(X, taken), y, taken


def has_named_features(X: Any) -> bool:
    """Whether X is a frame in which every feature has a name: one without columns of vectors."""
    names = columns_of(X)
    return names is not None and _matrix_of_vectors(X, names) is None


def frame_matrix(X: Any, name: str) -> NDArray[Any] | None:
    """Return the features of a frame as an array; None of what NumPy makes an array of itself."""
    names = columns_of(X)
    if names is None:
        return None
    found = _matrix_of_vectors(X, names)
    if found is not None or hasattr(X, "iloc"):
        return None if found is None else _joined(found, name)
    return _joined([(str(one), column(X, one, name)) for one in names], name)


def _matrix_of_vectors(X: Any, names: list[Any]) -> list[tuple[str, NDArray[Any]]] | None:
    """Return all columns where one of them holds vectors."""
    if len(set(names)) != len(names) or not any(_may_be_vectors(X, name) for name in names):
        return None
    found = [(str(name), column(X, name, "X")) for name in names]
    return found if any(_holds_vectors(values) for _, values in found) else None


def _may_be_vectors(X: Any, name: Any) -> bool:
    """Whether a column is of a type that can hold lists, without reading it."""
    if hasattr(X, "column_names"):
        return "list" in str(X.schema.field(name).type)
    return str(X[name].dtype).lower().startswith(("list", "array", "fixed_size_list", "large_list", "object"))


def _holds_vectors(values: NDArray[Any]) -> bool:
    if values.ndim == 2:
        return True
    return values.dtype.kind == "O" and any(isinstance(value, _LISTS) for value in values[:100])


def _joined(columns: list[tuple[str, NDArray[Any]]], name: str) -> NDArray[Any]:
    parts = [_features(values, f"{name}[{own!r}]") for own, values in columns]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _features(values: NDArray[Any], where: str) -> NDArray[Any]:
    """Return the features (n, d) that a column is."""
    if values.dtype.kind in "biuf":
        return values[:, None] if values.ndim == 1 else values
    if _holds_vectors(values):
        return _stacked(values, where)
    try:
        return np.asarray(values, dtype=np.float64)[:, None]
    except (TypeError, ValueError):
        raise ValueError(
            f"{where} must hold numbers, or vectors of one length, got {values.dtype} such as {str(values[0])[:40]!r}; "
            "name it as ids= or y=, or leave it out"
        ) from None


def _stacked(values: NDArray[Any], where: str) -> NDArray[Any]:
    missing = sum(not isinstance(value, _LISTS) for value in values)
    if missing:
        raise ValueError(f"{where} must hold a vector in every row, got none in {missing} of {len(values)}")
    lengths = {len(value) for value in values}
    if len(lengths) > 1:
        raise ValueError(f"{where} must hold vectors of one length, got lengths {min(lengths)} to {max(lengths)}")
    stacked = np.array([np.asarray(value) for value in values])
    if stacked.dtype.kind == "O":  # a number that is missing
        stacked = stacked.astype(np.float64)
    return stacked
