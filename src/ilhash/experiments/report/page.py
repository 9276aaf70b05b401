"""One self-contained HTML page of all that is stored: claims, figures, environment, command."""

from __future__ import annotations

import io
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

from ilhash._extras import require
from ilhash.experiments.claims import judge_all, judge_corrections
from ilhash.experiments.claims.verdicts import FAILS, HOLDS, PARTLY, UNTESTED
from ilhash.experiments.engine.store import Results
from ilhash.experiments.experiment import Experiment, cells_of, experiments
from ilhash.experiments.report.drawing import svg
from ilhash.plots import figure_class
from ilhash.storage import make_folder, sync_folder, write_file

_VERDICTS = {HOLDS: "holds", PARTLY: "partly", FAILS: "fails", UNTESTED: "untested"}  # and their style


def require_report() -> None:
    """Raise ImportError, with the command that installs it, where what the page is written with is missing."""
    figure_class()
    _template()


def write_report(results: Results, path: Path | None = None) -> Path:
    """Write the page of what is stored; nothing is computed.

    Parameters
    ----------
    results : Results, stored cells
    path : Path, optional, by default report.html in the folder of the results

    Returns
    -------
    Path, the file that was written
    """
    path = path or results.path / "report.html"
    judged = judge_all(results)
    corrections = judge_corrections(results)
    sessions = results.sessions()
    stored = [results.read(cell) for cell in cells_of(list(experiments().values()), results.scale)]
    page = _template().render(
        scale=results.scale,
        verdicts=_VERDICTS,
        tally=Counter(one.verdict for _, one in judged),
        judged=judged,
        corrections=corrections,
        corrected=sum(one.verdict == HOLDS for _, one in corrections.values()),
        sections=[_section(experiment, results) for experiment in experiments().values()],
        n_cells=len(stored),
        minutes=[outcome.seconds / 60 for outcome in stored if outcome is not None],
        sessions=sessions,
        machines=sorted({_machine(session) for session in sessions}),
    )
    write_file(path, [page.encode("utf-8")])
    sync_folder(path.parent)
    return path


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Write every figure as a PNG file, named after its experiment; nothing is computed.

    Parameters
    ----------
    results : Results, stored cells
    folder : Path, made where it is not there

    Returns
    -------
    list of Path, the files that were written
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"the folder of figures must be a folder, got the file {folder}")
    make_folder(folder)
    written = []
    for experiment in experiments().values():
        for i, picture in enumerate(experiment.stored_pictures(results)):
            buffer = io.BytesIO()
            picture.figure.patch.set_alpha(1.0)  # a page shines through; a file may lie on anything
            picture.figure.savefig(buffer, format="png", dpi=144, facecolor="white")
            written.append(folder / f"{experiment.name}-{i}.png")
            write_file(written[-1], [buffer.getvalue()])
    sync_folder(folder)
    return written


def _template() -> Any:
    jinja2 = require("jinja2", "plots", "the page")
    blocks = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    made_here = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, **blocks)
    return made_here.from_string(resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


def _section(experiment: Experiment, results: Results) -> dict[str, Any]:
    cells = experiment.cells(results.scale)
    pictures = enumerate(experiment.stored_pictures(results))
    drawn = [(picture, svg(picture.figure, f"{experiment.name}-{i}")) for i, picture in pictures]
    counts = {"n_cells": len(cells), "n_stored": sum(map(results.has, cells))}
    return {**vars(experiment), **counts, "pictures": drawn}


def _machine(session: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in session["environment"].items())
