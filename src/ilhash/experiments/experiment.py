"""What an experiment is, cells to compute and pictures of them; and all of them, in the order of the page."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ilhash.experiments.engine import Cell, Results, Scale
from ilhash.experiments.engine.cells import distinct
from ilhash.experiments.report.drawing import Picture

# Files of TITLE, SHOWS, DATASETS, cells and pictures: an experiment has the name of its file.
_MODULES = ["diversity_mechanisms", "training_set_size", "feature_fraction", "training_sets", "block_order"]
_MODULES += ["precision_by_bits", "orthogonality", "all_methods", "runtime", "unsupervised"]
_MODULES += ["edge_histograms", "unseen_classes", "asymmetric_search", "pruned_and_mixed"]
_MODULES += ["against_quantizers", "same_functions", "kernels_on_digits"]


@dataclass(frozen=True)
class Experiment:
    """One figure or table.

    Attributes
    ----------
    name : on the command line
    title : on the page
    shows : one sentence
    datasets : that it needs, by their names in a scale: images, digits, words, edges
    cells : what it computes at a scale
    pictures : figures of stored cells; fewer where cells are missing
    """

    name: str
    title: str
    shows: str
    datasets: tuple[str, ...]
    cells: Callable[[Scale], list[Cell]]
    pictures: Callable[[Results], list[Picture]]

    def stored_pictures(self, results: Results) -> list[Picture]:
        """Draw what is stored.

        Parameters
        ----------
        results : Results

        Returns
        -------
        list of Picture, none where nothing is stored
        """
        if not any(map(results.has, self.cells(results.scale))):
            return []
        with results.using():
            return self.pictures(results)


def experiments() -> dict[str, Experiment]:
    """Return the experiments by name.

    Returns
    -------
    dict of str to Experiment, in the order of the page
    """
    found = {}
    for module in _MODULES:
        own, name = importlib.import_module(f"ilhash.experiments.{module}"), module.replace("_", "-")
        found[name] = Experiment(name, own.TITLE, own.SHOWS, own.DATASETS, own.cells, own.pictures)
    return found


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
    """Return the cells of some experiments, each once.

    Parameters
    ----------
    wanted : sequence of Experiment
    scale : Scale

    Returns
    -------
    list of Cell, those that several experiments share stand where the first asks for them
    """
    return distinct(cell for experiment in wanted for cell in experiment.cells(scale))
