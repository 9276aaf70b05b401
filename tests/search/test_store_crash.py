"""Kill, power loss, full disks, failing calls and folders that cannot be written: done for real where that is possible.

What every test asks is the same: is each acknowledged commit there whole, and at most the one commit after it too?
"""

import contextlib
import errno
import itertools
import mmap
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
from tests.search.killed_writer import SETTINGS, commit_next, our_files, state_after, state_of, states, tell

from ilhash.search import DamagedStoreError, _store
from ilhash.search._store import Store
from ilhash.search._verify import verify_files as verify
from ilhash.storage import _durable as _files

ROOT = Path(__file__).parents[2]
SIZES = [5, 0, 300, 1]
LARGE = [1, 30_000, 0, 300, 5_000]  # up to some blocks of an array, and merged segments of more

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, fork and mounts of POSIX")


def writer(*arguments):
    return [sys.executable, "-m", "tests.search.killed_writer", *map(str, arguments)]


def finish(command):
    """Run a program to its end and return what it says."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def memory():
    """A folder in memory where there is one, for questions that do not depend on the medium."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)


# ---------------------------------------------------------------------------------------------- kill -9


def killed_while_committing(path, times):
    """Kill a process that commits as fast as it can; go on with the same store until it was killed often enough."""
    Store.create(path, SETTINGS).close()
    rng = np.random.default_rng(0)
    expected, reached = states(LARGE), []
    n_leftovers = 0
    command = writer("run_again_and_again", path, *LARGE)
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=PIPE, stdout=PIPE) as parent:
        for _ in range(times):
            said = killed_after(parent, rng.uniform(0.0, 0.15))
            acknowledged = max(said, default=max(0, len(reached) - 1))
            with Store.open(path, writable=False) as store:
                n, state, report = store.generation, state_of(store), store.verify()
            reached += itertools.islice(expected, max(0, n + 1 - len(reached)))
            assert report.ok, report
            assert acknowledged <= n <= acknowledged + 1
            assert state == reached[n]
            n_leftovers += len(report.leftovers)
    assert len(reached) > times / 2  # it was killed at work
    return n_leftovers


def killed_after(parent, seconds):
    """Let a process start, kill it, and return the commits that it acknowledged."""
    parent.stdin.write("start\n")
    parent.stdin.flush()
    ready, process = parent.stdout.readline().split()
    assert ready == "ready"
    time.sleep(seconds)
    os.kill(int(process), signal.SIGKILL)
    return [int(line) for line in iter(parent.stdout.readline, "killed\n")]


def test_kill_at_random_instants(tmp_path):
    killed_while_committing(tmp_path / "store", 20)


@pytest.mark.slow
def test_kill_at_two_hundred_random_instants(tmp_path):
    assert killed_while_committing(tmp_path / "store", 200) > 0  # some were killed in the middle of a commit


def test_death_at_every_call_of_a_commit(memory):
    tell(memory / "store", 8, SIZES)
    said = [line.split() for line in finish(writer("die_everywhere", memory / "store", memory / "work", *SIZES))]
    seen = {function: (int(old), int(new)) for function, old, new in said}
    assert seen["fsync"] == (10, 2)  # two segments, dead rows, folder, manifest; then the folder again
    assert seen["replace"] == (7, 1)  # two segments, dead rows, manifest
    assert seen["unlink"] == (0, 8)  # three segments and their dead rows, when the new state is safe
    assert seen["write"][0] > 30
    assert seen["write"][1] == 0


# ---------------------------------------------------------------------------------------------- power loss


class Killed(BaseException):
    """The end of a process, as far as it can be played inside of one."""


