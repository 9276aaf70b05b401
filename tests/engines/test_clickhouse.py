import json
import subprocess
import sys

import numpy as np
import pytest
from tests.engines.contract import EngineContract, assert_nearest, nearest, random_codes, repeated_codes

from ilhash import engines

pytest.importorskip("chdb", reason='chdb is not installed: pip install "ilhash[clickhouse]"')

try:  # chdb keeps about twenty file descriptors of each folder that a process has had open
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
except ImportError:  # no such limit
    pass

OPENED = """
import sys
from ilhash import engines

try:
    engines.open(sys.argv[1]).close()
except OSError as error:
    print(error)
"""


def one_sentence(error):
    return "\n" not in str(error.value)


class TestClickHouse(EngineContract):
    scheme = "clickhouse"

    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "place"

    def test_another_process_is_told_that_one_has_it(self, url):
        with self.made(url, 8) as engine:
            engine.add(random_codes(3, 8))
            told = subprocess.run([sys.executable, "-c", OPENED, url], capture_output=True, text=True)
            assert "no other process has open" in told.stdout, told.stderr
            assert told.stdout.count("\n") == 1
            assert engine.count() == 3

    def test_a_process_has_one_folder_but_many_tables(self, url):
        base = random_codes(9, 8)
        with self.made(url, 8) as first, self.made(url, 8, table="other") as second:
            first.add(base)
            second.add(base[:4])
            second.remove([0])  # from here on its own reading is of the last rows
            assert (first.count(), second.count()) == (9, 3)
            with pytest.raises(engines.EngineError, match="the one of this process") as error:
                self.made(url + "2", 8)
            assert one_sentence(error)
            assert first.count() == 9
        with self.made(url + "2", 8) as engine:
            assert engine.count() == 0

    def test_any_batch_is_one_part(self, url):
        with self.made(url, 16) as engine:
            engine.add(random_codes(300_000, 16))
            written = "SELECT rows FROM system.parts WHERE table = 'ilhash_items'"
            written += " AND min_block_number = max_block_number ORDER BY rows"  # as inserted, merged since or not
            assert engine._rows(written) == [(300_000,)]
            engine.update(random_codes(200_000, 16, seed=1), np.arange(200_000))
            engine.remove(np.arange(150_000))
            assert engine._rows(written) == [(150_000,), (200_000,), (300_000,)]
            assert engine.count() == 150_000

    def test_codes_wider_than_its_usual_texts(self, url):
        base = random_codes(20, 2100)
        with self.made(url, 2100) as engine:
            engine.add(base)
            assert_nearest(engine.search(base[:2], 5), base, range(20), base[:2], 2100, 5)

    def test_removed_ids_come_back_and_stay(self, url):
        base = random_codes(4, 8)
        with self.made(url, 8) as engine:
            engine.add(base)
            for _ in range(3):
                engine.remove([1, 2])
                engine.add(base[1:3], [1, 2])
        with engines.open(url) as engine:
            assert_nearest(engine.search(base, 4), base, range(4), base, 8, 4)
            engine._rows("OPTIMIZE TABLE ilhash_items FINAL")
            assert_nearest(engine.search(base, 4), base, range(4), base, 8, 4)

    def test_places_that_it_cannot_have(self, url, path):
        with pytest.raises(ValueError, match="distributed_sql") as error:
            engines.open("clickhouse://me:secret@host:9000/items", n_bits=8)
        assert one_sentence(error)
        assert "secret" not in str(error.value)
        path.write_text("a file")
        with pytest.raises(engines.EngineError, match="got a file"):
            self.made(url, 8)
        path.unlink()
        path.mkdir()
        (path / "notes.txt").write_text("mine")
        with pytest.raises(engines.EngineError, match="got one of something else"):
            self.made(url, 8)
        assert [part.name for part in path.iterdir()] == ["notes.txt"]

    def test_a_table_that_is_not_ours(self, url):
        with self.made(url, 8, table="mine") as engine:
            engine._rows("CREATE TABLE ilhash_items (id Int64) ENGINE = MergeTree ORDER BY id")
            with pytest.raises(engines.EngineError, match="settings that ilhash wrote") as error:
                self.made(url, 8)
            assert one_sentence(error)
            with pytest.raises(ValueError, match="columns must have names"):
                self.made(url, 8, table="t", columns={"ilhash_version": "int"})

    def test_a_column_of_another_width(self, url):
        with self.made(url, 16) as engine:
            engine._rows("ALTER TABLE ilhash_items MODIFY COLUMN code FixedString(3)")
        with pytest.raises(
            engines.EngineError, match=r"column code of FixedString\(2\) for 16 bits, got Fixed"
        ) as error:
            engines.open(url)
        assert one_sentence(error)

    def test_a_change_of_bits_that_was_killed_is_finished(self, url):
        base = random_codes(20, 16)
        with self.made(url, 16) as engine:
            engine.add(base)
            engine._rows("RENAME TABLE ilhash_items TO ilhash_items_ilhash_old")
            with self.made(url, 8, table="other") as other:  # a table that was complete, by hand
                other.add(base[:, :1])
                told = other._comment("other_items")
            engine._rows("RENAME TABLE other_items TO ilhash_items_ilhash_new")
            assert '"n_bits": 8' in told
        with engines.open(url) as engine:
            assert engine.n_bits == 8
            assert np.array_equal(engine.codes(np.arange(20)), base[:, :1])
            assert not engine._exists("ilhash_items_ilhash_old")
            engine._rows("RENAME TABLE ilhash_items TO ilhash_items_ilhash_old")  # before there was a new one
        with engines.open(url) as engine:
            assert engine.count() == 20

    def test_columns_of_others_stay_when_bits_change(self, url):
        with self.made(url, 8, columns={"n": "int"}) as engine:
            engine.add(random_codes(3, 8), columns={"n": [1, 2, 3]})
            engine._rows("ALTER TABLE ilhash_items ADD COLUMN mine Decimal(9, 2) DEFAULT n / 4")
            engine.update(random_codes(1, 8), [0])
            engine.append_bits(random_codes(3, 80), 80)
            assert engine.search(random_codes(1, 88), 3, where="mine = 0.5").ids.tolist() == [[1]]
            assert engine.count() == 3

    def test_altered_bytes_are_noticed(self, url, path):
        with self.made(url, 64) as engine:
            engine.add(random_codes(50_000, 64))
        (data,) = (p for p in path.rglob("data.bin") if p.stat().st_size > 100_000)
        content = bytearray(data.read_bytes())
        content[len(content) // 2] ^= 1
        data.write_bytes(content)
        with engines.open(url) as engine, pytest.raises(engines.EngineError) as error:
            engine.search(random_codes(1, 64), 5)
        assert one_sentence(error)

    def test_texts_with_signs_of_the_engine(self, url):
        base = random_codes(3, 8)
        notes = ["a\\n'b\n\t", None, "c"]
        with self.made(url, 8, columns={"note": "text"}) as engine:
            engine.add(base, columns={"note": notes})
            found = engine.search(base, 3, where="note = :note", parameters={"note": notes[0]})
            assert found.ids.tolist() == [[0]] * 3
            with pytest.raises(ValueError, match="parameters must be numbers"):
                engine.search(base, 3, where="note = :note", parameters={"note": [1]})
            assert engine.count() == 3
        with engines.open(url, writable=False) as engine, pytest.raises(engines.EngineError, match="writable=True"):
            engine.remove([0])

    def test_statements_for_a_cluster(self, url):
        told = engines.clickhouse.distributed_sql("shards", "spread", 12, ids="str", columns={"price": "float"})
        base = repeated_codes(200, 12)
        ids = [f"it's {n}" for n in range(200)]
        with self.made(url, 12, ids="str", columns={"price": "float"}) as engine:
            engine.add(base, ids, {"price": np.arange(200.0)})
            for name in ("local", "distributed"):
                assert any(
                    "Distributed" in row[0] or "Replacing" in row[0]
                    for row in engine._rows(f"EXPLAIN AST {told[name]}")
                )
            engine._rows(told["local"].replace(" ON CLUSTER shards", ""))
            insert = told["insert"].replace("INTO spread", "INTO spread_local")
            engine._rows(f"{insert} SELECT id, code, price, 1, 0 FROM ilhash_items")
            engine._rows(f"{insert} SELECT id, code, price, 2, 1 FROM ilhash_items WHERE price >= 150")
            shards = "remote('127.0.0.1,127.0.0.1', currentDatabase(), spread_local)"  # the same items on both
            rows = []
            for source in ("spread_local", shards):
                query = told["nearest"].replace("FROM spread ", f"FROM {source} ")
                values = {"query": base[0].tobytes().hex(), "k": 5}
                lines = engine._session.query(query, "JSONCompactEachRow", params=values).bytes().splitlines()
                rows.append([tuple(json.loads(line)) for line in lines])
        (expected,), (far,) = nearest(base[:150], ids[:150], base[:1], 12, 150)
        ties = sum(d <= far[4] for d in far)
        one = list(zip(expected[:ties], far[:ties], strict=True))
        assert ties > 10
        assert rows == [one, [row for row in one for _ in range(2)]]
        for wrong in ({"cluster": "a b"}, {"table": "x; DROP"}, {"columns": {"id": "int"}}):
            with pytest.raises(ValueError, match="must"):
                engines.clickhouse.distributed_sql(**{"cluster": "c", "table": "t", "n_bits": 8, **wrong})
