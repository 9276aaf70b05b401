"""Readers under forged files of every format: an array, or one sentence (tests/fuzz/readers.py)."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz import _harness

CORPUS = Path(_harness.__file__).parent / "corpus" / "readers"
JUDGE = """
import sys
from tests.fuzz import _harness, readers
for folder in sys.argv[1:]:
    print(_harness.judged(readers, folder))
"""

for needed in ("pyarrow", "h5py", "zarr"):
    pytest.importorskip(needed)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of memory and time are POSIX")


def failures(**options):
    outcome = _harness.run("tests.fuzz.readers", **options)
    return outcome.tried, [(failure.number, failure.forged, failure.outcome) for failure in outcome.failures]


def test_ten_seconds_of_forged_files(tmp_path):
    tried, failed = failures(seconds=10, seed=3, corpus=tmp_path)
    assert failed == []
    assert tried > 10


def test_what_once_ended_or_held_up_the_process(tmp_path):
    folders = sorted(CORPUS.iterdir())
    assert len(folders) >= 3
    command = [sys.executable, "-c", JUDGE, *map(str, folders)]
    run = subprocess.run(command, cwd=_harness.ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr[-500:]
    assert [line.endswith(", True)") for line in run.stdout.splitlines()] == [True] * len(folders)


@pytest.mark.slow
def test_thousands_of_forged_files(tmp_path):
    tried, failed = failures(n=4000, seed=4, corpus=tmp_path)
    assert failed == []
    assert tried == 4000
