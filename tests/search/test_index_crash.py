"""An index in a folder whose process is killed, whose files are damaged, or whose disk is full."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ilhash import HammingIndex
from ilhash.search import DamagedStoreError, StoreLockedError, verify

# What step i does follows from i alone, so that any state can be checked.
PROGRAM = """
import sys
import numpy as np
from ilhash import HammingIndex

def step(i, held):
    rng = np.random.default_rng(i)
    new = {10 * i + j: rng.integers(0, 4, 2).astype(np.uint8) for j in range(int(rng.integers(1, 8)))}
    dead = [name for name in sorted(held) if rng.random() < 0.2]
    other = {name: rng.integers(0, 4, 2).astype(np.uint8) for name in sorted(held)[:2] if name not in dead}
    return new, dead, other

def after(n):
    held = {}
    for i in range(n):
        new, dead, other = step(i, held)
        if i % 3 == 0: held |= new
        elif i % 3 == 1: held = {name: code for name, code in held.items() if name not in dead}
        else: held |= other
    return held

def tell():
    index = HammingIndex.open(sys.argv[1], n_bits=16)
    first = int(sys.argv[2])
    held = after(first)
    for i in range(first, 10_000):
        new, dead, other = step(i, held)
        if i % 3 == 0: index.add(np.array(list(new.values())), list(new))
        elif i % 3 == 1: index.remove(dead)
        elif other: index.update(np.array(list(other.values())), list(other))
        held = after(i + 1)
        print(i + 1, flush=True)
        if i % 7 == 0: index.compact()

if __name__ == "__main__":
    tell()
"""


def states_of_the_program():
    space: dict = {"__name__": "program"}
    exec(PROGRAM, space)
    return space["after"]


def content(index):
    return {name: code.tolist() for name, code in index}


def kill_while_changing(tmp_path, times):
    after, folder = states_of_the_program(), tmp_path / "index"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = 0
    for number in range(times):
        command = [sys.executable, str(program), str(folder), str(done)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]  # at least one step, then any moment
            time.sleep(random.Random(number).random() * 0.05)
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.read().splitlines()
        acknowledged = int([line for line in lines if line.strip()][-1])
        assert verify(folder).ok
        with HammingIndex.open(folder, writable=False) as index:
            held = content(index)
            possible = [{n: c.tolist() for n, c in after(m).items()} for m in (acknowledged, acknowledged + 1)]
            assert held in possible
            done = acknowledged + possible.index(held)
            some = np.array([[1, 2]], np.uint8)
            assert len(index.search(some, 5).ids[0]) == min(5, len(held))


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    kill_while_changing(tmp_path, 8)


@pytest.mark.slow
def test_what_was_acknowledged_survives_many_kills(tmp_path):
    kill_while_changing(tmp_path, 100)


def small_index(folder):
    with HammingIndex.open(folder, n_bits=16, ids="str") as index:
        index.add(np.arange(200, dtype=np.uint8).reshape(100, 2), [f"item {i}" for i in range(100)])
        index.remove(["item 3"])


def test_a_flipped_byte_is_never_served(tmp_path):
    folder = tmp_path / "index"
    small_index(folder)
    query = np.array([[7, 7]], np.uint8)
    with HammingIndex.open(folder, writable=False) as index:
        good = index.search(query, 99)
    named = []
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        for at in range(0, len(content), 17):
            if file.name == "lock":
                continue
            file.write_bytes(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
            try:
                with HammingIndex.open(folder, writable=False) as index:
                    hits = index.search(query, 99)
                    served = list(index)
            except DamagedStoreError as error:
                named.append(file.name in str(error))
            else:  # a byte that no array holds, such as padding
                assert np.array_equal(hits.ids, good.ids)
                assert len(served) == 99
            assert not verify(folder).ok, (file.name, at)
        file.write_bytes(content)
    assert verify(folder).ok
    assert len(named) > 50
    assert all(named)


@pytest.mark.parametrize("harm", ["truncated", "missing"])
def test_a_lost_file_is_named(tmp_path, harm):
    small_index(tmp_path)
    file = next(tmp_path.glob("segment-*"))
    if harm == "missing":
        file.unlink()
    else:
        os.truncate(file, file.stat().st_size - 9)
    with pytest.raises(DamagedStoreError, match=file.name):
        HammingIndex.open(tmp_path, writable=False).search(np.array([[7, 7]], np.uint8), 3)


def test_two_writers(tmp_path):
    with HammingIndex.open(tmp_path, n_bits=8) as index:
        index.add(np.zeros((1, 1), np.uint8))
        code = f"from ilhash import HammingIndex; HammingIndex.open({str(tmp_path)!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "StoreLockedError" in other.stderr
        with pytest.raises(StoreLockedError):
            HammingIndex.open(tmp_path)
        with HammingIndex.open(tmp_path, writable=False) as reader:
            assert len(reader) == 1
    HammingIndex.open(tmp_path).close()


def test_a_change_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    """The folder is the truth: an index in memory never runs ahead of it."""
    small_index(tmp_path)
    with HammingIndex.open(tmp_path) as index:
        before = content(index)

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            for change in (
                lambda: index.add(np.zeros((1, 2), np.uint8), ["new"]),
                lambda: index.remove(["item 5"]),
                lambda: index.update(np.zeros((1, 2), np.uint8), ["item 5"]),
                index.compact,
            ):
                with pytest.raises(OSError, match="No space left on device"):
                    change()
                assert content(index) == before
        index.add(np.zeros((1, 2), np.uint8), ["new"])
        assert "new" in index
    with HammingIndex.open(tmp_path, writable=False) as again:
        assert content(again) == before | {"new": [0, 0]}
