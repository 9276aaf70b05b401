"""An endless series of changes of an index: what change i does follows from i alone, so that any state can be checked.

As a program it is what the crash tests kill and interrupt: ``python -m tests.search.changing_index``
"""

import contextlib
import itertools
import os
import random
import signal
import sys
import tempfile
import time

import numpy as np

from ilhash import HammingIndex
from ilhash.search import verify


def change(i, held):
    """What change i does to an index that holds {id: code}: its name, and {id: code} after it."""
    rng = np.random.default_rng(i)
    kind = ("add", "remove", "add", "update", "compact")[i % 5]
    some = {10 * i + j: rng.integers(0, 4, 2).astype(np.uint8).tolist() for j in range(int(rng.integers(1, 8)))}
    if kind == "remove":
        dead = [name for name in sorted(held) if rng.random() < 0.2]
        return kind, {name: code for name, code in held.items() if name not in dead}
    if kind == "update":
        some = dict(zip(sorted(held)[:3], some.values(), strict=False))
    return kind, held if kind == "compact" else held | some


def make(index, kind, held, after):
    """Make a change of an index."""
    if kind == "compact":
        index.compact()
    elif kind == "remove":
        index.remove(sorted(set(held) - set(after)))
    else:
        new = {name: code for name, code in after.items() if held.get(name) != code or name not in held}
        if new:
            getattr(index, kind)(np.array(list(new.values()), np.uint8), list(new))


def make_again(index, kind, held, after):
    """Make a change that may have been made: it is, or it is refused because it was."""
    try:
        make(index, kind, held, after)
        return
    except ValueError as error:
        refusal = str(error)
    assert refusal.startswith({"add": "ids must be new", "remove": "ids must be in the index"}[kind]), refusal
    assert content(index) == after, "refused, but not done"


def states():
    """Yield (i, kind of change, what is held before it, what after it)."""
    held, i = {}, 0
    while True:
        kind, after = change(i, held)
        yield i, kind, held, after
        held, i = after, i + 1


def content(index):
    return {name: code.tolist() for name, code in index}


def content_of(folder):
    with HammingIndex.open(folder, writable=False) as reader:
        return content(reader)


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


# ---------------------------------------------------------------------------------------------- programs


def run(folder, first):
    """Change for ever from a number on, and acknowledge each change when it has returned."""
    index = HammingIndex.open(folder, n_bits=16)
    say("ready", os.getpid())
    for i, kind, held, after in states():
        if i >= first:
            make(index, kind, held, after)
            say(i + 1)


def run_again_and_again(folder):
    """For each number on standard input, start a process that changes from there on until it is killed."""
    with tempfile.TemporaryDirectory() as other, HammingIndex.open(other, n_bits=16) as index:
        for _, kind, held, after in itertools.islice(states(), 7):  # what is imported late is there before the forks
            make(index, kind, held, after)
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            run(folder, int(line))
        os.waitpid(process, 0)
        say("killed")


class Pest:
    """A process that sends this one SIGINT at random times; those that come while nothing is under way are nothing."""

    def __init__(self, seed):
        self.armed, self.hit = False, 0
        signal.signal(signal.SIGINT, self.handle)
        self.process = os.fork()
        if self.process == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            rng, parent = random.Random(seed), os.getppid()
            while os.getppid() == parent:
                time.sleep(rng.random() * 0.006)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(parent, signal.SIGINT)
            os._exit(0)

    def handle(self, *_):
        if self.armed:
            self.armed = False
            self.hit += 1
            raise KeyboardInterrupt

    def end(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def interrupted(folder, times, seed=0):
    """Be interrupted that often; after each, object and folder must agree, and the same change again must go well."""
    pest, wanted = Pest(int(seed)), int(times)
    index = HammingIndex.open(folder, n_bits=16)
    descriptors = len(os.listdir("/proc/self/fd"))
    done = doubled = 0
    for i, kind, held, after in states():
        while True:
            before = pest.hit
            try:
                pest.armed = True
                make_again(index, kind, held, after)
                pest.armed = False
                break
            except KeyboardInterrupt:
                pest.armed = False
            assert pest.hit == before + 1
            found = content(index)
            assert found == content_of(folder), (i, kind)
            assert found in (held, after), (i, kind)
            done += found == after
        found = content(index)
        doubled += len(found) != len(index)
        assert found == after == content_of(folder), (i, kind)
        if i % 40 == 39:  # the lock is given up and taken again, and nothing is left of what was interrupted
            index.close()
            assert verify(folder).ok
            index = HammingIndex.open(folder)
            assert not verify(folder).leftovers
        if i % 200 == 199:  # a new index: or the series would be about large ones
            now = len(os.listdir("/proc/self/fd"))
            assert now <= descriptors + 12, f"{now - descriptors} descriptors more"
        if pest.hit >= wanted:
            break
    pest.end()
    assert not doubled
    say(pest.hit, done, i + 1)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
