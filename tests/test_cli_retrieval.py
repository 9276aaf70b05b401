"""The commands index, search, evaluate and verify, on digits: what they print, what they write, how they refuse."""

import errno
import json
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import ilhash
from ilhash import HammingIndex, evaluation
from ilhash.cli import main

N_BITS = 13
N_BASE = 1_400


@pytest.fixture(scope="module")
def files(tmp_path_factory, digits):
    """Base and queries of the digits as files: vectors, codes of 13 bits with their .json, labels, ids."""
    folder = tmp_path_factory.mktemp("retrieval")
    X, y = digits
    model = ilhash.ILH(n_bits=N_BITS, n_similar=20, random_state=0).fit(X[:N_BASE], y[:N_BASE])
    model.save(folder / "model")
    for name, rows in (("base", slice(N_BASE)), ("queries", slice(N_BASE, None))):
        np.save(folder / f"{name}-X.npy", X[rows])
        np.save(folder / f"{name}-y.npy", y[rows])
        np.save(folder / f"{name}.npy", model.transform(X[rows]))
        (folder / f"{name}.npy.json").write_text(json.dumps({"n_bits": N_BITS}))
    np.save(folder / "numbers.npy", np.arange(N_BASE)[::-1] * 10 - 5_000)
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts()), encoding="utf-8")
    return folder


def texts():
    """Ids that a terminal, a shell or a parser of markup could mistake for something else."""
    return [f"{['[red]', ':smile:', 'é', '漢'][row % 4]} {row:04}" for row in range(N_BASE)]


@pytest.fixture
def arrays(files):
    names = ("base", "queries", "base-y", "queries-y", "queries-X")
    return SimpleNamespace(**{name.replace("-", "_"): np.load(files / f"{name}.npy") for name in names})


