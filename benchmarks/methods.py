"""All methods beside ILHt on MNIST pixels or oriented gradients of CIFAR-10: `ilhash compare` on benchmark features.

python benchmarks/methods.py [--data mnist|cifar10] [--bits 32 64] [--train 5000] [--only ITQ STH ...]

2,000 queries, seed 0, tie-aware precision@500 among items that training did not see, every method at the same
N and on one thread; x ILHt: in units of what linear ILHt takes.
"""

from __future__ import annotations

import argparse

from features import standardised_320
from ilhash import datasets
from ilhash.experiments import TABLES, Settings, compare


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--train", type=int, default=5_000, help="N of every method")
    parser.add_argument("--data", choices=["mnist", "cifar10"], default="mnist", help="cifar10: 320 oriented gradients")
    parser.add_argument("--only", nargs="*", help="names of rows")
    wanted = parser.parse_args()
    if wanted.data == "cifar10":
        X, y, title = standardised_320()
    else:
        mnist = datasets.load("mnist")
        X, y, title = mnist.X, mnist.y, "MNIST pixels"
    settings = Settings(bits=tuple(wanted.bits), n_train=wanted.train, on_all=False)
    found = compare(title, X, y, settings, tables=tuple(TABLES), only=wanted.only)
    print(f"{title}, N = {found.settings.n_train}, {found.n_base} new items, precision@{found.settings.k}")
    print(f"vectors themselves {found.euclidean_new:.3f}")
    for bits in wanted.bits:
        reference = next(row.seconds for row in found.best_first("linear", bits) if row.name == "ILHt")
        for table in TABLES:
            print(f"\n{table + ' functions':24}{'bits':>5}{'precision':>11}{'seconds':>9}{'x ILHt':>8}")
            for row in found.best_first(table, bits):
                if row.precision_new is None:
                    print(f"{row.name:24}{bits:5}  {row.note}")
                else:
                    times = f"{row.seconds:9.2f}{row.seconds / reference:8.2f}"
                    print(f"{row.name:24}{row.own_bits:5}{row.precision_new:11.3f}{times}")


if __name__ == "__main__":
    main()
