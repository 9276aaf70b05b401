"""Evaluation at every k from histograms, against faiss's 10,000 nearest and NumPy; one thread each.

python benchmarks/evaluation.py

2,000 queries, 1,000,000 codes of 128 bits in 10 classes. The peer finds the 10,000 nearest of each query by the faster
mode of faiss's IndexBinaryFlat and counts labels with NumPy, which gives precision and recall for k up to 10,000 under
whatever order faiss gives to ties. Ours gives them for every k up to 1,000,000, aware of ties, with mAP and bounds.
"""

from __future__ import annotations

import time

import faiss
import numpy as np

import ilhash
from ilhash import evaluation

N_BASE, N_QUERIES, N_BITS, N_CLASSES, K = 1_000_000, 2_000, 128, 10, 10_000
ROUNDS = 3


def labelled_codes(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy copies of one code per class: each bit is flipped with probability .25."""
    centres = np.random.default_rng(7).integers(0, 256, (N_CLASSES, N_BITS // 8), np.uint8)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, N_CLASSES, n)
    noise = rng.integers(0, 256, (n, N_BITS // 8), np.uint8) & rng.integers(0, 256, (n, N_BITS // 8), np.uint8)
    return centres[labels] ^ noise, labels


def ours(base, base_labels, queries, query_labels):
    found = evaluation.distance_histograms(base, queries, evaluation.by_label(base_labels, query_labels), n_bits=N_BITS)
    return found.curves("expected")


def with_faiss(base, base_labels, queries, query_labels, use_heap):
    index = faiss.IndexBinaryFlat(N_BITS)
    index.add(base)
    index.use_heap = use_heap
    _, rows = index.search(queries, K)
    hits = np.cumsum(base_labels[rows] == query_labels[:, None], axis=1)
    relevant = np.bincount(base_labels, minlength=N_CLASSES)[query_labels]
    return hits.mean(axis=0) / np.arange(1, K + 1), (hits / relevant[:, None]).mean(axis=0)


def main() -> None:
    faiss.omp_set_num_threads(1)
    print(f"faiss {faiss.__version__}, ilhash core {ilhash.core_simd()}; seconds")
    arrays = (*labelled_codes(0, N_BASE), *labelled_codes(1, N_QUERIES))
    calls = {
        "ours": lambda: ours(*arrays),
        "faiss counting": lambda: with_faiss(*arrays, False),
        "faiss heaps": lambda: with_faiss(*arrays, True),
    }
    times: dict = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin = time.perf_counter()
            answer = call()
            times[name].append(time.perf_counter() - begin)
            if name == "ours":
                mine = answer
            elif not np.allclose(answer[0][[99, K - 1]], mine.precision[[99, K - 1]], atol=0.02):
                raise AssertionError("precision differs from faiss by more than ties explain")
    medians = {name: float(np.median(t)) for name, t in times.items()}
    best = min(medians["faiss counting"], medians["faiss heaps"])
    print("  ".join(f"{name} {seconds:.2f}" for name, seconds in medians.items()))
    print(f"ratio {best / medians['ours']:.2f}x; precision@10,000 {mine.precision[K - 1]:.4f}")


if __name__ == "__main__":
    main()
