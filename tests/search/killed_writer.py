"""An endless series of commits to a store: what commit i does follows from i alone, so that any state can be checked.

As a program it is what the crash tests kill, starve and lock out: ``python -m tests.search.killed_writer``
"""

import contextlib
import errno
import itertools
import os
import shutil
import sys
from pathlib import Path

import numpy as np

from ilhash.search._store import Store
from ilhash.search._verify import verify_files as verify

SETTINGS = {"n_bits": 128, "ids": "int64"}


# ---------------------------------------------------------------------------------------------- the series


def segment(number, rows):
    """Arrays of the segment with that number: a name, so to speak, that its content proves."""
    rng = np.random.default_rng(number)
    return {
        "codes": rng.integers(0, 256, (rows, 16), dtype=np.uint8),
        "number": np.array([number]),
        "starts": np.arange(rows + 1, dtype=np.uint32),
        "nothing": np.zeros((0, 3)),
    }


def step(i, state, sizes):
    """What commit i changes: segments to add {number: rows}, rows to remove {number: rows}, numbers to drop."""
    rng = np.random.default_rng([i, 1])
    live = sorted(state)
    add = {10 * i: sizes[i % len(sizes)]} if i % 3 != 2 else {}
    drop = live[:3] if len(live) > 6 else []
    if drop:
        add[10 * i + 1] = min(60_000, sum(state[number][0] for number in drop))
    remove = {}
    for number in live[len(drop) :] if i % 2 else []:
        rows = state[number][0]
        if rows:
            remove[number] = np.unique(rng.integers(0, rows, 3))
    if not add and not remove:
        add[10 * i] = 1  # no commit without a change
    return add, remove, drop


def states(sizes):
    """Yield the state after 0, 1, 2, ... commits: {number: (rows, tuple of dead rows)}."""
    state = {}
    for i in itertools.count(1):
        yield state
        add, remove, drop = step(i, state, sizes)
        state = {number: kept for number, kept in state.items() if number not in drop}
        for number, rows in remove.items():
            state[number] = state[number][0], tuple(sorted({*state[number][1], *rows.tolist()}))
        state |= {number: (rows, ()) for number, rows in add.items()}


def state_after(n, sizes):
    return next(itertools.islice(states(sizes), n, None))


def state_of(store):
    """Read everything that a store has, and make sure that each segment is what its number says."""
    state = {}
    for stored in store.segments:
        number, rows = int(stored["number"][0]), stored.n_rows
        for name, array in segment(number, rows).items():
            assert stored[name].dtype == array.dtype
            assert np.array_equal(stored[name], array), (stored, name)
        state[number] = rows, tuple(stored.removed.tolist())
    return state


def commit_next(store, sizes):
    """Make the next commit of the series, and return its number."""
    i = store.generation + 1
    names = {int(stored["number"][0]): stored.name for stored in store.segments}
    state = {int(stored["number"][0]): (stored.n_rows, ()) for stored in store.segments}
    add, remove, drop = step(i, state, sizes)
    store.commit(
        add=[segment(number, rows) for number, rows in add.items()],
        remove={names[number]: rows for number, rows in remove.items()},
        drop=[names[number] for number in drop],
    )
    return i


def tell(path, n, sizes):
    """Create a store and make the first n commits."""
    with Store.create(path, SETTINGS) as store:
        for _ in range(n):
            commit_next(store, sizes)


def our_files(folder):
    """Names of all files but the lock."""
    return {file.name for file in Path(folder).iterdir() if file.name != "lock"}


# ---------------------------------------------------------------------------------------------- programs


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def run(folder, *sizes):
    """Commit for ever, and acknowledge each commit when it has returned."""
    with Store.open(folder, writable=True) as store:
        say("ready", os.getpid())
        while True:
            say(commit_next(store, [int(size) for size in sizes]))


def run_again_and_again(folder, *sizes):
    """For each line of standard input, start a process that commits until it is killed."""
    for _ in sys.stdin:
        process = os.fork()
        if process == 0:
            run(folder, *sizes)
        os.waitpid(process, 0)
        say("killed")


def hold(folder):
    """Have the store open for writing until standard input ends."""
    with Store.open(folder, writable=True):
        say("ready")
        sys.stdin.read()


