"""An index in a folder whose files are damaged, whose disk is full, or that somebody else has open."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.search.changing_index import content

from ilhash import HammingIndex
from ilhash.search import DamagedStoreError, StoreLockedError, verify


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
