"""A user's own files: `read_matrix` for vectors, `read_vector` for labels. One contract over all formats."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._formats import Array, Declared, open_users_file
from ._hdf5 import read_h5
from ._npy import read_npy, read_npz
from ._parquet import read_parquet
from ._text import csv_features, read_csv, read_csv_labels, read_txt_labels

MATRIX_SUFFIXES = (".npy", ".npz", ".csv", ".parquet", ".h5", ".hdf5")
VECTOR_SUFFIXES = (*MATRIX_SUFFIXES, ".txt")
KEYED_SUFFIXES = (".npz", ".csv", ".parquet", ".h5", ".hdf5")


def read_matrix(path: str | os.PathLike[str]) -> Array:
    """Read a matrix of vectors, one row per item.

    Parameters
    ----------
    path : path-like, a file whose suffix names its format; ``file::key`` chooses one array of several

        - ``.npy``: the array;
        - ``.npz``: the only array, or ``file.npz::key``;
        - ``.csv``: commas between numbers; a first line without any number is a header. With a header, columns called
          id, ids, label, labels, class, target or targets (in any case) and columns of text are left out;
          ``file.csv::a,b`` takes columns by name, ``file.csv::!a,b`` all features but these;
        - ``.parquet``: every column a number, or one column of lists of equal length, or
          ``file.parquet::column``; needs the extra ``io``;
        - ``.h5``, ``.hdf5``: the only 2-D dataset, or ``file.h5::name``; needs the extra ``io``.

    Returns
    -------
    ndarray of shape (n, D)
        bool, integer or float up to 64 bits, at least one row and one column. Values are not looked at:
        NaN passes.

    Raises
    ------
    ValueError
        The file is not what it must be; the message names the path, and the line of a .csv file.
    FileNotFoundError, IsADirectoryError
        There is no such file.
    ImportError
        The extra ``io`` is needed; the message ends with the command that installs it.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", np.eye(3))
    ...     X = read_matrix(f"{folder}/X.npy")
    >>> X.shape
    (3, 3)
    """
    file, key = checked_path(path, MATRIX_SUFFIXES)
    array = _read_binary(file, key, ndims=(2,)) if file.suffix.lower() != ".csv" else read_csv(file, key)
    refuse_no_matrix(path, array)
    if isinstance(array, Declared):  # which is no matrix
        raise TypeError(f"{os.fspath(path)} must be an array, got a description of one")
    return array if array.dtype.isnative else np.array(array, dtype=array.dtype.newbyteorder("="))


def refuse_no_matrix(path: str | os.PathLike[str], array: Any) -> None:
    """Refuse what is not a matrix of numbers, by its shape and dtype."""
    kind_fits = array.dtype.kind in "biu" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8)
    if not kind_fits or array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{os.fspath(path)} must hold a 2-D matrix of real numbers of at most 64 bits, with at least one "
            f"row and one column, got shape {array.shape} of dtype {array.dtype}"
        )


def feature_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the columns that `read_matrix` takes from a .csv file with a header.

    Parameters
    ----------
    path : path-like, ``file.csv`` or ``file.csv::key``

    Returns
    -------
    list of str, none of a file of another kind, or without a header
    """
    file, key = split_key(path)
    return csv_features(file, key) if file.suffix.lower() == ".csv" and file.is_file() else []


def read_vector(path: str | os.PathLike[str]) -> Array:
    """Read labels, one per item.

    Parameters
    ----------
    path : path-like
        As for `read_matrix`; also ``.txt``, one label per line. In text, labels are integers if every one
        is, otherwise strings. ``file.csv::column`` is the column of that name in the first line, where empty
        cells are unknown labels. The first line of a one-column ``.csv`` is a header if all others are
        integers and it is not, or if it reads label, labels, class, target or targets and does not recur.

    Returns
    -------
    ndarray of shape (n,) or (n, n_labels)
        int64 or str; where some are unknown (an empty cell, NaN, a null of Parquet), Python's numbers or texts
        with None among them. (n, 1) is flattened. A 2-D matrix of 0 and 1 says which of several labels each item
        has, and comes back 2-D.

    Raises
    ------
    ValueError, FileNotFoundError, IsADirectoryError, ImportError
        As for `read_matrix`.
    """
    file, key = checked_path(path, VECTOR_SUFFIXES)
    suffix = file.suffix.lower()
    array: Array | Declared
    if suffix == ".csv":
        array = read_csv_labels(file, key)
    elif suffix == ".txt":
        array = read_txt_labels(file)
    else:
        array = _read_binary(file, key, ndims=(1, 2), labels=True)
    return _as_vector(os.fspath(path), array)


