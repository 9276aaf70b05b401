"""``ilhash data get``: known datasets from where they are published to where they are read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from ilhash._checks import check_callable, check_choice
from ilhash.storage import WriterLock, check_sha256, make_folder, sha256_of_file, write_files

from ._download import download
from ._files import best_folder
from ._files import data_home as home_of
from ._registry import SPECS, Sums
from ._sources import ALIASES, OFFERS, Offer, Remote
from ._unpacking import UNPACKERS

CHUNK = 1 << 20


def offered() -> tuple[str, ...]:
    """Name the datasets that can be had.

    Returns
    -------
    tuple of str, what ``get`` takes; further names are datasets that are computed of these

    Examples
    --------
    >>> offered()
    ('mnist', 'fashion-mnist', 'cifar10', 'glove-6b-100d', 'infinite-digits', 'cifar10-gist', 'cifar10-edges', 'glove')
    """
    computed = [name for name, spec in SPECS.items() if spec.folder in OFFERS]
    return (*OFFERS, *computed, *ALIASES)


def get(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    *,
    mirror: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Have the files of a known dataset, as :func:`load` reads them; needs ``pip install "ilhash[data]"``.

    Each file is compared with its published checksum, and the folder gets all of them or none. What broke off goes on
    where it was with the next call. Where the files are there already, nothing is asked for.

    Parameters
    ----------
    name : str, one of :func:`offered`
    data_home : path-like, optional, the folder in which a sub-folder is made, as for :func:`load`
    mirror : str, optional
        Address of a folder on another server that holds files of the same names; the checksums stay.
    progress : callable, optional, called with the bytes that are here, and those of all files

    Returns
    -------
    pathlib.Path, the folder of the dataset
    """
    check_choice("name", name, offered())
    check_callable("progress", progress)
    _check_mirror(mirror)
    base = SPECS[ALIASES.get(name, name)].folder or ALIASES.get(name, name)
    target = home_of(data_home) / base
    if target.exists() and not best_folder(target, SPECS[base]).missing():
        return target
    staging = target.with_name(f".getting-{base}")
    make_folder(staging)
    lock = WriterLock(staging / "lock")
    try:
        sums = _brought(OFFERS[base], staging, mirror, progress or (lambda done, total: None))
        known = SPECS[base].layouts[0]
        for file, own in sums.items():
            check_sha256(staging / file, known.get(file, own), sha256_of_file(staging / file))
        make_folder(target)
        write_files({target / file: _chunks(staging / file) for file in sums})
        shutil.rmtree(staging, ignore_errors=True)
    finally:
        lock.release()
    return target


def _check_mirror(mirror: str | None) -> None:
    if mirror is None:
        return
    parts = urlsplit(mirror) if isinstance(mirror, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"mirror must be an address that begins with http:// or https://, got {mirror!r}")


def _brought(offer: Offer, staging: Path, mirror: str | None, progress: Callable[[int, int], None]) -> Sums:
    """Bring all files of an offer, and unpack them; return names and SHA-256 of what is read."""
    done, files = 0, []
    for file in offer.files:
        wanted = file if mirror is None else Remote(f"{mirror.rstrip('/')}/{file.name}", file.checksum, file.n_bytes)
        files.append(download(wanted, staging, lambda here, before=done: progress(before + here, offer.n_bytes)))  # type: ignore[misc]
        done += file.n_bytes
        progress(done, offer.n_bytes)
    if not offer.unpacked_by:
        return {file.name: sha256_of_file(file) for file in files}
    return UNPACKERS[offer.unpacked_by](files[0], staging)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
