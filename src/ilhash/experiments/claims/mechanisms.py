"""Claims on the mechanisms of diversity, training sets, features and kernels."""

from __future__ import annotations

from functools import partial

import numpy as np

from ilhash.experiments.block_order import energies, precisions
from ilhash.experiments.claims.verdicts import (
    Claim,
    Judged,
    Values,
    above,
    all_of,
    at_every_b,
    judged_by,
    known,
    mean,
    on_both,
    untested,
)
from ilhash.experiments.diversity_mechanisms import MECHANISMS, mechanism
from ilhash.experiments.engine import Results, at_bits, ilh, over_seeds
from ilhash.experiments.feature_fraction import best_fraction, encoding_seconds, fractions_of, precision_over
from ilhash.experiments.precision_by_bits import nested
from ilhash.experiments.report.drawing import number
from ilhash.experiments.training_set_size import all_alike, growing, single_bit
from ilhash.experiments.training_sets import n_disjoint, sampling_curves

COMMON, PRIVATE = "kernel, common centres", "kernel, private centres"


def _values(results: Results, name: str, bits: int, n_train: int | None = None, function: str = "linear") -> Values:
    """Return precision of a mechanism over its seeds, at the standard N unless said otherwise."""
    scale = results.scale
    n = scale.n_train if n_train is None else n_train
    return over_seeds(results, mechanism(scale, name, function, n, bits), bits, scale.images.k)


def _ilht_above(results: Results, bits: int, others: tuple[str, ...], margin: float) -> Judged:
    own = _values(results, "ILHt", bits)
    names = [(f"b={bits}: ILHt", other) for other in others]
    return all_of([above(own, _values(results, pair[1], bits), margin, pair) for pair in names])


def _saturates(results: Results) -> Judged:
    sizes, bits = results.scale.sizes, results.scale.bits[-1]
    found = []
    for name in (*MECHANISMS, "KSHcut"):
        course = [mean(_values(results, name, bits, n)) for n in sizes]
        gains = np.diff(course) / np.diff(np.log2(sizes))
        measured = f"{name} {number(gains[0])} per doubling of N at first, {number(gains[-1])} at last"
        found.append(judged_by(measured, gains[-1] < gains[0]))
    return all_of(found)


def _nearly_maximal(results: Results) -> Judged:
    scale = results.scale
    course = {n: mean(_values(results, "ILHt", scale.bits[-1], n)) for n in scale.sizes}
    own, best = course[scale.n_train], max(course.values())
    measured = f"N={scale.n_train:,}: {number(own)}, best of all N: {number(best)}"
    return judged_by(measured, own >= 0.97 * best, own >= 0.93 * best)


def _diversity_goes(results: Results) -> Judged:
    scale = results.scale
    bits, k = scale.bits[-1], scale.images.k
    course = [mean(over_seeds(results, growing(scale, n), bits, k)) for n in scale.wide_sizes]
    last, best = course[-1], max(course)
    nothing, one = mean(over_seeds(results, all_alike(scale, "fixed"), bits, k)), mean(single_bit(results))
    measured = (
        f"ILHt with all {scale.wide_sizes[-1]:,} points in every bit {number(last)}, best of all N {number(best)}; "
        f"bits that differ in nothing {number(nothing)}, one bit {number(one)}"
    )
    dropped, alike = last < 0.5 * best, abs(nothing - one) < 0.03
    return judged_by(measured, dropped and alike, dropped or alike)


def _one_bit(results: Results) -> Judged:
    if not results.scale.images.title.startswith("CIFAR"):
        return untested("a statement on CIFAR")
    one = mean(single_bit(results))
    return judged_by(f"mean of the first 16 single bits {number(one)}", 0.11 <= one <= 0.14)


def _many_bits_help(results: Results) -> Judged:
    bits = results.scale.bits[-1]
    many, one = mean(_values(results, "ILHt", bits)), mean(single_bit(results))
    return judged_by(f"one bit {number(one)}, {bits} bits {number(many)}", many > 2 * one, many > 1.3 * one)


def _function_above(results: Results, bits: int, high: tuple[str, str], low: tuple[str, str], margin: float) -> Judged:
    """Judge ILHt with one kind of functions against another, each (as it is called, its name)."""
    one, other = (_values(results, "ILHt", bits, function=function) for _, function in (high, low))
    return above(one, other, margin, (f"b={bits}: {high[0]}", low[0]))


@at_every_b
def _kernels_gain_little_more(results: Results, bits: int) -> Judged:
    linear, kernel = (
        mean(_values(results, "ILHt", bits, function=f)[:1]) - mean(_values(results, "ILHi", bits, function=f)[:1])
        for f in ("linear", COMMON)
    )
    measured = f"b={bits}: ILHt over ILHi {number(linear)} linear, {number(kernel)} kernel"
    return judged_by(measured, kernel <= linear + 0.02)


def _over_fractions(results: Results, dataset: str, name: str, bits: int) -> Values:
    """Return precision at each share of the features, mean over seeds."""
    return np.asarray(known(precision_over(results, dataset, name, bits)).mean(axis=0))


