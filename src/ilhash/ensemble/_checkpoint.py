"""Finished bits of a run in a directory, so that a killed run goes on from there with the same bytes.

``checkpoint.json`` says whose bits they are: model, parameters, seed, data and library version, under one fingerprint.
Each bit is one safetensors file with its report and a SHA-256 inside, written durably, in any order. Bits are numbered
from the model's first, so one directory serves ``fit`` and every later ``add_bits``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import objective as objectives
from ilhash._files import TEMPORARY, library_version, make_folder, sync_folder, write_file
from ilhash._parameters import resolve_seed
from ilhash.ensemble._bit import BitReport, TrainedBit
from ilhash.functions import functions_from_arrays, functions_to_arrays

__all__ = ["Checkpoint", "seed_of_run"]

FORMAT = 1
_ABOUT = "checkpoint.json"
_BLOB = "blob."  # beginning of the names of arrays that hold the file of a classifier
_IRRELEVANT = ("n_bits", "n_jobs", "random_state")  # the seed that random_state came to is compared instead

Path_ = str | os.PathLike[str]


def seed_of_run(random_state: Any, checkpoint: Path_ | None) -> int:
    """Return the seed: for random_state=None that of the run that the checkpoint is of, if there is one."""
    about = None if checkpoint is None or random_state is not None else _read_about(Path(checkpoint))
    return resolve_seed(random_state) if about is None else int(about["seed"])


class Checkpoint:
    """The finished bits of one model on one set of data.

    Parameters
    ----------
    path : a directory that holds a checkpoint of the same model and data, or that is empty or not there
    parameters : the model's
    seed : what its random_state came to
    data : fingerprint of vectors and supervision
    """

    def __init__(self, path: Path_, parameters: dict[str, Any], seed: int, data: str) -> None:
        self.path = Path(path)
        told = {name: _told(value) for name, value in parameters.items() if name not in _IRRELEVANT}
        wanted = {"format": FORMAT, "ilhash": library_version(), "parameters": told, "seed": seed, "data": data}
        wanted["fingerprint"] = _digest(wanted)
        about = _read_about(self.path)
        if about is None:
            make_folder(self.path)
            _write(self.path / _ABOUT, json.dumps(wanted, indent=1).encode())
        elif about != wanted:
            raise ValueError(
                f"checkpoint {self.path} must be of the same model and data, got another's: "
                f"{_difference(about, wanted)}"
            )

    def read(self, bits: Iterable[int]) -> dict[int, TrainedBit]:
        """Return those of the bits that are there."""
        return {bit: _read_bit(self._file(bit), bit) for bit in bits if self._file(bit).exists()}

    def write(self, bit: int, trained: TrainedBit) -> None:
        """Keep a finished bit; it is on disk when this returns."""
        from safetensors.numpy import save

        arrays, blobs = functions_to_arrays([trained.function])
        arrays |= {f"{_BLOB}{name}": np.frombuffer(data, np.uint8) for name, data in blobs.items()}
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        report = json.dumps(asdict(trained.report))
        _write(self._file(bit), save(arrays, {"report": report, "sha256": _digest_of_bit(arrays, report)}))

    def _file(self, bit: int) -> Path:
        return self.path / f"bit-{bit:06d}.safetensors"


# ------------------------------------------------------------------------------------------------ whose bits


def _told(value: Any) -> Any:
    """Return a parameter as JSON that is the same in another process."""
    if isinstance(value, tuple | list):
        return [_told(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | int | float | bool | None):
        return value
    if hasattr(value, "get_params") or not callable(value):
        return " ".join(repr(value).split())
    # A loss is known by its name and by what it does: its repr is an address.
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return f"{name} {objectives.coefficients(value, np.array([1.0, -1.0])).tolist()}"


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _difference(about: dict[str, Any], wanted: dict[str, Any]) -> str:
    ours, theirs = wanted["parameters"], about.get("parameters", {})
    for name in ours:
        if theirs.get(name) != ours[name]:
            return f"{name}={theirs.get(name)!r} there and {ours[name]!r} here"
    for name, called in (("seed", "seed"), ("data", "data of fingerprint"), ("ilhash", "ilhash")):
        if about.get(name) != wanted[name]:
            return f"{called} {str(about.get(name))[:16]} there and {str(wanted[name])[:16]} here"
    return "its description was altered"


def _read_about(path: Path) -> dict[str, Any] | None:
    """Return the description of the checkpoint at ``path``, or None where one may be begun."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"checkpoint must be a directory, got the file {path}")
    file = path / _ABOUT
    if not file.exists():
        others = [p.name for p in path.iterdir() if not p.name.startswith(TEMPORARY)] if path.is_dir() else []
        if others:
            raise ValueError(
                f"checkpoint must be a new directory or one that holds a checkpoint, got {path} with other files in it"
            )
        return None
    try:
        about = json.loads(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{file} must be the description of a checkpoint, got something else: {error}") from None
    if not isinstance(about, dict) or not isinstance(about.get("format"), int) or "seed" not in about:
        raise ValueError(f"{file} must be the description of a checkpoint, got another JSON document")
    if about["format"] > FORMAT:
        raise ValueError(f"{file} must have format {FORMAT} or older, got {about['format']}: upgrade ilhash")
    return about


# ------------------------------------------------------------------------------------------------ bits


def _write(path: Path, data: bytes) -> None:
    write_file(path, [data])
    sync_folder(path.parent)


def _digest_of_bit(arrays: dict[str, NDArray[Any]], report: str) -> str:
    digest = hashlib.sha256(report.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _read_bit(file: Path, bit: int) -> TrainedBit:
    from safetensors import safe_open

    try:
        with safe_open(file, "np") as content:
            told = content.metadata() or {}
            arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 (no mapping)
        whole = told.get("sha256") == _digest_of_bit(arrays, told.get("report", ""))
    except OSError:
        raise
    except Exception as error:  # of safetensors, which has its own kind
        raise ValueError(_damaged(file, bit, str(error))) from None
    if not whole:
        raise ValueError(_damaged(file, bit, "other content"))
    blobs = {name.removeprefix(_BLOB): a.tobytes() for name, a in arrays.items() if name.startswith(_BLOB)}
    (function,) = functions_from_arrays(
        {name: a for name, a in arrays.items() if not name.startswith(_BLOB)}, blobs, None
    )
    return TrainedBit(function, BitReport(**json.loads(told["report"])))


def _damaged(file: Path, bit: int, got: str) -> str:
    return f"{file} must be as it was written, got {got}; remove it to train bit {bit} again"
