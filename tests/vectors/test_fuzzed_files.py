"""Readers under forged files of every format: an array, or one sentence (tests/fuzz/readers.py)."""

import sys

import pytest
from tests.fuzz import _harness

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


@pytest.mark.slow
def test_thousands_of_forged_files(tmp_path):
    tried, failed = failures(n=4000, seed=4, corpus=tmp_path)
    assert failed == []
    assert tried == 4000
