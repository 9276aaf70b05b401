"""Codes in shards: what they hold, how they go on after a kill, what is refused; and encoding as a dask operation."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.encoding import killed_encoder
from tests.ensemble.killed_trainer import kill_with_files

import ilhash
from ilhash import ILH, HammingIndex
from ilhash.encoding import _shards as shards
from ilhash.storage import DamagedFileError, StorageError
from ilhash.vectors import on_disk

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(digits):
    return ILH(n_bits=20, n_train=300, n_similar=10).fit(*digits)


@pytest.fixture(scope="module")
def written(model, digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "codes"
    ilhash.write_codes(model, digits[0], folder, rows_per_shard=500)
    return folder


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def shards_of(folder):
    return {name: data for name, data in files(folder).items() if name != "manifest.json"}


# ---------------------------------------------------------------------------------------------- what they hold


def test_shards_are_the_codes(model, digits, written):
    codes = ilhash.open_codes(written)
    assert codes.n_bits == 20
    assert codes.shape == (1797, 3)
    assert [len(shard) for shard in codes] == [500, 500, 500, 297]
    wanted = model.transform(digits[0])
    assert np.array_equal(codes.read(), wanted)
    assert np.array_equal(np.asarray(codes), wanted)
    assert np.array_equal(HammingIndex(codes, n_bits=codes.n_bits).search(wanted[:5], 3).distances[:, 0], np.zeros(5))
    manifest = json.loads((written / "manifest.json").read_text())
    assert manifest["layout"] == "uint8, most significant bit first, padding zero"
    assert [entry["rows"] for entry in manifest["shards"]] == [500, 500, 500, 297]


def test_a_source_is_streamed_to_the_same_shards(model, digits, written, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file.create_dataset("X", data=digits[0], chunks=(64, 64), compression="gzip")
    ilhash.write_codes(model, ilhash.open_vectors(tmp_path / "X.h5"), tmp_path / "codes", rows_per_shard=500)
    assert shards_of(tmp_path / "codes") == shards_of(written)


def test_a_second_run_keeps_what_is_there(model, digits, written, tmp_path):
    folder = tmp_path / "codes"
    shutil.copytree(written, folder)
    (folder / "codes-000001.npy").unlink()
    (folder / ".writing-left").write_bytes(b"over")
    untouched = (folder / "codes-000000.npy").stat().st_mtime_ns
    steps = []
    ilhash.write_codes(model, digits[0], folder, rows_per_shard=500, progress=lambda *at: steps.append(at))
    assert files(folder) == files(written)
    assert (folder / "codes-000000.npy").stat().st_mtime_ns == untouched
    assert steps[-1] == (1797, 1797)


def test_codes_are_read_and_never_mapped(model, digits, tmp_path):
    codes = ilhash.write_codes(model, digits[0], tmp_path / "codes")
    assert not on_disk(codes.read())  # a map dies with whoever cuts its file
    assert np.array_equal(codes.read(), model.transform(digits[0]))
    blocks = codes.blocks(1000)
    next(blocks)
    os.truncate(tmp_path / "codes" / "codes-000000.npy", 200)
    with pytest.raises(DamagedFileError, match="must stay as it is while it is read"):
        next(blocks)


# ---------------------------------------------------------------------------------------------- kill -9


def killed_and_resumed(folder, times):
    """Kill an encoder at random moments; resume each time; return how many shards each resumed run found."""
    X = killed_encoder.vectors()
    model = killed_encoder.make_model(X)
    killed_encoder.encode(folder / "wanted", X, model)
    wanted = files(folder / "wanted")
    rng = np.random.default_rng(0)
    found = []
    command = [sys.executable, "-m", "tests.encoding.killed_encoder"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for turn in range(times):
            codes = folder / str(turn)
            print(codes, file=process.stdin, flush=True)
            child = int(process.stdout.readline())
            kill_with_files(child, codes, "codes-*", rng.integers(0, 27), rng)
            assert int(process.stdout.readline()) in (0, -signal.SIGKILL)
            found.append(len(list(codes.glob("codes-*"))))
            killed_encoder.encode(codes, X, model)
            assert files(codes) == wanted
        process.stdin.close()
    return found


def test_what_a_kill_left_before_the_first_manifest_is_removed(model, digits, written, tmp_path):
    folder = tmp_path / "again"
    folder.mkdir()
    (folder / ".writing-0123456789abcdef").write_bytes(b"half a manifest")
    ilhash.write_codes(model, digits[0], folder, rows_per_shard=500)
    assert files(folder) == files(written)


@pytest.mark.skipif(sys.platform == "win32", reason="fork and SIGKILL")
def test_a_killed_encoder_goes_on(tmp_path):
    found = killed_and_resumed(tmp_path, 4)
    assert any(0 < n < 27 for n in found), found  # it was killed at work


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="fork and SIGKILL")
def test_an_encoder_killed_at_twenty_moments_goes_on(tmp_path):
    found = killed_and_resumed(tmp_path, 20)
    assert sum(0 < n < 27 for n in found) > 5, found


def test_what_is_not_finished_is_not_opened(model, digits, tmp_path, monkeypatch):
    honest = shards._write_shard

    def interrupted(folder, new, *others):
        if new.number == 2:
            raise KeyboardInterrupt
        return honest(folder, new, *others)

    monkeypatch.setattr(shards, "_write_shard", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ilhash.write_codes(model, digits[0], tmp_path / "codes", rows_per_shard=500)
    with pytest.raises(ValueError, match="must hold the codes of 1797 rows, got 1000: encoding was not finished"):
        ilhash.open_codes(tmp_path / "codes")


# ---------------------------------------------------------------------------------------------- refused


def test_shards_of_another_model_or_of_other_vectors(model, digits, written):
    X, _ = digits
    before = files(written)
    with pytest.raises(ValueError, match="must hold shards of the same n_bits, got 20 there and 12 here"):
        ilhash.write_codes(model[:12], X, written, rows_per_shard=500)
    with pytest.raises(ValueError, match="must hold shards of the same model"):
        ilhash.write_codes(model[::-1], X, written, rows_per_shard=500)
    with pytest.raises(ValueError, match="must hold shards of the same vectors"):
        ilhash.write_codes(model, X + 1.0, written, rows_per_shard=500)
    with pytest.raises(ValueError, match="must hold shards of the same rows_per_shard, got 500 there and 600 here"):
        ilhash.write_codes(model, X, written, rows_per_shard=600)
    assert files(written) == before


@pytest.mark.parametrize("damage", ["flip", "cut", "wide", "gone", "manifest"])
def test_a_damaged_shard_is_named(model, digits, written, tmp_path, damage):
    folder = tmp_path / "codes"
    shutil.copytree(written, folder)
    file = folder / ("manifest.json" if damage == "manifest" else "codes-000002.npy")
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[-3] ^= 16
        sentence = "codes-000002.npy must have SHA-256 .*: it was altered; remove it and encode again"
    elif damage == "cut":
        del data[-10:]
        sentence = "codes-000002.npy must be as it was written, got a damaged file"
    elif damage == "wide":
        np.save(file, np.zeros((500, 4), np.uint8))
        data = bytearray(file.read_bytes())
        sentence = r"codes-000002.npy must hold codes of shape \(500, 3\), got shape \(500, 4\)"
    elif damage == "manifest":
        data = data.replace(b'"rows": 500', b'"rows": 501', 1)
        sentence = "manifest.json must be as it was written, got content that does not match its checksum"
    else:
        sentence = "must hold the shard codes-000002.npy, got no such file"
    file.unlink()
    if damage != "gone":
        file.write_bytes(data)
    before = files(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=sentence) as refused:
        ilhash.open_codes(folder).read()
    assert "\n" not in str(refused.value)
    if damage != "gone":
        with pytest.raises(ValueError, match=sentence):
            ilhash.write_codes(model, digits[0], folder, rows_per_shard=500)
        assert files(folder) == before


def reseal(folder, change):
    """Change a manifest and compute its checksum again, as whoever forges one does."""
    document = json.loads((folder / "manifest.json").read_text())
    change(document)
    document.pop("checksum")
    checksum = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps({**document, "checksum": checksum}))


FORGED = [
    ("a name of elsewhere", lambda d: d["shards"][1].update(name="../codes-000001.npy")),
    ("another name", lambda d: d["shards"][1].update(name="codes-1.npy")),
    ("twice", lambda d: d["shards"].__setitem__(1, d["shards"][0])),
    ("another order", lambda d: d["shards"].reverse()),
    ("rows", lambda d: d["shards"][0].update(rows=2**60)),
    ("rows of a text", lambda d: d["shards"][0].update(rows="500")),
    ("no rows", lambda d: d["shards"][0].pop("rows")),
    ("a negative number", lambda d: d.update(n_rows=-1)),
    ("bits", lambda d: d.update(n_bits=2**40)),
    ("bits of another width", lambda d: d.update(n_bits=33)),
    ("a layout", lambda d: d.update(layout="int8")),
    ("no list", lambda d: d.update(shards={"a": 1})),
    ("no object", lambda d: d["shards"].__setitem__(0, "codes-000000.npy")),
    ("a checksum", lambda d: d["shards"][0].update(sha256=["x"])),
    ("a model", lambda d: d.update(model={})),
    ("rows of a shard", lambda d: d.update(rows_per_shard=0)),
]


@pytest.mark.parametrize("change", [case[1] for case in FORGED], ids=[case[0] for case in FORGED])
def test_a_forged_manifest_is_one_kind_of_error(written, tmp_path, change):
    folder = Path(shutil.copytree(written, tmp_path / "codes"))
    reseal(folder, change)
    with pytest.raises(StorageError) as refused:
        ilhash.open_codes(folder).read()
    assert "\n" not in str(refused.value)


def test_links_and_pipes_in_a_folder_of_shards(written, tmp_path):
    folder = Path(shutil.copytree(written, tmp_path / "codes"))
    shard = folder / "codes-000001.npy"
    shard.rename(tmp_path / "elsewhere.npy")
    shard.symlink_to(tmp_path / "elsewhere.npy")
    with pytest.raises(DamagedFileError, match="must be a file of its own, got a symbolic link"):
        ilhash.open_codes(folder)
    shard.unlink()
    os.mkfifo(shard)
    with pytest.raises(DamagedFileError, match="must be a regular file, got a pipe"):
        ilhash.open_codes(folder)


# ---------------------------------------------------------------------------------------------- rewritten vectors


class InterruptedRun(Exception):  # noqa: N818 (not an error)
    pass


def write_some(model, source, folder, monkeypatch, number, act=None):
    """Encode until a shard, before which something happens."""
    honest = shards._write_shard

    def acting(place, new, *others):
        if new.number == number:
            if act is None:
                raise InterruptedRun
            act()
        return honest(place, new, *others)

    with monkeypatch.context() as patch:
        patch.setattr(shards, "_write_shard", acting)
        ilhash.write_codes(model, source, folder, rows_per_shard=500)


def test_vectors_that_are_written_while_they_are_encoded(model, digits, tmp_path, monkeypatch):
    path = tmp_path / "X.npy"
    np.save(path, digits[0])
    source = ilhash.open_vectors(path)
    with pytest.raises(ValueError, match="must stay as it is while it is"):
        write_some(model, source, tmp_path / "codes", monkeypatch, 1, lambda: np.save(path, digits[0][::-1] + 1))
    with pytest.raises(ValueError, match="encoding was not finished"):
        ilhash.open_codes(tmp_path / "codes")
    array = digits[0].copy()
    with pytest.raises(ValueError, match="X must stay as it is while it is encoded"):
        write_some(model, array, tmp_path / "other", monkeypatch, 1, lambda: array.__imul__(2.0))


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".map"])
def test_vectors_that_are_written_between_two_runs(model, digits, tmp_path, monkeypatch, suffix):
    X, path = digits[0], tmp_path / f"X{suffix.replace('.map', '.npy')}"

    def write(vectors):
        if suffix == ".parquet":
            pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            parquet.write_table(pyarrow.table({str(j): column for j, column in enumerate(vectors.T)}), path)
        else:
            path.unlink(missing_ok=True)
            np.save(path, vectors)
        return np.load(path, mmap_mode="r") if suffix == ".map" else ilhash.open_vectors(path)

    folder = tmp_path / "codes"
    with pytest.raises(InterruptedRun):
        write_some(model, write(X), folder, monkeypatch, 2)
    begun = files(folder)
    stretches = ((0, 1797), (0, 500), (500, 1000))
    sampled = np.concatenate([np.linspace(a, b - 1, 64).astype(int) for a, b in stretches])
    other = X.copy()
    other[np.setdiff1d(np.arange(1000), sampled)] = 0.0  # what a look at some rows cannot see
    with pytest.raises(ValueError, match=r"shards of the same vectors, got others than those of codes-000000\.npy"):
        ilhash.write_codes(model, write(other), folder, rows_per_shard=500)
    assert files(folder) == begun
    ilhash.write_codes(model, write(X), folder, rows_per_shard=500)  # a copy of the same is fine
    assert np.array_equal(ilhash.open_codes(folder).read(), model.transform(X))


def test_rows_of_an_array_that_differ_between_two_runs(model, digits, tmp_path, monkeypatch):
    X = digits[0]
    with pytest.raises(InterruptedRun):
        write_some(model, X, tmp_path / "codes", monkeypatch, 2)
    other, seen = X.copy(), np.linspace(0, len(X) - 1, 64).astype(int)
    other[np.linspace(0, 499, 64).astype(int)] += 1.0
    other[seen] = X[seen]  # by which vectors are known as a whole
    with pytest.raises(ValueError, match="shards of the same vectors, got others"):
        ilhash.write_codes(model, other, tmp_path / "codes", rows_per_shard=500)


def test_folders_of_something_else(model, digits, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="must be a new directory or one that holds shards"):
        ilhash.write_codes(model, digits[0], tmp_path)
    with pytest.raises(ValueError, match="must be a directory for shards, got the file"):
        ilhash.write_codes(model, digits[0], tmp_path / "mine.txt")
    with pytest.raises(FileNotFoundError, match=r"must be a directory of shards with a manifest\.json, got none"):
        ilhash.open_codes(tmp_path)
    assert files(tmp_path) == {"mine.txt": b"mine"}


def test_vectors_that_the_model_does_not_take(model, digits, tmp_path):
    with pytest.raises(ValueError, match="60 features"):
        ilhash.write_codes(model, digits[0][:, :60], tmp_path / "codes")
    assert not (tmp_path / "codes").exists()


# ---------------------------------------------------------------------------------------------- the command line


def command(*arguments):
    run = subprocess.run([sys.executable, "-m", "ilhash", *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run


def test_commands_take_directories(model, digits, written, tmp_path):
    zarr = pytest.importorskip("zarr")
    X, y = digits
    model.save(tmp_path / "model")
    np.save(tmp_path / "y.npy", y)
    zarr.open(str(tmp_path / "X.zarr"), mode="w", shape=X.shape, chunks=(300, 64), dtype=X.dtype)[:] = X
    out = command("encode", tmp_path / "model", tmp_path / "X.zarr", "-o", tmp_path / "codes", "--rows-per-shard", 500)
    assert "4 shards in" in out.stdout
    assert shards_of(tmp_path / "codes") == shards_of(written)
    command("index", tmp_path / "codes", "-o", tmp_path / "index")
    with HammingIndex.open(tmp_path / "index", writable=False) as index:
        assert (len(index), index.n_bits) == (1797, 20)
    assert "mAP" in command("evaluate", tmp_path / "codes", "--labels", tmp_path / "y.npy", "--n-queries", 50).stdout


# ---------------------------------------------------------------------------------------------- dask


def test_dask_arrays_and_dataframes_are_encoded(model, digits):
    array = pytest.importorskip("dask.array")
    dataframe = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, _ = digits
    wanted = model.transform(X)
    lazy = ilhash.dask_encode(model, array.from_array(X, chunks=(700, 30)))
    assert lazy.chunks == ((700, 700, 397), (3,))
    assert np.array_equal(lazy.compute(scheduler="threads"), wanted)
    frame = pandas.DataFrame(X, index=[f"item {i}" for i in range(len(X))])
    lazy = ilhash.dask_encode(model, dataframe.from_pandas(frame, npartitions=3, sort=False))
    found = lazy.compute(scheduler="threads")
    assert list(found.columns) == ["ilh_byte0", "ilh_byte1", "ilh_byte2"]
    assert list(found.index) == list(frame.index)
    assert np.array_equal(found.to_numpy(), wanted)
    assert found.dtypes.eq(np.uint8).all()


def test_dask_collections_that_do_not_fit(model, digits):
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="X must have the 64 features of the model, got 60"):
        ilhash.dask_encode(model, array.from_array(digits[0][:, :60]))
    with pytest.raises(ValueError, match="X must be 2-D"):
        ilhash.dask_encode(model, array.from_array(digits[0][0]))
    with pytest.raises(TypeError, match="X must be a dask array or a dask dataframe, got ndarray"):
        ilhash.dask_encode(model, digits[0])
