"""Claims on the number of bits and on orthogonality."""

from __future__ import annotations

import numpy as np

from ilhash.experiments import precision_by_bits as by_bits
from ilhash.experiments.claims.verdicts import (
    DATASETS,
    Claim,
    Judged,
    MissingCells,
    Values,
    all_of,
    at_every_b,
    judged_by,
    known,
    mean,
    on_both,
    stored,
)
from ilhash.experiments.engine import Cell, Results, ilh, over_seeds, standard_bits
from ilhash.experiments.orthogonality import dimension, dot_products, measures
from ilhash.experiments.report.drawing import number


def _complete(results: Results, cells: list[Cell]) -> Values:
    """Return precision (seeds, numbers of bits) of nested models, all of which must be stored."""
    dataset = cells[0].params["data"]
    curves = by_bits.independent_curves(results, cells, results.scale.data(dataset).k)
    if len(curves) < len(cells):
        raise MissingCells(f"{len(cells) - len(curves)} of {len(cells)} models on the {dataset}")
    return curves


def _ilht(results: Results, dataset: str) -> Values:
    """Return precision (seeds, standard bits) of ILHt."""
    return _complete(results, [ilh(results.scale, dataset, seed) for seed in results.scale.seeds_of(dataset)])


def _title(results: Results, dataset: str) -> str:
    return results.scale.data(dataset).title


def _largest_fall(course: Values) -> float:
    return -float(np.minimum(np.diff(course), 0).min())


@on_both
def _monotone(results: Results, dataset: str) -> Judged:
    at, course = standard_bits(results.scale), _ilht(results, dataset).mean(axis=0)
    falls, before = _largest_fall(course), at.index(results.scale.compared_bits[-1])
    measured = (
        f"{_title(results, dataset)}: largest fall {number(falls, 4)}; {number(course[before], 4)} at {at[before]} "
        f"bits, {number(course[-1], 4)} at {at[-1]}"
    )
    return judged_by(measured, falls <= 0.002 and course[-1] > course[before], falls <= 0.01)


@on_both
def _variance_falls(results: Results, dataset: str) -> Judged:
    grid = results.scale.grid
    spread = stored(results, by_bits.orders(results.scale, dataset, "ILH")).arrays["precision"].std(axis=0)
    early, late = spread[grid.index(8)], spread[len(grid) - 3]
    measured = (
        f"{_title(results, dataset)}: standard deviation over orders {number(early, 4)} at 8 bits, {number(late, 4)} "
        f"at {grid[len(grid) - 3]}"
    )
    return judged_by(measured, late < 0.5 * early, late < early)


@on_both
def _flat_kshcut(results: Results, dataset: str) -> Judged:
    grid, at = results.scale.coupled_grid, standard_bits(results.scale)
    first = min(grid, key=lambda bits: abs(bits - 80)) if grid[-1] > 80 else grid[-2]
    coupled, free = by_bits.coupled_curves(results, dataset), _ilht(results, dataset)
    gain = mean(coupled[:, -1]) - mean(coupled[:, grid.index(first)])
    own = mean(free[:, at.index(grid[-1])]) - mean(free[:, at.index(first)])
    measured = (
        f"{_title(results, dataset)}, {first} to {grid[-1]} bits: KSHcut gains {number(gain, 4)}, ILHt {number(own, 4)}"
    )
    return judged_by(measured, gain <= 0.01 and gain < own, gain <= 0.01 or gain < own)


def _larger_variance(results: Results) -> Judged:
    scale, found = results.scale, []
    at = standard_bits(scale)
    grid = [bits for bits in scale.coupled_grid if bits >= 32] or [scale.coupled_grid[-1]]
    for dataset in DATASETS:
        if len(scale.seeds_of(dataset)) < 2:
            continue
        coupled, free = by_bits.coupled_curves(results, dataset), _ilht(results, dataset)
        own = mean([free[:, at.index(bits)].std() for bits in grid])
        theirs = mean([coupled[:, scale.coupled_grid.index(bits)].std() for bits in grid])
        title = _title(results, dataset)
        measured = f"{title}: mean standard deviation KSHcut {number(theirs, 4)}, ILHt {number(own, 4)}"
        found.append(judged_by(measured, theirs > own))
    return all_of(found)


