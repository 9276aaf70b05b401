"""An encoder to be killed: for every directory that comes in, a forked child writes shards to it.

python -m tests.encoding.killed_encoder
"""

import os
import sys

import numpy as np

import ilhash

ROWS, ROWS_PER_SHARD = 40_000, 1_500


def vectors():
    return np.random.default_rng(0).normal(size=(ROWS, 64)).astype(np.float32)


def encode(folder, X, model):
    return ilhash.write_codes(model, X, folder, rows_per_shard=ROWS_PER_SHARD)


def make_model(X):
    return ilhash.methods.LSH(n_bits=200).fit(X)


def tell(number):
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def main():
    X = vectors()
    model = make_model(X)
    model.transform(X)  # everything is imported before the first child begins
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            encode(line.strip(), X, model)
            os._exit(0)
        tell(child)
        tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
