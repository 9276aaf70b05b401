"""Encoding as an operation on dask collections: lazy, block by block, on whatever runs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash import codes
from ilhash._checks import check_encoder


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
    from sklearn.utils.validation import check_is_fitted

    check_encoder(model)
    check_is_fitted(model)
    frame = hasattr(X, "map_partitions") and hasattr(X, "columns")
    if not frame and not (hasattr(X, "map_blocks") and hasattr(X, "chunks")):
        kind = type(X).__name__
        raise TypeError(f"X must be a dask array or a dask dataframe, got {kind}; model.transform takes arrays")
    if not frame and X.ndim != 2:
        raise ValueError(f"X must be 2-D (rows are vectors), got {X.ndim}-D with shape {X.shape}")
    width = len(X.columns) if frame else X.shape[1]
    if width != model.n_features_in_:
        raise ValueError(f"X must have the {model.n_features_in_} features of the model, got {width}")
    return _encode_frame(model, X) if frame else _encode_array(model, X)


def _encode_array(model: Any, X: Any) -> Any:
    width = codes.bytes_per_code(len(model.functions_))
    rows = X.rechunk({1: -1})  # a function needs all features of a vector
    meta = np.empty((0, width), np.uint8)
    return rows.map_blocks(_transform, model=model, dtype=np.uint8, chunks=(rows.chunks[0], (width,)), meta=meta)


def _encode_frame(model: Any, X: Any) -> Any:
    import pandas

    names = list(model.get_feature_names_out())
    meta = pandas.DataFrame({name: np.empty(0, np.uint8) for name in names})
    return X.map_partitions(_transform_frame, model=model, names=names, meta=meta)


def _transform(block: Any, model: Any) -> Any:
    return np.concatenate([codes for _, codes in model.encode_blocks(block, n_threads=1)])


def _transform_frame(part: Any, model: Any, names: list[str]) -> Any:
    import pandas

    # A filter may leave a partition without rows.
    encoded = _transform(part, model) if len(part) else np.empty((0, len(names)), np.uint8)
    return pandas.DataFrame(encoded, index=part.index, columns=names)
