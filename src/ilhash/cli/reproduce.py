"""``ilhash reproduce``: the paper's figures and claims, recomputed."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ilhash.cli._app import kept
from ilhash.cli._screen import complain, progress_of_work, say, tell


def reproduce(
    names: Annotated[
        list[str], Argument(help="all; or experiments by name; or list (what there is), or report (the page only).")
    ],
    output: Annotated[
        Path | None, Option("--out", "-o", help="Folder of the results; a run that was stopped goes on there.")
    ] = None,
    scale: Annotated[str, Option(help="smoke (2 minutes), small (half an hour) or paper (4 hours).")] = "smoke",
    n_jobs: Annotated[int, Option("--n-jobs", "-j", help="Worker processes.")] = 2,
    time_limit: Annotated[float | None, Option(help="Minutes after which no further cell is begun.")] = None,
    redraw: Annotated[bool, Option("--redraw", help="Compute nothing: write the page of what is stored.")] = False,
    figures: Annotated[Path | None, Option(help="Folder that also gets every figure as a PNG file.")] = None,
) -> None:
    """Recompute the paper's figures and claims, and write one page of them: report.html in the folder."""
    if names == ["list"]:
        _list(scale)
        return
    from ilhash.experiments import Results, judge_all, require_report
    from ilhash.experiments import reproduce as run

    if output is None:
        raise ValueError("--out must name the folder of the results, got none")
    if redraw or names == ["report"]:
        _draw(Results.open(output), figures)
        return
    require_report()  # before hours of computing, not after
    command = " ".join(["ilhash", *sys.argv[1:]])
    with kept(output, "finished cells"), progress_of_work("cells") as moved:
        results, summary = run(
            names, scale=scale, folder=output, n_jobs=n_jobs, minutes=time_limit, command=command, progress=moved
        )
    for verdict, count in Counter(one.verdict for _, one in judge_all(results)).items():
        say.print(f"{count:4} {verdict}")
    _draw(results, figures)
    if summary.left:
        tell(f"{summary.left} cells are left: the same command goes on with them")
    if summary.failed:
        cell, message = summary.failed[0]
        failed = f"{len(summary.failed)} cells failed, nothing of them is stored"
        complain(f"{failed}; first: {cell}: {message}", markup=False)
        raise typer.Exit(1)


def _list(scale_name: str) -> None:
    from ilhash.experiments import cells_of, experiments, get_scale

    scale = get_scale(scale_name)
    lines = {name: ([experiment], f" {experiment.shows}") for name, experiment in experiments().items()}
    lines["all"] = list(experiments().values()), f"at the {scale.name} scale, shared ones once"
    for name, (wanted, note) in lines.items():
        cells = cells_of(wanted, scale)
        minutes = sum(cell.cost for cell in cells) / 60
        tell(f"{name:22} {len(cells):5} cells, about {minutes:6.1f} core minutes {note}")


def _draw(results: Any, figures: Path | None) -> None:
    from ilhash.experiments import write_figures, write_report

    tell(f"wrote {write_report(results)}")
    if figures is not None:
        tell(f"wrote {len(write_figures(results, figures))} figures to {figures}")
