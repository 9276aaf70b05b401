"""Readers of binary files: .npy, .npz, .parquet, .h5. Each gives an array as it is; _read judges it.

Every call into a library that parses the file runs under `decoding`, so that a corrupt file is a ValueError
that names the path, whatever the library throws. Our own refusals are raised outside of it.
"""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from ilhash._extras import require

Array = npt.NDArray[Any]


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Turn any failure of a library to parse the file into one sentence."""
    try:
        yield
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        must = f"{path} must be a valid {path.suffix.lower()} file"
        raise ValueError(f"{must}, but it could not be decoded ({reason})") from error


def reader(module: str, path: Path) -> Any:
    """Import the library that reads a file."""
    return require(module, "io", f"reading {path}")


def pick(path: Path, key: str | None, names: Sequence[str], what: str) -> str:
    """Name the array meant by `key`, or the only one there is."""
    listed = ", ".join(names) or "none"
    if key is not None and key not in names:
        raise ValueError(f"{path} must hold {what} {key!r}, got: {listed}")
    if key is None and len(names) != 1:
        raise ValueError(f"{path} must hold one {what}, or be given as {path.name}::key, got: {listed}")
    return names[0] if key is None else key


# .npy and .npz --------------------------------------------------------------------------------------------


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of the array that begins here."""
    version = npy_format.read_magic(file)
    # Version 3 differs from 2 only for structured arrays with names outside latin1: never a matrix.
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _refuse_objects(path: Path, dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise ValueError(f"{path} must hold numbers or fixed-width strings, got pickled objects ({dtype})")


def read_npy(path: Path) -> Array:
    """Map a .npy file into memory, read-only."""
    with decoding(path), path.open("rb") as file:
        shape, dtype = _npy_header(file)
    _refuse_objects(path, dtype)
    if 0 in shape:  # nothing to map
        return np.empty(shape, dtype)
    with decoding(path):
        return npy_format.open_memmap(path, mode="r")


def read_npz(path: Path, key: str | None) -> Array:
    """Read one array of a .npz file."""
    with decoding(path):
        archive = zipfile.ZipFile(path)
    with archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        if {"format", "shape", "data"} <= set(names):
            raise ValueError(f"{path} must hold a dense array, got a scipy.sparse matrix: save its .toarray()")
        member = pick(path, key, names, "array") + ".npy"
        with decoding(path), archive.open(member) as file:
            _, dtype = _npy_header(file)
        _refuse_objects(path, dtype)
        with decoding(path), archive.open(member) as file:
            array: Array = npy_format.read_array(file, allow_pickle=False)
            file.read()  # the archive compares its CRC only when the end is reached
    return array


# .parquet -------------------------------------------------------------------------------------------------


def read_parquet(path: Path, key: str | None, *, nulls: bool = False) -> Array:
    """Read numeric columns (n, d), one column of lists (n, d), or one column of strings (n,).

    ``nulls`` lets one column of numbers or strings hold some: they come as None among objects.
    """
    with open_parquet(path) as file:
        names = feature_columns(path, file.schema_arrow, key)
        with decoding(path):
            table = file.read(columns=names)
    if nulls and table.num_columns == 1 and 0 < table.column(0).null_count < table.num_rows:
        column = table.column(0)
        known = table_array(path, table.filter(column.is_valid())).ravel().tolist()
        found = np.full(len(column), None, object)
        found[column.is_valid().to_numpy()] = known
        return found
    return table_array(path, table)


def open_parquet(path: Path) -> Any:
    """Open a file, of which only the metadata are read."""
    parquet = reader("pyarrow.parquet", path)
    with decoding(path):
        return parquet.ParquetFile(path)


def feature_columns(path: Path, schema: Any, key: str | None) -> list[str]:
    """Name the column `key`, or all but those in which pandas keeps an index: an index is no feature."""
    if key is not None:
        return [pick(path, key, schema.names, "column")]
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]


