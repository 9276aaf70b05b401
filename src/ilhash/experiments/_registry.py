"""All experiments, in the order of the page."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from ilhash.experiments._cells import Cell, distinct
from ilhash.experiments._experiment import Experiment
from ilhash.experiments._scales import Scale

__all__ = ["cells_of", "chosen", "experiments"]

_MODULES = (
    "diversity_mechanisms",
    "training_set_size",
    "feature_fraction",
    "training_sets",
    "block_order",
    "precision_by_bits",
    "orthogonality",
    "all_methods",
    "runtime",
    "unsupervised",
    "unseen_classes",
    "asymmetric_search",
    "pruned_and_mixed",
)


def experiments() -> dict[str, Experiment]:
    """Return the experiments by name."""
    found = [importlib.import_module(f"ilhash.experiments.{module}").EXPERIMENT for module in _MODULES]
    return {experiment.name: experiment for experiment in found}


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Return experiments by name; "all" is all of them."""
    known = experiments()
    if not names:
        raise ValueError(f"experiments must be named: 'all', or some of {', '.join(known)}, got none")
    unknown = [name for name in names if name not in known and name != "all"]
    if unknown:
        raise ValueError(f"experiments must be 'all' or some of {', '.join(known)}, got {', '.join(unknown)}")
    return [known[name] for name in known if "all" in names or name in names]


def cells_of(wanted: Sequence[Experiment], scale: Scale) -> list[Cell]:
    """Return the cells of some experiments, each once."""
    return distinct(cell for experiment in wanted for cell in experiment.cells(scale))
