"""What is kept of items beside their codes, in a file that only grows: vectors, labels, texts.

The file is a row of blocks, one for each change. A block has a head of fixed length, a JSON document with ids, labels
and texts, the vectors as they are in memory, and a seal: the SHA-256 of the log's own number and all of that, so that a
block that was altered, moved, or brought from another log is noticed. The first block is the log's own description.

The last record of an id is the one that counts, and one whose id the index does not hold counts for nothing: a change
is written here first, and happens when the index has it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ilhash._version import __version__
from ilhash.storage import DamagedFileError, StorageError, UnknownFormatError, open_file, parse_json

FILE = "items.log"
FORMAT = 1
KIND = "items"
ROWS = 4096  # of a block, where many items are written at once
MOST_ROWS = 1 << 20
MOST_NUMBERS = 1 << 30  # of the vectors of a block
MOST_DOCUMENT = 1 << 30  # bytes

_HEAD = struct.Struct("<8sQIIII")  # magic, number of the block, bytes of the document, rows, dimension, CRC-32 of these
_MAGIC = b"ilhItems"
_SEAL = 32

Vectors = NDArray[np.float32]
Label = int | str | None


class Records(NamedTuple):
    """Items of one change, in one order.

    Attributes
    ----------
    ids : list of int or str
    vectors : float32 array (n, D) or None
    labels, texts : list, None where an item has none; or None where no item has any
    update : bool, whether the items were there before
    """

    ids: list[Any]
    vectors: Vectors | None = None
    labels: Sequence[Label] | None = None
    texts: Sequence[str | None] | None = None
    update: bool = False


@dataclass(frozen=True)
class Block:
    """A block that was read.

    Attributes
    ----------
    records : Records, without vectors
    n_rows, dimension : int, shape of the vectors; 0 columns where there are none
    vectors_at : int, byte of the file where the vectors begin
    end : int, byte behind the block
    """

    records: Records
    n_rows: int
    dimension: int
    vectors_at: int
    end: int


class TornError(Exception):
    """What stands here is the beginning of a block that was cut off."""


def new_log() -> str:
    """Return the number of a new log."""
    return secrets.token_hex(16)


def first_block(log: str) -> bytes:
    """Return the description of a log, which its file begins with."""
    return b"".join(_chunks("", 0, {"format": FORMAT, "kind": KIND, "ilhash": __version__, "log": log}, 0, None))


def block(log: str, number: int, records: Records) -> list[Any]:
    """Return the block of some items, in pieces."""
    document = {"ids": records.ids, "update": records.update}
    for name in ("labels", "texts"):
        values = getattr(records, name)
        if values is not None and any(value is not None for value in values):
            document[name] = list(values)
    return _chunks(log, number, document, len(records.ids), records.vectors)


def _chunks(log: str, number: int, document: dict[str, Any], n_rows: int, vectors: Vectors | None) -> list[Any]:
    text = json.dumps(document).encode()
    text += b" " * (-(_HEAD.size + len(text)) % 64)
    dimension = 0 if vectors is None else vectors.shape[1]
    head = _HEAD.pack(_MAGIC, number, len(text), n_rows, dimension, 0)[:-4]
    chunks: list[Any] = [head + struct.pack("<I", zlib.crc32(head)) + text]
    if vectors is not None:
        chunks.append(np.ascontiguousarray(vectors, "<f4").reshape(-1).view(np.uint8).data)
    seal = hashlib.sha256(log.encode())
    for chunk in chunks:
        seal.update(chunk)
    return [*chunks, seal.digest()]


# ------------------------------------------------------------------------------------------------ reading


def read_first(file: IO[bytes], path: Path) -> tuple[str, int]:
    """Return the number of the log that a file holds, and the byte behind its description."""
    try:
        document, _, place = _read(file, path, "", 0)
    except (TornError, StorageError):
        raise DamagedFileError(
            f"{path} must begin with the description of a log of items, got something else"
        ) from None
    if document.get("kind") != KIND or type(document.get("format")) is not int or document["format"] > FORMAT:
        raise UnknownFormatError(f"{path} must be a log of items of format {FORMAT}, got another one")
    log = document.get("log")
    if not isinstance(log, str) or len(log) != 32 or not log.isalnum():
        raise DamagedFileError(f"{path} must say the number of its log, got something else")
    return log, place


def read_blocks(path: Path, log: str, number: int, place: int) -> Iterator[Block]:
    """Give the blocks from a place on, up to the end or to what was cut off there."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(place)
        while place < size:
            try:
                document, shape, end = _read(file, path, log, number)
            except TornError:
                return
            yield _as_block(document, shape, place, end, f"{path}, block {number},")
            number, place = number + 1, end


def _read(file: IO[bytes], path: Path, log: str, number: int) -> tuple[dict[str, Any], tuple[int, int], int]:
    """Return document and shape of the vectors of the block at which the file stands, and the byte behind it."""
    begin, size = file.tell(), os.fstat(file.fileno()).st_size
    where = f"{path}, block {number},"
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or not head.strip(b"\0"):
        _refuse_unless_end(file, head, where)
        raise TornError
    magic, found, n_document, n_rows, dimension, crc = _HEAD.unpack(head)
    sound = magic == _MAGIC and crc == zlib.crc32(head[:-4]) and found == number
    if not sound or n_rows > MOST_ROWS or n_rows * dimension > MOST_NUMBERS or n_document > MOST_DOCUMENT:
        raise DamagedFileError(f"{where} must be as it was written, got another head")
    end = begin + _HEAD.size + n_document + 4 * n_rows * dimension + _SEAL
    if end > size:
        raise TornError
    seal = hashlib.sha256(log.encode() + head)
    text = file.read(n_document)
    seal.update(text)
    left = 4 * n_rows * dimension
    while left:
        part = file.read(min(left, 1 << 20))
        seal.update(part)
        left -= len(part)
    given = file.read(_SEAL)
    if given != seal.digest():
        if end == size and not given.strip(b"\0"):  # the size was on disk, the content was not
            raise TornError
        raise DamagedFileError(f"{where} must be as it was written, got content that does not match its seal")
    return parse_json(text, path, "a log of items"), (n_rows, dimension), end


def _refuse_unless_end(file: IO[bytes], head: bytes, where: str) -> None:
    """Refuse zeros in the middle of a file: a loss of power leaves them only behind what was acknowledged."""
    for rest in iter(lambda: file.read(1 << 20), b""):
        if rest.strip(b"\0"):
            raise DamagedFileError(f"{where} must be as it was written, got bytes that are 0")


def _as_block(document: dict[str, Any], shape: tuple[int, int], begin: int, end: int, where: str) -> Block:
    ids, update = document.get("ids"), document.get("update")
    columns = [document.get(name) for name in ("labels", "texts")]
    fits = isinstance(ids, list) and len(ids) == shape[0] and type(update) is bool
    fits = fits and all(type(one) is int or type(one) is str for one in ids or ())
    fits = fits and all(column is None or (isinstance(column, list) and len(column) == shape[0]) for column in columns)
    if not fits:
        raise DamagedFileError(f"{where} must hold items, got something else")
    records = Records(list(ids or ()), None, columns[0], columns[1], bool(update))
    return Block(records, *shape, end - _SEAL - 4 * shape[0] * shape[1], end)
