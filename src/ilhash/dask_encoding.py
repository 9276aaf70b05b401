"""Encoding as an operation on dask collections: lazy, block by block, on whatever runs them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ilhash import codes

__all__ = ["dask_encode"]


def dask_encode(model: Any, X: Any) -> Any:
    """Encode a dask array or dask dataframe; nothing is computed before the result is.

    Parameters
    ----------
    model : a fitted model
    X : dask array (n, D), or dask dataframe with the D features as columns

    Returns
    -------
    dask array or dask dataframe
        Of an array: packed codes, uint8 (n, ceil(n_bits / 8)), with the array's chunks of rows. Of a dataframe: one
        uint8 column per byte, under ``model.get_feature_names_out()``, with the dataframe's partitions and index.

    Examples
    --------
    >>> import dask.array, numpy as np, ilhash
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = ilhash.methods.LSH(n_bits=12).fit(X)
    >>> packed = ilhash.dask_encode(model, dask.array.from_array(X, chunks=(30, 5)))
    >>> packed.shape, packed.chunksize
    ((100, 2), (30, 2))
    >>> np.array_equal(packed.compute(), model.transform(X))
    True
    """
    check_is_fitted(model)
    if hasattr(X, "map_partitions") and hasattr(X, "columns"):
        return _encode_frame(model, X)
    if hasattr(X, "map_blocks") and hasattr(X, "chunks"):
        return _encode_array(model, X)
    raise TypeError(f"X must be a dask array or a dask dataframe, got {type(X).__name__}; model.transform takes arrays")


def _encode_array(model: Any, X: Any) -> Any:
    if X.ndim != 2:
        raise ValueError(f"X must be 2-D (rows are vectors), got {X.ndim}-D with shape {X.shape}")
    _refuse_other_width(model, X.shape[1])
    width = codes.bytes_per_code(len(model.functions_))
    rows = X.rechunk({1: -1})  # a function needs all features of a vector
    meta = np.empty((0, width), np.uint8)
    return rows.map_blocks(_transform, model=model, dtype=np.uint8, chunks=(rows.chunks[0], (width,)), meta=meta)


def _encode_frame(model: Any, X: Any) -> Any:
    import pandas

    _refuse_other_width(model, len(X.columns))
    names = list(model.get_feature_names_out())
    meta = pandas.DataFrame({name: np.empty(0, np.uint8) for name in names})
    return X.map_partitions(_transform_frame, model=model, names=names, meta=meta)


def _refuse_other_width(model: Any, width: int) -> None:
    if width != model.n_features_in_:
        raise ValueError(f"X must have the {model.n_features_in_} features of the model, got {width}")


def _transform(block: Any, model: Any) -> Any:
    return model.transform(block)


def _transform_frame(part: Any, model: Any, names: list[str]) -> Any:
    import pandas

    empty = np.empty((0, len(names)), np.uint8)  # a filter may leave a partition without rows
    encoded = model.transform(part) if len(part) else empty
    return pandas.DataFrame(encoded, index=part.index, columns=names)
