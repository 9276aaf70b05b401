"""Retrieval quality on MNIST: 68,000 base points, 2,000 queries, N = 5,000, linear, tie-aware precision@500.

python benchmarks/quality.py
"""

from __future__ import annotations

import numpy as np

from ilhash import ILH, datasets
from ilhash.experiments.engine.problems import Problem
from ilhash.experiments.engine.tasks import single_bits

SEED = 0
BITS = (32, 64, 128)


def main() -> None:
    try:
        mnist = datasets.load("mnist")
    except FileNotFoundError as missing:
        print(f"skipped: {missing}")
        return
    order = np.random.default_rng(SEED).permutation(len(mnist.X))
    queries, base = ((mnist.X[rows], mnist.y[rows]) for rows in (order[:2_000], order[2_000:]))
    problem = Problem.labeled(base, queries, ks=[500], k=500)
    print(f"MNIST pixels, linear, N = 5,000, seed {SEED}; precision@500")
    scores = {}
    for name, letters in (("ILHt", "t"), ("ILHi", "i")):
        model = ILH(n_bits=BITS[-1], diversity=letters, n_train=5_000, random_state=SEED).fit(problem.X, problem.y)
        codes = model.transform(problem.X), model.transform(problem.queries)
        scores[name] = dict(zip(BITS, problem.measure(*codes, BITS).precision[:, 0], strict=True))
        print(f"{name}: " + "  ".join(f"{bits} bits {score:.3f}" for bits, score in scores[name].items()))
        if name == "ILHt":
            singles = single_bits(problem, *codes, 16)
            print(f"      mean of the first 16 single bits {singles.mean():.3f} (wanted .14 to .18)")
    gap = scores["ILHt"][64] - scores["ILHi"][64]
    print(f"64 bits: ILHt {scores['ILHt'][64]:.3f} (wanted .82), above ILHi by {gap:.3f} (wanted .01)")


if __name__ == "__main__":
    main()
