"""Which learner a parameter ``hash_function`` means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ilhash.functions._base import Learner
from ilhash.functions._classifier import ClassifierLearner
from ilhash.functions._kernel import KernelLearner
from ilhash.functions._linear import LinearLearner
from ilhash.vectors import Rows

__all__ = ["make_learner"]


def make_learner(
    kind: Any,
    *,
    C: float | str = "auto",
    scaling: str = "columns",
    n_centers: int = 500,
    kernel_width: float | None = None,
    common_sample: Callable[[], Rows | None],
) -> Learner:
    """Return the learner for "linear", "kernel" or a scikit-learn classifier.

    ``common_sample()`` gives, to a kernel function, the rows that the common centres and their width are taken from,
    or None where centres are private.
    """
    if isinstance(kind, str) and kind == "linear":
        return LinearLearner(_cost(C, 0.01), scaling)
    if isinstance(kind, str) and kind == "kernel":
        return KernelLearner(_cost(C, 10.0), n_centers, scaling, kernel_width, common_sample())
    if hasattr(kind, "fit") and hasattr(kind, "predict") and hasattr(kind, "get_params"):
        return ClassifierLearner(kind, scaling)
    raise ValueError(f"hash_function must be 'linear', 'kernel' or a scikit-learn classifier, got {kind!r}")


def _cost(C: float | str, automatic: float) -> float:
    if isinstance(C, str) and C == "auto":
        return automatic
    if isinstance(C, str) or not np.isfinite(C) or C <= 0:
        raise ValueError(f"C must be 'auto' or a positive number, got {C!r}")
    return float(C)
