"""The door of files: what they are, how much of them is there, and every value that is taken from them."""

import os
import socket
import tracemalloc

import numpy as np
import pytest

from ilhash.storage import DamagedFileError, Record, WriterLock, checked_array, open_file, read_file, reading


def test_a_regular_file_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert read_file(tmp_path / "a") == b"abc"
    with pytest.raises(DamagedFileError, match="at most 2 bytes, got 3"):
        read_file(tmp_path / "a", most=2)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none")


def test_a_small_file_takes_little_memory(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    tracemalloc.start()
    read_file(tmp_path / "a")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "target").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name, kind in {
            "pipe": "pipe",
            "folder": "directory",
            "link": "symbolic link",
            "zero": "symbolic link",
            "socket": "socket",
        }.items():
            with pytest.raises(DamagedFileError, match=f"got a {kind}"):
                open_file(tmp_path / name)
    with pytest.raises(DamagedFileError, match="device"):
        open_file(type(tmp_path)("/dev/zero"))


def test_a_large_file_of_holes_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.write(b"begin")
        file.truncate(50 << 30)
    with pytest.raises(DamagedFileError, match="a file of holes"):
        open_file(tmp_path / "sparse")
    with (tmp_path / "small").open("wb") as file:
        file.truncate(1 << 20)
    with open_file(tmp_path / "small") as file:
        assert len(file.read()) == 1 << 20


def test_the_lock_of_a_writer_is_no_way_to_other_files(tmp_path):
    (tmp_path / "precious").write_bytes(b"content")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(DamagedFileError, match="symbolic link"):
        WriterLock(tmp_path / "lock")
    assert (tmp_path / "precious").read_bytes() == b"content"


@pytest.mark.parametrize("kind", [KeyError, RecursionError, ZeroDivisionError, AttributeError, MemoryError])
def test_raw_errors_become_one_kind(kind):
    sentence = f"^model must be whole, got something else .{kind.__name__}"
    with pytest.raises(DamagedFileError, match=sentence), reading("model must be whole"):
        raise kind("raw")


@pytest.mark.parametrize("error", [OSError("disk"), ImportError("skops"), KeyboardInterrupt()])
def test_other_errors_pass(error):
    with pytest.raises(type(error)), reading("model must be whole"):
        raise error


def test_values_of_a_record_are_checked():
    record = Record({"n": 3, "flag": True, "name": "a.bin", "parts": [{"n": 1}], "inner": {"n": 2}}, "file")
    assert record.whole("n", 1, 3) == 3
    assert record.text("name", r"[a-z]\.bin") == "a.bin"
    assert record.records("parts")[0].whole("n") == 1
    assert record.record("inner").whole("n") == 2
    assert record.one_of("name", ["a.bin"]) == "a.bin"
    for take in (
        lambda: record.whole("n", 4),
        lambda: record.whole("flag"),
        lambda: record.whole("none"),
        lambda: record.text("name", "[a-z]"),
        lambda: record.text("n"),
        lambda: record.records("inner"),
        lambda: record.record("parts"),
        lambda: Record([], "file"),
        lambda: record.one_of("name", ["b"]),
    ):
        with pytest.raises(DamagedFileError, match="must"):
            take()


def test_arrays_are_checked():
    array = np.array([[0.0, 2.0]], np.float32)
    assert checked_array(array, "w", np.float32, (None, 2)) is array
    for wrong in (
        lambda: checked_array(None, "w", np.float32, (1, 2)),
        lambda: checked_array(array, "w", np.float64, (1, 2)),
        lambda: checked_array(array, "w", np.float32, (2,)),
        lambda: checked_array(array, "w", np.float32, (1, 3)),
        lambda: checked_array(array, "w", np.float32, (1, 2), most=1),
        lambda: checked_array(array, "w", np.float32, (1, 2), least=1),
        lambda: checked_array(np.full((1, 2), np.inf, np.float32), "w", np.float32, (1, 2)),
    ):
        with pytest.raises(DamagedFileError, match=r"^w must be"):
            wrong()
