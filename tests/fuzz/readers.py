"""Forged files of vectors, labels, ids and codes: real ones of every format, with anything in them changed.

python -m tests.fuzz.readers --seconds 60 --seed 1
"""

import functools
import hashlib
import io
import json
import shutil
import struct
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import scipy.sparse
import zarr
from tests.fuzz import _mutations as mutations
from tests.fuzz._harness import main

import ilhash
from ilhash import methods
from ilhash.vectors import SparseRows, VectorSource
from ilhash.vectors.io import open_vectors, read_lines, read_matrix, read_sparse, read_vector

ALLOWED = (ValueError, ImportError, OSError)
MOST_READ = 1 << 24  # bytes of vectors that a case reads
X = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
Y = np.arange(40) % 5


# ---------------------------------------------------------------------------------------------- what is done with them


def attempt(folder):
    """Read what is there as whatever it may be; every error must be one sentence."""
    (path,) = [path for path in folder.iterdir() if path.name.startswith("forged")]
    worked, refused = [], None
    for read in _readers(path):
        try:
            worked.append(read(path))
        except ALLOWED as error:
            if "\n" in str(error):
                raise RuntimeError(f"an error must be one sentence, got {error}") from error
            refused = error
    if refused is not None:
        raise refused
    return "/".join(worked)


def _readers(path):
    if path.name.startswith("forged-codes"):
        return [_codes]
    if path.name.startswith("forged-sparse"):
        return [_sparse]
    return [_vectors, *(() if path.suffix in (".zarr", "") else (_labels, _matrix))]


def _vectors(path):
    source = open_vectors(path)
    n, width = source.shape
    source.dtype.newbyteorder("=")
    if isinstance(source, VectorSource) and source.nbytes > MOST_READ:
        next(iter(source.blocks(100)))
        return "large"
    for block in source.blocks(7) if isinstance(source, VectorSource) else [source]:
        if block.shape[1] != width or block.dtype.kind not in "biuf":
            raise RuntimeError(f"a block must have {width} columns of numbers, got {block.shape} of {block.dtype}")
    source[np.array([n - 1, 0])]
    return "vectors"


def _labels(path):
    if path.suffix == ".txt":
        read_lines(path)
    return f"labels {read_vector(path).ndim}"


def _matrix(path):
    return f"matrix {read_matrix(path).ndim}" if path.suffix != ".txt" else "text"


def _codes(path):
    codes = ilhash.open_codes(path)
    packed = codes.read()
    if packed.shape != codes.shape or packed.dtype != np.uint8:
        raise RuntimeError(f"codes must have shape {codes.shape}, got {packed.shape} of {packed.dtype}")
    return "codes"


def _sparse(path):
    read_sparse(path).tocsr().sum()
    rows = open_vectors(path)
    if isinstance(rows, SparseRows):
        rows[np.array([len(rows) - 1, 0])].squared_norms()
    return "sparse"


# ---------------------------------------------------------------------------------------------- how they are made


def forge(rng, folder):
    """Write a file of which some things were changed."""
    name = rng.choice(sorted(KINDS))
    done = KINDS[name](rng, folder)
    (path,) = [path for path in folder.iterdir() if path.name.startswith("forged") and path.suffix != ".json"]
    if rng.random() < 0.04 and path.is_file():
        done = f"{done}; {mutations.other_file(rng, path)}"
    return f"{name}: {done}"


def damaged(rng, data):
    """Return bytes that were changed here and there, cut, or put together anew; and in words how."""
    how = rng.choice(["flip", "flip", "flips", "cut", "longer", "word", "word", "word", "repeat", "zeros"])
    data = bytearray(data)
    if how == "flips":
        for _ in range(rng.choice([2, 5, 30])):
            data = bytearray(mutations.flipped(rng, bytes(data)))
    elif how == "word":  # lengths, offsets and counts are words
        size, place = rng.choice([1, 2, 4, 8]), rng.randrange(max(1, len(data) - 8))
        number = rng.choice(mutations.NUMBERS) & (256**size - 1)
        data[place : place + size] = number.to_bytes(size, rng.choice(["little", "big"]))
    elif how == "repeat":
        begin, end = sorted(rng.randrange(len(data)) for _ in range(2))
        data = data[:end] + data[begin:]
    elif how == "zeros":
        begin = rng.randrange(len(data))
        data[begin : begin + rng.choice([1, 4, 100])] = bytes(min(rng.choice([1, 4, 100]), len(data) - begin))
    else:
        data = bytearray(mutations.flipped(rng, bytes(data), how))
    return bytes(data), how


