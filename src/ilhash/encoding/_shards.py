"""Codes in shards: a directory of .npy files and a manifest, written one after the other, restartable after a kill.

``manifest.json`` names the model and the vectors by fingerprint, the number of bits, the layout, and rows and SHA-256
of every finished shard, with what its vectors were when it was made; it is replaced durably after each. A run that was
killed goes on behind the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ilhash import codes
from ilhash._version import __version__
from ilhash.encoding._stored import LAYOUT, MOST_BITS, SHA256, Codes, Shard, StoredCodes, read_bits
from ilhash.storage import TEMPORARY, DamagedFileError, Record, Sealed, make_folder, npy_header, sha256_of, write_file
from ilhash.vectors import VectorSource, fingerprint, state_of_files

MANIFEST = Sealed("manifest.json", "shards", 1, kind="codes")
_NAME = r"codes-[0-9]{6,12}\.npy"

Document = dict[str, Any]


class Witness:
    """Sees whether vectors stay as they are while they are encoded, and between two runs.

    Files are known by their sizes and times. Rows of an array, and of a file that can be read row by row, are looked at
    as well, up to 64 of each shard.
    """

    def __init__(self, X: Any) -> None:
        self.X, self.state = X, state_of_files(X)

    def rows(self, first: int, last: int) -> str | None:
        """Identify a stretch of rows; None where that would take a pass over the file."""
        if isinstance(self.X, VectorSource) and not self.X.by_row:
            return None
        some = np.unique(np.linspace(first, last - 1, 64).astype(np.int64))
        return fingerprint(np.asarray(self.X[some]))

    def refuse_change(self, first: int, last: int, rows: str | None) -> None:
        """Refuse vectors that are no longer what they were when this began."""
        if state_of_files(self.X) != self.state or self.rows(first, last) != rows:
            where = str(self.X) if isinstance(self.X, VectorSource) else "X"
            raise ValueError(f"{where} must stay as it is while it is encoded, got other content: encode it again")

    def over(self, blocks: Iterable[Codes]) -> Iterator[Codes]:
        """Give the codes of all rows again, and refuse vectors that changed meanwhile at the end."""
        before = self.rows(0, len(self.X))
        yield from blocks
        self.refuse_change(0, len(self.X), before)


@dataclass(frozen=True)
class Finished:
    """A shard that is there, as the manifest says."""

    number: int
    rows: int
    sha256: str
    source: str | None = None  # what the files of its vectors were
    vectors: str | None = None  # what some of its vectors were

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"codes-{self.number:06d}.npy"

    @classmethod
    def read(cls, entry: Record) -> Finished:
        """Read an entry of a manifest; the first versions did not note the vectors of a shard."""
        number = int(entry.text("name", _NAME)[6:-4])
        seen = {name: entry.text(name, SHA256) for name in ("source", "vectors") if name in entry}
        return cls(number, entry.whole("rows", 1), entry.text("sha256", SHA256), **seen)

    def document(self) -> Document:
        """Return the entry of the manifest."""
        seen = {name: value for name in ("source", "vectors") if (value := getattr(self, name)) is not None}
        return {"name": self.name, "rows": self.rows, "sha256": self.sha256, **seen}

    def shard(self, folder: Path, n_bits: int) -> Shard:
        """Return the file."""
        return Shard(folder / self.name, (self.rows, codes.bytes_per_code(n_bits)), self.sha256)


def write_shards(
    folder: Path,
    about: Document,
    encode: Callable[[int, int], Generator[Codes]],
    rows_per_shard: int,
    witness: Witness,
) -> None:
    """Write the shards that are not there yet; ``encode`` gives the codes of a stretch of rows, in blocks.

    ``about`` holds n_bits, n_rows, and the fingerprints of model and vectors.
    """
    about = {"layout": LAYOUT, **about, "rows_per_shard": rows_per_shard}
    finished = _begin(folder, about)
    stretches = [
        (first, min(first + rows_per_shard, about["n_rows"])) for first in range(0, about["n_rows"], rows_per_shard)
    ]
    sure = {number for number, done in finished.items() if _is_sure(folder, done, witness, stretches[number])}
    for run in _runs(number for number in range(len(stretches)) if number not in sure):
        own = [stretches[number] for number in run]
        before = [witness.rows(*stretch) for stretch in own]
        with closing(encode(own[0][0], own[-1][1])) as blocks:  # its threads end here, whatever happens
            arrays = _regrouped(blocks, [last - first for first, last in own])
            for number, stretch, rows, array in zip(run, own, before, arrays, strict=True):
                witness.refuse_change(*stretch, rows)
                new = Finished(number, len(array), sha256_of(_file_of(array)), witness.state, rows)
                _write_shard(folder, new, array, finished.get(number))
                finished[number] = new
                _write_manifest(folder, about, finished)


def _begin(folder: Path, about: Document) -> dict[int, Finished]:
    """Return the finished shards of an earlier run, verified; refuse a directory of something else."""
    begun = MANIFEST.begun(folder)
    for left_over in folder.glob(f"{TEMPORARY}*"):
        left_over.unlink(missing_ok=True)
    if not begun:
        make_folder(folder)
        _write_manifest(folder, about, {})
        return {}
    document = MANIFEST.read(folder)
    for name, value in {"ilhash": __version__, **about}.items():
        if name != "bits" and document.get(name) != value:
            raise ValueError(
                f"{folder} must hold shards of the same {name}, got {str(document.get(name))[:16]} there and "
                f"{str(value)[:16]} here; choose a new directory"
            )
    finished = _finished(folder, document)
    for done in finished.values():
        if (folder / done.name).exists():
            done.shard(folder, about["n_bits"]).verify()
    return finished


def _finished(folder: Path, document: Document) -> dict[int, Finished]:
    """Return the shards that a manifest names, each of which has the rows of its number."""
    about = Record(document, str(folder / MANIFEST.name))
    about.one_of("layout", (LAYOUT,))
    n_rows, per_shard = about.whole("n_rows", 1), about.whole("rows_per_shard", 1)
    found = [Finished.read(entry) for entry in about.records("shards")]
    for done in found:
        first = done.number * per_shard
        if done.rows != min(per_shard, n_rows - first):
            raise DamagedFileError(f"{about.where} must have the rows of shard {done.number}, got {done.rows}")
    numbers = [done.number for done in found]
    if numbers != sorted(set(numbers)):
        raise DamagedFileError(f"{about.where} must name each shard once, in order, got others")
    return dict(zip(numbers, found, strict=True))


def _is_sure(folder: Path, done: Finished, witness: Witness, stretch: tuple[int, int]) -> bool:
    """Whether a shard is there and of these vectors; files that were written since must be encoded again to tell."""
    if not (folder / done.name).exists():
        return False
    if done.vectors is not None and (now := witness.rows(*stretch)) is not None and now != done.vectors:
        raise _other_vectors(folder, done)
    return done.source is None or done.source == witness.state


def _other_vectors(folder: Path, done: Finished) -> ValueError:
    got = f"others than those of {done.name}: what was encoded was written since"
    return ValueError(f"{folder} must hold shards of the same vectors, got {got}; choose a new directory")


def _runs(numbers: Iterable[int]) -> list[range]:
    """Return runs of neighbouring numbers: one, unless somebody removed a shard in the middle."""
    runs: list[range] = []
    for number in numbers:
        if runs and runs[-1].stop == number:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def _regrouped(blocks: Iterator[Codes], sizes: list[int]) -> Iterator[Codes]:
    """Give the rows of the blocks again, in arrays of these lengths."""
    left: Codes | None = None
    for size in sizes:
        parts: list[Codes] = []
        while size:
            block = next(blocks) if left is None else left
            parts.append(block[:size])
            left = block[size:] if len(block) > size else None
            size -= len(parts[-1])
        yield np.concatenate(parts)


def _file_of(array: Codes) -> tuple[Any, Any]:
    return npy_header(array.dtype, array.shape), array.reshape(-1).data


def _write_shard(folder: Path, new: Finished, array: Codes, old: Finished | None) -> None:
    """Write a shard; of one that was there before, the codes must be the same."""
    if old is not None and old.sha256 != new.sha256:
        raise _other_vectors(folder, old)
    write_file(folder / new.name, _file_of(array))


def _write_manifest(folder: Path, about: Document, finished: dict[int, Finished]) -> None:
    MANIFEST.write(folder, {**about, "shards": [finished[number].document() for number in sorted(finished)]})


def open_shards(folder: Path, n_bits: int | None) -> StoredCodes:
    """Open the codes of a directory; refuse one that is not finished."""
    document = MANIFEST.read(folder)
    about = Record(document, str(folder / MANIFEST.name))
    bits, n_rows = about.whole("n_bits", 1, MOST_BITS), about.whole("n_rows", 1)
    finished = _finished(folder, document)
    rows = sum(done.rows for done in finished.values())
    if rows != n_rows:
        raise ValueError(
            f"{folder} must hold the codes of {n_rows} rows, got {rows}: encoding was not finished, give the same "
            "command again"
        )
    if n_bits not in (None, bits):
        raise ValueError(f"{folder} must have {n_bits} bits, got {bits} (stated in its manifest)")
    shards = [done.shard(folder, bits) for done in finished.values()]
    return StoredCodes(folder, bits, shards, about.text("model", SHA256), read_bits(about, bits))
