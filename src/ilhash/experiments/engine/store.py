"""A folder of results: one pair of files per cell, each wholly there or not at all.

run.json               what the folder is: format, version of ilhash, scale
sessions.json          when and how it was computed: commands, environment
cells/<key>.npz        arrays of a cell
cells/<key>.json       the cell and its numbers, with the SHA-256 of the arrays; written last
data/                  made data that cells read again; may be removed
"""

from __future__ import annotations

import io
import json
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._version import __version__
from ilhash.experiments.engine.cells import Cell, Outcome
from ilhash.experiments.engine.scales import Scale, get_scale
from ilhash.storage import DamagedFileError, UnknownFormatError, make_folder, parse_json, sha256_of, write_file

FORMAT = 1  # of the folder and of what tasks compute: raise it when a stored cell comes to mean something else


@dataclass(frozen=True)
class Results:
    """Stored cells of one scale.

    Attributes
    ----------
    path : Path, of the folder
    scale : Scale
    """

    path: Path
    scale: Scale
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
            return results
        if path.exists() and any(path.iterdir()):
            raise ValueError(f"the results folder must be new, empty, or of an earlier run, got {path}")
        make_folder(path / "cells")
        _write_json(path / "run.json", _identity(scale))
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
        if not (path / "run.json").is_file():
            raise FileNotFoundError(f"no results of `ilhash reproduce` in {path}: it has no run.json")
        what = "the description of a run of `ilhash reproduce`"
        found = parse_json((path / "run.json").read_bytes(), path / "run.json", what)
        if not {"format", "ilhash", "scale", "scale_hash"} <= found.keys():
            raise UnknownFormatError(f"{path / 'run.json'} must be {what}, got another JSON document")
        scale = get_scale(str(found["scale"]))
        wanted = _identity(scale)
        if found != wanted:
            raise ValueError(
                f"the results folder must be of ilhash {wanted['ilhash']} with these experiments (format "
                f"{wanted['format']}, scale {scale.name} {wanted['scale_hash']}), got {path} of ilhash "
                f"{found['ilhash']} (format {found['format']}, scale {found['scale']} {found['scale_hash']}): "
                "name another folder"
            )
        return cls(path, scale)

    def has(self, cell: Cell) -> bool:
        """Say whether a cell is stored.

        Parameters
        ----------
        cell : Cell

        Returns
        -------
        bool
        """
        return self._file(cell, ".json").is_file()

    def write(self, cell: Cell, outcome: Outcome) -> None:
        """Store a cell: arrays first, and then the numbers, which make it count.

        Parameters
        ----------
        cell : Cell
        outcome : Outcome, whose arrays are stored to seven digits: more than any figure shows, in half the space
        """
        buffer = io.BytesIO()
        stored: dict[str, Any] = {name: _retyped(own, np.float64, np.float32) for name, own in outcome.arrays.items()}
        np.savez_compressed(buffer, **stored)
        data = buffer.getvalue()
        document: dict[str, Any] = {"task": cell.task, "params": cell.params, "seed": cell.seed}
        document |= {"status": outcome.status, "reason": outcome.reason, "seconds": round(outcome.seconds, 3)}
        document |= {"numbers": outcome.numbers, "sha256": sha256_of([data]) if outcome.arrays else None}
        document["versions"] = versions()
        if outcome.arrays:
            write_file(self._file(cell, ".npz"), [data])
        _write_json(self._file(cell, ".json"), document)

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
            self._read[cell.key] = self._from_files(cell)
        return self._read[cell.key]

    def _from_files(self, cell: Cell) -> Outcome:
        file = self._file(cell, ".json")
        document = parse_json(file.read_bytes(), file, "the numbers of a cell")
        arrays: dict[str, Any] = {}
        if document["sha256"] is not None:
            data = self._file(cell, ".npz").read_bytes()
            if sha256_of([data]) != document["sha256"]:
                raise DamagedFileError(
                    "the arrays of a cell must be as they were written, got other bytes in "
                    f"{self._file(cell, '.npz')}: remove it and its .json to compute the cell again"
                )
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                arrays = {name: _retyped(archive[name], np.float32, np.float64) for name in archive.files}
        return Outcome(document["numbers"], arrays, document["status"], document["reason"], document["seconds"])

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
        _write_json(self.path / "sessions.json", [*earlier, about])
        try:
            yield
        finally:
            about |= {"computed": self._n_stored() - before, "seconds": round(time.monotonic() - clock, 1)}
            _write_json(self.path / "sessions.json", [*earlier, about])

    def _n_stored(self) -> int:
        return sum(1 for _ in (self.path / "cells").glob("*.json"))

    def sessions(self) -> list[dict[str, Any]]:
        """Return the sessions so far.

        Returns
        -------
        list of dict
        """
        path = self.path / "sessions.json"
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        return found

    def _file(self, cell: Cell, suffix: str) -> Path:
        return self.path / "cells" / f"{cell.key}{suffix}"


def _identity(scale: Scale) -> dict[str, Any]:
    return {"format": FORMAT, "ilhash": __version__, "scale": scale.name, "scale_hash": scale.hash}


def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    import scipy
    import sklearn

    found = {"ilhash": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return found | {"scipy": scipy.__version__, "scikit-learn": sklearn.__version__}


def environment() -> dict[str, Any]:
    """Return what a reader must know of the machine and its software."""
    import os

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


def _write_json(path: Path, document: Any) -> None:
    text = json.dumps(document, indent=1, allow_nan=False)
    write_file(path, [text.encode("utf-8") + b"\n"])
