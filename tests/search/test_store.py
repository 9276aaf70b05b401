"""The durable store: what was committed is read again, snapshots stay, and no damage is ever served."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.search.killed_writer import SETTINGS, commit_next, our_files, segment, state_after, state_of, tell

from ilhash.search import DamagedStoreError, StoreLockedError, _array_file, _header, _manifest, _snapshot, _store
from ilhash.search._store import Store
from ilhash.search._verify import verify_files as verify

ROOT = Path(__file__).parents[2]
BLOCK = _array_file.BLOCK
SIZES = [5, 0, 300, 1]


def program(*arguments, **options):
    command = [sys.executable, "-m", "tests.search.killed_writer", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stdin=subprocess.PIPE, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


def codes(*values):
    return {"codes": np.array(values, np.uint8).reshape(-1, 1)}


# ---------------------------------------------------------------------------------------------- reading and writing


def test_a_story_is_read_as_it_was_written(path):
    with Store.create(path, SETTINGS) as store:
        for n in range(1, 40):
            assert commit_next(store, SIZES) == n
            assert state_of(store) == state_after(n, SIZES)
    with Store.open(path, writable=False) as store:
        assert state_of(store) == state_after(39, SIZES)
        assert dict(store.settings) == SETTINGS
        assert store.generation == 39
        report = store.verify()
    assert report.ok
    assert not report.leftovers
    assert report.n_files == len(our_files(path))
    assert report.n_bytes == sum((path / name).stat().st_size for name in our_files(path))
    assert "nothing damaged" in str(report)


DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.unicode_string_dtypes(max_len=5),
    hnp.byte_string_dtypes(max_len=5),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9))


@settings(max_examples=25, deadline=None)
@given(segments=st.lists(st.dictionaries(st.text(max_size=5), ARRAYS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_any_arrays_come_back(tmp_path_factory, segments):
    path = tmp_path_factory.mktemp("any") / "store"
    with Store.create(path, {}) as store:
        names = store.commit(add=segments)
    with Store.open(path, writable=False) as store:
        assert tuple(stored.name for stored in store.segments) == names
        for stored, arrays in zip(store.segments, segments, strict=True):
            assert tuple(stored.arrays) == tuple(arrays)
            assert stored.n_rows == len(next(iter(arrays.values())))
            for name, array in arrays.items():
                found = stored[name]
                assert found.dtype == array.dtype.newbyteorder("<")
                assert found.shape == array.shape
                assert found.tobytes() == array.astype(found.dtype).tobytes()
                assert not found.flags.writeable
                assert found.ctypes.data % 64 == 0 or not found.size
        assert verify(path).ok


def test_odd_layouts_and_single_numbers(path):
    matrix = np.arange(12, dtype=np.int64).reshape(3, 4)
    given = {
        "fortran": np.asfortranarray(matrix),
        "strided": matrix[::2, ::-1],
        "number": np.float32(3),
        "list": [1, 2],
    }
    with Store.create(path, {}) as store:
        store.commit(add=[given])
        for name, array in given.items():
            assert np.array_equal(store.segments[0][name], array)
            assert store.segments[0][name].shape == np.shape(array)


def test_names_are_never_used_again_and_dropped_files_go(path):
    seen = set()
    with Store.create(path, {}) as store:
        names = store.commit(add=[codes(1), codes(2)])
        for _ in range(20):
            assert not seen & set(names)
            seen |= set(names)
            names = store.commit(add=[codes(3)], drop=names)
        assert our_files(path) == {"manifest.json", f"{names[0]}.bin"}


def test_dead_rows_add_up_in_few_files(path):
    rng = np.random.default_rng(0)
    with Store.create(path, {}) as store:
        first, second = store.commit(add=[codes(*range(250))] * 2)
        dead = {first: set(), second: set()}
        for _ in range(40):
            for name in (first, second)[: rng.integers(1, 3)]:
                rows = rng.integers(0, 250, rng.integers(1, 4))
                store.commit(remove={name: rows})
                dead[name] |= set(rows.tolist())
            assert {stored.name: set(stored.removed.tolist()) for stored in store.segments} == dead
            assert len(list(path.glob("removed-*"))) < 12
        assert all(np.all(np.diff(stored.removed) > 0) for stored in store.segments)
        store.commit(drop=[first])
        assert set(store.segments[0].removed.tolist()) == dead[second]
        store.commit(remove={second: np.arange(250)})
        (file,) = path.glob("removed-*")  # in which nothing is left of the first
        assert [array["name"] for array in json.loads(file.read_bytes().split(b"\n")[0])["arrays"]] == [second]
        store.commit(drop=[second])
        assert our_files(path) == {"manifest.json"}


def test_a_commit_of_nothing_writes_nothing(path):
    with Store.create(path, {}) as store:
        (name,) = store.commit(add=[codes(1, 2)])
        before = (path / "manifest.json").read_bytes()
        assert store.commit() == ()
        assert store.commit(remove={name: np.array([], np.int64)}) == ()
        assert (path / "manifest.json").read_bytes() == before


def test_the_operating_system_may_write_less_than_it_is_asked(path, monkeypatch):
    original = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: original(descriptor, data[:100]))
    tell(path, 9, SIZES)
    with Store.open(path, writable=False) as store:
        assert state_of(store) == state_after(9, SIZES)


def test_the_directory_of_the_process_may_change(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with Store.create("store", {}) as store:
        monkeypatch.chdir("/")
        store.commit(add=[codes(1)])
    assert verify(path).n_files == 2


# ---------------------------------------------------------------------------------------------- snapshots


def test_a_reader_stays_on_its_snapshot_until_it_asks(path):
    tell(path, 20, SIZES)
    with Store.open(path, writable=True) as writer, Store.open(path, writable=False) as reader:
        for _ in range(30):
            commit_next(writer, SIZES)
        assert not set(our_files(path)) & {f"{stored.name}.bin" for stored in reader.segments}
        old = reader.segments
        assert state_of(reader) == state_after(20, SIZES)
        assert reader.refresh()
        assert not reader.refresh()
        assert state_of(reader) == state_of(writer) == state_after(50, SIZES)
        assert [stored.removed.tolist() for stored in old] == [list(r) for _, r in state_after(20, SIZES).values()]
        assert not writer.refresh()


def test_segments_that_stay_are_checked_once(path, monkeypatch):
    checked = []
    original = _array_file._damaged_blocks
    monkeypatch.setattr(
        _array_file, "_damaged_blocks", lambda region, *rest: checked.append(region.name) or original(region, *rest)
    )
    with Store.create(path, {}) as writer, Store.open(path, writable=False) as reader:
        writer.commit(add=[{"a": np.zeros(3), "b": np.zeros(3)}])
        reader.refresh()
        assert reader.segments[0]["a"] is reader.segments[0]["a"]
        writer.commit(add=[{"c": np.zeros(3)}], remove={writer.segments[0].name: [1]})
        reader.refresh()
        assert reader.segments[0]["a"].sum() == 0
        assert reader.segments[0].removed.tolist() == [1]
        assert checked == ["a", reader.segments[0].name]


def test_arrays_outlive_the_store(path):
    with Store.create(path, {}) as store:
        store.commit(add=[segment(5, 100)])
        stored = store.segments[0]
    for file in path.iterdir():
        file.unlink()
    for name, array in segment(5, 100).items():
        assert np.array_equal(stored[name], array)


def test_a_reader_that_loses_a_race_tries_again(path, monkeypatch):
    with Store.create(path, {}) as writer:
        names = writer.commit(add=[codes(1), codes(2)])
        races = iter(range(3))

        def late(folder, entry):
            for race in races:  # the writer drops what the reader is about to open
                names[:] = writer.commit(add=[codes(3 + race), codes(4 + race)], drop=names)
                break
            return _array_file.ArrayFile(folder, entry)

        names = list(names)
        monkeypatch.setattr(_snapshot, "ArrayFile", late)
        with Store.open(path, writable=False) as reader:
            assert [stored.name for stored in reader.segments] == names
            assert [int(stored["codes"][0, 0]) for stored in reader.segments] == [5, 6]


def test_readers_beside_a_busy_writer(path):
    tell(path, 9, SIZES)
    process = program("run", path, *SIZES)
    try:
        process.stdout.readline()
        seen = set()
        deadline = time.monotonic() + 120  # on a busy machine generations come slowly
        with Store.open(path, writable=False) as follower:
            while len(seen) <= 10 and time.monotonic() < deadline:
                with Store.open(path, writable=False) as reader:
                    assert state_of(reader) == state_after(reader.generation, SIZES)
                    report = reader.verify()
                    assert report.ok, report
                    seen.add(reader.generation)
                follower.refresh()
                assert follower.generation >= max(seen)
                assert state_of(follower) == state_after(follower.generation, SIZES)
    finally:
        process.kill()
        process.communicate()
    assert len(seen) > 10


def test_threads_may_commit_to_one_store(path):
    with Store.create(path, {}) as store:
        threads = [threading.Thread(target=lambda i=i: store.commit(add=[codes(i)])) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(int(stored["codes"][0, 0]) for stored in store.segments) == list(range(8))


# ---------------------------------------------------------------------------------------------- one writer


def test_a_second_writer_is_told_who_the_first_is(path):
    tell(path, 2, SIZES)
    process = program("hold", path)
    process.stdout.readline()
    with pytest.raises(StoreLockedError, match=f"one writer, got a second: process {process.pid} has it open"):
        Store.open(path, writable=True)
    Store.open(path, writable=False).close()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Store.open(path, writable=True) as store:
        with pytest.raises(StoreLockedError, match="this process itself"):
            Store.open(path, writable=True)
        commit_next(store, SIZES)
    Store.open(path, writable=True).close()


def test_a_writer_that_waited_for_nothing_sees_the_last_commit(path, monkeypatch):
    tell(path, 8, SIZES)
    original = _store.WriterLock

    def late(file):
        monkeypatch.setattr(_store, "WriterLock", original)
        with Store.open(path, writable=True) as faster:
            commit_next(faster, SIZES)
        return original(file)

    monkeypatch.setattr(_store, "WriterLock", late)
    with Store.open(path, writable=True) as store:
        assert state_of(store) == state_after(9, SIZES)
        commit_next(store, SIZES)
    with Store.open(path, writable=False) as store:
        assert state_of(store) == state_after(10, SIZES)


def test_a_lock_without_a_number_still_locks(path):
    with Store.create(path, {}):
        (path / "lock").write_text("?")
        with pytest.raises(StoreLockedError, match="another process"):
            Store.open(path, writable=True)
    (path / "lock").unlink()
    Store.open(path, writable=True).close()


def test_a_store_that_is_forgotten_lets_its_lock_go(path):
    store = Store.create(path, {})
    del store
    Store.open(path, writable=True).close()


FORK = """
import os, sys, time
from ilhash.search._store import Store
from ilhash.search._verify import verify_files as verify
store = Store.open(sys.argv[1], writable=True)
if os.fork() == 0:
    try:
        store.commit(drop=[])
    except ValueError as error:
        print(error, flush=True)
    time.sleep(60)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_neither_writes_nor_keeps_the_lock(path):
    Store.create(path, {}).close()
    process = subprocess.Popen(
        [sys.executable, "-c", FORK, path], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert "written by the process that opened it" in process.stdout.readline()
        process.kill()
        process.wait()
        Store.open(path, writable=True).close()  # the child lives on
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


# ---------------------------------------------------------------------------------------------- wrong use


def test_a_folder_with_something_in_it_is_left_alone(path):
    path.mkdir()
    (path / "thesis.txt").write_text("important")
    with pytest.raises(ValueError, match=r"new or empty folder .* not empty"):
        Store.create(path, {})
    with pytest.raises(ValueError, match="not empty"):
        Store.create(path / "thesis.txt", {})
    for no_store in (path, path / "thesis.txt", path / "nothing"):
        for writable in (False, True):
            with pytest.raises(FileNotFoundError, match="not a store"):
                Store.open(no_store, writable=writable)
        with pytest.raises(FileNotFoundError, match="not a store"):
            verify(no_store)
    assert [file.name for file in path.iterdir()] == ["thesis.txt"]


def test_an_interrupted_creation_can_be_repeated(path):
    path.mkdir()
    (path / "lock").touch()
    (path / ".writing-0123456789abcdef").write_text("half a mani")
    Store.create(path, {}).close()
    with pytest.raises(ValueError, match="not empty"):
        Store.create(path, {})
    assert verify(path).leftovers == (path / ".writing-0123456789abcdef",)
    Store.open(path, writable=True).close()
    assert our_files(path) == {"manifest.json"}


@pytest.mark.parametrize("wrong", [{"a": {1, 2}}, {"a": (1, 2)}, {1: 2}, {"a": float("nan")}, {"a": np.int64(3)}])
def test_settings_that_json_would_change_are_refused(path, wrong):
    with pytest.raises(TypeError, match="settings must be what JSON can hold"):
        Store.create(path, wrong)
    assert not path.exists()


def test_wrong_commits_change_nothing(path):
    with Store.create(path, {}) as store:
        (name,) = store.commit(add=[codes(1, 2, 3)])
        before = our_files(path)
        wrong = [
            ({"add": [codes(1), {"a": np.array([object()])}]}, TypeError, r"add\[1\]\['a'\] must be .* got object"),
            ({"add": [{"a": np.zeros(2, complex)}]}, TypeError, "complex128"),
            ({"add": [{"a": np.zeros(2, np.longdouble)}]}, TypeError, "up to 64 bits"),
            ({"add": [{"a": np.zeros(2, "M8[s]")}]}, TypeError, "datetime64"),
            ({"add": [{}]}, TypeError, "at least one array"),
            ({"add": [{3: np.zeros(2)}]}, TypeError, "mapping of names"),
            ({"add": [np.zeros(3)]}, TypeError, "got ndarray"),
            ({"add": [{"a": np.float32(2)}]}, ValueError, "number of rows"),
            ({"remove": {name: [0, 3, -1]}}, ValueError, "from 0 to 2, got 2 rows outside"),
            ({"remove": {name: np.array([True, False, True])}}, TypeError, "row numbers, got bool"),
            ({"remove": {name: np.array([0.5])}}, TypeError, "row numbers, got float64"),
            ({"remove": {name: np.array([[1]])}}, TypeError, r"shape \(1, 1\)"),
            ({"remove": {"segment-1": [0]}}, ValueError, "live segments that are not dropped"),
            ({"remove": {name: [0]}, "drop": [name]}, ValueError, "live segments that are not dropped"),
            ({"drop": ["a", name, "b"]}, ValueError, r"got 2 other names, first \['a'\]"),
            ({"drop": name}, ValueError, "drop must name live segments"),
        ]
        for arguments, error, message in wrong:
            with pytest.raises(error, match=message):
                store.commit(**arguments)
        assert store.generation == 1
        assert our_files(path) == before
        with pytest.raises(KeyError, match="colours"):
            store.segments[0]["colours"]


def test_readers_and_closed_stores_do_not_write(path):
    store = Store.create(path, {})
    with Store.open(path, writable=False) as reader, pytest.raises(ValueError, match="writable=True"):
        reader.commit(add=[codes(1)])
    store.close()
    store.close()
    for use in (lambda: store.segments, lambda: store.settings, store.refresh, lambda: store.commit(add=[codes(1)])):
        with pytest.raises(ValueError, match="must be open, got one that was closed"):
            use()


# ---------------------------------------------------------------------------------------------- damage


def serve(path):
    """Open a store and read all that it would serve."""
    with Store.open(path, writable=False) as store:
        return [(stored[name], stored.removed) for stored in store.segments for name in stored.arrays]


def assert_detected(path, file, problem="", opens=None):
    """The damage is named when the store is read, and by verify; where ``opens`` is given, opening tells it or not."""
    with pytest.raises(DamagedStoreError) as caught:
        serve(path)
    assert str(path / file) in str(caught.value)
    assert problem in str(caught.value)
    report = verify(path)
    assert {damage.file for damage in report.damages} == {path / file}
    assert not report.ok
    assert str(path / file) in str(report)
    if opens is False:
        with pytest.raises(DamagedStoreError):
            Store.open(path, writable=True)
    elif opens:
        Store.open(path, writable=False).close()


@pytest.fixture
def small(path):
    """A store of three files but the manifest, and their content."""
    with Store.create(path, SETTINGS) as store:
        name, _ = store.commit(add=[{"codes": np.arange(12, dtype=np.uint8).reshape(6, 2), "x": np.zeros(0)}, codes(7)])
        store.commit(remove={name: [2, 4]})
    return path, {name: (path / name).read_bytes() for name in our_files(path)}


def flip_every_byte(path, files, masks):
    for name, content in files.items():
        for position in range(len(content)):
            for mask in masks(position):
                bad = bytearray(content)
                bad[position] ^= mask
                (path / name).write_bytes(bytes(bad))
                assert_detected(path, name)
        (path / name).write_bytes(content)
    assert verify(path).ok
    assert len(files) == 4


def test_every_flipped_byte_is_detected(small):
    flip_every_byte(*small, lambda position: [1 << position * 5 % 8])


@pytest.mark.slow
def test_every_flipped_bit_is_detected(small):
    flip_every_byte(*small, lambda _: [1 << bit for bit in range(8)])


def test_every_flipped_block_is_detected_and_located(path):
    rng = np.random.default_rng(0)
    sizes = {"codes": (3 * BLOCK // 16 + 5, 16), "ids": (2 * BLOCK,), "one": (1,)}
    arrays = {name: rng.integers(0, 256, shape, dtype=np.uint8) for name, shape in sizes.items()}
    with Store.create(path, {}) as store:
        (name,) = store.commit(add=[arrays])
    file = path / f"{name}.bin"
    header = len(file.read_bytes().split(b"\n")[0]) + 1
    begin, n_blocks = header, 0
    for array, values in arrays.items():
        end = begin + -(-values.size // 64) * 64
        for block in range(begin, end, BLOCK):
            last = min(block + BLOCK, end)
            for position in {block, block + (last - block) // 2, last - 1}:
                damage_byte(file, position)
                assert_detected(path, file.name, f"array {array!r} (bytes {block} to {last}) altered", opens=True)
                damage_byte(file, position)
            n_blocks += 1
        begin = end
    assert begin == file.stat().st_size
    assert n_blocks == 4 + 2 + 1
    assert verify(path).ok


def damage_byte(file, position):
    """Change a byte, or change it back."""
    with file.open("r+b") as opened:
        opened.seek(position)
        byte = opened.read(1)[0]
        opened.seek(position)
        opened.write(bytes([byte ^ 0x10]))


def test_verify_collects_everything_and_access_only_what_it_serves(path):
    arrays = {name: np.arange(5 * BLOCK // 8) for name in ("a", "b")}
    with Store.create(path, {}) as store:
        first, second, third = (path / f"{name}.bin" for name in store.commit(add=[arrays, codes(1), codes(2)]))
    size = first.stat().st_size
    offset = size - 10 * BLOCK
    for block in (1, 2, 4):
        damage_byte(first, offset + block * BLOCK)
    damage_byte(second, 0)
    third.unlink()
    (path / "removed-00000009-01234567.bin").touch()
    report = verify(path)
    a = "array 'a' (bytes %d to %d)"
    assert [(damage.file, damage.region) for damage in report.damages] == [
        (first, a % (offset + BLOCK, offset + 3 * BLOCK)),
        (first, a % (offset + 4 * BLOCK, offset + 5 * BLOCK)),
        (second, f"the header (bytes 0 to {second.stat().st_size - 64})"),
        (third, "no such file:"),
    ]
    assert report.leftovers == (path / "removed-00000009-01234567.bin",)
    assert "4 damages, 1 leftovers" in str(report)
    assert store.verify() == report


def test_a_damaged_array_does_not_keep_others_from_being_read(path):
    with Store.create(path, {}) as store:
        (name,) = store.commit(add=[{"a": np.arange(100), "b": np.arange(100)}])
    damage_byte(path / f"{name}.bin", (path / f"{name}.bin").stat().st_size - 70)
    with Store.open(path, writable=True) as store:
        assert np.array_equal(store.segments[0]["a"], np.arange(100))
        for _ in range(2):
            with pytest.raises(DamagedStoreError, match="array 'b'"):
                store.segments[0]["b"]
        store.commit(add=[codes(1)])


def test_truncated_extended_empty_and_missing_files(small):
    path, files = small
    for name, content in files.items():
        for length in {0, 1, 63, 64, 100, len(content) // 2, len(content) - 64, len(content) - 1}:
            (path / name).write_bytes(content[:length])
            assert_detected(path, name, "truncated", opens=False)
        for more in (b"\0", b"\n", b"}", content):
            (path / name).write_bytes(content + more)
            assert_detected(path, name, "" if name == "manifest.json" else "extended", opens=False)
        (path / name).unlink()
        assert_detected(path, name, "missing", opens=False)
        (path / name).write_bytes(content)
    assert verify(path).ok


def test_files_in_each_others_place_are_detected(small):
    path, files = small
    first, second, third = (path / name for name in sorted(files) if name != "manifest.json")
    for a, b in ((first, second), (second, third), (first, third)):
        a.write_bytes(files[b.name])
        assert_detected(path, a.name, opens=False)
        a.write_bytes(files[a.name])


def test_a_file_that_is_cut_while_it_is_open_does_not_kill_the_process(path):
    with Store.create(path, {}) as store:
        (name,) = store.commit(add=[{"a": np.zeros(100_000)}])
        os.truncate(path / f"{name}.bin", 5000)
        with pytest.raises(DamagedStoreError, match="truncated"):
            store.segments[0]["a"]


def test_a_commit_does_not_copy_damaged_dead_rows(path):
    with Store.create(path, {}) as store:
        (name,) = store.commit(add=[codes(1, 2, 3)])
        store.commit(remove={name: [1]})
    removed = next(path.glob("removed-*"))
    damage_byte(removed, removed.stat().st_size - 60)
    with Store.open(path, writable=True) as store:
        with pytest.raises(DamagedStoreError, match=removed.name):
            store.commit(remove={name: [2]})
        assert store.generation == 2
        assert removed.exists()


def test_a_medium_that_fails_is_a_damage(small, monkeypatch):
    path, _ = small
    original = _array_file.open_file

    def failing(file):
        if file.name.startswith("removed"):
            raise OSError(5, "Input/output error")
        return original(file)

    monkeypatch.setattr(_array_file, "open_file", failing)
    (damage,) = verify(path).damages
    assert "that cannot be read (Input/output error)" in str(damage)


def test_newer_formats_are_refused(path, monkeypatch):
    with monkeypatch.context() as newer:
        newer.setattr(_manifest, "_SEAL", replace(_manifest._SEAL, format=99))
        Store.create(path, {}).close()
    with pytest.raises(ValueError, match=r"format 1, got format 99 written by ilhash .*: upgrade ilhash"):
        Store.open(path, writable=False)
    with pytest.raises(ValueError, match="upgrade"):
        verify(path)
    (path / "manifest.json").unlink()
    with monkeypatch.context() as newer:
        newer.setattr(_header, "FORMAT", 99)
        with Store.create(path, {}) as store:
            (name,) = store.commit(add=[codes(1)])
    with pytest.raises(ValueError, match=rf"{name}.bin must have format 1, got format 99"):
        Store.open(path, writable=False)


def test_the_files_explain_themselves(small):
    _, files = small
    document = json.loads(files["manifest.json"])
    assert document["manifest"]["format"] == 1
    assert document["manifest"]["settings"] == SETTINGS
    entries = document["manifest"]["segments"] + document["manifest"]["removals"]
    assert {entry["file"] for entry in entries} == set(files) - {"manifest.json"}
    for entry in entries:
        content = files[entry["file"]]
        line = content.split(b"\n")[0] + b"\n"
        header = json.loads(line)
        assert header["format"] == 1
        assert header["ilhash"] == document["manifest"]["ilhash"]
        assert len(line) % 64 == 0
        assert hashlib.sha256(line).hexdigest() == entry["header_sha256"]
        assert len(content) == entry["bytes"]
