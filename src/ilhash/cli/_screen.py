"""What is written to the terminal: text, a progress bar, seconds, a curve."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

say = Console(highlight=False)
plain = Console(markup=False, emoji=False, highlight=False)  # ids and paths may look like markup
errors = Console(stderr=True, highlight=False)


def tell(text: str) -> None:
    """Print text as it is; long lines are left to the terminal."""
    plain.print(text, soft_wrap=True)


def complain(text: str, *, markup: bool = True) -> None:
    """Print text on the error stream; long lines are left to the terminal."""
    errors.print(text, markup=markup, soft_wrap=True)


class Timer:
    """The seconds that a ``with`` block took; as text "1.2 s"."""

    def __enter__(self) -> Timer:
        self._begin = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._begin

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s"


def bar(*columns: str | ProgressColumn) -> Progress:
    """Return a bar of these columns, which a pipe does not see."""
    return Progress(*columns, console=errors, disable=not errors.is_terminal)


@contextmanager
def progress(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time left; yields the function that moves it to (done, total)."""
    counted = ("{task.description}", BarColumn(), MofNCompleteColumn(), unit)
    with bar(*counted, TimeElapsedColumn(), "left", TimeRemainingColumn()) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def progress_of_bytes(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar of bytes with their speed and the time left; yields the function that moves it to (done, total)."""
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with bar(*columns) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


class _TimeLeft(ProgressColumn):
    """The time left, as it was said last, less the time since."""

    def render(self, task: Any) -> Text:
        left, said = task.fields["left"], task.fields["said"]
        return Text("" if left is None else f"{duration(max(0.0, left - (time.monotonic() - said)))} left")


@contextmanager
def progress_of_work(unit: str) -> Iterator[Callable[[Any], None]]:
    """Show a bar of pieces that take different times, with what is said of them: done, total, seconds_left, current.

    On a pipe a line now and then. Yields the function that is called with these.
    """
    counted = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), _TimeLeft(), "{task.description}")
    with bar(unit, *counted) as shown:
        task = shown.add_task("", total=None, left=None, said=0.0)
        tenths = 0

        def moved(now: Any) -> None:
            nonlocal tenths
            about = {"left": now.seconds_left, "said": time.monotonic()}
            shown.update(task, completed=now.done, total=now.total, description=now.current, **about)
            tenth = 10 * now.done // max(1, now.total)
            if not errors.is_terminal and tenth > tenths:
                tenths = tenth
                complain(f"{now.done} of {now.total} {unit}, {duration(now.seconds_left)} left", markup=False)

        yield moved


def duration(seconds: float) -> str:
    """Return seconds, minutes or hours as text."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def terminal_curve(curve: Sequence[float] | np.ndarray[Any, Any], n_bits: int, height: int = 8) -> Text:
    """Draw a curve over 1 .. n_bits with characters, a column for each bit or for some of them."""
    values = np.asarray(curve)
    width = min(max(n_bits, 1), 64)
    at = [values[(c + 1) * n_bits // width - 1] for c in range(width) if (c + 1) * n_bits // width <= len(values)]
    low, high = float(values.min()), float(values.max())
    eighths = [round(8 * height * (0.05 + 0.95 * (v - low) / (high - low or 1.0))) for v in at]
    lines = []
    for row in reversed(range(height)):
        blocks = "".join(" ▁▂▃▄▅▆▇█"[min(max(e - 8 * row, 0), 8)] for e in eighths)
        edge = f"{high:.3f}" if row == height - 1 else f"{low:.3f}" if row == 0 else ""
        lines.append(f"{edge:>6} {blocks}")
    lines.append(f"{'':6} 1{f'{n_bits} bits':>{max(width - 1, 1)}}")
    return Text("\n".join(lines), no_wrap=True, overflow="crop")
