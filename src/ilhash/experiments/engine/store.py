"""A folder of results: one pair of files per cell, each wholly there or not at all.

run.json               what the folder is: format, version of ilhash, scale
sessions.json          when and how it was computed: commands, environment
cells/<key>.npz        arrays of a cell
cells/<key>.json       the cell and its numbers, with the SHA-256 of the arrays; written last
data/                  made data that cells read again; may be removed

Every .json carries a SHA-256 of itself, and a cell is taken only from the file that is named after it. In folders of
format 1 the files had none; they are still read, and get one when a run goes on in their folder.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._version import __version__
from ilhash.experiments.engine.cells import DONE, TIME_LIMIT, UNDEFINED, Cell, Outcome
from ilhash.experiments.engine.scales import SCALES, Scale, get_scale
from ilhash.storage import (
    DamagedFileError,
    Record,
    Sealed,
    UnknownFormatError,
    from_npz,
    make_folder,
    parse_json,
    read_file,
    reading,
    sha256_of,
    to_npz,
    write_file,
)

FORMAT = 2  # of the folder and of what tasks compute: raise it when a stored cell comes to mean something else
UNSEALED = 1  # the format before files had checksums; its cells mean the same
_RUN = Sealed("run.json", "a run of `ilhash reproduce`", FORMAT)
_SESSIONS = Sealed("sessions.json", "the sessions of a run of `ilhash reproduce`", FORMAT, kind="sessions")
_CELL = Sealed("<key>.json", "a cell of `ilhash reproduce`", FORMAT, kind="cell")
_AGAIN = "remove it and its .npz to compute the cell again"


@dataclass(frozen=True)
class Results:
    """Stored cells of one scale.

    Attributes
    ----------
    path : Path, of the folder
    scale : Scale
    format : int, of the folder; what is written is always of the newest
    """

    path: Path
    scale: Scale
    format: int = FORMAT
    # stored cells never change
    _read: dict[str, Outcome] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def create(cls, path: Path, scale: Scale) -> Results:
        """Open a folder for computing; a new or empty one becomes a folder of results.

        Parameters
        ----------
        path : Path, new, empty, or of an earlier run of this scale and version
        scale : Scale

        Returns
        -------
        Results
        """
        if path.exists() and not path.is_dir():
            raise ValueError(f"the results folder must be a folder, got the file {path}")
        if (path / "run.json").exists():
            results = cls.open(path)
            if results.scale.name != scale.name:
                raise ValueError(
                    f"the results folder must be of the scale {scale.name!r}, got {path}, which holds "
                    f"{results.scale.name!r}: name another folder"
                )
            if results.format != FORMAT:
                return results._sealed()
            if (
                _run(path / _RUN.name)["scale_hash"] != scale.hash
            ):  # from before edge histograms, of which cells may come
                _RUN.write(path, _identity(scale))
            return results
        if path.exists() and any(path.iterdir()):
            raise ValueError(f"the results folder must be new, empty, or of an earlier run, got {path}")
        make_folder(path / "cells")
        _RUN.write(path, _identity(scale))
        return cls(path, scale)

    @classmethod
    def open(cls, path: Path) -> Results:
        """Open a folder of results that is there.

        Parameters
        ----------
        path : Path, of a run of this version of ilhash

        Returns
        -------
        Results
        """
        file = path / _RUN.name
        if not file.is_file():
            raise FileNotFoundError(f"no results of `ilhash reproduce` in {path}: it has no run.json")
        found = _run(file)
        about = Record(found, str(file))
        scale = get_scale(about.one_of("scale", tuple(SCALES)))
        wanted = {"ilhash": __version__, **_identity(scale)}
        known = [wanted, {**wanted, "scale_hash": scale.former_hash}]
        if {key: found[key] for key in wanted} not in known:
            raise ValueError(
                f"the results folder must be of ilhash {wanted['ilhash']} with these experiments (format "
                f"{FORMAT}, scale {scale.name} {wanted['scale_hash']}), got {path} of ilhash "
                f"{found['ilhash']} (format {found['format']}, scale {found['scale']} {found['scale_hash']}): "
                "name another folder"
            )
        return cls(path, scale, about.whole("format", UNSEALED, FORMAT))

    def _sealed(self) -> Results:
        """Write every file of a folder of the format before again, with its checksum; the folder's own comes last."""
        for file in sorted((self.path / "cells").glob("*.json")):
            self._from_files(file.stem)  # whatever can be known to be damaged is not sealed
            write_file(file, [_CELL.to_bytes(self._document(file))])
        if os.path.lexists(self.path / _SESSIONS.name):
            _SESSIONS.write(self.path, {"sessions": self.sessions()})
        _RUN.write(self.path, _identity(self.scale))
        return Results(self.path, self.scale)

    def has(self, cell: Cell) -> bool:
        """Say whether a cell is stored.

        Parameters
        ----------
        cell : Cell

        Returns
        -------
        bool
        """
        return os.path.lexists(self._file(cell.key, ".json"))

    def write(self, cell: Cell, outcome: Outcome) -> None:
        """Store a cell: arrays first, and then the numbers, which make it count.

        Parameters
        ----------
        cell : Cell
        outcome : Outcome, whose arrays are stored to seven digits: more than any figure shows, in half the space
        """
        stored: dict[str, Any] = {name: _retyped(own, np.float64, np.float32) for name, own in outcome.arrays.items()}
        data = to_npz(stored) if stored else b""
        document: dict[str, Any] = {"task": cell.task, "params": cell.params, "seed": cell.seed}
        document |= {"status": outcome.status, "reason": outcome.reason, "seconds": round(outcome.seconds, 3)}
        document |= {"numbers": outcome.numbers, "sha256": sha256_of([data]) if stored else None}
        document["versions"] = versions()
        plain = json.loads(json.dumps(document, allow_nan=False))  # as it will be read: names of numbers are texts
        if stored:
            write_file(self._file(cell.key, ".npz"), [data])
        write_file(self._file(cell.key, ".json"), [_CELL.to_bytes(plain)])

    def read(self, cell: Cell) -> Outcome | None:
        """Return a stored cell.

        Parameters
        ----------
        cell : Cell

        Returns
        -------
        Outcome, or None where it was not computed yet
        """
        if cell.key not in self._read:
            if not self.has(cell):
                return None
            self._read[cell.key] = self._from_files(cell.key)
        return self._read[cell.key]

    def _from_files(self, key: str) -> Outcome:
        file = self._file(key, ".json")
        about = Record(self._document(file), str(file))
        found = Cell(about.text("task"), about.record("params").document, about.whole("seed", least=-(2**63)))
        with reading(f"{file} must hold the parameters of a cell"):
            own = found.key
        if own != key:
            raise DamagedFileError(f"{file} must hold the cell of that name, got {own}: {found}: {_AGAIN}")
        status, reason = about.one_of("status", (DONE, UNDEFINED, TIME_LIMIT)), about.text("reason")
        none = about.document.get("sha256", "") is None
        arrays = {} if none else self._arrays(key, about.text("sha256", "[0-9a-f]{64}"))
        return Outcome(about.record("numbers").document, arrays, status, reason, _seconds(about))

    def _document(self, file: Path) -> dict[str, Any]:
        """Return the document of a cell; one without a checksum only in a folder where they had none."""
        data = read_file(file)
        if self.format == UNSEALED:
            document = parse_json(data, file, "the numbers of a cell")
            if not {"format", "kind", _CELL.seal} & document.keys():
                return document
        return _CELL.from_bytes(data, file)

    def _arrays(self, key: str, wanted: str) -> dict[str, NDArray[Any]]:
        file = self._file(key, ".npz")
        data = read_file(file)
        if sha256_of([data]) != wanted:
            raise DamagedFileError(
                f"the arrays of a cell must be as they were written, got other bytes in {file}: remove it and its "
                ".json to compute the cell again"
            )
        return {name: _retyped(array, np.float32, np.float64) for name, array in from_npz(data, file).items()}

    @contextmanager
    def session(self, command: str) -> Iterator[None]:
        """Remember when, how and where the cells meanwhile were computed; also of a session that is cut short.

        Parameters
        ----------
        command : str, what was typed

        Yields
        ------
        None
        """
        begun, clock, before = datetime.now(timezone.utc), time.monotonic(), self._n_stored()
        earlier = self.sessions()
        about: dict[str, Any] = {"begun": begun.strftime("%Y-%m-%d %H:%M"), "command": command}
        about |= {"computed": None, "seconds": None, "environment": environment()}
        _SESSIONS.write(self.path, {"sessions": [*earlier, about]})
        try:
            yield
        finally:
            about |= {"computed": self._n_stored() - before, "seconds": round(time.monotonic() - clock, 1)}
            _SESSIONS.write(self.path, {"sessions": [*earlier, about]})

    def _n_stored(self) -> int:
        return sum(1 for _ in (self.path / "cells").glob("*.json"))

    def sessions(self) -> list[dict[str, Any]]:
        """Return the sessions so far.

        Returns
        -------
        list of dict
        """
        file = self.path / _SESSIONS.name
        if not os.path.lexists(file):
            return []
        data = read_file(file)
        if self.format == UNSEALED and data.lstrip().startswith(b"["):
            with reading(f"{file} must be the list of sessions of a run"):
                found = {"sessions": json.loads(data)}
        else:
            found = _SESSIONS.from_bytes(data, file)
        return [_session(about) for about in Record(found, str(file)).records("sessions")]

    def using(self) -> AbstractContextManager[None]:
        """Say that stored cells are not what their tasks compute, where something else turns out on the way.

        Returns
        -------
        context manager, for whoever takes numbers and arrays out of cells that a stranger may have made
        """
        return reading(f"the cells of {self.path} must hold what their tasks compute")

    def _file(self, key: str, suffix: str) -> Path:
        return self.path / "cells" / f"{key}{suffix}"


