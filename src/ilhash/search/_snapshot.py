"""One state of a store, opened: it stays readable as it is, whatever a writer does meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ilhash.search._array_file import ArrayFile
from ilhash.search._damage import DamagedStoreError, missing
from ilhash.search._manifest import Manifest, read_manifest

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
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *(removal[self.name] for removal in self._removals)]))
        rows.flags.writeable = False
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
            return snapshot_of(manifest, {e.file: known.get(e.file) or ArrayFile(folder, e) for e in manifest.files})
        except FileNotFoundError as error:
            lost = Path(error.filename)
            manifest = read_manifest(folder)  # perhaps a writer dropped the file since the manifest was read
            if lost.name in (entry.file for entry in manifest.files):
                raise DamagedStoreError([missing(lost)]) from None


def snapshot_of(manifest: Manifest, files: Mapping[str, ArrayFile]) -> Snapshot:
    """Make a snapshot of files that are open; those that the manifest does not name are let go."""
    removals = [files[entry.file] for entry in manifest.removals]
    segments = tuple(StoredSegment(files[entry.file], removals) for entry in manifest.segments)
    return Snapshot(manifest, {entry.file: files[entry.file] for entry in manifest.files}, segments)
