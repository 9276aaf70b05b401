"""Codes in one .npy file: the file and the number of bits beside it appear in one step, or not at all."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import ilhash
from ilhash import methods
from ilhash.storage import DamagedFileError, StorageError


@pytest.fixture(scope="module")
def model(digits):
    return methods.LSH(n_bits=60).fit(digits[0])


@pytest.fixture
def written(model, digits, tmp_path):
    ilhash.write_codes(model, digits[0], tmp_path / "codes.npy")
    return tmp_path / "codes.npy"


def test_codes_and_their_bits_come_back(model, digits, written):
    codes = ilhash.open_codes(written)
    assert (codes.n_bits, codes.shape, len(codes)) == (60, (1797, 8), 1797)
    assert np.array_equal(codes.read(), model.transform(digits[0]))
    assert np.array_equal(np.load(written), codes.read())
    assert np.array_equal(codes.take(np.array([3, 7, 1796])), codes.read()[[3, 7, 1796]])
    assert [len(block) for block in codes.blocks(1000)] == [1000, 797]
    about = json.loads((written.parent / "codes.npy.json").read_text())
    assert (about["n_bits"], about["rows"], about["model"]) == (60, 1797, model.fingerprint())
    assert {file.name for file in written.parent.iterdir()} == {"codes.npy", "codes.npy.json"}


def test_what_is_there_is_replaced_only_if_asked(model, digits, written):
    with pytest.raises(ValueError, match=r"path must be a new file, got .*which exists"):
        ilhash.write_codes(model, digits[0], written)
    short = methods.LSH(n_bits=16).fit(digits[0])
    assert ilhash.write_codes(short, digits[0], written, replace=True).n_bits == 16


def test_what_is_stated_beside_codes_is_sealed(written):
    beside = written.with_name("codes.npy.json")
    honest = beside.read_text()
    for old, new in (('"n_bits": 60', '"n_bits": 61'), ("checksum", "checksun"), ('"format"', '"formal"')):
        assert old in honest
        beside.write_text(honest.replace(old, new))
        with pytest.raises(StorageError):
            ilhash.open_codes(written)
    about = json.loads(honest)
    old = {name: about[name] for name in ("n_bits", "layout", "rows", "model", "sha256")}  # as it was before
    beside.write_text(json.dumps(old))
    codes = ilhash.open_codes(written)
    assert (codes.n_bits, codes.model) == (60, about["model"])
    for wrong in ({"rows": 5}, {"sha256": 7}, {"n_bits": "60"}, {"n_bits": 0}, {"n_bits": 2**40}):
        beside.write_text(json.dumps({**old, **wrong}))
        with pytest.raises(StorageError):
            ilhash.open_codes(written)


def test_a_file_written_while_it_is_encoded_leaves_nothing(model, digits, tmp_path):
    np.save(tmp_path / "X.npy", digits[0])
    source = ilhash.open_vectors(tmp_path / "X.npy")

    def rewrite(done, total):
        np.save(tmp_path / "X.npy", digits[0] + 1)

    with pytest.raises(ValueError, match="must stay as it is"):
        ilhash.write_codes(model, source, tmp_path / "codes.npy", progress=rewrite)
    assert [file.name for file in tmp_path.iterdir()] == ["X.npy"]


def test_codes_are_never_read_with_the_bits_of_others(model, digits, written):
    other = written.with_name("other.npy")
    ilhash.write_codes(methods.LSH(n_bits=58).fit(digits[0]), digits[0], other)
    other.with_name("other.npy.json").replace(written.with_name("codes.npy.json"))
    with pytest.raises(DamagedFileError, match=r"codes\.npy must have SHA-256 .* it was altered"):
        ilhash.open_codes(written).read()
    written.with_name("codes.npy.json").unlink()
    with pytest.raises(ValueError, match=r"must have its number of bits stated in codes\.npy\.json beside it"):
        ilhash.open_codes(written)
    assert ilhash.open_codes(written, 60).n_bits == 60


SCRIPT = """
import os, resource, signal, sys, numpy as np, ilhash
from ilhash import datasets, methods
X = datasets.load("digits").X
model = methods.LSH(n_bits=60).fit(X)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
ilhash.write_codes(model, X, sys.argv[1], replace=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are POSIX")
@pytest.mark.parametrize("old", [False, True])
def test_a_full_disk_is_an_error_and_leaves_what_was_there(model, digits, tmp_path, old):
    path = tmp_path / "codes.npy"
    if old:
        ilhash.write_codes(model, digits[0][:50], path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    run = subprocess.run([sys.executable, "-c", SCRIPT, path], capture_output=True, text=True, check=False)
    assert "File too large" in run.stderr
    assert run.returncode == 1  # an error, not a signal
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("moment", ["stage", "replace"])
def test_a_killed_encoder_leaves_the_old_codes_or_none(model, digits, tmp_path, moment):
    """Killed after the codes are written, and between the two renames: never codes with the wrong number of bits."""
    path = tmp_path / "codes.npy"
    ilhash.write_codes(methods.LSH(n_bits=58).fit(digits[0]), digits[0], path)
    child = os.fork()
    if child == 0:
        from ilhash.storage import _durable

        honest = getattr(_durable if moment == "stage" else os, moment)

        def last(*arguments):
            honest(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(_durable if moment == "stage" else _durable.os, moment, last)
        ilhash.write_codes(model, digits[0], path, replace=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    if moment == "stage":
        assert ilhash.open_codes(path).read().shape == (1797, 8)
        assert ilhash.open_codes(path).n_bits == 58
    else:
        with pytest.raises(DamagedFileError, match="it was altered"):
            ilhash.open_codes(path).read()


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".h5", ".csv"])
def test_codes_in_other_files_of_numbers_are_read_too(written, suffix, tmp_path):
    codes = np.load(written)
    path = tmp_path / f"other{suffix}"
    if suffix == ".npz":
        np.savez(path, codes=codes)
    elif suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(
            pytest.importorskip("pyarrow").table({"c": list(codes)}), path
        )
    elif suffix == ".h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["codes"] = codes
    else:
        np.savetxt(path, codes, fmt="%d", delimiter=",")
        with pytest.raises(ValueError, match="uint8"):  # numbers of a text are floats
            ilhash.open_codes(path, 60)
        return
    assert np.array_equal(ilhash.open_codes(path, 60).read(), codes)


def test_rows_that_do_not_ascend_are_refused(written):
    with pytest.raises(ValueError, match="rows must ascend between 0 and 1796"):
        ilhash.open_codes(written).take(np.array([5, 3]))
