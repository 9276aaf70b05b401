"""Models as directories: config.json and safetensors, never pickle.

A model is a directory of ``config.json`` (format number, library version, parameters, what each bit reported, and size
and SHA-256 of every other file and of itself) and of files named after their content. Writing is: each file to a
temporary name, fsync, rename, fsync of the directory, and config.json last. Until that last rename the old model is
whole, and after it the new one is; a crash in between leaves at most a file that nobody names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._files import library_version, make_folder, sync_folder, write_file

__all__ = ["FORMAT", "Contents", "load", "read_directory", "read_model", "save", "write_directory"]

FORMAT = 1
_CONFIG = "config.json"
_OURS = ("arrays-", "classifier-")  # beginnings of the names of files that we write and may remove

Arrays = dict[str, NDArray[Any]]


class Contents:
    """What is in a model's directory: a JSON document, arrays, and opaque files by name."""

    def __init__(self, document: dict[str, Any], arrays: Arrays, blobs: dict[str, bytes] | None = None) -> None:
        self.document = document
        self.arrays = arrays
        self.blobs = blobs or {}


# ------------------------------------------------------------------------------------------------ models


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a directory, replacing a model that is there."""
    write_directory(Path(path), model._to_contents())


def load(path: str | os.PathLike[str], *, trusted: list[str] | None = None) -> Any:
    """Read a model that was written by ``model.save``.

    Parameters
    ----------
    path : the directory
    trusted : names of types, beyond those of scikit-learn, NumPy and SciPy, that a saved classifier may contain
    """
    contents = read_directory(Path(path))
    kind = str(contents.document.get("model"))
    readers = _readers()
    if kind not in readers:
        raise ValueError(f"{path} must hold a model of a known kind ({', '.join(readers)}), got {kind!r}")
    return read_model(contents, trusted)


def read_model(contents: Contents, trusted: list[str] | None) -> Any:
    """Make a model of what is in its directory, or in its part of that of a Mix."""
    return _readers()[contents.document["model"]](contents, trusted)


def _readers() -> Mapping[str, Callable[[Contents, list[str] | None], Any]]:
    from ilhash import methods
    from ilhash.ensemble import ILH, Mix

    own = {"ILH": ILH._from_contents, "Mix": Mix._from_contents}
    return {**own, **{name: methods.get(name)._from_contents for name in methods.available()}}


# ------------------------------------------------------------------------------------------------ directories


def write_directory(path: Path, contents: Contents) -> None:
    """Write contents to a new or existing model directory."""
    from safetensors.numpy import save as to_safetensors

    _prepare(path)
    arrays = {name: np.ascontiguousarray(array) for name, array in contents.arrays.items()}
    parts = {"arrays": (to_safetensors(arrays), ".safetensors")}
    parts |= {name: (blob, ".skops") for name, blob in contents.blobs.items()}
    files: dict[str, dict[str, Any]] = {}
    for role, (data, suffix) in parts.items():
        digest = hashlib.sha256(data).hexdigest()
        name = f"{role}-{digest[:16]}{suffix}"
        _write(path / name, data)
        files[role] = {"name": name, "bytes": len(data), "sha256": digest}
    document = {"format": FORMAT, "ilhash": library_version(), **contents.document, "files": files}
    document["checksum"] = _checksum(document)
    _write(path / _CONFIG, json.dumps(document, indent=1).encode())
    named = {entry["name"] for entry in files.values()}
    for old in path.iterdir():
        if old.name.startswith(_OURS) and old.name not in named:
            old.unlink()


def _prepare(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"path must be a directory for the model, got the file {path}")
    if path.is_dir() and any(path.iterdir()) and not (path / _CONFIG).exists():
        raise ValueError(f"path must be a new directory or one that holds a model, got {path} with other files in it")
    make_folder(path)


def _write(path: Path, data: bytes) -> None:
    write_file(path, [data])
    sync_folder(path.parent)


def _checksum(document: dict[str, Any]) -> str:
    bare = {key: value for key, value in document.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()


def read_directory(path: Path) -> Contents:
    """Read and verify a model directory; whatever is wrong with it is said in one sentence."""
    from safetensors.numpy import load as from_safetensors

    document = _read_config(path)
    blobs = {role: _read_file(path, entry) for role, entry in document["files"].items()}
    arrays = from_safetensors(blobs.pop("arrays"))
    return Contents(document, arrays, blobs)


def _read_config(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"model {path} must be a directory written by save, got a path that does not exist")
    config = path / _CONFIG
    if not config.is_file():
        raise FileNotFoundError(f"model {path} must be a directory with a {_CONFIG}, got none: not a model of ilhash")
    try:
        document = json.loads(config.read_bytes())
    except ValueError as error:
        raise ValueError(f"{config} must be a JSON document, got something else: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise ValueError(f"{config} must be the description of a model of ilhash, got another JSON document")
    if document["format"] > FORMAT:
        raise ValueError(
            f"model {path} must have format {FORMAT} or older, got format {document['format']} written by ilhash "
            f"{document.get('ilhash')}: upgrade ilhash"
        )
    if document.get("checksum") != _checksum(document):
        raise ValueError(f"{config} must be as it was written, got content that does not match its checksum")
    return document


def _read_file(path: Path, entry: dict[str, Any]) -> bytes:
    file = path / entry["name"]
    if not file.is_file():
        raise FileNotFoundError(f"model {path} must contain {entry['name']}, got no such file")
    data: bytes = file.read_bytes()
    if len(data) != entry["bytes"]:
        raise ValueError(f"{file} must have {entry['bytes']} bytes, got {len(data)}: it was truncated or extended")
    digest = hashlib.sha256(data).hexdigest()
    if digest != entry["sha256"]:
        raise ValueError(f"{file} must have SHA-256 {entry['sha256']}, got {digest}: it was altered")
    return data
