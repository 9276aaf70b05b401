"""Codes in files, whichever they are: one .npy, or a directory of shards. Read shard by shard, verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes
from ilhash.storage import DamagedFileError, check_sha256, sha256_of_file
from ilhash.vectors.io import read_matrix

LAYOUT = "uint8, most significant bit first, padding zero"

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Shard:
    """A file of codes, a .npy or another matrix of bytes."""

    path: Path
    shape: tuple[int, int]  # rows and bytes per row
    sha256: str | None  # of the file; None where nobody wrote it down

    def map(self) -> Codes:
        """Map the file into memory (other formats than .npy are read), its shape compared."""
        try:
            shard: Codes = read_matrix(self.path)
        except FileNotFoundError:
            sentence = f"{self.path.parent} must hold the shard {self.path.name}, got no such file"
            raise FileNotFoundError(sentence) from None
        except (ValueError, OSError) as error:
            raise DamagedFileError(f"{self.path} must be as it was written, got a damaged file: {error}") from None
        if shard.shape != self.shape or shard.dtype != np.uint8:
            raise DamagedFileError(
                f"{self.path} must hold codes of shape {self.shape}, got shape {shard.shape} of dtype {shard.dtype}"
            )
        return shard

    def verified(self) -> Codes:
        """Map the file, all of its bytes compared."""
        shard = self.map()
        if self.sha256 is not None:
            check_sha256(self.path, self.sha256, sha256_of_file(self.path), "; remove it and encode again")
        return shard


class StoredCodes:
    """Codes in files, as ``ilhash.open_codes`` gives them; iterating gives the shards, one after the other, verified.

    Parameters
    ----------
    path : the .npy file, or the directory of shards
    n_bits : bits per code
    shards : the files, of which ``names`` are the names
    """

    def __init__(self, path: Path, n_bits: int, shards: Sequence[Shard]) -> None:
        self.path, self.n_bits, self._shards = path, n_bits, shards
        self.shape = (sum(shard.shape[0] for shard in shards), codes.bytes_per_code(n_bits))
        self.names = [shard.path.name for shard in shards]
        for shard in shards:
            shard.map()  # a file that is missing or of another shape is said now

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Codes]:
        for shard in self._shards:
            yield codes.check(shard.verified(), self.n_bits, str(shard.path))

    def blocks(self, n_rows: int) -> Iterator[Codes]:
        """Give all codes in order, verified, in blocks.

        Parameters
        ----------
        n_rows : int, codes of a block at most

        Returns
        -------
        iterator of uint8 arrays
        """
        for shard in self:
            yield from (shard[first : first + n_rows] for first in range(0, len(shard), n_rows))

    def take(self, rows: NDArray[np.int64]) -> Codes:
        """Return the codes of some rows; other rows are not read, nor verified.

        Parameters
        ----------
        rows : int array, ascending row numbers

        Returns
        -------
        uint8 array
        """
        if len(rows) and (rows[0] < 0 or rows[-1] >= len(self) or (np.diff(rows) < 0).any()):
            raise ValueError(f"rows must ascend between 0 and {len(self) - 1}, got others")
        begins = np.cumsum([0, *(shard.shape[0] for shard in self._shards)])
        cuts = np.searchsorted(rows, begins)
        places = zip(self._shards, begins, cuts, cuts[1:], strict=False)
        return np.concatenate([shard.map()[rows[low:high] - begin] for shard, begin, low, high in places])

    def read(self) -> Codes:
        """Read all codes, verified.

        Returns
        -------
        uint8 array, in memory; of one shard a memory map
        """
        parts = list(self)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.read(), dtype=dtype)
