"""Time to train one ILHt bit, row gathering to classifier, against what one could assemble from well-known parts.

The peer is vectorised SciPy affinity + the faster of PyMaxflow and SciPy max-flow + scikit-learn's LinearSVC at the
same C (ilhash.experiments.engine.peers). One thread each, in turns, ratio of medians. Ours includes a 64th of what the
bits of a model share (the SVM's preconditioner). Wall clock, or with --cpu processor time, which a busy machine
stretches less.

    python benchmarks/train.py [--cpu]    # 320-d features, N = 2,000 to 20,000, and MNIST pixels at N = 5,000
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from features import standardised_320
from ilhash import ILH, core_simd, datasets
from ilhash.ensemble._bit import BitTrainer
from ilhash.experiments.engine.peers import train_bit
from ilhash.functions._learner import Learner
from ilhash.functions._svm import fit_squared_hinge_float64, squared_hinge_objective
from ilhash.vectors import gather

C = 0.01
TARGETS = {2_000: 20, 5_000: 30, 10_000: 28, 20_000: 28}
BITS = 64  # that share what is computed once per model: it counts a 64th for each


def trainer_for(X: np.ndarray, y: np.ndarray, n_train: int) -> tuple[BitTrainer, Callable[[], object]]:
    """Return what trains any bit of a model, without training the model, and what computes what bits share."""
    model = ILH(n_bits=1, n_train=n_train, C=C).fit(X, y)
    supervision = model._supervision(X, y, affinity=None, pairs=None)
    plan = model._plan(X, supervision, model._rule(supervision))

    def shared() -> list[Learner]:
        return model._learners(X, supervision, n_train)

    return BitTrainer(X, model.origin_, supervision, plan, "laplacian", shared(), 1000), shared


def measure(X: np.ndarray, y: np.ndarray, n_train: int, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Train the same training sets with ours and both peers, a few bits of each in turn; medians in milliseconds.

    Each trains its bits of a round one after the other, as in a real fit; rounds alternate, so that a change of the
    machine's speed meets all of them.
    """
    trainer, shared = trainer_for(X, y, n_train)
    times: dict[str, list[float]] = {name: [] for name in ("ilhash", "scipy", "pymaxflow", "ms shared")}
    stages: dict[str, list[float]] = {}
    for first in range(0, 3 * rounds, 3):
        for name, samples in times.items():
            for bit in range(first, first + 3):
                rows = trainer.plan.draw(bit).rows
                begin = clock()
                if name == "ilhash":
                    for stage, seconds in trainer(bit).report.seconds.items():
                        stages.setdefault(stage, []).append(seconds)
                elif name == "ms shared":
                    shared()
                else:
                    train_bit(X, y, rows, C=C, seed=bit, flow=name)
                samples.append(clock() - begin)
    out = {name: 1e3 * float(np.median(values)) for name, values in times.items()}
    out["ms shared"] /= BITS
    out["ilhash"] += out["ms shared"]
    return out | {f"ms {stage}": 1e3 * float(np.median(values)) for stage, values in stages.items()}


def objective_gap(X: np.ndarray, y: np.ndarray, n_train: int) -> float:
    """Largest relative distance of our SVM's objective from the optimum, over three bits."""
    gaps = []
    trainer, _ = trainer_for(X, y, n_train)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(len(X))[:n_train])
        rows = gather(X, chosen, trainer.origin)
        values = rows.values.astype(np.float64)
        scaled = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)
        design = np.hstack([scaled, np.ones((n_train, 1))]).astype(np.float32)
        z = np.where(np.isin(y[chosen], rng.permutation(np.unique(y))[:5]), np.int8(1), np.int8(-1))
        function = trainer.learners[0].fit(rows, z, None, seed).function
        ours = np.append(function.weights * values.std(axis=0), function.bias + function.weights @ values.mean(axis=0))
        signs = z.astype(np.float32)
        best = squared_hinge_objective(design, signs, fit_squared_hinge_float64(design, signs, C), C)
        gaps.append(squared_hinge_objective(design, signs, ours.astype(np.float32), C) / best - 1.0)
    return max(gaps)


def report_row(n_train: int, result: dict[str, float], target: float, gap: float) -> None:
    peer = min(result["scipy"], result["pymaxflow"])
    stages = "  ".join(f"{name[3:]} {value:.1f}" for name, value in result.items() if name.startswith("ms "))
    print(
        f"{n_train:>7,} {result['ilhash']:>8.1f} {result['scipy']:>8.0f} {result['pymaxflow']:>10.0f} "
        f"{peer / result['ilhash']:>7.1f}x {target:>6}x   {stages}   gap {gap:.0e}",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cpu", action="store_true", help="processor time")
    asked = options.parse_args()
    clock = time.process_time if asked.cpu else time.perf_counter
    warnings.simplefilter("ignore")
    kind = "processor time" if asked.cpu else "wall clock"
    print(f"one ILHt bit, C = {C}, one thread, core {core_simd()}; milliseconds of {kind}, medians")
    header = f"{'N':>7} {'ilhash':>8} {'scipy':>8} {'pymaxflow':>10} {'ratio':>8} {'wanted':>7}   ours by stage"
    with threadpool_limits(1):
        X, y, origin = standardised_320()
        print(f"\n320-d features: {origin}\n{header}")
        totals = {}
        for n_train, target in TARGETS.items():
            result = measure(X, y, n_train, max(3, 12_000 // n_train), clock)
            totals[n_train] = result["ilhash"]
            report_row(n_train, result, target, objective_gap(X, y, n_train))
        sizes = np.log(list(totals))
        slope = np.polyfit(sizes, np.log(list(totals.values())), 1)[0]
        print(f"cost grows as N^{slope:.2f}")
        try:
            mnist = datasets.load("mnist")
        except FileNotFoundError as missing:
            print(f"MNIST skipped: {missing}")
            return
        pixels = mnist.X.astype(np.float32)
        deviation = pixels.std(axis=0)
        pixels = (pixels - pixels.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
        print(f"\nMNIST pixels (784-d, standardised)\n{header}")
        report_row(5_000, measure(pixels, mnist.y, 5_000, 2, clock), 20, objective_gap(pixels, mnist.y, 5_000))


if __name__ == "__main__":
    main()
