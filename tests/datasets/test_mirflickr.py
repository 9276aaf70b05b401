"""Edge histograms: rows in the order of the images, every refusal one sentence."""

import os

import numpy as np
import pytest

from ilhash.datasets import read_edge_histograms
from ilhash.storage import StorageError

ROWS = np.random.default_rng(0).integers(0, 8, (25, 150)).astype(np.float32)
ROWS[3, 7] = 0.125


def write(path, rows, between="\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(between.join(f"{value:g}" for value in row) for row in rows) + "\n")
    return path


@pytest.fixture
def published(tmp_path):
    """Folders 0, 1 and 2 with a file per image, numbered throughout, and something else beside them."""
    for number, row in enumerate(ROWS):
        write(tmp_path / str(number // 11) / f"{number}.txt", [row])
    (tmp_path / "README.txt").write_text("about these files")
    (tmp_path / "0" / "notes").mkdir()
    return tmp_path


def test_a_file_per_image_in_the_order_of_the_numbers(published):
    got = read_edge_histograms(published)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, ROWS)
    np.testing.assert_array_equal(read_edge_histograms(str(published / "1")), ROWS[11:22])
    np.testing.assert_array_equal(read_edge_histograms(published / "1" / "12.txt"), ROWS[12:13])


@pytest.mark.parametrize("between", [" ", "\t", ",", ", "])
def test_files_of_rows(between, tmp_path):
    for number in range(12):
        write(tmp_path / f"eh{number}.txt", ROWS[2 * number : 2 * number + 2], between)
    np.testing.assert_array_equal(read_edge_histograms(tmp_path), ROWS[:24])
    np.testing.assert_array_equal(read_edge_histograms(tmp_path, limit=5), ROWS[:5])
    np.testing.assert_array_equal(read_edge_histograms(write(tmp_path / "all.txt", ROWS, between)), ROWS)


def test_limit_opens_no_more_than_it_needs(published):
    (published / "2" / "23.txt").write_text("broken")
    np.testing.assert_array_equal(read_edge_histograms(published, limit=23), ROWS[:23])
    with pytest.raises(ValueError, match=r"23\.txt must hold 150 lines"):
        read_edge_histograms(published, limit=24)


def test_limit_beyond_the_end(published):
    assert read_edge_histograms(published, limit=1_000).shape == (25, 150)


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "3"])
def test_bad_limit(limit, published):
    with pytest.raises(ValueError, match="limit must be a whole number of at least 1"):
        read_edge_histograms(published, limit=limit)


def refused(error, path, *parts):
    with pytest.raises(error) as caught:
        read_edge_histograms(path)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_missing_path(tmp_path):
    refused(FileNotFoundError, tmp_path / "none", str(tmp_path / "none"), "does not exist")


def test_folder_without_histograms(tmp_path):
    (tmp_path / "im1.jpg").touch()
    refused(FileNotFoundError, tmp_path, str(tmp_path), "numbered text files", "none")


def test_left_out_images_are_counted(published):
    for number in (13, 15):
        (published / "1" / f"{number}.txt").unlink()
    refused(FileNotFoundError, published, str(published / "1"), "from 11 to 21", "2 of them", "the first 13")


def test_left_out_folder(published):
    (published / "1").rename(published / "aside")
    refused(FileNotFoundError, published, "from 0 to 2", "the first 1")


def test_a_number_twice(published):
    write(published / "0" / "eh3.txt", ROWS[:1])
    refused(ValueError, published, "each number once", "eh3.txt", "3.txt")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["150 numbers", "empty"]),
        ("\n \n", ["150 numbers", "empty"]),
        ("1\n" * 149, ["150 lines", "149 lines"]),
        ("1\n" * 300, ["150 lines", "300 lines"]),
        ("1 " * 150 + "\n" + "1 " * 149, ["line 2", "149"]),
        ("1 " * 151, ["line 1", "151"]),
        ("1\n" * 75 + "1 2\n" + "1\n" * 75, ["150 numbers in line 1", "got 1"]),
        ("1\n" * 149 + "x", ["finite", "'x'", "line 150"]),
        ("1\n" * 149 + "nan", ["finite", "'nan'", "line 150"]),
        ("1 " * 149 + "1e39", ["finite", "'1e39'", "line 1"]),
        ("1\n" * 149 + "1_0", ["finite", "'1_0'"]),
        ("1\n" * 149 + "9" * 100, ["finite", "999...'"]),
    ],
)
def test_bad_files(text, parts, tmp_path):
    path = tmp_path / "0.txt"
    path.write_text(text)
    refused(ValueError, tmp_path, str(path), *parts)


def test_file_that_is_not_text(tmp_path):
    (tmp_path / "0.txt").write_bytes(b"\xff\xfe\x00")
    refused(ValueError, tmp_path, "0.txt", "UTF-8")


def test_pipes_and_devices_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "0.txt")
    (tmp_path / "1.txt").symlink_to("/dev/zero")
    for name, kind in (("0.txt", "pipe"), ("1.txt", "device")):
        with pytest.raises(StorageError, match=f"must be a regular file, got a {kind}"):
            read_edge_histograms(tmp_path / name)
    with pytest.raises(StorageError, match="got a pipe"):
        read_edge_histograms(tmp_path)