def _best_fraction(results: Results, dataset: str, name: str, wanted: float, low: float, margin: float) -> Judged:
    """Judge where the best d/D lies: holds from ``low`` up to its mirror, partly if the wanted one is close to it."""
    bits, high = results.scale.bits[-1], 1.0 if wanted == 1.0 else 1.5 * wanted
    best, highest = best_fraction(results, dataset, name, bits)
    at_wanted = _over_fractions(results, dataset, name, bits)[fractions_of(results.scale, dataset).index(wanted)]
    measured = (
        f"{results.scale.data(dataset).title}, b={bits}: best at d/D = {number(best, 2)} ({number(highest, 4)}); "
        f"at {wanted:g} {number(at_wanted, 4)}"
    )
    return judged_by(measured, low <= best <= high, highest - at_wanted <= margin)


@at_every_b
def _low_d_like_lsh(results: Results, bits: int) -> Judged:
    scale, course = results.scale, _over_fractions(results, "images", "ILHf", bits)
    lsh = mean(over_seeds(results, nested(scale, "images", "LSH"), bits, scale.images.k))
    low, best = course[0], course.max()
    measured = f"b={bits}: d/D={scale.fractions[0]:g} {number(low)}, LSH {number(lsh)}, best d/D {number(best)}"
    return judged_by(measured, abs(low - lsh) <= 0.05, abs(low - lsh) < abs(best - low))


@at_every_b
def _all_d_like_ilhi(results: Results, bits: int) -> Judged:
    full, start = _over_fractions(results, "images", "ILHf", bits)[-1], mean(_values(results, "ILHi", bits))
    measured = f"b={bits}: ILHf at d=D {number(full)}, ILHi {number(start)}"
    return judged_by(measured, abs(full - start) <= 0.02, abs(full - start) <= 0.04)


def _query_time(results: Results) -> Judged:
    seconds = known(encoding_seconds(results)["per_vector"])
    quarter, half, full = (seconds[results.scale.fractions.index(share)] for share in (0.25, 0.5, 1.0))
    measured = f"d/D=0.25: {quarter / full:.2f} of the time, d/D=0.5: {half / full:.2f} of the time"
    return judged_by(measured, quarter <= 0.35 * full and half <= 0.6 * full, quarter <= 0.8 * full)


def _random_blocks(results: Results) -> Judged:
    found = []
    for name, letters in (("ILHt", "t"), ("ILHi", "i"), ("ILHf", "f")):
        random, fixed = (precisions(results, "images", letters, order) for order in ("random", "fixed"))
        one = above(random, fixed, 0.002, (f"{name}: random", "fixed"))
        low, high = (mean(energies(results, "images", letters, order)) for order in ("random", "fixed"))
        found.append(Judged(f"{one.measured} (energies {low:,.0f}, {high:,.0f})", one.verdict))
    return all_of(found)


def _disjoint_best(results: Results) -> Judged:
    if n_disjoint(results.scale, "digits") < results.scale.bits[0]:
        return untested("too few disjoint sets")
    at, disjoint = sampling_curves(results, "digits", "disjoint")
    random, bootstrap = (sampling_curves(results, "digits", sampling)[1] for sampling in ("random", "bootstrap"))
    found = []
    for place in (len(at) - 2, len(at) - 1):
        d, r, b = (mean(values[:, place]) for values in (disjoint, random, bootstrap))
        measured = f"b={at[place]}: disjoint {number(d, 4)}, random {number(r, 4)}, bootstrap {number(b, 4)}"
        found.append(judged_by(measured, d >= r - 0.001 and r >= b + 0.001, r > b or d > b))
    return all_of(found)


def _cifar_numbers(results: Results) -> Judged:
    scale = results.scale
    if scale.name != "paper":
        return untested("the paper scale only")
    ilht, n = ilh(scale, "images", 0), scale.n_train
    ilhi, kernel = mechanism(scale, "ILHi", "linear", n, 64)[0], mechanism(scale, "ILHt", PRIVATE, n, 64)[0]
    models = ((ilht, 64), (ilht, 128), (ilhi, 64), (kernel, 64))
    short, long, start, private = known([at_bits(results, *model, scale.images.k) for model in models]).tolist()
    measured = (
        f"64 bits {number(short)}, 128 bits {number(long)}, ILHi at 64 {number(start)}, kernel with private "
        f"centres at 64 {number(private)}"
    )
    right = [short >= 0.42, long >= 0.45, short - start >= 0.03, private >= 0.52]
    return judged_by(measured, all(right), any(right))


