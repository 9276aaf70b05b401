"""Datasets: every byte checked, every refusal one sentence.

Tests of real data run where the folder named by ILHASH_DATA holds it, and are skipped elsewhere.
"""

import gzip
import hashlib
import io
import json
import lzma
import os
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse

from ilhash import ILH
from ilhash.datasets import Dataset, available, data_home, load
from ilhash.datasets import _loaders as loaders
from ilhash.datasets._files import Folder
from ilhash.datasets._registry import SPECS
from ilhash.evaluation import by_shared_labels, precision_at_k
from ilhash.storage import DamagedFileError
from ilhash.vectors.io import feature_names, open_vectors, read_matrix, read_vector

X = np.array([[0.5, 1.0, -2.0], [3.0, 4.25, 5.0]])
FILES = [name for name, spec in SPECS.items() if spec.layouts and spec.folder is None]  # others use files of these
PRESENT = {info.name for info in available() if info.present}


def needs(name):
    return pytest.mark.skipif(name not in PRESENT, reason=f"ILHASH_DATA does not hold {name}")


def refused(error, *parts, read=read_matrix, path):
    """The call raises one line that holds all the parts."""
    with pytest.raises(error) as caught:
        read(path)
    assert type(caught.value) is error  # not the private type of some library
    message = str(caught.value)
    assert "\n" not in message
    assert not message.endswith(".")
    for part in parts:
        assert part in message
    return message


# Known datasets -------------------------------------------------------------------------------------------


def test_digits_need_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("ILHASH_DATA", str(tmp_path))
    digits = load("digits")
    assert (digits.X.shape, digits.X.dtype) == ((1797, 64), np.float32)
    assert (digits.X.min(), digits.X.max()) == (0, 16)
    assert digits.y.dtype == np.int64
    np.testing.assert_array_equal(np.unique(digits.y), range(10))
    assert (digits.name, digits.image_shape, len(digits.class_names)) == ("digits", (8, 8), 10)
    assert (digits.words, digits.n_train) == (None, None)


def test_dataset_is_frozen_and_prints_short():
    digits = load("digits")
    with pytest.raises(AttributeError):
        digits.X = None
    assert len(repr(digits)) < 80
    assert "unlabelled" in repr(Dataset(name="mine", X=X))


def test_unknown_name_lists_the_known():
    refused(ValueError, *SPECS, "'minst'", read=load, path="minst")


def test_data_home(tmp_path, monkeypatch):
    monkeypatch.setenv("ILHASH_DATA", str(tmp_path))
    assert data_home() == tmp_path
    assert data_home("elsewhere").name == "elsewhere"
    monkeypatch.setenv("ILHASH_DATA", "")
    assert data_home().parts[-2:] == (".cache", "ilhash")


@pytest.mark.parametrize("name", FILES)
def test_missing_files_say_how_to_get_them(name, tmp_path, monkeypatch):
    monkeypatch.setenv("ILHASH_DATA", str(tmp_path))
    first = SPECS[name].layouts[0]
    refused(FileNotFoundError, *first, str(tmp_path / name), "ILHASH_DATA", " by ", read=load, path=name)
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        load(name, data_home=tmp_path / "elsewhere")


def test_only_the_missing_files_are_named(tmp_path):
    folder = tmp_path / "cifar10"
    folder.mkdir()
    for name in [*SPECS["cifar10"].layouts[1]][:-1]:
        (folder / name).touch()
    with pytest.raises(FileNotFoundError, match=r"is missing test_labels\.npy in"):
        load("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("name", "layout"), [(name, layout) for name in FILES for layout in range(len(SPECS[name].layouts))]
)
def test_altered_file_is_refused(name, layout, tmp_path, monkeypatch):
    monkeypatch.setenv("ILHASH_DATA", str(tmp_path))
    sums = SPECS[name].layouts[layout]
    (tmp_path / name).mkdir()
    for file in sums:
        (tmp_path / name / file).write_bytes(b"altered")
    first, expected = next(iter(sums.items()))
    got = hashlib.sha256(b"altered").hexdigest()
    refused(DamagedFileError, str(tmp_path / name / first), expected, got, read=load, path=name)


def _bomb():
    """128 MiB of zeros under the header of an idx file, in 130 kB."""
    return gzip.compress(bytes.fromhex("00000803") + bytes(2**27))


