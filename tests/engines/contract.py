"""What every engine must keep; an engine's test file inherits it, says where the engine is, and adds its own traps."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from ilhash import ILH, HammingIndex, codes, engines
from ilhash.search import rescore

WIDTHS = (1, 7, 8, 64, 100, 600)
TEXTS = [
    "plain",
    "it's",
    'double "quoted"',
    "%s :name ? $1",
    "'; DROP TABLE ilhash_items; --",
    "ß",
    "日本語",
    "z\\n",
    " ",
]


def random_codes(n, n_bits, seed=0):
    return codes.pack(np.random.default_rng(seed).random((n, n_bits)) < 0.5)


def repeated_codes(n, n_bits, seed=0, distinct=7):
    """Few distinct codes, as supervised ones are: ties at every distance."""
    rng = np.random.default_rng(seed)
    return random_codes(distinct, n_bits, seed)[rng.integers(distinct, size=n)]


def distances_between(queries, base, n_bits):
    return (codes.unpack(queries, n_bits)[:, None] != codes.unpack(base, n_bits)).sum(axis=2)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def nearest(base, ids, queries, n_bits, k):
    """Brute force in the order (distance, id)."""
    ids = np.array(ids, object)
    distances = distances_between(queries, base, n_bits)
    orders = [sorted(range(len(ids)), key=lambda row, d=d: (d[row], ids[row]))[:k] for d in distances]
    return [ids[order].tolist() for order in orders], [
        d[order].tolist() for d, order in zip(distances, orders, strict=True)
    ]


def assert_nearest(hits, base, ids, queries, n_bits, k):
    expected_ids, expected = nearest(base, ids, queries, n_bits, k)
    assert hits.exact
    assert hits.distances.dtype == np.int32
    assert hits.distances.tolist() == expected
    assert hits.ids.tolist() == expected_ids


KILLED = """
import sys
import numpy as np
from ilhash import engines

