"""Stored cells that somebody changes: every change is said, or changes no number. Nothing wrong is ever served."""

import io
import json
import os
import shutil
import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ilhash.experiments.engine.cells import TIME_LIMIT, UNDEFINED, Cell, Outcome
from ilhash.experiments.engine.scales import get_scale
from ilhash.experiments.engine.store import _CELL, FORMAT, UNSEALED, Results
from ilhash.storage import DamagedFileError, StorageError, UnknownFormatError, sha256_of

SMOKE = get_scale("smoke")
SAMPLES = Path(__file__).parents[1] / "samples" / "2026-11" / "experiments"


def _copy(tmp_path):
    """Return a copy of cells that the version before wrote, without checksums."""
    return Path(shutil.copytree(SAMPLES, tmp_path / "results"))


def _cell_of(file):
    document = json.loads(file.read_text(encoding="utf-8"))
    return Cell(document["task"], document["params"], document["seed"])


def _text(outcome):
    """Return all that a reader of a cell sees, to be compared."""
    arrays = {name: (one.dtype.str, one.shape, one.tobytes()) for name, one in sorted(outcome.arrays.items())}
    plain = json.dumps([outcome.numbers, outcome.status, outcome.reason, outcome.seconds], sort_keys=True)
    return f"{plain} {arrays}"


class Folder:
    """A folder of results, and what must be read from it."""

    def __init__(self, path):
        self.path = path
        self.cells = {file.stem: _cell_of(file) for file in sorted((path / "cells").glob("*.json"))}
        self.files = sorted(path.rglob("*.*"))
        self.wanted = {key: _text(Results.open(path).read(cell)) for key, cell in self.cells.items()}
        self.sessions = json.dumps(Results.open(path).sessions())

    def look(self, keys):
        """Return what becomes of a change: said, harmless or SILENT; any other error than the documented passes."""
        try:
            results = Results.open(self.path)
            same = results.scale == SMOKE
            same &= json.dumps(results.sessions()) == self.sessions
            same &= all(_text(results.read(self.cells[key])) == self.wanted[key] for key in keys)
        except StorageError:
            return "said"
        return "harmless" if same else "SILENT"

    def change(self, file, data, keys=()):
        """Return what becomes of other bytes in a file, which is then as it was."""
        before = file.read_bytes()
        file.write_bytes(data)
        try:
            return self.look([file.stem] if file.stem in self.cells else keys)
        finally:
            file.write_bytes(before)


def _bit(data, rng):
    place = int(rng.integers(len(data)))
    return data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1 :]


def _byte(data, rng):
    place = int(rng.integers(len(data)))
    return data[:place] + bytes([int(rng.integers(256))]) + data[place + 1 :]


def _digit(data, rng):
    """Change a digit to another, which leaves a document readable."""
    places = [place for place, one in enumerate(data) if 48 <= one < 58]
    if not places:
        return _byte(data, rng)
    place = places[int(rng.integers(len(places)))]
    return data[:place] + str(int(rng.integers(10))).encode() + data[place + 1 :]


def _cut(data, rng):
    return data[: int(rng.integers(len(data)))]


def _grown(data, rng):
    return data + rng.bytes(int(rng.integers(1, 20)))


def _hole(data, rng):
    place = int(rng.integers(len(data)))
    return data[:place] + bytes(len(data[place : place + 64])) + data[place + 64 :]


CHANGES = [_bit, _byte, _digit, _cut, _grown, _hole]
SHARES = [0.35, 0.25, 0.2, 0.1, 0.05, 0.05]


def attack(folder, count, seed=0):
    """Make changes, one at a time, and count what becomes of them."""
    rng = np.random.default_rng(seed)
    found = Counter()
    for _ in range(count):
        file = folder.files[int(rng.integers(len(folder.files)))]
        change = CHANGES[rng.choice(len(CHANGES), p=SHARES)]
        found[change.__name__, folder.change(file, change(file.read_bytes(), rng))] += 1
    return found


def exchange(folder, count, seed=0):
    """Put a cell's files in another's place, .json, .npz or both."""
    rng = np.random.default_rng(seed)
    found = Counter()
    for _ in range(count):
        which = (".json", ".npz", ".json .npz")[int(rng.integers(3))]
        keys = sorted(file.stem for file in (folder.path / "cells").glob(f"*{which.split()[-1]}"))
        a, b = (keys[i] for i in rng.choice(len(keys), 2, replace=False))
        places = [folder.path / "cells" / f"{a}{suffix}" for suffix in which.split()]
        before = {place: place.read_bytes() for place in places}
        for place in places:
            place.write_bytes(place.with_name(f"{b}{place.suffix}").read_bytes())
        found[f"exchanged {which}", folder.look([a])] += 1
        for place, data in before.items():
            place.write_bytes(data)
    return found


