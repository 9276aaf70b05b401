"""Kills under load: what was acknowledged is there, and readers see nothing but the end of their connection."""

import http.client
import json
import shutil
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest

import ilhash
from ilhash.feedback import Feedback
from ilhash.serve import Service
from ilhash.serve._item_log import FILE, Records
from ilhash.serve._items import Items
from ilhash.storage import StorageError

posix = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is not there")
BROKEN = (ConnectionError, http.client.HTTPException, socket.timeout)


class Load:
    """Threads that write and read over HTTP until the server is gone, and what they were told."""

    def __init__(self, server, X, first):
        self.server, self.X = server, X
        self.added, self.updated, self.removed, self.judged = {}, {}, set(), 0
        self.doubtful = set()  # what was asked for and not answered
        self.wrong, self.reads = [], 0
        self._threads = [threading.Thread(target=self._writes, args=(first + 100_000 * n,)) for n in range(3)]
        self._threads += [threading.Thread(target=work) for work in (self._searches, self._judges)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        for thread in self._threads:
            thread.join(60)

    def _ask(self, connection, method, path, body, expected):
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = json.loads(response.read())
        if response.status != expected:
            self.wrong.append((path, response.status, content))
        return content

    def _until_the_end(self, work):
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=60)
        try:
            while True:
                work(connection)
        except BROKEN:
            pass
        except Exception as error:
            self.wrong.append(repr(error))
        finally:
            connection.close()

    def _writes(self, first):
        state = {"next": first}

        def work(connection):
            ids = list(range(state["next"], state["next"] + 3))
            state["next"] += 3
            rows = [one % len(self.X) for one in ids]
            self.doubtful |= set(ids)
            self._ask(connection, "POST", "/v1/items", {"vectors": self.X[rows].tolist(), "ids": ids}, 201)
            self.added.update(zip(ids, rows, strict=True))
            other = (rows[0] + 1) % len(self.X)
            body = {"vectors": self.X[[other]].tolist(), "ids": ids[:1]}
            self._ask(connection, "PUT", "/v1/items", body, 200)
            self.added[ids[0]] = other
            self.doubtful -= set(ids[:2])
            self._ask(connection, "POST", "/v1/items/remove", {"ids": ids[2:]}, 200)
            self.removed.add(ids[2])
            self.doubtful -= set(ids)

        self._until_the_end(work)

    def _searches(self):
        def work(connection):
            found = self._ask(connection, "POST", "/v1/search", {"ids": [1], "k": 3, "order": "asymmetric"}, 200)
            if len(found["hits"][0]["ids"]) != 3:
                self.wrong.append(found)
            self.reads += 1

        self._until_the_end(work)

    def _judges(self):
        def work(connection):
            one = {"query": 1, "item": 2, "similar": True}
            self._ask(connection, "POST", "/v1/judgements", {"judgements": [one]}, 201)
            self.judged += 1

        self._until_the_end(work)

    def check(self, folder, model, judged_before):
        """Look at the folder for all that was acknowledged."""
        assert self.wrong == []
        with Service(folder) as service:
            state = service.state
            with ilhash.HammingIndex.open(folder / "index", writable=False) as index:
                assert index.verify().ok
            kept = {name: row for name, row in self.added.items() if name not in self.removed | self.doubtful}
            if kept:
                rows = np.array(list(kept.values()))
                assert np.array_equal(state.view.codes(list(kept)), model.transform(self.X[rows]))
                assert np.array_equal(state.vectors_of(list(kept)), self.X[rows])
            assert not any(state.view.contains(sorted(self.removed)))
            # Whatever became of what was not acknowledged, codes are those of the vectors.
            ids = state.view.ids
            assert np.array_equal(state.view.codes(ids), model.transform(state.vectors_of(ids.tolist())))
            judged = service.judged()["judgements"]
            assert judged_before + self.judged <= judged <= judged_before + self.judged + 1
            return judged


def killed(folder, start, X, model, times):
    """Kill servers once they acknowledged none to 40 items, however long that takes, and a moment later."""
    rng = np.random.default_rng(0)
    judged, reads, acknowledged = 0, 0, 0
    for number in range(times):
        server = start(folder)
        with Load(server, X, 10_000 + 1_000_000 * number) as load:
            wanted, end = rng.integers(0, 41), time.monotonic() + 60
            while len(load.added) < wanted and not load.wrong and time.monotonic() < end:
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.1))
            server.stop(signal.SIGKILL)
        assert len(load.added) >= wanted
        judged = load.check(folder, model, judged)
        reads, acknowledged = reads + load.reads, acknowledged + len(load.added)
    return reads, acknowledged


@posix
def test_kills_under_load(folder, start, digits, model):
    reads, acknowledged = killed(folder, start, digits[0].astype(np.float32), model, 10)
    assert reads > 10
    assert acknowledged > 100


@posix
@pytest.mark.slow
def test_a_hundred_kills_under_load(folder, start, digits, model):
    reads, acknowledged = killed(folder, start, digits[0].astype(np.float32), model, 100)
    assert reads > 1000
    assert acknowledged > 1000


@posix
def test_sigterm_under_load_answers_what_it_took(folder, start, digits, model):
    server = start(folder)
    with Load(server, digits[0].astype(np.float32), 10_000) as load:
        time.sleep(1.0)
        server.stop(signal.SIGTERM)
    assert len(load.added) > 3
    load.check(folder, model, 0)


