"""Files of named arrays, written once, checksummed block by block, read through a memory map.

A file is one line of JSON (the header, padded with blanks) and then the bytes of the arrays, each padded with zeros to
a multiple of 64. The header has a CRC-32 for every 256 KiB of every array, padding included; the manifest has size and
SHA-256 of the header, and the size of the file. Thus no byte of a file is without a guard.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ilhash._files import library_version, write_file
from ilhash.search._damage import Damage, DamagedStoreError, missing

__all__ = ["FORMAT", "ArrayFile", "FileEntry", "damages_of_file", "storable", "write_arrays"]

FORMAT = 1
BLOCK = 1 << 18  # bytes under one checksum
ALIGNMENT = 64  # of every array in its file, and so in memory; divides BLOCK

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class FileEntry:
    """What the manifest knows of a file: enough to refuse any other file in its place."""

    file: str
    bytes: int
    header_bytes: int
    header_sha256: str


@dataclass(frozen=True)
class _Region:
    """Where an array lies in its file, padding included, and the checksum of each of its blocks."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    bytes: int
    block: int
    checksums: tuple[int, ...]

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Yield begin and end in the file, and checksum, of each block."""
        for number, checksum in enumerate(self.checksums):
            begin = number * self.block
            yield self.offset + begin, self.offset + min(begin + self.block, self.bytes), checksum


# ------------------------------------------------------------------------------------------------ writing


def storable(array: Any, name: str) -> NDArray[Any]:
    """Return an array as it is stored: C order, little-endian; refuse what has no such form."""
    given = np.asarray(array)
    if given.dtype.kind not in "biufSU" or given.dtype.char == "g":
        raise TypeError(f"{name} must be an array of bool, integers, floats up to 64 bits, or text, got {given.dtype}")
    return np.asarray(given, dtype=given.dtype.newbyteorder("<"), order="C")


def write_arrays(folder: Path, file: str, rows: int, arrays: Arrays) -> FileEntry:
    """Write arrays that ``storable`` made; the name is durable only after the folder is flushed."""
    described, chunks, offset = [], [], 0
    for name, array in arrays.items():
        flat = array.reshape(-1).view(np.uint8).data
        padding = bytes(-len(flat) % ALIGNMENT)
        size = len(flat) + len(padding)
        checksums = "".join(f"{checksum:08x}" for checksum in _checksums(flat, padding))
        described.append(
            {
                "name": name,
                "dtype": array.dtype.str,
                "shape": array.shape,
                "offset": offset,
                "bytes": size,
                "crc32": checksums,
            }
        )
        chunks += [flat, padding]
        offset += size
    header = _header({"format": FORMAT, "ilhash": library_version(), "rows": rows, "block": BLOCK, "arrays": described})
    write_file(folder / file, [header, *chunks])
    return FileEntry(file, len(header) + offset, len(header), hashlib.sha256(header).hexdigest())


def _checksums(flat: memoryview, padding: bytes) -> Iterator[int]:
    for begin in range(0, len(flat), BLOCK):
        block = flat[begin : begin + BLOCK]
        last = begin + BLOCK >= len(flat)
        yield zlib.crc32(padding, zlib.crc32(block)) if last else zlib.crc32(block)


def _header(document: dict[str, Any]) -> bytes:
    line = json.dumps(document).encode()
    return line + b" " * (-(len(line) + 1) % ALIGNMENT) + b"\n"


# ------------------------------------------------------------------------------------------------ reading


class ArrayFile:
    """An open file of arrays: its header is checked at once, an array when it is first asked for.

    The memory map is made at once too, so that the arrays stay readable when the file is deleted. A missing file is a
    FileNotFoundError: only the caller knows whether it has to be there.
    """

    def __init__(self, folder: Path, entry: FileEntry) -> None:
        self.entry = entry
        self._path = folder / entry.file
        with self._path.open("rb") as file:
            _refuse(self._size_damage(os.fstat(file.fileno()).st_size))
            header, damage = _read_header(file, self._path, entry)
            _refuse(damage)
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.rows: int = header["rows"]
        self._regions = {region.name: region for region in _regions(header, entry)}
        self._arrays: dict[str, NDArray[Any]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays, in the order in which they were given."""
        return tuple(self._regions)

    def __contains__(self, name: str) -> bool:
        return name in self._regions

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            self._arrays[name] = self._checked(self._regions[name])
        return self._arrays[name]

    def _checked(self, region: _Region) -> NDArray[Any]:
        # Touching a map beyond the end of its file would kill the process.
        _refuse(self._size_damage(self._map.size()))
        memory = memoryview(self._map)
        damages = _damaged_blocks(region, lambda begin, end: memory[begin:end], self._path)
        if damages:
            raise DamagedStoreError(damages)
        return np.ndarray(region.shape, region.dtype, buffer=self._map, offset=region.offset)

    def _size_damage(self, size: int) -> Damage | None:
        return _size_damage(self._path, size, self.entry)


