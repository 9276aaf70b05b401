"""`open_vectors`: vectors that are read where they are needed, of any format that can be read by rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ilhash.vectors import VectorSource

from ._chunked import open_h5, open_zarr
from ._directory import DirectorySource
from ._formats import Array, read_npy
from ._parquet import ParquetSource
from ._read import MATRIX_SUFFIXES, checked_path, read_matrix, refuse_no_matrix, split_key

PART_SUFFIXES = (".npy", ".parquet", ".h5", ".hdf5", ".zarr")
_ZARR = ("zarr.json", ".zarray", ".zgroup")  # one of these is in every store that is a directory


def open_vectors(path: str | os.PathLike[str]) -> Array | VectorSource:
    """Open a matrix of vectors without reading it, one row per item.

    Parameters
    ----------
    path : path-like
        A file, or a directory whose files are one matrix in the order of their names; ``path::key`` chooses one array
        (or column of lists) of several, in every file of a directory.

        - ``.npy``, and a dataset of ``.h5`` that lies in one piece: mapped into memory;
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
    return open_zarr(folder, key) if _is_zarr(folder) else _open_parts(folder, key)


def _is_zarr(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _ZARR) or folder.suffix.lower() == ".zarr"


def _open_file(path: str | os.PathLike[str]) -> Any:
    file, key = checked_path(path, MATRIX_SUFFIXES)
    suffix = file.suffix.lower()
    if suffix == ".npy":
        return read_npy(file)
    if suffix == ".parquet":
        return ParquetSource(file, key)
    if suffix in (".h5", ".hdf5"):
        return open_h5(file, key)
    return read_matrix(path)


def _open_parts(folder: Path, key: str | None) -> DirectorySource:
    files = _files_of(folder)
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


def _files_of(folder: Path) -> list[Path]:
    """Return files in the order of their names, without those that tools leave beside them (_SUCCESS, .crc)."""
    found: list[Path] = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir() and not _is_zarr(entry):
            found += _files_of(entry)
        else:
            found.append(entry)
    return found
