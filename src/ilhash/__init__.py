"""Learn compact binary codes from your own notion of similarity, one independent bit at a time.

The method is Independent Laplacian Hashing (Carreira-Perpinan and Raziperchikolaei, 2016). The way data takes::

    vectors X + supervision
        |   affinity      labels | pairs | graph | Euclidean neighbours  ->  sparse signed graph y_nm
        |
        |   for every bit on its own, from (seed, bit number) alone:
        |     diversity   which points, which features, which start, which graph
        |     zstep       objective -> couplings -> submodular blocks -> alternating min-cut -> z in {-1,+1}^N
        |     functions   fit x -> z: linear SVM, kernel SVM, or any scikit-learn classifier
        v
    ensemble (b hash functions)  ->  packed codes  ->  search (exact, durable)
                                                  |->  evaluation (tie-aware)

Each arrow goes one way and a room knows only the rooms before it. ``methods`` holds the other hashing methods, under
the same contract.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ilhash._version import __version__

if TYPE_CHECKING:
    from ilhash import codes, datasets, engines, evaluation, feedback, methods, objective, search
    from ilhash.client import Client
    from ilhash.encoding import dask_encode, open_codes, write_codes
    from ilhash.ensemble import ILH, HoldOut, Mix, QualityWarning, grow, join, learn, prune, refresh
    from ilhash.feedback import Feedback
    from ilhash.models import load
    from ilhash.search import HammingIndex
    from ilhash.storage import StorageError
    from ilhash.tuning import tune
    from ilhash.vectors.io import open_vectors

__all__ = [
    "ILH",
    "Client",
    "Feedback",
    "HammingIndex",
    "HoldOut",
    "Mix",
    "QualityWarning",
    "StorageError",
    "__version__",
    "core_simd",
    "grow",
    "join",
    "learn",
    "load",
    "prune",
    "refresh",
    "tune",
]
__all__ += ["codes", "datasets", "engines", "evaluation", "feedback", "methods", "objective", "search"]
__all__ += ["dask_encode", "open_codes", "open_vectors", "write_codes"]

# Imported on first use: scikit-learn alone takes longer to import than many a program runs.
_HOMES = {
    **dict.fromkeys(("ILH", "HoldOut", "Mix", "QualityWarning"), "ilhash.ensemble"),
    **dict.fromkeys(("grow", "join", "learn", "prune", "refresh"), "ilhash.ensemble"),
    "Client": "ilhash.client",
    "Feedback": "ilhash.feedback",
    "HammingIndex": "ilhash.search",
    **dict.fromkeys(("dask_encode", "open_codes", "write_codes"), "ilhash.encoding"),
    "load": "ilhash.models",
    "tune": "ilhash.tuning",
    "StorageError": "ilhash.storage",
    "open_vectors": "ilhash.vectors.io",
}


def core_simd() -> str:
    """Name the instruction set that the C++ core uses here.

    Returns
    -------
    str, ``avx512``, ``avx2`` or ``portable``

    Examples
    --------
    >>> core_simd() in ("avx512", "avx2", "portable")
    True
    """
    from ilhash import _core

    return _core.simd()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in __all__:  # a room
        return importlib.import_module(f"ilhash.{name}")
    raise AttributeError(f"module 'ilhash' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