@pytest.mark.parametrize("content", [_bomb, lambda: gzip.compress(b""), lambda: b"\x1f\x8b", lambda: b""])
def test_nothing_is_unpacked_but_what_is_known(content, tmp_path):
    """An archive that is another than the published one is refused before it is opened, whatever it would become."""
    folder = tmp_path / "mnist"
    folder.mkdir()
    for name in SPECS["mnist"].layouts[0]:
        (folder / name).write_bytes(content())
    tracemalloc.start()
    refused(DamagedFileError, "must have SHA-256", read=lambda path: load("mnist", path), path=tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_a_file_of_holes_is_not_read(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    os.truncate(tmp_path / "a", 2**36)
    with pytest.raises(DamagedFileError, match=r"of holes|at most"):
        Folder(tmp_path, {"a": "0" * 64}).read("a")


def test_links_may_lead_to_files_and_pipes_are_missing(tmp_path):
    (tmp_path / "real").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    folder = Folder(tmp_path, {"link": hashlib.sha256(b"abc").hexdigest(), "pipe": "0" * 64})
    assert folder.read("link") == b"abc"
    assert folder.missing() == ["pipe"]
    with pytest.raises(DamagedFileError, match="got a pipe"):
        folder.read("pipe")


def test_available_opens_nothing(tmp_path):
    (tmp_path / "glove-6b-100d").mkdir()
    for file in SPECS["glove-6b-100d"].layouts[0]:
        (tmp_path / "glove-6b-100d" / file).touch()
    infos = {info.name: info for info in available(tmp_path)}
    assert list(infos) == list(SPECS)
    assert [name for name, info in infos.items() if info.present] == ["digits", "glove-6b-100d"]
    assert infos["digits"].path is None
    assert infos["mnist"].path == tmp_path / "mnist"
    assert all(info.license and info.description for info in infos.values())
    assert [name for name, info in infos.items() if not info.labeled] == ["glove-6b-100d"]


@needs("mnist")
def test_mnist():
    mnist = load("mnist")
    assert (mnist.X.shape, mnist.X.dtype, mnist.n_train) == ((70_000, 784), np.uint8, 60_000)
    assert mnist.image_shape == (28, 28)
    train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    np.testing.assert_array_equal(np.bincount(mnist.y[:60_000]), train)
    np.testing.assert_array_equal(np.bincount(mnist.y[60_000:]), test)


@needs("fashion-mnist")
def test_fashion_mnist():
    fashion = load("fashion-mnist")
    assert (fashion.X.shape, fashion.X.dtype, fashion.n_train) == ((70_000, 784), np.uint8, 60_000)
    np.testing.assert_array_equal(np.bincount(fashion.y[:60_000]), [6000] * 10)
    np.testing.assert_array_equal(np.bincount(fashion.y[60_000:]), [1000] * 10)
    assert fashion.class_names[9] == "Ankle boot"


CIFAR10_PACKED = Folder(data_home() / "cifar10", SPECS["cifar10"].layouts[1])
packed_here = pytest.mark.skipif(bool(CIFAR10_PACKED.missing()), reason="ILHASH_DATA does not hold the packed cifar10")


@pytest.fixture(scope="module")
def cifar10_test_batch():
    """Pixels and labels: the one batch that the tests decode, for the other five take as long again."""
    pixels = loaders.cifar10_pixels(CIFAR10_PACKED.read("test_batch.npy.xz"))
    return pixels, loaders.npy(CIFAR10_PACKED.read("test_labels.npy"))


@packed_here
def test_cifar10_batch_is_the_original(cifar10_test_batch):
    pixels, labels = cifar10_test_batch
    original = np.column_stack([labels, pixels]).tobytes()
    assert (
        hashlib.md5(original, usedforsecurity=False).hexdigest() == "803d5f7f4d78ea53de84dbe85f74fb6d"
    )  # as published
    assert hashlib.sha256(original).hexdigest() == SPECS["cifar10"].layouts[0]["test_batch.bin"]
    np.testing.assert_array_equal(loaders.cifar10_records(original)[:, 1:], pixels)


@packed_here
def test_cifar10_assembly(cifar10_test_batch, monkeypatch):
    pixels, _ = cifar10_test_batch
    monkeypatch.setattr(loaders, "cifar10_pixels", lambda data: pixels)
    cifar10 = load("cifar10")
    assert (cifar10.X.shape, cifar10.X.dtype, cifar10.n_train) == ((60_000, 3072), np.uint8, 50_000)
    assert (cifar10.image_shape, cifar10.class_names[9]) == ((3, 32, 32), "truck")
    np.testing.assert_array_equal(cifar10.X[50_000:], pixels)
    np.testing.assert_array_equal(np.bincount(cifar10.y[:50_000]), [5000] * 10)
    np.testing.assert_array_equal(np.bincount(cifar10.y[50_000:]), [1000] * 10)


def test_cifar10_original_layout():
    """Batch i is made of the number i: labels and pixels land in their rows."""

    class Original:
        sums = SPECS["cifar10"].layouts[0]

        def read(self, name):
            return bytes([list(self.sums).index(name)]) * (10_000 * 3073)

    cifar10 = loaders.load_cifar10("cifar10", Original())
    np.testing.assert_array_equal(cifar10.y, np.repeat(range(6), 10_000))
    np.testing.assert_array_equal(cifar10.X[:, [0, -1]], np.repeat(range(6), 10_000)[:, None] * [1, 1])


@needs("glove-6b-100d")
def test_glove():
    glove = load("glove-6b-100d")
    assert (glove.X.shape, glove.X.dtype, glove.y) == ((100_000, 100), np.float32, None)
    assert (len(glove.words), len(set(glove.words)), glove.words[0]) == (100_000, 100_000, "the")
    np.testing.assert_allclose(glove.X[0, :3], [-0.038194, -0.24487, 0.72812], atol=1e-3)


# Debian packages -------------------------------------------------------------------------------------------


@pytest.fixture
def three_packages(tmp_path):
    """The files of debian-packages, made by hand: three packages of two numbers each."""

    def save(write, array):
        buffer = io.BytesIO()
        write(buffer, **array) if isinstance(array, dict) else write(buffer, array)
        return buffer.getvalue()

    tags = {"indptr": np.array([0, 2, 2, 3], np.int32), "indices": np.array([2, 0, 2], np.int16)}
    text = "0ad\tGame of ancient warfare\nlibé1\tAccents: é\u2028in one line\nzsh\tShell\n"
    files = {
        "embeddings_int8.npy": save(np.save, np.array([[127, -127], [0, 1], [64, 2]], np.int8)),
        "embedding_scale.npy": save(np.save, np.array([0.5, 0.001], np.float32)),
        "packages.tsv.xz": lzma.compress(text.encode()),
        "names.json": json.dumps({"sections": ["games", "libs"], "tags": ["a::b", "c::d", "e::f"]}).encode(),
        "section.npy": save(np.save, np.array([0, 1, 0], np.int16)),
        "tags.npz": save(np.savez, tags),
        "source.npy": save(np.save, np.array([7, 2, 7], np.int32)),
        "dependencies.npy": save(np.save, np.array([[0, 2]], np.int32)),
    }
    assert files.keys() == SPECS["debian-packages"].layouts[0].keys()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return Folder(tmp_path, {name: hashlib.sha256(data).hexdigest() for name, data in files.items()})


@pytest.mark.parametrize("target", SPECS["debian-packages"].targets)
def test_packages_have_vectors_names_and_texts(target, three_packages):
    packages = loaders.load_debian_packages("mine", three_packages, target)
    assert packages.X.dtype == np.float32
    np.testing.assert_allclose(packages.X, [[63.5, -0.127], [0, 0.001], [32, 0.002]], rtol=1e-6)
    assert packages.words == ("0ad", "libé1", "zsh")
    assert packages.texts[1] == "Accents: é\u2028in one line"


def test_each_target_of_the_packages(three_packages):
    section, tags, source, pairs = (
        loaders.load_debian_packages("mine", three_packages, target) for target in SPECS["debian-packages"].targets
    )
    assert (section.y.dtype, section.y.tolist(), section.class_names) == (np.int64, [0, 1, 0], ("games", "libs"))
    assert (tags.y.shape, tags.class_names) == ((3, 3), ("a::b", "c::d", "e::f"))
    assert isinstance(tags.y, scipy.sparse.csr_array)
    np.testing.assert_array_equal(tags.y.toarray(), [[1, 0, 1], [0, 0, 0], [0, 0, 1]])
    assert (source.y.dtype, source.y.tolist(), source.class_names) == (np.int64, [7, 2, 7], None)
    assert (pairs.y, pairs.pairs.dtype, pairs.pairs.tolist()) == (None, np.int64, [[0, 2]])
    assert [one.pairs for one in (section, tags, source)] == [None] * 3
    shown = [repr(one).rpartition("float32, ")[2] for one in (section, tags, source, pairs)]
    assert shown == ["2 classes)", "3 labels)", "2 classes)", "1 pairs)"]


def test_an_altered_file_of_the_packages_is_refused(three_packages):
    (three_packages.path / "tags.npz").write_bytes(b"other")
    loaders.load_debian_packages("mine", three_packages, "section")  # which does not read it
    with pytest.raises(DamagedFileError, match=r"tags\.npz"):
        loaders.load_debian_packages("mine", three_packages, "tags")


def test_targets_are_of_one_dataset():
    refused(ValueError, "target", *SPECS["debian-packages"].targets, "'topic'", read=_with_target("topic"), path=DEBIAN)
    refused(ValueError, "target", "'digits'", "'section'", read=_with_target("section"), path="digits")


def _with_target(target):
    return lambda name: load(name, target=target)


DEBIAN = "debian-packages"


@needs(DEBIAN)
def test_debian_packages():
    section, tags, source, pairs = (load(DEBIAN, target=target) for target in SPECS[DEBIAN].targets)
    np.testing.assert_array_equal(load(DEBIAN).y, section.y)
    assert (section.X.shape, section.X.dtype) == ((39_544, 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(section.X, axis=1), 1, atol=0.02)
    assert (section.words[0], section.texts[0][:23]) == ("0ad", "Real-time strategy game")
    assert (len(section.words), len(section.texts), len(section.class_names)) == (39_544, 39_544, 42)
    assert section.class_names[section.y[0]] == "games"
    assert (tags.y.shape, tags.y.nnz, np.count_nonzero(np.diff(tags.y.indptr) == 0)) == ((39_544, 598), 69_992, 20_658)
    sizes = np.bincount(source.y)
    assert (np.count_nonzero(sizes >= 5), sizes[sizes >= 5].sum()) == (958, 10_239)
    assert pairs.pairs.shape == (57_298, 2)
    assert (pairs.pairs[:, 0] < pairs.pairs[:, 1]).all()


@needs(DEBIAN)
@pytest.mark.filterwarnings("ignore:too few points")
def test_tags_are_what_fit_and_relevance_take():
    """Codes of tagged packages find packages that share a tag; chance finds fewer."""
    tags = load(DEBIAN, target="tags")
    rows = np.flatnonzero(np.diff(tags.y.indptr))[:3000]
    X, y = tags.X[rows], tags.y[rows]
    model = ILH(n_bits=16, n_similar=5, n_dissimilar=20).fit(X[:2800], y[:2800], check=False)
    codes = model.transform(X)
    relevance = by_shared_labels(y[:2800], y[2800:])
    found = precision_at_k(codes[:2800], y[:2800], codes[2800:], y[2800:], k=[10])[0]
    assert found > 1.05 * np.mean([len(relevance.rows(query)) for query in range(200)]) / 2800


def test_idx_of_another_type_is_refused():
    with pytest.raises(ValueError, match="unsigned bytes"):
        loaders.idx(gzip.compress(bytes([0, 0, 0x0D, 1, 0, 0, 0, 0])))


# read_matrix ----------------------------------------------------------------------------------------------


@pytest.fixture
def write_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write(columns, **options):
        path = tmp_path / "table.parquet"
        parquet.write_table(pyarrow.table(columns), path, **options)
        return path

    return write


@pytest.fixture
def write_h5(tmp_path):
    h5py = pytest.importorskip("h5py")

    def write(**datasets):
        path = tmp_path / "data.h5"
        with h5py.File(path, "w") as file:
            for name, value in datasets.items():
                file[name] = value
        return path

    return write


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i8", "f2", "f4", "f8"])
def test_npy(dtype, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X.astype(dtype))
    got = read_matrix(str(path))
    assert type(got) is np.ndarray  # not a map, which kills the process when its file is cut
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, X.astype(dtype))


def test_npy_fortran_and_big_endian(tmp_path):
    path = tmp_path / "X.NPY"
    with path.open("wb") as file:
        np.save(file, np.asfortranarray(X.astype(">f4")))
    got = read_matrix(path)
    assert got.dtype == np.float32
    assert got.dtype.isnative
    np.testing.assert_array_equal(got, X.astype("f4"))


@pytest.mark.parametrize(
    ("array", "got"),
    [
        (X[0], "(3,)"),
        (X[None], "(1, 2, 3)"),
        (np.empty((0, 3)), "(0, 3)"),
        (np.empty((3, 0)), "(3, 0)"),
        (X + 1j, "complex128"),
        (X.astype("U"), "<U"),
        (X.astype("g"), str(np.dtype("g"))),
        (np.zeros((2, 2), "f4,i4"), "f4"),
        (np.zeros((2, 2), "M8[s]"), "datetime64"),
    ],
    ids=["1-D", "3-D", "no-row", "no-column", "complex", "text", "long", "structured", "dates"],
)
def test_matrix_must_be_2d_and_numeric(array, got, tmp_path):
    if array.dtype == np.float64 and got == "float64":
        pytest.skip("long double is double here")
    path = tmp_path / "x.npy"
    np.save(path, array)
    refused(ValueError, str(path), "2-D", got, path=path)


def test_pickles_are_refused(tmp_path):
    objects = np.array([[1, None]], dtype=object)
    np.save(tmp_path / "x.npy", objects)
    np.savez(tmp_path / "x.npz", objects)
    for name in ("x.npy", "x.npz"):
        refused(ValueError, name, "pickled", path=tmp_path / name)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(save, tmp_path):
    path = tmp_path / "x.npz"
    save(path, X)
    np.testing.assert_array_equal(read_matrix(path), X)
    save(path, base=X, y=X[0])
    np.testing.assert_array_equal(read_matrix(f"{path}::base"), X)
    refused(ValueError, str(path), "base, y", "::key", path=path)
    refused(ValueError, "'nope'", "base, y", path=f"{path}::nope")
    refused(ValueError, "(3,)", path=f"{path}::y")
    refused(ValueError, "file::key", path=f"{path}::")


def test_sparse_npz_is_refused(tmp_path):
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_matrix(X))
    refused(ValueError, "scipy.sparse", path=tmp_path / "x.npz")


def test_a_key_needs_a_format_with_keys(tmp_path):
    np.save(tmp_path / "x.npy", X)
    refused(ValueError, "x.npy", "'key'", ".npz", path=f"{tmp_path / 'x.npy'}::key")


@pytest.mark.skipif(sys.platform == "win32", reason="no colon in a file name")
def test_a_file_with_colons_in_its_name(tmp_path):
    np.save(tmp_path / "a::b.npy", X)
    np.testing.assert_array_equal(read_matrix(tmp_path / "a::b.npy"), X)


@pytest.mark.parametrize(
    "text",
    [
        "0.5,1,-2\n3,4.25,5\n",
        "0.5, 1 ,-2\r\n3,4.25,5",
        "a,b,c\n0.5,1,-2\n3,4.25,5\n",
        "\ufeffa,b,c\n0.5,1,-2\n\n3,4.25,5\n\n",
        "\n\na,b,c\n0.5,1,-2\n3,4.25,5\n",
        '"a, b",,c\n"0.5",1,-2\n3,4.25,5\n',
        "\ufeff0.5,1e0,-2\n3,425e-2,+5\n",
    ],
    ids=["plain", "crlf", "header", "bom-header", "blank-header", "quotes", "bom"],
)
def test_csv(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8", newline="")
    got = read_matrix(path)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, X)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1,2\n3,abc\n", ("line 2", "column 2", "'abc'")),
        ("a,b\n\n1,2\n3,\n", ("line 4", "column 2", "''")),
        ("1,two\n3,4\n", ("line 1", "column 2", "'two'")),  # half a header is a fault, not a header
        ("a,b\n1,2\n3,4,5\n", ("2 cells", "line 3", "got 3")),
        ("1;2\n3;4\n", ("line 2", "'3;4'")),
        ("1,2\n3,1_0\n", ("line 2", "'1_0'")),
        ("1,2\n  \n3,4\n", ("line 2", "'  '")),
        ("1," + "x" * 500 + "\n", ("line 1", "...")),
        ("a,b\n", ("only a header",)),
        ("\n\n", ("blank lines",)),
    ],
)
def test_csv_faults_name_the_line(text, parts, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert len(refused(ValueError, str(path), *parts, path=path)) < len(str(path)) + 150


@pytest.mark.parametrize("data", [b"1,2\n3,\xff\n", b"\xff\xfe1\x00,\x002\x00\n\x00"])
def test_csv_must_be_utf8(data, tmp_path):
    (tmp_path / "x.csv").write_bytes(data)
    refused(ValueError, "x.csv", "UTF-8", path=tmp_path / "x.csv")


def test_parquet_columns(write_parquet):
    path = write_parquet({"a": X[:, 0].astype("f4"), "b": X[:, 1], "c": X[:, 2].astype("i2")}, row_group_size=1)
    got = read_matrix(path)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, X)
    path = write_parquet({"a": np.array([True, False]), "b": np.array([False, False])})
    assert read_matrix(path).dtype == bool
    path = write_parquet({"a": X[0].astype("f2"), "b": X[1].astype("f2")})
    assert read_matrix(path).dtype == np.float16


