"""What the command does: check, and compute what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ilhash._checks import check_count, check_positive
from ilhash.experiments.engine import Results
from ilhash.experiments.engine.problems import missing_data, prepare
from ilhash.experiments.engine.run import Progress, Summary, run_cells
from ilhash.experiments.engine.scales import get_scale
from ilhash.experiments.experiment import cells_of, chosen


def reproduce(
    names: Sequence[str],
    *,
    scale: str,
    folder: str | Path,
    n_jobs: int = 1,
    minutes: float | None = None,
    command: str = "ilhash.experiments.reproduce",
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Results, Summary]:
    """Compute the cells of some experiments that are not stored in the folder yet.

    Parameters
    ----------
    names : sequence of str, of experiments, or "all"
    scale : {"smoke", "small", "paper"}, how large
    folder : str or Path, of the results; a new one, or one of an earlier run of this scale and version
    n_jobs : int, default 1, worker processes
    minutes : float, optional, after which no further cell is begun
    command : str, what a reader of the page would type
    progress : callable, optional, called as cells finish

    Returns
    -------
    results : Results, the stored cells
    summary : Summary, what this call computed, left and failed at
    """
    wanted, size = chosen(names), get_scale(scale)
    check_count("n_jobs", n_jobs)
    if minutes is not None:
        check_positive("time_limit", minutes)
    for dataset in sorted({dataset for experiment in wanted for dataset in experiment.datasets}):
        problem = missing_data(size.data(dataset))
        if problem:
            raise FileNotFoundError(problem)
    results, cells = Results.create(Path(folder), size), cells_of(wanted, size)
    pending = [cell for cell in cells if not results.has(cell)]
    if not pending:
        return results, Summary()
    with results.session(command):
        (results.path / "data").mkdir(exist_ok=True)
        for dataset in {str(cell.params["data"]) for cell in pending}:
            prepare(size.data(dataset), results.path / "data")
        seconds = None if minutes is None else 60.0 * minutes
        return results, run_cells(cells, results, n_jobs=n_jobs, seconds=seconds, progress=progress)
