"""URLs, settings, named values, and how an approximate mode is judged."""

import numpy as np
import pytest

from ilhash import engines
from ilhash.engines import _contract, _places, _recall, _statements
from ilhash.search import Hits


def test_three_slashes_are_here_and_four_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert _places.path_of("sqlite:///a.db").resolve() == tmp_path / "a.db"
    assert _places.path_of("lance://there").resolve() == tmp_path / "there"
    assert _places.path_of(f"sqlite:///{tmp_path}/a.db") == tmp_path / "a.db"
    assert _places.path_of(f"folder://{tmp_path}/a%20b") == tmp_path / "a b"  # absolute: no such folder is here
    assert _places.path_of("sqlite:///there/a.db").resolve() == tmp_path / "there" / "a.db"
    with pytest.raises(FileNotFoundError, match="in a folder that exists"):
        _places.path_of("sqlite:///nowhere/a.db")


@pytest.mark.parametrize("url", ["items.db", "http://here", "", "://"])
def test_other_urls_are_refused(url):
    with pytest.raises(ValueError, match="url must begin with one of folder://"):
        engines.open(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@host/items",
        "postgresql://me:sec:ret@host/items",
        "postgresql://me:se/cret@host/items",
        "postgresql://me:se@cret@host/items",
        "postgresql://host/items?user=me&password=secret",
        "postgresql://host/items?Password=sec%26ret&port=1",
        "postgresql://host/items?user=me&sslpassword=secret",
        "postgresql://me:secret@[::1/items",
        "mysql://me:secret@host/items",
    ],
)
def test_passwords_are_not_shown(url):
    shown = engines.without_password(url)
    assert "cret" not in shown
    assert shown.startswith(url[:8])
    with pytest.raises((ValueError, engines.EngineError)) as error:
        engines.open(url.replace("host", "127.0.0.1:1"))
    assert "cret" not in str(error.value)


@pytest.mark.parametrize("url", ["sqlite:///items@home.db", "lance:////a:b/c@d", "folder:///a?b", "nothing"])
def test_what_has_no_password_is_shown_as_it_is(url):
    assert engines.without_password(url) == url


@pytest.mark.parametrize("scheme", engines.ENTRIES)
def test_names_that_mean_something_else_are_files(tmp_path, monkeypatch, scheme):
    """A library reads some names as a place in memory or on a network: what is stored there would be elsewhere."""
    monkeypatch.chdir(tmp_path)
    if engines.ENTRIES[scheme].versions() is None or scheme == "postgresql":
        pytest.skip("not installed, or no file")
    for name in (":memory:", "md:items", "s3:"):
        with engines.open(f"{scheme}:///{name}", n_bits=8) as engine:
            engine.add(np.zeros((3, 1), np.uint8))
        assert (tmp_path / name).exists()
        with engines.open(f"{scheme}:///{name}", writable=False) as engine:
            assert engine.count() == 3
    with pytest.raises(ValueError, match="url must be without NUL"):
        engines.open(f"{scheme}:///items%00.db", n_bits=8)


def test_what_is_no_text_is_refused():
    with pytest.raises(TypeError, match="url must be a text"):
        engines.open(3)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_bits": 0}, "n_bits must be"),
        ({"n_bits": 8, "ids": "uuid"}, "ids must be one of"),
        ({"n_bits": 8, "mode": "magic"}, "mode must be one of"),
        ({"n_bits": 8, "model": "short"}, "model must be a fitted model"),
        ({"n_bits": 8, "columns": {"price": "money"}}, "columns must be"),
        ({"n_bits": 8, "writable": False}, "to be read"),
    ],
)
def test_settings_are_checked_before_anything_is_made(tmp_path, settings, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        engines.open(f"folder:///{tmp_path}/place", **settings)
    assert list(tmp_path.iterdir()) == []


def test_names_meet_no_name_of_ours():
    condition, values = _statements.named_values(
        "a = :k AND b = ':k' AND \":k\" > 1 AND c::int = :query", {"k": 1, "query": 2}
    )
    assert condition == "a = :user_k AND b = ':k' AND \":k\" > 1 AND c::int = :user_query"
    assert values == {"user_k": 1, "user_query": 2}
    for given in ({}, {"k": 1, "other": 2}):
        with pytest.raises(ValueError, match="parameters must be those that where names"):
            _statements.named_values("a = :k", given)


class Given(_contract.Engine):
    """Answers that are told in advance."""

    name = "given"

    def __init__(self, mode, distances):
        self.mode, self.hits = mode, Hits(np.array(distances, np.int32), np.array(distances), exact=mode == "exact")

    def search(self, codes, k=10, **_):
        return self.hits

    def close(self):
        pass


Given.__abstractmethods__ = frozenset()


def measured(monkeypatch, found, truth):
    answers = {"exact": truth, "hnsw": found}
    monkeypatch.setattr(_recall, "open_engine", lambda url, mode, table: Given(mode, answers[mode]))
    return engines.measure_recall("given://", "hnsw", np.zeros((len(truth), 1), np.uint8), k=3)


def test_recall_is_by_distance(monkeypatch):
    told = measured(monkeypatch, [[0, 1, 1], [5, 6, 9]], [[0, 1, 1], [5, 5, 6]])
    assert told.recall == pytest.approx(5 / 6)
    assert not told.fewer
    assert "use mode='exact'" in told.advice


def test_fewer_answers_are_misses(monkeypatch):
    told = measured(monkeypatch, [[0], [5]], [[0, 1, 1], [5, 5, 6]])
    assert told.recall == pytest.approx(1 / 3)
    assert told.fewer


def test_an_empty_engine_cannot_be_measured(monkeypatch):
    with pytest.raises(ValueError, match="must hold items"):
        measured(monkeypatch, np.zeros((2, 0)), np.zeros((2, 0)))


def test_advice_says_what_is_gained():
    told = engines.Recall("hnsw", 1.0, False, 0.001, 0.01, 10, 3)
    assert "10.0 times faster" in told.advice
    assert "exact search is faster" in engines.Recall("hnsw", 1.0, False, 0.02, 0.01, 10, 3).advice
