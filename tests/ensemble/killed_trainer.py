"""A trainer to be killed: for every checkpoint that comes in, a forked child trains with it; its number is printed.

python -m tests.ensemble.killed_trainer
"""

import os
import signal
import sys
import time

from ilhash import ILH, datasets

SETTINGS = {"n_bits": 60, "n_train": 800, "n_similar": 30}


def train(checkpoint=None, **how):
    data = datasets.load("digits")
    return ILH(**SETTINGS).fit(data.X, data.y, checkpoint=checkpoint, **how)


def kill_with_files(child, folder, pattern, n, rng):
    """Kill a process at a random moment after it wrote n files; how fast it gets there depends on the machine."""
    end = time.monotonic() + 60
    while len(list(folder.glob(pattern))) < n and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(rng.uniform(0.0, 0.01))
    os.kill(child, signal.SIGKILL)


def tell(number):
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def main():
    train()  # everything is imported and read before the first child begins
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            train(line.strip())
            os._exit(0)
        tell(child)
        tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
