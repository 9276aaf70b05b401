"""A .npy file written in blocks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format


def write_npy(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...], blocks: Iterable[npt.NDArray[Any]]) -> None:
    """Write the rows of blocks to a .npy file of known shape.

    Written, not mapped: where the disk is full a write fails with an error, but storing into a map kills the process.
    """
    header = {"descr": npy_format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    with path.open("wb") as file:
        npy_format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)
