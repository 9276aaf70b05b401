"""`open_vectors`: vectors that are read where they are needed, of any format that can be read by rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ilhash.vectors import VectorSource

from ._directory import DirectorySource, parts_of
from ._formats import Array
from ._hdf5 import open_h5
from ._npy import open_npy
from ._parquet import ParquetSource
from ._read import MATRIX_SUFFIXES, checked_path, read_matrix, refuse_no_matrix, split_key
from ._zarr import is_zarr, open_zarr

PART_SUFFIXES = (".npy", ".parquet", ".h5", ".hdf5", ".zarr")


def open_vectors(path: str | os.PathLike[str]) -> Array | VectorSource:
    """Open a matrix of vectors without reading it, one row per item.

    Parameters
    ----------
    path : path-like
        A file, or a directory whose files are one matrix in the order of their names; ``path::key`` chooses one array
        (or column of lists) of several, in every file of a directory.

        - ``.npy``, and a dataset of ``.h5`` that lies in one piece: the wanted rows are read;
        - ``.h5``, ``.hdf5`` and ``.zarr`` in chunks: only the chunks of the wanted rows are read;
        - ``.parquet``: only the row groups of the wanted rows are decoded, one at a time;
        - ``.npz`` and ``.csv`` are read whole, as by `read_matrix`.

    Returns
    -------
    ndarray or VectorSource of shape (n, D), what ``fit``, ``transform`` and ``write_codes`` take

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        As for `read_matrix`; also files of different widths in a directory.
    """
    matrix: Array | VectorSource = _open(path)
    refuse_no_matrix(path, matrix)
    return matrix


def _open(path: str | os.PathLike[str]) -> Any:
    folder, key = split_key(path)
    if not folder.is_dir():
        return _open_file(path)
    return open_zarr(folder, key) if is_zarr(folder) else _open_parts(folder, key)


def _open_file(path: str | os.PathLike[str]) -> Any:
    file, key = checked_path(path, MATRIX_SUFFIXES)
    suffix = file.suffix.lower()
    if suffix == ".npy":
        return open_npy(file)
    if suffix == ".parquet":
        return ParquetSource(file, key)
    if suffix in (".h5", ".hdf5"):
        return open_h5(file, key)
    return read_matrix(path)


def _open_parts(folder: Path, key: str | None) -> DirectorySource:
    files = parts_of(folder, PART_SUFFIXES, is_zarr)
    kinds = sorted({file.suffix.lower() for file in files})
    if len(kinds) != 1 or kinds[0] not in PART_SUFFIXES:
        got = f"files of {', '.join(kind or 'no suffix' for kind in kinds)}" if kinds else "no file"
        raise ValueError(f"{folder} must hold files of one of {', '.join(PART_SUFFIXES)}, got {got}")
    parts = {file: _open(file if key is None else f"{file}::{key}") for file in files}
    filled = {file: part for file, part in parts.items() if len(part)}  # writers leave empty files, too
    if not filled:
        raise ValueError(f"{folder} must hold at least one row, got {len(files)} empty files")
    for file, part in filled.items():
        refuse_no_matrix(file, part)
    return DirectorySource(folder, [str(file.relative_to(folder)) for file in filled], list(filled.values()))
