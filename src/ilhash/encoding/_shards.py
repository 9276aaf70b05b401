"""Codes in shards: a directory of .npy files and a manifest, written one after the other, restartable after a kill.

``manifest.json`` names the model and the vectors by fingerprint, the number of bits, the layout, and rows and SHA-256
of every finished shard; it is replaced durably after each. A run that was killed goes on behind the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ilhash import codes
from ilhash._version import __version__
from ilhash.encoding._stored import LAYOUT, Codes, Shard, StoredCodes
from ilhash.storage import TEMPORARY, Sealed, make_folder, npy_header, sha256_of, write_file

MANIFEST = Sealed("manifest.json", "shards", 1, kind="codes")

Document = dict[str, Any]


def write_shards(
    folder: Path, about: Document, encode: Callable[[int, int], Generator[Codes]], rows_per_shard: int
) -> None:
    """Write the shards that are not there yet; ``encode`` gives the codes of a stretch of rows, in blocks.

    ``about`` holds n_bits, n_rows, and the fingerprints of model and vectors.
    """
    about = {"layout": LAYOUT, **about, "rows_per_shard": rows_per_shard}
    finished = _begin(folder, about)
    sizes = [min(rows_per_shard, about["n_rows"] - first) for first in range(0, about["n_rows"], rows_per_shard)]
    for run in _missing_runs(folder, finished, len(sizes)):
        first, wanted = run.start * rows_per_shard, [sizes[number] for number in run]
        with closing(encode(first, first + sum(wanted))) as blocks:  # its threads end here, whatever happens
            for number, array in zip(run, _regrouped(blocks, wanted), strict=True):
                finished[number] = _write_shard(folder, number, array)
                _write_manifest(folder, about, finished)


def _begin(folder: Path, about: Document) -> dict[int, Document]:
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
        if document[name] != value:
            raise ValueError(
                f"{folder} must hold shards of the same {name}, got {str(document[name])[:16]} there and "
                f"{str(value)[:16]} here; choose a new directory"
            )
    finished = {int(entry["name"][6:12]): entry for entry in document["shards"]}
    for entry in finished.values():
        if (folder / entry["name"]).exists():
            _shard(folder, entry, document).verified()
    return finished


def _missing_runs(folder: Path, finished: dict[int, Document], n_shards: int) -> list[range]:
    """Return the runs of neighbouring shards that are still to be written: one, unless somebody removed some."""
    runs: list[range] = []
    for number in range(n_shards):
        if number in finished and (folder / finished[number]["name"]).exists():
            continue
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


def _write_shard(folder: Path, number: int, array: Codes) -> Document:
    name = f"codes-{number:06d}.npy"
    data = (npy_header(array.dtype, array.shape), array.reshape(-1).data)
    write_file(folder / name, data)
    return {"name": name, "rows": len(array), "sha256": sha256_of(data)}


def _write_manifest(folder: Path, about: Document, finished: dict[int, Document]) -> None:
    MANIFEST.write(folder, {**about, "shards": [finished[number] for number in sorted(finished)]})


def _shard(folder: Path, entry: Document, document: Document) -> Shard:
    return Shard(folder / entry["name"], (entry["rows"], codes.bytes_per_code(document["n_bits"])), entry["sha256"])


def open_shards(folder: Path, n_bits: int | None) -> StoredCodes:
    """Open the codes of a directory; refuse one that is not finished."""
    document = MANIFEST.read(folder)
    rows = sum(entry["rows"] for entry in document["shards"])
    if rows != document["n_rows"]:
        raise ValueError(
            f"{folder} must hold the codes of {document['n_rows']} rows, got {rows}: encoding was not finished, give "
            "the same command again"
        )
    if n_bits not in (None, document["n_bits"]):
        raise ValueError(f"{folder} must have {n_bits} bits, got {document['n_bits']} (stated in its manifest)")
    return StoredCodes(folder, document["n_bits"], [_shard(folder, entry, document) for entry in document["shards"]])
