"""Processes that save two models to one directory in turns, to be killed, starved and interrupted.

python -m tests.storage.savers WHAT TARGET ...
"""

import itertools
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path

from tests.fuzz.models import SAMPLES
from tests.search.killed_writer import die_at, failure_of, fill, say

import ilhash

SOURCES = [next(SAMPLES.glob(f"*/models/{name}")) for name in ("ilh-linear", "fasthash")]
CALLS = ("open", "write", "fsync", "replace", "unlink", "close", "mkdir")  # of the operating system, in a save


def models():
    """Two models that can be told apart by their kind."""
    return [ilhash.load(source) for source in SOURCES]


def which(target):
    """Return the number of the model that a directory holds whole, or None where none was ever finished."""
    try:
        found = type(ilhash.load(target)).__name__
    except FileNotFoundError:
        return None
    return ["ILH", "FastHash"].index(found)


def names(target):
    return sorted(file.name for file in Path(target).iterdir())


def save_again(model, number, target):
    """Save once more, undisturbed: it must work whatever happened before, and leave nothing else."""
    model.save(target)
    assert which(target) == number
    assert len(names(target)) == 3, names(target)
    assert of_this_model(target)


def of_this_model(target):
    """Whether the card in a directory, if there is one, is that of the model there."""
    card = Path(target) / "README.md"
    return not card.exists() or ilhash.load(target).fingerprint() in card.read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------- programs


def in_turns(target, first=0):
    """Save two models in turns, for ever; say so after each."""
    pair = models()
    say("ready", os.getpid())
    for number in itertools.cycle([int(first), 1 - int(first)]):
        pair[number].save(target)


def in_turns_again_and_again(target):
    """For each line of standard input, start a process that saves until it is killed; the line may want it fresh."""
    pair = models()
    for line in sys.stdin:
        if line.strip() == "fresh":
            shutil.rmtree(target, ignore_errors=True)
        child = os.fork()
        if child == 0:
            for model in itertools.cycle(pair):
                model.save(target)
        say(child)
        os.waitpid(child, 0)
        say("killed")


def die_everywhere(target):
    """Die at every call of the operating system in a save, with and without a model there before."""
    pair, deaths = models(), {"old": 0, "new": 0}
    for function, before in itertools.product(CALLS, (False, True)):
        for when in ("before", "half", "after") if function == "write" else ("before", "after"):
            for call in itertools.count():
                shutil.rmtree(target, ignore_errors=True)
                if before:
                    pair[0].save(target)
                child = os.fork()
                if child == 0:
                    die_at(function, call, when)
                    pair[1].save(target)
                    os._exit(0)
                died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
                found = which(target) if Path(target).exists() else None
                assert of_this_model(target)
                assert found == 1 or (died and found == (0 if before else None)), (function, when, call, found)
                save_again(pair[0], 0, target)
                if not died:
                    break
                deaths["new" if found == 1 else "old"] += 1
    say(deaths["old"], deaths["new"])


def interrupted(target, turns):
    """Save in turns while somebody sends SIGINT; after each the same save again, undisturbed."""
    pair, count, number = models(), 0, 0
    while True:
        try:
            say(count or "ready")  # the next interrupt comes only now
            if count == int(turns):
                return
            for number in itertools.cycle((0, 1)):
                pair[number].save(target)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if Path(target).exists():
                assert which(target) in (None, number, 1 - number)
                assert of_this_model(target)
            save_again(pair[number], number, target)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            count += 1


def starve(target):
    """On a small file system: run out of room at every place of a save, the first and a later one."""
    pair, failures, place = models(), 0, Path(target)
    for before in (False, True):
        for room in itertools.count():
            shutil.rmtree(place / "model", ignore_errors=True)
            shutil.rmtree(place / "filler", ignore_errors=True)
            if before:
                pair[0].save(place / "model")
            fill(place, "pages", room)
            failure = failure_of(lambda: pair[1].save(place / "model"))
            if failure is None:
                break
            failures += 1
            assert not before or which(place / "model") == 0
            shutil.rmtree(place / "filler")
            save_again(pair[1], 1, place / "model")
    say(failures)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    globals()[sys.argv[1]](*sys.argv[2:])
