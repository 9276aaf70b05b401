"""One state of a store, opened: it stays readable as it is, whatever a writer does meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ilhash.search._array_file import ArrayFile
from ilhash.search._damage import DamagedStoreError, missing, sound
from ilhash.search._header import FileEntry
from ilhash.search._manifest import SEGMENT, Manifest, read_manifest
from ilhash.storage import DamagedFileError, checked_array

Rows = NDArray[np.int64]


class StoredSegment:
    """A segment as one snapshot of the store sees it; its name is unique for ever in this store."""

    def __init__(self, arrays: ArrayFile, removals: Iterable[ArrayFile]) -> None:
        self.name = arrays.entry.file.removesuffix(".bin")
        self.arrays = arrays
        self.n_rows = arrays.rows  # dead ones among them: the length of the first array
        self._removals = tuple(removal for removal in removals if self.name in removal)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    @cached_property
    def removed(self) -> Rows:
        """Numbers of the dead rows, ascending."""
        dead = (dead_rows(removal, self.name, self.n_rows) for removal in self._removals)
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *dead]))
        rows.flags.writeable = False
        return rows


def dead_rows(file: ArrayFile, name: str, n_rows: int) -> Rows:
    """Return the rows of one segment that a file of removals names."""
    with sound(file.path, f"array {name!r}"):
        rows = checked_array(file[name], f"rows of {name}", np.int64, (None,), least=0, most=n_rows - 1)
        if (rows[:-1] >= rows[1:]).any():
            raise DamagedFileError(f"rows of {name} must ascend, got others")
        return rows


class Snapshot(NamedTuple):
    """A manifest, its files by name, and the segments that they are."""

    manifest: Manifest
    files: dict[str, ArrayFile]
    segments: tuple[StoredSegment, ...]


def newest(folder: Path, known: Mapping[str, ArrayFile]) -> Snapshot:
    """Open the newest state; files that are open already, and known by name, are taken as they are."""
    manifest = read_manifest(folder)
    while True:
        try:
            return snapshot_of(manifest, {entry.file: _opened(folder, entry, known) for entry in manifest.files})
        except FileNotFoundError as error:
            later = read_manifest(folder)  # perhaps a writer dropped the file since the manifest was read
            if later.is_same(manifest):
                raise DamagedStoreError([missing(Path(error.filename))]) from None
            manifest = later


def _opened(folder: Path, entry: FileEntry, known: Mapping[str, ArrayFile]) -> ArrayFile:
    file = known.get(entry.file)
    return file if file is not None and file.entry == entry else ArrayFile(folder, entry)


def snapshot_of(manifest: Manifest, files: Mapping[str, ArrayFile]) -> Snapshot:
    """Make a snapshot of files that are open; those that the manifest does not name are let go."""
    for entry in manifest.segments:
        check_segment_file(files[entry.file])
    for entry in manifest.removals:
        check_removals(files[entry.file])
    removals = [files[entry.file] for entry in manifest.removals]
    segments = tuple(StoredSegment(files[entry.file], removals) for entry in manifest.segments)
    return Snapshot(manifest, {entry.file: files[entry.file] for entry in manifest.files}, segments)


def check_segment_file(file: ArrayFile) -> None:
    """Refuse a segment whose number of rows is not the length of its first array."""
    with sound(file.path, "a header"):
        name, first = next(iter(file.regions.items()))
        if first.shape[:1] != (file.rows,):
            raise DamagedFileError(f"{name!r} must have {file.rows} rows, got shape {first.shape}")


def check_removals(file: ArrayFile) -> None:
    """Refuse a file of removals that holds something else than row numbers of segments."""
    with sound(file.path, "a header"):
        for name, region in file.regions.items():
            if not SEGMENT.fullmatch(name) or region.dtype != np.int64 or len(region.shape) != 1:
                got = f"{region.dtype} of shape {region.shape} for {name[:80]!r}"
                raise DamagedFileError(f"{file.path} must hold row numbers of segments, got {got}")
        total = sum(region.shape[0] for region in file.regions.values())
        if total != file.rows:
            raise DamagedFileError(f"{file.path} must hold {file.rows} row numbers, got {total}")
