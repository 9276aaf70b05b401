"""Codes in shards: a directory of .npy files and a manifest, written one after the other, restartable after a kill.

``manifest.json`` names the model and the vectors by fingerprint, the number of bits, the layout, and rows and SHA-256
of every finished shard; it is replaced durably after each. A run that was killed goes on behind the last of them.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Any

import joblib
import numpy as np
from numpy.typing import NDArray

from ilhash import codes
from ilhash._files import TEMPORARY, library_version, make_folder, sync_folder, write_file
from ilhash._parameters import check_count
from ilhash.parallel import single_threaded_blas
from ilhash.sources import VectorSource, fingerprint

__all__ = ["MANIFEST", "CodeShards", "is_shard_directory", "open_codes", "write_codes"]

FORMAT = 1
MANIFEST = "manifest.json"
LAYOUT = "uint8, most significant bit first, padding zero"
ROWS_PER_SHARD = 1_000_000
BLOCK_BYTES = 8 << 20  # of vectors that a thread encodes at once
AHEAD_BYTES = 256 << 20  # of all blocks that threads are given together

Codes = NDArray[np.uint8]
Path_ = str | os.PathLike[str]
Progress = Callable[[int, int], None]


# ------------------------------------------------------------------------------------------------ writing


def write_codes(
    model: Any, X: Any, path: Path_, *, rows_per_shard: int = ROWS_PER_SHARD, progress: Progress | None = None
) -> CodeShards:
    """Encode vectors to a directory of shards, in bounded memory; go on where an earlier run ended.

    Parameters
    ----------
    model : a fitted model
    X : array (n, D), also a memory map or what datasets.open_vectors gives
    path : a new directory, or one that holds shards of the same model and vectors
    rows_per_shard : codes in every shard but the last
    progress : called with (rows done, rows in all)

    Returns
    -------
    CodeShards
        The codes, opened.
    """
    X = model._input(X)
    folder = Path(path)
    about = {
        "format": FORMAT,
        "kind": "codes",
        "ilhash": library_version(),
        "n_bits": len(model.functions_),
        "layout": LAYOUT,
        "n_rows": len(X),
        "rows_per_shard": check_count("rows_per_shard", rows_per_shard),
        "model": model_fingerprint(model),
        "vectors": fingerprint(X),
    }
    finished = _begin(folder, about)
    for number in range(-(-len(X) // rows_per_shard)):
        first, last = number * rows_per_shard, min((number + 1) * rows_per_shard, len(X))
        name = f"codes-{number:06d}.npy"
        if not (number in finished and (folder / name).exists()):
            array = _encode(model, X, first, last, progress)
            data = _as_npy(array)
            write_file(folder / name, data)
            digest = hashlib.sha256()
            for part in data:
                digest.update(part)
            finished[number] = {"name": name, "rows": last - first, "sha256": digest.hexdigest()}
            _write_manifest(folder, about, finished)
        if progress is not None:
            progress(last, len(X))
    return open_codes(folder)


def model_fingerprint(model: Any) -> str:
    """Identify what a model does to vectors: its functions and its origin."""
    contents = model._to_contents()
    digest = hashlib.sha256()
    for name, array in sorted(contents.arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    for name, blob in sorted(contents.blobs.items()):
        digest.update(name.encode() + blob)
    return digest.hexdigest()


def _begin(folder: Path, about: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the finished shards of an earlier run, verified; refuse a directory of something else."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"path must be a directory for shards, got the file {folder}")
    if not (folder / MANIFEST).exists():
        if folder.is_dir() and any(not entry.name.startswith(TEMPORARY) for entry in folder.iterdir()):
            raise ValueError(f"path must be a new directory or one that holds shards, got {folder} with other files")
        make_folder(folder)
        _write_manifest(folder, about, {})
        return {}
    document = _read_manifest(folder)
    for name, value in about.items():
        if document[name] != value:
            raise ValueError(
                f"{folder} must hold shards of the same {name}, got {str(document[name])[:16]} there and "
                f"{str(value)[:16]} here; choose a new directory"
            )
    for left_over in folder.glob(f"{TEMPORARY}*"):
        left_over.unlink(missing_ok=True)
    finished = {int(entry["name"][6:12]): entry for entry in document["shards"]}
    for entry in finished.values():
        if (folder / entry["name"]).exists():
            _read_shard(folder, entry, document)
    return finished


def _write_manifest(folder: Path, about: dict[str, Any], finished: dict[int, dict[str, Any]]) -> None:
    document = {**about, "shards": [finished[number] for number in sorted(finished)]}
    document["checksum"] = _checksum(document)
    sync_folder(folder)  # no manifest names a shard that a power failure could take away
    write_file(folder / MANIFEST, [json.dumps(document, indent=1).encode()])
    sync_folder(folder)


def _checksum(document: dict[str, Any]) -> str:
    bare = {key: value for key, value in document.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()


def _as_npy(array: Codes) -> list[Any]:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return [header.getvalue(), array.reshape(-1)]


def _encode(model: Any, X: Any, first: int, last: int, progress: Progress | None) -> Codes:
    """Read blocks one after the other, and encode each in a thread of its own while the next ones are read."""
    out = np.empty((last - first, codes.bytes_per_code(len(model.functions_))), np.uint8)
    workers = joblib.cpu_count()
    step = max(1, min(BLOCK_BYTES, AHEAD_BYTES // workers) // (X.shape[1] * X.dtype.itemsize))
    done = 0
    # One thread for each product: decoding, the passes around a product and the product itself fill all cores.
    with single_threaded_blas(), ThreadPoolExecutor(workers, "ilhash-encode") as pool:
        for packed in _in_order(pool, partial(_packed, model), _blocks(X, first, last, step), workers):
            out[done : done + len(packed)] = packed
            done += len(packed)
            if progress is not None:
                progress(first + done, len(X))
    return out


def _packed(model: Any, block: NDArray[Any]) -> Codes:
    """Encode a block of vectors that were checked with all others: ``transform`` would ask for their names again."""
    return np.concatenate([codes.pack(margins > 0) for _, margins in model._margins(block)])


def _in_order(
    pool: ThreadPoolExecutor, work: Callable[[Any], Codes], blocks: Iterator[NDArray[Any]], ahead: int
) -> Iterator[Codes]:
    """Give what the pool makes of the blocks, in their order; at most so many of them wait or are worked on."""
    pending: deque[Future[Codes]] = deque()
    for block in blocks:
        pending.append(pool.submit(work, block))
        if len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _blocks(X: Any, first: int, last: int, step: int) -> Iterator[NDArray[Any]]:
    if isinstance(X, VectorSource):
        yield from X.blocks(step, first, last)
    else:
        for begin in range(first, last, step):
            yield X[begin : min(begin + step, last)]


# ------------------------------------------------------------------------------------------------ reading


class CodeShards:
    """Codes of a directory of shards.

    Attributes
    ----------
    path : the directory
    n_bits : bits per code
    shape : rows and bytes per row
    names : of the shards, in order
    """

    def __init__(self, path: Path, document: dict[str, Any]) -> None:
        self.path = path
        self._document = document
        self.n_bits = int(document["n_bits"])
        self.shape = (int(document["n_rows"]), codes.bytes_per_code(self.n_bits))
        self.names = [entry["name"] for entry in document["shards"]]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Codes]:
        """Give the shards one after the other, each verified."""
        for entry in self._document["shards"]:
            yield _read_shard(self.path, entry, self._document)

    def read(self) -> Codes:
        """Return all codes as one array in memory (one shard: as a memory map), verified."""
        if len(self.names) == 1:
            return next(iter(self))
        out = np.empty(self.shape, np.uint8)
        done = 0
        for shard in self:
            out[done : done + len(shard)] = shard
            done += len(shard)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.read(), dtype=dtype)


def is_shard_directory(path: Path_) -> bool:
    """Whether a path is a directory of shards."""
    return (Path(path) / MANIFEST).is_file()


def open_codes(path: Path_) -> CodeShards:
    """Open the codes that ``write_codes`` or ``ilhash encode`` wrote to a directory.

    Examples
    --------
    >>> codes = open_codes("codes")  # doctest: +SKIP
    >>> index = ilhash.HammingIndex(codes.read(), n_bits=codes.n_bits)  # doctest: +SKIP
    """
    folder = Path(path)
    document = _read_manifest(folder)
    rows = sum(entry["rows"] for entry in document["shards"])
    if rows != document["n_rows"]:
        raise ValueError(
            f"{folder} must hold the codes of {document['n_rows']} rows, got {rows}: encoding was not finished, give "
            "the same command again"
        )
    for entry in document["shards"]:
        _map_shard(folder, entry, document)
    return CodeShards(folder, document)


def _read_manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    if not file.is_file():
        raise FileNotFoundError(f"{folder} must be a directory of codes with a {MANIFEST}, got none")
    try:
        document = json.loads(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{file} must be a JSON document, got something else: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != "codes":
        raise ValueError(f"{file} must be the manifest of a directory of codes, got another JSON document")
    if document.get("format") != FORMAT:
        raise ValueError(f"{file} must have format {FORMAT}, got {document.get('format')!r}: upgrade ilhash")
    if document.get("checksum") != _checksum(document):
        raise ValueError(f"{file} must be as it was written, got content that does not match its checksum")
    return document


def _map_shard(folder: Path, entry: dict[str, Any], document: dict[str, Any]) -> Codes:
    file = folder / entry["name"]
    if not file.is_file():
        raise FileNotFoundError(f"{folder} must hold the shard {entry['name']}, got no such file")
    wanted = (entry["rows"], codes.bytes_per_code(document["n_bits"]))
    try:
        shard: Codes = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"shard {file} must be as it was written, got a damaged file: {error}") from None
    if shard.shape != wanted or shard.dtype != np.uint8:
        raise ValueError(
            f"shard {file} must hold codes of shape {wanted}, got shape {shard.shape} of dtype {shard.dtype}"
        )
    return shard


def _read_shard(folder: Path, entry: dict[str, Any], document: dict[str, Any]) -> Codes:
    """Map a shard and verify all of its bytes."""
    shard = _map_shard(folder, entry, document)
    with (folder / entry["name"]).open("rb") as file:
        digest = _sha256(file)
    if digest != entry["sha256"]:
        raise ValueError(
            f"shard {folder / entry['name']} must have SHA-256 {entry['sha256']}, got {digest}: it was altered; "
            "remove it to have it encoded again"
        )
    return shard


def _sha256(file: IO[bytes]) -> str:  # hashlib.file_digest is of Python 3.11
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()
