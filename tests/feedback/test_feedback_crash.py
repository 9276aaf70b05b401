"""Kills, full disks, failing calls, cut and altered files: is each acknowledged judgement there, and nothing half?"""

import errno
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
from tests.feedback.killed_judge import add_next, added, n_added
from tests.storage.interrupts import interrupted_at

from ilhash.feedback import FILE, Feedback, verify
from ilhash.storage import DamagedFileError, StoreLockedError

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and fork of POSIX")


def judge(*arguments):
    command = [sys.executable, "-m", "tests.feedback.killed_judge", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdin=PIPE, stdout=PIPE)


def killed_while_adding(folder, times):
    """Kill a process that adds as fast as it can, again and again; return how often an add was cut in two."""
    Feedback.open(folder).close()
    rng = np.random.default_rng(0)
    reached, torn = 0, 0
    with judge("run_again_and_again", folder) as parent:
        for _ in range(times):
            parent.stdin.write("start\n")
            parent.stdin.flush()
            ready, process = parent.stdout.readline().split()
            assert ready == "ready"
            time.sleep(rng.uniform(0.0, 0.1))
            os.kill(int(process), signal.SIGKILL)
            said = [int(line) for line in iter(parent.stdout.readline, "killed\n")]
            acknowledged = max(said, default=reached)
            report = verify(folder)
            assert report.ok, report
            with Feedback.open(folder, writable=False) as log:
                n = n_added(log)
            assert acknowledged <= n <= acknowledged + 1
            reached, torn = n, torn + (report.torn > 0)
            if reached > 40:  # reading all again would take longer than adding
                (folder / FILE).unlink()
                reached = 0
    return torn


@posix
def test_kill_at_random_instants(tmp_path):
    killed_while_adding(tmp_path / "log", 10)


@posix
@pytest.mark.slow
def test_kill_at_two_hundred_random_instants(tmp_path):
    killed_while_adding(tmp_path / "log", 200)


def small_log(folder):
    """Five adds, some of several judgements; return the bytes of the file and where each add ends."""
    ends = []
    with Feedback.open(folder) as log:
        ends.append((folder / FILE).stat().st_size)
        log.add("a", "b", who="ann", time=1.0)
        ends.append((folder / FILE).stat().st_size)
        log.add("a", ["c", "d", "é"], [True, False, True], [1.0, 2.0, 0.5], ["ann", None, "bob"], 2.0)
        ends.append((folder / FILE).stat().st_size)
        log.add("z", "y", False, time=3.0)
        ends.append((folder / FILE).stat().st_size)
    return (folder / FILE).read_bytes(), ends


def test_a_file_cut_anywhere_has_the_whole_adds_before_the_cut(tmp_path):
    data, ends = small_log(tmp_path / "log")
    with Feedback.open(tmp_path / "log", writable=False) as log:
        all_of_them = list(log)
    sizes = {ends[0]: 0, ends[1]: 1, ends[2]: 4, ends[3]: 5}
    for length in range(ends[0], len(data) + 1):
        (tmp_path / "log" / FILE).write_bytes(data[:length])
        whole = max(end for end in ends if end <= length)
        report = verify(tmp_path / "log")
        assert report.ok
        assert report.torn == length - whole
        with Feedback.open(tmp_path / "log", writable=False) as log:
            assert list(log) == all_of_them[: sizes[whole]]
    for length in (ends[1] + 9, ends[2] - 1, len(data) - 1):
        (tmp_path / "log" / FILE).write_bytes(data[:length])
        with Feedback.open(tmp_path / "log") as log:
            n = len(log)
            log.add("new", "one")
        assert verify(tmp_path / "log").torn == 0
        with Feedback.open(tmp_path / "log", writable=False) as log:
            assert len(log) == n + 1


def test_a_first_line_that_is_cut_is_damage(tmp_path):
    data, ends = small_log(tmp_path / "log")
    for length in range(ends[0]):
        (tmp_path / "log" / FILE).write_bytes(data[:length])
        with pytest.raises(DamagedFileError, match=r"line 1|first line"):
            Feedback.open(tmp_path / "log")


def test_every_flipped_byte_is_named_and_never_skipped(tmp_path):
    data, _ = small_log(tmp_path / "log")
    path = tmp_path / "log" / FILE
    for place in range(len(data)):
        for flip in (0x01, 0x80, data[place], data[place] ^ 0x0A):  # the last two: NUL, an end of line
            if not flip:
                continue
            altered = bytearray(data)
            altered[place] ^= flip
            path.write_bytes(altered)
            for writable in (False, True):
                with pytest.raises(ValueError, match=FILE):
                    Feedback.open(tmp_path / "log", writable=writable)
            assert path.read_bytes() == bytes(altered)
    path.write_bytes(data)
    assert verify(tmp_path / "log").ok


def test_damage_is_named_by_its_line(tmp_path):
    data, _ = small_log(tmp_path / "log")
    lines = data.splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"similar": true', b'"similar": null')
    (tmp_path / "log" / FILE).write_bytes(b"".join(lines))
    with pytest.raises(DamagedFileError, match=r"judgements.jsonl, line 3, must be as it was written"):
        Feedback.open(tmp_path / "log")
    assert "line 3" in str(verify(tmp_path / "log"))


