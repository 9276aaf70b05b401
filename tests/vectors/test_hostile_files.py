"""Files that were made to do harm: to run code, to read other files, to wait for ever, to take all memory."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import ilhash
from ilhash.vectors import VectorSource, fingerprint
from ilhash.vectors.io import _directory, _formats, _rows, _zarr, open_vectors, read_matrix, read_sparse, read_vector

X = np.arange(600, dtype=np.float32).reshape(100, 6)
SUFFIXES = [".npy", ".npz", ".csv", ".parquet", ".h5", ".hdf5"]


def refused(words, path, read=open_vectors):
    with pytest.raises(ValueError, match=words) as error:
        read(path)
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------------------------------------- Zarr


def write_zarr_2(folder, **changes):
    """Write a store of format 2 by hand; nothing of Zarr is needed for it."""
    folder.mkdir(parents=True)
    about = {"zarr_format": 2, "shape": [4, 3], "chunks": [4, 3], "dtype": "<f4", "fill_value": 0, "order": "C"}
    about |= {"compressor": None, "filters": None} | changes
    (folder / ".zarray").write_text(json.dumps(about))
    (folder / "0.0").write_bytes(np.arange(12, dtype="<f4").tobytes())
    return folder


def write_zarr_3(folder, **changes):
    folder.mkdir(parents=True)
    about = {
        **{"zarr_format": 3, "node_type": "array", "shape": [4, 3], "data_type": "float32", "fill_value": 0},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        **{"attributes": {}, "storage_transformers": []},
    } | changes
    (folder / "zarr.json").write_text(json.dumps(about))
    (folder / "c" / "0").mkdir(parents=True)
    (folder / "c" / "0" / "0").write_bytes(np.arange(12, dtype="<f4").tobytes())
    return folder


@pytest.mark.parametrize("write", [write_zarr_2, write_zarr_3])
def test_a_store_written_by_hand_is_read(write, tmp_path):
    pytest.importorskip("zarr")
    if write is write_zarr_3 and hasattr(pytest.importorskip("zarr"), "DirectoryStore"):
        pytest.skip("format 3 needs zarr 3")
    assert open_vectors(write(tmp_path / "X.zarr"))[:].tolist() == np.arange(12).reshape(4, 3).tolist()


class Exploit:
    """What a pickle runs: it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


BAD_CODECS = ["pickle", "json2", "msgpack2", "vlen-utf8", "vlen-bytes", "vlen-array", "categorize", "base64", "x"]


@pytest.mark.parametrize("codec", BAD_CODECS)
def test_a_store_of_format_2_runs_no_codec_that_is_not_known(codec, tmp_path):
    import pickle

    pytest.importorskip("zarr")
    for number, changes in enumerate(
        ({"compressor": {"id": codec}}, {"filters": [{"id": codec}]}, {"filters": [{"id": "delta"}, {"id": codec}]})
    ):
        store = write_zarr_2(tmp_path / f"{number}.zarr", **changes)
        (store / "0.0").write_bytes(pickle.dumps(Exploit(tmp_path / "ran")))
        refused("must have 'id', one of", store)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("codec", ["pickle", "numcodecs.pickle", "vlen-utf8", "vlen-bytes", "numcodecs.json2", "x"])
def test_a_store_of_format_3_runs_no_codec_that_is_not_known(codec, tmp_path):
    pytest.importorskip("zarr")
    given = {"name": codec, "configuration": {}}
    refused("must have 'name', one of", write_zarr_3(tmp_path / "a.zarr", codecs=[given]))
    refused("must have 'name', one of", write_zarr_3(tmp_path / "b.zarr", codecs=[codec]))
    for place in ("codecs", "index_codecs"):
        settings = {"chunk_shape": [2, 3], "codecs": ["bytes"], "index_codecs": ["bytes"], place: [given]}
        sharded = [{"name": "sharding_indexed", "configuration": settings}]
        refused("must have 'name', one of", write_zarr_3(tmp_path / f"{place}.zarr", codecs=sharded))
    within = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 3], "codecs": ["bytes"]}}]
    shards = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3], "codecs": within}}]
    refused("must have 'name', one of", write_zarr_3(tmp_path / "twice.zarr", codecs=shards))


