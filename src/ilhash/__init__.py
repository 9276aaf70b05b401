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

if TYPE_CHECKING:
    from ilhash import codes, datasets, evaluation, methods, objective, search
    from ilhash.dask_encoding import dask_encode
    from ilhash.ensemble import ILH, HoldOut, Mix, grow, prune
    from ilhash.persistence import load
    from ilhash.search import HammingIndex
    from ilhash.shards import open_codes, write_codes

__version__ = "0.1.0"

__all__ = [
    "ILH",
    "HammingIndex",
    "HoldOut",
    "Mix",
    "__version__",
    "codes",
    "core_simd",
    "dask_encode",
    "datasets",
    "evaluation",
    "grow",
    "load",
    "methods",
    "objective",
    "open_codes",
    "prune",
    "search",
    "write_codes",
]

# Imported on first use: scikit-learn alone takes longer to import than many a program runs.
_HOMES = {
    **dict.fromkeys(("ILH", "HoldOut", "Mix", "grow", "prune"), "ilhash.ensemble"),
    "HammingIndex": "ilhash.search",
    "dask_encode": "ilhash.dask_encoding",
    "load": "ilhash.persistence",
    "open_codes": "ilhash.shards",
    "write_codes": "ilhash.shards",
}
_MODULES = {"codes", "datasets", "evaluation", "methods", "objective", "search"}


def core_simd() -> str:
    """Name the instruction set that the C++ core uses here: ``avx512``, ``avx2`` or ``portable``."""
    from ilhash import _core

    return _core.simd()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"ilhash.{name}")
    raise AttributeError(f"module 'ilhash' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
