"""Finished bits of a run in a directory, so that a killed run goes on from there with the same bytes.

``checkpoint.json`` says whose bits they are: model, parameters, seed, data and library version, under one fingerprint.
Each bit is one safetensors file with its report and a SHA-256 inside, written durably, in any order. Bits are numbered
from the model's first, so one directory serves ``fit`` and every later ``add_bits``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ilhash import objective as objectives
from ilhash._checks import resolve_seed
from ilhash.ensemble._bit import BitReport, TrainedBit
from ilhash.functions import functions_from_arrays, functions_to_arrays
from ilhash.storage import DamagedFileError, Sealed, SealedArrays, make_folder

_ABOUT = Sealed("checkpoint.json", "a checkpoint", 1, seal="fingerprint")
_BIT = SealedArrays(text="report")
_BLOB = "blob."  # beginning of the names of arrays that hold the file of a classifier
_IRRELEVANT = ("n_bits", "n_jobs", "random_state")  # the seed that random_state came to is compared instead

Path_ = str | os.PathLike[str]


def seed_of_run(random_state: Any, checkpoint: Path_ | None) -> int:
    """Return the seed: for random_state=None that of the run that the checkpoint is of, if there is one."""
    about = None if checkpoint is None or random_state is not None else _read_about(Path(checkpoint))
    return resolve_seed(random_state) if about is None else int(about["seed"])


class Checkpoint:
    """The finished bits of one model on one set of data, in a directory of their own that may not be there yet.

    ``seed`` is what the model's random_state came to, ``data`` the fingerprint of vectors and supervision.
    """

    def __init__(self, path: Path_, parameters: dict[str, Any], seed: int, data: str) -> None:
        self.path = Path(path)
        relevant = {name: _as_json(value) for name, value in parameters.items() if name not in _IRRELEVANT}
        wanted = _ABOUT.sealed({"parameters": relevant, "seed": seed, "data": data})
        about = _read_about(self.path)
        if about is None:
            make_folder(self.path)
            _ABOUT.write(self.path, wanted)
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
        arrays, blobs = functions_to_arrays([trained.function])
        arrays |= {f"{_BLOB}{name}": np.frombuffer(data, np.uint8) for name, data in blobs.items()}
        _BIT.write(self._file(bit), arrays, json.dumps(asdict(trained.report)))

    def _file(self, bit: int) -> Path:
        return self.path / f"bit-{bit:06d}.safetensors"


# ------------------------------------------------------------------------------------------------ whose bits


def _as_json(value: Any) -> Any:
    """Return a parameter as JSON that is the same in another process."""
    if isinstance(value, tuple | list):
        return [_as_json(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | int | float | bool | None):
        return value
    if hasattr(value, "get_params") or not callable(value):
        return " ".join(repr(value).split())
    # A loss is known by its name and by what it does: its repr is an address.
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return f"{name} {objectives.coefficients(value, np.array([1.0, -1.0])).tolist()}"


def _difference(about: dict[str, Any], wanted: dict[str, Any]) -> str:
    ours, theirs = wanted["parameters"], about.get("parameters", {})
    for name in ours:
        if theirs.get(name) != ours[name]:
            return f"{name}={theirs.get(name)!r} there and {ours[name]!r} here"
    for name, called in (("seed", "seed"), ("data", "data of fingerprint"), ("ilhash", "ilhash")):
        if about.get(name) != wanted[name]:
            return f"{called} {str(about.get(name))[:16]} there and {str(wanted[name])[:16]} here"
    return "other parameters"


def _read_about(path: Path) -> dict[str, Any] | None:
    """Return the description of the checkpoint at ``path``, or None where one may be begun."""
    return _ABOUT.read(path) if _ABOUT.begun(path, "checkpoint") else None


# ------------------------------------------------------------------------------------------------ bits


def _read_bit(file: Path, bit: int) -> TrainedBit:
    try:
        arrays, report = _BIT.read(file)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; remove it to train bit {bit} again") from None
    blobs = {name.removeprefix(_BLOB): a.tobytes() for name, a in arrays.items() if name.startswith(_BLOB)}
    (function,) = functions_from_arrays(
        {name: a for name, a in arrays.items() if not name.startswith(_BLOB)}, blobs, None
    )
    return TrainedBit(function, BitReport(**json.loads(report)))