@pytest.fixture
def sealed(tmp_path):
    """Cells of the version before, sealed by a run that went on, and one with everything that a cell may hold."""
    results = Results.create(_copy(tmp_path), SMOKE)
    everything = {
        "n": -7,
        "big": 2**60,
        "small": 1e-300,
        "text": "ü\n",
        "none": None,
        "yes": True,
        "deep": [{"a": [1.5]}],
    }
    arrays = {"x": np.linspace(0, 1, 50), "y": np.arange(12).reshape(3, 4), "z": np.eye(3, dtype=bool)}
    results.write(Cell("made", {"data": "images"}, 3), Outcome(everything, arrays, seconds=1.5))
    results.write(Cell("made", {"data": "images"}, 4), Outcome(status=UNDEFINED, reason="too many bits"))
    results.write(Cell("made", {"data": "digits"}, 4), Outcome(status=TIME_LIMIT, reason="stopped"))
    return Folder(tmp_path / "results")


def test_some_hundred_changes_are_said_or_harmless(sealed):
    found = attack(sealed, 600) + exchange(sealed, 60)
    assert not [kind for kind in found if kind[1] == "SILENT"], found
    assert sum(n for (_, became), n in found.items() if became == "said") > 500, found


@pytest.mark.slow
def test_twenty_thousand_changes_are_said_or_harmless(sealed):
    found = attack(sealed, 20_000, seed=1) + exchange(sealed, 2_000, seed=1)
    print(*(f"{name:24} {became:10} {n:6}" for (name, became), n in sorted(found.items())), sep="\n")  # noqa: T201
    assert not [kind for kind in found if kind[1] == "SILENT"], found


def test_without_checksums_changes_go_unseen(tmp_path):
    """The attack sees what it looks for: in the format before, numbers change silently. Exchanged cells do not."""
    folder = Folder(_copy(tmp_path))
    folder.files = [file for file in folder.files if file.suffix == ".json" and file.stem in folder.cells]
    assert Results.open(folder.path).format == UNSEALED
    assert any(became == "SILENT" for _, became in attack(folder, 300))
    assert {became for _, became in exchange(folder, 60)} <= {"said", "harmless"}


# -------------------------------------------------------------------------------------------- formats


def test_folders_of_the_format_before_open_and_are_left_alone(tmp_path):
    path = _copy(tmp_path)
    before = {file: file.read_bytes() for file in path.rglob("*.*")}
    results = Results.open(path)
    for file in (path / "cells").glob("*.json"):
        document = json.loads(file.read_text())
        assert results.read(_cell_of(file)).numbers == document["numbers"]
    assert results.sessions() == json.loads((path / "sessions.json").read_text())
    assert before == {file: file.read_bytes() for file in path.rglob("*.*")}


def test_a_run_that_goes_on_seals_them(tmp_path):
    path = _copy(tmp_path)
    before = Folder(path)
    versions = {key: json.loads((path / "cells" / f"{key}.json").read_text())["versions"] for key in before.cells}
    assert Results.create(path, SMOKE).format == FORMAT
    after = Folder(path)
    assert (after.wanted, after.sessions) == (before.wanted, before.sessions)
    for key in before.cells:
        assert _CELL.from_bytes((path / "cells" / f"{key}.json").read_bytes(), path)["versions"] == versions[key]
    file = path / "cells" / f"{next(iter(after.cells))}.json"
    document = json.loads(file.read_text())
    bare = {key: value for key, value in document.items() if key not in ("format", "kind", "ilhash", "checksum")}
    assert after.change(file, json.dumps(bare).encode()) == "said", "in a sealed folder every cell has a checksum"


@pytest.mark.parametrize("sealed_before", [0, 7, 28])
def test_sealing_that_was_cut_short_is_done_again(tmp_path, sealed_before):
    path = _copy(tmp_path)
    wanted = Folder(path).wanted
    whole = Results.create(Path(shutil.copytree(path, tmp_path / "whole")), SMOKE).path
    for file in sorted((path / "cells").glob("*.json"))[:sealed_before]:
        shutil.copy(whole / "cells" / file.name, file)
    assert Folder(path).wanted == wanted
    Results.create(path, SMOKE)
    assert (Folder(path).wanted, Results.open(path).format) == (wanted, FORMAT)


