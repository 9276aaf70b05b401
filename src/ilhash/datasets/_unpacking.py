"""From what is offered to what is read: archives, of which nothing but known members is looked at."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from ilhash.storage import DamagedFileError, check_sha256, sha256_of, sha256_of_file, write_file

from ._files import MADE
from ._registry import SPECS, Sums

GLOVE_MEMBER = "glove.6B.100d.txt"
GLOVE_SHAPE = (100_000, 100)
MOST = 1 << 26  # bytes of a member of an archive that is read whole


def batches_of_cifar10(archive: Path, folder: Path) -> Sums:
    """Take the six batches out of the archive of CIFAR-10.

    Parameters
    ----------
    archive : path, cifar-10-binary.tar.gz
    folder : path, where they go

    Returns
    -------
    mapping, names and SHA-256 of the files
    """
    sums = SPECS["cifar10"].layouts[0]
    with tarfile.open(archive, "r|gz") as members:
        for member in members:
            name = member.name.rpartition("/")[2]
            if name in sums and member.isfile() and member.size <= MOST:
                content = members.extractfile(member)
                data = content.read() if content else b""
                check_sha256(archive / name, sums[name], sha256_of([data]))
                write_file(folder / name, [data])
    missing = [name for name in sums if not (folder / name).exists()]
    if missing:
        raise DamagedFileError(f"{archive} must hold {', '.join(sums)}, got none of {', '.join(missing)}")
    return sums


def vectors_of_glove(archive: Path, folder: Path) -> Sums:
    """Take the vectors of 100 numbers of the most frequent words out of the archive of GloVe, line by line.

    Parameters
    ----------
    archive : path, glove.6B.zip
    folder : path, where ``vectors.npy``, ``words.txt`` and their description go

    Returns
    -------
    mapping, names and SHA-256 of the files
    """
    n, width = GLOVE_SHAPE
    words: list[str] = []
    vectors = np.empty(GLOVE_SHAPE, np.float32)
    with zipfile.ZipFile(archive) as members, members.open(GLOVE_MEMBER) as lines:
        for line in lines:
            word, *numbers = line.decode("utf-8").rstrip("\n").split(" ")
            if len(numbers) != width:
                raise DamagedFileError(f"{archive} must have {width} numbers in each line, got {len(numbers)}")
            vectors[len(words)] = numbers
            words.append(word)
            if len(words) == n:
                break
    if len(words) < n:
        raise DamagedFileError(f"{archive} must hold {n:,} words, got {len(words):,}")
    array = io.BytesIO()
    np.save(array, vectors, allow_pickle=False)
    return _made(folder, {"vectors.npy": array.getvalue(), "words.txt": ("\n".join(words) + "\n").encode()}, archive)


def _made(folder: Path, contents: Mapping[str, bytes], archive: Path) -> Sums:
    """Write files that are made here, and a sealed description with their SHA-256."""
    sums = {name: sha256_of([data]) for name, data in contents.items()}
    for name, data in contents.items():
        write_file(folder / name, [data])
    MADE.write(folder, {"of": {archive.name: sha256_of_file(archive)}, "sha256": sums})
    return {**sums, MADE.name: sha256_of_file(folder / MADE.name)}


UNPACKERS: Mapping[str, Callable[[Path, Path], Sums]] = {
    function.__name__: function for function in (batches_of_cifar10, vectors_of_glove)
}