@pytest.mark.parametrize("dtype", ["|O", "O", "<U8", "|S4", "<M8[s]", [["a", "<f4"]], "<f16", "|V8", 7, None])
def test_types_that_are_no_numbers_are_refused(dtype, tmp_path):
    pytest.importorskip("zarr")
    refused("must have 'dtype'", write_zarr_2(tmp_path / "X.zarr", dtype=dtype))
    refused("must have 'dtype'", write_zarr_2(tmp_path / "f.zarr", filters=[{"id": "delta", "dtype": dtype}]))
    refused("must have 'data_type'", write_zarr_3(tmp_path / "Y.zarr", data_type=dtype))
    if dtype is not None:
        filters = [{"id": "fixedscaleoffset", "dtype": "<f4", "astype": dtype, "scale": 1, "offset": 0}]
        refused("must have 'astype'", write_zarr_2(tmp_path / "g.zarr", filters=filters))


def test_metadata_that_say_something_else_elsewhere_are_not_looked_at(tmp_path):
    """Consolidated metadata of the group, and a second format beside the first: what was checked is what is read."""
    zarr = pytest.importorskip("zarr")
    group = tmp_path / "X.zarr"
    write_zarr_2(group / "a")
    (group / ".zgroup").write_text('{"zarr_format": 2}')
    evil = json.loads((group / "a" / ".zarray").read_text()) | {"filters": [{"id": "pickle"}], "shape": [8, 3]}
    consolidated = {"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}, "a/.zarray": evil}}
    (group / ".zmetadata").write_text(json.dumps(consolidated))
    assert open_vectors(f"{group}::a").shape == (4, 3)
    assert open_vectors(group)[:].tolist() == np.arange(12).reshape(4, 3).tolist()
    if not hasattr(zarr, "DirectoryStore"):
        both = write_zarr_3(tmp_path / "both.zarr")
        (both / ".zarray").write_text(json.dumps(evil))
        assert open_vectors(both)[:].tolist() == np.arange(12).reshape(4, 3).tolist()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chunks": [2**20, 2**20], "shape": [2**20, 2**20]}, "chunks of at most 1073741824 bytes"),
        ({"chunks": [2**12, 2**12]}, None),
        ({"chunks": [2**13, 2**12], "compressor": {"id": "zlib"}}, "must store at least one byte"),
        ({"shape": [2**40, 3]}, "must store at least one byte for every"),
        ({"shape": [2**62, 2**62]}, "must store at least one byte for every"),
        ({"chunks": [0, 3]}, "'chunks', whole numbers from 1 on"),
        ({"chunks": [4]}, "as many dimensions"),
        ({"shape": [-4, 3]}, "'shape', whole numbers from 0 on"),
        ({"shape": [True, 3]}, "'shape', whole numbers"),
        ({"shape": "ab"}, "'shape', a list"),
        ({"order": "X"}, "'order', one of"),
        ({"dimension_separator": "../"}, "'dimension_separator', one of"),
        ({"zarr_format": 3}, "'zarr_format'"),
        ({"compressor": [1]}, "'compressor', an object"),
        ({"filters": {"id": "delta"}}, "'filters', a list"),
    ],
)
def test_claims_of_a_store_are_bounded(changes, words, tmp_path):
    pytest.importorskip("zarr")
    store = write_zarr_2(tmp_path / "X.zarr", **changes)
    if words is None:
        assert open_vectors(store).shape == (4, 3)
    else:
        refused(words, store)


def test_a_store_leads_to_no_other_file(tmp_path):
    pytest.importorskip("zarr")
    (tmp_path / "secret").write_bytes(bytes(48))
    for link in ("0.0", "deep/0", ".zarray"):
        store = write_zarr_2(tmp_path / f"{link.replace('/', '-')}.zarr")
        (store / link).unlink(missing_ok=True)
        (store / link).parent.mkdir(exist_ok=True)
        (store / link).symlink_to(tmp_path / "secret")
        refused("symbolic link", store)
    group = tmp_path / "group.zarr"
    group.mkdir()
    (group / ".zgroup").write_text('{"zarr_format": 2}')
    (group / "a").symlink_to(write_zarr_2(tmp_path / "outside"))
    refused("must hold one 2-D array, .* got: none", group)
    for key in ("../outside", "a/../../outside", "/../outside", str(tmp_path / "outside")):
        refused("must hold 2-D array", f"{group}::{key}")


