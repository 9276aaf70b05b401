"""What an experiment is: cells to compute and pictures of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ilhash.experiments._cells import Cell
from ilhash.experiments._scales import Scale
from ilhash.experiments._store import Results
from ilhash.experiments._style import Picture

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """One figure or table.

    Attributes
    ----------
    name : on the command line
    title : on the page
    shows : one sentence
    parts : the data it needs: images, digits, words
    cells : what it computes at a scale
    pictures : figures of stored cells; fewer where cells are missing
    """

    name: str
    title: str
    shows: str
    parts: tuple[str, ...]
    cells: Callable[[Scale], list[Cell]]
    pictures: Callable[[Results], list[Picture]]