def die_everywhere(folder, work, *sizes):
    """Make one commit again and again, each time dying at another call of the operating system."""
    sizes = [int(size) for size in sizes]
    with Store.open(folder, writable=False) as store:
        n = store.generation
    before, after = state_after(n, sizes), state_after(n + 1, sizes)
    for function in ("open", "write", "fsync", "replace", "unlink", "close"):
        counts = {"old": 0, "new": 0}
        for when in ("before", "half", "after") if function == "write" else ("before", "after"):
            for call in itertools.count():
                died = dies(folder, work, sizes, function, call, when)
                with Store.open(work, writable=False) as store:
                    state, report = state_of(store), store.verify()
                assert report.ok, report
                assert state == after or (state == before and died)
                Store.open(work, writable=True).close()
                assert not verify(work).leftovers
                shutil.rmtree(work)
                if not died:
                    break
                counts["new" if state == after else "old"] += 1
        say(function, counts["old"], counts["new"])


def dies(folder, work, sizes, function, call, when):
    """Make the next commit in a copy of a store; return whether the process died of it."""
    shutil.copytree(folder, work)
    process = os.fork()
    if process == 0:
        with Store.open(work, writable=True) as store:
            die_at(function, call, when)
            commit_next(store, sizes)
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9


def die_at(function, call, when):
    """Let the process end in a call of a function of ``os``: before it, after it, or in the middle of a write."""
    original, counter = getattr(os, function), itertools.count()

    def deadly(*arguments, **named):
        if next(counter) != call:
            return original(*arguments, **named)
        if when == "after":
            original(*arguments, **named)
        elif when == "half":
            descriptor, data = arguments
            original(descriptor, data[: len(data) // 2])
        os._exit(9)

    setattr(os, function, deadly)


def starve(folder, what, *sizes):
    """On a small file system: run out of room at every place of a commit, for want of pages or of inodes."""
    sizes = [int(size) for size in sizes]
    place, path = Path(folder), Path(folder) / "store"
    tell(path, 8, sizes)
    old, new, files = state_after(8, sizes), state_after(9, sizes), our_files(path)
    failures = 0
    with Store.open(path, writable=True) as store, Store.open(path, writable=False) as reader:
        for room in itertools.count():
            fill(place, what, room)
            failure = failure_of(lambda: commit_next(store, sizes))
            if not failure:
                break
            failures += 1
            assert failure.errno == errno.ENOSPC, failure
            assert "is as it was before" in str(failure), failure
            assert state_of(store) == old
            assert our_files(path) == files
        assert state_of(store) == new
        assert store.verify().ok
        assert state_of(reader) == old
    fill(place, what, 0)
    failure = failure_of(lambda: Store.create(place / "other", SETTINGS))
    assert failure.errno == errno.ENOSPC, failure
    assert "could not be created" in str(failure) or "can be written" in str(failure), failure
    Store.open(path, writable=True).close()  # a writer may still come, to make room
    say(failures)


def failure_of(action):
    """Return the OSError that an action ends in, or None."""
    try:
        action()
    except OSError as error:
        return error
    return None


def fill(place, what, room):
    """Fill a small file system but for some pages or inodes."""
    shutil.rmtree(place / "filler", ignore_errors=True)
    if what == "inodes":
        (place / "filler").mkdir()
        made = []
        with contextlib.suppress(OSError):
            while True:
                made.append(place / "filler" / str(len(made)))
                made[-1].touch()
        for file in made[len(made) - 1 - room :]:
            file.unlink(missing_ok=True)
        return
    (place / "filler").mkdir()
    with (place / "filler" / "pages").open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(4096)) == 4096:
                pass
        file.truncate(max(0, file.tell() // 4096 - room) * 4096)


def outgrow(folder, *sizes):
    """Meet a limit on the size of files, then go on without it."""
    import resource

    sizes = [int(size) for size in sizes]
    with Store.open(folder, writable=True) as store:
        old, files = state_of(store), our_files(folder)
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        for size in (0, 100, 1000, 100_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
            failure = failure_of(lambda: commit_next(store, sizes))
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            assert failure.errno == errno.EFBIG, failure
            assert "is as it was before" in str(failure), failure
            assert state_of(store) == old
            assert our_files(folder) == files
        say(commit_next(store, sizes))


def read_only(folder, user, n, *sizes):
    """Read a store in a folder that cannot be written, and be refused as a writer."""
    expected = state_after(int(n), [int(size) for size in sizes])
    if user == "nobody":
        os.setgid(65534)
        os.setuid(65534)
    with Store.open(folder, writable=False) as store:
        assert state_of(store) == expected
        assert not store.refresh()
        assert store.verify().ok
    say(failure_of(lambda: Store.open(folder, writable=True)))
    say(failure_of(lambda: Store.create(Path(folder) / "new", {})))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
