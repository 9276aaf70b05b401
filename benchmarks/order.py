"""Better order than Hamming alone: precision and bytes per item of four searches on MNIST.

python benchmarks/order.py

ILHt, linear, N = 5,000, seed 0; 60,000 base digits, 2,000 of the 10,000 test digits as queries. Hamming distances tie,
so their precision is the expected one over all orders of the ties; the other orders hardly tie and are counted as they
are. Rescoring orders the 1,000 items that are nearest in Hamming space.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ilhash import ILH, HammingIndex, codes, datasets
from ilhash.evaluation import precision_at_k
from ilhash.search import rescore

SEED = 0
BITS = (16, 32, 64, 128)
KS = (10, 100, 500)
N_BASE, N_QUERIES, SHORTLIST = 60_000, 2_000, 1_000


def counted(hits, base_labels, labels) -> np.ndarray:
    """Precision at every k of hits as they stand."""
    relevant = base_labels[hits.ids] == labels[:, None]
    return np.array([relevant[:, :k].mean() for k in KS])


def show(bits: int, order: str, precision, n_bytes: float) -> None:
    print(
        f"| {bits} | {order} | " + " | ".join(f"{value:.3f}" for value in precision) + f" | {n_bytes:.1f} |", flush=True
    )


def compare(bits: int, base, labels, base_margins, queries, query_labels, margins) -> None:
    base_codes, query_codes = codes.pack(base_margins > 0), codes.pack(margins > 0)
    index = HammingIndex(base_codes, n_bits=bits, margins=base_margins)
    size = index.bytes_per_item
    plain = size["codes"] + size["lists"] + size["ids"]
    hamming = precision_at_k(base_codes, labels, query_codes, query_labels, KS)
    show(bits, "Hamming", hamming, plain)
    asymmetric = index.search_asymmetric(margins, max(KS))
    show(bits, "asymmetric", counted(asymmetric, labels, query_labels), plain)
    by_margins = index.search_margins(margins, max(KS), shortlist=SHORTLIST)
    show(bits, "rescored by 8-bit margins", counted(by_margins, labels, query_labels), plain + size["margins"])
    by_vectors = rescore(index.search(query_codes, SHORTLIST), queries, base, k=max(KS))
    show(bits, "rescored by vectors", counted(by_vectors, labels, query_labels), plain + base[0].nbytes)


def main() -> None:
    try:
        mnist = datasets.load("mnist")
    except FileNotFoundError as missing:
        print(f"skipped: {missing}")
        return
    X, y = mnist.X, mnist.y
    rows = N_BASE + np.sort(np.random.default_rng(SEED).choice(len(X) - N_BASE, N_QUERIES, replace=False))
    model = ILH(n_bits=max(BITS), n_train=5_000, random_state=SEED, n_jobs=-1).fit(X[:N_BASE], y[:N_BASE])
    base_margins, margins = model.decision_function(X[:N_BASE]), model.decision_function(X[rows])
    print("bytes per item: code, posting list and id (8), and margins or vectors where they are kept\n")
    print("| bits | order | " + " | ".join(f"precision@{k}" for k in KS) + " | bytes per item |")
    print("|---|---|" + "---|" * (len(KS) + 1))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X[:N_BASE].astype(np.uint8))
        base = np.load(Path(folder) / "X.npy", mmap_mode="r")
        for bits in BITS:
            compare(
                bits,
                base,
                y[:N_BASE],
                base_margins[:, :bits],
                X[rows],
                y[rows],
                np.ascontiguousarray(margins[:, :bits]),
            )


if __name__ == "__main__":
    main()
