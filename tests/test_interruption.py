"""Ctrl-C in real processes: it ends the work soon, with the exit code that it should have, and without an abort."""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent as POSIX does it")

FIT = """
import numpy as np, ilhash
rng = np.random.default_rng(0)
X, y = rng.normal(size=(20_000, 32)).astype(np.float32), rng.integers(0, 10, 20_000)
tell = lambda done, _: print("ready", flush=True) if done == 2 else None  # bits are being trained
ilhash.ILH(n_bits=60_000, n_jobs=2, random_state=0).fit(X, y, progress=tell)
"""

SEARCH = """
import numpy as np, ilhash
from ilhash.search import HammingIndex
rng = np.random.default_rng(0)
index = HammingIndex(n_bits=64)
index.add(rng.integers(0, 256, (200_000, 8), dtype=np.uint8))
queries = rng.integers(0, 256, (1_000_000, 8), dtype=np.uint8)
print("ready", flush=True)
index.search(queries, k=10, n_threads={n_threads})
"""

# Threads of a pool that are in the core, or on their way back from it, while Python shuts down.
LEFT_BEHIND = """
import sys, threading, time
import numpy as np
from ilhash import _core
graph = _core.SignedGraph.from_classes([{size}] * 10, 20, 20, 0)
start = np.ones(graph.n_points, np.int8)

def work():
    while True:
        _core.minimise(graph, start, 0, True, 1000)

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep({seconds})
sys.exit(7)
"""


@contextmanager
def started(command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def interrupted(program, after):
    """Start a program, interrupt it some seconds after it said that it is ready; return exit code, stderr, seconds."""
    with started([sys.executable, "-c", program]) as process:
        assert process.stdout.readline() == "ready\n", process.communicate()
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, complaint = process.communicate(timeout=60)
    return process.returncode, complaint, time.monotonic() - began


@pytest.mark.parametrize("after", [0.3, 0.81, 1.37])
def test_training_in_threads_ends_with_the_interrupt(after):
    code, complaint, _ = interrupted(FIT, after)
    assert complaint.rstrip().endswith("KeyboardInterrupt")
    assert code == -signal.SIGINT  # as Python ends when nobody catches it; an abort would be -6


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_long_search_ends_soon_after_the_interrupt(n_threads):
    code, complaint, waited = interrupted(SEARCH.format(n_threads=n_threads), 0.5)
    assert complaint.rstrip().endswith("KeyboardInterrupt")
    assert code == -signal.SIGINT
    assert waited < 20  # the whole search takes minutes


@pytest.mark.parametrize("seconds", [0.05, 0.2])
@pytest.mark.parametrize("size", [3, 500])
def test_threads_in_the_core_do_not_abort_the_exit(size, seconds):
    program = LEFT_BEHIND.format(size=size, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (7, "")


def test_fit_says_one_sentence(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(20_000, 32)).astype(np.float32))
    np.save(tmp_path / "y.npy", rng.integers(0, 10, 20_000))
    command = [sys.executable, "-m", "ilhash", "fit", str(tmp_path / "x.npy"), "--labels", str(tmp_path / "y.npy")]
    command += ["--output", str(tmp_path / "model"), "--bits", "60000", "-j", "2"]
    command += ["--checkpoint", str(tmp_path / "bits")]
    with started(command) as process:
        while not any(tmp_path.glob("bits/*")):
            time.sleep(0.05)
            assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert " ".join(complaint.split()).endswith(
        f"interrupted; finished bits are in {tmp_path / 'bits'}, and the same command goes on from there"
    )
