"""All kinds of models by name, and the one door that reads them from files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ilhash import methods
from ilhash.ensemble import ILH, Mix
from ilhash.hasher import Hasher
from ilhash.storage import Record, UnknownFormatError, read_directory

__all__ = ["load", "model_class"]

_OWN: dict[str, type[Hasher]] = {"ILH": ILH, "Mix": Mix}


def model_class(name: str) -> type[Hasher]:
    """Return the class of a kind of model.

    Parameters
    ----------
    name : str, ``"ILH"``, ``"Mix"`` or a name of ``ilhash.methods``, in capitals or not

    Returns
    -------
    type, a subclass of Hasher

    Examples
    --------
    >>> model_class("ilh").__name__, model_class("ITQ").__name__
    ('ILH', 'ITQ')
    """
    own = {kind.lower(): kind for kind in _OWN}
    found: type[Hasher] = _OWN[own[name.lower()]] if name.lower() in own else methods.get(name)
    return found


def load(path: str | os.PathLike[str], *, trusted: list[str] | None = None) -> Any:
    """Read a model that was written by ``model.save``, by whomever: nothing in it is run.

    Parameters
    ----------
    path : path-like, the directory
    trusted : list of str, optional
        Full names of further types that a saved classifier may bring, beyond those that compute in NumPy alone. Name
        them only if you trust whoever made the file: it decides what such objects hold and do.

    Returns
    -------
    Hasher, the fitted model

    Examples
    --------
    >>> import ilhash, numpy as np, tempfile
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = ilhash.methods.LSH(n_bits=12).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     again = load(f"{folder}/model")
    >>> np.array_equal(again.transform(X), model.transform(X))
    True
    """
    if trusted is not None and not (isinstance(trusted, list | tuple) and all(isinstance(n, str) for n in trusted)):
        raise TypeError(f"trusted must be a list of full names of types, got {trusted!r}")
    contents = read_directory(Path(path))
    record = Record(contents.document, contents.where)
    model = _class_of(record)._from_contents(contents, trusted, _class_of)
    model._read_remembered(record)
    return model


def _class_of(record: Record) -> type[Hasher]:
    """Return the class of the model that a file describes."""
    name = record.text("model")
    try:
        found = model_class(name)
    except ValueError:
        found = None
    if found is None or found.__name__ != name:
        known = ", ".join([*_OWN, *methods.available()])
        raise UnknownFormatError(f"{record.where} must be of a model of a known kind ({known}), got {name[:80]!r}")
    return found
