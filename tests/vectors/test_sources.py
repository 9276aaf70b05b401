"""Vectors that stay in their files: Parquet, HDF5, Zarr and directories of them give what the array gives."""

import pickle

import joblib
import numpy as np
import pytest

import ilhash
from ilhash import ILH, HoldOut, grow, methods, prune
from ilhash.ensemble._drawn_rows import DrawnRows
from ilhash.vectors import SelectedRows, VectorSource, fingerprint
from ilhash.vectors.io import _chunked, _parquet

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")

SMALL = {"n_bits": 6, "n_train": 200, "n_similar": 10}


def write_lists(path, X, rows=100, name="vector"):
    kind = pyarrow.list_(pyarrow.from_numpy_dtype(X.dtype), X.shape[1])
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), type=kind)
    table = pyarrow.table({"id": np.arange(len(X)), name: column})
    parquet.write_table(table, path, row_group_size=rows)
    return f"{path}::{name}"


def write_columns(path, X, rows=100):
    table = pyarrow.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    parquet.write_table(table, path, row_group_size=rows)
    return path


def write_h5(path, X, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, **options)
        file.create_dataset("y", data=np.arange(len(X)))
    return path


def write_zarr(path, X, rows=64, version=2):
    option = {"zarr_format": version} if int(zarr.__version__.split(".")[0]) >= 3 else {}
    if version == 3 and not option:
        pytest.skip("format 3 needs zarr 3")
    array = zarr.open(str(path), mode="w", shape=X.shape, chunks=(rows, X.shape[1]), dtype=X.dtype, **option)
    array[:] = X
    return path


def write_zarr_group(path, X):
    group = zarr.open_group(str(path), mode="w")
    create = group.create_array if hasattr(group, "create_array") else group.create_dataset
    create("X", shape=X.shape, chunks=(50, X.shape[1]), dtype=X.dtype)[:] = X
    create("y", shape=(len(X),), chunks=(50,), dtype="i8")[:] = np.arange(len(X))
    return path


def write_parts(folder, X, suffix, write, cuts=(0, 500, 510, 1300)):
    folder.mkdir()
    (folder / "_SUCCESS").write_text("")
    for number, (first, last) in enumerate(zip(cuts, [*cuts[1:], len(X)], strict=True)):
        write(folder / f"part-{number}{suffix}", X[first:last])
    return folder


WRITERS = {
    "parquet of lists": lambda folder, X: write_lists(folder / "X.parquet", X),
    "parquet of columns": lambda folder, X: write_columns(folder / "X.parquet", X),
    "parquet in one group": lambda folder, X: write_lists(folder / "X.parquet", X, rows=10**6),
    "h5 in one piece": lambda folder, X: write_h5(folder / "X.h5", X),
    "h5 in chunks": lambda folder, X: write_h5(folder / "X.h5", X, chunks=(64, 16), compression="gzip"),
    "zarr 2": lambda folder, X: write_zarr(folder / "X.zarr", X),
    "zarr 3": lambda folder, X: write_zarr(folder / "X.zarr", X, version=3),
    "zarr group": lambda folder, X: write_zarr_group(folder / "X.zarr", X),
    "directory of npy": lambda folder, X: write_parts(folder / "parts", X, ".npy", np.save),
    "directory of parquet": lambda folder, X: write_parts(folder / "parts", X, ".parquet", write_columns),
    "directory of h5": lambda folder, X: write_parts(
        folder / "parts", X, ".h5", lambda path, part: write_h5(path, part, chunks=True)
    ),
    "directory of zarr": lambda folder, X: write_parts(folder / "parts", X, ".zarr", write_zarr),
}


SELECTED = "every other row of "


