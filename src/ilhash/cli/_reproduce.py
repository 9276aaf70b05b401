"""The command ``ilhash reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ilhash.cli._app import app
from ilhash.cli._screen import errors, say, tell

__all__ = ["reproduce"]


@app.command()
def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(help="all; or experiments by name; or list (what there is), or report (the page only)."),
    ],
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the results; a run that was stopped goes on there.")
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke (2 minutes), small (half an hour) or paper (4 hours).")] = "smoke",
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Worker processes.")] = 2,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", help="Minutes after which no further cell is begun.")
    ] = None,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Compute nothing: write the page of what is stored.")
    ] = False,
    figures: Annotated[
        Path | None, typer.Option("--figures", help="Folder that also gets every figure as a PNG file.")
    ] = None,
) -> None:
    """Recompute the paper's figures and claims, and write one page of them: report.html in the folder."""
    if names == ["list"]:
        _list(scale)
        return
    from ilhash.experiments._store import Results

    if output is None:
        raise ValueError("--out must name the folder of the results, got none")
    if redraw or names == ["report"]:
        _draw(Results.open(output), figures)
    else:
        _compute(names, output, scale, jobs, time_limit, figures)


def _list(scale_name: str) -> None:
    from ilhash.experiments._registry import cells_of, experiments
    from ilhash.experiments._scales import get_scale

    scale = get_scale(scale_name)
    for name, experiment in experiments().items():
        cells = cells_of([experiment], scale)
        minutes = sum(cell.cost for cell in cells) / 60
        tell(f"{name:22} {len(cells):5} cells, about {minutes:6.1f} core minutes  {experiment.shows}")
    cells = cells_of(list(experiments().values()), scale)
    minutes = sum(cell.cost for cell in cells) / 60
    tell(
        f"{'all':22} {len(cells):5} cells, about {minutes:6.1f} core minutes at the {scale.name} scale, shared "
        "ones once"
    )


def _draw(results: Any, figures: Path | None) -> None:
    from ilhash.experiments._report import write_figures, write_report

    tell(f"wrote {write_report(results)}")
    if figures is not None:
        tell(f"wrote {len(write_figures(results, figures))} figures to {figures}")


def _compute(
    names: list[str], output: Path, scale: str, jobs: int, minutes: float | None, figures: Path | None
) -> None:
    from ilhash.cli._curves import figure_class
    from ilhash.experiments._report import judge_all
    from ilhash.experiments._reproduce import reproduce as run

    figure_class()  # before hours of computing, not after
    command = " ".join(["ilhash", *sys.argv[1:]])
    try:
        with _Bar() as moved:
            results, summary = run(
                names, scale=scale, folder=output, jobs=jobs, minutes=minutes, command=command, progress=moved
            )
    except KeyboardInterrupt:
        errors.print("stopped; what had finished is stored, and the same command goes on from there")
        raise typer.Exit(130) from None
    for verdict, count in _tally(judge_all(results)).items():
        say.print(f"{count:4} {verdict}", highlight=False)
    _draw(results, figures)
    if summary.left:
        tell(f"{summary.left} cells are left: the same command goes on with them")
    if summary.failed:
        cell, message = summary.failed[0]
        errors.print(
            f"{len(summary.failed)} cells failed, nothing of them is stored; first: {cell}: {message}", markup=False
        )
        raise typer.Exit(1)


def _tally(judged: list[tuple[Any, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for _, one in judged:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    return counts


class _Bar:
    """A bar with the time left for the whole run; on a pipe a line now and then."""

    def __enter__(self) -> Any:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("cells"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}"),
            console=errors,
            disable=not errors.is_terminal,
        )
        self._bar.start()
        self._task = self._bar.add_task("", total=None, left="")
        self._told = 0
        return self._moved

    def _moved(self, progress: Any) -> None:
        left = f"{_duration(progress.seconds_left)} left"
        self._bar.update(
            self._task, completed=progress.done, total=progress.total, description=progress.current, left=left
        )
        tenth = 10 * progress.done // max(1, progress.total)
        if not errors.is_terminal and tenth > self._told:
            self._told = tenth
            errors.print(f"{progress.done} of {progress.total} cells, {left}", highlight=False)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{max(1, minutes)} min"
