"""Pictures of items: arrays as PNG, files of a folder, or addresses elsewhere."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import NDArray

from ilhash.serve._layout import PICTURE_IDS, PICTURES, Pictures
from ilhash.storage import DamagedFileError, open_file, read_file, reading

TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
LARGEST = 16 << 20  # bytes of a file that is shown
LOOKED_AT = 1 << 20  # pixels, those of some pictures, that tell how lines lie in all of them
INKED = 0.25  # share of black from which a pixel counts as inked


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a picture (h, w), (h, w, 1) or (h, w, 3) as a file.

    Examples
    --------
    >>> png(np.zeros((2, 2), np.uint8))[1:4]
    b'PNG'
    """
    array = pixels[:, :, None] if pixels.ndim == 2 else pixels
    height, width, channels = array.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter, none
    lines[:, 1:] = array.reshape(height, -1)
    about = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = ((b"IHDR", about), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def as_bytes(pixels: NDArray[Any], about: Pictures) -> NDArray[np.uint8]:
    """Return pixels between black and white as bytes."""
    span = about.high - about.low or 1.0
    scaled = (np.asarray(pixels, np.float64) - about.low) * (255.0 / span)
    return np.asarray(np.clip(np.rint(scaled), 0, 255), np.uint8)


def ink(shares: NDArray[np.float64]) -> dict[str, float] | None:
    """Return how high drawings are in pictures (n, h, w) of shares of black, how wide at most, and how wide lines are.

    So that what somebody draws can be made like them: digits may fill their pictures, or have a margin around them.

    Examples
    --------
    >>> bar = np.zeros((1, 8, 8))
    >>> bar[:, 1:7, 3:5] = 1
    >>> ink(bar)["height"], ink(bar)["width"], round(ink(bar)["pen"])
    (6.0, 6.0, 2)
    """
    inked = shares > INKED
    there = inked.any(axis=(1, 2))
    if not there.any():
        return None
    tall, wide = (_extent(np.any(inked[there], axis=axis)) for axis in (2, 1))
    # A line has two edges: its area by their length is half of its width. Steps between pixels, along both axes,
    # measure edges of any direction 4 / pi times too long.
    steps = sum(np.abs(np.diff(np.pad(shares[there], _edges(axis)), axis=axis)).sum(axis=(1, 2)) for axis in (1, 2))
    pen = 2 * shares[there].sum(axis=(1, 2)) / (np.pi / 4 * steps)
    height = float(np.median(tall))
    width = max(float(np.quantile(wide, 0.95)), min(height, shares.shape[2]))
    return {"height": height, "width": width, "pen": min(float(np.median(pen)), height / 2)}


def _extent(inked: Any) -> NDArray[np.int64]:
    """Return how far it is from the first to the last that is inked in each row (n, length)."""
    return np.asarray(inked.shape[1] - inked.argmax(axis=1) - inked[:, ::-1].argmax(axis=1))


def _edges(axis: int) -> list[tuple[int, int]]:
    return [(1, 1) if one == axis else (0, 0) for one in range(3)]


class Shown:
    """The pictures of a service.

    Parameters
    ----------
    folder : Path, that of the items
    about : Pictures, what they are
    vector : callable, gives the vector of an item, or None: for items that came without an array
    """

    def __init__(self, folder: Path, about: Pictures, vector: Callable[[Any], NDArray[np.float32] | None]) -> None:
        self.about, self._vector = about, vector
        self._rows: dict[Any, int] = {}
        self._files: dict[str, Path] = {}
        if about.kind == "arrays":
            with reading(f"{folder} must hold pictures and their ids"):
                self._arrays = np.load(folder / PICTURES, mmap_mode="r", allow_pickle=False)
                names = json.loads(read_file(folder / PICTURE_IDS))
                self._rows = {name: row for row, name in enumerate(names)}
            wanted = (len(names), about.height, about.width)
            if self._arrays.shape[:3] != wanted or self._arrays.dtype.kind not in "buif":
                raise DamagedFileError(f"{folder / PICTURES} must be of shape {wanted}, got {self._arrays.shape}")
        elif about.kind == "folder":
            paths = sorted(Path(about.where).iterdir())
            self._files = {path.stem: path for path in paths if path.suffix.lower() in TYPES and path.is_file()}

    @property
    def origin(self) -> str | None:
        """The origin that a page must be allowed to show pictures of."""
        if self.about.kind != "url":
            return None
        parts = urlsplit(self.about.where)
        return f"{parts.scheme}://{parts.netloc}"

    @cached_property
    def ink(self) -> dict[str, float] | None:
        """How lines lie in the pictures, None where a drawing is no query."""
        if not self.about.drawable or self.about.channels != 1 or not len(self._arrays):
            return None
        n = max(1, LOOKED_AT // (self.about.height * self.about.width))
        some = np.unique(np.linspace(0, len(self._arrays) - 1, n).astype(np.int64))
        pixels = self._arrays[some].reshape(len(some), self.about.height, self.about.width)
        return ink(as_bytes(pixels, self.about) / 255.0)

    def address(self, name: Any) -> str | None:
        """Return where the picture of an item is, None where there is none."""
        if self.about.kind == "url":
            return self.about.where.replace("{id}", quote(str(name), safe=""))
        there = name in self._rows or str(name) in self._files
        if not there and not (self.about.drawable and self._vector(name) is not None):
            return None
        return f"/v1/pictures/{quote(str(name), safe='')}"

    def file(self, name: Any) -> tuple[bytes, str] | None:
        """Return the bytes of a picture and their type, None where there is none here."""
        if self.about.kind == "folder":
            path = self._files.get(str(name))
            return None if path is None else _read(path)
        pixels = self._pixels(name) if self.about.kind == "arrays" else None
        return None if pixels is None else (png(as_bytes(pixels, self.about)), "image/png")

    def _pixels(self, name: Any) -> NDArray[Any] | None:
        vector = self._vector(name) if self.about.drawable else None
        if vector is not None:  # an item that was changed has another picture, too
            return vector.reshape(self.about.height, self.about.width, self.about.channels)
        return np.asarray(self._arrays[self._rows[name]]) if name in self._rows else None


def _read(path: Path) -> tuple[bytes, str] | None:
    try:
        with open_file(path) as file:
            data = file.read(LARGEST + 1)
    except OSError:  # it was there when the service began
        return None
    return (data, TYPES[path.suffix.lower()]) if len(data) <= LARGEST else None
