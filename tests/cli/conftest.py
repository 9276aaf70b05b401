"""A command in this process, and the files that commands are tried on."""

import json
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from tests.cli.shared import N_BASE, N_BITS, contents, texts

import ilhash
from ilhash.cli import main


@pytest.fixture
def ilhash_command(capsys, monkeypatch):
    """Run a command in this process, which is much faster than another one; returns its output."""

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["ilhash", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets another one
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert (end.value.code or 0) == code, err
        return SimpleNamespace(out=out, err=err)

    return run


@pytest.fixture(scope="module")
def files(tmp_path_factory, digits):
    """Vectors and labels of the digits as files, in a folder that the tests of one command write to."""
    folder = tmp_path_factory.mktemp("files")
    np.save(folder / "X.npy", digits[0])
    np.save(folder / "y.npy", digits[1])
    return folder


@pytest.fixture(scope="session")
def retrieval(tmp_path_factory, digits):
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


@pytest.fixture
def arrays(retrieval):
    names = ("base", "queries", "base-y", "queries-y", "queries-X")
    return SimpleNamespace(**{name.replace("-", "_"): np.load(retrieval / f"{name}.npy") for name in names})


@pytest.fixture
def bad(retrieval, tmp_path, ilhash_command):
    """A folder of an index and of files that are not what they should be."""
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx")
    base = np.load(retrieval / "base.npy")
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
    ilhash.load(retrieval / "model")[:5].save(tmp_path / "five")
    return tmp_path


@pytest.fixture
def is_refused(retrieval, bad, ilhash_command):
    """Run a command that is one sentence with exit code 2, and that writes nothing."""

    def check(words, command):
        np.save(bad / "thousands.npy", np.arange(N_BASE))
        (bad / "dir.npy").mkdir()
        before = contents(bad), sorted(bad.rglob("*"))
        places = {"b": bad, "f": retrieval}
        arguments = [places[w[0]] / w[2:] if w[:2] in ("b/", "f/") else w for w in command.split()]
        refused = ilhash_command(*arguments, code=2)
        assert refused.err.startswith("error: ")
        assert refused.err.count("\n") == 1
        assert words in refused.err
        assert refused.out == ""
        assert (contents(bad), sorted(bad.rglob("*"))) == before

    return check