def _as_vector(path: str, array: Array | Declared) -> Array:
    if array.ndim == 2 and array.shape[1] == 1 and not isinstance(array, Declared):
        array = array[:, 0]
    got = f"got shape {array.shape} of dtype {array.dtype}"
    must = f"{path} must hold one integer or string per item, or a 2-D matrix of 0 and 1"
    if isinstance(array, Declared):
        raise ValueError(f"{must}, {got}")
    if array.dtype.kind == "O":  # text, or of Parquet: known labels with None among them
        known = _as_vector(path, np.array([label for label in array.tolist() if label is not None]))
        return _with_unknown(np.array([label is not None for label in array.tolist()]), known)
    if array.ndim == 1 and array.dtype.kind == "f" and np.isnan(array).any() and not np.isnan(array).all():
        return _with_unknown(~np.isnan(array), _as_vector(path, array[~np.isnan(array)]))
    if array.ndim not in (1, 2) or array.size == 0 or array.dtype.kind not in "biufUS":
        raise ValueError(f"{must}, {got}")
    if array.dtype.kind == "S":
        array = _decoded(must, array)
    if array.ndim == 2 and (array.dtype.kind == "U" or not np.isin(array, (0, 1)).all()):
        raise ValueError(f"{must}, {got} with other values")
    return np.array(array) if array.dtype.kind == "U" else _as_int64(must, array)


def _with_unknown(known: Array, labels: Array) -> Array:
    """Return known labels at their places, and None at the others."""
    found = np.full(len(known), None, object)
    found[known] = labels.tolist()
    return found


def _decoded(must: str, array: Array) -> Array:
    try:
        return np.strings.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{must}, got bytes that are not UTF-8 ({error})") from error


def _as_int64(must: str, array: Array) -> Array:
    # 2**63 is the first number that int64 does not hold; NaN fails the comparison too.
    if array.dtype.kind == "f":
        fits = bool(((np.abs(array.astype(np.float64)) < 2.0**63) & (array == np.trunc(array))).all())
    else:
        fits = int(array.max()) < 2**63
    if not fits:
        raise ValueError(f"{must}, got {array.dtype} values that are not 64-bit integers")
    return np.array(array, dtype=np.int64)


def _read_binary(file: Path, key: str | None, ndims: Sequence[int], *, labels: bool = False) -> Array | Declared:
    suffix = file.suffix.lower()
    if suffix == ".npy":
        return read_npy(file)
    if suffix == ".npz":
        return read_npz(file, key)
    if suffix == ".parquet":
        return read_parquet(file, key, nulls=labels)
    return read_h5(file, key, ndims)


def checked_path(path: str | os.PathLike[str], suffixes: Sequence[str]) -> tuple[Path, str | None]:
    """Split ``file::key`` and make sure the file is there, is known and is not empty."""
    file, key = split_key(path)
    if not file.exists():
        raise FileNotFoundError(f"{file} must be a file, got a path that does not exist")
    if file.is_dir():
        raise IsADirectoryError(f"{file} must be a file, got a directory")
    if file.suffix.lower() not in suffixes:
        raise ValueError(f"{file} must end in {', '.join(suffixes)}, got {file.suffix or 'no suffix'!r}")
    if key is not None and file.suffix.lower() not in KEYED_SUFFIXES:
        raise ValueError(f"{file} must be given without a key (only {', '.join(KEYED_SUFFIXES)} take one), got {key!r}")
    if key == "":
        raise ValueError(f"{file} must be given as file::key, got no key after the colons")
    with open_users_file(file) as stream:  # a file that may not be read is an OSError here, never called corrupt
        if not stream.read(1):
            raise ValueError(f"{file} must hold data, got an empty file")
    return file, key


def split_key(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Split ``file::key``.

    Parameters
    ----------
    path : path-like, of a file, or with the name of something inside it

    Returns
    -------
    (pathlib.Path, str or None), the file and the key

    Examples
    --------
    >>> file, key = split_key("table.csv::species")
    >>> file.name, key
    ('table.csv', 'species')
    """
    # A file that is really called so wins over the notation.
    text = os.fspath(path)
    if "::" not in text or Path(text).exists():
        return Path(text), None
    name, _, key = text.partition("::")
    return Path(name), key