@pytest.fixture(params=[*WRITERS, f"{SELECTED}zarr 2", f"{SELECTED}directory of npy", SELECTED], scope="module")
def source(request, digits, tmp_path_factory):
    X, folder = digits[0], tmp_path_factory.mktemp("source")
    if not request.param.startswith(SELECTED):
        return ilhash.open_vectors(WRITERS[request.param](folder, X))
    twice = np.repeat(X, 2, axis=0)
    np.save(folder / "map.npy", twice)
    written = WRITERS.get(request.param.removeprefix(SELECTED))
    base = (
        np.load(folder / "map.npy", mmap_mode="r") if written is None else ilhash.open_vectors(written(folder, twice))
    )
    return SelectedRows(base, np.arange(0, len(twice), 2))


# ---------------------------------------------------------------------------------------------- as the array


def test_rows_are_those_of_the_array(digits, source):
    X, _ = digits
    assert source.shape == X.shape
    assert source.dtype == X.dtype
    rng = np.random.default_rng(0)
    for rows in (
        rng.permutation(len(X))[:300],
        rng.integers(0, len(X), 50),  # repeated
        np.arange(len(X)),
        np.array([0, len(X) - 1]),
        np.array([], np.int64),
    ):
        assert np.array_equal(source[rows], X[rows])
    for part in (slice(None), slice(90, 720), slice(505, 506), slice(1700, 5000), slice(20, 10), slice(3, 900, 7)):
        assert np.array_equal(source[part], X[part])
    assert np.array_equal(source[-1], X[-1])
    assert fingerprint(source) == fingerprint(X)


def test_streams_are_in_bounded_blocks(digits, source):
    X, _ = digits
    if not isinstance(source, VectorSource):
        pytest.skip("a memory map")
    blocks = list(source.blocks(37, 11, 1500))
    assert max(map(len, blocks)) <= 37
    assert min(map(len, blocks)) > 0
    assert np.array_equal(np.concatenate(blocks), X[11:1500])
    wanted = np.arange(3, 1790, 13)
    assert np.array_equal(np.concatenate(list(source.pick(wanted))), X[wanted])
    with pytest.raises(IndexError, match="rows must lie between 0 and 1796"):
        source.take(np.array([5, 1797]))


def test_fit_and_encode_give_the_bytes_of_the_array(digits, source):
    X, y = digits
    wanted, model = ILH(**SMALL).fit(X, y), ILH(**SMALL).fit(source, y)
    assert [f.weights.tobytes() for f in model.functions_] == [f.weights.tobytes() for f in wanted.functions_]
    assert np.array_equal(model.transform(source), wanted.transform(X))
    model.add_bits(2, X, y)  # the fingerprint is that of the array
    linear = methods.ITQ(n_bits=6, n_train=500).fit(source)
    assert np.array_equal(linear.transform(source), methods.ITQ(n_bits=6, n_train=500).fit(X).transform(X))


def test_sources_travel_by_name(digits, source):
    X, _ = digits
    if not isinstance(source, VectorSource):
        pytest.skip("a memory map")
    data = pickle.dumps(source)
    assert len(data) < X.nbytes / 10 + getattr(source, "numbers", np.empty(0)).nbytes
    there = pickle.loads(data).open()  # noqa: S301 (our own)
    assert np.array_equal(there[5:900], X[5:900])


def test_processes_read_sources(digits, tmp_path):
    X, y = digits
    source = ilhash.open_vectors(write_lists(tmp_path / "X.parquet", X))
    with joblib.parallel_config(backend="loky"):
        model = ILH(n_jobs=2, **SMALL).fit(source, y)
    wanted = ILH(**SMALL).fit(X, y)
    assert [f.weights.tobytes() for f in model.functions_] == [f.weights.tobytes() for f in wanted.functions_]


def test_dask_workers_read_sources(digits, tmp_path):
    distributed = pytest.importorskip("distributed")
    X, y = digits
    source = ilhash.open_vectors(write_h5(tmp_path / "X.h5", X, chunks=(64, 16)))
    wanted = ILH(**SMALL).fit(X, y)
    cluster = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        model = ILH(**SMALL).fit(source, y, client=client)
    assert [f.weights.tobytes() for f in model.functions_] == [f.weights.tobytes() for f in wanted.functions_]


