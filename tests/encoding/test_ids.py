"""Ids beside codes: what was given comes back, and nothing else is taken for it."""

import numpy as np
import pytest

import ilhash
from ilhash.encoding._names import StoredIds, ids_as_bytes
from ilhash.storage import DamagedFileError, sha256_of, to_npz

TEXTS = ["", "a", "ä\n\0", "b" * 300, "\U0001f600"]


@pytest.fixture
def model(blobs):
    return ilhash.methods.LSH(n_bits=12).fit(blobs[0])


@pytest.mark.parametrize("ids", [TEXTS, [5, -3, 2**62, 0, 7]])
@pytest.mark.parametrize("name", ["codes.npy", "shards"])
def test_ids_come_back(model, blobs, tmp_path, ids, name):
    X = blobs[0][:5]
    written = ilhash.write_codes(model, X, tmp_path / name, ids=ids, rows_per_shard=2)
    again = ilhash.open_codes(tmp_path / name)
    assert written.ids.tolist() == again.ids.tolist() == ids
    assert again.verify() > 0
    assert ilhash.write_codes(model, X, tmp_path / "others").ids is None


def test_codes_that_are_replaced_lose_the_ids_of_the_old_ones(model, blobs, tmp_path):
    X = blobs[0][:5]
    path = tmp_path / "codes.npy"
    ilhash.write_codes(model, X, path, ids=TEXTS)
    assert ilhash.write_codes(model, X[::-1], path, replace=True).ids is None
    assert sorted(file.name for file in tmp_path.iterdir()) == ["codes.npy", "codes.npy.json"]


def test_shards_go_on_with_the_same_ids_alone(model, blobs, tmp_path):
    X = blobs[0][:5]
    ilhash.write_codes(model, X, tmp_path / "shards", ids=TEXTS)
    with pytest.raises(ValueError, match="must hold shards of the same ids"):
        ilhash.write_codes(model, X, tmp_path / "shards", ids=[1, 2, 3, 4, 5])


@pytest.mark.parametrize("ids", [["a", "b"], [1.5] * 5, [None] * 5, "sku"])
def test_wrong_ids_are_refused_before_anything_is_written(model, blobs, tmp_path, ids):
    with pytest.raises((ValueError, TypeError), match="ids must"):
        ilhash.write_codes(model, blobs[0][:5], tmp_path / "codes.npy", ids=ids)
    assert not list(tmp_path.iterdir())


def test_a_changed_or_missing_file_is_named(model, blobs, tmp_path):
    written = ilhash.write_codes(model, blobs[0][:5], tmp_path / "codes.npy", ids=TEXTS)
    file = tmp_path / "codes.npy.ids.npz"
    data = bytearray(file.read_bytes())
    data[60] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedFileError, match=r"codes.npy.ids.npz"):
        _ = written.ids
    with pytest.raises(DamagedFileError, match=r"codes.npy.ids.npz"):
        written.verify()
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"codes.npy.ids.npz"):
        _ = written.ids


@pytest.mark.parametrize(
    "arrays",
    [
        {"ids": np.arange(4)},
        {"ids": np.arange(5.0)},
        {"ids": np.zeros((5, 1), np.int64)},
        {"other": np.arange(5)},
        {"ends": np.array([1, 2, 3, 4, 9]), "texts": np.zeros(5, np.uint8)},
        {"ends": np.array([1, 2, 1, 4, 5]), "texts": np.zeros(5, np.uint8)},
        {"ends": np.array([-1, 2, 3, 4, 5]), "texts": np.zeros(5, np.uint8)},
        {"ends": np.arange(1, 6), "texts": np.full(5, 255, np.uint8)},
        {"ends": np.arange(1.0, 6.0), "texts": np.zeros(5, np.uint8)},
        {"ends": np.zeros(0, np.int64), "texts": np.zeros(0, np.uint8)},
    ],
)
def test_forged_files_are_refused(tmp_path, arrays):
    data = to_npz(arrays)
    (tmp_path / "ids.npz").write_bytes(data)
    with pytest.raises(DamagedFileError, match="must hold"):
        StoredIds(tmp_path / "ids.npz", sha256_of([data])).read(5)


def test_the_same_ids_are_the_same_bytes():
    ids = np.array(["a", "b"], object)
    assert ids_as_bytes(ids) == ids_as_bytes(ids.copy())
