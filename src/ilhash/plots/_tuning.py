"""What a search for the best model tried: precision against bytes, encoding time as colour."""

from __future__ import annotations

from typing import Any

from ilhash.plots._style import FAINT, INK, new_figure

NAMED = 6  # models of the front that are named


def tuning(found: Any) -> Any:
    """Draw every model that was tried, the front of what is worth having, and what the chosen one is worth."""
    figure, panels = new_figure(8, 5)
    axes = panels[0, 0]
    rows = sorted(found.tried, key=lambda row: row.score)
    encoding = [max(row.encode_us, 1e-2) for row in rows]
    dots = axes.scatter(
        [row.n_bytes for row in rows],
        [row.score for row in rows],
        c=encoding,
        norm="log",
        cmap="viridis",
        s=[60 if row.front else 22 for row in rows],
        edgecolors=[INK if row.front else "none" for row in rows],
        linewidths=0.8,
        zorder=3,
    )
    _front(axes, rows)
    _worth(axes, found)
    if found.vectors is not None:
        axes.axhline(found.vectors, color=FAINT, ls=":", lw=1)
        axes.annotate("vectors themselves", (1, found.vectors), xycoords=("axes fraction", "data"), fontsize=7.5,
                      color=FAINT, ha="right", va="bottom")  # fmt: skip
    axes.set_xscale("log", base=2)
    sizes = sorted({row.n_bytes for row in rows})
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set(xlabel="bytes of a code", ylabel=f"precision@{found.k} on points held out")
    axes.set_title("models that were tried; ringed: nothing else is as good, as small and as quick", fontsize=9)
    bar = figure.colorbar(dots, ax=axes)
    bar.set_label("microseconds to encode a vector", color=INK, fontsize=9)
    bar.ax.tick_params(colors=INK, labelsize=8)
    return figure


def _front(axes: Any, rows: list[Any]) -> None:
    """Join the best of each size."""
    best: dict[int, Any] = {}
    for row in rows:  # ascending in score
        best[row.n_bytes] = row
    sizes = sorted(best)
    axes.plot(sizes, [best[size].score for size in sizes], color=FAINT, lw=1, zorder=1)
    for size in sizes[-NAMED:]:
        axes.annotate(
            best[size].name, (size, best[size].score), (0, 7), textcoords="offset points", fontsize=7, color=INK,
            ha="left" if size == sizes[0] else "right" if size == sizes[-1] else "center",
        )  # fmt: skip


def _worth(axes: Any, found: Any) -> None:
    """Mark what points that chose nothing say, for half and twice the bytes too."""
    chosen = found.reports[found.judged_by]
    reported = [one for one in (found.half, chosen, found.twice) if one is not None]
    axes.errorbar(
        [one.n_bytes for one in reported],
        [one.value for one in reported],
        yerr=[2 * one.error for one in reported],
        fmt="D",
        color="#d62f2f",
        ms=5,
        capsize=3,
        lw=1,
        zorder=4,
        label="on points that chose nothing (two standard errors)",
    )
    axes.legend(frameon=False, loc="lower right", fontsize=8)