@pytest.fixture
def ilhash_command(capsys, monkeypatch):
    """Run a command in this process, which is much faster than another one; returns output and exit code."""

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["ilhash", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets another one
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert (end.value.code or 0) == code, err
        return SimpleNamespace(out=out, err=err)

    return run


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def as_lists(hits):
    pairs = zip(hits.ids, hits.distances, strict=True) if isinstance(hits, ilhash.search.Hits) else hits
    return [
        {"query": q, "ids": ids.tolist(), "distances": distances.tolist()} for q, (ids, distances) in enumerate(pairs)
    ]


@pytest.mark.parametrize("command", ["index", "search", "evaluate", "verify", "demo", "data"])
def test_help(ilhash_command, command):
    assert "Usage" in ilhash_command(command, "--help").out


def test_the_demo_can_be_run_again(tmp_path, ilhash_command):
    first, second = (ilhash_command("demo", "-o", tmp_path, "--bits", 9).out for _ in range(2))
    lines = [line for line in second.splitlines() if "trained" not in line]  # but for the seconds it took
    assert lines == [line for line in first.splitlines() if "trained" not in line]
    assert "holds 1,397 items" in second


# ------------------------------------------------------------------------------------------------ index and search


def test_as_a_person_runs_them(files, arrays, tmp_path):
    def process(*arguments):
        command = [sys.executable, "-m", "ilhash", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    out = process("index", files / "base.npy", "-o", tmp_path / "idx")
    n_distinct = len(np.unique(arrays.base, axis=0))
    assert "indexed 1,400 codes of 13 bits" in out
    assert f"holds 1,400 items on {n_distinct:,} distinct codes" in out
    index = HammingIndex(arrays.base, n_bits=N_BITS)
    out = process("search", tmp_path / "idx", files / "queries.npy", "-k", 7, "--json")
    assert json.loads(out) == as_lists(index.search(arrays.queries, 7))
    assert "nothing damaged" in process("verify", tmp_path / "idx")


def test_search_prints_a_table(files, arrays, tmp_path, ilhash_command):
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx")
    out = ilhash_command("search", tmp_path / "idx", files / "queries.npy", "-k", 9).out
    hits = HammingIndex(arrays.base, n_bits=N_BITS).search(arrays.queries, 9)
    assert f"{hits.ids[0, 0]} ({hits.distances[0, 0]}), {hits.ids[0, 1]} ({hits.distances[0, 1]})" in out
    assert "..." in out
    assert "and 387 more queries" in out
    assert "exact, ordered by (distance, id)" in out


@pytest.mark.parametrize("source", ["numbers.npy", "numbers.csv", "texts.txt"])
def test_ids(files, arrays, tmp_path, ilhash_command, source):
    numbers = np.load(files / "numbers.npy")
    np.savetxt(tmp_path / "numbers.csv", numbers, fmt="%d")
    path = tmp_path / source if source == "numbers.csv" else files / source
    ids = texts() if source == "texts.txt" else numbers
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx", "--ids", path)
    hits = HammingIndex(arrays.base, n_bits=N_BITS, ids=ids).search(arrays.queries, 2)
    search = ("search", tmp_path / "idx", files / "queries.npy", "-k", 2)
    assert json.loads(ilhash_command(*search, "--json").out) == as_lists(hits)
    assert f"{hits.ids[0, 0]} ({hits.distances[0, 0]}), {hits.ids[0, 1]}" in ilhash_command(*search).out
    ilhash_command(*search, "-o", tmp_path / "hits.npy")
    assert np.load(tmp_path / "hits.npy").tolist() == hits.ids.tolist()
    assert np.load(tmp_path / "hits.distances.npy").tolist() == hits.distances.tolist()


def test_lines_of_a_text_are_ids_whatever_system_wrote_it(files, tmp_path, ilhash_command):
    np.save(tmp_path / "three.npy", np.load(files / "base.npy")[:3])
    (tmp_path / "ids.txt").write_bytes("007\r\n8\r\nnine\u2028nine".encode("utf-8-sig"))
    command = ("index", tmp_path / "three.npy", "--bits", N_BITS, "--ids", tmp_path / "ids.txt", "-o", tmp_path / "idx")
    ilhash_command(*command)
    with HammingIndex.open(tmp_path / "idx", writable=False) as index:
        assert index.ids.tolist() == ["007", "8", "nine\u2028nine"]


def test_add(files, arrays, tmp_path, ilhash_command):
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx")
    out = ilhash_command("index", files / "queries.npy", "-o", tmp_path / "idx", "--add").out
    assert "indexed 397 codes" in out
    assert "holds 1,797 items" in out
    both = HammingIndex(np.concatenate([arrays.base, arrays.queries]), n_bits=N_BITS)
    found = json.loads(ilhash_command("search", tmp_path / "idx", files / "queries.npy", "--json").out)
    assert found == as_lists(both.search(arrays.queries))


def test_codes_without_a_json_beside_them(files, arrays, tmp_path, ilhash_command):
    np.save(tmp_path / "bare.npy", arrays.base)
    assert "16 bits" in ilhash_command("index", tmp_path / "bare.npy", "-o", tmp_path / "all").out
    assert "15 bits" in ilhash_command("index", tmp_path / "bare.npy", "--bits", 15, "-o", tmp_path / "fifteen").out


@pytest.mark.parametrize("radius", [0, 3])
def test_radius(files, arrays, tmp_path, ilhash_command, radius):
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx", "--ids", files / "texts.txt")
    hits = HammingIndex(arrays.base, n_bits=N_BITS, ids=texts()).within(arrays.queries, radius)
    search = ("search", tmp_path / "idx", files / "queries.npy", "--radius", radius)
    for name in ("hits.json", "hits.npz"):
        ilhash_command(*search, "-o", tmp_path / name, "--threads", -1)
    assert json.loads((tmp_path / "hits.json").read_text()) == as_lists(hits)
    with np.load(tmp_path / "hits.npz") as written:
        assert np.array_equal(written["offsets"], hits.offsets)
        assert written["ids"].tolist() == hits.ids.tolist()
        assert np.array_equal(written["distances"], hits.distances)
    refused = ilhash_command(*search, "-o", tmp_path / "hits.npy", code=2)
    assert ".npz or .json" in refused.err
    assert not list(tmp_path.glob("*.npy"))


def test_vectors_are_encoded_by_the_model(files, arrays, tmp_path, ilhash_command):
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx")
    index, model = HammingIndex(arrays.base, n_bits=N_BITS), ilhash.load(files / "model")
    for source, vectors in (
        (files / "queries-X.npy", arrays.queries_X),
        ("digits", ilhash.datasets.load("digits").X),
    ):
        out = ilhash_command("search", tmp_path / "idx", source, "--model", files / "model", "-k", 3, "--json").out
        assert json.loads(out) == as_lists(index.search(model.transform(vectors), 3))


def test_output_is_replaced_by_force_alone(files, tmp_path, ilhash_command):
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx")
    search = ("search", tmp_path / "idx", files / "queries.npy", "-o", tmp_path / "hits.npy")
    ilhash_command(*search)
    before = contents(tmp_path)
    assert "--force" in ilhash_command(*search, code=2).err
    (tmp_path / "hits.npy").unlink()
    assert "hits.distances.npy" in ilhash_command(*search, code=2).err
    (tmp_path / "hits.npy").write_bytes(b"old")
    ilhash_command(*search, "--force")
    assert contents(tmp_path) == before


# ------------------------------------------------------------------------------------------------ evaluate


def test_evaluate_draws_queries(files, arrays, tmp_path, ilhash_command):
    command = ("evaluate", files / "base.npy", "--labels", files / "base-y.npy", "--n-queries", 300, "--seed", 4)
    out = ilhash_command(*command, "-k", 5, "-k", 50, "--radius", 1, "--json", tmp_path / "all.json").out
    protocol = evaluation.Protocol(n_queries=300, k=(5, 50), radius=1, seed=4)
    split = protocol.split(N_BASE)
    expected = protocol.evaluate(
        arrays.base[split.base],
        arrays.base_y[split.base],
        arrays.base[split.queries],
        arrays.base_y[split.queries],
        n_bits=N_BITS,
    )
    assert str(expected) in out
    assert protocol.hash in out
    assert json.loads((tmp_path / "all.json").read_text()) == json.loads(json.dumps(expected.to_dict()))


def test_evaluate_with_given_queries(files, arrays, tmp_path, ilhash_command):
    command = ("evaluate", files / "base.npy", "--labels", files / "base-y.npy", "--queries", files / "queries.npy")
    command += ("--query-labels", files / "queries-y.npy", "--threads", -1, "--json", tmp_path / "all.json")
    out = ilhash_command(*command).out
    written = json.loads((tmp_path / "all.json").read_text())
    expected = evaluation.evaluate(
        arrays.base, arrays.base_y, arrays.queries, arrays.queries_y, n_bits=N_BITS, protocol_hash="of these labels"
    )
    assert written | {"protocol_hash": "of these labels"} == json.loads(json.dumps(expected.to_dict()))
    assert written["protocol_hash"] in out
    # No seed drew these queries: the hash must not be that of a draw of as many.
    drawn = evaluation.Protocol(n_queries=len(arrays.queries), k=(10, 100), radius=2)
    given = evaluation.GivenQueries.of(arrays.base_y, arrays.queries_y, k=(10, 100), radius=2)
    assert written["protocol_hash"] == given.hash != drawn.hash


def test_evaluate_with_several_labels_each(files, arrays, tmp_path, ilhash_command):
    several = np.stack([arrays.base_y % 2 == 0, arrays.base_y % 3 == 0, arrays.base_y > 6], axis=1).astype(np.int64)
    np.save(tmp_path / "several.npy", several)
    command = ("evaluate", files / "base.npy", "--labels", tmp_path / "several.npy", "--n-queries", 100)
    out = ilhash_command(*command, "--plot", tmp_path / "curves.svg").out
    protocol = evaluation.Protocol(n_queries=100, k=(10, 100), relevance="shared labels")
    split = protocol.split(N_BASE)
    codes = arrays.base
    expected = protocol.evaluate(
        codes[split.base], several[split.base], codes[split.queries], several[split.queries], n_bits=N_BITS
    )
    assert str(expected) in out
    assert b"</svg>" in (tmp_path / "curves.svg").read_bytes()


def test_plot(files, tmp_path, ilhash_command):
    command = ("evaluate", files / "base.npy", "--labels", files / "base-y.npy", "--plot", tmp_path / "curves.png")
    assert "curves.png" in ilhash_command(*command, "--n-queries", 200).out
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_without_matplotlib_is_refused_before_the_work(files, tmp_path, ilhash_command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    command = ("evaluate", files / "base.npy", "--labels", files / "base-y.npy", "--plot", tmp_path / "curves.png")
    refused = ilhash_command(*command, "--json", tmp_path / "all.json", code=2)
    assert "pip install 'ilhash[plots]'" in refused.err
    assert refused.out == ""
    assert contents(tmp_path) == {}


# ------------------------------------------------------------------------------------------------ bad input


@pytest.fixture
def bad(files, tmp_path, ilhash_command):
    """A folder of an index and of files that are not what they should be."""
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx")
    base = np.load(files / "base.npy")
    np.save(tmp_path / "wide.npy", np.zeros((3, 5), np.uint8))
    np.save(tmp_path / "floats.npy", np.zeros((3, 2)))
    np.save(tmp_path / "flat.npy", np.zeros(3, np.uint8))
    np.save(tmp_path / "padded.npy", base | 1)
    np.save(tmp_path / "twelve.npy", base & 0xF0)
    (tmp_path / "twelve.npy.json").write_text('{"n_bits": 12}')
    np.save(tmp_path / "mute.npy", base)
    (tmp_path / "mute.npy.json").write_text("[]")
    np.save(tmp_path / "few.npy", np.arange(3))
    np.save(tmp_path / "same.npy", np.zeros(N_BASE, np.int64))
    np.save(tmp_path / "more.npy", np.zeros(N_BASE + 1, np.int64))
    (tmp_path / "garbage.npy").write_bytes(b"\x00garbage" * 20)
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "latin.txt").write_bytes(b"\xe9\n" * N_BASE)
    (tmp_path / "gap.txt").write_text("a\n\nb\n")
    (tmp_path / "there.json").write_text("mine")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    ilhash.load(files / "model")[:5].save(tmp_path / "five")
    return tmp_path


REFUSED = [
    # what is wrong, words of the sentence, command; b: the folder of bad things, f: that of good ones
    ("index: no codes", "does not exist", "index b/nothing.npy -o b/new"),
    ("index: codes are a folder", "directory", "index b/notes -o b/new"),
    ("index: garbage", "garbage.npy", "index b/garbage.npy -o b/new"),
    ("index: an empty file", "empty", "index b/empty.npy -o b/new"),
    ("index: floats", "uint8", "index b/floats.npy -o b/new"),
    ("index: one dimension", "2-D", "index b/flat.npy -o b/new"),
    ("index: bits against the .json", "must have 14 bits, got 13", "index f/base.npy --bits 14 -o b/new"),
    ("index: bits against the width", "5 bits", "index b/wide.npy --bits 5 -o b/new"),
    ("index: no bits", "n_bits", "index b/wide.npy --bits 0 -o b/new"),
    ("index: padding", "padding bits after bit 13, got others in 1400", "index b/padded.npy --bits 13 -o b/new"),
    ("index: a .json that says nothing", "n_bits", "index b/mute.npy -o b/new"),
    ("index: it exists", "--add", "index f/base.npy -o b/idx"),
    ("index: another folder exists", "--add", "index f/base.npy -o b/notes"),
    ("index: add to nothing", "not a store", "index f/base.npy -o b/new --add"),
    ("index: add to another folder", "not a store", "index f/base.npy -o b/notes --add"),
    ("index: add other bits", "--bits", "index b/padded.npy --bits 16 -o b/idx --add"),
    ("index: add codes of other bits", "must have 13 bits, got 12", "index b/twelve.npy -o b/idx --add"),
    ("index: add ids that are there", "1400 of 1400", "index f/base.npy --ids b/thousands.npy -o b/idx --add"),
    ("index: add texts to numbers", "kind", "index f/base.npy --ids f/texts.txt -o b/idx --add"),
    ("index: no ids", "got none", "index f/base.npy --ids b/nothing.txt -o b/new"),
    ("index: too few ids", "1400 items", "index f/base.npy --ids b/few.npy -o b/new"),
    ("index: repeated ids", "distinct", "index f/base.npy --ids b/same.npy -o b/new"),
    ("index: ids of a matrix", "base-X.npy", "index f/base.npy --ids f/base-X.npy -o b/new"),
    ("index: ids not in UTF-8", "UTF-8", "index f/base.npy --ids b/latin.txt -o b/new"),
    ("index: an empty id", "1 of 3 lines", "index f/base.npy --ids b/gap.txt -o b/new"),
    ("search: no index", "not a store", "search b/nothing f/queries.npy -o b/new.npy"),
    ("search: another folder", "not a store", "search b/notes f/queries.npy -o b/new.npy"),
    ("search: no queries", "does not exist", "search b/idx b/nothing.npy -o b/new.npy"),
    ("search: garbage", "garbage.npy", "search b/idx b/garbage.npy -o b/new.npy"),
    ("search: other width", "13 bits", "search b/idx b/wide.npy -o b/new.npy"),
    ("search: other bits", "must have 13 bits, got 12", "search b/idx b/twelve.npy -o b/new.npy"),
    ("search: another model", "13 bits of the index, got 5", "search b/idx digits --model b/five -o b/new.npy"),
    ("search: no model", "nothing", "search b/idx digits --model b/nothing -o b/new.npy"),
    ("search: k", "k must be a whole number of at least 1, got 0", "search b/idx f/queries.npy -k 0 -o b/new.npy"),
    ("search: radius", "at least 0, got -1", "search b/idx f/queries.npy --radius -1 -o b/new.npy"),
    ("search: threads", "n_threads", "search b/idx f/queries.npy --threads 0 -o b/new.npy"),
    ("search: kind of output", ".npy or .npz or .json", "search b/idx f/queries.npy -o b/new.txt"),
    ("search: output exists", "--force", "search b/idx f/queries.npy -o b/there.json"),
    ("search: output is a folder", "exists", "search b/idx f/queries.npy -o b/dir.npy --force"),
    ("search: no folder of output", "folder", "search b/idx f/queries.npy -o b/no/new.npy"),
    ("evaluate: no codes", "does not exist", "evaluate b/nothing.npy --labels f/base-y.npy --json b/new.json"),
    ("evaluate: no labels", "does not exist", "evaluate f/base.npy --labels b/nothing.npy --json b/new.json"),
    ("evaluate: few labels", "got 3 for the 1400", "evaluate f/base.npy --labels b/few.npy --json b/new.json"),
    ("evaluate: many labels", "got 1401 for the 1400", "evaluate f/base.npy --labels b/more.npy --json b/new.json"),
    ("evaluate: queries alone", "together", "evaluate f/base.npy --labels f/base-y.npy --queries f/queries.npy"),
    ("evaluate: many queries", "1500", "evaluate f/base.npy --labels f/base-y.npy --n-queries 1400 --json b/new.json"),
    ("evaluate: k", "k must be", "evaluate f/base.npy --labels f/base-y.npy -k 0 --json b/new.json"),
    ("evaluate: radius", "radius", "evaluate f/base.npy --labels f/base-y.npy --radius -1 --json b/new.json"),
    ("evaluate: threads", "n_threads", "evaluate f/base.npy --labels f/base-y.npy --threads 0 --json b/new.json"),
    ("evaluate: json exists", "--force", "evaluate f/base.npy --labels f/base-y.npy --json b/there.json"),
    ("evaluate: kind of plot", ".png", "evaluate f/base.npy --labels f/base-y.npy --json b/new.json --plot b/new.bmp"),
    ("verify: no index", "not a store", "verify b/nothing"),
    ("verify: another folder", "not a store", "verify b/notes"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "command"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_one_sentence_with_exit_code_2_and_nothing_written(files, bad, ilhash_command, words, command):
    np.save(bad / "thousands.npy", np.arange(N_BASE))
    (bad / "dir.npy").mkdir()
    before = contents(bad), sorted(bad.rglob("*"))
    places = {"b": bad, "f": files}
    arguments = [places[w[0]] / w[2:] if w[:2] in ("b/", "f/") else w for w in command.split()]
    refused = ilhash_command(*arguments, code=2)
    assert refused.err.startswith("error: ")
    assert refused.err.count("\n") == 1
    assert words in refused.err
    assert refused.out == ""
    assert (contents(bad), sorted(bad.rglob("*"))) == before


def test_queries_must_not_be_the_base(files, ilhash_command):
    command = ("evaluate", files / "base.npy", "--labels", files / "base-y.npy", "--queries", files / "base.npy")
    assert "find themselves" in ilhash_command(*command, "--query-labels", files / "base-y.npy", code=2).err


def test_a_full_disk_leaves_nothing(files, tmp_path, ilhash_command, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr("ilhash.search._store.Store.commit", fail)
    refused = ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx", code=2)
    assert "nothing is left of it: No space left on device" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_one_writer_at_a_time(files, tmp_path, ilhash_command):
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx")
    with HammingIndex.open(tmp_path / "idx"):
        refused = ilhash_command("index", files / "queries.npy", "-o", tmp_path / "idx", "--add", code=2)
        assert "one writer" in refused.err
        ilhash_command("search", tmp_path / "idx", files / "queries.npy", "-k", 1)


# ------------------------------------------------------------------------------------------------ damage


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("kind", ["segment-*.bin", "manifest.json"])
@pytest.mark.parametrize("damage", [flip, cut, lambda path: path.unlink()], ids=["flip", "cut", "delete"])
def test_damage_is_named_and_never_served(files, tmp_path, ilhash_command, kind, damage):
    ilhash_command("index", files / "base.npy", "-o", tmp_path / "idx")
    (path,) = (tmp_path / "idx").glob(kind)
    damage(path)
    verified = ilhash_command("verify", tmp_path / "idx", code=1)
    assert "nothing damaged" not in verified.out
    assert path.name in verified.out
    refused = ilhash_command("search", tmp_path / "idx", files / "queries.npy", "-o", tmp_path / "hits.npy", code=2)
    assert refused.err.startswith("error: ")
    assert path.name in refused.err
    assert refused.out == ""
    assert not list(tmp_path.glob("hits*"))
