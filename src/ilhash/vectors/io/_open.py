"""`open_vectors`: vectors that are read where they are needed, of any format that can be read by rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ilhash.vectors import SparseRows, VectorSource

from ._directory import DirectorySource, parts_of
from ._formats import Array
from ._hdf5 import open_h5
from ._npy import open_npy, open_npz
from ._parquet import ParquetSource
from ._read import MATRIX_SUFFIXES, checked_path, read_matrix, read_vector, refuse_no_matrix, split_key
from ._text import csv_columns
from ._zarr import is_zarr, open_zarr

PART_SUFFIXES = (".npy", ".parquet", ".h5", ".hdf5", ".zarr")


def open_vectors(path: str | os.PathLike[str], *, without: Sequence[str] = ()) -> Array | VectorSource | SparseRows:
    """Open a matrix of vectors without reading it, one row per item.

    Parameters
    ----------
    path : path-like
        A file, or a directory whose files are one matrix in the order of their names; ``path::key`` chooses one array
        (or column of lists) of several, in every file of a directory.

        - ``.npy``, and a dataset of ``.h5`` that lies in one piece: the wanted rows are read;
        - ``.h5``, ``.hdf5`` and ``.zarr`` in chunks: only the chunks of the wanted rows are read;
        - ``.parquet``: only the row groups of the wanted rows are decoded, one at a time;
        - ``.npz`` and ``.csv`` are read whole, as by `read_matrix`; a .npz of ``scipy.sparse.save_npz`` stays sparse.

    without : sequence of str, optional
        Columns of a table, .csv or .parquet, that are no features, such as ids and labels; where ``path::key`` chooses
        columns, and in files without names, nothing is left out.

    Returns
    -------
    ndarray, VectorSource or SparseRows of shape (n, D), what ``fit``, ``transform`` and ``write_codes`` take
        The ``matrix`` of SparseRows is the CSR matrix.

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        As for `read_matrix`; also files of different widths in a directory.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", np.arange(6.0).reshape(3, 2))
    ...     X = open_vectors(f"{folder}/X.npy")
    ...     X.shape, X[1:2]
    ((3, 2), array([[2., 3.]]))
    """
    matrix: Array | VectorSource | SparseRows = _open(path, tuple(without))
    refuse_no_matrix(path, matrix)
    return matrix


def read_column(path: str | os.PathLike[str], name: str) -> Array:
    """Read a column of a table by its name: ids, or labels.

    Parameters
    ----------
    path : path-like, a .csv or .parquet file, or a directory of .parquet files; what ``::key`` chooses does not matter
    name : str, of the column

    Returns
    -------
    ndarray of shape (n,), as of `read_vector`
    """
    table, _ = split_key(path)
    files = parts_of(table, PART_SUFFIXES, is_zarr) if table.is_dir() and not is_zarr(table) else [table]
    other = sorted({file.suffix.lower() for file in files} - {".csv", ".parquet"})
    if other or not files:
        got = ", ".join(other) or "no file"
        raise ValueError(f"{table} must be a table with a column {name!r}, .csv or .parquet, got {got}")
    parts = [read_vector(f"{file}::{name}") for file in files]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _open(path: str | os.PathLike[str], without: tuple[str, ...]) -> Any:
    folder, key = split_key(path)
    if not folder.is_dir():
        return _open_file(path, without)
    return open_zarr(folder, key) if is_zarr(folder) else _open_parts(folder, key, without)


def _open_file(path: str | os.PathLike[str], without: tuple[str, ...]) -> Any:
    file, key = checked_path(path, MATRIX_SUFFIXES)
    suffix = file.suffix.lower()
    if suffix == ".npy":
        return open_npy(file)
    if suffix == ".parquet":
        return ParquetSource(file, key, without)
    if suffix in (".h5", ".hdf5"):
        return open_h5(file, key)
    if suffix == ".npz":
        return _native(open_npz(file, key))
    if key is None and without and (present := [name for name in csv_columns(file) if name in without]):
        return read_matrix(f"{file}::!{','.join(present)}")
    return read_matrix(path)


def _native(array: Any) -> Any:
    if not isinstance(array, np.ndarray) or array.dtype.isnative:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="))


def _open_parts(folder: Path, key: str | None, without: tuple[str, ...]) -> DirectorySource:
    files = parts_of(folder, PART_SUFFIXES, is_zarr)
    kinds = sorted({file.suffix.lower() for file in files})
    if len(kinds) != 1 or kinds[0] not in PART_SUFFIXES:
        got = f"files of {', '.join(kind or 'no suffix' for kind in kinds)}" if kinds else "no file"
        raise ValueError(f"{folder} must hold files of one of {', '.join(PART_SUFFIXES)}, got {got}")
    parts = {file: _open(file if key is None else f"{file}::{key}", without) for file in files}
    filled = {file: part for file, part in parts.items() if len(part)}  # writers leave empty files, too
    if not filled:
        raise ValueError(f"{folder} must hold at least one row, got {len(files)} empty files")
    for file, part in filled.items():
        refuse_no_matrix(file, part)
    return DirectorySource(folder, [str(file.relative_to(folder)) for file in filled], list(filled.values()))