@pytest.mark.parametrize("fixed", [False, True])
def test_parquet_lists(fixed, write_parquet):
    pyarrow = pytest.importorskip("pyarrow")
    rows = np.arange(40, dtype="f4").reshape(10, 4)
    column = pyarrow.array(rows.tolist(), pyarrow.list_(pyarrow.float32(), 4 if fixed else -1))
    got = read_matrix(write_parquet({"vector": column}, row_group_size=3))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, rows)
    path = write_parquet({"id": [str(i) for i in range(10)], "vector": column})
    np.testing.assert_array_equal(read_matrix(f"{path}::vector"), rows)
    refused(ValueError, "id (string)", "vector", "::column", path=path)
    refused(ValueError, "'nope'", "id, vector", path=f"{path}::nope")
    refused(ValueError, "2-D", path=f"{path}::id")


def test_parquet_refusals(write_parquet):
    refused(ValueError, "lengths 1 to 2", "'v'", path=write_parquet({"v": [[1.0, 2.0], [3.0]]}))
    refused(ValueError, "1 in column 'v'", path=write_parquet({"v": [[1.0], None]}))
    refused(ValueError, "1 in the lists of 'v'", path=write_parquet({"v": [[1.0], [None]]}))
    refused(ValueError, "2 in column 'a'", path=write_parquet({"a": [1, None, None]}))
    refused(ValueError, "list<", path=write_parquet({"v": [["a"], ["b"]]}))
    refused(ValueError, "(0, 1)", path=write_parquet({"a": np.empty(0)}))
    refused(ValueError, "no column", path=write_parquet({}))


