"""What the command does: check, compute what is missing, judge, write the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ilhash._parameters import check_count, check_positive
from ilhash.experiments._problems import missing_data, prepare
from ilhash.experiments._registry import cells_of, chosen
from ilhash.experiments._run import Progress, Summary, run_cells
from ilhash.experiments._scales import get_scale
from ilhash.experiments._store import Results

__all__ = ["reproduce"]


def reproduce(
    names: Sequence[str],
    *,
    scale: str,
    folder: str | Path,
    jobs: int = 1,
    minutes: float | None = None,
    command: str = "ilhash.experiments.reproduce",
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Results, Summary]:
    """Compute the cells of some experiments that are not stored in the folder yet.

    Parameters
    ----------
    names : of experiments, or "all"
    scale : "smoke", "small" or "paper"
    folder : of the results; a new one, or one of an earlier run of this scale and version
    jobs : worker processes
    minutes : after which no further cell is begun
    command : that a reader of the page would type
    progress : called as cells finish
    """
    wanted, size = chosen(names), get_scale(scale)
    check_count("jobs", jobs)
    if minutes is not None:
        check_positive("time_limit", minutes)
    for part in sorted({part for experiment in wanted for part in experiment.parts}):
        problem = missing_data(size.data(part))
        if problem:
            raise FileNotFoundError(problem)
    results = Results.create(Path(folder), size)
    seconds = None if minutes is None else 60.0 * minutes
    cells = cells_of(wanted, size)
    pending = [cell for cell in cells if not results.has(cell)]
    if not pending:
        return results, Summary()
    with results.session(command):
        (results.path / "data").mkdir(exist_ok=True)
        for part in {str(cell.params["data"]) for cell in pending}:
            prepare(size.data(part), results.path / "data")
        return results, run_cells(cells, results, jobs=jobs, seconds=seconds, progress=progress)
