"""One self-contained HTML page of all that is stored: claims, figures, environment, command."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import Any

from ilhash._files import make_folder, sync_folder, write_file
from ilhash.experiments import claims
from ilhash.experiments._page import STYLE
from ilhash.experiments._registry import cells_of, experiments
from ilhash.experiments._store import Results
from ilhash.experiments._style import Picture, svg
from ilhash.experiments._verdicts import FAILS, HOLDS, PARTLY, UNTESTED, Claim, Judged, judge

__all__ = ["judge_all", "write_figures", "write_report"]

_CLASSES = {HOLDS: "holds", PARTLY: "partly", FAILS: "fails", UNTESTED: "untested"}


def judge_all(results: Results) -> list[tuple[Claim, Judged]]:
    """Judge every claim by what is stored."""
    return [(claim, judge(claim, results)) for claim in claims.CLAIMS]


def write_report(results: Results, path: Path | None = None) -> Path:
    """Write the page, by default report.html in the folder of the results; nothing is computed."""
    path = path or results.path / "report.html"
    judged = judge_all(results)
    body = [_head(results, judged), _claims(judged)]
    for experiment in experiments().values():
        cells = experiment.cells(results.scale)
        stored = sum(results.has(cell) for cell in cells)
        pictures = experiment.pictures(results) if stored else []
        missing = "" if stored == len(cells) else f"<p class=note>{stored} of {len(cells)} cells are computed.</p>"
        shows = experiment.shows[0].upper() + experiment.shows[1:]
        figures = "".join(_picture(picture, f"{experiment.name}-{i}") for i, picture in enumerate(pictures))
        body.append(
            f"<section id={experiment.name}><h2>{escape(experiment.title)}</h2><p>{escape(shows)}.</p>"
            f"{missing}{figures}</section>"
        )
    body.append(_environment(results))
    title = f"Independent Laplacian Hashing, reproduced ({results.scale.name} scale)"
    page = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)}</title>"
        f'<meta name=viewport content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )
    write_file(path, [page.encode("utf-8")])
    sync_folder(path.parent)
    return path


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Write every figure as a PNG file, named after its experiment; nothing is computed."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"the folder of figures must be a folder, got the file {folder}")
    make_folder(folder)
    written = []
    for experiment in experiments().values():
        pictures = experiment.pictures(results) if any(map(results.has, experiment.cells(results.scale))) else []
        for i, picture in enumerate(pictures):
            buffer = io.BytesIO()
            picture.figure.patch.set_alpha(1.0)  # a page shines through; a file may lie on anything
            picture.figure.savefig(buffer, format="png", dpi=144, facecolor="white")
            written.append(folder / f"{experiment.name}-{i}.png")
            write_file(written[-1], [buffer.getvalue()])
    sync_folder(folder)
    return written


def _head(results: Results, judged: list[tuple[Claim, Judged]]) -> str:
    scale = results.scale
    counts = {verdict: sum(one.verdict == verdict for _, one in judged) for verdict in _CLASSES}
    tally = "".join(
        f'<li class="{name}"><b>{counts[verdict]}</b> {escape(verdict)}</li>' for verdict, name in _CLASSES.items()
    )
    links = "".join(
        f'<a href="#{experiment.name}">{escape(experiment.title)}</a>' for experiment in experiments().values()
    )
    data = "".join(
        f"<li><b>{escape(one.title)}</b>: {one.n_base:,} base points, {one.n_queries:,} queries, "
        f"k = {one.k:,}{'' if one.labelled else '; the k nearest in Euclidean space are relevant'}</li>"
        for one in (scale.images, scale.digits, scale.words)
    )
    return (
        "<header><h1>An ensemble diversity approach to supervised binary hashing, <em>reproduced</em></h1>"
        "<p>The figures and claims of M. Á. Carreira-Perpiñán and R. Raziperchikolaei (NIPS 2016), recomputed "
        f"by <code>ilhash reproduce</code> at the <b>{scale.name}</b> scale: {escape(scale.about)}.</p>"
        f"<ul class=tally>{tally}</ul><ul class=data>{data}</ul><nav><a href=#claims>Claims</a>{links}"
        "<a href=#environment>Environment</a></nav></header>"
    )


def _claims(judged: list[tuple[Claim, Judged]]) -> str:
    rows = "".join(
        f'<tr id="claim-{claim.name}"><td class=claim>{escape(claim.text)}<small>{escape(claim.where)}</small></td>'
        f"<td class=rule>{escape(claim.rule)}</td><td class=measured>{escape(one.measured)}</td>"
        f'<td><span class="verdict {_CLASSES[one.verdict]}">{escape(one.verdict)}</span></td></tr>'
        for claim, one in judged
    )
    return (
        "<section id=claims><h2>The paper's claims</h2><p>The rules were written before the run at the paper's "
        "scale (docs/results names those that were corrected after it), and nothing was tuned until one held. "
        "Numbers are precision at the k above unless they say otherwise, tie-aware, "
        "means over the seeds that the rule names.</p><table class=claims><thead><tr><th>the paper says</th>"
        "<th>tested by</th><th>measured</th><th>verdict</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></section>"
    )


def _picture(picture: Picture, name: str) -> str:
    return (
        f'<figure><h3>{escape(picture.title)}</h3><div class=plot role=img aria-label="{escape(picture.title)}">'
        f"{svg(picture.figure, name)}</div><figcaption><p>{escape(picture.caption)}</p>"
        f"<p class=paper><b>In the paper:</b> {escape(picture.paper)}</p></figcaption></figure>"
    )


def _environment(results: Results) -> str:
    sessions = results.sessions()
    stored = [results.read(cell) for cell in cells_of(list(experiments().values()), results.scale)]
    took = [outcome.seconds for outcome in stored if outcome is not None]
    rows = "".join(_session(session) for session in sessions)
    machines = sorted({_about(session) for session in sessions})
    return (
        f"<section id=environment><h2>How this was made</h2><p>{len(took):,} of {len(stored):,} cells in "
        f"{len(sessions)} session{'s' if len(sessions) != 1 else ''}, each cell on one core but that of two workers. "
        f"By the clock they took {sum(took) / 60:,.0f} minutes, added up; the longest "
        f"{max(took, default=0.0) / 60:.1f}.</p>"
        f"<ul class=data>{''.join(f'<li>{escape(machine)}</li>' for machine in machines)}</ul>"
        "<div class=plot><table class=sessions><thead><tr><th>begun (UTC)</th><th>command</th><th>cells</th>"
        f"<th>seconds</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _about(session: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in session["environment"].items())


def _session(session: dict[str, Any]) -> str:
    if session["computed"] is None:
        how = "<td colspan=2>cut short</td>"
    else:
        how = f"<td>{session['computed']}</td><td>{session['seconds']:.0f}</td>"
    return f"<tr><td>{escape(session['begun'])}</td><td><code>{escape(session['command'])}</code></td>{how}</tr>"
