"""Sealed documents and sealed arrays: they come back as they were written, or are refused by one family of errors."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ilhash
from ilhash.search import DamagedStoreError
from ilhash.storage import (
    DamagedFileError,
    Enveloped,
    Sealed,
    SealedArrays,
    StorageError,
    UnknownFormatError,
    _durable,
    chunks_of_arrays,
    sha256_of,
    sha256_of_file,
    write_file,
    write_files,
)

KINDS = {
    "plain": Sealed("about.json", "a thing", 3),
    "of a kind": Sealed("about.json", "a thing", 3, kind="thing", seal="fingerprint"),
    "in an envelope": Enveloped("about.json", "a thing", 3),
}
PATH = Path("folder") / "about.json"  # only named, where bytes are at hand
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CONTENTS = st.dictionaries(st.text(min_size=1).map("own {}".format), VALUES, max_size=4)
CONTENT = {"seed": 1, "values": [0.5, 1e300, None], "words": {"a": "b", "é": "\ud800"}}


def damaged(data, draw):
    """Return bytes with some flipped, or cut short."""
    if draw(st.booleans()):
        return data[: draw(st.integers(0, len(data) - 1))]
    bad = bytearray(data)
    for place in draw(st.lists(st.integers(0, len(data) - 1), min_size=1, max_size=3, unique=True)):
        bad[place] ^= draw(st.integers(1, 255))
    return bytes(bad)


def attempt(read, *arguments):
    """Return what is read, or else the sentence of an error of the family."""
    try:
        return read(*arguments), None
    except StorageError as error:
        return None, str(error)


# ---------------------------------------------------------------------------------------------- documents


@pytest.mark.parametrize("kind", KINDS)
@given(content=CONTENTS)
def test_a_document_comes_back_with_its_header(kind, content):
    document = KINDS[kind].from_bytes(KINDS[kind].to_bytes(content), PATH)
    assert {name: document[name] for name in content} == content
    assert (document["format"], document["ilhash"]) == (3, ilhash.__version__)


@pytest.mark.parametrize("kind", KINDS)
@given(content=CONTENTS, data=st.data())
def test_a_damaged_document_is_refused_or_reads_the_same(kind, content, data):
    sealed = KINDS[kind]
    whole = sealed.to_bytes(content)
    found, refusal = attempt(sealed.from_bytes, damaged(whole, data.draw), PATH)
    if refusal:
        assert refusal.startswith(f"{PATH} must ")
    else:
        assert found == sealed.from_bytes(whole, PATH)


@pytest.mark.parametrize("kind", KINDS)
def test_every_single_flip_and_every_cut(kind):
    sealed = KINDS[kind]
    whole = sealed.to_bytes(CONTENT)
    found = sealed.from_bytes(whole, PATH)
    for place in range(len(whole)):
        with pytest.raises(StorageError):
            sealed.from_bytes(whole[:place], PATH)
        for bit in range(8):
            bad = bytearray(whole)
            bad[place] ^= 1 << bit
            again, refusal = attempt(sealed.from_bytes, bytes(bad), PATH)
            assert refusal or again == found


def test_what_is_wrong_is_said_in_one_sentence(tmp_path):
    sealed = KINDS["of a kind"]
    file = tmp_path / "about.json"

    def refused(error, words, text=None):
        if text is not None:
            file.write_text(text)
        with pytest.raises(error, match=words) as caught:
            sealed.read(tmp_path)
        assert str(tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)

    refused(FileNotFoundError, r"must be a directory of a thing with a about\.json, got none")
    sealed.write(tmp_path, CONTENT)
    whole = file.read_text()
    assert sealed.read(tmp_path) == sealed.sealed(CONTENT) == json.loads(whole)
    refused(DamagedFileError, "must be the description of a thing, got something else than a JSON document", whole[:-3])
    refused(UnknownFormatError, "got another JSON document", "[1]")
    refused(UnknownFormatError, "got another JSON document", whole.replace('"kind": "thing"', '"kind": "other"'))
    refused(UnknownFormatError, "got another JSON document", whole.replace('"format": 3', '"format": "3"'))
    newer = whole.replace('"format": 3', '"format": 4')
    refused(UnknownFormatError, r"must have format 3, got format 4 written by ilhash .*: upgrade ilhash", newer)
    refused(DamagedFileError, "must be as it was written", whole.replace('"seed": 1', '"seed": 2'))


def test_a_newer_envelope_is_told_from_a_damaged_one():
    newer = Enveloped("about.json", "a thing", 4).to_bytes(CONTENT)
    with pytest.raises(UnknownFormatError, match="upgrade ilhash"):
        KINDS["in an envelope"].from_bytes(newer, PATH)
    with pytest.raises(DamagedFileError, match="SHA-256"):
        KINDS["in an envelope"].from_bytes(newer.replace(b'"format": 4', b'"format": 3'), PATH)


def test_a_folder_may_be_new_or_hold_the_same_and_nothing_else(tmp_path):
    sealed = KINDS["plain"]
    assert not sealed.begun(tmp_path / "new")
    assert not sealed.begun(tmp_path)
    (tmp_path / f"{_durable.TEMPORARY}left by a crash").touch()
    assert not sealed.begun(tmp_path)
    (tmp_path / "mine.txt").touch()
    with pytest.raises(
        ValueError, match=r"place must be a new directory or one that holds a thing, got .* other files"
    ):
        sealed.begun(tmp_path, "place")
    with pytest.raises(ValueError, match="path must be a directory for a thing, got the file"):
        sealed.begun(tmp_path / "mine.txt")
    sealed.write(tmp_path, {})
    assert sealed.begun(tmp_path)


def test_the_checksum_rules_are_those_of_files_that_are_out_there():
    """Changing a rule would make every older file a damaged one."""
    document = {"format": 1, "ilhash": "0.0.1", "seed": 7, "parameters": {"b": [1.5, None], "a": "é"}}
    digest = "a1952e63b7f08bc73e4241180fa3c972eba8a8d802d83ff74bae299c7f771b39"
    for seal in ("checksum", "fingerprint"):
        written = json.dumps({**document, seal: digest}).encode()
        assert Sealed("f", "a thing", 1, seal=seal).from_bytes(written, PATH) == {**document, seal: digest}
    digest = b"9df0ba9a4eaf273e4beda1714a7a64d685fedfba281b97cac8411015140a5a86"
    written = b'{"sha256": "%s", "manifest": {"format": 1, "generation": 0}}\n' % digest
    assert Enveloped("f", "a store", 1).from_bytes(written, PATH) == {"format": 1, "generation": 0}


# ---------------------------------------------------------------------------------------------- arrays


ARRAYS = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "none": np.zeros((0, 3)), "y": np.array([1, 2], np.int64)}
FILES = {"with a text": SealedArrays(text="report"), "without": SealedArrays(spelling="{name} {shape} {dtype} ")}
DTYPES = st.sampled_from([np.uint8, np.int64, np.float32, np.float64, np.bool_])


@given(
    arrays=st.dictionaries(
        st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=5),
        DTYPES.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=1, min_side=0, max_side=4))),
        max_size=3,
    ),
    text=st.text(st.characters(codec="utf-8")),
)
@example(arrays={"f": np.asfortranarray(ARRAYS["w"])}, text="")
def test_arrays_come_back(tmp_path_factory, arrays, text):
    path = tmp_path_factory.mktemp("arrays") / "a.safetensors"
    FILES["with a text"].write(path, arrays, text)
    found, said = FILES["with a text"].read(path)
    assert said == text
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("kind", FILES)
def test_every_flip_and_cut_of_arrays_is_refused_or_reads_the_same(kind, tmp_path):
    path, text = tmp_path / "a.safetensors", "report" * (kind == "with a text")
    FILES[kind].write(path, ARRAYS, text)
    whole = path.read_bytes()
    seen = 0
    bad = [whole[:place] for place in range(len(whole))]
    for place in range(len(whole)):
        for bit in (0, 1, 5, 7):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << bit
            bad.append(bytes(flipped))
    for data in bad:
        path.unlink()  # the map of the file before may still be open
        path.write_bytes(data)
        content, refusal = attempt(FILES[kind].read, path)
        if refusal:
            assert refusal.startswith(f"{path} must be as it was written, got ")
            seen += 1
        else:
            found, said = content
            assert said == text
            assert found.keys() == ARRAYS.keys()
            assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items())
    assert seen > 0.9 * len(bad)


def test_missing_arrays_are_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        FILES["without"].read(tmp_path / "nothing.safetensors")


def test_the_digests_of_arrays_are_those_of_files_that_are_out_there():
    found = sha256_of([b"report", *chunks_of_arrays(ARRAYS)])
    assert found == "1f2c0c23425dcd671d55d4b99d62977156f3e2a246239d72d43a86beb5c1b6f3"
    found = sha256_of(chunks_of_arrays(ARRAYS, FILES["without"].spelling))
    assert found == "50ab211f175d9fc17be2b3050465f9ab12552e2164a12264c23a9feb3af94561"


# ---------------------------------------------------------------------------------------------- files and errors


def test_sha256_of_a_file_in_pieces(tmp_path):
    data = bytes(range(256)) * 10_000
    (tmp_path / "f").write_bytes(data)
    assert sha256_of_file(tmp_path / "f") == sha256_of([data[:7], data[7:]]) == sha256_of([data])


def test_one_class_catches_all():
    for error in (DamagedFileError, UnknownFormatError, DamagedStoreError):
        assert issubclass(error, ilhash.StorageError)
    assert issubclass(DamagedStoreError, DamagedFileError)
    assert issubclass(ilhash.StorageError, ValueError)


def test_names_are_flushed_after_every_rename(tmp_path, monkeypatch):
    steps = []
    replace, sync = _durable.os.replace, _durable.sync_folder
    monkeypatch.setattr(_durable.os, "replace", lambda old, new: steps.append(new.name) or replace(old, new))
    monkeypatch.setattr(_durable, "sync_folder", lambda folder: steps.append(folder) or sync(folder))
    write_file(tmp_path / "a", [b"1", b"2"])
    assert steps == ["a", tmp_path]
    steps.clear()
    (tmp_path / "sub").mkdir()
    write_files({tmp_path / "a": b"3", tmp_path / "b": b"4", tmp_path / "sub" / "c": b"5"})
    assert steps[:3] == ["c", "b", "a"]
    assert set(steps[3:]) == {tmp_path, tmp_path / "sub"}
    assert [(tmp_path / name).read_bytes() for name in ("a", "b", "sub/c")] == [b"3", b"4", b"5"]


def test_of_several_files_none_appears_when_one_cannot_be_written(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(FileNotFoundError):
        write_files({tmp_path / "a": b"new", tmp_path / "no such folder" / "b": b"new"})
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"old")]
