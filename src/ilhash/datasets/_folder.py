"""A folder of files that appears whole or not at all, and .npy files written in blocks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder that takes the name `path` when all went well, and is removed otherwise."""
    if path.exists():
        raise ValueError(f"path must be a new folder, got {path}, which exists")
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.writing-", dir=path.parent))
        yield temporary
        for file in temporary.iterdir():
            _sync(file, os.O_RDWR)
        temporary.chmod(0o755)
        os.rename(temporary, path)
        temporary = None
    except OSError as error:
        raise OSError(f"{path} could not be written, and nothing is left of it: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    if hasattr(os, "O_DIRECTORY"):
        _sync(path.parent, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_npy(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...], blocks: Iterable[npt.NDArray[Any]]) -> None:
    """Write the rows of blocks to a .npy file of known shape.

    Written, not mapped: where the disk is full a write fails with an error, but storing into a map kills the process.
    """
    header = {"descr": npy_format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    with path.open("wb") as file:
        npy_format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)