def test_attributes_of_a_store_are_bounded(tmp_path):
    pytest.importorskip("zarr")
    store = write_zarr_2(tmp_path / "X.zarr")
    with (store / ".zattrs").open("wb") as file:
        file.truncate(4 << 30)
    refused(r"\.zattrs must have at most 16777216 bytes, got 4294967296", store)


def test_a_pipe_within_a_store_is_not_waited_for(tmp_path):
    pytest.importorskip("zarr")
    store = write_zarr_2(tmp_path / "X.zarr")
    (store / "0.0").unlink()
    os.mkfifo(store / "0.0")
    refused("a pipe or device", store)


# ---------------------------------------------------------------------------------------------- HDF5


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py")


def test_external_storage_and_virtual_datasets_are_refused(h5py, tmp_path):
    """A file of 3 kB that gave the password list as vectors."""
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(200)))
    with h5py.File(tmp_path / "external.h5", "w") as file:
        file.create_dataset("X", (20, 10), "u1", external=[(str(secret), 0, 200)])
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = X
    layout = h5py.VirtualLayout((100, 6), "f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "X", (100, 6))
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    for read in (open_vectors, read_matrix, read_vector):
        refused("must hold the values of 'X' itself, got external storage", tmp_path / "external.h5", read)
        refused("must hold the values of 'X' itself, got a virtual dataset", tmp_path / "virtual.h5", read)


@pytest.mark.parametrize("kind", ["ExternalLink", "SoftLink"])
def test_links_are_not_followed(h5py, kind, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = X
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = h5py.ExternalLink("other.h5", "/X") if kind == "ExternalLink" else h5py.SoftLink("/none")
        file["group"] = h5py.ExternalLink("other.h5", "/")
    for key in ("", "::X", "::group/X"):
        refused("must hold", f"{tmp_path / 'a.h5'}{key}")


def test_names_that_are_no_texts(h5py, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(b"\xff\xfe", data=X)
    refused("must hold a 2-D dataset, got: none", tmp_path / "a.h5")


def test_filters_that_are_loaded_from_elsewhere_are_refused(h5py, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((10, 6))
        made.set_filter(32999, h5py.h5z.FLAG_OPTIONAL, ())
        space = h5py.h5s.create_simple((100, 6))
        h5py.h5d.create(file.id, b"X", h5py.h5t.IEEE_F32LE, space, made)
    refused("behind filters of deflate, .* got filter number 32999", tmp_path / "a.h5")


def test_a_dataset_of_nothing_and_chunks_of_everything(h5py, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (2**40, 6), "f4", chunks=(10, 6))
    refused("must store at least one byte for every 1100", tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("X", (2**30, 2), "f4", chunks=(2**28 + 1, 1))
    refused("chunks of at most 1073741824 bytes", tmp_path / "b.h5")


@pytest.mark.parametrize("version", [None, "latest"])
def test_a_heap_without_end_is_refused(h5py, version, tmp_path):
    """Free space of no length, at which HDF5 goes on for ever."""
    with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
        file["y"] = [f"label {number}" for number in range(40)]
    assert read_vector(tmp_path / "a.h5")[39] == "label 39"
    data = bytearray((tmp_path / "a.h5").read_bytes())
    place = data.index(b"GCOL") + 16
    while int.from_bytes(data[place : place + 2], "little"):
        place += 16 + (int.from_bytes(data[place + 8 : place + 16], "little") + 7) // 8 * 8
    data[place + 8 : place + 16] = bytes(8)
    (tmp_path / "a.h5").write_bytes(data)
    refused("a heap with free space of no length", tmp_path / "a.h5", read_vector)


# ---------------------------------------------------------------------------------------------- no regular file


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".txt"])
def test_what_is_no_regular_file_is_refused_at_once(suffix, tmp_path):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"device{suffix}").symlink_to("/dev/zero")
    (tmp_path / f"loop{suffix}").symlink_to(tmp_path / f"loop{suffix}")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / f"socket{suffix}"))
        for name in ("pipe", "device", "socket"):
            for read in (read_vector, *((open_vectors, read_matrix) if suffix != ".txt" else ())):
                refused(f"must be a regular file, got a {name}", tmp_path / f"{name}{suffix}", read)
    with pytest.raises(OSError, match=r"loop|must be a file"):
        read_vector(tmp_path / f"loop{suffix}")


