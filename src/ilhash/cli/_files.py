"""Files that commands read and write: codes, ids, hits."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash import datasets
from ilhash._files import stage
from ilhash.shards import is_shard_directory, open_codes

__all__ = [
    "HitLists",
    "check_new_file",
    "distances_beside",
    "hits_as_files",
    "hits_as_json",
    "read_codes",
    "read_ids",
    "write_files",
]

Codes = NDArray[np.uint8]
HitLists = Sequence[tuple[NDArray[Any], NDArray[Any]]]  # ids and distances of each query


# ------------------------------------------------------------------------------------------------ reading


def read_codes(path: Path, n_bits: int | None) -> tuple[Codes, int]:
    """Return codes, of a .npy file as a memory map or of a directory of shards, and their number of bits.

    The number stands in the .json file that ``ilhash encode`` writes beside the codes, or is given; without either all
    bits of every byte count.
    """
    if is_shard_directory(path):
        shards = open_codes(path)
        if n_bits not in (None, shards.n_bits):
            raise ValueError(f"{path} must have {n_bits} bits, got {shards.n_bits} (stated in its manifest)")
        return shards.read(), shards.n_bits
    codes = datasets.read_matrix(path)
    stated = _stated_bits(path.with_name(path.name + ".json"))
    if n_bits is not None and stated is not None and n_bits != stated:
        raise ValueError(f"{path} must have {n_bits} bits, got {stated} (stated in {path.name}.json)")
    bits = next(bits for bits in (n_bits, stated, 8 * codes.shape[1]) if bits is not None)
    return packed.check(codes, bits, str(path)), bits


def _stated_bits(path: Path) -> int | None:
    if not path.exists():
        return None
    try:
        bits = json.loads(path.read_text(encoding="utf-8"))["n_bits"]
    except (ValueError, TypeError, KeyError):
        bits = None
    if type(bits) is not int or bits < 1:
        raise ValueError(f"{path} must state n_bits, the number of bits of the codes beside it, got something else")
    return bits


def read_ids(source: str) -> NDArray[Any]:
    """Return ids: the lines of a .txt file as they are, or what any file of labels holds."""
    path = Path(source)
    if path.suffix.lower() != ".txt":
        return datasets.read_vector(source)
    if not path.is_file():
        raise FileNotFoundError(f"{path} must be a file of one id per line, got none")
    try:
        lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be a text in UTF-8, got something else: {error}") from None
    blank = sum(not line for line in lines)
    if blank:
        raise ValueError(f"{path} must have an id in every line, got {blank} of {len(lines)} lines without")
    return np.array(lines, object)


# ------------------------------------------------------------------------------------------------ writing


def check_new_file(option: str, path: Path, suffixes: Sequence[str], *, force: bool) -> None:
    """Refuse a file that could not, or should not, be written when the work is done."""
    if path.suffix not in suffixes:
        raise ValueError(f"{option} must be a {' or '.join(suffixes)} file, got {path}")
    if path.exists() and not (force and path.is_file()):
        raise ValueError(f"{option} must be a new file, got {path}, which exists; --force replaces a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{option} must be in a folder that exists, got {path}")


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files that appear when all of them are complete."""
    staged: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            staged[path] = stage(path.parent, [data])
        for path, temporary in staged.items():
            os.replace(temporary, path)
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)


def hits_as_json(found: HitLists) -> str:
    """Return one object per query, as JSON in ASCII."""
    return json.dumps(
        [{"query": q, "ids": ids.tolist(), "distances": distances.tolist()} for q, (ids, distances) in enumerate(found)]
    )


def hits_as_files(path: Path, found: HitLists) -> dict[Path, bytes]:
    """Return what is written: .json; .npz of offsets, ids and distances; .npy of ids, with distances beside it."""
    if path.suffix == ".json":
        return {path: hits_as_json(found).encode() + b"\n"}
    ids = [ids.astype(str) if ids.dtype == object else ids for ids, _ in found]
    distances = [distances for _, distances in found]
    buffer = io.BytesIO()
    if path.suffix == ".npz":
        offsets = np.cumsum([0, *map(len, ids)])
        np.savez(buffer, offsets=offsets, ids=np.concatenate(ids), distances=np.concatenate(distances))
        return {path: buffer.getvalue()}
    if len({len(row) for row in ids}) > 1:
        raise ValueError(f"--output must be a .npz or .json file where queries differ in their hits, got {path}")
    return {path: _npy(np.array(ids)), distances_beside(path): _npy(np.array(distances))}


def distances_beside(path: Path) -> Path:
    """Return the file of the distances that belongs to a .npy file of ids."""
    return path.with_suffix(".distances.npy")


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
