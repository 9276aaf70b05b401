"""What the files of an index must be, beyond their checksums, which whoever made them may have computed.

Settings, and names, kinds and shapes of arrays are checked when an index is opened; what is in an array when it is
first asked for, as its checksums are. After that, nothing that the search uses as a place in memory leads elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash._fingerprints import FINGERPRINT, Bits
from ilhash.encoding import read_bits
from ilhash.search._array_file import ArrayFile
from ilhash.search._damage import Damage, sound
from ilhash.search._header import FileEntry
from ilhash.search._manifest import MANIFEST, Manifest
from ilhash.search._margins import MarginScale
from ilhash.search._segment import Body, Segment
from ilhash.search._snapshot import StoredSegment, check_removals, check_segment_file, dead_rows, newest
from ilhash.search._verify import Report, verify_files
from ilhash.storage import DamagedFileError, Record, UnknownFormatError

NEXT_ID = "next_id"  # note of the manifest: the next automatic id
MOST_BITS = 65535  # the scan adds distances up in 16 bits
_MOST_ROWS = 2**32 - 2  # rows and codes are numbered in 32 bits
_COMPARED = 1 << 16  # ids at a time: what they are compared to stays in the cache
_TILE, _RANGE = 64, 256  # codes in a tile, and in a range of distances from a pivot

_DTYPES = {
    **{"ids": np.int64, "id_ends": np.int64, "id_text": np.uint8, "margins": np.int8},
    **{"tiles": np.uint8, "offsets": np.uint32, "rows": np.uint32, "pivots": np.uint8, "rings": np.uint16},
}
_TOGETHER = [("ids",), ("id_ends", "id_text"), ("tiles", "offsets", "rows", "pivots", "rings"), ("margins",)]


class Settings(NamedTuple):
    """What an index was created with."""

    n_bits: int
    kind: str | None = None  # of ids; None while it is open
    scale: MarginScale | None = None  # of the margins that are kept
    model: str | None = None  # fingerprint of the model that made the codes; None where it is not known
    bits: Bits | None = None  # fingerprints of its bits, likewise

    def document(self) -> dict[str, Any]:
        """Return what a store keeps."""
        own: dict[str, Any] = {"n_bits": self.n_bits, "ids": self.kind or "int"}
        own |= {"margin_scale": self.scale.factor.tolist()} if self.scale else {}
        own |= {"model": self.model} if self.model else {}
        return own | ({"bits": list(self.bits)} if self.bits else {})

    @classmethod
    def read(cls, settings: Mapping[str, Any], folder: Path) -> Settings:
        """Check the settings of a store, and that it is an index."""
        path = folder / MANIFEST
        if not {"n_bits", "ids"} <= set(settings):
            raise UnknownFormatError(f"path must hold an index, got a store of something else in {folder}")
        with sound(path, "settings"):
            record = Record(dict(settings), f"settings of {path}")
            n_bits = record.whole("n_bits", 1, MOST_BITS)
            scale = None
            if "margin_scale" in record:
                scale = MarginScale(_scale(record.items("margin_scale"), n_bits, record.where))
            model = record.text("model", FINGERPRINT) if "model" in record else None
            return cls(n_bits, record.one_of("ids", ("int", "str")), scale, model, read_bits(record, n_bits))


def _scale(values: list[Any], n_bits: int, where: str) -> NDArray[np.float32]:
    fits = len(values) == n_bits and all(type(value) in (int, float) and 0 < value < 1e30 for value in values)
    if not fits or not all(np.float32(value) > 0 for value in values):
        raise DamagedFileError(f"{where} must have 'margin_scale', {n_bits} positive numbers, got {str(values)[:80]}")
    return np.array(values, np.float32)


def read_next_id(manifest: Manifest, folder: Path) -> int:
    """Return the next automatic id that a manifest notes; those of the first versions note none."""
    with sound(folder / MANIFEST, "notes"):
        notes = Record(dict(manifest.notes), f"notes of {folder / MANIFEST}")
        return notes.whole(NEXT_ID, 0, 2**63) if NEXT_ID in notes else 0


class StoredArrays(Mapping[str, NDArray[Any]]):
    """The arrays of a stored segment: their shapes are checked at once, what is in them when they are asked for.

    Attributes
    ----------
    file : ArrayFile, where they come from
    n_rows, n_codes : int, items, and distinct codes among them
    """

    def __init__(self, file: ArrayFile, settings: Settings) -> None:
        self.file, self._settings = file, settings
        self._sound: set[str] = set()
        with sound(file.path, "a header"):
            self.n_rows, self.n_codes = self._checked_shapes()

    def __iter__(self) -> Iterator[str]:
        return iter(self.file)

    def __len__(self) -> int:
        return len(self.file)

    def __contains__(self, name: object) -> bool:
        return name in self.file

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name in self.file and name not in self._sound:
            self._examine(name)
        return self.file[name]

    def _examine(self, name: str) -> None:
        names = next(together for together in _TOGETHER if name in together)
        arrays = {each: self.file[each] for each in names if each in self.file}
        with sound(self.file.path, f"arrays {', '.join(map(repr, arrays))}"):
            try:
                self._check_content(arrays)
            except ValueError as error:
                raise DamagedFileError(str(error)) from None
        self._sound.update(arrays)

    def _check_content(self, arrays: dict[str, NDArray[Any]]) -> None:
        if "ids" in arrays:
            _check_ascending(arrays["ids"])
        elif "id_ends" in arrays:
            _core.check_texts(arrays["id_text"], arrays["id_ends"])
        elif "tiles" in arrays:
            lists = (arrays.get(name) for name in ("offsets", "rows", "pivots", "rings"))
            _core.check_segment(arrays["tiles"], self.n_codes, self._settings.n_bits, *lists)

    def _checked_shapes(self) -> tuple[int, int]:
        shapes = {name: region.shape for name, region in self.file.regions.items()}
        ids = ("ids",) if self._settings.kind == "int" else ("id_ends", "id_text")
        self._check_names(set(shapes), ids)
        n_rows = self.file.rows - (self._settings.kind == "str")  # ends of texts: one more than there are
        if not 0 <= n_rows <= _MOST_ROWS or next(iter(shapes)) != ids[0]:
            raise DamagedFileError(f"an index must begin with {ids[0]!r} of at most {_MOST_ROWS} items, got {n_rows}")
        n_codes = shapes["offsets"][0] - 1 if shapes.get("offsets") else n_rows
        width, tiles = -(-self._settings.n_bits // 8), -(-n_codes // _TILE)
        wanted: dict[str, tuple[int | None, ...]] = {
            **{
                "ids": (n_rows,),
                "id_ends": (n_rows + 1,),
                "id_text": (None,),
                "margins": (n_rows, self._settings.n_bits),
            },
            **{"tiles": (tiles, width, _TILE), "offsets": (n_codes + 1,), "rows": (n_rows,)},
            **{"pivots": (None, width), "rings": (-(-n_codes // _RANGE), 3)},
        }
        for name, region in self.file.regions.items():
            _check_shape(name, region.dtype, region.shape, wanted[name])
        if not 0 <= n_codes <= n_rows:
            raise DamagedFileError(f"an index must have at most as many codes as items ({n_rows}), got {n_codes}")
        return n_rows, n_codes

    def _check_names(self, names: set[str], ids: tuple[str, ...]) -> None:
        needed = {*ids, "tiles", *(["margins"] if self._settings.scale else [])}
        lists = {"rows"} if "offsets" in names else set()
        lists |= {"pivots", "rings", "rows"} if names & {"pivots", "rings"} else set()
        if not needed | lists <= names <= needed | {"offsets", "rows", "pivots", "rings"}:
            raise DamagedFileError(
                f"an index must have arrays {sorted(needed | lists)}, got {str(sorted(names))[:200]}"
            )


def _check_ascending(ids: NDArray[np.int64]) -> None:
    for first in range(0, len(ids) - 1, _COMPARED):
        some = ids[first : first + _COMPARED + 1]
        if not (some[:-1] < some[1:]).all():
            raise DamagedFileError("ids must ascend, got some that do not")


def _check_shape(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> None:
    fits = len(shape) == len(wanted) and all(w in (None, n) for n, w in zip(shape, wanted, strict=True))
    if dtype != _DTYPES[name] or not fits:
        lengths = ", ".join("any" if length is None else str(length) for length in wanted)
        must = f"{np.dtype(_DTYPES[name])} of shape ({lengths})"
        raise DamagedFileError(f"{name!r} must be {must}, got {dtype} of shape {shape}")


def segment_of(stored: StoredSegment, known: Segment | None, settings: Settings) -> Segment:
    """Return a segment of a folder; one that is known, if nothing more of it is dead."""
    arrays = known.arrays if known else None
    if known and isinstance(arrays, StoredArrays) and arrays.file is stored.arrays:
        if np.array_equal(known.removed, stored.removed):
            return known
        body = known.body
    else:
        arrays = StoredArrays(stored.arrays, settings)
        body = Body(settings.n_bits, arrays.n_rows, arrays.n_codes, arrays, settings.kind or "int", stored.name)
    removed = stored.removed
    if len(removed) and removed[-1] >= body.n_rows:
        with sound(stored.arrays.path, "removals"):
            raise DamagedFileError(f"removed rows must lie below {body.n_rows}, got {removed[-1]}")
    return Segment(body, removed)


def verify(path: str | os.PathLike[str]) -> Report:
    """Read every byte of an index, whether or not it can be opened, and report all damages.

    What does not match its checksums is a damage, and what does, but is nothing that an index writes. Judged is the
    state at the beginning, without the files that a writer drops meanwhile.

    Parameters
    ----------
    path : path-like, the folder

    Returns
    -------
    Report, what was read, and what is wrong with it
    """
    report = verify_files(path, _examined)
    return replace(report, damages=tuple(_shared_ids(Path(path)))) if report.ok else report


def _examined(folder: Path, manifest: Manifest, entry: FileEntry | None) -> None:
    """Check what is in a file whose bytes are as they were written."""
    settings = Settings.read(manifest.settings, folder)
    if entry is None:
        read_next_id(manifest, folder)
        return
    file = ArrayFile(folder, entry)
    if entry in manifest.segments:
        check_segment_file(file)
        arrays = StoredArrays(file, settings)
        for name in arrays:
            _ = arrays[name]
        return
    check_removals(file)
    segments = {segment.file.removesuffix(".bin"): segment for segment in manifest.segments}
    for name in [name for name in file if name in segments]:
        n_rows = StoredArrays(ArrayFile(folder, segments[name]), settings).n_rows
        dead_rows(file, name, n_rows)


def _shared_ids(folder: Path) -> Iterator[Damage]:
    """Yield a damage for each segment with items that an earlier one has too."""
    snapshot = newest(folder, {})
    settings = Settings.read(snapshot.manifest.settings, folder)
    segments = [segment_of(stored, None, settings) for stored in snapshot.segments]
    for number, later in enumerate(segments):
        shared = sum(segment.n_shared(later) for segment in segments[:number])
        if shared:
            problem = f"that no index has: {shared} of {later.n_rows} are in other segments too"
            yield Damage(folder / f"{later.body.name}.bin", "ids", problem)