def test_links_of_the_user_are_followed(tmp_path):
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "b.npy").symlink_to("a.npy")
    assert np.array_equal(open_vectors(tmp_path / "b.npy")[:], X)


# ---------------------------------------------------------------------------------------------- directories


def test_a_disk_is_not_walked(tmp_path, monkeypatch):
    listed = []
    honest = _directory._names_of
    monkeypatch.setattr(_directory, "_names_of", lambda *given: listed.append(given[0]) or honest(*given))
    for folder in range(30):
        (tmp_path / f"{folder:02d}").mkdir()
        for number in range(100):
            (tmp_path / f"{folder:02d}" / f"{number}.txt").touch()
    refused("must hold files of one of .npy, .* got 1001 others before anything else was looked at", tmp_path)
    assert len(listed) < 15


def test_folders_in_a_circle_and_without_end(tmp_path, monkeypatch):
    (tmp_path / "circle").mkdir()
    np.save(tmp_path / "circle" / "a.npy", X)
    (tmp_path / "circle" / "b").symlink_to(tmp_path / "circle")
    refused("a link to a folder that it is in", tmp_path / "circle")
    deep = tmp_path / "deep"
    for _ in range(20):
        deep /= "x"
    deep.mkdir(parents=True)
    refused("at most 16 folders deep", tmp_path / "deep")
    monkeypatch.setattr(_directory, "MOST_ENTRIES", 50)
    (tmp_path / "many").mkdir()
    for number in range(60):
        (tmp_path / "many" / f"{number}.npy").touch()
    refused("at most 50 files and folders", tmp_path / "many")


def test_folders_that_are_linked_are_read(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "elsewhere").mkdir()
    np.save(tmp_path / "elsewhere" / "a.npy", X)
    (tmp_path / "parts" / "one").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "parts" / "two").symlink_to(tmp_path / "elsewhere")
    assert np.array_equal(open_vectors(tmp_path / "parts")[:], np.concatenate([X, X]))


# ---------------------------------------------------------------------------------------------- .npy


def write_header(path, header, values=b"", version=1):
    text = header.encode("latin1") if isinstance(header, str) else header
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + text + values)
    return path


def about(descr="'<f4'", shape="(2, 3)", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


@pytest.mark.parametrize(
    "header",
    [
        about(shape="(1000000000000, 3)"),
        about(shape="(9223372036854775807, 9223372036854775807)"),
        about(shape="(4294967296, 4294967296)"),  # whose product is 0 in 64 bits
        about(shape="(2305843009213693953, 8)"),  # and here 8
        about(shape="(-1, 3)"),
        about(shape="(True, 3)"),
        about(shape=f"({'1, ' * 60})"),
        about(descr="'|O'"),
        about(descr="'<U0'"),
        about(descr="'<U1000000000'"),
        about(descr="[('a', '<f4')]"),
        about(descr="('<f4', (1000000,))"),
        about(descr="'|V8'"),
        about(descr="'<f4' * 9", order="False"),
        about(order="7"),
        "(" * 9000,
        "[" * 300 + "]" * 300,
        "{}",
    ],
)
@pytest.mark.parametrize("read", [open_vectors, read_matrix, read_vector])
def test_headers_that_claim_too_much(header, read, tmp_path):
    refused("x.npy must", write_header(tmp_path / "x.npy", header, bytes(24)), read)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", (tmp_path / "x.npy").read_bytes())
    refused("x.npz must", tmp_path / "x.npz", read)


def test_a_header_is_not_read_without_bound(tmp_path):
    path = write_header(tmp_path / "x.npy", about(), bytes(24), version=2)
    assert read_matrix(path).shape == (2, 3)
    data = bytearray(path.read_bytes())
    data[8:12] = struct.pack("<I", 2**32 - 1)
    path.write_bytes(data)
    refused("a header of 4294967295 bytes", path)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "|u1", "<i2", "|b1", "<f2"])