def test_what_is_known_to_be_damaged_is_not_sealed(tmp_path):
    path = _copy(tmp_path)
    file = next((path / "cells").glob("*.npz"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match="as they were written"):
        Results.create(path, SMOKE)
    assert json.loads((path / "run.json").read_text())["format"] == UNSEALED


def test_a_newer_format_is_refused(tmp_path):
    Results.create(tmp_path / "r", SMOKE)
    document = json.loads((tmp_path / "r" / "run.json").read_text())
    (tmp_path / "r" / "run.json").write_text(json.dumps({**document, "format": FORMAT + 1}))
    with pytest.raises(UnknownFormatError, match="upgrade ilhash"):
        Results.open(tmp_path / "r")


# -------------------------------------------------------------------------------------------- forged: checksums and all


@pytest.fixture
def made(tmp_path):
    results = Results.create(tmp_path / "made", SMOKE)
    cell = Cell("made", {"data": "images"}, 3)
    results.write(cell, Outcome({"a": 1.5}, {"x": np.arange(5.0)}, seconds=2.0))
    return results, cell


def _forge(results, cell, **changed):
    file = results.path / "cells" / f"{cell.key}.json"
    document = json.loads(file.read_text())
    kept = {key: value for key, value in {**document, **changed}.items() if value != "leave out"}
    file.write_bytes(_CELL.to_bytes(kept))


@pytest.mark.parametrize(
    "changed",
    [
        {"task": 5},
        {"task": "other"},
        {"params": []},
        {"params": {"data": "digits"}},
        {"params": {"data": float("nan")}},
        {"seed": "3"},
        {"seed": 3.0},
        {"seed": 4},
        {"seed": True},
        {"status": "fine"},
        {"status": None},
        {"reason": 7},
        {"seconds": "long"},
        {"seconds": -1},
        {"seconds": float("inf")},
        {"seconds": True},
        {"numbers": [1]},
        {"numbers": "leave out"},
        {"sha256": 5},
        {"sha256": "0" * 64},
        {"sha256": "../../../etc/passwd"},
        {"sha256": "leave out"},
        {"kind": "model"},
        {"format": 99},
        {"format": "2"},
        {"format": True},
    ],
)
def test_a_forged_cell_gets_one_sentence(made, changed):
    results, cell = made
    _forge(results, cell, **changed)
    with pytest.raises(StorageError) as refused:
        Results.open(results.path).read(cell)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"null", b"5", b"{", b"[" * 100_000, b'{"a": ' * 100_000, b"\xff\xfe", b"{}"]
)
@pytest.mark.parametrize("name", ["cells/{key}.json", "run.json", "sessions.json"])
def test_other_documents_get_one_sentence(made, name, text):
    results, cell = made
    with results.session("ilhash"):
        pass
    (results.path / name.format(key=cell.key)).write_bytes(text)
    with pytest.raises(StorageError):
        _everything(results.path, cell)


def _everything(path, cell):
    results = Results.open(path)
    return results.read(cell), results.sessions()


@pytest.mark.parametrize("name", ["cells/{key}.json", "cells/{key}.npz", "run.json", "sessions.json"])
def test_links_and_pipes_are_not_read(made, tmp_path, name):
    results, cell = made
    with results.session("ilhash"):
        pass
    file = results.path / name.format(key=cell.key)
    kept = tmp_path / "elsewhere"
    file.rename(kept)
    file.symlink_to(kept)
    with pytest.raises(StorageError, match="symbolic link"):
        _everything(results.path, cell)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises((StorageError, FileNotFoundError)):
        _everything(results.path, cell)


def test_a_bomb_in_a_cell_takes_no_memory(made):
    results, cell = made
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as file:
        for _ in range(64):
            file.write(bytes(2**21))
    (results.path / "cells" / f"{cell.key}.npz").write_bytes(buffer.getvalue())
    _forge(results, cell, sha256=sha256_of([buffer.getvalue()]))
    tracemalloc.start()
    with pytest.raises(DamagedFileError, match="must unpack to at most"):
        Results.open(results.path).read(cell)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_numbers_named_by_numbers_come_back_as_texts(tmp_path):
    results = Results.create(tmp_path / "r", SMOKE)
    cell = Cell("made", {"data": "images"})
    results.write(cell, Outcome({"at": {10: 0.5, 9: 0.25}}))
    assert Results.open(results.path).read(cell).numbers == {"at": {"10": 0.5, "9": 0.25}}
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.write(cell, Outcome({"a": float("nan")}))
