"""Finished bits of a run in a directory, so that a killed run goes on from there with the same bytes.

``checkpoint.json`` says whose bits they are: model, parameters, seed, data and library version, under one fingerprint.
Each bit is one safetensors file with its report and a SHA-256 inside, written durably, in any order. That is also of
the fingerprint and of the bit's number, so that a bit of another run or of another place is none of this one. Bits are
numbered from the model's first, so one directory serves ``fit`` and every later ``add_bits``.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ilhash import objective as objectives
from ilhash._checks import resolve_seed
from ilhash.ensemble._bit import BitReport, TrainedBit
from ilhash.functions import functions_from_arrays, functions_to_arrays
from ilhash.storage import (
    DamagedFileError,
    Record,
    Sealed,
    SealedArrays,
    UntrustedFileError,
    make_folder,
    parse_json,
)

_ABOUT = Sealed("checkpoint.json", "a checkpoint", 2, seal="fingerprint", most=1 << 20)
_UNBOUND = 1  # the format in which bits know only their own number
_BIT = SealedArrays(text="report")
_BLOB = "blob."  # beginning of the names of arrays that hold the file of a classifier
_IRRELEVANT = ("n_bits", "n_jobs", "random_state")  # the seed that random_state came to is compared instead
_CENTERS = 500  # the default of earlier versions
_OF_TREES = ("n_trees", "tree_depth", "learning_rate")

Path_ = str | os.PathLike[str]


def seed_of_run(random_state: Any, checkpoint: Path_ | None) -> int:
    """Return the seed: for random_state=None that of the run that the checkpoint is of, if there is one."""
    about = None if checkpoint is None or random_state is not None else _read_about(Path(checkpoint))
    if about is None:
        return resolve_seed(random_state)
    return Record(about, f"the description of {checkpoint}").whole("seed", most=2**128)


def parameters_of_bits(parameters: dict[str, Any], start: str, scaling: str) -> dict[str, Any]:
    """Return the parameters that finished bits depend on: of start and scaling, what they came to.

    A random start is not named: bits of earlier versions, which had no other, are theirs too. Nor are parameters of
    trees where there are none; centres of no kernel are as many as they used to be.
    """
    kinds = {one for one in _listed(parameters["hash_function"]) if isinstance(one, str)}
    left_out = {"start"} if "trees" in kinds else {"start", *_OF_TREES}
    others = {name: value for name, value in parameters.items() if name not in left_out} | {"scaling": scaling}
    if "kernel" not in kinds:
        others["n_centers"] = _CENTERS
    if start == "random":
        return others
    return {**others, "start": start if isinstance(parameters["start"], str) else _digest(parameters["start"])}


def _listed(functions: Any) -> list[Any]:
    return list(functions) if isinstance(functions, list | tuple) else [functions]


def _digest(start: Any) -> str:
    table = np.ascontiguousarray(np.asarray(start).astype(np.int8))
    return f"{table.shape} {hashlib.sha256(table.tobytes()).hexdigest()}"


class Checkpoint:
    """The finished bits of one model on one set of data, in a directory of their own that may not be there yet.

    ``seed`` is what the model's random_state came to, ``data`` the fingerprint of vectors and supervision.
    """

    def __init__(self, path: Path_, parameters: dict[str, Any], seed: int, data: str) -> None:
        self.path = Path(path)
        relevant = {name: _as_json(value) for name, value in parameters.items() if name not in _IRRELEVANT}
        about = _read_about(self.path)
        kind = _ABOUT if about is None else replace(_ABOUT, format=about["format"])
        wanted = kind.sealed({"parameters": relevant, "seed": seed, "data": data})
        self._fingerprint = None if wanted["format"] == _UNBOUND else wanted[_ABOUT.seal]
        if about is None:
            make_folder(self.path)
            _ABOUT.write(self.path, wanted)
        elif about != wanted:
            raise ValueError(
                f"checkpoint {self.path} must be of the same model and data, got another's: "
                f"{_difference(about, wanted)}"
            )

    def read(self, bits: Iterable[int], n_features: int) -> dict[int, TrainedBit]:
        """Return those of the bits that are there, for vectors of so many features."""
        found: dict[int, TrainedBit] = {}
        for bit in bits:
            file = self._file(bit)
            if os.path.lexists(file):
                try:
                    found[bit] = _read_bit(file, self._place(bit), bit, n_features)
                except UntrustedFileError as error:
                    warnings.warn(f"bit {bit} is trained again: {error}", stacklevel=6)
                except DamagedFileError as error:
                    raise DamagedFileError(f"{error}; remove it to train bit {bit} again") from None
        return found

    def write(self, bit: int, trained: TrainedBit) -> None:
        """Keep a finished bit; it is on disk when this returns."""
        arrays, blobs = functions_to_arrays([trained.function])
        arrays |= {f"{_BLOB}{name}": np.frombuffer(data, np.uint8) for name, data in blobs.items()}
        _BIT.write(self._file(bit), arrays, json.dumps(asdict(trained.report)), self._place(bit))

    def _file(self, bit: int) -> Path:
        return self.path / f"bit-{bit:06d}.safetensors"

    def _place(self, bit: int) -> str:
        return "" if self._fingerprint is None else f"{self._fingerprint} {bit}\n"


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


def _read_bit(file: Path, place: str, bit: int, n_features: int) -> TrainedBit:
    arrays, text = _BIT.read(file, place)
    report = BitReport.from_record(
        Record(parse_json(text.encode(), file, "a report of a bit"), f"the report of {file}")
    )
    if report.bit != bit:
        raise DamagedFileError(f"{file} must be bit {bit}, got bit {report.bit}")
    blobs = {name.removeprefix(_BLOB): a.tobytes() for name, a in arrays.items() if name.startswith(_BLOB)}
    own = {name: a for name, a in arrays.items() if not name.startswith(_BLOB)}
    functions = functions_from_arrays(own, blobs, n_features, where=str(file))
    if len(functions) != 1:
        raise DamagedFileError(f"{file} must hold one function, got {len(functions)}")
    return TrainedBit(functions[0], report)