@posix
def test_kills_while_it_learns(folder, start, digits, model):
    """The old model or the new one, and codes of it."""
    X, y = digits
    loop = np.isin(y, [0, 6, 8, 9])
    rng = np.random.default_rng(1)
    with Feedback.open(folder / "feedback") as log:
        queries, items = rng.integers(0, len(X), (2, 300))
        kept = queries != items
        log.add(queries[kept], items[kept], loop[queries[kept]] == loop[items[kept]])
    found = set()
    for wait in (0.6, 0.8, 0.9, 1.0, 1.5):
        copy = folder.with_name(f"copy-{wait}")
        shutil.copytree(folder, copy)
        server = start(copy)
        client = ilhash.Client(server.address)
        client._post("/v1/learning", {})
        time.sleep(wait)
        server.stop(signal.SIGKILL)
        client.close()
        with Service(copy) as service:
            state = service.state
            found.add(state.n_bits)
            codes = state.model.transform(state.vectors_of(state.view.ids.tolist()))
            assert np.array_equal(codes, state.view.codes(state.view.ids))
    assert found <= {32, 40, 48}


# ------------------------------------------------------------------------------------------------ the log of items


def log_of(folder, n):
    """A log of some changes; return its bytes, where each ends, and how many items there are then."""
    rng = np.random.default_rng(0)
    parts = [Records([0, 1], rng.normal(size=(2, 3)).astype(np.float32), [1, "x"], None)]
    Items.create(folder, parts)
    items = Items(folder, 3)
    ends = [(items.size, len(items))]
    for number in range(n):
        vectors = rng.normal(size=(number + 1, 3)).astype(np.float32)
        items.append(Records(list(range(10 * number, 11 * number + 1)), vectors, None, ["é"] * (number + 1)))
        ends.append((items.size, len(items)))
    return (folder / FILE).read_bytes(), ends


def test_a_log_that_is_cut_anywhere_has_the_whole_changes_before_the_cut(tmp_path):
    data, ends = log_of(tmp_path / "items", 4)
    for length in range(ends[0][0], len(data) + 1, 7):
        (tmp_path / "items" / FILE).write_bytes(data[:length])
        items = Items(tmp_path / "items", 3)
        assert len(items) == max(n for end, n in ends if end <= length)
        items.settle()
        items.append(Records(["new"], np.ones((1, 3), np.float32)))
        again = Items(tmp_path / "items", 3)
        assert np.array_equal(again.vectors(again.rows(["new"])), np.ones((1, 3)))
    for zeros in (1, 40, 5000):  # a size that was on disk before the content
        (tmp_path / "items" / FILE).write_bytes(data + bytes(zeros))
        assert len(Items(tmp_path / "items", 3)) == ends[-1][1]


def test_a_byte_that_was_changed_is_noticed(tmp_path):
    data, _ = log_of(tmp_path / "items", 3)
    for place in range(0, len(data), 5):
        changed = bytearray(data)
        changed[place] ^= 0x10
        (tmp_path / "items" / FILE).write_bytes(changed)
        with pytest.raises(StorageError):
            Items(tmp_path / "items", 3)


def test_a_log_is_written_anew_when_most_of_it_is_dead(tmp_path, monkeypatch, folder, digits):
    from ilhash.serve import _items
    from ilhash.serve._service import Change

    monkeypatch.setattr(_items, "WASTE", 1000)
    X = digits[0].astype(np.float32)
    with Service(folder) as service:
        old, size = service.items, service.items.size
        held = old.rows([5])
        for _ in range(3):
            service.change([Change("update", list(range(1797)), X)])
        assert service.items is not old
        assert service.items.size < 2 * size
        assert np.array_equal(old.vectors(held), X[[5]])  # whoever has the old one can go on with it
        assert np.array_equal(service.state.vectors_of([1796, 0]), X[[1796, 0]])
        assert service.state.items.label(service.state.items.rows([3])[0]) == 3
    with Service(folder) as service:
        assert np.array_equal(service.state.vectors_of(list(range(1797))), X)


def test_an_update_that_only_the_log_has_is_brought_to_its_end(folder, digits, model):
    X = digits[0].astype(np.float32)
    items = Items(folder / "items", 64)
    items.append(Records([3, 777777], X[[8, 9]], None, None, True))  # and then it was killed
    with Service(folder) as service:
        assert np.array_equal(service.state.view.codes([3]), model.transform(X[[8]]))
        assert service.state.view.contains([777777]) == [False]
        assert service.state.items.label(service.state.items.rows([3])[0]) == 3


def test_items_that_only_the_log_has_are_not_there(folder, digits):
    X = digits[0].astype(np.float32)
    Items(folder / "items", 64).append(Records([5000], X[:1]))
    with Service(folder) as service:
        assert service.state.view.contains([5000]) == [False]
        assert len(service.state.base[0]) == 1797


def test_a_change_that_fails_leaves_what_was_there(folder, digits, monkeypatch):
    from ilhash.serve._service import Change

    X = digits[0].astype(np.float32)
    with Service(folder) as service:

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(service._codes, "update", full)
        (failed,) = service.change([Change("update", [3], X[[8]])])
        assert isinstance(failed, OSError)
        assert np.array_equal(service.state.vectors_of([3]), X[[3]])
    with Service(folder) as service:
        assert np.array_equal(service.state.vectors_of([3]), X[[3]])
        ids = service.state.view.ids
        codes = service.state.model.transform(service.state.vectors_of(ids.tolist()))
        assert np.array_equal(codes, service.state.view.codes(ids))