with engines.open(sys.argv[1], table="killed") as engine:
    first = -(-(engine._largest_id() + 1) // 100)  # an earlier process may have been killed here
    for batch in range(first, first + 10_000):
        ids = np.arange(100) + 100 * batch
        engine.add(np.full((100, 8), batch % 256, np.uint8), ids)
        print(batch, flush=True)
"""


CHANGED = """
import sys
import numpy as np
from ilhash import engines

with engines.open(sys.argv[1], table="changed") as engine:
    more = engine.codes(np.arange(len(engine)))[:, ::-1][:, :1]  # the last byte of a code again
    if engine.n_bits == 72:
        engine.select_bits(slice(64))
    for change in range(10_000):
        print(change, flush=True)
        if change % 2 == 0:
            engine.append_bits(more, 8)
        else:
            engine.select_bits(np.arange(64))
"""


class EngineContract:
    """Set ``scheme``; ``url`` is a fixture that names a new, empty place."""

    scheme: str
    approximate = ()  # names of modes that are not exact
    batch = 300
    loses_nothing = True  # whether what was acknowledged survives kill -9
    whole_batches = True  # whether an add is there wholly or not at all

    @pytest.fixture
    def url(self, tmp_path):
        return f"{self.scheme}:///{tmp_path}/place"

    @pytest.fixture(autouse=True)
    def _installed(self):
        entry = engines._places.ENTRIES[self.scheme]
        if entry.versions() is None:
            pytest.skip(f'{self.scheme} is not installed: pip install "ilhash[{entry.extra}]"')

    def made(self, url, n_bits, **settings):
        return engines.open(url, n_bits=n_bits, **settings)

    def exists(self, url):
        """What a second client may do beside a first."""
        return engines.open(url)

    # ------------------------------------------------------------------------------------------ answers

    @pytest.mark.parametrize("n_bits", WIDTHS)
    @pytest.mark.parametrize("kind", [random_codes, repeated_codes])
    def test_answers_are_those_of_brute_force(self, url, n_bits, kind):
        base, queries = kind(self.batch, n_bits), kind(5, n_bits, seed=1)
        ids = np.random.default_rng(2).permutation(10 * self.batch)[: self.batch]
        with self.made(url, n_bits) as engine:
            assert engine.add(base, ids).tolist() == ids.tolist()
            for k in (1, 10, self.batch):
                assert_nearest(engine.search(queries, k), base, ids, queries, n_bits, k)

    def test_learned_codes(self, url, digits):
        X, y = digits
        model = ILH(n_bits=32, n_train=200).fit(X[:600], y[:600], check=False)
        base = model.transform(X[:600])
        with self.made(url, 32, model=model) as engine:
            engine.add(base)
            assert_nearest(engine.search(base[:20], 15), base, range(600), base[:20], 32, 15)
            hits = engine.search_vectors(model, X[:5], 10)
            assert hits.ids.tolist() == engine.search(base[:5], 10).ids.tolist()
            other = ILH(n_bits=32, n_train=200, random_state=1).fit(X[:600], y[:600], check=False)
            with pytest.raises(ValueError, match="of the model whose codes"):
                engine.search_vectors(other, X[:5])

    def test_asymmetric_order_is_exact_where_the_shortlist_is_all(self, url):
        base, margins = random_codes(self.batch, 24), np.random.default_rng(3).normal(size=(4, 24)).astype(np.float32)
        with self.made(url, 24) as engine:
            engine.add(base)
            hits = engine.search_asymmetric(margins, 7)
            assert hits.exact
            part = engine.search_asymmetric(margins, 7, shortlist=20)
            assert not part.exact
        bits = codes.unpack(base, 24)
        far = np.array([[np.abs(m[(m > 0) != b]).sum() for b in bits] for m in margins])
        np.testing.assert_allclose(hits.distances, np.sort(far, axis=1)[:, :7], rtol=1e-5)
        np.testing.assert_allclose(np.take_along_axis(far, hits.ids, 1), hits.distances, rtol=1e-5)

    def test_orders_of_a_model_are_those_of_an_index(self, url, digits):
        """Margins and vectors put a shortlist in order, whoever found it."""
        X, y = digits
        model = ILH(n_bits=32, n_train=200).fit(X[:600], y[:600], check=False)
        base, margins, asked = model.transform(X[:600]), model.decision_function(X[:600]), X[600:605]
        index = HammingIndex(base, n_bits=32)
        own, ids = model.decision_function(asked), np.arange(600)[::-1]
        with self.made(url, 32, model=model) as engine:
            engine.add(base[::-1], ids)
            weighed = engine.search_vectors(model, asked, 7, order="asymmetric")
            assert np.array_equal(weighed.ids, index.search_asymmetric(own, 7).ids)
            by_margins = engine.search_margins(own, margins[::-1], 7, ids=ids, shortlist=600)
            some = {"allowed": np.arange(0, 600, 3)}
            assert (engine.search_vectors(model, asked, 7, order="asymmetric", **some).ids % 3 == 0).all()
            near = engine.search(model.transform(asked), 600)
            found = rescore(near, np.asarray(asked, np.float32), X[:600], 5)
        for hits, of_queries, of_items, k in ((found, asked, X[:600], 5), (by_margins, unit(own), unit(margins), 7)):
            far = np.linalg.norm(np.asarray(of_queries, float)[:, None] - np.asarray(of_items, float), axis=2)
            np.testing.assert_allclose(hits.distances, np.sort(far, axis=1)[:, :k], rtol=1e-4)
            np.testing.assert_allclose(np.take_along_axis(far, hits.ids, 1), hits.distances, rtol=1e-4)

    @pytest.mark.parametrize("n_bits", [7, 64])
    def test_within_a_radius(self, url, n_bits):
        base, queries = repeated_codes(self.batch, n_bits), random_codes(4, n_bits, seed=1)
        distances = distances_between(queries, base, n_bits)
        radius = int(np.median(distances))
        with self.made(url, n_bits) as engine:
            engine.add(base)
            hits = engine.within(queries, radius)
            nothing = engine.within(queries[:0], radius)
        assert hits.exact
        assert len(nothing) == 0
        for (ids, found), d in zip(hits, distances, strict=True):
            rows = sorted(np.flatnonzero(d <= radius).tolist(), key=lambda row: (d[row], row))
            assert ids.tolist() == rows
            assert found.tolist() == d[rows].tolist()

    def test_an_empty_place(self, url):
        with self.made(url, 16) as engine:
            assert engine.count() == len(engine) == 0
            hits = engine.search(random_codes(3, 16), 5)
            assert hits.ids.shape == hits.distances.shape == (3, 0)
            assert list(engine.blocks()) == []
            assert len(engine.within(random_codes(3, 16), 16).ids) == 0

    def test_more_than_there_are(self, url):
        base = random_codes(4, 16)
        with self.made(url, 16) as engine:
            engine.add(base)
            assert_nearest(engine.search(base, 100), base, range(4), base, 16, 100)
            assert engine.search(base, 100).ids.shape == (4, 4)
            assert engine.search(base[:0], 3).ids.shape[0] == 0

    # ------------------------------------------------------------------------------------------ changes

    def test_updates_and_removals(self, url):
        base = repeated_codes(self.batch, 20)
        with self.made(url, 20) as engine:
            engine.add(base[:100])
            engine.add(base[100:])
            assert engine.count() == self.batch
            changed = np.arange(0, self.batch, 3)
            base[changed] = random_codes(len(changed), 20, seed=9)
            engine.update(base[changed], changed)
            gone = np.arange(0, self.batch, 4)
            engine.remove(gone)
            stay = np.setdiff1d(np.arange(self.batch), gone)
            queries = random_codes(5, 20, seed=3)
            assert engine.count() == len(stay)
            assert_nearest(engine.search(queries, 40), base[stay], stay, queries, 20, 40)
            engine.remove(stay)
            assert engine.count() == 0
            assert engine.search(queries, 3).ids.shape == (5, 0)
            engine.add(base, np.arange(self.batch))
            assert_nearest(engine.search(queries, 9), base, range(self.batch), queries, 20, 9)

    def test_automatic_ids_follow_the_largest(self, url):
        with self.made(url, 8) as engine:
            assert engine.add(random_codes(2, 8)).tolist() == [0, 1]
            engine.add(random_codes(1, 8), [10])
            assert engine.add(random_codes(2, 8)).tolist() == [11, 12]

    def test_numbers_at_the_ends(self, url):
        ids = [-(2**63), -1, 0, 2**63 - 1]
        with self.made(url, 8) as engine:
            engine.add(np.zeros((4, 1), np.uint8), ids)
            assert engine.search(np.zeros((1, 1), np.uint8), 4).ids.tolist() == [ids]
            with pytest.raises(ValueError, match="automatic ones would pass"):
                engine.add(np.zeros((1, 1), np.uint8))

    def test_texts_of_any_kind(self, url):
        base = repeated_codes(len(TEXTS), 12, distinct=2)
        with self.made(url, 12, ids="str") as engine:
            engine.add(base, TEXTS)
            assert_nearest(engine.search(base, len(TEXTS)), base, TEXTS, base, 12, len(TEXTS))
            assert np.array_equal(engine.codes(TEXTS), base)
            assert engine.search(base[:1], 9, allowed=TEXTS[1:5]).ids.tolist()[0] == sorted(
                TEXTS[1:5], key=lambda t: (distances_between(base[:1], base[[TEXTS.index(t)]], 12)[0, 0], t)
            )
            engine.update(base[:1], [TEXTS[4]])
            engine.remove(TEXTS[:5])
            assert engine.count() == len(TEXTS) - 5
        with self.exists(url) as engine:
            assert sorted(np.concatenate([ids for ids, _ in engine.blocks()])) == sorted(TEXTS[5:])

    def test_refusals_change_nothing(self, url):
        base = random_codes(10, 16)
        with self.made(url, 16) as engine:
            engine.add(base)
            for call, sentence in (
                (lambda: engine.add(base, np.arange(5, 15)), "ids must be new, got 5 of 10"),
                (lambda: engine.update(base[:2], [3, 77]), "ids must be in the (engine|index), got 1 of 2"),
                (lambda: engine.remove([3, 77, 78]), "ids must be in the (engine|index), got 2 of 3"),
                (lambda: engine.codes([3, 77]), "ids must be in the engine, got 1 that"),
                (lambda: engine.add(base[:2], [20, 20]), "ids must be distinct, got 1 of 2"),
                (lambda: engine.add(base[:, :1]), "codes of 16 bits must be"),
                (lambda: engine.search(base.astype(int)), "codes of 16 bits must be"),
                (lambda: engine.search(base, 0), "k must be a whole number of at least 1"),
                (lambda: engine.within(base, -1), "radius must be a whole number of at least 0"),
                (lambda: engine.add(base[:1], columns={"nowhere": [1]}), "columns must be none"),
            ):
                with pytest.raises(ValueError, match=sentence) as error:
                    call()
                assert "\n" not in str(error.value)
            with pytest.raises(TypeError, match="ids must be of the kind"):
                engine.remove(["3"])
            assert engine.count() == 10
            assert_nearest(engine.search(base, 10), base, range(10), base, 16, 10)

    # ------------------------------------------------------------------------------------------ filters

    @pytest.mark.parametrize("kind", [random_codes, repeated_codes])
    def test_allowed_ids(self, url, kind):
        base, queries = kind(self.batch, 32), random_codes(3, 32, seed=5)
        allowed = np.arange(0, self.batch, 7)
        with self.made(url, 32) as engine:
            engine.add(base)
            hits = engine.search(queries, 20, allowed=[*allowed, 10**9])
            assert_nearest(hits, base[allowed], allowed, queries, 32, 20)
            everywhere = engine.within(queries, 32, allowed=allowed)
            assert [sorted(ids) for ids, _ in everywhere] == [allowed.tolist()] * 3
            assert engine.search(queries, 5, allowed=[]).ids.shape == (3, 0)

    def test_conditions_on_columns(self, url):
        if not self.engine_class().has_columns:
            with self.made(url, 8) as engine, pytest.raises(ValueError, match="where must be left out"):
                engine.search(random_codes(1, 8), where="price < :most", parameters={"most": 3})
            with pytest.raises(ValueError, match="columns must be left out"):
                self.made(url, 8, columns={"price": "float"})
            return
        kinds = {"price": "float", "color": "text", "stock": "int", "new": "bool"}
        base, queries = repeated_codes(self.batch, 16), random_codes(3, 16, seed=5)
        rng = np.random.default_rng(0)
        price, stock = rng.random(self.batch), rng.integers(5, size=self.batch)
        color = np.array(["red", "it's blue", "grün"], object)[rng.integers(3, size=self.batch)]
        columns = {"price": price, "color": color, "stock": stock, "new": stock > 2}
        with self.made(url, 16, columns=kinds) as engine:
            engine.add(base, columns=columns)
            right = np.flatnonzero((price < 0.5) & (color == "it's blue"))
            named = {"most": 0.5, "wanted": "it's blue"}
            where = "price < :most AND color = :wanted"
            hits = engine.search(queries, 12, where=where, parameters=named)
            assert_nearest(hits, base[right], right, queries, 16, 12)
            both = engine.search(queries, 12, where=where, parameters=named, allowed=right[::2])
            assert_nearest(both, base[right[::2]], right[::2], queries, 16, 12)
            near = engine.within(queries[:1], 16, where="stock = :s AND new", parameters={"s": 4})
            assert sorted(near.ids) == np.flatnonzero(stock == 4).tolist()
            hostile = {"wanted": "' OR 1=1 --"}
            assert engine.search(queries, 3, where="color = :wanted", parameters=hostile).ids.shape == (3, 0)
            for where, given in (
                ("price < :most", {}),
                ("price < 1", {"most": 1}),
                ("no_such < 1", {}),
                ('"no_such" = 1', {}),
                ("price <", {}),
            ):
                with pytest.raises((ValueError, engines.EngineError)) as error:
                    engine.search(queries, 3, where=where, parameters=given)
                assert "\n" not in str(error.value)
            for where in (
                "1 = 1); DELETE FROM ilhash_items; SELECT 1, 2 WHERE (1 = 1",
                "1 = 1) OR (1 = 1",
                "1 = 1 --",
                "1 = 1 /*",
                "color = 'a''",
                "color = E'\\''; DELETE FROM ilhash_items; --'",
                "$$;$$ = 'a'",
                "stock = 1 \0",
                "color = '\ud800'",
                "price < $1",  # which could be a value of ours
            ):
                with pytest.raises(ValueError, match="where must be one condition"):
                    engine.search(queries, 3, where=where)
            for value, sentence in (
                ("\ud800", "surrogates"),
                (2**63, "whole numbers of 64 bits"),
                (b"red", "got bytes"),
                (["red"], "got list"),
                (np.zeros(2), "got ndarray"),
            ):
                with pytest.raises(ValueError, match=f"parameters must be .*{sentence}"):
                    engine.search(queries, 3, where="color = :wanted", parameters={"wanted": value})
            halves = {**columns, "color": ["\ud83d", "\ude00"] * (self.batch // 2)}
            with pytest.raises(ValueError, match="columns must hold texts of whole characters"):
                engine.add(base, np.arange(self.batch) + self.batch, halves)
            assert engine.count() == self.batch
            assert engine.search(queries, 3, where="color <> 'a;b(' AND (price < 2)").ids.shape == (3, 3)
            with pytest.raises(ValueError, match="columns must be"):
                engine.add(base[:1], [10**6])
            engine.update(base[:1], [5])  # columns stay
            assert engine.search(base[:1], self.batch, where="stock >= 0").ids.shape == (1, self.batch)

    def engine_class(self):
        return engines._places.ENTRIES[self.scheme].load()

    # ------------------------------------------------------------------------------------------ places

    def test_it_is_there_again(self, url):
        base = random_codes(50, 100)
        with self.made(url, 100, model="ab" * 32) as engine:
            engine.add(base)
        with engines.open(url) as engine:
            assert engine.n_bits == 100
            assert engine.model == "ab" * 32
            assert_nearest(engine.search(base[:5], 7), base, range(50), base[:5], 100, 7)
        with pytest.raises(ValueError, match="n_bits must be that of"):
            engines.open(url, n_bits=64)
        with pytest.raises(ValueError, match="must be of the model"):
            engines.open(url, model="cd" * 32)
        with engines.open(url, writable=False) as engine:
            assert engine.count() == 50

    def test_nothing_is_there(self, url):
        with pytest.raises((OSError, ValueError)) as error:
            engines.open(url)
        assert "\n" not in str(error.value)

    def test_all_items_in_blocks(self, url):
        base, ids = random_codes(250, 40), np.random.default_rng(0).permutation(1000)[:250]
        with self.made(url, 40) as engine:
            engine.add(base, ids)
            found = list(engine.blocks(100))
            assert [len(names) for names, _ in found] == [100, 100, 50]
            names, read = (np.concatenate(part) for part in zip(*found, strict=True))
            assert names.tolist() == sorted(ids.tolist())
            assert np.array_equal(read, base[np.argsort(ids)])
            assert np.array_equal(engine.codes(ids[::-1]), base[::-1])

    def test_it_describes_itself(self, url):
        with self.made(url, 9) as engine:
            told = engine.describe()
        assert told["engine"] == engine.name
        assert told["n_bits"] == 9
        assert told["items"] == 0
        assert told["exact"] is True
        assert told["version"]
        assert len(told["promise"]) > 20

    def test_another_order_of_bits_is_noticed(self, url, monkeypatch):
        kind = self.engine_class()
        right = kind._measured

        def turned(engine, known, query):
            read, distances = right(engine, known, query)
            return codes.to_lsb_first(read, 8 * read.shape[1]), distances

        monkeypatch.setattr(kind, "_measured", turned)
        with pytest.raises(engines.EngineError, match="self-check"):
            self.made(url, 24)
        monkeypatch.undo()
        monkeypatch.setattr(kind, "_measured", lambda e, known, query: (known, [0] * len(known)))
        with pytest.raises(engines.EngineError, match="self-check"):
            self.made(url, 24)

    def test_two_clients_at_once(self, url):
        base = random_codes(200, 16)
        with self.made(url, 16) as first:
            first.add(base[:50])
            if not self.engine_class().several_writers:
                with pytest.raises(OSError, match=r"one|another|lock") as error, self.exists(url):
                    pass
                assert "\n" not in str(error.value)
                first.add(base[50:])
                assert first.count() == 200
                return
            failed = []

            def change(part):
                try:
                    with self.exists(url) as engine:
                        for row in range(50 * part, 50 * part + 50):
                            engine.add(base[row : row + 1], [row])
                            engine.search(base[:1], 5)
                except Exception as error:
                    failed.append(error)

            clients = [threading.Thread(target=change, args=(part,)) for part in (1, 2, 3)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            assert not failed
            assert first.count() == 200
            assert_nearest(first.search(base[:5], 20), base, range(200), base[:5], 16, 20)

    def killed(self, url, after, delay=0.0):
        """Kill a process in the middle of adding batches of 100; return how many were acknowledged in all."""
        with engines.open(url, n_bits=64, table="killed"):
            pass
        command = [sys.executable, "-c", textwrap.dedent(KILLED), url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            done = -1
            for line in child.stdout:
                done = int(line)
                if done >= after:
                    time.sleep(delay)
                    os.kill(child.pid, signal.SIGKILL)
                    break
            rest = child.stdout.read().split()
        return int(rest[-1]) + 1 if rest else done + 1

    def check_after_kill(self, url, acknowledged):
        with engines.open(url, table="killed") as engine:
            n = engine.count()
            if self.loses_nothing:
                assert n >= 100 * acknowledged
            if self.whole_batches:
                assert n % 100 == 0
            ids, read = (np.concatenate(part) for part in zip(*engine.blocks(), strict=True))
            assert len(ids) == n
            assert np.array_equal(read[:, 0], (ids // 100 % 256).astype(np.uint8))
            hits = engine.search(read[:1], 5)
            assert hits.distances.tolist() == [[0] * 5]
            engine.add(read[:1], [10**9])
            assert engine.count() == n + 1

    def test_a_process_killed_while_it_adds(self, url):
        self.check_after_kill(url, self.killed(url, after=3))

    # ------------------------------------------------------------------------------------------ other bits

    @pytest.mark.parametrize(("n_bits", "n_new"), [(12, 9), (64, 8), (60, 5), (7, 600)])
    @pytest.mark.parametrize("kind", [random_codes, repeated_codes])
    def test_bits_are_appended(self, url, kind, n_bits, n_new):
        base, new = kind(self.batch, n_bits), kind(self.batch, n_new, seed=1)
        ids = np.random.default_rng(2).permutation(10 * self.batch)[: self.batch]
        longer = codes.pack(np.concatenate([codes.unpack(base, n_bits), codes.unpack(new, n_new)], axis=1))
        queries, total = kind(4, n_bits + n_new, seed=3), n_bits + n_new
        with self.made(url, n_bits, model="ab" * 32) as engine:
            engine.add(base, ids)
            engine.append_bits(new, n_new, ids=ids, model="cd" * 32)
            assert (engine.n_bits, engine.model) == (total, "cd" * 32)
            assert_nearest(engine.search(queries, 20), longer, ids, queries, total, 20)
            assert np.array_equal(engine.codes(ids), longer)
        with engines.open(url) as engine:
            assert (engine.n_bits, engine.model, engine.count()) == (total, "cd" * 32, self.batch)
            assert_nearest(engine.search(queries, self.batch), longer, ids, queries, total, self.batch)
            added = kind(3, total, seed=5)
            engine.add(added, [10**6, 10**6 + 1, 10**6 + 2])
            engine.remove([ids[0]])
            everything, names = np.concatenate([longer[1:], added]), [*ids[1:], 10**6, 10**6 + 1, 10**6 + 2]
            assert_nearest(engine.search(queries, 30), everything, names, queries, total, 30)
            zeros = np.zeros((self.batch + 2, 1), np.uint8)
            with pytest.raises(ValueError, match="model must be given"):
                engine.append_bits(zeros, 1)
            engine.append_bits(zeros, 1, model="ef" * 32)  # again, and in the order of ids
            assert engine.n_bits == total + 1
            assert engine.count() == self.batch + 2

    def test_bits_are_selected(self, url):
        base, queries = random_codes(self.batch, 70), random_codes(4, 9, seed=1)
        names = [f"it's {row}" for row in np.random.default_rng(0).permutation(self.batch)]
        chosen = [69, 0, 5, 64, 63, 8, 7, 33, 1]
        with self.made(url, 70, ids="str") as engine:
            engine.add(base, names)
            engine.select_bits(chosen, model="ab" * 32)
            some = codes.pack(codes.unpack(base, 70)[:, chosen])
            assert_nearest(engine.search(queries, 50), some, names, queries, 9, 50)
            assert engine.within(queries, 9).ids.shape == (4 * self.batch,)
        with engines.open(url) as engine:
            assert (engine.n_bits, engine.model) == (9, "ab" * 32)
            assert_nearest(engine.search(queries, 50), some, names, queries, 9, 50)
            engine.append_bits(random_codes(self.batch, 70, seed=2), 70, names, model="cd" * 32)
            engine.select_bits(slice(-70, None), model="ef" * 32)
            assert np.array_equal(engine.codes(names), random_codes(self.batch, 70, seed=2))

    def test_an_empty_place_can_have_other_bits(self, url):
        with self.made(url, 16) as engine:
            engine.append_bits(np.zeros((0, 8), np.uint8), 64)
            assert engine.search(random_codes(2, 80), 3).ids.shape == (2, 0)
            engine.select_bits([3])
            engine.add(np.array([[0], [128]], np.uint8))
            assert engine.search(np.array([[128]], np.uint8), 3).ids.tolist() == [[1, 0]]

    def test_columns_stay_when_bits_change(self, url):
        if not self.engine_class().has_columns:
            return
        kinds = {"price": "float", "note": "text", "n": "int", "new": "bool"}
        base, n = random_codes(self.batch, 60), np.arange(self.batch)
        notes = [None if row % 3 else f"it's {row}" for row in n]
        with self.made(url, 60, columns=kinds) as engine:
            engine.add(base, columns={"price": n / 7, "note": notes, "n": n, "new": n % 2 == 0})
            engine.update(base[:1], [1])
            engine.append_bits(base[:, :2], 16)
            engine.select_bits(slice(40, None))
        first = base.copy()
        first[1] = base[0]
        longer = np.concatenate([codes.unpack(first, 60), np.unpackbits(base[:, :2], axis=1).view(np.bool_)], axis=1)
        right = np.flatnonzero((n % 3 == 0) & (n % 2 == 0) & (n / 7 < 30))
        with engines.open(url) as engine:
            where = "note IS NOT NULL AND new AND price < :most AND n >= 0"
            shorter = codes.pack(longer[:, 40:])
            hits = engine.search(shorter[:3], 20, where=where, parameters={"most": 30})
            assert_nearest(hits, shorter[right], right, shorter[:3], 36, 20)
            found = engine.search(shorter[:1], 9, where="note = :note", parameters={"note": "it's 9"})
            assert found.ids.tolist() == [[9]]

    def test_changes_of_bits_that_do_not_fit(self, url):
        base = random_codes(10, 16)
        with self.made(url, 16) as engine:
            engine.add(base, np.arange(10) * 2)
            for call, sentence in (
                (lambda: engine.append_bits(base[:9], 16), "codes must be one per item, got 9 for "),
                (lambda: engine.append_bits(np.concatenate([base, base]), 16), "one per item, got 20 for 10"),
                (lambda: engine.append_bits(base, 8), "codes of 8 bits must be"),
                (lambda: engine.append_bits(base, 0), "n_bits must be a whole number of at least 1"),
                (lambda: engine.append_bits(base, 65_530), "n_bits must be a whole number of at most 65519"),
                (lambda: engine.append_bits(base, 16, ids=np.arange(10)), "ids must be"),
                (lambda: engine.append_bits(base, 16, ids=[0] * 10), "ids must be distinct"),
                (lambda: engine.append_bits(base, 16, ids=[1]), "ids must be a sequence of one id per item"),
                (lambda: engine.select_bits(slice(0)), "bits must be at least one of 16, got none"),
                (lambda: engine.select_bits([16]), "bits must lie between 0 and 15"),
            ):
                with pytest.raises(ValueError, match=sentence) as error:
                    call()
                assert "\n" not in str(error.value)
            with pytest.raises(TypeError, match="bits must be"):
                engine.select_bits("all")
            with pytest.raises(TypeError, match="bits must be"):
                engine.select_bits([])
            with pytest.raises(TypeError, match="model must be"):
                engine.select_bits([1], model="short")
            assert (engine.n_bits, engine.model, engine.count()) == (16, None, 10)
            assert_nearest(engine.search(base, 10), base, np.arange(10) * 2, base, 16, 10)
            engine.add(base[:1], [99])
        with engines.open(url, writable=False) as engine:
            with pytest.raises((OSError, ValueError)) as error:
                engine.select_bits([1])
            assert "\n" not in str(error.value)
            assert (engine.n_bits, engine.count()) == (16, 11)

    def test_other_clients_are_told_that_bits_changed(self, url):
        if not self.engine_class().several_writers:
            return
        base = random_codes(20, 16)
        with self.made(url, 16) as engine, self.exists(url) as other:
            engine.add(base)
            assert other.count() == 20
            engine.select_bits(np.arange(16)[::-1])  # as many, and others
            for call in (
                lambda: other.search(base, 3),
                lambda: other.within(base, 3),
                lambda: other.search(base, 3, allowed=[1, 2]),
                lambda: other.codes([1]),
                lambda: list(other.blocks()),
                lambda: other.add(base[:1], [99]),
                lambda: other.update(base[:1], [1]),
                lambda: other.remove([1]),
                lambda: other.select_bits([1]),
            ):
                with pytest.raises(engines.EngineError, match="open it again") as error:
                    call()
                assert "\n" not in str(error.value)
            turned = codes.pack(codes.unpack(base, 16)[:, ::-1])
            assert_nearest(engine.search(turned, 5), turned, range(20), turned, 16, 5)
            with self.exists(url) as again:
                assert_nearest(again.search(turned, 5), turned, range(20), turned, 16, 5)

    def killed_between_bits(self, url, base, after, delay):
        """Kill a process that gives items other bits, to and fro; check that one of the two is there, wholly."""
        command = [sys.executable, "-c", textwrap.dedent(CHANGED), url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            for line in child.stdout:
                if int(line) >= after:
                    time.sleep(delay)
                    os.kill(child.pid, signal.SIGKILL)
                    break
        with engines.open(url, table="changed") as engine:
            assert engine.n_bits in (64, 72)
            expected = base if engine.n_bits == 64 else np.concatenate([base, base[:, -1:]], axis=1)
            ids, read = (np.concatenate(part) for part in zip(*engine.blocks(), strict=True))
            assert np.array_equal(ids, np.arange(len(base)))
            assert np.array_equal(read, expected)
            hits = engine.search(expected[:3], 10)
            assert_nearest(hits, expected, np.arange(len(base)), expected[:3], engine.n_bits, 10)

    def test_a_process_killed_while_it_changes_bits(self, url):
        base, rng = repeated_codes(2000, 64, distinct=500), np.random.default_rng(0)
        with self.made(url, 64, table="changed") as engine:
            engine.add(base)
        for _ in range(2):
            self.killed_between_bits(url, base, int(rng.integers(2)), 0.1 * rng.random())

    # ------------------------------------------------------------------------------------------ large

    @pytest.mark.slow
    def test_twenty_kills_while_bits_change(self, url):
        base, rng = repeated_codes(20_000, 64, distinct=5000), np.random.default_rng(0)
        with self.made(url, 64, table="changed") as engine:
            engine.add(base)
        for _ in range(20):
            self.killed_between_bits(url, base, int(rng.integers(3)), 0.3 * rng.random())

    @pytest.mark.slow
    def test_twenty_kills_at_random_moments(self, url):
        rng, acknowledged = np.random.default_rng(0), 0
        for _ in range(20):
            after = acknowledged + int(rng.integers(5))
            acknowledged = self.killed(url, after, delay=0.05 * rng.random())
            self.check_after_kill(url, acknowledged)
            with engines.open(url, table="killed") as engine:
                engine.remove([10**9])

    @pytest.mark.slow
    def test_a_million_codes(self, url):
        n, rng = 1_000_000, np.random.default_rng(0)
        base = random_codes(300_000, 64)[rng.integers(300_000, size=n)]
        ids, queries = rng.permutation(n), random_codes(5, 64, seed=1)
        queries[:2] = base[:2]
        expected = HammingIndex(base, ids=ids, n_bits=64).search(queries, 100)
        with self.made(url, 64) as engine:
            for first in range(0, n, 250_000):
                engine.add(base[first : first + 250_000], ids[first : first + 250_000])
            assert engine.count() == n
            hits = engine.search(queries, 100)
        assert hits.exact
        assert np.array_equal(hits.distances, expected.distances)
        assert np.array_equal(hits.ids, expected.ids)
