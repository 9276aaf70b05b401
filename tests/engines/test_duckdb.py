import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from tests.engines.contract import EngineContract, assert_nearest, random_codes

from ilhash import engines

duckdb = pytest.importorskip("duckdb", reason='duckdb is not installed: pip install "ilhash[duckdb]"')

OPENED = """
import sys
from ilhash import engines

try:
    engines.open(sys.argv[1], writable=sys.argv[2] == "w").close()
except OSError as error:
    print(error)
"""


def one_sentence(error):
    return "\n" not in str(error.value)


class TestDuckDb(EngineContract):
    scheme = "duckdb"

    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "place"

    def read(self, url):
        with engines.open(url) as engine:
            return engine.search(random_codes(1, 64), 5), list(engine.blocks())

    def test_another_process_is_told_that_one_has_it(self, url):
        with self.made(url, 8):
            for mode in "wr":
                told = subprocess.run([sys.executable, "-c", OPENED, url, mode], capture_output=True, text=True)
                assert "no other process" in told.stdout, told.stderr
                assert told.stdout.count("\n") == 1
        with engines.open(url, writable=False):  # readers side by side
            read = subprocess.run([sys.executable, "-c", OPENED, url, "r"], capture_output=True, text=True)
            assert (read.stdout, read.returncode) == ("", 0)

    def test_nothing_changes_where_nothing_may(self, url):
        with pytest.raises(FileNotFoundError, match="url must name a file"):
            engines.open(url, n_bits=8, writable=False)
        with self.made(url, 8) as engine:
            engine.add(random_codes(3, 8))
        with engines.open(url, writable=False) as engine:
            for change in (lambda: engine.add(random_codes(1, 8)), lambda: engine.remove([1])):
                with pytest.raises(engines.EngineError, match="read-only") as error:
                    change()
                assert one_sentence(error)
            assert engine.search(random_codes(1, 8), 3, allowed=[0, 2]).ids.shape == (1, 2)
            assert engine.count() == 3

    def test_a_file_of_sqlite_is_opened_by_no_extension(self, url, path):
        """DuckDB would fetch one and run it."""
        sqlite3.connect(path).execute("CREATE TABLE theirs (x)").connection.close()
        with pytest.raises(engines.EngineError, match="must be a file of DuckDB") as error:
            self.made(url, 8)
        assert one_sentence(error)
        assert "://" not in str(error.value)

    def test_conditions_read_no_files(self, url, path):
        path.with_name("secret").write_text("x")
        with self.made(url, 8, columns={"n": "int"}) as engine:
            engine.add(random_codes(3, 8), columns={"n": [1, 2, 3]})
            with pytest.raises(engines.EngineError, match="disabled") as error:
                engine.search(
                    random_codes(1, 8), where=f"n < (SELECT count(*) FROM read_text('{path.with_name('secret')}'))"
                )
            assert one_sentence(error)

    def test_a_column_that_duckdb_has_itself(self, url):
        with pytest.raises(ValueError, match="other than rowid"):
            self.made(url, 8, columns={"RowId": "int"})

    def test_a_file_of_something_else(self, url, path):
        path.write_bytes(b"not a database " * 1000)
        with pytest.raises(engines.EngineError, match="must be a file of DuckDB") as error:
            self.made(url, 8)
        assert one_sentence(error)
        assert path.read_bytes() == b"not a database " * 1000

    @pytest.mark.parametrize("harm", ["cut", "altered"])
    def test_a_damaged_file_is_refused(self, url, path, harm):
        base = random_codes(20_000, 64)
        with self.made(url, 64) as engine:
            engine.add(base)
        whole = path.read_bytes()
        at = len(whole) // 2
        path.write_bytes(whole[:at] if harm == "cut" else whole[:at] + bytes(255 - b for b in whole[at:]))
        with pytest.raises(engines.EngineError) as error:
            self.read(url)
        assert one_sentence(error)

    def test_a_table_that_is_not_ours(self, url, path):
        with duckdb.connect(str(path)) as theirs:
            theirs.execute("CREATE TABLE Ilhash_items (x INTEGER)")
            theirs.execute("CREATE TABLE other_about (key VARCHAR, value VARCHAR)")
        with pytest.raises(ValueError, match="is there and is not ours"):
            self.made(url, 8)
        with pytest.raises(engines.EngineError, match="must hold the settings that ilhash wrote") as error:
            engines.open(url, table="other")
        assert one_sentence(error)
        with pytest.raises(ValueError, match="table must be a name"):
            self.made(url, 8, table="x; DROP TABLE Ilhash_items")
        with duckdb.connect(str(path)) as theirs:
            assert theirs.execute("SELECT count(*) FROM Ilhash_items").fetchall() == [(0,)]

    def test_a_column_of_another_width(self, url, path):
        for n_bits, other, kind in ((16, "BIT", "BIT"), (72, "UBIGINT", "UBIGINT"), (80, "BIT", "BIT of 72 bits")):
            table = f"t{n_bits}"
            with self.made(url, n_bits, table=table) as engine:
                engine.add(random_codes(2, n_bits))
            with duckdb.connect(str(path)) as theirs:
                theirs.execute(f"CREATE OR REPLACE TABLE {table}_codes (code {other})")
                theirs.execute(f"INSERT INTO {table}_codes VALUES ({7 if other == 'UBIGINT' else repr('0' * 72)})")
            with pytest.raises(engines.EngineError, match=f"must have a column code of .*got {kind}") as error:
                engines.open(url, table=table)
            assert one_sentence(error)

    def test_columns_of_others_stay_when_bits_change(self, url, path):
        with self.made(url, 8, columns={"n": "int"}) as engine:
            engine.add(random_codes(3, 8), columns={"n": [1, 2, 3]})
        with duckdb.connect(str(path)) as theirs:
            theirs.execute("ALTER TABLE ilhash_items ADD COLUMN mine DECIMAL(9, 2)")
            theirs.execute("UPDATE ilhash_items SET mine = n / 4")
        with engines.open(url) as engine:
            engine.append_bits(random_codes(3, 80), 80)
            assert engine.search(random_codes(1, 88), 3, where="mine = 0.5").ids.tolist() == [[1]]

    def test_one_statement_at_a_time(self, url):
        base = random_codes(3, 8)
        with self.made(url, 8, columns={"n": "int"}) as engine:
            engine.add(base, columns={"n": [1, 2, 3]})
            with pytest.raises(engines.EngineError, match="one statement") as error:
                engine._rows("SELECT 1; DELETE FROM ilhash_items")
            assert one_sentence(error)
            assert engine.count() == 3
            hits = engine.search(base, 3, where="n >= :least", parameters={"least": np.int64(2)})
            assert_nearest(hits, base[1:], [1, 2], base, 8, 3)

    def test_columns_without_values_and_ids_with_nul(self, url):
        base, ids = random_codes(2500, 80), [f"{n}\0" for n in range(2500)]
        notes = [None] * 2400 + ["late"] * 100  # DuckDB looks at the first rows to tell a type
        with self.made(url, 80, ids="str", columns={"note": "text"}) as engine:
            engine.add(base, ids, {"note": notes})
            hits = engine.search(base[:2], 200, where="note IS NOT NULL")
            assert_nearest(hits, base[2400:], ids[2400:], base[:2], 80, 200)

    def test_declared_types(self, url, path):
        for n_bits, kind, first in (
            (12, "UBIGINT", 0b1010_1010_1111 << 52),
            (72, "BIT", "10101010" + "1111" + "0" * 60),
        ):
            with self.made(url, n_bits, table=f"t{n_bits}") as engine:
                code = np.zeros((1, -(-n_bits // 8)), np.uint8)
                code[0, :2] = 0b1010_1010, 0b1111_0000
                engine.add(code)
            with duckdb.connect(str(path)) as theirs:
                ((value, told),) = theirs.execute(f"SELECT code, typeof(code) FROM t{n_bits}_items").fetchall()
            assert (value, told) == (first, kind)
