"""The two questions about known datasets: which are there, and give me one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ilhash._checks import check_choice

from ._computed import DESCRIPTORS, load_described
from ._files import best_folder, complete_folder
from ._files import data_home as home_of
from ._loaders import LOADERS, Dataset, load_debian_packages, load_digits
from ._registry import DIGIT_NAMES, SPECS
from ._sources import OFFERS


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What is known of a dataset without opening it.

    Attributes
    ----------
    name, description : str, what `load` calls it, and what it is
    n_features : int, dimensions of a vector
    labeled : bool, whether it has labels
    license : str, under which it was published
    n_rows : int or None, none for a dataset without end
    present : bool, all its files exist; whether they are the right ones is checked by `load`
    path : pathlib.Path or None, the folder its files are looked for in; None if it needs no file
    targets : tuple of str, kinds of supervision that `load` takes as `target`, the default first; mostly none
    n_bytes : int, of its files that are there
    download_bytes : int or None, what `get` would ask for; None where it cannot be had so
    """

    name: str
    description: str
    n_rows: int | None
    n_features: int
    labeled: bool
    present: bool
    path: Path | None
    license: str
    targets: tuple[str, ...] = ()
    n_bytes: int = 0
    download_bytes: int | None = None


def available(data_home: str | os.PathLike[str] | None = None) -> list[DatasetInfo]:
    """List the known datasets, and whether their files are there.

    Parameters
    ----------
    data_home : path-like, optional
        Folder to look in; by default the one named by ``ILHASH_DATA``, or ``ilhash`` in the user's folder for caches.

    Returns
    -------
    list of DatasetInfo, every known dataset, present or not; no file is opened

    Examples
    --------
    >>> [info.name for info in available() if info.n_rows and info.n_rows < 60_000]
    ['digits', 'debian-packages']
    """
    home = home_of(data_home)
    infos = []
    for name, spec in SPECS.items():
        path = home / (spec.folder or name) if spec.layouts else None
        infos.append(
            DatasetInfo(
                name=name,
                description=spec.description,
                n_rows=spec.n_rows,
                n_features=spec.n_features,
                labeled=spec.labeled,
                present=path is None or not best_folder(path, spec).missing(),
                path=path,
                license=spec.license,
                targets=spec.targets,
                n_bytes=0 if path is None else best_folder(path, spec).n_bytes(),
                download_bytes=OFFERS[base].n_bytes if (base := spec.folder or name) in OFFERS else None,
            )
        )
    return infos


def load(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    *,
    n: int | None = None,
    target: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Load a known dataset into memory.

    Parameters
    ----------
    name : {"digits", "mnist", "infinite-digits", "fashion-mnist", "cifar10", "cifar10-gist", "cifar10-edges", \
"glove-6b-100d", "debian-packages"}
        "digits" comes with scikit-learn; the others are read from files. "infinite-digits" are the first `n` of
        ``InfiniteDigits("mnist")``. "cifar10-gist" and "cifar10-edges" are `gist` and `edge_histograms` of "cifar10",
        not standardised: computed once (half a minute of one core for the first, seconds for the other) and kept in the
        folder named by ``ILHASH_CACHE``, or the user's folder for caches.
    data_home : path-like, optional, the folder that holds a sub-folder `name`, as for `available`
    n : int, optional, number of rows of a dataset without end, and of no other
    target : {"section", "tags", "source", "pairs"}, optional, supervision of "debian-packages", and of no other
        "section", the default: `y` is one of 42 unbalanced classes. "tags": `y` is a sparse indicator matrix of 598
        labels; a package without one is unknown. "source": `y` is the source package, thousands of classes of few;
        ``np.bincount(y)[y] >= 5`` are the packages of larger ones. "pairs": `pairs` are packages of which one depends
        on, recommends, suggests or enhances the other; ``ilhash.affinity.with_random_dissimilar`` makes them what
        ``fit`` takes. `words` and `texts` are names and descriptions under every target.
    progress : callable, optional, called with the number of rows whose features are computed, and that of all

    Returns
    -------
    Dataset, rows in the published order, train part first

    Raises
    ------
    ValueError
        The name is unknown, `n` or `target` is missing, superfluous or unknown, or the SHA-256 of a file is not the
        expected one.
    FileNotFoundError
        A file is missing; the message says how to get it.

    Examples
    --------
    >>> load("digits")
    Dataset('digits', X: (1797, 64) float32, 10 classes)
    """
    check_choice("name", name, tuple(SPECS))
    target = _checked_target(name, target)
    if SPECS[name].n_rows is None:
        return _beginning(name, n, data_home)
    if n is not None:
        raise ValueError(f"n must not be given for the dataset {name!r}, which has an end, got {n}")
    if name == "digits":
        return load_digits(name)
    folder = complete_folder(name, SPECS[name], home_of(data_home) / (SPECS[name].folder or name))
    if name in DESCRIPTORS:
        return load_described(name, folder, progress)
    return LOADERS[name](name, folder) if target is None else load_debian_packages(name, folder, target)


def _checked_target(name: str, target: str | None) -> str | None:
    """Return the target that was asked for, or else the first of the dataset; None where there is no choice."""
    targets = SPECS[name].targets
    if target is None:
        return targets[0] if targets else None
    if not targets:
        raise ValueError(f"target must not be given for the dataset {name!r}, which has only one, got {target!r}")
    check_choice("target", target, targets)
    return target


def _beginning(name: str, n: int | None, data_home: str | os.PathLike[str] | None) -> Dataset:
    """Make the first n infinite digits."""
    from ._infinite import InfiniteDigits  # it loads its source from here

    if n is None:
        raise ValueError(
            f"n must be given for the dataset {name!r}, which has no end (see `ilhash data make`), got None"
        )
    digits = InfiniteDigits("mnist", data_home=data_home)
    X, y = digits.images(0, n)
    return Dataset(name=name, X=X, y=y, image_shape=digits.image_shape, class_names=DIGIT_NAMES)
