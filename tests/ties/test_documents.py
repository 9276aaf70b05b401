"""Documents with codes in one file: durable, shared by processes, and refused where it is not what it must be."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from ilhash import StorageError, methods
from ilhash.ties._documents import Documents

X = np.random.default_rng(0).normal(size=(50, 16))


def opened(path, model=None, order="hamming", keep=True):
    return Documents(path, model, order, keep)


def filled(path, n=20, **settings):
    made = opened(path, **settings)
    made.put([f"d{i}" for i in range(n)], [f"body {i}" for i in range(n)], list(X[:n]))
    return made


def test_what_was_written_is_there_again(tmp_path):
    filled(tmp_path / "f").close()
    again = opened(tmp_path / "f")
    assert len(again) == 20
    assert again.search(X[3], 1) == [("d3", 1.0)]
    assert np.array_equal(again.get(["d3"])[0].vector, X[3])


@pytest.mark.parametrize("path", [None, "f"])
def test_answers_follow_changes(tmp_path, path):
    documents = filled(path and tmp_path / path)
    assert documents.search(X[30], 1)[0][0] != "new"
    documents.put(["new", "d3"], ["a", "b"], [X[30], X[31]])
    assert documents.search(X[30], 1) == [("new", 1.0)]
    assert documents.search(X[31], 1) == [("d3", 1.0)]
    assert documents.remove(["new", "d3", "absent"]) == 2
    assert {"new", "d3"}.isdisjoint(name for name, _ in documents.search(X[30], 50))
    assert len(documents.search(X[30], 50)) == len(documents) == 19
    documents.put(["bare"], ["no vector"], [None])
    assert len(documents.search(X[30], 50)) == 19
    assert documents.get(["bare"])[0].vector is None


def test_several_may_have_a_file_open(tmp_path):
    one, two = filled(tmp_path / "f"), opened(tmp_path / "f")
    assert two.search(X[30], 1)[0][0] != "new"
    one.put(["new"], ["a"], [X[30]])
    assert two.search(X[30], 1) == [("new", 1.0)]
    two.remove(["new"])
    assert one.search(X[30], 1)[0][0] != "new"


WRITER = """
    import numpy as np, sys
    from ilhash.ties._documents import Documents
    documents = Documents(sys.argv[1], None, "hamming", True)
    X = np.random.default_rng(0).normal(size=(2000, 16))
    for i in range(0, 2000, 10):
        documents.put([str(j) for j in range(i, i + 10)], ["body"] * 10, list(X[i : i + 10]))
        print(i, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    path = tmp_path / "f"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        said = [int(writer.stdout.readline()) for _ in range(15)]
        os.kill(writer.pid, signal.SIGKILL)
    documents = opened(path)
    there = {int(one.id) for one in documents.all()}
    assert set(range(said[-1] + 10)) <= there
    assert len(there) % 10 == 0, "a part of a change"
    hits = documents.search(np.random.default_rng(0).normal(size=(2000, 16))[3], 1)
    assert hits == [("3", 1.0)]


def test_a_change_that_fails_leaves_everything_as_it_was(tmp_path):
    documents = filled(tmp_path / "f")
    before = documents.search(X[3], 5)
    for ids, vectors in ((["a", "a"], [X[0], X[1]]), (["a", "b"], [X[0], X[1][:5]]), (["a"], [np.full(16, np.nan)])):
        with pytest.raises(ValueError, match=r"\bmust\b.*\bgot\b"):
            documents.put(ids, ["x"] * len(ids), vectors)
    with pytest.raises(ValueError, match=r"embeddings must have codes of 16 bits .*, got 3 bits of 3 numbers"):
        documents.put(["a"], ["x"], [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="query must have a code of 16 bits, got 3 numbers"):
        documents.search([1.0, 2.0, 3.0], 1)
    assert documents.search(X[3], 5) == before
    assert len(documents) == 20


def test_codes_of_another_model_are_refused(tmp_path):
    model, other = (methods.LSH(n_bits=16, random_state=seed).fit(X) for seed in (0, 1))
    filled(tmp_path / "f", model=model).close()
    assert opened(tmp_path / "f", model=model).search(X[3], 1) == [("d3", 1.0)]
    for wrong in (other, None):
        with pytest.raises(ValueError, match="model must be the one that made the codes"):
            opened(tmp_path / "f", model=wrong)


def test_files_of_others_are_refused(tmp_path):
    (tmp_path / "text").write_text("no database" * 1000)
    sqlite3.connect(tmp_path / "other").execute("CREATE TABLE documents (id TEXT)")
    for name in ("text", "other"):
        with pytest.raises(StorageError, match="must be a file of documents of ilhash, got"):
            opened(tmp_path / name)
    with pytest.raises(OSError, match="path must be a file that can be opened or made"):
        opened(tmp_path / "nowhere" / "f")


def read_all(path):
    documents = opened(path)
    documents.search(X[3], 5)
    documents.all()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON documents BEGIN DELETE FROM documents; END",
        "CREATE VIEW v AS SELECT 1",
        "UPDATE settings SET value = '2' WHERE name = 'format'",
        "UPDATE settings SET value = '999999999999' WHERE name = 'n_bits'",
        "UPDATE settings SET value = '24' WHERE name = 'n_bits'",
        "UPDATE documents SET code = x'00' WHERE id = 'd3'",
        "UPDATE documents SET code = 'text' WHERE id = 'd3'",
        "UPDATE documents SET vector = x'00'",
        "UPDATE documents SET id = x'00' WHERE id = 'd3'",
    ],
)
def test_forged_files_are_refused(tmp_path, statement):
    filled(tmp_path / "f").close()
    with sqlite3.connect(tmp_path / "f") as forger:
        forger.execute(statement)
    forger.close()
    with pytest.raises(StorageError):
        read_all(tmp_path / "f")