@on_both
def _lsh_low(results: Results, dataset: str) -> Judged:
    own = _complete(results, by_bits.nested(results.scale, dataset, "LSH")).mean(axis=0)
    falls, top = _largest_fall(own), mean(_ilht(results, dataset)[:, -1])
    measured = (
        f"{_title(results, dataset)}: LSH {number(own[-1])} at {results.scale.max_bits} bits (largest fall "
        f"{number(falls, 4)}), ILHt {number(top)}"
    )
    return judged_by(measured, falls <= 0.005 and own[-1] < top - 0.05, own[-1] < top)


@on_both
def _tpca_peaks(results: Results, dataset: str) -> Judged:
    cells = by_bits.nested(results.scale, dataset, "TPCA")
    at, course = cells[0].params["at"], _complete(results, cells)[0]
    peak, best, last = at[int(np.argmax(course))], course.max(), course[-1]
    measured = f"{_title(results, dataset)}: best at {peak} bits ({number(best)}), {number(last)} at {at[-1]}"
    return judged_by(measured, 16 <= peak <= 48 and last <= best - 0.005, peak < at[-1])


@on_both
def _bagging_rises(results: Results, dataset: str) -> Judged:
    at, course = standard_bits(results.scale), _complete(results, by_bits.bagged(results.scale, dataset, 16))[0]
    first, last, top = course[at.index(16)], course[-1], mean(_ilht(results, dataset)[:, -1])
    title = _title(results, dataset)
    measured = f"{title}: {number(first)} at 16 bits, {number(last)} at {at[-1]}, ILHt {number(top)}"
    return judged_by(measured, last > first and last < top - 0.05, last < top - 0.05)


@on_both
def _single_members(results: Results, dataset: str) -> Judged:
    first, *_, last = _complete(results, by_bits.bagged(results.scale, dataset, 1))[0]
    title, most = _title(results, dataset), results.scale.max_bits
    measured = f"{title}: {number(first)} with 1 bit, {number(last)} with {most}"
    return judged_by(measured, last - first <= 0.05, last - first <= 0.1)


@on_both
def _between(results: Results, dataset: str) -> Judged:
    scale = results.scale
    k, bits = scale.data(dataset).k, scale.coupled_grid[-1]
    models = by_bits.started(scale, dataset, bits)
    low = mean(by_bits.coupled_curves(results, dataset)[: len(models), -1])
    middle = mean(over_seeds(results, models, bits, k))
    high = mean(over_seeds(results, [ilh(scale, dataset, model.seed) for model in models], bits, k))
    measured = (
        f"{_title(results, dataset)}, {bits} bits: KSHcut {number(low)}, KSHcut-ILHt {number(middle)}, ILHt "
        f"{number(high)}"
    )
    return judged_by(measured, low < middle < high, middle < high)


@at_every_b
def _perturbed_worse(results: Results, bits: int) -> Judged:
    k, flips = results.scale.images.k, (0.0, *by_bits.FLIPS)
    optimum, *flipped = (mean(over_seeds(results, by_bits.perturbed(results.scale, bits, f), bits, k)) for f in flips)
    told = ", ".join(f"{100 * f:g} % flipped {number(value)}" for f, value in zip(by_bits.FLIPS, flipped, strict=True))
    return judged_by(f"b={bits}: optimum {number(optimum)}, {told}", max(flipped) < optimum, flipped[-1] < optimum)


@on_both
def _not_orthogonal(results: Results, dataset: str) -> Judged:
    outcome, found = stored(results, dot_products(results.scale, dataset)), []
    for kind in ("codes", "weights"):
        value, random = measures(results, dataset, kind)[-1], 1.0 / dimension(outcome, kind)
        measured = f"{_title(results, dataset)}, {kind}: mean square {number(value, 4)}, random {random:.1e}"
        found.append(judged_by(measured, value >= 10 * random, value >= 3 * random))
    return all_of(found)


