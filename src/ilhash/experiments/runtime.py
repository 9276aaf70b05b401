"""Section 4, runtime: seconds per bit, its growth with N, workers, and independent against coupled training."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilhash.experiments.engine import Cell, Results, Scale, settings_of
from ilhash.experiments.engine.cells import TIME_LIMIT
from ilhash.experiments.report.drawing import Picture, colour, figures, label_ends, log_axis, new_figure, number

TITLE = "What it costs"
SHOWS = "seconds per bit against N, growth, two workers, independent against coupled (the table of section 4)"
DATASETS = ("images",)
PAPER_SECONDS = {2_000: 1.2, 5_000: 2.8, 10_000: 7.1, 20_000: 22.5}
METHOD_OF = {"ILHt": "ILH", "KSHcut": "KSHcut", "KSHcut, kernel": "KSHcut", "KSH": "KSH"}
FLOWS = {"scipy": "SciPy", "pymaxflow": "PyMaxflow"}
BITS = 16


def per_bit(scale: Scale, n_train: int) -> Cell:
    """Return the cell that times bits of ILHt at one N."""
    params = {"data": "images", "method": "ILH", "settings": settings_of(scale, n_train=n_train), "bits": BITS}
    return Cell("training_time", params, 0, cost=BITS * (0.02 + 5e-6 * n_train), alone=True)


def assembled(scale: Scale, flow: str, n_train: int) -> Cell:
    """Return the cell that times what one could assemble from public packages, with one of two for the max-flow."""
    params = {"data": "images", "flow": flow, "n_train": n_train, "bits": 4}
    return Cell("assembled_time", params, 0, cost=4 * 8e-5 * n_train, alone=True)


def training(scale: Scale, name: str, bits: int) -> Cell:
    """Return the cell that times all bits of a method at the standard N."""
    functions: dict[str, Any] = {"hash_function": "kernel"} if name == "KSHcut, kernel" else {}
    settings = settings_of(scale, **functions)
    if name.startswith("KSHcut"):
        del settings["diversity"]
    elif name == "KSH":
        settings = {"n_train": scale.n_train, "n_centers": scale.n_centers}
    params = {"data": "images", "method": METHOD_OF[name], "settings": settings, "bits": bits}
    cost = bits * (0.04 if name == "ILHt" else 0.15) * scale.n_train / 5_000
    return Cell("training_time", params, 0, cost=cost, alone=True, limit=scale.limit)


def speed_up(scale: Scale) -> Cell:
    """Return the cell that sets two workers beside one."""
    settings = settings_of(scale, n_train=scale.sizes[-1], sampling="random")
    rounds, products = (3, 1_000) if scale.n_train >= 1_000 else (1, 50)
    params = {"data": "images", "settings": settings, "bits": scale.bits[-1], "rounds": rounds, "products": products}
    return Cell("speed_up", params, 0, cost=5 * scale.bits[-1] * (0.02 + 4e-6 * scale.sizes[-1]), alone=True)


def cells(scale: Scale) -> list[Cell]:
    """Return all that is timed."""
    found = [per_bit(scale, n) for n in scale.sizes]
    found += [assembled(scale, flow, n) for flow in FLOWS for n in scale.sizes]
    found += [training(scale, name, bits) for name in METHOD_OF for bits in scale.bits]
    return [*found, speed_up(scale)]


def _seconds(results: Results, cell: Cell, name: str) -> float:
    outcome = results.read(cell)
    if outcome is None or outcome.status == TIME_LIMIT:
        return float("nan")
    return float(outcome.numbers.get(name, float("nan")))


def growth(results: Results) -> tuple[list[float], float]:
    """Return seconds per bit at each N, and the exponent of their growth."""
    sizes = results.scale.sizes
    seconds = [_seconds(results, per_bit(results.scale, n), "per_bit") for n in sizes]
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if np.isfinite(seconds).all() else float("nan")
    return seconds, exponent


def _peer(results: Results, flow: str) -> list[float]:
    """Return the seconds per bit of what one could assemble, at each N."""
    return [_seconds(results, assembled(results.scale, flow, n), "per_bit") for n in results.scale.sizes]


def _growth_panel(results: Results, panel: Any, seconds: list[float]) -> None:
    sizes = list(results.scale.sizes)
    lines = [("ILHt", "ilhash", sizes, seconds)]
    lines += [(flow, f"with {title}", sizes, _peer(results, flow)) for flow, title in FLOWS.items()]
    lines.append(("paper", "the paper, 2016", list(PAPER_SECONDS), list(PAPER_SECONDS.values())))
    ends = []
    for name, label, at, values in lines:
        panel.plot(at, values, color=colour(name), marker="o", ms=4, lw=2 if name == "ILHt" else 1.2)
        ends.append((label, values[-1], colour(name)))
    panel.set(yscale="log", xlabel="training points N", ylabel="seconds per bit", title="one bit of ILHt, one thread")
    ticks = sizes if set(sizes) <= PAPER_SECONDS.keys() else sorted({sizes[0], sizes[-1], *PAPER_SECONDS})
    log_axis(panel, ticks)
    panel.yaxis.set_major_formatter("{x:g}")
    label_ends(panel, ends)


def _coupled_panel(results: Results, panel: Any) -> None:
    scale, ends = results.scale, []
    for name in METHOD_OF:
        values = [_seconds(results, training(scale, name, bits), "seconds") for bits in scale.bits]
        panel.plot(scale.bits, values, color=colour(name), marker="o", ms=4)
        ends.append((name, values[-1], colour(name)))
    panel.set(yscale="log", xlabel="number of bits b", ylabel="seconds of training")
    log_axis(panel, scale.bits)
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter("{x:g}")
    panel.set_title(f"all bits, N = {scale.n_train:,}, one thread")
    label_ends(panel, ends)


def _beside_peers(results: Results, seconds: list[float]) -> str:
    """Say how far the peers are behind, or why one is not there."""
    measured = []
    for flow, title in FLOWS.items():
        found = results.read(assembled(results.scale, flow, results.scale.sizes[-1]))
        if found is None:
            continue
        if "without" in found.numbers:
            measured.append(f"without {title}: {found.numbers['without']}")
        else:
            ratios = np.array(_peer(results, flow)) / seconds
            measured.append(f"with {title} {figures(ratios.min())} to {figures(ratios.max())} times as long")
    return "; ".join(measured) or "not computed yet"


def pictures(results: Results) -> list[Picture]:
    """Draw seconds over N and over the number of bits."""
    scale = results.scale
    figure, axes = new_figure(11.5, 4, 1, 2)
    seconds, exponent = growth(results)
    _growth_panel(results, axes[0, 0], seconds)
    _coupled_panel(results, axes[0, 1])
    at_sizes = zip(scale.sizes, seconds, strict=True)
    measured = ", ".join(f"{figures(1e3 * value)} ms at N = {n:,}" for n, value in at_sizes)
    both, found = "", results.read(speed_up(scale))
    if found is not None:
        ratio, machine = found.numbers["speed_up"], found.numbers["machine"]
        both = f" Two workers are {ratio:.2f} times one (two cores of this machine are {machine:.2f} times one)."
    caption = (
        f"Left: {measured}; the cost grows as N^{number(exponent, 2)}. The paper's machine was another one, ten years "
        "older; what can be compared is the growth. The same steps assembled with care from SciPy, LIBLINEAR and one "
        f"of two max-flow packages: {_beside_peers(results, seconds)}. Right: independent bits against the coupled "
        f"objective by min-cut (KSHcut) and by gradients (KSH, which has kernels).{both}"
    )
    paper = (
        "1.2, 2.8, 7.1 and 22.5 seconds per bit for N = 2,000, 5,000, 10,000 and 20,000; BRE had not converged "
        "after 12 hours; KSHcut costs about the same per pass over a bit, but its passes must follow one another."
    )
    return [Picture("Training time", figure, caption, paper)]