def test_rows_of_a_file_are_those_of_the_array(order, dtype, tmp_path, monkeypatch):
    monkeypatch.setattr(_rows, "PIECE", 256)
    monkeypatch.setattr(_rows, "AT_ONCE", 512)
    rng = np.random.default_rng(0)
    array = np.asarray(rng.integers(0, 100, (500, 7)), dtype, order=order)
    np.save(tmp_path / "x.npy", array)
    source = open_vectors(tmp_path / "x.npy")
    assert isinstance(source, VectorSource)
    assert source.dtype == array.dtype
    for rows in (rng.permutation(500)[:40], rng.integers(0, 500, 700), np.arange(100, 200), np.arange(0, 500, 3)):
        assert np.array_equal(source[rows], array[rows])
        assert source[rows].dtype == array.dtype
    assert np.array_equal(source[13:402], array[13:402])
    assert np.array_equal(np.concatenate(list(source.blocks(33))), array)
    assert fingerprint(source) == fingerprint(array)


def test_where_there_is_no_call_to_read_at_a_place(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    monkeypatch.delattr(os, "preadv")
    assert np.array_equal(open_vectors(tmp_path / "x.npy")[[5, 99, 3]], X[[5, 99, 3]])


CUT = """
import os, sys, numpy as np, ilhash
from ilhash import methods
source = ilhash.open_vectors(sys.argv[1])
model = methods.LSH(n_bits=16).fit(source)
blocks = source.blocks(1000)
next(blocks)
os.truncate(sys.argv[1], 100_000)
for use in (lambda: next(blocks), lambda: model.transform(source), lambda: source[[0, 49_999]]):
    try:
        use()
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
def test_a_file_that_is_cut_under_us_is_an_error_and_no_signal(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    array = np.random.default_rng(0).normal(size=(50_000, 16)).astype(np.float32)
    if suffix == ".npy":
        np.save(path, array)
    else:
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["X"] = array
    run = subprocess.run([sys.executable, "-c", CUT, path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, (run.returncode, run.stderr)
    assert run.stdout.count("must stay as it is while it is read, got 100000 bytes") == 3
    assert run.returncode != -signal.SIGBUS


def test_a_file_that_is_written_anew_is_not_read_on(tmp_path):
    np.save(tmp_path / "x.npy", X)
    source = open_vectors(tmp_path / "x.npy")
    blocks = source.blocks(10)
    next(blocks)
    np.save(tmp_path / "y.npy", X + 1)
    (tmp_path / "x.npy").write_bytes((tmp_path / "y.npy").read_bytes())
    os.utime(tmp_path / "x.npy", ns=(1, 1))
    for use in (lambda: next(blocks), lambda: source[[1, 2]], lambda: source[:]):
        with pytest.raises(ValueError, match="must stay as it is while it is read"):
            use()


# ---------------------------------------------------------------------------------------------- archives and tables


def test_archives_that_would_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_formats, "LARGE", 10_000_000)
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(about())) + about(shape="(40000, 100000)").encode()
    header = header[:8] + struct.pack("<H", len(header) - 10) + header[10:]
    for method, words in ((zipfile.ZIP_DEFLATED, None), (zipfile.ZIP_LZMA, "must store at least one byte")):
        with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as archive, archive.open("a.npy", "w") as file:
            file.write(header)
            for _ in range(20):
                file.write(bytes(1_000_000))
        assert (tmp_path / "x.npz").stat().st_size < 30_000
        refused(words or "16000000000 bytes are declared", tmp_path / "x.npz")


def test_an_archive_that_lies_about_its_size(tmp_path):
    np.savez(tmp_path / "x.npz", X)
    data = bytearray((tmp_path / "x.npz").read_bytes())
    place = data.index(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 2**32 - 2)
    (tmp_path / "x.npz").write_bytes(data)
    refused("x.npz must", tmp_path / "x.npz")


def test_a_table_of_one_value_is_not_unfolded(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": pyarrow.repeat(7, 40_000_000)})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=40_000_000)
    assert (tmp_path / "x.parquet").stat().st_size < 400_000
    refused("must store at least one byte for every", tmp_path / "x.parquet", read_vector)
    assert open_vectors(tmp_path / "x.parquet")[39_999_990:].tolist() == [[7]] * 10  # batch by batch it is harmless


def test_a_table_that_lacks_rows(tmp_path):
    """More rows are declared than the pages hold: no row is made up of what memory held before."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": np.arange(100.0)}), tmp_path / "x.parquet")
    source = open_vectors(tmp_path / "x.parquet")
    source.groups.rows[-1] = 150
    source.shape = (150, 1)
    with pytest.raises(ValueError, match="must hold the 150 rows that it declares, got"):
        list(source.blocks(1000))
    with pytest.raises(ValueError, match="must hold the 150 rows that it declares, got fewer"):
        source.take(np.array([5, 120]))


