"""Files of named arrays, written once, checksummed block by block, read through a memory map.

A file is one line of JSON (the header, padded with blanks) and then the bytes of the arrays, each padded with zeros to
a multiple of 64. The header has a CRC-32 for every 256 KiB of every array, padding included; the manifest has size and
SHA-256 of the header, and the size of the file. Thus no byte of a file is without a guard.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ilhash.search._damage import Damage, DamagedStoreError, missing, sound
from ilhash.search._header import ALIGNMENT, BLOCK, FileEntry, Header, Region, header_line, parsed_header
from ilhash.storage import open_file, write_file

Arrays = Mapping[str, NDArray[Any]]


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
    header = header_line(rows, described)
    write_file(folder / file, [header, *chunks], sync=False)
    return FileEntry(file, len(header) + offset, len(header), hashlib.sha256(header).hexdigest())


def _checksums(flat: memoryview, padding: bytes) -> Iterator[int]:
    for begin in range(0, len(flat), BLOCK):
        block = flat[begin : begin + BLOCK]
        last = begin + BLOCK >= len(flat)
        yield zlib.crc32(padding, zlib.crc32(block)) if last else zlib.crc32(block)


class ArrayFile(Mapping[str, NDArray[Any]]):
    """An open file of arrays, in the order in which they were given; read-only, on disk.

    The header is checked at once, an array when it is first asked for. The memory map is made at once too, so that the
    arrays stay readable when the file is deleted. A missing file is a FileNotFoundError: only the caller knows whether
    it has to be there.
    """

    def __init__(self, folder: Path, entry: FileEntry) -> None:
        self.entry = entry
        self.path = folder / entry.file
        with sound(self.path, "a file"), open_file(self.path) as file:
            _refuse(_wrong_size(self.path, os.fstat(file.fileno()).st_size, entry))
            header, damages = _read_header(file, self.path, entry)
            _refuse(damages)
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.rows = header.rows
        self.regions = {region.name: region for region in header.regions}
        self._arrays: dict[str, NDArray[Any]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self.regions  # without reading the array

    def __iter__(self) -> Iterator[str]:
        return iter(self.regions)

    def __len__(self) -> int:
        return len(self.regions)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            region = self.regions[name]
            # Touching a map beyond the end of its file would kill the process.
            _refuse(_wrong_size(self.path, self._map.size(), self.entry))
            memory = memoryview(self._map)
            _refuse(_damaged_blocks(region, lambda begin, end: memory[begin:end], self.path))
            self._arrays[name] = np.ndarray(region.shape, region.dtype, buffer=self._map, offset=region.offset)
        return self._arrays[name]


def damages_of_file(folder: Path, entry: FileEntry) -> list[Damage]:
    """Read a whole file and return everything that is wrong with its bytes.

    It is read, not mapped: a medium that fails is then an error that can be caught.
    """
    path = folder / entry.file
    try:
        with sound(path, "a file"), open_file(path) as file:

            def read(begin: int, end: int) -> bytes:
                file.seek(begin)
                return file.read(end - begin)

            found = _wrong_size(path, os.fstat(file.fileno()).st_size, entry)
            header, damages = _read_header(file, path, entry)
            in_arrays = (_damaged_blocks(region, read, path) for region in header.regions)
            return [*found, *damages, *itertools.chain.from_iterable(in_arrays)]
    except DamagedStoreError as error:
        return list(error.damages)
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


def _read_header(file: IO[bytes], path: Path, entry: FileEntry) -> tuple[Header, list[Damage]]:
    line = file.read(entry.header_bytes)
    if hashlib.sha256(line).hexdigest() != entry.header_sha256:
        region = f"the header (bytes 0 to {entry.header_bytes})"
        problem = "altered: it does not match its SHA-256, and no array can be found"
        return Header(0, ()), [Damage(path, region, problem)]
    return parsed_header(line, path, entry), []


def _damaged_blocks(region: Region, read: Callable[[int, int], Any], path: Path) -> list[Damage]:
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
