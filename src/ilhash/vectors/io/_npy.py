"""NumPy's own files, .npy and .npz: the header is checked against the bytes that are there before anything is made."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from ilhash.vectors import SparseRows, as_sparse

from ._formats import Array, Declared, decoding, is_plain, open_users_file, pick, refuse_expansion
from ._rows import RowsInFile

SPARSE = {"format", "shape", "data"}  # arrays of every file of scipy.sparse.save_npz
LONGEST_HEADER = 10_000  # bytes, which is what NumPy itself takes


@dataclass(frozen=True)
class Header:
    """What the beginning of a .npy file says of the values behind it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int  # where the values begin

    @property
    def n_bytes(self) -> int:
        """Bytes of the values: of any size, as Python counts."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def declared(self) -> Declared | None:
        """What is to be refused: anything but numbers and texts, and what has no value at all."""
        fits = is_plain(self.dtype) and 0 not in self.shape
        return None if fits else Declared(self.shape, self.dtype)


def read_header(path: Path, file: IO[bytes]) -> Header:
    """Read the header of the array that begins here."""
    with decoding(path):
        begin = file.read(12)
        version = npy_format.read_magic(io.BytesIO(begin))
        width, kind = (2, "<H") if version == (1, 0) else (4, "<I")
        length = struct.unpack(kind, begin[8 : 8 + width])[0]
        if length > LONGEST_HEADER:
            raise ValueError(f"a header of {length} bytes")
        rest = file.read(8 + width + length - len(begin))
        # Version 3 differs from 2 only for structured arrays with names outside latin1: never a matrix.
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, dtype = read(io.BytesIO((begin + rest)[8:]))
        if any(type(n) is not int or n < 0 for n in shape) or len(shape) > 32:
            raise ValueError("a shape that no array has")
    if dtype.hasobject:
        raise ValueError(f"{path} must hold numbers or fixed-width strings, got pickled objects ({dtype})")
    return Header(shape, dtype, fortran, 8 + width + length)


def npy_values(path: Path) -> Header:
    """Read the header of a .npy file, and make sure that all of its values are there."""
    with open_users_file(path) as file:
        header = read_header(path, file)
        left = os.fstat(file.fileno()).st_size - header.offset
    if header.declared is None and header.n_bytes > left:
        reason = f"{header.n_bytes} bytes are declared, {left} are there"
        raise ValueError(f"{path} must be a valid .npy file, but it could not be decoded ({reason})")
    return header


def open_npy(path: Path) -> RowsInFile | Array | Declared:
    """Open a .npy file; a matrix is read by rows, of which none is read now."""
    header = npy_values(path)
    if header.declared is not None:
        return header.declared
    if len(header.shape) != 2:
        return Declared(header.shape, header.dtype)
    return RowsInFile(path, header.offset, (header.shape[0], header.shape[1]), header.dtype, header.fortran)


def read_npy(path: Path) -> Array | Declared:
    """Read a .npy file whole."""
    header = npy_values(path)
    if header.declared is not None:
        return header.declared
    with open_users_file(path) as file, decoding(path):
        return _values(header, file, os.fstat(file.fileno()).st_size)


def _values(header: Header, file: IO[bytes], size: int) -> Array:
    """Read the values behind a header, which was found at the beginning of the same file."""
    if header.n_bytes > size - header.offset:
        raise ValueError(f"{header.n_bytes} bytes are declared, {size - header.offset} are there")
    file.read(header.offset)
    flat = np.empty(prod(header.shape), header.dtype)
    room = flat.view(np.uint8).data
    done = 0
    while done < len(room):
        piece = file.read(min(len(room) - done, 1 << 24))
        if not piece:
            raise ValueError(f"{header.n_bytes} bytes are declared, {done} are there")
        room[done : done + len(piece)] = piece
        done += len(piece)
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with open_users_file(path) as file:
        with decoding(path):
            archive = zipfile.ZipFile(file)
        with archive:
            yield archive


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> tuple[Header, int]:
    """Read the header of an array of an archive, and the bytes that the archive says it has."""
    with decoding(path):
        about = archive.getinfo(name)
        if about.flag_bits & 1:
            raise ValueError("an encrypted member")
    refuse_expansion(path, f"array {name.removesuffix('.npy')!r}", about.file_size, about.compress_size)
    with decoding(path):
        member = archive.open(name)
    with member:
        return read_header(path, member), about.file_size


def read_npz(path: Path, key: str | None) -> Array | Declared:
    """Read one array of a .npz file."""
    with _archive(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        if set(names) >= SPARSE:
            raise ValueError(f"{path} must hold a dense array here, got a sparse matrix of scipy.sparse.save_npz")
        return _read_member(path, archive, pick(path, key, names, "array") + ".npy")


def open_npz(path: Path, key: str | None) -> Array | SparseRows | Declared:
    """Read one array of a .npz file, or the matrix of scipy.sparse.save_npz that it holds, as rows."""
    with _archive(path) as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
    if key is not None or not names >= SPARSE:
        return read_npz(path, key)
    matrix = read_sparse(path)
    # Every row has a pointer, and what is no CSR yet may declare any number of rows.
    refuse_expansion(path, "pointers to rows", 8 * matrix.shape[0], path.stat().st_size)
    return as_sparse(matrix, str(path))


def _read_member(path: Path, archive: zipfile.ZipFile, name: str) -> Array | Declared:
    header, size = _member(path, archive, name)
    if header.declared is not None:
        return header.declared
    with decoding(path), archive.open(name) as file:
        array = _values(header, file, size)
        if file.read(1):  # the archive compares its CRC only when the end is reached
            raise ValueError("bytes behind the array")
    return array


def read_sparse(path: Path) -> Any:
    """Read the matrix of a file of scipy.sparse.save_npz, all of whose indices lie within it.

    Parameters
    ----------
    path : pathlib.Path, the file

    Returns
    -------
    sparse matrix or array, of the formats csr, csc or coo
    """
    import scipy.sparse

    with _archive(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        if len(names) > 10:
            raise ValueError(f"{path} must be a file of scipy.sparse.save_npz, got an archive of {len(names)} arrays")
        read = {name.removesuffix(".npy"): _read_member(path, archive, name) for name in names}
    arrays = {name: _or_empty(path, array) for name, array in read.items()}
    with decoding(path):
        form = arrays["format"].item()
        form = form.decode() if isinstance(form, bytes) else form
        parts = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}[form]
        content = (arrays[parts[0]], arrays[parts[1]])
        kind = getattr(scipy.sparse, f"{form}_{'array' if '_is_array' in arrays else 'matrix'}")
        packed = (arrays["data"], content) if form == "coo" else (arrays["data"], *content)
        matrix = kind(packed, shape=tuple(arrays["shape"].tolist()))
        if form != "coo":  # which looks at its indices when it is made
            matrix.check_format(full_check=True)
    return matrix


def _or_empty(path: Path, array: Array | Declared) -> Array:
    if isinstance(array, Declared):
        if not is_plain(array.dtype):
            raise ValueError(f"{path} must be a file of scipy.sparse.save_npz, got values of {array.dtype}")
        with decoding(path):
            return np.empty(array.shape, array.dtype)
    return array
