"""Models as directories: config.json and safetensors, never pickle.

A model is a directory of ``config.json`` (format number, library version, parameters, what each bit reported, and size
and SHA-256 of every other file and of itself) and of files named after their content. Writing is: each file to a
temporary name, fsync, rename, fsync of the directory, and config.json last. Until that last rename the old model is
whole, and after it the new one is; a crash in between leaves at most a file that nobody names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.storage._damage import DamagedFileError, check_sha256, sha256_of
from ilhash.storage._durable import make_folder, write_file
from ilhash.storage._sealed import Sealed

_CONFIG = Sealed("config.json", "a model of ilhash", 1)
_OURS = ("arrays-", "classifier-")  # beginnings of the names of files that we write and may remove


@dataclass
class Contents:
    """What is in a model's directory: a JSON document, arrays, and opaque files by name."""

    document: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    blobs: dict[str, bytes]


def write_directory(path: Path, contents: Contents) -> None:
    """Write contents to a new or existing model directory."""
    from safetensors.numpy import save as to_safetensors

    _CONFIG.begun(path)
    make_folder(path)
    arrays = {name: np.ascontiguousarray(array) for name, array in contents.arrays.items()}
    parts = {"arrays": (to_safetensors(arrays), ".safetensors")}
    parts |= {name: (blob, ".skops") for name, blob in contents.blobs.items()}
    files: dict[str, dict[str, Any]] = {}
    for role, (data, suffix) in parts.items():
        digest = sha256_of([data])
        name = f"{role}-{digest[:16]}{suffix}"
        write_file(path / name, [data])
        files[role] = {"name": name, "bytes": len(data), "sha256": digest}
    _CONFIG.write(path, {**contents.document, "files": files})
    named = {entry["name"] for entry in files.values()}
    for old in path.iterdir():
        if old.name.startswith(_OURS) and old.name not in named:
            old.unlink()


def read_directory(path: Path) -> Contents:
    """Read and verify a model directory; whatever is wrong with it is said in one sentence."""
    from safetensors.numpy import load as from_safetensors

    if not path.exists():
        raise FileNotFoundError(f"model {path} must be a directory written by save, got a path that does not exist")
    document = _CONFIG.read(path)
    blobs = {role: _read_file(path, entry) for role, entry in document["files"].items()}
    return Contents(document, from_safetensors(blobs.pop("arrays")), blobs)


def _read_file(path: Path, entry: dict[str, Any]) -> bytes:
    file = path / entry["name"]
    if not file.is_file():
        raise FileNotFoundError(f"model {path} must contain {entry['name']}, got no such file")
    data: bytes = file.read_bytes()
    if len(data) != entry["bytes"]:
        raise DamagedFileError(
            f"{file} must have {entry['bytes']} bytes, got {len(data)}: it was truncated or extended"
        )
    check_sha256(file, entry["sha256"], sha256_of([data]))
    return data