class Disk:
    """Records what is sure to survive a loss of power, and checks at every step all that could be found after one.

    Sure are the content of a file at its last fsync, and the names in a folder at its last fsync. Of the changes of
    names since then, any subset may have reached the disk.
    """

    def __init__(self, folder, work, monkeypatch, check):
        self.folder, self.work, self.check = folder, work, check
        self.open_files, self.contents, self.names = {}, {}, {}
        self.sure_names, self.pending = {}, []
        self.seen, self.identities = set(), itertools.count()
        self.kill_before_flush_of_manifest = self.killed = False
        for name in ("open", "close", "fsync", "replace", "unlink"):
            self.patch(monkeypatch, name)

    def patch(self, monkeypatch, name):
        original, mine = getattr(os, name), getattr(self, name)

        def recorded(first, *rest, **named):
            self.loses_power()
            return mine(original, first, *rest, **named)

        monkeypatch.setattr(os, name, recorded)

    def open(self, original, path, flags, *rest):
        descriptor = original(path, flags, *rest)
        if flags & os.O_EXCL:
            self.names[Path(path).name] = next(self.identities)
        self.open_files[descriptor] = Path(path)
        return descriptor

    def close(self, original, descriptor):
        self.open_files.pop(descriptor, None)
        original(descriptor)

    def fsync(self, original, descriptor):
        path = self.open_files[descriptor]
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        if is_folder and self.kill_before_flush_of_manifest and self.manifest_pending:
            self.killed = True
            raise Killed
        original(descriptor)
        if is_folder and path == self.folder:
            self.sure_names, self.pending = dict(self.names), []
        elif not is_folder:
            self.contents[self.names[path.name]] = path.read_bytes()

    @property
    def manifest_pending(self):
        return any(name == "manifest.json" for name, _ in self.pending)

    def replace(self, original, source, target):
        original(source, target)
        self.names[Path(target).name] = self.names.pop(Path(source).name)
        self.pending.append((Path(target).name, self.names[Path(target).name]))

    def unlink(self, original, path, **named):
        original(path, **named)
        self.names.pop(Path(path).name, None)
        self.pending.append((Path(path).name, None))

    def loses_power(self):
        for kept in itertools.product((False, True), repeat=len(self.pending)):
            names = dict(self.sure_names)
            for (name, identity), keep in zip(self.pending, kept, strict=True):
                if keep:
                    names[name] = identity
            names = {name: identity for name, identity in names.items() if identity is not None}
            found = {name: self.contents.get(identity, b"") for name, identity in names.items()}
            if (key := (self.check.acknowledged, *sorted(found.items()))) not in self.seen:
                self.seen.add(key)
                self.check(self.rebuilt(found))

    def rebuilt(self, found):
        fresh = self.work / str(len(self.seen))
        fresh.mkdir()
        for name, content in found.items():
            fresh.joinpath(name).write_bytes(content)
        return fresh


class OldOrNew:
    """A store that is found must have the acknowledged state or the one after it."""

    acknowledged = None  # None until the store is created

    def __call__(self, folder):
        try:
            store = Store.open(folder, writable=False)
        except FileNotFoundError:
            assert self.acknowledged is None
        else:
            with store:
                assert store.generation - (self.acknowledged or 0) in (0, 1)
                assert state_of(store) == state_after(store.generation, SIZES)
        assert self.acknowledged is None or verify(folder).ok


@pytest.fixture
def disk(memory, monkeypatch):
    (memory / "work").mkdir()
    return Disk(memory / "store", memory / "work", monkeypatch, OldOrNew())


def lose_power_at_every_step(disk):
    with Store.create(disk.folder, SETTINGS) as store:
        disk.check.acknowledged = 0
        for _ in range(18):
            disk.check.acknowledged = commit_next(store, SIZES)
            disk.loses_power()


def lose_power_after_a_kill(disk):
    """A writer is killed before its manifest is durable, the next one goes on from there."""
    with Store.create(disk.folder, SETTINGS) as store:
        disk.check.acknowledged = 0
        while not disk.killed:
            disk.kill_before_flush_of_manifest = store.generation == 8
            with contextlib.suppress(Killed):
                disk.check.acknowledged = commit_next(store, SIZES)
    disk.kill_before_flush_of_manifest = False
    with Store.open(disk.folder, writable=True) as store:
        disk.killed = False
        assert store.generation == 9  # visible, but not yet durable when its writer died
        disk.check.acknowledged = 9
        disk.loses_power()
        disk.check.acknowledged = commit_next(store, SIZES)
        disk.loses_power()


def test_power_loss_at_every_step(disk):
    lose_power_at_every_step(disk)
    assert len(disk.seen) > 100


def test_power_loss_after_a_kill(disk):
    lose_power_after_a_kill(disk)


FORGOTTEN = {
    "names of new files": (lose_power_at_every_step, lambda disk: not disk.manifest_pending),
    "name of the manifest": (lose_power_at_every_step, lambda disk: disk.manifest_pending),
    "what a killed writer left": (lose_power_after_a_kill, lambda disk: disk.killed),
}


@pytest.mark.parametrize("forgotten", FORGOTTEN)
def test_a_forgotten_flush_of_names_would_be_noticed(disk, monkeypatch, forgotten):
    experiment, forgets = FORGOTTEN[forgotten]
    monkeypatch.setattr(_store, "sync_folder", lambda folder: forgets(disk) or _files.sync_folder(folder))
    with pytest.raises((AssertionError, DamagedStoreError)):
        experiment(disk)


def test_a_forgotten_flush_of_content_would_be_noticed(disk, monkeypatch):
    def flush_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.fsync(descriptor)

    monkeypatch.setattr(_files, "flush", flush_folders)
    with pytest.raises((AssertionError, DamagedStoreError)):
        lose_power_at_every_step(disk)


# ---------------------------------------------------------------------------------------------- calls that fail


CALLS = {
    "open": (os, ["before"]),
    "write": (os, ["before", "after"]),
    "fsync": (os, ["before", "after"]),
    "close": (os, ["after"]),
    "replace": (os, ["before", "after"]),
    "unlink": (os, ["before"]),
    "mmap": (mmap, ["before"]),
}


