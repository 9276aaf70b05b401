"""What computes and keeps cells: their names (scales, cells), the work (tasks, models) and the folder (store)."""

from ilhash.experiments.engine.cells import Cell, Outcome
from ilhash.experiments.engine.scales import Scale
from ilhash.experiments.engine.standard import (
    at_bits,
    curve,
    ilh,
    mean_of,
    method,
    over_seeds,
    settings_of,
    standard_bits,
    stored_arrays,
)
from ilhash.experiments.engine.store import Results

__all__ = ["Cell", "Outcome", "Results", "Scale", "at_bits", "curve", "ilh", "mean_of", "method", "over_seeds"]
__all__ += ["settings_of", "standard_bits", "stored_arrays"]