def test_parquet_index_of_pandas_is_no_feature(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    # What pandas writes for a frame with an index of its own; made by hand, for pandas may not be there.
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "__index_level_0__": [7, 8]})
    table = table.replace_schema_metadata({"pandas": '{"index_columns": ["__index_level_0__"]}'})
    parquet.write_table(table, tmp_path / "x.parquet")
    np.testing.assert_array_equal(read_matrix(tmp_path / "x.parquet"), X[:, :2])


def test_h5(write_h5, tmp_path):
    path = write_h5(x=X, y=[1, 2])
    np.testing.assert_array_equal(read_matrix(path), X)
    assert type(read_matrix(path)) is np.ndarray
    np.testing.assert_array_equal(read_vector(path), [1, 2])
    np.testing.assert_array_equal(read_matrix(path.rename(tmp_path / "data.hdf5")), X)
    path = write_h5(**{"train": X, "group/test": X[:1]})
    np.testing.assert_array_equal(read_matrix(f"{path}::group/test"), X[:1])
    np.testing.assert_array_equal(read_matrix(f"{path}::/group/test"), X[:1])
    refused(ValueError, str(path), "group/test, train", "::key", path=path)
    refused(ValueError, "'group'", path=f"{path}::group")
    refused(ValueError, "2-D dataset", "y (2,)", path=write_h5(y=[1, 2]))
    refused(ValueError, "2-D dataset", "none", path=write_h5())
    refused(ValueError, "complex", path=write_h5(z=X + 1j))