def test_an_altered_file_is_refused_by_whoever_it_comes_to(digits, tmp_path):
    X, _ = digits
    source = ilhash.open_vectors(write_lists(tmp_path / "X.parquet", X))
    data = pickle.dumps(source)
    write_lists(tmp_path / "X.parquet", X + 1.0)
    with pytest.raises(ValueError, match=r"X\.parquet must be the same on a worker, got other content"):
        pickle.loads(data).open()  # noqa: S301 (our own)


# ---------------------------------------------------------------------------------------------- only what is drawn


def test_only_row_groups_of_wanted_rows_are_decoded(digits, tmp_path, monkeypatch):
    X, _ = digits
    source = ilhash.open_vectors(write_lists(tmp_path / "X.parquet", X, rows=100))
    decoded = []
    honest = _parquet.ParquetSource._decoded

    def counting(self, group, step):
        decoded.append(group)
        return honest(self, group, step)

    monkeypatch.setattr(_parquet.ParquetSource, "_decoded", counting)
    source.take(np.array([1203, 7, 1299, 640, 99]))
    assert decoded == [0, 6, 12]


def test_only_chunks_of_wanted_rows_are_read(digits, tmp_path, monkeypatch):
    X, _ = digits
    source = ilhash.open_vectors(write_zarr(tmp_path / "X.zarr", X, rows=64))
    read = []
    honest = _chunked.ChunkedSource._read

    def counting(self, first, last):
        read.append((first, last))
        return honest(self, first, last)

    monkeypatch.setattr(_chunked.ChunkedSource, "_read", counting)
    source.take(np.array([1203, 7, 1210, 99]))
    assert read == [(7, 8), (99, 100), (1203, 1211)]
    read.clear()
    source.take(np.arange(0, 1797, 70))  # most chunks are wanted: one call is better
    assert len(read) == 1


def test_fit_reads_rows_once_and_only_drawn_ones(digits, tmp_path, monkeypatch):
    X, y = digits
    source = ilhash.open_vectors(write_columns(tmp_path / "X.parquet", X))
    picked = []
    honest = _parquet.ParquetSource._pick

    def counting(self, rows):
        picked.append(rows)
        return honest(self, rows)

    monkeypatch.setattr(_parquet.ParquetSource, "_pick", counting)
    model = ILH(n_bits=3, n_train=100, n_similar=3)
    model.fit(source, y)
    drawn = np.unique(np.concatenate([model.training_rows(bit) for bit in range(3)]))
    # fingerprint, origin, the sample of at most 8,000 that all bits' SVMs are conditioned on, and all bits at once
    assert [len(rows) for rows in picked] == [64, 1000, 1797, 300]
    assert np.array_equal(picked[-1], drawn)


def test_a_second_draw_reads_the_source(digits, tmp_path):
    X, _ = digits
    source = ilhash.open_vectors(write_columns(tmp_path / "X.parquet", X))
    numbers = np.arange(0, 1797, 3)
    rows = DrawnRows(source, numbers, X[numbers])
    assert np.array_equal(rows.take(np.array([3, 4, 900, 901, 3])), X[[3, 4, 900, 901, 3]])
    assert np.array_equal(rows[7:19], X[7:19])
    assert rows.nbytes == X[numbers].nbytes


# ---------------------------------------------------------------------------------------------- refused


