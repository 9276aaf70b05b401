"""``ilhash data``: the datasets that ilhash knows."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from typer import Argument, Option

import ilhash
from ilhash.cli._options import NThreads
from ilhash.cli._screen import Timer, progress, progress_of_bytes, say, tell

data = typer.Typer(help="Datasets that ilhash knows.", no_args_is_help=True)


@data.command("list")
def list_datasets() -> None:
    """List the datasets and whether they are here."""
    table = Table("name", "vectors", "dim.", "labels", "here", "what", "licence")
    table.columns[0].no_wrap = table.columns[3].no_wrap = True
    for entry in ilhash.datasets.available():
        rows = "endless" if entry.n_rows is None else f"{entry.n_rows:,}"
        labels = "yes" if entry.labeled else "no"
        labels = "\n".join(f"::{target}" for target in entry.targets) or labels
        table.add_row(entry.name, rows, f"{entry.n_features:,}", labels, _here(entry), entry.description, entry.license)
    say.print(table)
    home = ilhash.datasets.data_home()
    tell(f"looked for in {home} (the environment variable ILHASH_DATA names another folder)")


def _here(entry: "ilhash.datasets.DatasetInfo") -> str:
    """Say whether a dataset is here, how large it is, and what `ilhash data get` would ask for."""
    if entry.present:
        return f"yes\n{entry.n_bytes / 1e6:,.0f} MB" if entry.n_bytes else "yes"
    return "no" if entry.download_bytes is None else f"get\n{entry.download_bytes / 1e6:,.0f} MB"


@data.command("get")
def get_dataset(
    name: Annotated[str, Argument(help='One of those that `ilhash data list` says can be had ("get").')],
    mirror: Annotated[
        str | None, Option(help="Address of a folder that holds the same files elsewhere; checksums stay.")
    ] = None,
) -> None:
    """Get the files of a dataset from where they are published, checked; what broke off goes on where it was."""
    with Timer() as took, progress_of_bytes(f"getting {name}") as move:
        folder = ilhash.datasets.get(name, mirror=mirror, progress=move)
    tell(f"{name} is in {folder} ({took})")


@data.command("make")
def make(
    name: Annotated[str, Argument(help="infinite-digits: endless elastic deformations of real digits.")],
    output: Annotated[Path, Option("--output", "-o", help="New directory for X.npy, y.npy and about.json.")],
    n: Annotated[int, Option("--n", help="Number of images.")],
    start: Annotated[int, Option(help="Number of the first image.")] = 0,
    source: Annotated[str, Option(help="What is deformed: mnist, or the bundled digits.")] = "mnist",
    part: Annotated[str, Option(help="Part of the source: train, test or all.")] = "train",
    seed: Annotated[int, Option(help="The same seed gives the same bytes.")] = 0,
    n_threads: NThreads = -1,
) -> None:
    """Make a slice of an endless dataset: image i depends on the seed and i alone."""
    if name != "infinite-digits":
        raise ValueError(f"the dataset to make must be infinite-digits, got {name!r}")
    digits = ilhash.datasets.InfiniteDigits(source, part=part, seed=seed)
    with Timer() as took, progress("making", "images") as move:
        digits.write(output, n, start, n_threads=n_threads, progress=move)
    size = " x ".join(map(str, digits.image_shape))
    where = f"vectors in {output / 'X.npy'}, labels in {output / 'y.npy'}"
    tell(f"made {n:,} images of {size} pixels in {took}; {where}")
