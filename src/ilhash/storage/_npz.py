"""Archives of arrays (.npz) as bytes, for readers that do not trust whoever wrote them.

NumPy's reader makes room for whatever shape a header claims, and unpacks whatever an archive holds. Here an archive is
opened only if what it claims is plain numbers, adds up, and is within a bound of its own size.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash.storage._arrays import Arrays
from ilhash.storage._damage import DamagedFileError
from ilhash.storage._reading import reading

PACKED = 64  # bytes of arrays for each byte of an archive at most; what would pack better is written as it is
SMALL = 1 << 20  # bytes that any archive may unpack to

# A .npy file of plain numbers, exactly as NumPy writes its header: magic, version, length, a line of text.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<>|][biuf][0-9]{1,2})', 'fortran_order': (False|True), "
    rb"'shape': \(([0-9, ]{0,200})\), \} *\n",
    re.DOTALL,
)


def to_npz(arrays: Arrays) -> bytes:
    """Return arrays as the bytes of an archive, packed unless that would make it look like a bomb."""
    packed = io.BytesIO()
    content: dict[str, Any] = dict(arrays)
    np.savez_compressed(packed, **content)
    if sum(array.nbytes for array in arrays.values()) <= PACKED * len(packed.getvalue()) // 2:
        return packed.getvalue()
    plain = io.BytesIO()
    np.savez(plain, **content)
    return plain.getvalue()


def from_npz(data: bytes, path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an archive of plain numbers, in memory that is bounded by the archive's own size.

    Parameters
    ----------
    data : bytes, of the archive
    path : Path, of its file, for sentences

    Returns
    -------
    dict of arrays by name
    """
    what = f"{path} must be an archive of arrays of numbers"
    with reading(what):
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                entries = _checked(archive.infolist(), len(data), path)
                return {name: _array(archive, entry, f"{name} of {path}") for name, entry in entries.items()}
        except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError) as error:  # there is no file that could fail
            raise DamagedFileError(f"{what}, got something else ({error})") from None


def _checked(entries: list[zipfile.ZipInfo], size: int, path: Path) -> dict[str, zipfile.ZipInfo]:
    claimed, most = sum(entry.file_size for entry in entries), max(SMALL, PACKED * size)
    if claimed > most:
        raise DamagedFileError(f"{path} has {size} bytes and must unpack to at most {most}, got {claimed} claimed")
    named = {entry.filename.removesuffix(".npy"): entry for entry in entries if entry.filename.endswith(".npy")}
    if len(named) != len(entries):
        raise DamagedFileError(
            f"{path} must hold arrays, each under a name of its own, got {len(entries)} files of which {len(named)} are"
        )
    # Other methods than these take memory that no size in the archive bounds.
    wrong = [
        entry.filename for entry in entries if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    ]
    if wrong:
        raise DamagedFileError(f"{path} must be stored or deflated, got another method for {len(wrong)} of its arrays")
    return named


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, what: str) -> npt.NDArray[Any]:
    with archive.open(entry) as file:
        data = file.read(entry.file_size)  # a number: without one, all that the stream gives is unpacked at once
    return from_npy(data, what)


def from_npy(data: bytes, what: str) -> npt.NDArray[Any]:
    """Return the array of plain numbers that the bytes of a .npy are; errors call it ``what``."""
    header = _HEADER.match(data)
    if header is None or header.end() != 10 + int.from_bytes(header[1], "little"):
        raise DamagedFileError(f"{what} must be a .npy of plain numbers, got another header")
    with reading(f"{what} must be a .npy of plain numbers"):
        dtype, shape = np.dtype(header[2].decode()), tuple(int(part) for part in header[4].split(b",") if part.strip())
        claimed, there = math.prod(shape) * dtype.itemsize, len(data) - header.end()
        if claimed != there or max(shape, default=0) > len(data):  # a length of 0 makes room for others of any size
            raise DamagedFileError(f"{what} must hold the {claimed} bytes of its shape {shape}, got {there}")
        flat = np.frombuffer(data, dtype, offset=header.end())
        return flat.reshape(shape, order="F" if header[3] == b"True" else "C").copy()
