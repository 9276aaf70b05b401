"""Changes of an index that are interrupted, killed or fail anywhere: object and folder agree, the same call goes well.

Python looks for signals when a function begins, after each call and where a loop goes round. The first tests raise
KeyboardInterrupt at every such place of a change, in every function, those of the standard library too; then there are
real signals.
"""

import dis
import errno
import gc
import itertools
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
from tests.search.changing_index import content, content_of, make_again, states

from ilhash import HammingIndex
from ilhash.search import verify

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals and descriptors of POSIX"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # a file whose ``with`` was not reached is closed with it
]


@pytest.fixture
def memory():
    """A folder in memory where there is one: it is copied very often."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def only_what_is_new_is_collected():
    """Garbage is looked for thousands of times here: what other tests of this process left need not be searched."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def story(kind):
    """What an index holds before the first change of a kind that meets several segments, and after it."""
    return next((held, after) for i, name, held, after in states() if name == kind and i >= 20)


def written(folder, held):
    """Write an index of several segments, some of whose items are removed."""
    names = sorted(held)
    with HammingIndex.open(folder, n_bits=16) as index:
        for some in (names[: len(names) * 2 // 3], names[len(names) * 2 // 3 : -2], names[-2:]):
            index.add(np.array([held[name] for name in some], np.uint8), some)
        gone = [10_000, 10_001]
        index.add(np.zeros((2, 2), np.uint8), gone)
        index.remove(gone[:1])
        index.remove(gone[1:])
        assert content(index) == held


# ---------------------------------------------------------------------------------------------- every place


class Interrupt:
    """Raises KeyboardInterrupt at the n-th place where a signal could be handled, or counts the places."""

    LOOKS = ("CALL", "JUMP_BACKWARD", "JUMP_ABSOLUTE")  # beginnings of the names of instructions after which it can

    def __init__(self, place=None):
        self.place, self.count = place, 0

    def __enter__(self):
        gc.disable()  # it would collect at other places each time
        self.hook, sys.unraisablehook = sys.unraisablehook, lambda _: None  # interrupts within callbacks are nobody's
        sys.settrace(self.called)

    def __exit__(self, *error):
        sys.settrace(None)
        sys.unraisablehook = self.hook
        gc.enable()

    def look(self):
        self.count += 1
        if self.count - 1 == self.place:
            raise KeyboardInterrupt

    def called(self, frame, event, _):
        if frame.f_code is Interrupt.__exit__.__code__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code, last = frame.f_code.co_code, None

        def stepped(frame, event, _):
            nonlocal last
            if event == "exception":  # a call that raises has not returned
                last = None
            elif event == "opcode":
                after = last
                last = dis.opname[code[frame.f_lasti]]
                if after is not None and after.startswith(self.LOOKS):
                    self.look()
            return stepped

        self.look()
        return stepped


def descriptors(folder):
    """Count the descriptors of this process that lead into a folder; libraries of other tests drop theirs meanwhile."""
    gc.collect()
    held = Path("/proc/self/fd")
    return sum(_leads_into(one, folder) for one in held.iterdir()) if held.exists() else 0


def _leads_into(descriptor, folder):
    try:
        return os.readlink(descriptor).startswith(f"{folder}/")
    except FileNotFoundError:  # that of the listing itself
        return False


def is_free(mutex):
    """Whether another thread could take a lock."""
    taken = []
    thread = threading.Thread(target=lambda: taken.append(mutex.acquire(timeout=5) and mutex.release() is None))
    thread.start()
    thread.join()
    return taken == [True]


def interrupted_anywhere(memory, kind, stride, begin=0):
    """Interrupt a change at every stride-th place and make it again; return how many there were, and were done."""
    held, after = story(kind)
    written(memory / "origin", held)
    with HammingIndex.open(memory / "origin") as index:  # imports and caches of the library are not what is counted
        make_again(index, "compact", held, held)
    del index
    shutil.rmtree(memory / "origin")
    written(memory / "origin", held)
    tried, done, before = 0, 0, descriptors(memory)
    for place in itertools.count(begin, stride):
        shutil.copytree(memory / "origin", memory / "index")
        index = HammingIndex.open(memory / "index")
        interrupt = Interrupt(place)
        try:
            with interrupt:
                make_again(index, kind, held, after)
        except KeyboardInterrupt:
            pass
        over = interrupt.count <= place
        found = content(index)
        assert found == content_of(memory / "index") == (after if over else found), place
        assert found in (held, after), place
        assert is_free(index._mutex), place
        assert is_free(index._store._mutex), place
        make_again(index, kind, held, after)
        assert content(index) == content_of(memory / "index") == after, place
        assert len(index) == len(index.ids) == len(after), place
        index.close()
        with HammingIndex.open(memory / "index") as again:
            assert content(again) == after, place
            report = again.verify()
            assert report.ok, (place, report)
            assert not report.leftovers, (place, report)
        del index, again
        assert descriptors(memory) == before, place
        shutil.rmtree(memory / "index")
        if over:
            return tried, done
        tried, done = tried + 1, done + (found == after)
    return None


KINDS = ["add", "update", "remove", "compact"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_that_is_interrupted_at_some_places(memory, kind):
    tried, _ = interrupted_anywhere(memory, kind, 151, KINDS.index(kind))
    assert tried > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_that_is_interrupted_at_every_place(memory, kind):
    tried, done = interrupted_anywhere(memory, kind, 1)
    assert tried > 1000
    if kind != "compact":
        assert 0 < done < tried  # both before the commit and after it


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_in_memory_that_is_interrupted_anywhere(kind):
    held, after = story(kind)
    for place in itertools.count(0, 17):
        index = HammingIndex(np.array(list(held.values()), np.uint8), n_bits=16, ids=list(held))
        index.add(np.zeros((1, 2), np.uint8), [10_000])
        index.remove([10_000])
        interrupt = Interrupt(place)
        try:
            with interrupt:
                make_again(index, kind, held, after)
        except KeyboardInterrupt:
            pass
        assert content(index) in (held, after)
        assert is_free(index._mutex)
        make_again(index, kind, held, after)
        assert content(index) == after
        if interrupt.count <= place:
            assert place > 50 or kind == "compact"
            return


def saving_is_interrupted(memory, stride, begin=0):
    held, _ = story("add")
    index = HammingIndex(np.array(list(held.values()), np.uint8), n_bits=16, ids=list(held))
    index.save(memory / "first")
    before = descriptors(memory)
    for place in itertools.count(begin, stride):
        interrupt = Interrupt(place)
        try:
            with interrupt:
                index.save(memory / "saved")
        except KeyboardInterrupt:
            pass
        if not (memory / "saved").exists():
            index.save(memory / "saved")
        assert content_of(memory / "saved") == held
        assert verify(memory / "saved").ok
        assert [path.name for path in memory.iterdir() if path.name != "first"] == ["saved"], place
        assert descriptors(memory) == before, place
        HammingIndex.open(memory / "saved").close()  # the lock is free
        shutil.rmtree(memory / "saved")
        if interrupt.count <= place:
            return place


def creating_is_interrupted(memory, stride, begin=0):
    HammingIndex.open(memory / "first", n_bits=16).close()
    before = descriptors(memory)
    for place in itertools.count(begin, stride):
        interrupt = Interrupt(place)
        try:
            with interrupt:
                HammingIndex.open(memory / "made", n_bits=16).close()
        except KeyboardInterrupt:
            pass
        with HammingIndex.open(memory / "made", n_bits=16) as index:
            assert len(index) == 0
            assert index.verify().ok
        del index
        assert descriptors(memory) == before, place
        shutil.rmtree(memory / "made")
        if interrupt.count <= place:
            return place


def test_saving_and_creating_that_are_interrupted_at_some_places(memory):
    assert saving_is_interrupted(memory, 173) > 500
    shutil.rmtree(memory / "first")
    assert creating_is_interrupted(memory, 41) > 200


@pytest.mark.slow
def test_saving_and_creating_that_are_interrupted_at_every_place(memory):
    assert saving_is_interrupted(memory, 1) > 500
    shutil.rmtree(memory / "first")
    assert creating_is_interrupted(memory, 1) > 200


# ---------------------------------------------------------------------------------------------- real signals


def program(*arguments):
    return [sys.executable, "-m", "tests.search.changing_index", *map(str, arguments)]


def interrupted_for_real(memory, times):
    ended = subprocess.run(program("interrupted", memory / "index", times), cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    hit, done, changes = map(int, ended.stdout.split())
    assert hit >= times
    assert 0 < done < hit  # some had happened when they were interrupted, some had not
    return hit, done, changes


def test_what_is_interrupted_by_signals_is_done_once(memory):
    interrupted_for_real(memory, 60)


@pytest.mark.slow
def test_what_is_interrupted_by_thousands_of_signals_is_done_once(memory):
    interrupted_for_real(memory, 3000)


def killed_while_changing(memory, times):
    """Kill a process that changes an index as fast as it can; go on with the same index until it was killed enough."""
    rng, done, reached, series = random.Random(0), 0, [{}], states()
    with subprocess.Popen(
        program("run_again_and_again", memory / "i"), cwd=ROOT, text=True, stdin=PIPE, stdout=PIPE
    ) as p:
        for _ in range(times):
            p.stdin.write(f"{done}\n")
            p.stdin.flush()
            _, process = p.stdout.readline().split()
            said = [p.stdout.readline() for _ in range(rng.randrange(1, 4))]  # some changes, then any moment
            time.sleep(rng.random() * 0.02)
            os.kill(int(process), signal.SIGKILL)
            acknowledged = max(map(int, [*said, *iter(p.stdout.readline, "killed\n")]))
            while len(reached) <= acknowledged + 1:
                reached.append(next(series)[3])
            assert verify(memory / "i").ok
            held = content_of(memory / "i")
            assert held in (reached[acknowledged], reached[acknowledged + 1])
            done = acknowledged + (held != reached[acknowledged])
        p.stdin.close()
    assert done > times


def test_what_was_acknowledged_survives_kills(memory):
    killed_while_changing(memory, 25)


@pytest.mark.slow
def test_what_was_acknowledged_survives_hundreds_of_kills(memory):
    killed_while_changing(memory, 700)


# ---------------------------------------------------------------------------------------------- calls that fail


CALLS = {"open": os, "write": os, "fsync": os, "close": os, "replace": os, "unlink": os, "rename": os, "mkdir": os}
CALLS |= {"mmap": mmap}


class Failing:
    """Lets one call of a function fail, before or after it is done."""

    def __init__(self, monkeypatch, function, call, error, *, after):
        self.failed, counter, original = False, itertools.count(), getattr(CALLS[function], function)

        def failing(*arguments, **named):
            if next(counter) != call:
                return original(*arguments, **named)
            self.failed = True
            if after:
                original(*arguments, **named)
            raise OSError(error, os.strerror(error))

        monkeypatch.setattr(CALLS[function], function, failing)


def failing_everywhere(monkeypatch, function, errors, attempt, check):
    """Make an attempt again and again, each time another call of a function fails; return how often it was tried."""
    tried = 0
    for error, after in itertools.product(errors, (False, True)):
        for call in itertools.count():
            with monkeypatch.context() as patch:
                prepared = check(None)
                failing = Failing(patch, function, call, error, after=after)
                outcome = None
                try:
                    attempt(prepared)
                except OSError as caught:
                    outcome = caught
            check(prepared, outcome)
            if not failing.failed:
                break
            tried += 1
    return tried


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_whose_calls_fail_can_be_made_again(memory, monkeypatch, kind, function):
    held, after = story(kind)
    written(memory / "origin", held)

    def check(index, outcome=None):
        if index is None:
            shutil.rmtree(memory / "index", ignore_errors=True)
            shutil.copytree(memory / "origin", memory / "index")
            return HammingIndex.open(memory / "index")
        assert outcome is None or "\n" not in str(outcome)
        found = content(index)
        assert found == content_of(memory / "index")
        assert found in (held, after)
        make_again(index, kind, held, after)
        assert content(index) == content_of(memory / "index") == after
        index.close()
        with HammingIndex.open(memory / "index") as again:
            assert again.verify().ok
            assert not again.verify().leftovers
        return None

    tried = failing_everywhere(
        monkeypatch, function, (errno.ENOSPC, errno.EIO), lambda index: make_again(index, kind, held, after), check
    )
    assert tried or function in ("rename", "mkdir", "unlink", "mmap")


@pytest.mark.parametrize("function", CALLS)
def test_saving_and_creating_whose_calls_fail_can_be_done_again(memory, monkeypatch, function):
    held, _ = story("add")
    index = HammingIndex(np.array(list(held.values()), np.uint8), n_bits=16, ids=list(held))

    def saved(_, outcome=None):
        if _ is None:
            shutil.rmtree(memory / "saved", ignore_errors=True)
            return memory / "saved"
        if not (memory / "saved").exists():
            index.save(memory / "saved")
        assert content_of(memory / "saved") == held
        assert [path.name for path in memory.iterdir()] == ["saved"]
        return None

    def made(_, outcome=None):
        if _ is None:
            shutil.rmtree(memory / "made", ignore_errors=True)
            return memory / "made"
        with HammingIndex.open(memory / "made", n_bits=16) as again:
            assert len(again) == 0
            assert again.verify().ok
        return None

    errors = (errno.ENOSPC, errno.EIO)
    tried = failing_everywhere(monkeypatch, function, errors, index.save, saved)
    shutil.rmtree(memory / "saved")
    tried += failing_everywhere(
        monkeypatch, function, errors, lambda path: HammingIndex.open(path, n_bits=16).close(), made
    )
    assert tried or function in ("unlink", "mmap")
