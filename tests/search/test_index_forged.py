"""Indexes that somebody made to do harm: every checksum is right, and what they guard is not what an index writes."""

import itertools
import json
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import indexes
from tests.fuzz._harness import run

import ilhash
from ilhash import HammingIndex, _core
from ilhash.search import DamagedStoreError, verify
from ilhash.storage import StorageError

QUERY = np.zeros((1, 2), np.uint8)
OWN = "segment-00000001-00000000.bin"


def written(folder, n_bits=12, **options):
    """Write a small index whose items share codes."""
    codes = ilhash.codes.pack(np.random.default_rng(0).random((40, n_bits)) < 0.1)
    with HammingIndex.open(folder, n_bits=n_bits, **options) as index:
        index.add(codes, [f"item {i}" for i in range(40)] if options.get("ids") == "str" else None)
        index.remove(index.ids[[3, 7]])
    return folder


def forged(folder, change, **options):
    """Write an index with one change of its parts, checksums computed again."""
    index = indexes.Index(written(folder / "origin", **options))
    change(index)
    index.write(folder / "index", None)
    return folder / "index"


def use(path):
    """Use everything that an index serves, then change it."""
    for writable in (False, True):
        with HammingIndex.open(path, writable=writable) as index:
            index.search(np.zeros((1, -(-index.n_bits // 8)), np.uint8), 5)
            list(index)
            if writable:
                index.compact()


def refused(path, sentence):
    """The index is refused in one sentence, by verify too, and is not changed by that."""
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.name != "lock"}
    with pytest.raises(StorageError, match=sentence) as caught:
        use(path)
    assert "\n" not in str(caught.value)
    assert not verify(path).ok
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.name != "lock"} == before


def values(name, content):
    """Change the content of an array of the segment."""

    def change(index):
        array = index.files[OWN].arrays[name]
        index.files[OWN].arrays[name] = content(array.copy())

    return change


def put(place, value):
    def content(array):
        array[place] = value
        return array

    return content


CONTENTS = {
    "ids that descend": ("ids", put(5, 1), "ids must ascend"),
    "an id twice": ("ids", put(5, 4), "ids must ascend"),
    "offsets beyond the rows": ("offsets", put(1, 4_000_000_000), "offsets must begin at 0 and ascend"),
    "an empty list": ("offsets", put(1, 0), "offsets must begin at 0 and ascend"),
    "a row that is not there": ("rows", put(3, 4_000_000_000), "rows must be smaller than their number"),
    "a row twice": (
        "rows",
        lambda rows: np.where(rows == 5, 6, rows).astype(rows.dtype),
        "row must have two codes|rows",
    ),
    "bits behind the last": ("tiles", put((0, 1, 0), 1), "zeros behind their last bit"),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_content_that_no_index_writes(tmp_path, what):
    name, content, sentence = CONTENTS[what]
    refused(forged(tmp_path, values(name, content)), sentence)


TEXTS = {
    "ends beyond the text": ("id_ends", put(-1, 10**9), "ends of texts"),
    "ends that descend": ("id_ends", put(3, 0), "ends of texts"),
    "half a character": ("id_text", put(2, 0xC3), "texts must be UTF-8"),
    "texts that descend": ("id_text", put(5, ord("z")), "texts must ascend"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_texts_that_no_index_writes(tmp_path, what):
    name, content, sentence = TEXTS[what]
    refused(forged(tmp_path, values(name, content), ids="str"), sentence)


def removal(index):
    (file,) = (file for name, file in index.files.items() if name.startswith("removed"))
    return file


@pytest.mark.parametrize("rows", [[3, 40], [-1, 3], [7, 3], [3, 3]])
@pytest.mark.parametrize("ids", ["int", "str"])
def test_removed_rows_that_are_none(tmp_path, rows, ids):
    def change(index):
        removal(index).arrays = {OWN.removesuffix(".bin"): np.array(rows)}

    refused(forged(tmp_path, change, ids=ids), "rows")


DTYPES = ["|O", "<f8", "<i4", ">i8", "<M8[s]", "|V8", "|S8"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_array_is_of_another_kind(tmp_path, dtype):
    def change(index):
        index.files[OWN].lies["ids"] = {"dtype": dtype}

    refused(forged(tmp_path, change), "dtype|must be int64|bytes")


NAMES = ["../other/segment-00000001-00000000.bin", "sub/none.bin", "..", "lock", "manifest.json", "", "/etc/passwd"]
NAMES += ["segment-00000001-0000000\u0660.bin", f"{OWN}\n", "segment-1-00000000.bin", "removed-00000001-00000000.bin"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_ours_alone(tmp_path, name):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / OWN).write_bytes(b"precious")

    def change(index):
        index.moved[OWN] = name

    refused(forged(tmp_path, change), "must have 'file'")
    assert (tmp_path / "other" / OWN).read_bytes() == b"precious"


def deep(levels):
    return [deep(levels - 1)] if levels else 0


def segment_names(index):
    return index.placed["segments"]


STRUCTURES = {
    "a segment twice": (lambda index: segment_names(index).append(OWN), "name each file once"),
    "an array too many": (
        lambda index: index.files[OWN].arrays.update({"evil": np.zeros(3)}),
        "must have arrays",
    ),
    "an array too few": (lambda index: index.files[OWN].arrays.pop("tiles"), "must have arrays"),
    "a block of nothing": (lambda index: setattr(index.files[OWN], "block", 1), "'block'"),
    "arrays over each other": (
        lambda index: index.files[OWN].lies.update({"tiles": {"offset": 0}}),
        "'offset'",
    ),
    "more rows than ids": (lambda index: setattr(index.files[OWN], "rows", 4000), "must have 4000 rows"),
    "another shape": (lambda index: index.files[OWN].lies.update({"ids": {"shape": [2**40]}}), "'bytes'"),
    "fewer checksums": (lambda index: index.files[OWN].lies.update({"ids": {"crc32": ""}}), "checksum for each block"),
    "codes of more bits": (lambda index: index.manifest["settings"].update(n_bits=99), "'tiles' must be"),
    "no bits": (lambda index: index.manifest["settings"].update(n_bits=0), "'n_bits'"),
    "too many bits": (lambda index: index.manifest["settings"].update(n_bits=2**40), "'n_bits'"),
    "bits that are none": (lambda index: index.manifest["settings"].update(n_bits=True), "'n_bits'"),
    "ids of another kind": (lambda index: index.manifest["settings"].update(ids="uuid"), "'ids', one of"),
    "bits that are no fingerprints": (lambda index: index.manifest["settings"].update(bits=["x"] * 12), "bits"),
    "fingerprints of fewer bits": (lambda index: index.manifest["settings"].update(bits=["0" * 16] * 11), "bits"),
    "bits that are numbers": (lambda index: index.manifest["settings"].update(bits=[1] * 12), "bits"),
    "margins without end": (
        lambda index: index.manifest["settings"].update(margin_scale=[1e999] * 12),
        "written again",
    ),
    "margins of less than nothing": (
        lambda index: index.manifest["settings"].update(margin_scale=[-1.0] * 12),
        "margin_scale",
    ),
    "a setting without end": (lambda index: index.manifest["settings"].update(x={"y": 1e999}), "written again"),
    "margins of nothing": (
        lambda index: index.manifest["settings"].update(margin_scale=[1.0] * 12),
        "must have arrays",
    ),
    "a next id beyond all": (lambda index: index.manifest["notes"].update(next_id=2**64), "'next_id'"),
    "deep settings": (lambda index: index.manifest["settings"].update(x=deep(60)), "settings and notes of 8"),
    "no generation": (lambda index: index.manifest.pop("generation"), "'generation'"),
}


@pytest.mark.parametrize("what", STRUCTURES)
def test_structures_that_no_index_writes(tmp_path, what):
    change, sentence = STRUCTURES[what]
    refused(forged(tmp_path, change), sentence)


PIVOTS = {
    "a pivot that is not there": ("rings", (0, 0), 60_000, "ranges must name pivots that there are"),
    "distances beyond the bits": ("rings", (0, 2), 60_000, "at most the number of bits"),
    "distances that descend": ("rings", (0, 1), 62, "distances that ascend"),
    "pivots with padding": ("pivots", (0, -1), 255, "pivots must have zeros behind their last bit"),
}


@pytest.mark.parametrize("what", PIVOTS)
def test_pivots_that_no_index_writes(tmp_path, what):
    name, place, value, sentence = PIVOTS[what]
    indexes.made_with_pivots(tmp_path / "origin")
    index = indexes.Index(tmp_path / "origin")
    values(name, put(place, value))(index)
    index.write(tmp_path / "index", None)
    refused(tmp_path / "index", sentence)


def test_ids_in_two_segments_are_named_and_not_merged(tmp_path):
    def change(index):
        index.files["segment-00000001-00000001.bin"] = index.files[OWN]
        index.placed["segments"].append("segment-00000001-00000001.bin")

    path = forged(tmp_path, change)
    (damage,) = verify(path).damages
    assert "38 of 40 are in other segments too" in str(damage)
    with HammingIndex.open(path) as index, pytest.raises(StorageError, match="in one segment each, got 38"):
        index.compact()


# ---------------------------------------------------------------------------------------------- things in the folder


def instead(path, thing):
    """Put something else in the place of a file."""
    data = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    if thing == "pipe":
        os.mkfifo(path)
    elif thing == "link":
        path.with_name("real").write_bytes(data)
        path.symlink_to("real")
    elif thing == "nowhere":
        path.symlink_to("nowhere")
    elif thing == "device":
        path.symlink_to("/dev/zero")
    elif thing == "folder":
        path.mkdir()
    elif thing == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            here = Path.cwd()
            os.chdir(path.parent)  # names of sockets are short
            end.bind(path.name)
            os.chdir(here)
    else:
        with path.open("wb") as file:
            file.truncate(50 << 30)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")
@pytest.mark.parametrize("thing", ["pipe", "link", "nowhere", "device", "folder", "socket", "sparse"])
@pytest.mark.parametrize("file", ["manifest.json", "segment", "removed", "lock"])
def test_other_things_in_the_place_of_files(tmp_path, file, thing):
    path = written(tmp_path / "index")
    (place,) = path.glob(f"{file}*")
    instead(place, thing)
    if (file, thing) == ("lock", "sparse"):
        HammingIndex.open(path).close()  # nobody reads it
        return
    with pytest.raises((StorageError, OSError)) as caught:
        use(path)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, DamagedStoreError | OSError) or file == "lock"
    if file != "lock":
        assert not verify(path).ok
        with pytest.raises((StorageError, OSError)):
            HammingIndex.open(path, n_bits=12)


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_the_lock_of_a_stranger_is_not_written_over(tmp_path):
    path = written(tmp_path / "index")
    (tmp_path / "thesis.txt").write_text("important")
    (path / "lock").unlink()
    os.link(tmp_path / "thesis.txt", path / "lock")
    with HammingIndex.open(path) as index:
        index.compact()
    assert (tmp_path / "thesis.txt").read_text() == "important"


def test_a_folder_that_nobody_may_read(tmp_path):
    path = written(tmp_path / "index")
    path.chmod(0)
    code = """
import os, sys
import ilhash, ilhash.search
ilhash.HammingIndex(n_bits=8)
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
for call in (lambda: ilhash.HammingIndex.open(sys.argv[1]), lambda: ilhash.search.verify(sys.argv[1])):
    try:
        call()
    except (ilhash.StorageError, OSError) as error:
        print(type(error).__name__, str(error).count(chr(10)))
"""
    try:
        ended = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    finally:
        path.chmod(0o755)
    assert ended.stderr == ""
    assert [line.split()[1] for line in ended.stdout.splitlines()] == ["0", "0"]


# ---------------------------------------------------------------------------------------------- many


def test_forged_indexes_are_refused_or_harmless():
    outcome = run("tests.fuzz.indexes", seconds=12, seed=int.from_bytes(os.urandom(4), "big"))
    assert not outcome.failures, "\n".join(f"{f.forged}\n{f.outcome}\nkept in {f.kept}" for f in outcome.failures)
    assert outcome.tried > 20
    assert outcome.counts["works"] < outcome.tried / 2


# ---------------------------------------------------------------------------------------------- texts in the core


def joined(texts):
    ends = np.cumsum([0, *(len(text) for text in texts)])
    return np.frombuffer(b"".join(texts), np.uint8), ends.astype(np.int64)


def is_sound(texts):
    """The slow twin of check_texts, of texts that are well cut."""
    try:
        for text in texts:
            text.decode()
    except UnicodeDecodeError:
        return False
    return all(a < b for a, b in itertools.pairwise(texts))


PIECES = [
    b"a",
    b"b",
    b"\0",
    "é".encode(),
    "€".encode(),
    "\U0001f600".encode(),
    b"\xc3",
    b"\x80",
    b"\xed\xa0\x80",
    b"\xff",
]
SOME_TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join), max_size=12)


@settings(max_examples=300, deadline=None)
@given(texts=SOME_TEXTS, ascending=st.booleans())
def test_texts_are_sound_where_python_says_so(texts, ascending):
    texts = sorted(set(texts)) if ascending else texts
    try:
        _core.check_texts(*joined(texts))
        sound = True
    except ValueError:
        sound = False
    assert sound == is_sound(texts)


@settings(max_examples=200, deadline=None)
@given(texts=SOME_TEXTS.map(set).map(sorted), wanted=SOME_TEXTS)
def test_texts_are_found_where_they_are(texts, wanted):
    found = _core.find_texts(*joined(texts), *joined(wanted))
    assert found.tolist() == [texts.index(text) if text in texts else -1 for text in wanted]


@pytest.mark.parametrize("ends", [[0, 9], [0, 3, 2], [1, 3], [-1, 3], [0, 2], []])
def test_texts_whose_ends_lead_elsewhere(ends):
    text, ends = np.frombuffer(b"abc", np.uint8), np.array(ends, np.int64)
    with pytest.raises(ValueError, match="ends of texts"):
        _core.check_texts(text, ends)


# ---------------------------------------------------------------------------------------------- no pickle


def test_pickling_says_what_to_do_instead():
    with pytest.raises(TypeError, match=r"index.save\(path\).*HammingIndex.open\(path\)"):
        pickle.dumps(HammingIndex(n_bits=8))


def test_manifests_of_the_first_version_have_no_notes(tmp_path):
    path = written(tmp_path / "index")
    document = json.loads((path / "manifest.json").read_bytes())["manifest"]
    assert document["notes"] == {"next_id": 40}
    index = indexes.Index(path)
    del index.manifest["notes"]
    index.write(tmp_path / "old", None)
    with HammingIndex.open(tmp_path / "old") as old:
        assert old.add(np.zeros((1, 2), np.uint8)).tolist() == [40]
