"""Private memory of this process (Linux): RssAnon, what no file backs."""

from __future__ import annotations

import threading
from pathlib import Path


def private_megabytes() -> float:
    """Return RssAnon."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) / 1024


class Peak:
    """Looks a hundred times a second; ``with Peak() as peak: ...; peak.megabytes``."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._end.wait(0.01):
            self.megabytes = max(self.megabytes, private_megabytes())

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.megabytes = max(self.megabytes, private_megabytes())