def test_sparse_matrices_are_checked(tmp_path):
    honest = scipy.sparse.random(30, 30, 0.2, "csr", random_state=0)
    for kind in ("csr", "csc", "coo"):
        scipy.sparse.save_npz(tmp_path / f"{kind}.npz", honest.asformat(kind))
        assert (read_sparse(tmp_path / f"{kind}.npz") != honest).nnz == 0
    parts = {"data": honest.data, "indices": honest.indices, "indptr": honest.indptr, "shape": honest.shape}
    parts["format"] = np.array(b"csr")
    for name, wrong in {
        "indices": honest.indices + 30,
        "indptr": honest.indptr + 2**30,
        "shape": np.array([2**40, 2**40]),
        "format": np.array(b"xyz"),
        "data": honest.data[:3],
    }.items():
        np.savez(tmp_path / "bad.npz", **{**parts, name: wrong})
        refused("bad.npz must", tmp_path / "bad.npz", read_sparse)
        refused("bad.npz must", tmp_path / "bad.npz", open_vectors)
    np.savez(tmp_path / "bad.npz", **{**parts, "data": np.array([None])})
    refused("pickled objects", tmp_path / "bad.npz", read_sparse)
    refused("pickled objects", tmp_path / "bad.npz", open_vectors)


@pytest.mark.parametrize(
    ("kind", "shape", "words"),
    [("coo", (2**40, 4), "pointers to rows"), ("csr", (3, 2**40), "at most 16777216 columns"), ("csr", (3, 2**24), "")],
)
def test_sparse_matrices_of_few_bytes_may_not_be_of_any_size(tmp_path, kind, shape, words):
    matrix = scipy.sparse.coo_array(([1.0, 2.0], ([0, 2], [3, 1])), shape=shape).asformat(kind)
    scipy.sparse.save_npz(tmp_path / "X.npz", matrix)
    if words:
        refused(words, tmp_path / "X.npz", open_vectors)
    else:
        assert open_vectors(tmp_path / "X.npz").shape == shape


def test_sparse_matrices_are_opened_as_rows(tmp_path):
    honest = scipy.sparse.random(30, 20, 0.2, "csr", random_state=0)
    for kind in ("csr", "csc", "coo"):
        scipy.sparse.save_npz(tmp_path / "X.npz", honest.asformat(kind))
        rows = open_vectors(tmp_path / "X.npz")
        assert (rows.matrix != scipy.sparse.csr_array(honest)).nnz == 0
    refused("must hold a dense array here, got a sparse matrix", tmp_path / "X.npz", read_matrix)


def test_a_csv_file_is_neither_an_address_nor_compressed(tmp_path):
    (tmp_path / "x.csv").write_bytes(zlib.compress(b"1,2\n" * 1000))
    refused("UTF-8|number", tmp_path / "x.csv", read_matrix)
    assert _zarr.MOST_FILES > 10**6
    with pytest.raises(FileNotFoundError):
        read_matrix("http://localhost/x.csv")


def test_models_are_trained_on_files_as_on_arrays(digits, tmp_path):
    np.save(tmp_path / "x.npy", digits[0])
    source = open_vectors(tmp_path / "x.npy")
    small = {"n_bits": 6, "n_train": 200, "n_similar": 10}
    wanted, model = (ilhash.ILH(**small).fit(vectors, digits[1]) for vectors in (digits[0], source))
    assert [f.weights.tobytes() for f in model.functions_] == [f.weights.tobytes() for f in wanted.functions_]
