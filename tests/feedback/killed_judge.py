"""An endless series of adds to a log: what add i holds follows from i alone, so that any state can be checked.

As a program it is what the crash tests kill: ``python -m tests.feedback.killed_judge``
"""

import itertools
import os
import sys

import numpy as np

from ilhash.feedback import Feedback, Judgement


def added(i):
    """The judgements of add number i: one or many, with names that are long now and then."""
    rng = np.random.default_rng(i)
    n = int(rng.choice([1, 2, 30, 700]))
    letters = "é" * int(rng.integers(1, 200))
    return [
        Judgement(f"q{i}", f"i{j}{letters}", bool(rng.random() < 0.5), float(rng.uniform(0.1, 3)), "ann", 1e9 + i)
        for j in range(n)
    ]


def states():
    """Yield all judgements after 0, 1, 2, ... adds."""
    so_far = []
    for i in itertools.count():
        yield list(so_far)
        so_far += added(i)


def add_next(log, i):
    one = list(zip(*added(i), strict=True))
    log.add(list(one[0]), list(one[1]), np.array(one[2]), np.array(one[3]), list(one[4]), np.array(one[5]))


def n_added(log):
    """Return the number of whole adds, and make sure that nothing else is there."""
    found, i = list(log), 0
    while found:
        expected = added(i)
        assert found[: len(expected)] == expected
        found, i = found[len(expected) :], i + 1
    return i


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def run_again_and_again(folder):
    """For each line of standard input, start a process that adds until it is killed, and acknowledges each add."""
    for _ in sys.stdin:
        process = os.fork()
        if process == 0:
            with Feedback.open(folder) as log:
                i = n_added(log)
                say("ready", os.getpid())
                for number in itertools.count(i):
                    add_next(log, number)
                    say(number + 1)
        os.waitpid(process, 0)
        say("killed")


def hold(folder):
    """Have the log open for writing until standard input ends."""
    with Feedback.open(folder):
        say("ready")
        sys.stdin.read()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
