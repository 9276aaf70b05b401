"""Precision at equal bytes, base items new and seen: quantisers of faiss, ITQ, CCAITQ, sign bits, floats, ILH.

python benchmarks/bytes.py [--data mnist fashion-mnist cifar10-gist] [--bytes 4 8 16 32] [--seeds 0] [--only ILH PQ ...]

1,000 queries; of the other points one half is never trained on. The new base is that half, the seen base as many points
that may be trained on. Tie-aware precision, one thread; microseconds to encode a vector. PQ (also on principal
components, 4 a byte), OPQ, RaBitQ, floats and ILH by asymmetric search keep the query as floats. Every model as it is
by default, CCAITQ with all points; RaBitQ with its 8 bytes of factors counted. Other scripts take `bases_of`, `measure`
and `print_table` from here.
"""

from __future__ import annotations

import argparse
import sys
import time

from ilhash import datasets
from ilhash.evaluation import Protocol
from ilhash.experiments.equal_bytes import KS, Bases, floats_row, losses, rows_at

DATA = ("mnist", "fashion-mnist", "cifar10-gist")
BYTES = (4, 8, 16, 32)
ROWS = ("ILH", "ITQ", "CCAITQ", "Sign", "PQ", "PCA-PQ", "OPQ", "RaBitQ")
N_QUERIES = 1_000


def bases_of(name, seed, n_queries=N_QUERIES, ks=KS):
    """Return training points, queries and both bases of a dataset, and the hash of the protocol of new items."""
    data = datasets.load(name)
    protocol = Protocol(n_queries=n_queries, k=ks, seed=seed, base="new")
    return Bases.of(data.X, data.y, protocol), protocol.hash


def measure(bases, n_bytes, seed, only=ROWS, ks=KS):
    """Return rows at several numbers of bytes, and that of the floats."""
    rows = [floats_row(bases, ks)]
    for size in n_bytes:
        rows += rows_at(bases, size, ks, seed=seed, only=only)
    return rows


def print_table(title, rows, ks=KS):
    print(f"\n{title}\n")
    heads = [f"{base} @{k}" for base in ("new", "seen") for k in ks]
    print(f"| bytes | method | float query | {' | '.join(heads)} | us/vector | training s |")
    print("|---" * (len(heads) + 5) + "|")
    for row in rows:
        if not row.new:
            print(f"| {row.n_bytes} | {row.name} | {row.note} |")
            continue
        scores = [f"{getattr(row, base)[k]:.3f}".removeprefix("0") for base in ("new", "seen") for k in ks]
        scores.insert(0, "yes" if row.float_query else "no")
        took = f"{row.encode_us:.1f} | {row.seconds:.1f}"
        print(f"| {row.own_bytes} | {row.name} | {' | '.join(scores)} | {took} |")
    for sentence in losses(rows):
        print(f"- {sentence}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--bytes", type=int, nargs="+", default=BYTES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="+", default=ROWS)
    wanted = parser.parse_args()
    for name in wanted.data:
        for seed in wanted.seeds:
            begin = time.perf_counter()
            bases, protocol = bases_of(name, seed)
            rows = measure(bases, wanted.bytes, seed, wanted.only)
            sizes = f"{len(bases.train[0]):,} points to learn from, {len(bases.new[0]):,} in each base"
            title = f"## {name}, seed {seed}: {sizes}, {N_QUERIES:,} queries, protocol {protocol}"
            print_table(f"{title}, {time.perf_counter() - begin:.0f} s in all", rows)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
