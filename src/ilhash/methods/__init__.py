"""The other hashing methods, one file each, under the contract of :class:`ilhash.ILH`.

The way it takes::

    fit(X, y)  ->  TrainingData: which rows may be drawn, their labels, the origin
                     |  training_set()      rows (N, D) relative to the origin, labels as an indicator (N, L)
                     v
                   what the method learns
                     |  LinearMethod        directions and thresholds
                     |  KernelMethod        weights of radial basis functions
                     |  functions_for_bits  bits of the training points, then one classifier per bit
                     v
                   functions_  ->  transform, decision_function, save (ilhash.hasher)

Whoever writes a method of their own finds these classes in ``ilhash.methods.authoring``. A name is imported when it is
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ilhash.methods._agh import AGH
    from ilhash.methods._ba import BA
    from ilhash.methods._bagged_tpca import BaggedTPCA
    from ilhash.methods._base import UndefinedError
    from ilhash.methods._bre import BRE
    from ilhash.methods._cca_itq import CCAITQ
    from ilhash.methods._classifier_code import ClassifierCode
    from ilhash.methods._fasthash import FastHash
    from ilhash.methods._itq import ITQ
    from ilhash.methods._ksh import KSH
    from ilhash.methods._kshcut import KSHcut
    from ilhash.methods._lsh import LSH
    from ilhash.methods._mlh import MLH
    from ilhash.methods._orthogonal import OrthogonalProjection
    from ilhash.methods._sdh import SDH
    from ilhash.methods._sh import SH
    from ilhash.methods._sign import Sign
    from ilhash.methods._splh import SPLH
    from ilhash.methods._sth import STH
    from ilhash.methods._tpca import TPCA

__all__ = ["AGH", "BA", "BRE", "CCAITQ", "ITQ", "KSH", "LSH", "MLH", "SDH", "SH", "SPLH", "STH", "TPCA", "BaggedTPCA"]
__all__ += ["ClassifierCode", "FastHash", "KSHcut", "OrthogonalProjection", "Sign"]
__all__ += ["UndefinedError", "available", "get", "register", "registered"]

# Without labels first, then with; each is at home in the file of its name in small letters, or in that of its own.
_UNSUPERVISED = ["Sign", "LSH", "TPCA", "BaggedTPCA", "ITQ", "SH", "AGH", "OrthogonalProjection", "BA"]
_SUPERVISED = ["CCAITQ", "STH", "SPLH", "BRE", "MLH", "KSH", "KSHcut", "FastHash", "SDH", "ClassifierCode"]
_HOMES = {name: f"_{name.lower()}" for name in (*_UNSUPERVISED, *_SUPERVISED)}
_HOMES |= {"BaggedTPCA": "_bagged_tpca", "OrthogonalProjection": "_orthogonal"}
_HOMES |= {"CCAITQ": "_cca_itq", "ClassifierCode": "_classifier_code"}
_REGISTERED: dict[str, type] = {}  # of users, by :func:`register`


def available() -> dict[str, str]:
    """Return the names of the methods, each with one line on what it does.

    Returns
    -------
    dict of str to str, in the order of the overview: without labels first; :func:`registered` names those of users

    Examples
    --------
    >>> available()["LSH"]
    'Signs of random Gaussian projections of the centred vectors; needs nothing but the mean.'
    """
    return {name: (get(name).__doc__ or "").splitlines()[0] for name in _HOMES}


def register(kind: type) -> type:
    """Let a method of your own be known by its name, in this process: to ``get``, ``ilhash.load`` and ``compare``.

    Parameters
    ----------
    kind : type, a class that derives from one of ``ilhash.methods.authoring``; its name must not be taken

    Returns
    -------
    type, the same class, so that this can stand above it as a decorator

    Examples
    --------
    >>> from ilhash.methods import authoring, register
    >>> @register
    ... class FirstAxes(authoring.LinearMethod):
    ...     '''Signs of the first centred features.'''
    ...
    ...     def _directions(self, training, seed):
    ...         return np.eye(training.rows.values.shape[1])[:, : self.n_bits], None
    >>> get("firstaxes")
    <class '...FirstAxes'>
    """
    from ilhash.methods._base import Method

    if not (isinstance(kind, type) and issubclass(kind, Method)):
        raise TypeError(f"kind must be a class that derives from one of ilhash.methods.authoring, got {kind!r}")
    taken = {name.lower() for name in (*_HOMES, "ILH", "Mix")}
    if kind.__name__.lower() in taken:
        raise ValueError(f"the name of a registered method must not be taken, got {kind.__name__!r}")
    _REGISTERED[kind.__name__] = kind
    return kind


def registered() -> tuple[str, ...]:
    """Return the names of methods that users have registered.

    Returns
    -------
    tuple of str, in the order in which they came

    Examples
    --------
    >>> "ITQ" in registered()  # it is one of ours
    False
    """
    return tuple(_REGISTERED)


def get(name: str) -> Any:
    """Return the class of a method by its name, in capitals or not.

    Parameters
    ----------
    name : str, as :func:`available` gives it

    Returns
    -------
    type, a subclass of Hasher

    Examples
    --------
    >>> get("itq").__name__
    'ITQ'
    """
    known = {known.lower(): known for known in (*_HOMES, *_REGISTERED)}
    found = known.get(str(name).lower())
    if found is None:
        raise ValueError(f"method must be one of {', '.join(known.values())}, got {name!r}")
    if found in _REGISTERED:
        return _REGISTERED[found]
    return getattr(importlib.import_module(f"ilhash.methods.{_HOMES[found]}"), found)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return get(name)
    if name == "UndefinedError":
        return importlib.import_module("ilhash.methods._base").UndefinedError
    raise AttributeError(f"module 'ilhash.methods' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