def damages_of_file(folder: Path, entry: FileEntry) -> list[Damage]:
    """Read a whole file and return everything that is wrong with it.

    It is read, not mapped: a medium that fails is then an error that can be caught.
    """
    path = folder / entry.file
    try:
        with path.open("rb") as file:
            size = _size_damage(path, os.fstat(file.fileno()).st_size, entry)
            header, damage = _read_header(file, path, entry)
            found = [each for each in (size, damage) if each]
            if damage:
                return found

            def read(begin: int, end: int) -> bytes:
                file.seek(begin)
                return file.read(end - begin)

            for region in _regions(header, entry):
                found += _damaged_blocks(region, read, path)
            return found
    except FileNotFoundError:
        return [missing(path)]
    except OSError as error:
        return [Damage(path, "a file", f"that cannot be read ({error.strerror})")]


def _refuse(damage: Damage | None) -> None:
    if damage:
        raise DamagedStoreError([damage])


def _size_damage(path: Path, size: int, entry: FileEntry) -> Damage | None:
    if size == entry.bytes:
        return None
    verb = "truncated" if size < entry.bytes else "extended"
    return Damage(path, "a whole file", f"of {size} bytes instead of {entry.bytes}: it was {verb}")


def _read_header(file: IO[bytes], path: Path, entry: FileEntry) -> tuple[dict[str, Any], Damage | None]:
    header = file.read(entry.header_bytes)
    if hashlib.sha256(header).hexdigest() != entry.header_sha256:
        region = f"the header (bytes 0 to {entry.header_bytes})"
        return {}, Damage(path, region, "altered: it does not match its SHA-256, and no array can be found")
    document: dict[str, Any] = json.loads(header)
    if document["format"] != FORMAT:
        raise ValueError(
            f"{path} must have format {FORMAT}, got format {document['format']} written by ilhash "
            f"{document['ilhash']}: upgrade ilhash"
        )
    return document, None


def _regions(header: dict[str, Any], entry: FileEntry) -> Iterator[_Region]:
    for array in header["arrays"]:
        checksums = bytes.fromhex(array["crc32"])
        yield _Region(
            array["name"],
            array["dtype"],
            tuple(array["shape"]),
            entry.header_bytes + array["offset"],
            array["bytes"],
            header["block"],
            tuple(np.frombuffer(checksums, ">u4").tolist()),
        )


def _damaged_blocks(region: _Region, read: Callable[[int, int], Any], path: Path) -> list[Damage]:
    """Compare each block with its checksum; neighbouring damaged blocks are one damage."""
    bad: list[list[int]] = []
    for begin, end, checksum in region.blocks():
        try:
            if zlib.crc32(read(begin, end)) == checksum:
                continue
        except OSError:
            pass  # the medium fails here, perhaps not in the next block
        if bad and bad[-1][1] == begin:
            bad[-1][1] = end
        else:
            bad.append([begin, end])
    return [
        Damage(
            path,
            f"array {region.name!r} (bytes {begin} to {end})",
            "altered or unreadable: it does not match its CRC-32",
        )
        for begin, end in bad
    ]