def test_a_schema_without_the_feature_column(digits, tmp_path):
    X, _ = digits
    write_lists(tmp_path / "X.parquet", X)
    with pytest.raises(ValueError, match=r"X\.parquet must hold column 'embedding', got: id, vector"):
        ilhash.open_vectors(f"{tmp_path / 'X.parquet'}::embedding")
    with pytest.raises(ValueError, match="must hold only numeric columns or one column of numeric lists"):
        ilhash.open_vectors(tmp_path / "X.parquet")
    write_zarr_group(tmp_path / "X.zarr", X)
    with pytest.raises(ValueError, match=r"X\.zarr must hold 2-D array 'embedding', got: X"):
        ilhash.open_vectors(f"{tmp_path / 'X.zarr'}::embedding")
    write_h5(tmp_path / "X.h5", X)
    with pytest.raises(ValueError, match=r"X\.h5 must hold dataset 'embedding', got: X, y"):
        ilhash.open_vectors(f"{tmp_path / 'X.h5'}::embedding")


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".zarr"])
def test_files_of_different_width(digits, tmp_path, suffix):
    X, _ = digits
    write = {".npy": np.save, ".parquet": write_columns, ".zarr": write_zarr}[suffix]
    for number, width in enumerate((64, 64, 60)):
        write(tmp_path / f"part-{number}{suffix}", X[:90, :width])
    with pytest.raises(ValueError, match=r"must hold files of one width, got 64 columns in part-0.* and 60 in part-2"):
        ilhash.open_vectors(tmp_path)


def test_lists_of_different_length(tmp_path):
    table = pyarrow.table({"v": [[1.0, 2.0]] * 150 + [[1.0, 2.0, 3.0]] * 150})
    parquet.write_table(table, tmp_path / "X.parquet", row_group_size=150)
    source = ilhash.open_vectors(tmp_path / "X.parquet")
    with pytest.raises(ValueError, match="must hold lists of one length, got 2 and 3 numbers"):
        list(source.blocks(100))


def test_directories_of_nothing_and_of_everything(tmp_path, digits):
    with pytest.raises(ValueError, match=r"must hold files of one of .npy, .parquet, .* got no file"):
        ilhash.open_vectors(tmp_path)
    np.save(tmp_path / "a.npy", digits[0])
    write_columns(tmp_path / "b.parquet", digits[0])
    with pytest.raises(ValueError, match=r"got files of .npy, .parquet"):
        ilhash.open_vectors(tmp_path)


def test_empty_files_of_a_directory_are_passed_over(tmp_path, digits):
    X, _ = digits
    write_columns(tmp_path / "a.parquet", X[:0])
    write_columns(tmp_path / "b.parquet", X[:20])
    assert np.array_equal(ilhash.open_vectors(tmp_path)[:], X[:20])
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(ValueError, match="must hold at least one row, got 1 empty files"):
        ilhash.open_vectors(tmp_path)


@pytest.mark.parametrize("suffix", [".parquet", ".h5"])
def test_damaged_files(tmp_path, digits, suffix):
    X, _ = digits
    path = tmp_path / f"X{suffix}"
    write = write_columns if suffix == ".parquet" else write_h5
    write(path, X)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=rf"X\{suffix} must be a valid \{suffix} file"):
        ilhash.open_vectors(path)


def test_what_is_no_matrix(tmp_path, digits):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = np.zeros((2, 3, 4))
    with pytest.raises(ValueError, match="must hold a 2-D dataset"):
        ilhash.open_vectors(tmp_path / "a.h5")
    zarr.open(str(tmp_path / "b.zarr"), mode="w", shape=(5,), chunks=(5,), dtype="f4")
    with pytest.raises(ValueError, match="must hold a 2-D matrix of real numbers"):
        ilhash.open_vectors(tmp_path / "b.zarr")
    with pytest.raises(FileNotFoundError, match="must be a file"):
        ilhash.open_vectors(tmp_path / "none.zarr")
    with pytest.raises(ValueError, match="must be given without a key, because it is one array"):
        ilhash.open_vectors(f"{write_zarr(tmp_path / 'c.zarr', digits[0])}::key")


def test_bits_are_grown_and_pruned_on_sources(source, digits):
    X, y = digits
    held_out = HoldOut(100, n_base=400, n_report=20)
    grown, wanted = (grow(ILH(**SMALL), vectors, y, max_bits=6, k=20, held_out=held_out) for vectors in (source, X))
    assert np.array_equal(grown.curve, wanted.curve)
    pruned, wanted = (prune(grown.pool, vectors, y, 3, k=20, held_out=held_out) for vectors in (source, X))
    assert pruned.chosen == wanted.chosen
