"""What is written to the terminal, and the progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["errors", "plain", "progress", "say", "tell", "waiting"]

say = Console()
plain = Console(markup=False, emoji=False, highlight=False)  # ids and paths may look like markup
errors = Console(stderr=True)


def tell(text: str) -> None:
    """Print text as it is; long lines are left to the terminal."""
    plain.print(text, soft_wrap=True)


def waiting(what: str) -> AbstractContextManager[Any]:
    """Show that work is under way whose length is not known beforehand."""
    return errors.status(what)


@contextmanager
def progress(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time left; yields the function that moves it to (done, total)."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
        disable=not errors.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
