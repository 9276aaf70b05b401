"""Files of named arrays, written once, checksummed block by block, read through a memory map.

A file is one line of JSON (the header, padded with blanks) and then the bytes of the arrays, each padded with zeros to
a multiple of 64. The header has a CRC-32 for every 256 KiB of every array, padding included; the manifest has size and
SHA-256 of the header, and the size of the file. Thus no byte of a file is without a guard.
"""

from __future__ import annotations

import hashlib
import itertools
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

from ilhash._version import __version__
from ilhash.search._damage import Damage, DamagedStoreError, missing
from ilhash.storage import check_format, write_file

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
        place = {"dtype": array.dtype.str, "shape": array.shape, "offset": offset, "bytes": size}
        described.append({"name": name, **place, "crc32": checksums})
        chunks += [flat, padding]
        offset += size
    header = _header({"format": FORMAT, "ilhash": __version__, "rows": rows, "block": BLOCK, "arrays": described})
    write_file(folder / file, [header, *chunks], sync=False)
    return FileEntry(file, len(header) + offset, len(header), hashlib.sha256(header).hexdigest())


def _checksums(flat: memoryview, padding: bytes) -> Iterator[int]:
    for begin in range(0, len(flat), BLOCK):
        block = flat[begin : begin + BLOCK]
        last = begin + BLOCK >= len(flat)
        yield zlib.crc32(padding, zlib.crc32(block)) if last else zlib.crc32(block)


def _header(document: dict[str, Any]) -> bytes:
    line = json.dumps(document).encode()
    return line + b" " * (-(len(line) + 1) % ALIGNMENT) + b"\n"


class ArrayFile(Mapping[str, NDArray[Any]]):
    """An open file of arrays, in the order in which they were given; read-only, on disk.

    The header is checked at once, an array when it is first asked for. The memory map is made at once too, so that the
    arrays stay readable when the file is deleted. A missing file is a FileNotFoundError: only the caller knows whether
    it has to be there.
    """

    def __init__(self, folder: Path, entry: FileEntry) -> None:
        self.entry = entry
        self._path = folder / entry.file
        with self._path.open("rb") as file:
            _refuse(_wrong_size(self._path, os.fstat(file.fileno()).st_size, entry))
            header, damages = _read_header(file, self._path, entry)
            _refuse(damages)
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.rows: int = header["rows"]
        self._regions = {region.name: region for region in _regions(header, entry)}
        self._arrays: dict[str, NDArray[Any]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._regions  # without reading the array

    def __iter__(self) -> Iterator[str]:
        return iter(self._regions)

    def __len__(self) -> int:
        return len(self._regions)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            region = self._regions[name]
            # Touching a map beyond the end of its file would kill the process.
            _refuse(_wrong_size(self._path, self._map.size(), self.entry))
            memory = memoryview(self._map)
            _refuse(_damaged_blocks(region, lambda begin, end: memory[begin:end], self._path))
            self._arrays[name] = np.ndarray(region.shape, region.dtype, buffer=self._map, offset=region.offset)
        return self._arrays[name]


def damages_of_file(folder: Path, entry: FileEntry) -> list[Damage]:
    """Read a whole file and return everything that is wrong with it.

    It is read, not mapped: a medium that fails is then an error that can be caught.
    """
    path = folder / entry.file
    try:
        with path.open("rb") as file:

            def read(begin: int, end: int) -> bytes:
                file.seek(begin)
                return file.read(end - begin)

            found = _wrong_size(path, os.fstat(file.fileno()).st_size, entry)
            header, damages = _read_header(file, path, entry)
            in_arrays = (_damaged_blocks(region, read, path) for region in _regions(header, entry))
            return [*found, *damages, *itertools.chain.from_iterable(in_arrays)]
    except FileNotFoundError:
        return [missing(path)]
    except OSError as error:
        return [Damage(path, "a file", f"that cannot be read ({error.strerror})")]


def _refuse(damages: list[Damage]) -> None:
    if damages:
        raise DamagedStoreError(damages)


def _wrong_size(path: Path, size: int, entry: FileEntry) -> list[Damage]:
    if size == entry.bytes:
        return []
    verb = "truncated" if size < entry.bytes else "extended"
    return [Damage(path, "a whole file", f"of {size} bytes instead of {entry.bytes}: it was {verb}")]


def _read_header(file: IO[bytes], path: Path, entry: FileEntry) -> tuple[dict[str, Any], list[Damage]]:
    header = file.read(entry.header_bytes)
    if hashlib.sha256(header).hexdigest() != entry.header_sha256:
        region = f"the header (bytes 0 to {entry.header_bytes})"
        problem = "altered: it does not match its SHA-256, and no array can be found"
        return {"arrays": []}, [Damage(path, region, problem)]
    document: dict[str, Any] = json.loads(header)
    check_format(document, FORMAT, path)
    return document, []


def _regions(header: dict[str, Any], entry: FileEntry) -> Iterator[_Region]:
    for array in header["arrays"]:
        shape, offset = tuple(array["shape"]), entry.header_bytes + array["offset"]
        checksums = tuple(np.frombuffer(bytes.fromhex(array["crc32"]), ">u4").tolist())
        yield _Region(array["name"], array["dtype"], shape, offset, array["bytes"], header["block"], checksums)


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
    problem = "altered or unreadable: it does not match its CRC-32"
    return [Damage(path, f"array {region.name!r} (bytes {begin} to {end})", problem) for begin, end in bad]