def _run(file: Path) -> dict[str, Any]:
    """Return what a folder says of itself, verified where it has a checksum."""
    data = read_file(file)
    what = "the description of a run of `ilhash reproduce`"
    found = parse_json(data, file, what)
    if not {"format", "ilhash", "scale", "scale_hash"} <= found.keys():
        raise UnknownFormatError(f"{file} must be {what}, got another JSON document")
    unsealed = found["format"] == UNSEALED and _RUN.seal not in found
    return found if unsealed else _RUN.from_bytes(data, file)


def _session(about: Record) -> dict[str, Any]:
    """Return one session; one that was cut short has neither counted nor timed its cells."""
    about.text("begun")
    about.text("command")
    about.record("environment")
    if about.document.get("computed", 0) is not None:
        about.whole("computed", -(2**63))
        _seconds(about)
    return about.document


def _seconds(about: Record) -> float:
    seconds: Any = about.document.get("seconds")
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        raise DamagedFileError(f"{about.where} must have 'seconds', a number from 0 on, got {seconds!r}")
    return float(seconds)


def _identity(scale: Scale) -> dict[str, Any]:
    return {"scale": scale.name, "scale_hash": scale.hash}


def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    import scipy
    import sklearn

    found = {"ilhash": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return found | {"scipy": scipy.__version__, "scikit-learn": sklearn.__version__}


def environment() -> dict[str, Any]:
    """Return what a reader must know of the machine and its software."""
    from ilhash import core_simd

    found = {**versions(), "system": f"{platform.system()} {platform.machine()}", "processor": _processor()}
    return found | {"cores": os.cpu_count(), "core_simd": core_simd()}


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _retyped(array: NDArray[Any], given: type, wanted: type) -> NDArray[Any]:
    """Return an array of the given type as the wanted one, and any other as it is."""
    return array.astype(wanted) if array.dtype == given else array
