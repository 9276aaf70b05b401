"""Ids beside codes: an archive of whole numbers, or of texts one after the other, which the codes know by SHA-256."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._ids import as_ids
from ilhash.storage import DamagedFileError, check_sha256, from_npz, read_file, sha256_of, to_npz


def ids_as_bytes(ids: NDArray[Any]) -> bytes:
    """Return what is written of ids."""
    if ids.dtype != object:
        return to_npz({"ids": ids.astype(np.int64)})
    texts = [one.encode() for one in ids.tolist()]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return to_npz({"ends": ends, "texts": np.frombuffer(b"".join(texts), np.uint8)})


@dataclass(frozen=True)
class StoredIds:
    """A file of ids that belongs to codes."""

    path: Path
    sha256: str

    def read(self, n: int) -> NDArray[Any]:
        """Return the ids of n codes, verified: int64, or texts as objects."""
        data = read_file(self.path)
        check_sha256(self.path, self.sha256, sha256_of([data]), "; encode again")
        arrays = from_npz(data, self.path)
        ids = arrays["ids"] if set(arrays) == {"ids"} else _texts(arrays, self.path)
        if ids.ndim != 1 or len(ids) != n:
            raise DamagedFileError(f"{self.path} must hold an id for each of {n} codes, got {len(ids)}")
        try:
            return as_ids(ids, n, None)
        except (ValueError, TypeError) as error:
            raise DamagedFileError(f"{self.path} must hold ids: {error}") from None


def _texts(arrays: dict[str, NDArray[Any]], path: Path) -> NDArray[Any]:
    must = f"{path} must hold ids, or texts and where each of them ends"
    ends, texts = arrays.get("ends"), arrays.get("texts")
    if ends is None or texts is None or ends.dtype.kind != "i" or texts.dtype != np.uint8 or ends.ndim != 1:
        raise DamagedFileError(f"{must}, got {', '.join(sorted(arrays))[:80]}")
    if len(ends) == 0 or ends[0] < 0 or (np.diff(ends) < 0).any() or ends[-1] != texts.size:
        raise DamagedFileError(f"{must}, got ends that do not ascend to the {texts.size} bytes that are there")
    data, found = texts.tobytes(), np.empty(len(ends), object)
    try:
        found[:] = [data[a:b].decode() for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
    except UnicodeDecodeError:
        raise DamagedFileError(f"{must}, got bytes that are not UTF-8") from None
    return found
