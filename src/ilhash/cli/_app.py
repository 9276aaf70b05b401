"""The application that commands are added to, and how errors reach a person."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer import Option
from typer.core import TyperGroup

import ilhash
from ilhash.cli._screen import complain, say

EXPECTED = (ValueError, OSError, ImportError, MemoryError)


class Interrupted(Exception):  # noqa: N818 (not an error)
    """Ctrl-C, with what there is to say about it."""


class _Commands(TyperGroup):
    """Typer would end without a word on Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted(*stop.args) from None


app = typer.Typer(
    name="ilhash",
    cls=_Commands,
    help="Learn compact binary codes from your own notion of similarity, one independent bit at a time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_wanted = {"traceback": False}


def main() -> None:
    """Run the command line; what a person can mend is said in one sentence, with exit code 2; a bug has exit code 1."""
    warnings.showwarning = _show_warning
    try:
        app()
    except Interrupted as stop:
        left = stop.args[0] if stop.args else "nothing was written"
        complain(f"interrupted; {left}", markup=False)
        sys.exit(130)
    except Exception as error:
        if _wanted["traceback"]:
            import traceback

            traceback.print_exception(error)
        sys.exit(_explain(error))


@contextmanager
def kept(folder: Path | None, what: str, *, goes_on: bool = True) -> Iterator[None]:
    """Say on Ctrl-C what is in a folder, if it is there, and whether the same command goes on with it."""
    try:
        yield
    except KeyboardInterrupt:
        if folder is None or not folder.exists():
            raise
        then = ", and the same command goes on from there" if goes_on else ""
        raise KeyboardInterrupt(f"{what} are in {folder}{then}") from None


def _explain(error: Exception) -> int:
    """Say what went wrong in one sentence; return the exit code."""
    # Sentences of ilhash say what they got, whatever their class; those of Python about a TypeError do not.
    if isinstance(error, EXPECTED) or ", got " in str(error):
        complain(f"[bold red]error:[/] {_one_line(error)}")
        return 2
    bug = "this is a bug in ilhash, please report it with what `ilhash --traceback ...` shows"
    complain(f"[bold red]error:[/] {bug}: {type(error).__name__}: {_one_line(error)}")
    return 1


def _one_line(error: BaseException) -> str:
    return escape(" ".join(str(error).split()) or type(error).__name__)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    complain(f"[yellow]warning:[/] {_one_line(message)}")


def _version(wanted: bool) -> None:
    if wanted:
        say.print(f"ilhash {ilhash.__version__} (core: {ilhash.core_simd()})")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    traceback: Annotated[
        bool, Option("--traceback", envvar="ILHASH_TRACEBACK", help="Show where an error comes from.")
    ] = False,
) -> None:
    _wanted["traceback"] = traceback
