"""Files of arrays: .npy in blocks, and safetensors of named arrays with their SHA-256 inside."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from ilhash.storage._damage import DamagedFileError, sha256_of
from ilhash.storage._durable import write_file
from ilhash.storage._reading import open_file, reading

Arrays = Mapping[str, npt.NDArray[Any]]


def npy_header(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> bytes:
    """Return the bytes of a .npy file that stand before the values, which follow in C order."""
    buffer = io.BytesIO()
    descr = npy_format.dtype_to_descr(np.dtype(dtype))
    npy_format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def write_npy(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...], blocks: Iterable[npt.NDArray[Any]]) -> None:
    """Write the rows of blocks to a .npy file of known shape.

    Written, not mapped: where the disk is full a write fails with an error, but storing into a map kills the process.
    """
    with path.open("wb") as file:
        file.write(npy_header(dtype, shape))
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)


def arrays_in(data: bytes, path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the named arrays that the bytes of a file of safetensors hold.

    Parameters
    ----------
    data : bytes, the content of the file
    path : Path, the file, for sentences

    Returns
    -------
    dict of str to ndarray
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    with reading(f"{path} must be a file of arrays"):
        try:
            return dict(load(data))
        except SafetensorError as error:  # has its own kind
            raise DamagedFileError(f"{path} must be a file of arrays, got {error}") from None


SPELLING = "{name} {dtype} {shape}"  # of an array, before its content


def chunks_of_arrays(arrays: Arrays, spelling: str = SPELLING) -> Iterator[Any]:
    """Give what identifies named arrays: name, type, shape and content of each, in the order of their names."""
    for name, array in sorted(arrays.items()):
        yield spelling.format(name=name, dtype=array.dtype.str, shape=array.shape).encode()
        yield np.ascontiguousarray(array).data


@dataclass(frozen=True)
class SealedArrays:
    """A kind of file of named arrays, and perhaps a text, with the SHA-256 of both."""

    text: str | None = None  # its name; None where there is none
    spelling: str = SPELLING  # how name, type and shape of an array enter the SHA-256

    def write(self, path: Path, arrays: Arrays, text: str = "", place: str = "") -> None:
        """Write arrays and text; they are durable when this returns, and cannot be read as those of another place."""
        from safetensors.numpy import save

        stored = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        metadata = {} if self.text is None else {self.text: text}
        write_file(path, [save(stored, {**metadata, "sha256": self._digest(stored, text, place)})])

    def read(self, path: Path, place: str = "") -> tuple[dict[str, npt.NDArray[Any]], str]:
        """Return arrays and text, verified."""
        from safetensors import safe_open

        open_file(path).close()  # which refuses what is no file of its own
        try:
            with safe_open(path, "np") as file:
                metadata = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        except OSError:
            raise
        except Exception as error:  # of safetensors, which has its own kind
            raise DamagedFileError(f"{path} must be as it was written, got {error}") from None
        text = "" if self.text is None else metadata.get(self.text, "")
        if metadata.get("sha256") != self._digest(arrays, text, place):
            elsewhere = ", or that was written for another place" if place else ""
            got = f"content that does not match its SHA-256{elsewhere}"
            raise DamagedFileError(f"{path} must be as it was written, got {got}")
        return arrays, text

    def _digest(self, arrays: Arrays, text: str, place: str) -> str:
        return sha256_of([place.encode(), text.encode(), *chunks_of_arrays(arrays, self.spelling)])
