import math
import subprocess
import sys

import numpy as np
import pytest
from tests.engines.contract import EngineContract, assert_nearest, random_codes, repeated_codes

from ilhash import HammingIndex, engines


class TestLance(EngineContract):
    scheme = "lance"

    # ------------------------------------------------------------------------------------------ approximate modes

    @pytest.mark.parametrize("mode", ["ivf", "hnsw"])
    def test_approximate_modes(self, url, mode):
        rng = np.random.default_rng(0)
        middles = random_codes(40, 64)[rng.integers(40, size=3000)]
        near = middles ^ random_codes(3000, 64, seed=1) & random_codes(3000, 64, seed=2) & random_codes(3000, 64, 3)
        base = near[np.minimum(rng.geometric(0.002, size=12_000), 3000) - 1]  # few codes with many items each
        queries = base[rng.integers(12_000, size=30)] ^ (random_codes(30, 64, 4) & random_codes(30, 64, 5) & 17)
        expected = HammingIndex(base, n_bits=64).search(queries, 10).distances
        with self.made(url, 64) as engine:
            engine.add(base)
        with engines.open(url, mode=mode) as engine:
            kinds = [index.index_type for index in engine._distinct.list_indices()]
            assert {"ivf": "IvfFlat", "hnsw": "IvfHnswFlat"}[mode] in kinds
            hits = engine.search(queries, 10)
            assert not hits.exact
            assert engine.describe()["exact"] is False
            assert engine.within(queries[:1], 20).exact
            assert engine.search(queries[:1], 3, allowed=[1, 2, 3]).exact
            far = hits.distances[:, -1:]
            assert (expected <= far).sum() / expected.size > 0.95  # by distance: as near as the exact ones
            recall = (hits.distances <= expected[:, -1:]).mean()
            assert recall > 0.95
            for ids, distances in zip(hits.ids.tolist(), hits.distances.tolist(), strict=True):
                assert list(zip(distances, ids, strict=True)) == sorted(zip(distances, ids, strict=True))
            engine.add(queries[:1], [10**6])  # is found before the index knows it
            assert engine.search(queries[:1], 1).distances.tolist() == [[0]]
        with engines.open(url, mode=mode, writable=False) as engine:
            assert engine.search(queries, 5).ids.shape == (30, 5)
        with engines.open(url) as engine:  # the index does not make exact searches approximate
            assert np.array_equal(engine.search(queries[1:], 10).distances, expected[1:])

    @pytest.mark.parametrize("mode", ["ivf", "hnsw"])
    def test_few_codes_need_no_index_and_nothing_is_padded(self, url, mode):
        base = repeated_codes(50, 16)
        with self.made(url, 16, mode=mode) as engine:
            engine.add(base)
            hits = engine.search(base[:3], 100)
            assert not hits.exact
            assert hits.ids.shape == (3, 50)
            engine.remove(np.arange(45))
            assert engine.search(base[:3], 100).ids.shape == (3, 5)

    # ------------------------------------------------------------------------------------------ traps of Lance

    def test_indexes_follow_changes(self, url):
        """A scalar index finds the items of a code; updates and removals after it was made must not fool it."""
        base = repeated_codes(400, 24)
        with self.made(url, 24, columns={"n": "int"}) as engine:
            engine.add(base, columns={"n": np.arange(400)})
            for table in (engine._items, engine._distinct):
                table.optimize()
            base[::5] = random_codes(80, 24, seed=3)
            engine.update(base[::5], np.arange(0, 400, 5))
            engine.remove(np.arange(1, 400, 5))
            stay = np.setdiff1d(np.arange(400), np.arange(1, 400, 5))
            queries = np.concatenate([base[:10], random_codes(5, 24, seed=4)])
            assert_nearest(engine.search(queries, 60), base[stay], stay, queries, 24, 60)
            engine._items.optimize()
            assert_nearest(engine.search(queries, 60), base[stay], stay, queries, 24, 60)
            assert engine.search(queries, 3, where="n = 7 OR n = 10").ids[0].tolist() in ([7, 10], [10, 7])

    def test_many_small_changes_are_put_together(self, url):
        base = random_codes(80, 16)
        with self.made(url, 16) as engine:
            for row in range(80):
                engine.add(base[row : row + 1])
            assert engine._items.stats()["fragment_stats"]["num_fragments"] < 60
            assert_nearest(engine.search(base[:5], 30), base, range(80), base[:5], 16, 30)

    def test_codes_without_items_go_and_do_not_hide_others(self, url):
        base = random_codes(2500, 32)
        with self.made(url, 32) as engine:
            engine.add(base)
            engine.remove(np.arange(1, 1600))  # nearer codes than those that stay, and none of them has an item
            stay = np.setdiff1d(np.arange(2500), np.arange(1, 1600))
            assert engine.describe()["distinct codes"] == 2500
            assert_nearest(engine.search(base[1:4], 20), base[stay], stay, base[1:4], 32, 20)
            engine.remove(stay[:800])
            assert engine.describe()["distinct codes"] == engine.count() == 101
            stay = stay[800:]
            assert_nearest(engine.search(base[1:4], 101), base[stay], stay, base[1:4], 32, 101)

    def test_more_ids_than_a_condition_names(self, url):
        base = repeated_codes(3000, 16)
        names = [f"it's {row:05}" for row in range(3000)]
        with self.made(url, 16, ids="str", columns={"n": "int"}) as engine:
            engine.add(base, names, columns={"n": np.arange(3000)})
            assert np.array_equal(engine.codes(names), base)
            with pytest.raises(ValueError, match="ids must be new, got 2999 of 3000"):
                engine.add(base, ["other", *names[1:]], columns={"n": np.arange(3000)})
            hits = engine.search(base[:2], 30, allowed=names[:2000], where="n >= :n", parameters={"n": 500})
            assert_nearest(hits, base[500:2000], names[500:2000], base[:2], 16, 30)
            engine.update(base[::-1], names)
            engine.remove(names[:2000])
            assert np.array_equal(engine.codes(names[2000:]), base[::-1][2000:])

    def test_a_folder_without_codes_makes_them_again(self, url):
        base = repeated_codes(300, 16)
        with self.made(url, 16) as engine:
            engine.add(base)
            engine._connection.drop_table("ilhash_codes")
        with pytest.raises(engines.EngineError, match="writable=True"):
            engines.open(url, writable=False)
        with engines.open(url) as engine:
            assert_nearest(engine.search(base[:3], 40), base, range(300), base[:3], 16, 40)

    def test_codes_of_a_place_that_was_never_made_are_no_obstacle(self, url):
        with self.made(url, 16) as engine:
            engine._connection.drop_table("ilhash_items")
        with self.made(url, 16) as engine:
            assert engine.count() == 0

    def test_codes_that_are_half_there_are_no_obstacle(self, url, tmp_path):
        base = random_codes(20, 16)
        with self.made(url, 16) as engine:
            engine.add(base)
        half = tmp_path / "place" / "ilhash_codes_3.lance" / "data"
        half.mkdir(parents=True)
        (half / "part.lance").write_bytes(b"killed")
        with engines.open(url) as engine:
            assert_nearest(engine.search(base[:2], 9), base, range(20), base[:2], 16, 9)
        assert not half.exists()

    def test_readers_see_what_writers_did(self, url):
        base = random_codes(20, 16)
        with self.made(url, 16) as writer, engines.open(url, writable=False) as reader:
            writer.add(base)
            assert_nearest(reader.search(base[:2], 9), base, range(20), base[:2], 16, 9)
            blocks = reader.blocks(5)
            next(blocks)
            writer.remove(np.arange(20))
            assert [len(ids) for ids, _ in blocks] == [5, 5, 5]  # all of one version
            for change in (lambda: reader.add(base), lambda: reader.remove([1]), lambda: reader.update(base[:1], [1])):
                with pytest.raises(engines.EngineError, match="writable=True"):
                    change()

    # ------------------------------------------------------------------------------------------ literals

    @pytest.mark.parametrize("value", [None, b"x", math.nan, math.inf, 2**63, [1], b"1; x", 1j, object])
    def test_values_that_are_no_literals(self, url, value):
        with self.made(url, 8, columns={"price": "float"}) as engine:
            engine.add(random_codes(1, 8), columns={"price": [1.0]})
            with pytest.raises(
                ValueError, match="parameters must be finite numbers of 64 bits, texts or bools"
            ) as error:
                engine.search(random_codes(1, 8), 1, where="price = :x", parameters={"x": value})
            assert "\n" not in str(error.value)

    def test_values_of_all_kinds(self, url):
        kinds = {"text": "text", "whole": "int", "real": "float", "true": "bool"}
        texts = ["", "'", "''", "\\", "\\'", "a\nb", "--", ";", ":x", '"', "`", "%", "日本", "\0", "' OR TRUE --", None]
        n = len(texts)
        columns = {
            "text": texts,
            "whole": np.arange(n) + np.iinfo(np.int64).min,
            "real": 10.0 ** (np.arange(n) - 8),
            "true": [True] * n,
        }
        with self.made(url, 8, columns=kinds) as engine:
            engine.add(np.zeros((n, 1), np.uint8), columns=columns)
            for row in range(n):
                for name in ("text", "whole", "real"):
                    value = columns[name][row]
                    if value is not None:
                        where = f'"{name}" = :x AND "true" = :t'
                        hits = engine.search(
                            np.zeros((1, 1), np.uint8), n, where=where, parameters={"x": value, "t": True}
                        )
                        assert hits.ids.tolist() == [[row]], (name, value)

    @pytest.mark.parametrize(
        "where",
        [
            "TRUE; DROP TABLE x",
            "TRUE --",
            "TRUE) OR (TRUE",
            "TRUE) -- ",
            "TRUE /* */",
            "'",
            "x = '1''",
            "TRUE nonsense",
            "x IN ('a'",
        ],
    )
    def test_conditions_cannot_end_before_their_end(self, url, where):
        with self.made(url, 8, columns={"x": "text"}) as engine:
            engine.add(random_codes(3, 8), columns={"x": ["a", "b", "c"]})
            for allowed in ([1], None):
                with pytest.raises((ValueError, engines.EngineError), match="where must be") as error:
                    engine.search(random_codes(1, 8), 3, where=where, allowed=allowed)
                assert "\n" not in str(error.value)
            assert engine.count() == 3

    @pytest.mark.parametrize("names", [["code"], ["KEY"], ["_rowid"], ["a b"], ['x" y'], ["price", "Price"]])
    def test_names_of_columns(self, url, names):
        with pytest.raises(ValueError, match="columns must have names"):
            self.made(url, 8, columns=dict.fromkeys(names, "int"))

    # ------------------------------------------------------------------------------------------ what is not ours

    def refused(self, url, *, error=engines.EngineError, match=".", **settings):
        def use():
            with engines.open(url, **settings) as engine:
                for ids, _ in engine.blocks():
                    engine.search(random_codes(1, engine.n_bits), len(ids))

        with pytest.raises(error, match=match) as caught:
            use()
        said = str(caught.value)
        assert "\n" not in said
        assert ".rs:" not in said

    def test_a_file_is_no_folder(self, url, tmp_path):
        (tmp_path / "place").write_text("something else")
        self.refused(url, n_bits=8, match="must name a folder of LanceDB")
        assert (tmp_path / "place").read_text() == "something else"

    def test_a_folder_of_something_else(self, url, tmp_path):
        (tmp_path / "place").mkdir()
        (tmp_path / "place" / "notes.txt").write_text("mine")
        self.refused(url, n_bits=8, match="must be a folder of LanceDB or an empty one")
        assert [path.name for path in (tmp_path / "place").iterdir()] == ["notes.txt"]

    def test_tables_of_others(self, url, tmp_path):
        import lancedb

        folder = lancedb.connect(str(tmp_path / "place"))
        folder.create_table("ilhash_items", [{"id": 1, "code": [1, 2]}])
        folder.create_table("other_codes", [{"mine": 1}])
        self.refused(url, match="ilhash_items must be a table that ilhash wrote")
        self.refused(url, n_bits=8, match="ilhash_items must be a table that ilhash wrote")
        self.refused(url, n_bits=8, table="other", match="columns must be")
        self.refused(url, table="nowhere", error=ValueError, match="table must be one that ilhash made")
        self.refused(url, n_bits=8, table="x; y", error=ValueError, match="table must be a name")
        assert folder.open_table("ilhash_items").count_rows() == folder.open_table("other_codes").count_rows() == 1

    def test_a_column_of_another_width(self, url):
        with self.made(url, 16) as engine:
            engine.add(random_codes(5, 16))
            schema = engine._schema()
            rows = engine._items.search().to_arrow()
            other = rows.drop_columns("code").append_column("code", [[[1, 2, 3]] * 5])
            engine._connection.create_table("ilhash_items", other, mode="overwrite")
            self.refused(url, match="ilhash_items must be a table that ilhash wrote")
            other = other.replace_schema_metadata(schema.metadata)
            engine._connection.create_table("ilhash_items", other, mode="overwrite")
            self.refused(url, match="columns must be id int64, code")

    @pytest.mark.parametrize("harm", ["cut", "emptied", "gone"])
    @pytest.mark.parametrize("kind", ["data/*.lance", "_versions/*.manifest"])
    def test_damaged_files(self, url, tmp_path, kind, harm):
        with self.made(url, 64) as engine:
            engine.add(random_codes(500, 64))
        for path in (tmp_path / "place" / "ilhash_items.lance").glob(kind):
            content = path.read_bytes()
            if harm == "gone":
                path.unlink()
            else:
                path.write_bytes(content[: len(content) // 2 if harm == "cut" else 0])
        self.refused(url, match="must be")

    def test_processes_that_wait_for_each_other(self, url):
        """Writers in other processes, which share nothing but the folder."""
        with self.made(url, 8):
            pass
        script = """
            import sys
            import numpy as np
            from ilhash import engines
            with engines.open(sys.argv[1]) as engine:
                for row in range(15):
                    engine.add(np.zeros((1, 1), np.uint8), [2 * row + int(sys.argv[2])])
        """
        command = [sys.executable, "-c", "if True:" + script, url]
        children = [subprocess.Popen([*command, str(part)]) for part in range(2)]
        assert [child.wait() for child in children] == [0, 0]
        with engines.open(url) as engine:
            assert np.concatenate([ids for ids, _ in engine.blocks()]).tolist() == list(range(30))
