"""From vectors and labels to codes, and what the codes are worth."""

import numpy as np

import ilhash

data = ilhash.datasets.load("digits")
order = np.random.default_rng(0).permutation(len(data.X))
queries, base = order[:400], order[400:]

model = ilhash.ILH(n_bits=64, n_similar=30).fit(data.X[base], data.y[base])
base_codes, query_codes = model.transform(data.X[base]), model.transform(data.X[queries])
precision = ilhash.evaluation.precision_at_k(base_codes, data.y[base], query_codes, data.y[queries], k=[10, 100])
print(f"64 bits: precision@10 {precision[0]:.3f}, precision@100 {precision[1]:.3f}")

short = model[:16]
precision = ilhash.evaluation.precision_at_k(
    short.transform(data.X[base]), data.y[base], short.transform(data.X[queries]), data.y[queries], k=[10, 100]
)
print(f"first 16: precision@10 {precision[0]:.3f}, precision@100 {precision[1]:.3f}")