CLAIMS = (
    Claim(
        "best-mechanism",
        "ILHt is clearly the best of the three mechanisms",
        "section 4, figure 1",
        "Linear functions, standard N, every b: mean over seeds above ILHi's and ILHf's by at least .005 (partly: "
        "above).",
        at_every_b(partial(_ilht_above, others=("ILHi", "ILHf"), margin=0.005)),
    ),
    Claim(
        "above-kshcut",
        "ILHt is significantly better than KSHcut",
        "section 4, figure 1",
        "Linear functions, standard N, every b: mean over seeds above KSHcut's by at least .01 (partly: above).",
        at_every_b(partial(_ilht_above, others=("KSHcut",), margin=0.01)),
    ),
    Claim(
        "at-least-combined",
        "ILHt is equal to or even better than the combination ILHitf",
        "section 4, figure 1",
        "Linear functions, standard N, every b: mean over seeds at most .005 below ILHitf's.",
        at_every_b(partial(_ilht_above, others=("ILHitf",), margin=-0.005)),
    ),
    Claim(
        "saturates",
        "The precision of all methods saturates as N increases",
        "section 4, figure 1",
        "Largest b, linear, mean over seeds: the last step of N gains less per doubling than the first, for "
        "every method.",
        _saturates,
    ),
    Claim(
        "nearly-maximal",
        "With 128 bits, ILHt is nearly maximal with only N = 5,000 points",
        "section 4, figure 1",
        "Largest b of the figure: standard N reaches 97 % of the best over all N (partly: 93 %).",
        _nearly_maximal,
    ),
    Claim(
        "diversity-goes",
        "With N growing to all data, diversity disappears and precision drops to that of a single bit",
        "section 4",
        "2 seeds: ILHt with all points in every bit below half of its best, and bits that differ in nothing within .03 "
        "of one bit; partly if one of the two.",
        _diversity_goes,
    ),
    Claim(
        "one-bit",
        "A single bit has about 12 % precision on CIFAR",
        "section 4",
        "Mean of the first 16 bits alone, over seeds, between .11 and .14.",
        _one_bit,
    ),
    Claim(
        "linear-gain",
        "Linear SVMs, though stable classifiers, strongly benefit from the ensemble",
        "section 4",
        "ILHt with the most bits of the figure more than twice the precision of one bit (partly: 1.3 times).",
        _many_bits_help,
    ),
    Claim(
        "kernel-above-linear",
        "Kernel functions achieve higher precision than linear ones",
        "section 4, figure 1",
        "ILHt, standard N, every b: kernel with common centres above linear by at least .01 (partly: above).",
        at_every_b(partial(_function_above, high=("kernel", COMMON), low=("linear", "linear"), margin=0.01)),
    ),
    Claim(
        "private-above-common",
        "Particularly with private centres",
        "section 4, figure 1",
        "ILHt, standard N, every b: private above common centres by at least .005 (partly: above).",
        at_every_b(partial(_function_above, high=("private", PRIVATE), low=("common", COMMON), margin=0.005)),
    ),
    Claim(
        "kernels-gain-little-more",
        "Kernel functions do not benefit much more from diversity than linear ones",
        "section 4, figure 1",
        "Seed 0, standard N, every b: ILHt's lead over ILHi at most .02 larger with kernels than without.",
        _kernels_gain_little_more,
    ),
    Claim(
        "half-of-the-features",
        "ILHf is best with about half of the features",
        "section 4, figure 2",
        "Largest b, both datasets, mean over seeds: the best d/D between .25 and .75 (partly: one half within .01 of "
        "the best).",
        on_both(partial(_best_fraction, name="ILHf", wanted=0.5, low=0.25, margin=0.01)),
    ),
    Claim(
        "all-features",
        "ILHitf is best with all features",
        "section 4, figure 2",
        "Largest b, both datasets, mean over seeds: the best d/D at least .9 (partly: all features within .005 of the "
        "best).",
        on_both(partial(_best_fraction, name="ILHitf", wanted=1.0, low=0.9, margin=0.005)),
    ),
    Claim(
        "low-d-like-lsh",
        "For low d the precision is comparable to LSH's",
        "section 4, figure 2",
        "Every b: ILHf at the smallest d/D within .05 of LSH (partly: nearer to LSH than to its own best).",
        _low_d_like_lsh,
    ),
    Claim(
        "all-d-like-ilhi",
        "ILHf with d = D is like ILHi, thanks to the random order of the blocks",
        "section 4, figure 2",
        "Every b: within .02 of ILHi (partly: .04).",
        _all_d_like_ilhi,
    ),
    Claim(
        "query-time",
        "With d of D features a query takes d/D of the time",
        "section 3",
        "Encoding a batch: at most .35 of the time at d/D = .25 and .6 at .5 (partly: .8 at .25).",
        _query_time,
    ),
    Claim(
        "random-blocks",
        "A random order of the blocks improves over a fixed one",
        "section 3",
        "ILHt, ILHi and ILHf, largest b, mean over seeds: random above fixed by at least .002 each (partly: above).",
        _random_blocks,
    ),
    Claim(
        "disjoint-best",
        "Disjoint training sets, closely followed by random ones, are better than bootstrap",
        "section 4, figure 2",
        "Infinite digits, the two largest b that disjoint sets allow, mean over seeds: disjoint at most .001 below "
        "random, random above bootstrap by at least .001.",
        _disjoint_best,
    ),
    Claim(
        "cifar-numbers",
        "The level of the curves on CIFAR",
        "a level set beforehand",
        "Seed 0, N = 5,000: linear ILHt at least .42 at 64 bits and .45 at 128, above ILHi by .03 at 64; kernel with "
        "private centres at least .52 at 64.",
        _cifar_numbers,
    ),
)
