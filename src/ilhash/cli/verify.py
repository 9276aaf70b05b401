"""``ilhash verify``: whether a model, an index, codes or feedback are as they were written."""

from pathlib import Path

import typer

import ilhash
from ilhash.cli._files import kind_of
from ilhash.cli._options import Written
from ilhash.cli._screen import Timer, errors, tell


def verify(path: Written) -> None:
    """Read every byte of a model, an index, codes or feedback and name the damages; exit code 1 if there are any."""
    kind = kind_of(path)
    with Timer() as took, errors.status("reading"):
        if kind == "index" or not path.exists() or (kind == "model" and not (path / "config.json").exists()):
            report = ilhash.search.verify(path)
            text, ok = str(report), report.ok
        elif kind == "feedback":
            found = ilhash.feedback.verify(path)
            text, ok = str(found), found.ok
        else:
            text, ok = _verified(path, kind)
    tell(f"{text}\nread in {took}")
    if not ok:
        raise typer.Exit(1)


def _verified(path: Path, kind: str) -> tuple[str, bool]:
    """Read a model or codes; return in words what was found, and whether all is well."""
    try:
        if kind == "model":
            ilhash.load(path)
            sizes = [file.stat().st_size for file in path.iterdir() if file.is_file()]
        else:
            codes = ilhash.open_codes(path)
            codes.verify()
            files = [path / name for name in codes.names] if kind == "shards" else [path]
            sizes = [file.stat().st_size for file in files]
    except (ilhash.StorageError, FileNotFoundError) as error:
        return f"{path}: damaged: {error}", False
    return f"{path}: {kind}, {len(sizes)} files, {sum(sizes)} bytes, nothing damaged", True
