"""``ilhash tune``: the best model for so many bytes."""

import shutil
from pathlib import Path
from typing import Annotated, Any

from rich.box import SIMPLE
from rich.table import Table
from typer import Option

import ilhash
from ilhash import plots
from ilhash.cli import _options as option
from ilhash.cli._app import kept
from ilhash.cli._files import (
    NumbersAndPicture,
    check_new_directory,
    read_own_columns,
    read_supervised,
    read_supervision,
    refuse_labels_among_features,
)
from ilhash.cli._options import parameter
from ilhash.cli._screen import plain, progress_of_work, tell

ROWS = 12  # of the table


def tune(
    vectors: option.Vectors,
    output: option.ModelOutput,
    n_bytes: Annotated[int, Option("--bytes", help="Bytes of a code, at most.")] = 16,
    labels: option.Labels = None,
    labels_column: option.LabelsColumn = None,
    ids_column: option.IdsColumn = None,
    pairs: option.Pairs = None,
    affinity: option.Affinity = None,
    k: Annotated[int, Option("-k", "--k", help="Nearest items that are looked at.")] = 10,
    minutes: Annotated[float, Option(help="Minutes that it may take.")] = 5.0,
    base: Annotated[str, Option(help="Judge by new items, which no model was trained on, or by seen ones.")] = "new",
    unseen: Annotated[float, Option(help="What classes that training does not see count, 0 to 1.")] = 0.0,
    max_encode_us: Annotated[
        float | None, Option(help="Microseconds that encoding a vector on one thread may take.")
    ] = None,
    unlabeled: option.Unlabeled = None,
    random_state: Annotated[int, parameter("The same seed gives the same model.", "0", "--seed")] = 0,
    n_jobs: Annotated[int, Option("--n-jobs", "-j", help="Workers; -1 for all cores.")] = -1,
    plot: Annotated[
        Path | None, Option(help="File for a picture of precision against bytes (.png, .pdf, .svg).")
    ] = None,
    json_path: option.Numbers = None,
    force: option.Force = False,
) -> None:
    """Try functions, methods, mixes and single bits within some minutes, and save the best model of so many bytes.

    Some points are held out and choose, others report what the choice is worth: the number printed is of points that
    chose nothing. What is trained on the way is in OUTPUT.tuning until the model is written: a search that was killed
    goes on from there.
    """
    check_new_directory("--output", output, force=force)
    written = NumbersAndPicture(json_path, plot, force=force)
    refuse_labels_among_features(vectors, labels)
    by_name, left_out = read_own_columns(vectors, labels, labels_column, ids_column)
    given = read_supervision(labels, pairs, affinity) | by_name
    X, own = read_supervised(vectors, left_out)
    more = option.given({"unlabeled": unlabeled, "settings": None})
    folder = output.parent / f"{output.name}.tuning"
    with kept(folder, "trained bits"), progress_of_work("core seconds") as move:
        found = ilhash.tune(
            X,
            **(given or own),
            n_bytes=n_bytes,
            k=k,
            minutes=minutes,
            base=base,
            unseen=unseen,
            max_encode_us=max_encode_us,
            **more,
            random_state=random_state,
            n_jobs=n_jobs,
            checkpoint=folder,
            progress=move,
        )
    found.model.leave_out(left_out)
    found.model.save(output)
    shutil.rmtree(folder)
    written.write(found.to_dict(), lambda: plots.tuning(found))
    _print(found, output)


def _print(found: Any, output: Path) -> None:
    plain.print(_table(found))
    tell(found.measure)
    for where, estimate in found.reports.items():
        among = where if where == "unseen classes" else f"{where} items"
        tell(f"{among}: {estimate.value:.3f} ± {estimate.error:.3f} on points that chose nothing")
    if found.vectors is not None:
        tell(f"new items by the vectors themselves: {found.vectors:.3f}")
    for times, estimate in (("half", found.half), ("twice", found.twice)):
        if estimate is None:
            tell(f"{times} the bytes: not measured")
        else:
            name = "" if estimate.name == found.name else f" ({estimate.name})"
            tell(f"{times} the bytes, {estimate.n_bytes}: {estimate.value:.3f} ± {estimate.error:.3f}{name}")
    for name, why in found.left_out.items():
        tell(f"not tried to the end: {name}: {why}")
    tell(f"{found.reason}")
    tell(f"{found.n_bits} bits ({found.n_bytes} bytes) of {found.name}, {found.seconds:.0f} s; model in {output}")


def _table(found: Any) -> Table:
    title = "what was tried, by the points that choose (* nothing else is as good and as small and as quick)"
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("model", overflow="fold")
    for name in ("bits", "score", "us/vector", "sec."):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.tried[:ROWS]:
        name = f"{'*' if row.front else ' '} {row.name}"
        table.add_row(name, str(row.n_bits), f"{row.score:.3f}", f"{row.encode_us:.1f}", f"{row.seconds:.1f}")
    return table
