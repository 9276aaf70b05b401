"""The paper's figures and tables on real data: one file each, its claims, and one page of all.

The way it takes::

    scale       how large: smoke, small, paper             (engine/scales)
      |
    experiment  which cells it needs                       (one file each, named after what it shows)
      |
    cells       computed once, stored as they finish       (engine: cells, tasks, run, store)
      |
    pictures    figures of stored cells                    (the same files, report/drawing)
    claims      the paper's statements and their verdicts  (claims)
      |
    report      one self-contained HTML page               (report/page)

Experiments that need the same model share its cell: bits are independent, so one long ILHt serves every number of bits.
``compare`` stands apart: a table of all methods on anybody's data (comparison). A name is imported when it is first
used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ilhash.experiments.claims import judge_all, judge_corrections
    from ilhash.experiments.comparison import BYTES, TABLES, Comparison, Row, Settings, compare
    from ilhash.experiments.engine import Cell, Outcome, Results
    from ilhash.experiments.engine.run import Progress, Summary, run_cells
    from ilhash.experiments.engine.scales import get_scale
    from ilhash.experiments.experiment import Experiment, cells_of, experiments
    from ilhash.experiments.report.page import require_report, write_figures, write_report
    from ilhash.experiments.reproduction import reproduce

__all__ = ["BYTES", "TABLES", "Cell", "Comparison", "Experiment", "Outcome", "Progress", "Results", "Row", "Settings"]
__all__ += ["Summary", "cells_of", "compare", "experiments", "get_scale", "judge_all", "judge_corrections", "reproduce"]
__all__ += ["require_report", "run_cells", "write_figures", "write_report"]

_HOMES = {
    "claims": ("judge_all", "judge_corrections"),
    "comparison": ("BYTES", "TABLES", "Comparison", "Row", "Settings", "compare"),
    "engine": ("Cell", "Outcome", "Results"),
    "engine.run": ("Progress", "Summary", "run_cells"),
    "engine.scales": ("get_scale",),
    "experiment": ("Experiment", "cells_of", "experiments"),
    "report.page": ("require_report", "write_figures", "write_report"),
    "reproduction": ("reproduce",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"ilhash.experiments.{home}"), name)
    raise AttributeError(f"module 'ilhash.experiments' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
