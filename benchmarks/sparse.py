"""Texts as sparse vectors: TF-IDF of debian-packages, words and pairs of words, learnt without ever being made dense.

python benchmarks/sparse.py [--columns 50000 0] [--bits 64] [--seed 0]

Packages are divided: 1,000 queries, and halves of the rest. Models are trained on one half, with sections as labels;
precision@10 is measured among that half (seen) and among the other (new). Beside ILH on TF-IDF itself stand the same
vectors reduced by TruncatedSVD, sentence embeddings, and the cosine of either. Seconds are those of one core
(CPU time); memory is private memory at its peak beyond what was there before, X itself not counted.
"""

from __future__ import annotations

import argparse
import lzma
import os
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

import ilhash
from private_memory import Peak, private_megabytes

K = 10
QUERIES = 1_000
DIMENSIONS = 256  # of TruncatedSVD


def texts() -> list[str]:
    """Return the descriptions, in the order of the dataset."""
    file = Path(os.environ["ILHASH_DATA"]) / "debian-packages" / "packages.tsv.xz"
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n").partition("\t")[2] for line in lines]


class Measured:
    """CPU seconds and private memory of what is inside."""

    def __enter__(self) -> Measured:
        self._before, self._peak, self._begin = private_megabytes(), Peak(), time.process_time()
        self._peak.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._peak.__exit__(*failure)
        self.seconds = time.process_time() - self._begin
        self.megabytes = self._peak.megabytes - self._before


def cosine_precision(base, y_base, queries, y_queries) -> float:
    """Precision of the nearest by cosine of rows of unit length, a block of queries at a time."""
    found = []
    for first in range(0, len(y_queries), 100):
        block = queries[first : first + 100]
        near = base @ block.T
        near = near.toarray().T if scipy.sparse.issparse(near) else near.T
        nearest = np.argpartition(-near, K, axis=1)[:, :K]
        found.append(y_base[nearest] == y_queries[first : first + 100, None])
    return float(np.concatenate(found).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="+", default=[50_000, 0], help="most frequent columns; 0: all")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bits = options.bits
    warnings.simplefilter("ignore", ilhash.QualityWarning)
    data = ilhash.datasets.load("debian-packages")
    words, y = texts(), np.asarray(data.y)
    order = np.random.default_rng(options.seed).permutation(len(y))
    queries, rest = order[:QUERIES], order[QUERIES:]
    train, new = rest[: len(rest) // 2], rest[len(rest) // 2 :]

    def row(name: str, seen: float, unseen: float, fit: Measured | None = None, encode: Measured | None = None) -> None:
        cost = [f"{m.seconds:.1f} s | {m.megabytes:.0f} MB" if m else "- | -" for m in (fit, encode)]
        print(f"| {name} | {seen:.3f} | {unseen:.3f} | {' | '.join(cost)} |", flush=True)

    def learn(name: str, X, before: float = 0.0) -> None:
        with Measured() as fit:
            model = ilhash.ILH(bits, random_state=options.seed).fit(X[train], y[train], check=False)
        with Measured() as encode:
            codes = model.transform(X)
        fit.seconds += before
        values = [
            ilhash.evaluation.precision_at_k(codes[base], y[base], codes[queries], y[queries], k=[K], n_bits=bits)
            for base in (train, new)
        ]
        row(name, values[0][0], values[1][0], fit, encode)

    def cosine(name: str, X) -> None:
        row(name, *(cosine_precision(X[base], y[base], X[queries], y[queries]) for base in (train, new)))

    print("| | seen | new | fit | | encode all | |\n|---|---|---|---|---|---|---|")
    embedded = normalize(np.asarray(data.X, np.float32))
    cosine(f"sentence embeddings, {embedded.shape[1]} floats, cosine", embedded)
    learn(f"sentence embeddings + ILH, {bits} bits", embedded)
    for columns in options.columns:
        make = TfidfVectorizer(
            ngram_range=(1, 2), min_df=2, sublinear_tf=True, max_features=columns or None, dtype=np.float32
        )
        X = make.fit(words[i] for i in train).transform(words)
        about = f"TF-IDF of {X.shape[1]:,} columns, {X.nnz / X.shape[0]:.0f} numbers a row"
        cosine(f"{about}, cosine", X)
        learn(f"{about} + ILH, {bits} bits", X)
        with Measured() as reducing:
            reduced = TruncatedSVD(DIMENSIONS, random_state=0).fit(X[train]).transform(X).astype(np.float32)
        learn(f"TruncatedSVD of it to {DIMENSIONS} + ILH, {bits} bits", reduced, reducing.seconds)


if __name__ == "__main__":
    main()
