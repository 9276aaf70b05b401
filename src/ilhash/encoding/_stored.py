"""Codes in files, whichever they are: one .npy, or a directory of shards. Read in blocks, verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes
from ilhash._fingerprints import BIT_FINGERPRINT, Bits
from ilhash.encoding._names import StoredIds
from ilhash.storage import DamagedFileError, Record, StorageError, check_sha256, sha256_of_file
from ilhash.vectors import blocks
from ilhash.vectors.io import open_vectors

LAYOUT = "uint8, most significant bit first, padding zero"
SHA256 = r"[0-9a-f]{64}"
MOST_BITS = 1 << 24

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Shard:
    """A file of codes, a .npy or another matrix of bytes."""

    path: Path
    shape: tuple[int, int]  # rows and bytes per row
    sha256: str | None = None  # of the file; None where nobody wrote it down
    linked: bool = False  # whether the name may be a link: in a folder of ours it may not

    def open(self) -> Any:
        """Open the file, of which nothing is read yet; its shape is compared."""
        if self.path.is_symlink() and not self.linked:
            raise DamagedFileError(f"{self.path} must be a file of its own, got a symbolic link")
        with damaged(self.path):
            shard = open_vectors(self.path)
        if shard.shape != self.shape or shard.dtype != np.uint8:
            raise DamagedFileError(
                f"{self.path} must hold codes of shape {self.shape}, got shape {shard.shape} of dtype {shard.dtype}"
            )
        return shard

    def verify(self) -> Any:
        """Open the file, all of its bytes compared."""
        shard = self.open()
        if self.sha256 is not None:
            with damaged(self.path):
                check_sha256(self.path, self.sha256, sha256_of_file(self.path), "; remove it and encode again")
        return shard

    def blocks(self, n_bits: int, n_rows: int | None = None) -> Iterator[Codes]:
        """Give the codes, verified, in blocks of so many rows, or at once."""
        shard = self.verify()
        with damaged(self.path):  # it may be cut or written while it is read
            for block in blocks(shard, n_rows or max(1, len(shard))):
                yield codes.check(np.asarray(block), n_bits, str(self.path))

    def take(self, rows: NDArray[np.int64]) -> Codes:
        """Return some rows, not verified."""
        shard = self.open()
        with damaged(self.path):
            return np.asarray(shard[rows])


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Turn whatever is wrong with the content of a file of codes into the one family of errors."""
    try:
        yield
    except (StorageError, ImportError):
        raise
    except FileNotFoundError:
        if path.parent.is_dir() and not path.exists():
            sentence = f"{path.parent} must hold the shard {path.name}, got no such file: it does not exist"
            raise FileNotFoundError(sentence) from None
        raise
    except ValueError as error:
        raise DamagedFileError(f"{path} must be as it was written, got a damaged file: {error}") from error


def read_bits(about: Record, n_bits: int) -> Bits | None:
    """Return the fingerprints of bits that a description names; those of earlier versions name none.

    Parameters
    ----------
    about : Record, the description
    n_bits : int, how many bits there are

    Returns
    -------
    tuple of str, one per bit, or None
    """
    if "bits" not in about:
        return None
    found = about.all_of("bits", str, n=n_bits)
    if not all(map(BIT_FINGERPRINT.fullmatch, found)):
        raise DamagedFileError(f"{about.where} must have 'bits', {n_bits} fingerprints, got others")
    return tuple(found)


class StoredCodes:
    """Codes in files, as ``ilhash.open_codes`` gives them; iterating gives the shards, one after the other, verified.

    Parameters
    ----------
    path : the .npy file, or the directory of shards
    n_bits : bits per code
    shards : the files, of which ``names`` are the names
    model : fingerprint of the model that made the codes; None where it is not known
    bit_fingerprints : those of its bits; None where they are not known
    ids : the file of their ids, where there is one
    """

    def __init__(
        self,
        path: Path,
        n_bits: int,
        shards: Sequence[Shard],
        model: str | None = None,
        bit_fingerprints: Bits | None = None,
        ids: StoredIds | None = None,
    ) -> None:
        self.path, self.n_bits, self.model, self._shards, self._ids = path, n_bits, model, shards, ids
        self.bit_fingerprints = bit_fingerprints
        self.shape = (sum(shard.shape[0] for shard in shards), codes.bytes_per_code(n_bits))
        self.names = [shard.path.name for shard in shards]
        for shard in shards:
            shard.open()  # a file that is missing or of another shape is said now

    @property
    def ids(self) -> NDArray[Any] | None:
        """Ids that were written beside the codes, verified: int64, or texts as objects; None where there are none."""
        return None if self._ids is None else self._ids.read(len(self))

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Codes]:
        for shard in self._shards:
            yield from shard.blocks(self.n_bits)

    def blocks(self, n_rows: int) -> Iterator[Codes]:
        """Give all codes in order, verified, in blocks; no more than one of them is read at a time.

        Parameters
        ----------
        n_rows : int, codes of a block at most

        Yields
        ------
        uint8 array
        """
        for shard in self._shards:
            yield from shard.blocks(self.n_bits, n_rows)

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
        return np.concatenate([shard.take(rows[low:high] - begin) for shard, begin, low, high in places])

    def verify(self) -> int:
        """Read every byte of the files, and refuse the first that is not as it was written.

        Returns
        -------
        int, bytes that were read
        """
        for _ in self.blocks(1 << 20):
            pass
        _ = self.ids
        return sum(shard.path.stat().st_size for shard in self._shards)

    def read(self) -> Codes:
        """Read all codes, verified.

        Returns
        -------
        uint8 array, in memory
        """
        parts = list(self)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.read(), dtype=dtype)
