"""Saving a model under kills, interrupts, full disks and company: what is there is one of the models, whole.

And whatever happened, the same save again works, and leaves nothing but the model.
"""

import errno
import itertools
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
from tests.search.killed_writer import failure_of
from tests.search.test_store_crash import mounted
from tests.storage.interrupts import interrupted_at
from tests.storage.savers import models, names, of_this_model, save_again, which

from ilhash.storage import DamagedFileError, StoreLockedError, WriterLock, _model_directory

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, fork and mounts of POSIX")


def saver(*arguments):
    return [sys.executable, "-m", "tests.storage.savers", *map(str, arguments)]


def finish(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@contextmanager
def started(*commands):
    """Give processes that said that they are ready, and kill them in the end."""
    with ExitStack() as stack:
        begun = [
            stack.enter_context(subprocess.Popen(saver(*command), cwd=ROOT, text=True, stdin=PIPE, stdout=PIPE))
            for command in commands
        ]
        try:
            for process in begun:
                assert process.stdout.readline().startswith("ready")
            yield begun
        finally:
            for process in begun:
                process.kill()


@pytest.fixture(scope="module")
def pair():
    return models()


@pytest.fixture
def target():
    """A directory in memory where that is possible: these questions do not depend on the medium."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder) / "model"


# ---------------------------------------------------------------------------------------------- failing calls


def fails_at(monkeypatch, function, call, number):
    """Let the call with that number of a function of ``os`` fail; return a list that is filled when it did."""
    original, counter, failed = getattr(os, function), itertools.count(), []

    def failing(*arguments, **named):
        if next(counter) != call:
            return original(*arguments, **named)
        failed.append(call)
        if function == "close":
            original(*arguments)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, function, failing)
    return failed


@pytest.mark.parametrize("before", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "error"])
@pytest.mark.parametrize("function", ["open", "write", "fsync", "replace", "unlink", "close", "mkdir"])
def test_a_failure_at_every_call_can_be_repeated(pair, target, monkeypatch, function, number, before):
    for call in itertools.count():
        shutil.rmtree(target, ignore_errors=True)
        if before:
            pair[0].save(target)
        with monkeypatch.context() as patched:
            failed = fails_at(patched, function, call, number)
            failure = failure_of(lambda: pair[1].save(target))
        assert failure is None or (failure.errno == number and failed)
        if target.exists():
            assert which(target) in ((0, 1) if before else (None, 1))
            assert of_this_model(target)
        save_again(pair[1], 1, target)
        if not failed:
            break
    assert call > 0 or (function, before) in (("mkdir", True), ("unlink", False)), "a save makes such calls"


def test_a_full_disk(tmp_path):
    if shutil.which("unshare") is None:
        pytest.skip("mounting needs unshare, which is not here")
    mount = f"mount -t tmpfs -o size=1m none '{tmp_path}'"
    tried = subprocess.run(mounted(mount, ["true"]), capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"mounting is not allowed here: {tried.stderr.strip()}")
    (failures,) = finish(mounted(mount, saver("starve", tmp_path)))
    assert int(failures) >= 4  # in the arrays and in the description, of the first and of a later save


# ---------------------------------------------------------------------------------------------- kill -9


def test_death_at_every_call(target):
    old, new = map(int, finish(saver("die_everywhere", target)))
    assert old > 30  # before the description was replaced
    assert new > 10


def killed_at_random(pair, target, times):
    rng, found = np.random.default_rng(0), []
    command = saver("in_turns_again_and_again", target)
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=PIPE, stdout=PIPE) as parent:
        for turn in range(times):
            parent.stdin.write("fresh\n" if turn % 3 == 0 else "on\n")
            parent.stdin.flush()
            child = int(parent.stdout.readline())
            time.sleep(rng.uniform(0.0, 0.02))
            os.kill(child, signal.SIGKILL)
            assert parent.stdout.readline() == "killed\n"
            found.append(which(target) if target.exists() else None)
            assert of_this_model(target)
            if turn % 5 == 0:
                save_again(pair[turn % 2], turn % 2, target)
    return found


def test_kill_at_random_instants(pair, target):
    assert {0, 1} <= set(killed_at_random(pair, target, 30))


@pytest.mark.slow
def test_kill_at_three_hundred_random_instants(pair, target):
    assert {0, 1} <= set(killed_at_random(pair, target, 300))


# ---------------------------------------------------------------------------------------------- interrupts


# A file that was opened in the very line is closed when it is collected, with a ResourceWarning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("before", [False, True], ids=["first", "later"])
def test_an_interrupt_at_every_line(pair, target, before):
    for line in itertools.count():
        shutil.rmtree(target, ignore_errors=True)
        if before:
            pair[0].save(target)

        def then():
            if target.exists():
                assert which(target) in ((0, 1) if before else (None, 1))
                assert of_this_model(target)
            save_again(pair[1], 1, target)

        if not interrupted_at(line, lambda: pair[1].save(target), then):
            break
    assert line > 300


def interrupted_for_real(target, times):
    rng = np.random.default_rng(1)
    # not select(), which fails where libraries of other tests hold more than 1,023 files
    with started(("interrupted", target, times)) as (process,), selectors.DefaultSelector() as said:
        said.register(process.stdout, selectors.EVENT_READ)
        for turn in range(times):
            time.sleep(rng.uniform(0.0, 0.02))
            process.send_signal(signal.SIGINT)
            while not said.select(5.0):
                process.send_signal(signal.SIGINT)  # Python swallows one that comes while an object is deleted
            assert process.stdout.readline().split() == [str(turn + 1)]
        assert process.wait() == 0
    assert which(target) in (0, 1)


def test_real_interrupts(target):
    interrupted_for_real(target, 20)


@pytest.mark.slow
def test_three_hundred_real_interrupts(target):
    interrupted_for_real(target, 300)


# ---------------------------------------------------------------------------------------------- company


def loads_beside(pair, target, seconds, *firsts):
    """Load what others save in turns; return how often it was which of the two models."""
    pair[0].save(target)
    with started(*(("in_turns", target, first) for first in firsts)) as savers:
        end, seen = time.monotonic() + seconds, [0, 0]
        while time.monotonic() < end:
            seen[which(target)] += 1
        assert [process.poll() for process in savers] == [None] * len(savers)  # none failed
    save_again(pair[0], 0, target)
    return seen


def test_loading_beside_a_saver(pair, target):
    seen = loads_beside(pair, target, 2, 0)
    assert min(seen) > 10, seen


def test_loading_beside_two_savers(pair, target):
    seen = loads_beside(pair, target, 2, 0, 1)
    assert min(seen) > 10, seen


@pytest.mark.slow
@pytest.mark.parametrize("firsts", [(0,), (0, 1)], ids=["one", "two"])
def test_thousands_of_loads_beside_savers(pair, target, firsts):
    seen = loads_beside(pair, target, 60, *firsts)
    assert sum(seen) > 2000, seen


def test_a_saver_that_waits_in_vain_says_so(pair, target, monkeypatch):
    pair[0].save(target)
    monkeypatch.setattr(_model_directory, "WAIT", 0.1)
    lock = WriterLock(target / ".writing-lock")
    with pytest.raises(
        StoreLockedError, match=r"must be saved by one at a time, got another .* in 0\.1 s: .*this proc"
    ):
        pair[1].save(target)
    assert which(target) == 0
    lock.release()
    save_again(pair[1], 1, target)


# ---------------------------------------------------------------------------------------------- leftovers


def test_only_our_own_leftovers_are_removed(pair, target):
    pair[0].save(target)
    ours = [".writing-0123456789abcdef", "arrays-0123456789abcdef.safetensors", "classifier-3-0123456789abcdef.skops"]
    theirs = ["arrays-mine.safetensors", "arrays-0123456789abcdef.safetensors.bak", "classifier-notes.txt", "README"]
    for name in (*ours, *theirs):
        (target / name).write_text("x")
    (target / "arrays-0123456789abcdee.safetensors").mkdir()  # not a file that we wrote
    pair[1].save(target)
    assert which(target) == 1
    left = [name for name in names(target) if name != "config.json"]
    assert set(theirs) <= set(left)
    assert not set(ours) & set(left)
    assert len(left) == len(theirs) + 3  # with a card


@pytest.mark.parametrize("name", ["notes.txt", "arrays-mine.safetensors", "lock"])
def test_a_folder_with_a_leftover_and_something_else_is_left_alone(pair, target, name):
    target.mkdir()
    for file in (".writing-0123456789abcdef", "arrays-0123456789abcdef.safetensors", name):
        (target / file).write_text("x")
    before = names(target)
    with pytest.raises(ValueError, match="other files"):
        pair[0].save(target)
    assert names(target) == before


def test_a_lock_that_leads_elsewhere_is_not_followed(pair, target, tmp_path):
    pair[0].save(target)
    (tmp_path / "precious").write_text("precious")
    (target / ".writing-lock").symlink_to(tmp_path / "precious")
    with pytest.raises(DamagedFileError, match="symbolic link"):
        pair[1].save(target)
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_lock_that_ctrl_c_left_unmade_goes_without_a_word():
    """Interrupted before its first line: it holds nothing, and there is nothing to complain of."""
    lock = WriterLock.__new__(WriterLock)
    assert not lock.held
    lock.release()
    del lock  # an exception here would be an error of this test