def npy_header(rng):
    """Return a header that may be anything, with values behind it."""
    descr = rng.choice(
        ["'<f4'"] * 6 + ["'>f8'", "'|u1'", "'|O'", "'<U5'", "'|S3'", "'<U0'", "'|V7'", "'<M8[s]'", "'<f16'"]
    )
    descr = rng.choice(
        [descr] * 9 + ["[('a', '<f4')]", "('<f4', (3,))", "'<c8'", "None", "7", "'<x4'", "[('a', '|O')]"]
    )
    lengths = [rng.choice([6, 40, *mutations.NUMBERS]) for _ in range(rng.choice([0, 1, 2, 2, 2, 2, 3, 33]))]
    shape = rng.choice([tuple(lengths)] * 4 + [(40, 6)] * 4 + [list(lengths), "x", (4.5, 2), (True, 6)])
    order = rng.choice(["False"] * 4 + ["True", "1", "None"])
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    text = rng.choice([text] * 9 + ["(" * 5000, text[:-9], text * 3, "__import__('os').system('true')", "{}", "[" * 99])
    version = rng.choice([1, 1, 1, 2, 3, 4, 0])
    text = text.encode("latin1") + b" " * rng.randrange(64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", rng.choice([len(text)] * 9 + [0, 65535]))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + X.tobytes()[: rng.choice([960] * 5 + [0, 100, 959])]


def _npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def forge_npy(rng, folder):
    if rng.random() < 0.6:
        data, done = npy_header(rng), "header"
    else:
        array, how = mutations.other_array(rng, rng.choice([X, Y, X.astype("f8").T]))
        data, done = damaged(rng, _npy_bytes(array if rng.random() < 0.9 else np.array(["a", "bc"])))
        done = f"{how}, {done}"
    (folder / "forged.npy").write_bytes(data)
    return done


def forge_npz(rng, folder):
    kind = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for number in range(rng.choice([1, 1, 1, 2])):
            content = npy_header(rng) if rng.random() < 0.5 else _npy_bytes(X)
            archive.writestr(rng.choice([f"arr_{number}.npy", "../x.npy", "/a.npy", "x"]), content)
        if rng.random() < 0.05:
            archive.writestr("zeros.npy", _npy_bytes(np.zeros(1 << 22)))
    data, done = damaged(rng, buffer.getvalue()) if rng.random() < 0.7 else (buffer.getvalue(), "whole")
    (folder / "forged.npz").write_bytes(data)
    return done


def forge_sparse(rng, folder):
    matrix = scipy.sparse.random(20, 20, 0.2, rng.choice(["csr", "csc", "coo"]), random_state=0)
    buffer = io.BytesIO()
    scipy.sparse.save_npz(buffer, matrix)
    with np.load(io.BytesIO(buffer.getvalue())) as archive:
        arrays = dict(archive)
    name = rng.choice(sorted(arrays))
    done = "format"
    if name != "format":
        arrays[name], done = mutations.other_array(rng, arrays[name])
    else:
        arrays[name] = np.array(rng.choice([b"csr", b"csc", b"coo", b"dia", b"bsr", "csr", b"", b"xyz", 7]))
    np.savez(folder / "forged-sparse.npz", **arrays)
    return f"{name} {done}"


def forge_text(rng, folder):
    cells = [
        "1",
        "2.5",
        "-3e5",
        "nan",
        "inf",
        "1e999",
        "",
        " ",
        "a",
        '"',
        '"a,b"',
        "\x00",
        "é",
        "1_0",
        "0x1",
        "9" * 400,
    ]
    lines = [
        ",".join(rng.choice(cells[:5] if rng.random() < 0.9 else cells) for _ in range(rng.choice([1, 3, 3, 3])))
        for _ in range(30)
    ]
    lines = rng.choice([lines, ["a,b,c", *lines], ["id", *lines], ['"', *lines], ["1," * 50_000]])
    data = rng.choice(["\n", "\r\n", "\r", "\n\n"]).join(lines).encode()
    data = rng.choice([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b"]) + data if rng.random() < 0.3 else data
    data, done = damaged(rng, data) if rng.random() < 0.5 and data else (data, "lines")
    (folder / f"forged{rng.choice(['.csv', '.csv', '.txt'])}").write_bytes(data)
    return done


@functools.cache
def parquet_bytes(kind):
    """Return a table in one of some forms."""
    numbers = {f"x{j}": X[:, j] for j in range(6)}
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), 6)
    tables = {
        "columns": (pyarrow.table(numbers), {}),
        "lists": (pyarrow.table({"v": X.tolist()}), {"compression": "zstd"}),
        "fixed": (pyarrow.table({"v": lists}), {"row_group_size": 9, "compression": "none"}),
        "texts": (pyarrow.table({"v": [f"label {y}" for y in Y]}), {}),
        "dictionary": (pyarrow.table({"v": pyarrow.array(Y.astype(str)).dictionary_encode()}), {"compression": "gzip"}),
        "plain": (pyarrow.table(numbers), {"use_dictionary": False, "data_page_version": "2.0", "compression": "lz4"}),
        "pandas": (
            pyarrow.table(numbers).replace_schema_metadata({"pandas": '{"index_columns": ["x1", {"a": 1}]}'}),
            {},
        ),
        "wrong pandas": (pyarrow.table(numbers).replace_schema_metadata({"pandas": "[1, 2"}), {}),
    }
    buffer = io.BytesIO()
    table, options = tables[kind]
    parquet.write_table(table, buffer, **options)
    return buffer.getvalue()


def forge_parquet(rng, folder):
    kind = rng.choice(["columns", "lists", "fixed", "texts", "dictionary", "plain", "pandas", "wrong pandas"])
    data = parquet_bytes(kind)
    if rng.random() < 0.5:  # in the footer, where all is described
        length = struct.unpack("<I", data[-8:-4])[0]
        footer, done = damaged(rng, data[-8 - length : -8])
        size = struct.pack("<I", len(footer) if rng.random() < 0.9 else rng.choice([0, 1, 2**31, 2**32 - 1]))
        data, done = data[: -8 - length] + footer + size + b"PAR1", f"footer {done}"
    else:
        data, done = damaged(rng, data)
    (folder / "forged.parquet").write_bytes(data)
    return f"{kind} {done}"


@functools.cache
def hdf5_bytes(kind):
    """Return a file of one of some layouts."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver="latest" if "latest" in kind else None) as file:
        if "one piece" in kind:
            file["X"] = X
        elif "chunks" in kind:
            file.create_dataset("X", data=X, chunks=(7, 6), compression="gzip", shuffle=True, fletcher32=True)
        elif "lzf" in kind:
            file.create_dataset("X", data=X, chunks=(7, 3), compression="lzf", maxshape=(None, 6))
        elif "texts" in kind:
            file["y"] = [f"label {y}" for y in Y]
        else:
            group = file.create_group("a/b")
            group["X"], file["y"] = X, Y
            file["soft"], file["external"] = h5py.SoftLink("/a/b/X"), h5py.ExternalLink("other.h5", "X")
            file["hard"] = group
    return buffer.getvalue()


def forge_hdf5(rng, folder):
    kind = rng.choice(
        ["one piece", "chunks", "lzf", "texts", "groups", "latest one piece", "latest chunks", "latest lzf"]
    )
    data, done = damaged(rng, hdf5_bytes(kind))
    (folder / "forged.h5").write_bytes(data)
    return f"{kind} {done}"


@functools.cache
def zarr_files(version, kind):
    """Return the files of a store, by their names in it."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"shape": X.shape, "chunks": (8, 6), "dtype": X.dtype, "zarr_format": version}
        if kind == "group":
            zarr.open_group(folder, mode="w", zarr_format=version).create_array(
                "X", shape=X.shape, chunks=(8, 6), dtype="f4"
            )[:] = X
        elif kind == "shards" and version == 3:
            zarr.create_array(folder, shape=X.shape, chunks=(4, 6), shards=(8, 6), dtype="f4", overwrite=True)[:] = X
        else:
            zarr.open(folder, mode="w", **options)[:] = X
        return {
            str(file.relative_to(folder)): file.read_bytes()
            for file in sorted(Path(folder).rglob("*"))
            if file.is_file()
        }


def forge_zarr(rng, folder):
    kind = rng.choice(["array", "array", "group", "shards"])
    files = dict(zarr_files(rng.choice([2, 3]), kind))
    documents = [name for name in files if Path(name).name in ("zarr.json", ".zarray", ".zgroup", ".zmetadata")]
    name = rng.choice(documents if rng.random() < 0.75 else sorted(files))
    if name in documents and rng.random() < 0.85:
        document, done = json.loads(files[name]), []
        for _ in range(rng.choice([1, 1, 2])):
            document, how = mutations.mutated(rng, document)
            done.append(how)
        files[name], done = mutations.to_json(document), "; ".join(done)
    else:
        files[name], done = damaged(rng, files[name])
    store = folder / "forged.zarr"
    for own, data in files.items():
        (store / own).parent.mkdir(parents=True, exist_ok=True)
        (store / own).write_bytes(data)
    if rng.random() < 0.05:
        done = f"{done}; {mutations.other_file(rng, store / rng.choice(sorted(files)))}"
    return f"{kind} {name}: {done}"


@functools.cache
def code_files():
    """Return the files of shards and of a file of codes, by their names."""
    model = methods.LSH(n_bits=20).fit(X)
    with tempfile.TemporaryDirectory() as folder:
        ilhash.write_codes(model, X, Path(folder) / "shards", rows_per_shard=15)
        ilhash.write_codes(model, X, Path(folder) / "codes.npy")
        return {
            str(file.relative_to(folder)): file.read_bytes()
            for file in sorted(Path(folder).rglob("*"))
            if file.is_file()
        }


def _sealed(document):
    document = json.loads(json.dumps(document))  # all names are texts
    bare = {name: value for name, value in document.items() if name != "checksum"}
    checksum = hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()
    return {**document, "checksum": checksum}


def forge_codes(rng, folder):
    shards = rng.random() < 0.6
    where = folder / ("forged-codes" if shards else "forged-codes.npy")
    files = {name: data for name, data in code_files().items() if name.startswith("shards") == shards}
    name = rng.choice(sorted(files))
    if name.endswith(".json"):
        document, done = mutations.mutated(rng, json.loads(files[name]))
        document = _sealed(document) if isinstance(document, dict) else document
        files[name] = mutations.to_json(document)
    else:
        files[name], done = damaged(rng, files[name])
        if shards and rng.random() < 0.7:
            manifest = json.loads(files["shards/manifest.json"])
            for entry in manifest["shards"]:
                entry["sha256"] = hashlib.sha256(files[f"shards/{entry['name']}"]).hexdigest()
            files["shards/manifest.json"] = json.dumps(_sealed(manifest)).encode()
    for own, data in files.items():
        target = where / Path(own).name if shards else folder / own.replace("codes.npy", "forged-codes.npy")
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
    if shards and rng.random() < 0.05:
        done = f"{done}; {mutations.other_file(rng, where / rng.choice(['manifest.json', 'codes-000001.npy']))}"
    return f"{name} {done}"


def forge_directory(rng, folder):
    parts = folder / "forged"
    parts.mkdir()
    for number in range(rng.choice([1, 3])):
        (parts / f"{number}.npy").write_bytes(npy_header(rng) if rng.random() < 0.3 else _npy_bytes(X))
    if rng.random() < 0.5:
        (parts / "more").symlink_to(rng.choice([parts, "/nowhere", "/dev", folder, "."]))
    if rng.random() < 0.3:
        shutil.copyfile(parts / "0.npy", parts / rng.choice(["x.txt", "x.parquet", "_x", "x.npz"]))
    return "parts"


KINDS = {
    **{"npy": forge_npy, "npz": forge_npz, "sparse": forge_sparse, "text": forge_text, "parquet": forge_parquet},
    **{"parquet again": forge_parquet, "hdf5": forge_hdf5, "hdf5 again": forge_hdf5, "zarr": forge_zarr},
    **{"zarr again": forge_zarr, "codes": forge_codes, "directory": forge_directory},
}

if __name__ == "__main__":
    main("tests.fuzz.readers")
