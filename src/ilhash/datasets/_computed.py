"""Datasets computed from others: once, and then kept on disk.

A kept file carries a SHA-256 of its arrays. Its name holds the version of the computation and the beginning of a
checksum of the source, so that neither an old method nor other images are ever taken for it.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ilhash.storage import SealedArrays, StorageError, checked_array, make_folder, open_file

from ._edge_histograms import edge_histograms
from ._files import Folder, home_of
from ._gist import gist
from ._loaders import Dataset, load_cifar10
from ._registry import CIFAR10_NAMES, SPECS

VARIABLE = "ILHASH_CACHE"
_FILE = SealedArrays(spelling="{name} {shape} {dtype} ")

Arrays = dict[str, npt.NDArray[Any]]
Progress = Callable[[int, int], None]


def cache_home() -> Path:
    """Folder of what was computed and can be computed again.

    Returns
    -------
    pathlib.Path, as ``ILHASH_CACHE`` names it, or ``ilhash`` in the user's folder for caches; it need not exist
    """
    return home_of(VARIABLE)


class Descriptor(NamedTuple):
    """How features are computed from images."""

    describe: Callable[..., npt.NDArray[np.float32]]
    version: int  # raise it with every change that moves the numbers


DESCRIPTORS = {"cifar10-gist": Descriptor(gist, 1), "cifar10-edges": Descriptor(edge_histograms, 1)}


def load_described(name: str, folder: Folder, progress: Progress | None = None) -> Dataset:
    """Take the kept descriptors of CIFAR-10, or compute and keep them."""
    descriptor = DESCRIPTORS[name]
    # Always the sums of the original files: both layouts hold the same images.
    source = hashlib.sha256("".join(SPECS["cifar10"].layouts[0].values()).encode()).hexdigest()
    path = cache_home() / f"{name}-v{descriptor.version}-{source[:16]}.safetensors"
    arrays = _kept(path)
    if arrays is None:
        cifar = load_cifar10(name, folder)
        images = cifar.X.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        arrays = {"X": descriptor.describe(images, n_threads=-1, progress=progress), "y": np.asarray(cifar.y)}
        _keep(path, arrays)
    return Dataset(name=name, X=arrays["X"], y=arrays["y"], class_names=CIFAR10_NAMES, n_train=50_000)


def _kept(path: Path) -> Arrays | None:
    """Read kept arrays; None if there are none, or if they are damaged, which is said."""
    try:
        with open_file(path):  # a pipe would keep us waiting
            arrays = _FILE.read(path)[0]
        X = checked_array(arrays.get("X"), f"X of {path}", np.float32, (None, None))
        y = checked_array(arrays.get("y"), f"y of {path}", np.int64, (len(X),), least=0, most=len(CIFAR10_NAMES) - 1)
        return {"X": X, "y": y}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (StorageError, OSError) as error:
        warnings.warn(f"{path} is damaged ({error}): computing it again", RuntimeWarning, stacklevel=4)
    return None


def _keep(path: Path, arrays: Arrays) -> None:
    """Write a file that is wholly there or not at all; without a place for it, say so and go on."""
    try:
        make_folder(path.parent)
        _FILE.write(path, arrays)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        again = "so this will be computed again next time"
        where = f"the environment variable {VARIABLE} names another folder"
        warnings.warn(f"{path} could not be written ({reason}), {again}; {where}", RuntimeWarning, stacklevel=4)
