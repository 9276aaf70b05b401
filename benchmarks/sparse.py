"""Texts as sparse vectors: TF-IDF of debian-packages, words and pairs of words, learnt without ever being made dense.

python benchmarks/sparse.py [--columns 50000 0] [--bits 64] [--seed 0]

Packages are divided: 1,000 queries, and halves of the rest. Models are trained on one half, with sections as labels;
precision@10 is measured among that half (seen) and among the other (new). Beside ILH on TF-IDF itself stand the same
vectors reduced by TruncatedSVD, sentence embeddings, and the cosine of either. Every fit and every encoding has a
process of its own. Seconds are those of one core (CPU time); memory is private memory at its peak beyond what was there
before, X itself not counted. What TruncatedSVD takes is in both.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from subprocess import PIPE

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


# ------------------------------------------------------------------------------------------------ a process per figure


def fitted(X, y, train, given: argparse.Namespace) -> Measured:
    """Learn from half of the items and save what was learnt."""
    with Measured() as cost:
        own = X[train]
        if given.reduce:
            components = TruncatedSVD(DIMENSIONS, random_state=0).fit(own).components_.astype(np.float32)
            own = own @ components.T
        model = ilhash.ILH(given.bits, random_state=given.seed).fit(own, y[train], check=False)
    model.save(given.folder / "model")
    if given.reduce:
        np.save(given.folder / "components.npy", components)
    return cost


def encoded(X, given: argparse.Namespace) -> tuple[Measured, np.ndarray]:
    """Encode all items by what was saved."""
    model = ilhash.load(given.folder / "model")
    components = np.load(given.folder / "components.npy") if given.reduce else None
    with Measured() as cost:
        codes = model.transform(X if components is None else X @ components.T)
    return cost, codes


def step(given: argparse.Namespace) -> None:
    """Fit or encode in this process, which does nothing else, and print what it took and what it is worth."""
    warnings.simplefilter("ignore", ilhash.QualityWarning)
    file = given.folder / "X.npz"
    X = scipy.sparse.csr_array(scipy.sparse.load_npz(file)) if file.exists() else np.load(given.folder / "X.npy")
    y = np.load(given.folder / "y.npy")
    queries, train, new = parts(len(y), given.seed)
    found = {}
    if given.step == "fit":
        cost = fitted(X, y, train, given)
    else:
        cost, codes = encoded(X, given)
        for name, base in (("seen", train), ("new", new)):
            sides = codes[base], y[base], codes[queries], y[queries]
            found[name] = float(ilhash.evaluation.precision_at_k(*sides, k=K, n_bits=given.bits))
    print(json.dumps({"seconds": cost.seconds, "megabytes": cost.megabytes, **found}))


def parts(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of queries, of training and of new items."""
    order = np.random.default_rng(seed).permutation(n)
    queries, rest = order[:QUERIES], order[QUERIES:]
    return queries, rest[: len(rest) // 2], rest[len(rest) // 2 :]


def learn(name: str, X, y, given: argparse.Namespace, *more: str) -> None:
    """Fit and encode, each in a process of its own, which holds no memory of another."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "y.npy", y)
        if scipy.sparse.issparse(X):
            scipy.sparse.save_npz(Path(folder) / "X.npz", X, compressed=False)
        else:
            np.save(Path(folder) / "X.npy", X)
        own = ["--folder", folder, "--bits", str(given.bits), "--seed", str(given.seed), *more]
        told = [
            json.loads(subprocess.run([sys.executable, __file__, "--step", one, *own], check=True, stdout=PIPE).stdout)
            for one in ("fit", "encode")
        ]
    cost = " | ".join(f"{one['seconds']:.1f} s | {one['megabytes']:.0f} MB" for one in told)
    print(f"| {name} | {told[1]['seen']:.3f} | {told[1]['new']:.3f} | {cost} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="+", default=[50_000, 0], help="most frequent columns; 0: all")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--step", choices=("fit", "encode"), help="of a row, in this process, with --folder")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--reduce", action="store_true", help="by TruncatedSVD, with --step")
    given = parser.parse_args()
    if given.step:
        step(given)
        return
    data = ilhash.datasets.load("debian-packages")
    words, y = texts(), np.asarray(data.y)
    queries, train, new = parts(len(y), given.seed)

    def cosine(name: str, X) -> None:
        seen, unseen = (cosine_precision(X[base], y[base], X[queries], y[queries]) for base in (train, new))
        print(f"| {name} | {seen:.3f} | {unseen:.3f} | | | | |", flush=True)

    print("| | seen | new | fit | | encode all | |\n|---|---|---|---|---|---|---|")
    embedded = normalize(np.asarray(data.X, np.float32))
    cosine(f"sentence embeddings, {embedded.shape[1]} floats, cosine", embedded)
    learn("sentence embeddings + ILH", embedded, y, given)
    for columns in given.columns:
        make = TfidfVectorizer(
            ngram_range=(1, 2), min_df=2, sublinear_tf=True, max_features=columns or None, dtype=np.float32
        )
        X = make.fit(words[i] for i in train).transform(words)
        about = f"TF-IDF of {X.shape[1]:,} columns"
        cosine(f"{about}, {X.nnz / X.shape[0]:.0f} numbers a row, cosine", X)
        learn(f"{about} + ILH", X, y, given)
        learn(f"TruncatedSVD of it to {DIMENSIONS} + ILH", X, y, given, "--reduce")


if __name__ == "__main__":
    main()