def fails_at(monkeypatch, function, call, when, error):
    """Let one call of a function fail; return a list that is empty until it did."""
    module = CALLS[function][0]
    original, counter, failed = getattr(module, function), itertools.count(), []

    def failing(*arguments, **named):
        if next(counter) != call:
            return original(*arguments, **named)
        failed.append(True)
        if when == "after":
            original(*arguments, **named)
        raise error

    monkeypatch.setattr(module, function, failing)
    return failed


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()], ids=["EIO", "Ctrl-C"]
)
@pytest.mark.parametrize("function", CALLS)
def test_a_commit_whose_calls_fail(memory, monkeypatch, function, error):
    tell(memory / "store", 8, SIZES)
    counts = {"old": 0, "new": 0}
    for when in CALLS[function][1]:
        for call in itertools.count():
            shutil.copytree(memory / "store", memory / "work")
            with monkeypatch.context() as patch:
                store = Store.open(memory / "work", writable=True)
                failed = fails_at(patch, function, call, when, error)
                try:
                    commit_next(store, SIZES)
                    outcome = None
                except (OSError, KeyboardInterrupt) as caught:
                    outcome = caught
            if failed:
                counts[after_failure(store, outcome)] += 1
            store.close()
            shutil.rmtree(memory / "work")
            if not failed:
                break
    assert (counts["old"] == 0) == (
        function == "unlink"
    )  # of what was dropped: the commit is done, whatever becomes of it
    assert (counts["new"] > 0) == (function in ("open", "fsync", "close", "replace", "unlink"))


def after_failure(store, error):
    """Check what a failed call left: the old or the new state, in the object as in the folder, and go on from it."""
    old, new = state_after(8, SIZES), state_after(9, SIZES)
    with Store.open(store.path, writable=False) as reader:
        found = state_of(reader)
        assert reader.verify().ok
    assert state_of(store) == found
    assert found in (old, new)
    if isinstance(error, OSError):
        assert error.errno == errno.EIO
        assert ("is as it was before" in str(error)) == (found == old)
    if found == old:
        assert not verify(store.path).leftovers
    store.settle()
    for _ in range(store.generation, 10):
        commit_next(store, SIZES)
    assert state_of(store) == state_after(10, SIZES)
    store.close()
    with Store.open(store.path, writable=True) as again:
        assert state_of(again) == state_after(10, SIZES)
        assert not again.verify().leftovers
    return "old" if found == old else "new"


# ---------------------------------------------------------------------------------------------- full, small, read-only


def mounted(mount, command):
    """Return a command that runs another one where something is mounted, seen by nobody else and gone with it."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--mount", *user, "sh", "-c", f'{mount} && exec "$@"', "sh", *map(str, command)]


@pytest.fixture
def mounts(tmp_path):
    if shutil.which("unshare") is None:
        pytest.skip("mounting needs unshare, which is not here")
    tried = subprocess.run(
        mounted(f"mount -t tmpfs none '{tmp_path}'", ["true"]), capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"mounting is not allowed here: {tried.stderr.strip()}")


@pytest.mark.parametrize("what", ["pages", "inodes"])
def test_a_full_disk_leaves_the_old_state(tmp_path, mounts, what):
    mount = f"mount -t tmpfs -o size=1m,nr_inodes=100 none '{tmp_path}'"
    (failures,) = finish(mounted(mount, writer("starve", tmp_path, what, *SIZES)))
    assert int(failures) >= 3  # in new segments, in dead rows, in the manifest


def test_a_limit_on_the_size_of_files_leaves_the_old_state(tmp_path):
    tell(tmp_path / "store", 12, SIZES)
    assert finish(writer("outgrow", tmp_path / "store", 40_000)) == ["13"]


def test_a_file_system_that_is_read_only(tmp_path, mounts):
    folder = tmp_path / "store"
    tell(folder, 9, SIZES)
    files = our_files(folder)
    mount = f"mount --bind '{folder}' '{folder}' && mount -o remount,ro,bind '{folder}'"
    opening, creating = finish(mounted(mount, writer("read_only", folder, "self", 9, *SIZES)))
    reason = os.strerror(errno.EROFS)
    assert opening == f"[Errno {errno.EROFS}] store {folder} must be in a folder that can be written, got {reason}"
    assert creating == f"[Errno {errno.EROFS}] store {folder / 'new'} could not be created: {reason}"
    assert our_files(folder) == files


@pytest.mark.parametrize("mode_of_lock", [0o444, 0o666])
def test_a_folder_without_permission_to_write(mode_of_lock):
    place = Path(tempfile.mkdtemp())  # not tmp_path, into which nobody else may look
    try:
        tell(place / "store", 9, SIZES)
        place.chmod(0o755)
        (place / "store" / "lock").chmod(mode_of_lock)
        (place / "store").chmod(0o555)
        user = "nobody" if os.geteuid() == 0 else "self"
        opening, creating = finish(writer("read_only", place / "store", user, 9, *SIZES))
        assert "must be in a folder that can be written, got Permission denied" in opening
        assert "could not be created: Permission denied" in creating
    finally:
        (place / "store").chmod(0o755)
        shutil.rmtree(place)
