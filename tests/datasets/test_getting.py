"""Datasets from a server to where they are read: a real server, which breaks off, lies, and does not know ranges."""

import functools
import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from ilhash import datasets
from ilhash.datasets import _download, _getting, _sources, _unpacking
from ilhash.datasets._registry import SPECS
from ilhash.storage import DamagedFileError

pytest.importorskip("pooch", reason='pooch is not installed: pip install "ilhash[data]"')

RNG = np.random.default_rng(0)


class Server(ThreadingHTTPServer):
    """Serves bytes by name; what it does wrong is set by the tests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.files, self.tags, self.asked = {}, {}, []
        self.breaks_after, self.knows_ranges = [], True

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        server, name = self.server, self.path[1:]
        wanted = self.headers.get("Range") if server.knows_ranges else None
        server.asked.append((name, wanted))
        if name not in server.files:
            self.send_error(404)
            return
        data, tag = server.files[name], server.tags.get(name)
        first = int(wanted[len("bytes=") : -1]) if wanted else 0
        if self.headers.get("If-Range") not in (None, tag):
            first = 0
        if first >= len(data) > 0:
            self.send_error(416)
            return
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(data) - first))
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        if tag:
            self.send_header("ETag", tag)
        self.end_headers()
        most = server.breaks_after.pop(0) if server.breaks_after else len(data)
        self.wfile.write(data[first : first + most])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(_download, "PAUSE", 0.001)
    monkeypatch.setattr(_download, "CHUNK", 512)
    with Server() as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def offer(monkeypatch, server, name, contents, read, unpacked_by="", checksum="md5"):
    """Let a dataset be offered by the server, in files of the same format, only smaller."""
    server.files |= contents
    server.tags |= {file: f'"{hashlib.md5(data).hexdigest()}"' for file, data in contents.items()}

    def sum_of(data):
        return ("md5:" if checksum == "md5" else "") + hashlib.new(checksum, data).hexdigest()

    remotes = tuple(_sources.Remote(f"{server.url}/{file}", sum_of(data), len(data)) for file, data in contents.items())
    monkeypatch.setitem(_sources.OFFERS, name, _sources.Offer(remotes, unpacked_by))
    spec = SPECS[name]
    layout = {file: hashlib.sha256(data).hexdigest() for file, data in read.items()} or spec.layouts[0]
    monkeypatch.setitem(SPECS, name, type(spec)(**{**vars(spec), "layouts": (layout,)}))


@pytest.fixture
def small_mnist(monkeypatch, server):
    images, labels = RNG.integers(0, 256, (30, 4, 4), np.uint8), RNG.integers(0, 10, 30).astype(np.uint8)
    contents = {
        "train-images-idx3-ubyte.gz": idx(images[:20]),
        "train-labels-idx1-ubyte.gz": idx(labels[:20]),
        "t10k-images-idx3-ubyte.gz": idx(images[20:]),
        "t10k-labels-idx1-ubyte.gz": idx(labels[20:]),
    }
    offer(monkeypatch, server, "mnist", contents, contents)
    return images, labels


def loads(home, images, labels):
    data = datasets.load("mnist", home)
    assert np.array_equal(data.X, images.reshape(30, 16))
    assert np.array_equal(data.y, labels)


def test_files_are_had_once_and_loaded(small_mnist, server, tmp_path):
    seen = []
    folder = datasets.get("mnist", tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert (folder, sorted(path.name for path in tmp_path.iterdir())) == (tmp_path / "mnist", ["mnist"])
    loads(tmp_path, *small_mnist)
    total = sum(map(len, server.files.values()))
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)
    asked = len(server.asked)
    assert datasets.get("infinite-digits", tmp_path) == folder
    assert len(server.asked) == asked == 4


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_server_that_breaks_off_is_asked_for_the_rest(small_mnist, server, tmp_path, knows_ranges):
    server.knows_ranges, server.breaks_after = knows_ranges, [100, 150]
    datasets.get("mnist", tmp_path)
    loads(tmp_path, *small_mnist)
    images = [wanted for name, wanted in server.asked if name.startswith("train-images")]
    assert images == ([None, "bytes=100-", "bytes=250-"] if knows_ranges else [None] * 3)


def test_the_next_call_goes_on_where_this_one_ended(small_mnist, server, tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "TRIES", 1)
    server.breaks_after = [120]
    with pytest.raises(OSError, match=r"must be had whole, got 120 bytes .* the same command goes on from there"):
        datasets.get("mnist", tmp_path)
    assert not (tmp_path / "mnist").exists()
    with pytest.raises(FileNotFoundError, match="`ilhash data get mnist` does"):
        datasets.load("mnist", tmp_path)
    datasets.get("mnist", tmp_path)
    assert server.asked[1] == ("train-images-idx3-ubyte.gz", "bytes=120-")
    loads(tmp_path, *small_mnist)


def test_a_file_that_changed_meanwhile_is_had_from_its_beginning(small_mnist, server, tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "TRIES", 1)
    name = "train-images-idx3-ubyte.gz"
    right, server.files[name], server.tags[name] = server.files[name], bytes(500), '"old"'
    server.breaks_after = [300]
    with pytest.raises(OSError, match="must be had whole"):
        datasets.get("mnist", tmp_path)
    server.files[name], server.tags[name] = right, '"new"'
    datasets.get("mnist", tmp_path)
    loads(tmp_path, *small_mnist)


def test_more_than_there_is_is_thrown_away(small_mnist, server, tmp_path):
    part = tmp_path / ".getting-mnist" / "train-images-idx3-ubyte.gz.part"
    part.parent.mkdir()
    part.write_bytes(bytes(100_000))
    datasets.get("mnist", tmp_path)
    loads(tmp_path, *small_mnist)


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"])
def test_a_wrong_checksum_leaves_nothing(small_mnist, server, tmp_path, name):
    right = server.files[name]
    server.files[name] = right[:-1] + b"!"
    with pytest.raises(DamagedFileError, match=rf"{name} must have MD5 [0-9a-f]+, got another file, of which nothing"):
        datasets.get("mnist", tmp_path)
    assert not (tmp_path / "mnist").exists()
    assert not list(tmp_path.rglob(f"{name}*"))
    server.files[name] = right
    datasets.get("mnist", tmp_path)
    loads(tmp_path, *small_mnist)


def test_a_file_with_the_right_md5_and_another_sha256_is_refused(small_mnist, server, tmp_path, monkeypatch):
    """MD5 can be forged; what is read must be the file of the registry."""
    spec = SPECS["mnist"]
    wrong = dict.fromkeys(spec.layouts[0], "0" * 64)
    monkeypatch.setitem(SPECS, "mnist", type(spec)(**{**vars(spec), "layouts": (wrong,)}))
    with pytest.raises(DamagedFileError, match="must have SHA-256 000"):
        datasets.get("mnist", tmp_path)
    assert not (tmp_path / "mnist").exists()


def test_files_that_are_there_stay_until_all_are(small_mnist, server, tmp_path):
    mine = tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz"
    mine.parent.mkdir()
    mine.write_bytes(server.files[mine.name])
    server.files.pop("t10k-images-idx3-ubyte.gz")
    with pytest.raises(OSError, match=r"t10k-images-idx3-ubyte\.gz must be there to be had, got 404"):
        datasets.get("mnist", tmp_path)
    assert [path.name for path in mine.parent.iterdir()] == [mine.name]


def test_a_server_that_is_not_there_is_named(small_mnist, tmp_path):
    with pytest.raises(OSError, match=r"http://127\.0\.0\.1:9/train-images.* must be had whole, got 0 bytes"):
        datasets.get("mnist", tmp_path, mirror="http://127.0.0.1:9/")


def test_a_mirror_has_the_same_files(small_mnist, server, tmp_path, monkeypatch):
    offered = _sources.OFFERS["mnist"].files
    moved = tuple(_sources.Remote(f"http://127.0.0.1:9/{one.name}", one.checksum, one.n_bytes) for one in offered)
    monkeypatch.setitem(_sources.OFFERS, "mnist", _sources.Offer(moved))
    datasets.get("mnist", tmp_path, mirror=f"{server.url}/")
    loads(tmp_path, *small_mnist)


def archive_of_batches(batches, also=()):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as members:
        for name, data in [*batches.items(), *also]:
            member = tarfile.TarInfo(name if "/" in name else f"cifar-10-batches-bin/{name}")
            member.size = len(data)
            members.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def test_batches_of_cifar10_come_out_of_their_archive(monkeypatch, server, tmp_path):
    batches = {name: RNG.bytes(3073 * 2) for name in SPECS["cifar10"].layouts[0]}
    others = [("../../escaped.txt", b"x"), ("/etc/escaped", b"x"), ("cifar-10-batches-bin/readme.html", b"x")]
    archive = archive_of_batches(batches, others)
    offer(monkeypatch, server, "cifar10", {"cifar-10-binary.tar.gz": archive}, batches, "batches_of_cifar10")
    folder = datasets.get("cifar10-gist", tmp_path / "home")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == batches
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["cifar10"]


@pytest.mark.parametrize(("change", "sentence"), [("missing", "must hold"), ("altered", "must have SHA-256")])
def test_an_archive_with_other_batches_is_refused(monkeypatch, server, tmp_path, change, sentence):
    batches = {name: RNG.bytes(100) for name in SPECS["cifar10"].layouts[0]}
    inside = {**batches, "test_batch.bin": b"other"}
    if change == "missing":
        del inside["test_batch.bin"]
    archive = archive_of_batches(inside)
    offer(monkeypatch, server, "cifar10", {"cifar-10-binary.tar.gz": archive}, batches, "batches_of_cifar10")
    with pytest.raises(DamagedFileError, match=sentence):
        datasets.get("cifar10", tmp_path)
    assert not (tmp_path / "cifar10").exists()


@pytest.fixture
def small_glove(monkeypatch, server):
    monkeypatch.setattr(_unpacking, "GLOVE_SHAPE", (50, 3))
    vectors, words = RNG.normal(size=(60, 3)).astype(np.float32), [f"wörd{i}" for i in range(60)]
    words[7] = "\x85"  # at which splitlines would break
    text = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, vectors.tolist(), strict=True))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("glove.6B.50d.txt", "not looked at")
        members.writestr("glove.6B.100d.txt", text)
    contents = {"glove.6B.zip": packed.getvalue()}
    offer(monkeypatch, server, "glove-6b-100d", contents, {}, "vectors_of_glove", checksum="sha256")
    return vectors[:50], tuple(words[:50])


def test_vectors_of_glove_are_made_of_its_text(small_glove, tmp_path):
    folder = datasets.get("glove", tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["made.json", "vectors.npy", "words.txt"]
    data = datasets.load("glove-6b-100d", tmp_path)
    assert data.X.dtype == np.float32
    assert np.array_equal(data.X, small_glove[0])
    assert data.words == small_glove[1]
    (info,) = (info for info in datasets.available(tmp_path) if info.name == "glove-6b-100d")
    assert info.present
    assert info.n_bytes == sum((folder / name).stat().st_size for name in ("vectors.npy", "words.txt"))


def test_made_files_that_are_altered_are_refused(small_glove, tmp_path):
    folder = datasets.get("glove", tmp_path)
    (folder / "words.txt").write_text("other\n")
    with pytest.raises(DamagedFileError, match="must have SHA-256"):
        datasets.load("glove-6b-100d", tmp_path)
    (folder / "made.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="glove-6b-100d"):
        datasets.load("glove-6b-100d", tmp_path)


def test_a_text_with_too_few_words_or_numbers_is_refused(small_glove, server, tmp_path, monkeypatch):
    monkeypatch.setattr(_unpacking, "GLOVE_SHAPE", (70, 3))
    with pytest.raises(DamagedFileError, match="must hold 70 words, got 60"):
        datasets.get("glove", tmp_path)
    monkeypatch.setattr(_unpacking, "GLOVE_SHAPE", (50, 4))
    with pytest.raises(DamagedFileError, match="must have 4 numbers in each line, got 3"):
        datasets.get("glove", tmp_path)
    assert not (tmp_path / "glove-6b-100d").exists()


def test_one_gets_a_dataset_at_a_time(small_mnist, tmp_path):
    (tmp_path / ".getting-mnist").mkdir()
    lock = _getting.WriterLock(tmp_path / ".getting-mnist" / "lock")
    with pytest.raises(OSError, match="must have one writer"):
        datasets.get("mnist", tmp_path)
    lock.release()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"name": "mirflickr"}, "name must be one of 'mnist', 'fashion-mnist', 'cifar10', 'glove-6b-100d'"),
        ({"name": "digits"}, "name must be one of"),
        ({"name": "mnist", "mirror": "file:///etc"}, "mirror must be an address that begins with http:// or https://"),
    ],
)
def test_wrong_arguments_are_refused(given, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        datasets.get(**given, data_home=tmp_path)


def test_facts_are_of_the_form_they_must_have():
    for name, one in _sources.OFFERS.items():
        assert one.unpacked_by in ("", *_unpacking.UNPACKERS)
        for file in one.files:
            assert len(file.checksum.removeprefix("md5:")) == (32 if file.checksum.startswith("md5:") else 64)
            assert one.unpacked_by or file.name in SPECS[name].layouts[0]


@functools.cache
def present(name):
    return {info.name: info.path for info in datasets.available() if info.present}.get(name)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_published_checksums_are_those_of_the_files_in_the_registry(name):
    """Where the files are here: the MD5 that others published and the SHA-256 in the registry are of the same bytes."""
    if present(name) is None:
        pytest.skip(f"ILHASH_DATA does not hold {name}")
    for file in _sources.OFFERS[name].files:
        data = (present(name) / file.name).read_bytes()
        assert (f"md5:{hashlib.md5(data).hexdigest()}", len(data)) == (file.checksum, file.n_bytes)
        assert hashlib.sha256(data).hexdigest() == SPECS[name].layouts[0][file.name]
