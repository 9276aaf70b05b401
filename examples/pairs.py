"""Learning from pairs alone: what a click log or a team of annotators gives."""

import numpy as np

import ilhash

data = ilhash.datasets.load("digits")
rng = np.random.default_rng(0)
pairs = rng.integers(0, len(data.X), (60_000, 2))
pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
weights = np.where(data.y[pairs[:, 0]] == data.y[pairs[:, 1]], 1.0, -0.2)  # agreeing is rarer and means more

model = ilhash.ILH(n_bits=64, hash_function="kernel").fit(data.X, pairs=(pairs, weights))
codes = model.transform(data.X)
print(ilhash.evaluation.precision_at_k(codes[400:], data.y[400:], codes[:400], data.y[:400], k=50))
