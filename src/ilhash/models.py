"""All kinds of models by name, and the one door that reads them from files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ilhash import methods
from ilhash.ensemble import ILH, Mix
from ilhash.hasher import Hasher
from ilhash.storage import UnknownFormatError, read_directory

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
    """
    own = {kind.lower(): kind for kind in _OWN}
    found: type[Hasher] = _OWN[own[name.lower()]] if name.lower() in own else methods.get(name)
    return found


def load(path: str | os.PathLike[str], *, trusted: list[str] | None = None) -> Any:
    """Read a model that was written by ``model.save``.

    Parameters
    ----------
    path : path-like, the directory
    trusted : list of str, optional
        Names of types, beyond those of scikit-learn, NumPy and SciPy, that a saved classifier may contain.

    Returns
    -------
    Hasher, the fitted model
    """
    contents = read_directory(Path(path))
    kind = str(contents.document.get("model"))
    known = [*_OWN, *methods.available()]
    if kind not in known:
        raise UnknownFormatError(f"{path} must hold a model of a known kind ({', '.join(known)}), got {kind!r}")
    return model_class(kind)._from_contents(contents, trusted, model_class)