def test_lines_that_were_moved_repeated_or_left_out_are_damage(tmp_path):
    data, _ = small_log(tmp_path / "log")
    lines = data.splitlines(keepends=True)
    small_log(tmp_path / "other")
    foreign = (tmp_path / "other" / FILE).read_bytes().splitlines(keepends=True)
    orders = [[0, 2, 1, 3, 4, 5], [0, 1, 1, 2, 3, 4, 5], [0, 1, 3, 4, 5], [0, 5]]
    for changed in [*([lines[i] for i in order] for order in orders), [*lines[:5], foreign[5]]]:
        (tmp_path / "log" / FILE).write_bytes(b"".join(changed))
        with pytest.raises(DamagedFileError, match="line"):
            Feedback.open(tmp_path / "log")


@pytest.mark.parametrize("n_zeros", [1, 511, 5000, 200_000])
def test_zeros_behind_the_end_are_what_a_loss_of_power_leaves(tmp_path, n_zeros):
    data, _ = small_log(tmp_path / "log")
    path = tmp_path / "log" / FILE
    for begun in (b"", b'{"query": "a", "it'):
        path.write_bytes(data + begun + bytes(n_zeros))
        with Feedback.open(tmp_path / "log") as log:
            assert len(log) == 5
        assert path.read_bytes() == data
    path.write_bytes(data + bytes(n_zeros) + b"x")
    if n_zeros > 1 << 16:
        with pytest.raises(DamagedFileError):
            Feedback.open(tmp_path / "log")


CALLS = {"write": ["before", "half", "after"], "fsync": ["before", "after"], "lseek": ["before"], "close": ["after"]}


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
@pytest.mark.parametrize("function", CALLS)
def test_an_add_whose_calls_fail_can_be_made_again(tmp_path, monkeypatch, function, error):
    with Feedback.open(tmp_path / "log") as log:
        for i in range(3):
            add_next(log, i)
    n_failed = 0
    for when in CALLS[function]:
        for call in itertools.count():
            work = tmp_path / "work"
            shutil.copytree(tmp_path / "log", work)
            log = Feedback.open(work)
            with monkeypatch.context() as patch:
                failed = fails_at(patch, function, call, when, error)
                try:
                    add_next(log, 3)
                    done = True
                except (OSError, KeyboardInterrupt):
                    done = False
            assert verify(work).ok
            now = n_added(log)
            assert now in ((4,) if done else (3, 4))
            with Feedback.open(work, writable=False) as reader:
                assert n_added(reader) == now
            for i in range(now, 6):
                add_next(log, i)
            log.close()
            with Feedback.open(work) as again:
                assert n_added(again) == 6
            shutil.rmtree(work)
            n_failed += bool(failed)
            if not failed:
                break
    assert n_failed


def fails_at(monkeypatch, function, call, when, error):
    original, counter, failed = getattr(os, function), itertools.count(), []

    def failing(*arguments, **named):
        if next(counter) != call:
            return original(*arguments, **named)
        failed.append(True)
        if when == "after":
            original(*arguments, **named)
        elif when == "half":
            descriptor, data = arguments
            original(descriptor, data[: len(data) // 2])
        raise error

    monkeypatch.setattr(os, function, failing)
    return failed


def test_a_disk_that_stays_broken_is_said_and_mended_later(tmp_path, monkeypatch):
    log = Feedback.open(tmp_path / "log")
    add_next(log, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        patch.setattr(os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(OSError, match="may have some of the new judgements") as caught:
            add_next(log, 1)
    assert caught.value.errno == errno.EIO
    assert n_added(log) == 1
    add_next(log, 1)
    assert n_added(log) == 2
    log.close()
    with Feedback.open(tmp_path / "log") as again:
        assert n_added(again) == 2


@posix
def test_a_second_process_is_refused_and_reads_all_the_same(tmp_path):
    with judge("hold", tmp_path / "log") as other:
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(StoreLockedError, match=f"process {other.pid}"):
            Feedback.open(tmp_path / "log")
        assert len(Feedback.open(tmp_path / "log", writable=False)) == 0
        other.stdin.close()
    with Feedback.open(tmp_path / "log") as log:
        add_next(log, 0)


@posix
def test_a_reader_follows_a_writer_of_another_process(tmp_path):
    Feedback.open(tmp_path / "log").close()
    with judge("run_again_and_again", tmp_path / "log") as parent:
        parent.stdin.write("start\n")
        parent.stdin.flush()
        process = int(parent.stdout.readline().split()[1])
        with Feedback.open(tmp_path / "log", writable=False) as reader:
            seen = [len(reader)]
            while seen[-1] < 5_000:
                acknowledged = int(parent.stdout.readline())
                reader.refresh()
                assert len(reader) >= sum(len(added(i)) for i in range(acknowledged))
                seen.append(len(reader))
            assert seen == sorted(seen)
            n_added(reader)
        os.kill(process, signal.SIGKILL)
        parent.stdin.close()
        parent.stdout.read()


def test_ctrl_c_at_every_line_of_an_add(tmp_path):
    with Feedback.open(tmp_path / "log") as log:
        add_next(log, 1)
        assert n_judged(log) == len(added(1))
    seen = set()
    for line in itertools.count():
        folder = tmp_path / "work"
        shutil.copytree(tmp_path / "log", folder)
        log = Feedback.open(folder)

        def again(log=log, folder=folder):
            before = n_judged(log)
            seen.add(before - len(added(1)))
            with Feedback.open(folder, writable=False) as reader:
                assert list(reader) == list(log)
            log.add("x", "y")
            assert n_judged(log) == before + 1

        interrupted = interrupted_at(line, lambda log=log: log.add("new", ["b", "c"]), again)
        log.close()
        with Feedback.open(folder) as found:
            assert n_judged(found) - len(added(1)) in (1, 3)
        shutil.rmtree(folder)
        if not interrupted:
            break
    assert seen == {0, 2}


def n_judged(log):
    return len(list(log))