@pytest.mark.parametrize(("suffix", "module"), [("parquet", "pyarrow"), ("h5", "h5py")])
def test_missing_extra_prints_the_command(suffix, module, tmp_path, monkeypatch):
    for name in (module, f"{module}.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(b"something")
    for read in (read_matrix, read_vector):
        message = refused(ImportError, str(path), module, read=read, path=path)
        assert message.endswith('pip install "ilhash[io]"')


@pytest.mark.parametrize("read", [read_matrix, read_vector])
def test_paths_that_are_no_files(read, tmp_path):
    folder = tmp_path / "x.npy"
    folder.mkdir()
    refused(IsADirectoryError, str(folder), "directory", read=read, path=folder)
    refused(FileNotFoundError, "nope.npy", "not exist", read=read, path=tmp_path / "nope.npy")
    refused(FileNotFoundError, "nope.npz", "not exist", read=read, path=f"{tmp_path}/nope.npz::key")
    for name, part in [("x.mat", "'.mat'"), ("bare", "no suffix")]:
        (tmp_path / name).write_text("1")
        refused(ValueError, name, ".npy, .npz, .csv, .parquet, .h5", part, read=read, path=tmp_path / name)
    for suffix in ("npy", "npz", "csv", "parquet", "h5", "hdf5"):
        path = tmp_path / f"empty.{suffix}"
        path.touch()
        refused(ValueError, str(path), "empty file", read=read, path=path)


def test_a_matrix_is_not_read_from_txt(tmp_path):
    (tmp_path / "x.txt").write_text("1 2\n")
    refused(ValueError, "'.txt'", path=tmp_path / "x.txt")


def valid_bytes(suffix, tmp_path, request):
    big = np.arange(600.0).reshape(100, 6)
    if suffix == "parquet":
        return request.getfixturevalue("write_parquet")({"v": big.tolist()}).read_bytes()
    if suffix == "h5":
        return request.getfixturevalue("write_h5")(x=big).read_bytes()
    path = tmp_path / f"valid.{suffix}"
    (np.save if suffix == "npy" else np.savez)(path, big)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet", "h5"])
def test_corrupt_files(suffix, tmp_path, request):
    data = valid_bytes(suffix, tmp_path, request)
    path = tmp_path / f"bad.{suffix}"
    rng = np.random.default_rng(0)
    garbage = [b"\x00" * 100, b"garbage", rng.bytes(3000), data[-3000:]]
    for bad in [data[:n] for n in (1, 4, 9, 50, len(data) // 2, len(data) - 1)] + garbage:
        path.write_bytes(bad)
        for read in (read_matrix, read_vector):
            refused(ValueError, str(path), f"valid .{suffix} file", read=read, path=path)


def error_of(read, path):
    try:
        read(path)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet"])
def test_flipped_bytes_never_escape(suffix, tmp_path, request):
    """A flip may go unseen (.npy has no checksum); what is seen is a ValueError of one line."""
    data = valid_bytes(suffix, tmp_path, request)
    path = tmp_path / f"bad.{suffix}"
    rng = np.random.default_rng(1)
    places = np.r_[np.arange(130), len(data) - 1 - np.arange(130), rng.integers(len(data), size=40)]
    for place in places:
        bad = bytearray(data)
        bad[place] ^= int(rng.integers(1, 256))
        path.write_bytes(bad)
        error = error_of(read_matrix, path)
        assert error is None or (type(error) is ValueError and str(path) in str(error))
        assert "\n" not in str(error)


def test_npz_data_is_checked_against_its_crc(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, X)
    with zipfile.ZipFile(path) as archive:
        last = path.read_bytes().index(X.tobytes()) + X.nbytes - 1
        assert archive.namelist() == ["arr_0.npy"]
    bad = bytearray(path.read_bytes())
    bad[last] ^= 1
    path.write_bytes(bad)
    refused(ValueError, "CRC", path=path)


# read_vector ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[3, -1, 3], ["cat", "dög", "cat"]], ids=["int", "str"])
def test_labels_in_every_format(labels, tmp_path, write_parquet, write_h5):
    array = np.array(labels)
    lines = "\n".join(map(str, labels)) + "\n"
    np.save(tmp_path / "y.npy", array)
    np.save(tmp_path / "column.npy", array[:, None])
    np.savez(tmp_path / "y.npz", X=X, y=array)
    for name, text in [("y.txt", lines), ("y.csv", lines), ("head.csv", "label\n" + lines)]:
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = [tmp_path / name for name in ("y.npy", "column.npy", "y.txt", "y.csv", "head.csv")]
    paths += [f"{tmp_path}/y.npz::y", write_parquet({"y": labels}), write_h5(y=labels, x=X)]
    for path in paths:
        got = read_vector(path)
        assert type(got) is np.ndarray
        assert got.dtype == np.int64 or got.dtype.kind == "U"
        np.testing.assert_array_equal(got, array)


def test_more_labels(tmp_path, write_parquet):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "y.npy"
    for array in (np.array([1.0, 2.0]), np.array([1, 2], ">u2"), np.array([1, 2], "f2")):
        np.save(path, array)
        assert read_vector(path).dtype == np.int64
        np.testing.assert_array_equal(read_vector(path), [1, 2])
    np.save(path, np.array(["a", "dög"], dtype="U").astype("O") != "a")
    np.testing.assert_array_equal(read_vector(path), [0, 1])
    np.save(path, np.array([b"a", "dög".encode()]))
    np.testing.assert_array_equal(read_vector(path), ["a", "dög"])
    path = write_parquet({"x": [0.5, 0.5], "kind": pyarrow.array(["a", "b"]).dictionary_encode()})
    np.testing.assert_array_equal(read_vector(f"{path}::kind"), ["a", "b"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("weird\n1\n2\n", [1, 2]),  # all others are integers: a header
        ("cat\ndog\n", ["cat", "dog"]),
        ("class\ncat\nclass\n", ["class", "cat", "class"]),  # it recurs: a label
        ("target\n", ["target"]),
        ('"a, b"\nc\n\n', ["a, b", "c"]),
        ("0012\n7\n", [12, 7]),
        ("1.5\n2\nx\n", ["1.5", "2", "x"]),
        ("99999999999999999999\n1\n", ["99999999999999999999", "1"]),
    ],
)
def test_csv_labels(text, expected, tmp_path):
    path = tmp_path / "y.csv"
    path.write_text(text)
    got = read_vector(path)
    assert got.dtype.kind == np.array(expected).dtype.kind
    np.testing.assert_array_equal(got, expected)


TABLE = "ID,height,kind,Label,width,note\n7,1.5,cat,0,2,a\n8,-3,,1,4,b\n9,0,dog,,6,\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def test_features_of_a_table_are_its_numbers_without_ids_and_labels(table):
    np.testing.assert_array_equal(read_matrix(table), [[1.5, 2], [-3, 4], [0, 6]])
    np.testing.assert_array_equal(open_vectors(f"{table}::!height"), [[2], [4], [6]])
    np.testing.assert_array_equal(read_matrix(f"{table}::width,ID"), [[2, 7], [4, 8], [6, 9]])
    assert feature_names(table) == ["height", "width"]
    assert feature_names(f"{table}::!width,note") == ["height"]
    assert feature_names(f"{table}::ID, note") == ["ID", "note"]
    (table.parent / "plain.csv").write_text("1,2\n")
    assert feature_names(table.parent / "plain.csv") == feature_names(table.parent / "x.npy") == []


def test_labels_and_ids_are_columns_of_a_table(table):
    assert read_vector(f"{table}::ID").tolist() == [7, 8, 9]
    assert read_vector(f"{table}::kind").tolist() == ["cat", None, "dog"]
    labels = read_vector(f"{table}::Label")
    assert labels.tolist() == [0, 1, None]
    assert [type(label) for label in labels[:2]] == [int, int]


@pytest.mark.parametrize(
    ("text", "key", "read", "parts"),
    [
        (TABLE, "::size", read_matrix, ["one column 'size', got: ID, height, kind"]),
        (TABLE, "::!size", read_matrix, ["one column 'size'"]),
        (TABLE, "::size", read_vector, ["one column 'size'"]),
        (TABLE, "::kind", read_matrix, ["line 2, column 3", "'cat'"]),
        (TABLE, "::!height,width", read_matrix, ["a column of numbers, got ids, labels and text alone"]),
        (TABLE, "", read_vector, ["line 2, column 3", "table.csv::column chooses one of ID, height"]),
        ("a,a\n1,2\n", "::a", read_matrix, ["one column 'a', got: 2 columns of this name"]),
        ("1,2\n3,4\n", "::a", read_matrix, ["must have a header", "'a'"]),
        ("a,b\nNA,2\n3,4\n", "", read_matrix, ["column 'a' or in none, got 'NA' in line 2 and '3' in line 3"]),
        ("a,b\n1,2\nx,4\n", "", read_matrix, ["line 3, column 1", "'x'"]),
        ("a,label\n1,2\n3\n", "::label", read_vector, ["2 cells in line 3"]),
        ("a,label\n1,\n3,\n", "::label", read_vector, ["labels in column 'label', got none"]),
    ],
)
def test_tables_that_could_mislead_are_refused(text, key, read, parts, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    refused(ValueError, str(tmp_path / "table.csv"), *parts, read=read, path=f"{tmp_path / 'table.csv'}{key}")


def test_labels_that_are_nan_or_null_are_unknown(tmp_path, write_parquet):
    pyarrow = pytest.importorskip("pyarrow")
    np.save(tmp_path / "y.npy", np.array([1.0, np.nan, 3.0]))
    assert read_vector(tmp_path / "y.npy").tolist() == [1, None, 3]
    for values in ([1, None, 3], ["a", None, "b"]):
        path = write_parquet({"x": [0.5, 0.5, 0.5], "kind": pyarrow.array(values)})
        assert read_vector(f"{path}::kind").tolist() == values
    refused(ValueError, "no nulls, got 1", path=f"{write_parquet({'x': [0.5, None]})}")


def test_txt_labels_have_no_header_and_keep_commas(tmp_path):
    path = tmp_path / "y.txt"
    path.write_text("a, b\n 7 \n\n")
    np.testing.assert_array_equal(read_vector(path), ["a, b", "7"])


@pytest.mark.parametrize("name", ["y.csv", "y.txt"])
def test_a_gap_in_the_labels_is_refused(name, tmp_path):
    path = tmp_path / name
    path.write_text("1\n\n2\n")
    refused(ValueError, str(path), "line 2", read=read_vector, path=path)
    path.write_text("\n \n")
    refused(ValueError, str(path), "blank", read=read_vector, path=path)
    path.write_bytes(b"a\n\xff\n")
    refused(ValueError, str(path), "UTF-8", read=read_vector, path=path)


def test_indicator_matrix_stays_2d(tmp_path, write_parquet):
    tags = np.array([[1, 0, 1], [0, 0, 1]])
    np.save(tmp_path / "y.npy", tags.astype(bool))
    np.savetxt(tmp_path / "y.csv", tags, fmt="%d", delimiter=",", header="a,b,c", comments="")
    for path in (tmp_path / "y.npy", tmp_path / "y.csv", write_parquet({"tags": tags.tolist()})):
        got = read_vector(path)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, tags)


@pytest.mark.parametrize(
    "array",
    [
        X,
        X[None],
        np.array(1),
        np.empty(0),
        np.array([0.5]),
        np.array([np.nan, np.nan]),
        np.array([np.nan, 0.5]),
        np.array([np.inf], "f2"),
        np.array([1e30], "f4"),
        np.array([2**63], "u8"),
        np.array([1j]),
        np.array([["a", "b"]]),
        np.array([b"\xff"]),
    ],
    ids=str,
)
def test_what_is_no_label(array, tmp_path):
    np.save(tmp_path / "y.npy", array)
    refused(ValueError, "y.npy", "one integer or string per item", read=read_vector, path=tmp_path / "y.npy")