@on_both
def _weights_tend(results: Results, dataset: str) -> Judged:
    course = known(measures(results, dataset, "weights"))
    at_bits = zip(course, results.scale.compared_bits, strict=True)
    told = ", ".join(f"{number(value, 4)} at {bits} bits" for value, bits in at_bits)
    return judged_by(f"{_title(results, dataset)}: {told}", (np.diff(course) < 0).all(), course[-1] < course[0])


CLAIMS = (
    Claim(
        "monotone",
        "The precision of ILHt increases nearly monotonically and continues beyond 200 bits",
        "section 4, figure 2",
        "Mean over seeds of independent models, both datasets: no step down by more than .002, and higher with the "
        "longest model than with the longest compared b (partly: no step down by more than .01).",
        _monotone,
    ),
    Claim(
        "variance-falls",
        "Its variance decreases as b increases",
        "section 4, figure 2",
        "Standard deviation over 5 orders: near the longest model (where orders still differ) less than half of that "
        "at 8 bits (partly: less).",
        _variance_falls,
    ),
    Claim(
        "flat-kshcut",
        "KSHcut barely increases after 80 bits",
        "section 4, figure 2",
        "Mean over seeds: from about 80 bits to the longest KSHcut gains at most .01 and less than ILHt (partly: one "
        "of the two).",
        _flat_kshcut,
    ),
    Claim(
        "larger-variance",
        "The variance of KSHcut is larger",
        "section 4, figure 2",
        "Standard deviation over seeds, mean over b of at least 32: KSHcut's larger than ILHt's.",
        _larger_variance,
    ),
    Claim(
        "lsh-low",
        "LSH increases monotonically but only reaches a low precision",
        "section 4, figure 2",
        "Mean over seeds: no step down by more than .005; with the most bits below ILHt by at least .05 (partly: "
        "below).",
        _lsh_low,
    ),
    Claim(
        "tpca-peaks",
        "tPCA tops at around 30 bits and decreases thereafter",
        "section 4, figure 2",
        "Best b between 16 and 48, and the last at least .005 below it (partly: the best is not the last).",
        _tpca_peaks,
    ),
    Claim(
        "bagging-rises",
        "Bagging makes tPCA improve with b, but far from competitive",
        "section 4, figure 2",
        "16-bit members: higher with the most bits than with 16, and below ILHt by at least .05 (partly: only "
        "the latter).",
        _bagging_rises,
    ),
    Claim(
        "single-members",
        "With single-bit members bagged tPCA is barely better than one bit",
        "section 4",
        "At most .05 above one bit with the most bits (partly: .1).",
        _single_members,
    ),
    Claim(
        "between",
        "KSHcut started from ILHt's codes is better than KSHcut but remains far from ILHt",
        "section 4, figure 2",
        "Longest coupled b, the same seeds of all three (2 on the images, 1 on the digits): KSHcut < KSHcut-ILHt < "
        "ILHt (partly: below ILHt only).",
        _between,
    ),
    Claim(
        "perturbed-worse",
        "Random perturbations of KSHcut's optimum lower the precision",
        "section 4",
        "Every b, mean over seeds: lower with 2, 10 and 20 % of the codes flipped (partly: with 20 %).",
        _perturbed_worse,
    ),
    Claim(
        "not-orthogonal",
        "Codes and weights are far from orthogonal",
        "section 4, figure 3",
        "Longest compared model, both datasets: mean squared dot product at least 10 times that of random vectors "
        "(partly: 3 times).",
        _not_orthogonal,
    ),
    Claim(
        "weights-tend",
        "The weights have some tendency to orthogonality as b increases",
        "section 4, figure 3",
        "The measure of the weights falls with every b (partly: from the first to the last).",
        _weights_tend,
    ),
)
