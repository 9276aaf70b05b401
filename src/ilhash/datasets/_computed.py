"""Datasets computed from others: once, and then kept on disk.

A kept file carries a SHA-256 of its arrays. Its name holds the version of the computation and the beginning of a
checksum of the source, so that neither an old method nor other images are ever taken for it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash._files import make_folder, sync_folder, write_file

from ._files import Folder
from ._gist import gist
from ._loaders import Dataset, load_cifar10
from ._registry import CIFAR10_NAMES, SPECS

VARIABLE = "ILHASH_CACHE"
GIST_VERSION = 1  # raise it with every change that moves the numbers

Arrays = dict[str, npt.NDArray[Any]]
Progress = Callable[[int, int], None]


def cache_home() -> Path:
    """Folder of what was computed and can be computed again.

    Returns
    -------
    pathlib.Path
        The one named by the environment variable ``ILHASH_CACHE``, or a sub-folder ``ilhash`` of the user's folder
        for caches. It need not exist.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path("~", "AppData", "Local").expanduser(), "ilhash", "Cache")
    if sys.platform == "darwin":
        return Path("~", "Library", "Caches", "ilhash").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~", ".cache"), "ilhash").expanduser()


def load_cifar10_gist(name: str, folder: Folder, progress: Progress | None = None) -> Dataset:
    """Take the kept GIST of CIFAR-10, or compute and keep it."""
    # Always the sums of the original files: both layouts hold the same images.
    source = hashlib.sha256("".join(SPECS["cifar10"].layouts[0].values()).encode()).hexdigest()
    path = cache_home() / f"{name}-v{GIST_VERSION}-{source[:16]}.safetensors"
    arrays = _kept(path)
    if arrays is None:
        cifar = load_cifar10(name, folder)
        images = cifar.X.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        arrays = {"X": gist(images, n_threads=-1, progress=progress), "y": np.asarray(cifar.y)}
        _keep(path, arrays)
    return Dataset(name=name, X=arrays["X"], y=arrays["y"], class_names=CIFAR10_NAMES, n_train=50_000)


def _kept(path: Path) -> Arrays | None:
    """Read kept arrays; None if there are none, or if they are damaged, which is said."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays: Arrays = {key: file.get_tensor(key) for key in ("X", "y")}
            expected = (file.metadata() or {}).get("sha256")
        if _digest(arrays) == expected:
            return arrays
        reason = "its SHA-256 is not the one it was written with"
    except FileNotFoundError:
        return None
    except (SafetensorError, OSError) as error:
        reason = str(error)
    warnings.warn(f"{path} is damaged ({reason}): computing it again", RuntimeWarning, stacklevel=4)
    return None


def _keep(path: Path, arrays: Arrays) -> None:
    """Write a file that is wholly there or not at all; without a place for it, say so and go on."""
    from safetensors.numpy import save

    try:
        make_folder(path.parent)
        write_file(path, [save(arrays, metadata={"sha256": _digest(arrays)})])
        sync_folder(path.parent)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        warnings.warn(
            f"{path} could not be written ({reason}), so this will be computed again next time; the environment "
            f"variable {VARIABLE} names another folder",
            RuntimeWarning,
            stacklevel=4,
        )


def _digest(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for key, array in sorted(arrays.items()):
        digest.update(f"{key} {array.shape} {array.dtype.str} ".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
