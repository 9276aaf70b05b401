"""The paper's figures and tables on real data: one file each, its claims, and one page of all.

    scale       how large: smoke, small, paper             (_scales)
      |
    experiment  which cells it needs                       (one file each, named after what it shows)
      |
    cells       computed once, stored as they finish       (_cells, _tasks, _run, _store)
      |
    pictures    figures of stored cells                    (the same files, _style)
    claims      the paper's statements and their verdicts  (claims)
      |
    report      one self-contained HTML page               (_report)

Experiments that need the same model share its cell: bits are independent, so one long ILHt serves every number of bits.
``compare`` stands apart: a table of all methods on anybody's data.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ilhash.experiments._report import judge_all, write_figures, write_report
    from ilhash.experiments._reproduce import reproduce

__all__ = ["judge_all", "reproduce", "write_figures", "write_report"]

_HOMES = {
    "judge_all": "_report",
    "reproduce": "_reproduce",
    "write_figures": "_report",
    "write_report": "_report",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"ilhash.experiments.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ilhash.experiments' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
