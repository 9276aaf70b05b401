"""The paper's statements, each with a rule that was written before its numbers were known."""

from __future__ import annotations

import numpy as np

from ilhash.experiments._build import ilh, over_seeds
from ilhash.experiments._store import Results
from ilhash.experiments._verdicts import Claim, Judged, above, all_of
from ilhash.experiments.diversity_mechanisms import coupled, mechanism

__all__ = ["CLAIMS"]


def _linear(results: Results, name: str, bits: int, n_train: int | None = None, function: str = "linear") -> np.ndarray:  # type: ignore[type-arg]
    scale = results.scale
    n = scale.n_train if n_train is None else n_train
    cells = coupled(scale, function, n, bits) if name == "KSHcut" else mechanism(scale, name, function, n)
    return over_seeds(results, cells, bits, scale.images.k)


def _best_mechanism(results: Results) -> Judged:
    return all_of(
        [
            above(_linear(results, "ILHt", bits), _linear(results, other, bits), 0.005, (f"b={bits}: ILHt", other))
            for bits in results.scale.bits
            for other in ("ILHi", "ILHf")
        ]
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "best-mechanism",
        "ILHt is clearly the best of the three mechanisms",
        "section 4, figure 1",
        "Linear functions, standard N, every b: mean over seeds above ILHi's and ILHf's by at least .005.",
        _best_mechanism,
    ),
)
