import numpy as np
import pytest
from tests.engines.contract import EngineContract, random_codes

from ilhash import engines

apsw = pytest.importorskip("apsw", reason='sqlite is not installed: pip install "ilhash[sqlite]"')


class TestSqlite(EngineContract):
    scheme = "sqlite"

    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "place"

    def refused(self, url, match, error=engines.EngineError, **settings):
        with pytest.raises(error, match=match) as caught:
            engines.open(url, **settings)
        assert "\n" not in str(caught.value)

    def test_a_file_of_something_else(self, url, path):
        path.write_bytes(b"not a database " * 1000)
        self.refused(url, "must be a file of SQLite", n_bits=8)
        assert path.read_bytes() == b"not a database " * 1000

    def test_a_table_that_is_not_ours(self, url, path):
        theirs = apsw.Connection(str(path))
        theirs.execute("CREATE TABLE Ilhash_items (x INTEGER)")
        theirs.execute("INSERT INTO Ilhash_items VALUES (7)")
        theirs.execute("CREATE TABLE other_about (key TEXT, value TEXT)")
        theirs.execute("CREATE TABLE forged_about (key TEXT, value TEXT)")
        theirs.execute("INSERT INTO forged_about VALUES ('ilhash', '{\"format\": 1, \"n_bits\": 8}')")
        self.refused(url, "is there and is not ours", ValueError, n_bits=8)
        self.refused(url, "must be one that ilhash made", ValueError)
        self.refused(url, "must hold the settings that ilhash wrote", table="other")
        self.refused(url, "must have a column code of BLOB for 8 bits, got none", table="forged")
        self.refused(url, "table must be a name", ValueError, n_bits=8, table="x; DROP TABLE Ilhash_items")
        assert list(theirs.execute("SELECT x FROM Ilhash_items")) == [(7,)]
        theirs.close()

    def test_a_column_of_another_width(self, url, path):
        with self.made(url, 16) as engine:
            engine.add(random_codes(5, 16))
            theirs = apsw.Connection(str(path))
            theirs.execute("UPDATE ilhash_items SET code = X'010203'")
            with pytest.raises(engines.EngineError, match="must be BLOBs of 2 bytes, got 1 of 1 others"):
                engine.codes([1])
            with pytest.raises(engines.EngineError) as error:
                engine.search(random_codes(1, 16), 3)
            assert "\n" not in str(error.value)
        self.refused(url, "must have a column code of BLOB for 16 bits, got blob of 3 bytes")
        theirs.close()

    def test_reading_alone_changes_nothing(self, url):
        with self.made(url, 8) as engine:
            engine.add(np.zeros((3, 1), np.uint8))
        with engines.open(url, writable=False) as engine:
            with pytest.raises(engines.EngineError) as error:
                engine.remove([0])
            assert "\n" not in str(error.value)
            assert engine.search(np.zeros((1, 1), np.uint8), 2, allowed=[1, 2]).ids.tolist() == [[1, 2]]
            assert engine.count() == 3
