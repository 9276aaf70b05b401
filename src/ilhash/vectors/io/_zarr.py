"""Zarr: arrays of a folder, opened only when their metadata ask for nothing but numbers and known codecs.

A codec is chosen by name in the metadata, and some run whatever the store says (pickle) or make objects of its bytes.
So the metadata are read here before the library sees them, and the library is given the one array that was checked, in
the format that was checked: what a group, its consolidated metadata or a second format of the same array say, it does
not look at.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ilhash.storage import Record, parse_json, read_file
from ilhash.vectors import VectorSource

from ._chunked import ChunkedSource
from ._formats import LARGE, Declared, pick, reader, refuse_expansion, refuse_large_chunk

METADATA = ("zarr.json", ".zarray", ".zgroup")  # one of these is in every store that is a directory
MOST_MEMBERS = 10_000  # of a group, that are looked at for arrays
MOST_FILES = 5_000_000  # of an array
MOST_DOCUMENT = 16 << 20  # bytes of metadata

# Codecs that turn bytes into bytes, or numbers into numbers.
COMPRESSORS = ("blosc", "zstd", "gzip", "zlib", "lz4", "bz2", "lzma")
FILTERS = ("shuffle", "crc32c", "crc32", "adler32", "fletcher32", "delta", "fixedscaleoffset")
CODECS = (*COMPRESSORS, *FILTERS)
CODECS_OF_3 = ("bytes", "transpose", "blosc", "zstd", "gzip", "crc32c", *(f"numcodecs.{name}" for name in CODECS))
SHARDING = "sharding_indexed"
NUMBER = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")  # dtypes of format 2, and in the settings of codecs
NUMBERS_OF_3 = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
NUMBERS_OF_3 += ("float16", "float32", "float64")


@dataclass(frozen=True)
class Layout:
    """What the metadata of an array say, checked."""

    format: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]  # of values, each a file of its own
    inner: tuple[int, ...]  # what is decoded at once: the chunks within a chunk where it is sharded


class ZarrSource(ChunkedSource):
    """An array of a Zarr store, of format 2 or 3."""

    def files(self) -> list[Path]:
        """Return all files of the array."""
        return [Path(entry.path) for entry in _files_of(self.path / self.key)]

    def _open(self) -> Any:
        folder = self.path / self.key
        layout = read_layout(folder)
        zarr = reader("zarr", self.path)
        if hasattr(zarr, "DirectoryStore"):  # zarr 2
            return zarr.open_array(zarr.DirectoryStore(str(folder)), mode="r")
        store = zarr.storage.LocalStore(folder, read_only=True)
        return zarr.open_array(store, mode="r", zarr_format=layout.format)


def is_zarr(folder: Path) -> bool:
    """Whether a folder is a Zarr store, or at least called one."""
    return any((folder / name).is_file() for name in METADATA) or folder.suffix.lower() == ".zarr"


def open_zarr(path: Path, key: str | None) -> VectorSource | Declared:
    """Open a 2-D array of a Zarr store."""
    reader("zarr", path)
    inner = _key_of(path, key)
    folder = path / inner
    layout = read_layout(folder)
    if len(layout.shape) != 2 or 0 in layout.shape:
        return Declared(layout.shape, layout.dtype)
    _refuse_claims(folder, layout)
    shape = (layout.shape[0], layout.shape[1])
    source = ZarrSource(path, inner, shape, layout.dtype, _rows_of_a_chunk(layout))
    source.library_array()  # what is wrong with it is said now
    return source


def _key_of(path: Path, key: str | None) -> str:
    """Return the name of the array that is meant, within the store; empty where the store is one array."""
    if _dimensions(path) is not None:
        if key is not None:
            raise ValueError(f"{path} must be given without a key, because it is one array, got {key!r}")
        return ""
    wanted = None if key is None else key.strip("/")
    if not any((path / name).is_file() for name in METADATA):
        raise ValueError(f"{path} must be a valid .zarr file, but it has no metadata ({', '.join(METADATA)})")
    with os.scandir(path) as entries:
        found = sorted(entry.name for entry in islice(entries, MOST_MEMBERS) if entry.is_dir(follow_symlinks=False))
    names = [name for name in found if _dimensions(path / name) == 2]
    nested = wanted is not None and "/" in wanted and not {"", ".", ".."} & set(wanted.split("/"))
    if wanted is not None and nested and _dimensions(path / wanted) == 2:
        names.append(wanted)
    return pick(path, wanted, names, "2-D array")


def _dimensions(folder: Path) -> int | None:
    """Return the number of dimensions of the array in a folder; None where there is none."""
    found = _document(folder)
    if found is None or "shape" not in found[1]:
        return None
    return len(found[1].items("shape"))


def _document(folder: Path) -> tuple[int, Record] | None:
    for number, name in ((3, "zarr.json"), (2, ".zarray")):
        file = folder / name
        if os.path.lexists(file):
            document = parse_json(read_file(file, MOST_DOCUMENT), file, "metadata of Zarr")
            return number, Record(document, str(file))
    return None


# ------------------------------------------------------------------------------------------------ metadata


def read_layout(folder: Path) -> Layout:
    """Read and check the metadata of an array; whatever asks for more than numbers and known codecs is refused."""
    found = _document(folder)
    if found is None:
        raise ValueError(f"{folder} must be an array of Zarr, got a folder without zarr.json or .zarray")
    number, about = found
    about.whole("zarr_format", number, number)
    return _layout_of_2(about) if number == 2 else _layout_of_3(about)


def _layout_of_2(about: Record) -> Layout:
    dtype = np.dtype(about.text("dtype", NUMBER, 10))
    about.one_of("order", ("C", "F"))
    if "dimension_separator" in about:
        about.one_of("dimension_separator", (".", "/"))
    compressor, filters = about.document.get("compressor"), about.document.get("filters")
    codecs = [] if compressor is None else [about.record("compressor")]
    codecs += [] if filters is None else about.records("filters")
    for codec in codecs:
        _check_codec(codec, "id", CODECS)
    shape, chunks = _lengths(about, "shape", 0), _lengths(about, "chunks", 1)
    return _layout(about, 2, shape, dtype, chunks, chunks)


def _layout_of_3(about: Record) -> Layout:
    about.one_of("node_type", ("array",))
    dtype = np.dtype(about.one_of("data_type", NUMBERS_OF_3))
    grid = about.record("chunk_grid")
    grid.one_of("name", ("regular",))
    keys = about.record("chunk_key_encoding")
    keys.one_of("name", ("default", "v2"))
    if "configuration" in keys:
        settings = keys.record("configuration")
        if "separator" in settings:
            settings.one_of("separator", (".", "/"))
    if about.document.get("storage_transformers"):
        raise ValueError(f"{about.where} must have no storage transformers, got some")
    shape, chunks = _lengths(about, "shape", 0), _lengths(grid.record("configuration"), "chunk_shape", 1)
    inner = _check_codecs(about, "codecs", chunks)
    return _layout(about, 3, shape, dtype, chunks, inner)


def _layout(about: Record, number: int, shape: Any, dtype: np.dtype[Any], chunks: Any, inner: Any) -> Layout:
    if not len(shape) == len(chunks) == len(inner):
        got = f"{len(shape)}, {len(chunks)} and {len(inner)}"
        raise ValueError(f"{about.where} must have shape and chunks of as many dimensions, got {got}")
    return Layout(number, shape, dtype, chunks, inner)


def _lengths(about: Record, key: str, least: int) -> tuple[int, ...]:
    values = about.items(key)
    wrong = [value for value in values if type(value) is not int or not least <= value < 2**63]
    if wrong or len(values) > 32:
        raise ValueError(f"{about.where} must have {key!r}, whole numbers from {least} on, got {str(values)[:80]}")
    return tuple(values)


def _check_codecs(about: Record, key: str, chunks: tuple[int, ...], within: bool = False) -> tuple[int, ...]:
    """Check the codecs of a list; return what is decoded at once. There are no shards within shards."""
    inner = chunks
    for place, given in enumerate(about.items(key)):
        codec = Record({"name": given} if isinstance(given, str) else given, f"{key}[{place}] of {about.where}")
        if not within and codec.document.get("name") == SHARDING:
            settings = codec.record("configuration")
            inner = _lengths(settings, "chunk_shape", 1)
            for own in ("codecs", "index_codecs"):
                if own in settings:
                    _check_codecs(settings, own, inner, within=True)
        else:
            _check_codec(codec, "name", CODECS_OF_3)
    return inner


def _check_codec(codec: Record, key: str, allowed: Sequence[str]) -> None:
    """Refuse a codec that is not known, and one that is told to make something else than numbers."""
    codec.one_of(key, allowed)
    settings = codec.record("configuration") if "configuration" in codec else codec
    for name in settings.document:
        if "type" in str(name) and not (name == "typesize" and type(settings.document[name]) is int):
            settings.text(name, NUMBER, 10)


# ------------------------------------------------------------------------------------------------ files


def _files_of(folder: Path) -> list[os.DirEntry[str]]:
    """Return the files of an array; refuse links, which could lead to any file, and what is no file."""
    waiting, found = [os.fspath(folder)], []
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    found.append(entry)
                else:
                    kind = "a symbolic link" if entry.is_symlink() else "a pipe or device"
                    raise ValueError(f"{entry.path} must be a file of the store itself, got {kind}")
                if len(found) + len(waiting) > MOST_FILES:
                    raise ValueError(f"{folder} must hold at most {MOST_FILES} files, got more")
    return found


def _refuse_claims(folder: Path, layout: Layout) -> None:
    """Refuse chunks that would take far more memory than their files explain, one by one and all together."""
    size = layout.dtype.itemsize
    chunk, decoded = math.prod(layout.chunks) * size, math.prod(layout.inner) * size
    refuse_large_chunk(folder, decoded)
    total = 0
    for entry in _files_of(folder):
        stored = entry.stat(follow_symlinks=False).st_size
        if entry.name in METADATA or entry.name.startswith(".z"):
            if stored > MOST_DOCUMENT:  # attributes too, which the library reads whole
                raise ValueError(f"{entry.path} must have at most {MOST_DOCUMENT} bytes, got {stored}")
            continue
        refuse_expansion(folder, f"chunk {entry.name!r}", decoded, stored, LARGE // 4)
        if stored > 2 * chunk + (1 << 20):
            raise ValueError(f"{entry.path} must hold a chunk of {chunk} bytes, got {stored} bytes")
        total += stored
    refuse_expansion(folder, "all values", math.prod(layout.shape) * size, total)


def _rows_of_a_chunk(layout: Layout) -> int:
    rows = math.lcm(layout.chunks[0], layout.inner[0])  # of shards, which are read from the file at once
    row_bytes = max(1, layout.shape[1] * layout.dtype.itemsize)
    return rows if rows * row_bytes <= LARGE else layout.inner[0]
