"""``ilhash verify``: whether an index is as it was written."""

import typer

import ilhash
from ilhash.cli._options import Index
from ilhash.cli._screen import Timer, errors, tell


def verify(index: Index) -> None:
    """Read every byte of an index and name all damages; exit code 1 if there are any."""
    with Timer() as took, errors.status("reading"):
        report = ilhash.search.verify(index)
    tell(f"{report}\nread in {took}")
    if not report.ok:
        raise typer.Exit(1)