def _kind(arrow_type: Any) -> str:
    types = importlib.import_module("pyarrow.types")
    if types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type):
        return "list" if _kind(arrow_type.value_type) == "number" else "other"
    if types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_boolean(arrow_type):
        return "number"
    return "string" if types.is_string(arrow_type) or types.is_large_string(arrow_type) else "other"


def _plain(table: Any) -> Any:
    """Undo dictionary encoding, in which pandas writes its categories."""
    types = importlib.import_module("pyarrow.types")
    for j, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(field.type.value_type))
    return table


def table_array(path: Path, table: Any) -> Array:
    """Return numeric columns (n, d), one column of lists (n, d), or one column of strings (n,)."""
    with decoding(path):
        table = _plain(table)
    kinds = [_kind(column.type) for column in table.columns]
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise ValueError(f"{path} must hold no nulls, got {column.null_count} in column {name!r}")
    if kinds and set(kinds) == {"number"}:
        return _number_columns(table)
    if kinds == ["list"]:
        return _list_column(path, table.column_names[0], table.column(0))
    if kinds == ["string"]:
        return np.array(table.column(0).to_pylist(), dtype=np.str_)
    got = ", ".join(f"{field.name} ({field.type})" for field in table.schema) or "no column"
    raise ValueError(
        f"{path} must hold only numeric columns or one column of numeric lists (choose it with "
        f"{path.name}::column), got: {got}"
    )


def _number_columns(table: Any) -> Array:
    columns = [column.to_numpy() for column in table.columns]
    matrix = np.empty((table.num_rows, len(columns)), np.result_type(*columns))
    for j, column in enumerate(columns):
        matrix[:, j] = column
    return matrix


def _list_column(path: Path, name: str, column: Any) -> Array:
    compute = importlib.import_module("pyarrow.compute")
    widths = compute.unique(compute.list_value_length(column)).to_pylist()
    if len(widths) > 1:
        raise ValueError(
            f"{path} must hold lists of one length in column {name!r}, got lengths {min(widths)} to {max(widths)}"
        )
    # Chunk by chunk: joined list offsets may not fit their 32 bits.
    parts = []
    for chunk in column.chunks:
        values = chunk.flatten()
        if values.null_count:
            raise ValueError(f"{path} must hold no nulls, got {values.null_count} in the lists of {name!r}")
        parts.append(values.to_numpy(zero_copy_only=False).reshape(len(chunk), *widths))
    return np.concatenate(parts) if widths else np.empty((0, 0))


# .h5 ------------------------------------------------------------------------------------------------------


def read_h5(path: Path, key: str | None, ndims: Sequence[int]) -> Array:
    """Read the dataset `key`, or the only one with the first of `ndims` that occurs."""
    with h5_dataset(path, key, ndims) as (_, dataset), decoding(path):
        is_text = reader("h5py", path).check_string_dtype(dataset.dtype) is not None
        array: Array = (dataset.asstr() if is_text else dataset)[()]
    return np.array(array, dtype=np.str_) if is_text else array


@contextmanager
def h5_dataset(path: Path, key: str | None, ndims: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """Open the dataset meant by `key`, or the only one with the first of `ndims` that occurs; give its name, too."""
    h5py = reader("h5py", path)
    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: str, item: Any) -> None:
        # A null dataspace has no shape and no values.
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            shapes[name] = item.shape

    with decoding(path):
        file = h5py.File(path, "r")
    with file:
        with decoding(path):
            file.visititems(note)
        name = _h5_name(path, key, shapes, ndims)
        with decoding(path):
            dataset = file[name]
        yield name, dataset


def _h5_name(path: Path, key: str | None, shapes: dict[str, tuple[int, ...]], ndims: Sequence[int]) -> str:
    if key is not None:
        return pick(path, key.strip("/"), list(shapes), "dataset")
    for ndim in ndims:
        names = [name for name, shape in shapes.items() if len(shape) == ndim]
        if names:
            return pick(path, None, names, f"{ndim}-D dataset")
    got = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"
    raise ValueError(f"{path} must hold a {' or '.join(f'{n}-D' for n in ndims)} dataset, got: {got}")
