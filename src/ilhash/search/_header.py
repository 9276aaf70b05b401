"""The header of a file of arrays: which arrays there are, of which kind, and where.

Whoever made the file may have recomputed its checksums. So nothing is taken from a header that is not checked here:
after that every array lies in the file, beside the others, and is of a kind whose bytes are no pointers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ilhash._version import __version__
from ilhash.storage import DamagedFileError, Record, check_format, parse_json, reading

FORMAT = 1
BLOCK = 1 << 18  # bytes under one checksum
ALIGNMENT = 64  # of every array in its file, and so in memory; divides BLOCK
LARGEST_BLOCK = 1 << 26
LARGEST_HEADER = 64 << 20  # bytes: the checksums of two terabytes
MOST_AXES = 32
_DTYPE = re.compile(r"\|[biu]1|<[iu][248]|<f[248]|\|S[1-9][0-9]{0,5}|<U[1-9][0-9]{0,5}")
_CHECKSUMS = re.compile(r"(?:[0-9a-f]{8})*")


@dataclass(frozen=True)
class FileEntry:
    """What the manifest knows of a file: enough to refuse any other file in its place."""

    file: str
    bytes: int
    header_bytes: int
    header_sha256: str


@dataclass(frozen=True)
class Region:
    """Where an array lies in its file, padding included, and the checksum of each of its blocks."""

    name: str
    dtype: np.dtype[Any]
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


@dataclass(frozen=True)
class Header:
    """What a header says: the number of rows of its file, and the arrays in their order."""

    rows: int
    regions: tuple[Region, ...]


def header_line(rows: int, described: Sequence[dict[str, Any]]) -> bytes:
    """Return a header as it is written."""
    document = {"format": FORMAT, "ilhash": __version__, "rows": rows, "block": BLOCK, "arrays": described}
    line = json.dumps(document).encode()
    return line + b" " * (-(len(line) + 1) % ALIGNMENT) + b"\n"


def parsed_header(line: bytes, path: Path, entry: FileEntry) -> Header:
    """Read and check a header; ``entry`` says where it ends, and the file."""
    where = f"the header of {path}"
    with reading(f"{where} must say what is in the file"):
        document = Record(parse_json(line, path, "a file of arrays"), where)
        document.whole("format", 1)
        check_format(document.document, FORMAT, path)
        block = document.whole("block", ALIGNMENT, LARGEST_BLOCK)
        if block % ALIGNMENT:
            raise DamagedFileError(f"{where} must have a 'block' that is a multiple of {ALIGNMENT}, got {block}")
        regions, end = [], entry.header_bytes
        for described in document.records("arrays"):
            regions.append(_region(described, end, entry.header_bytes, block))
            end += regions[-1].bytes
        if end != entry.bytes or entry.header_bytes % ALIGNMENT:
            raise DamagedFileError(f"{where} must describe {entry.bytes} bytes, got arrays that end at {end}")
        if not regions or len({region.name for region in regions}) != len(regions):
            raise DamagedFileError(f"{where} must name each array once, got {[region.name for region in regions][:9]}")
        return Header(document.whole("rows"), tuple(regions))


def _region(described: Record, begin: int, after_header: int, block: int) -> Region:
    name, dtype = described.text("name", most=1 << 10), np.dtype(described.text("dtype", _DTYPE))
    shape = described.items("shape")
    if len(shape) > MOST_AXES or not all(type(length) is int and 0 <= length < 2**63 for length in shape):
        raise DamagedFileError(f"{described.where} must have a 'shape' of whole numbers, got {str(shape)[:80]}")
    if math.prod(length for length in shape if length) * dtype.itemsize >= 2**63:  # beyond what NumPy can count
        raise DamagedFileError(f"{described.where} must have a 'shape' that memory could hold, got {str(shape)[:80]}")
    size = math.prod(shape) * dtype.itemsize
    padded = size + -size % ALIGNMENT
    described.whole("bytes", padded, padded)
    described.whole("offset", begin - after_header, begin - after_header)
    checksums = described.text("crc32", _CHECKSUMS, most=LARGEST_HEADER)
    if len(checksums) != 8 * -(-padded // block):
        got = f"{len(checksums) // 8} checksums of blocks of {block} bytes"
        raise DamagedFileError(f"{described.where} must have a checksum for each block of {padded} bytes, got {got}")
    values = np.frombuffer(bytes.fromhex(checksums), ">u4").tolist()
    return Region(name, dtype, tuple(shape), begin, padded, block, tuple(values))
