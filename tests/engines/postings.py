"""What libraries with an index file and no items must keep beyond the contract."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.engines.contract import EngineContract, distances_between, random_codes, repeated_codes

from ilhash import codes, engines
from ilhash.engines import _pair
from ilhash.engines._places import path_of


def learned_like(n, n_bits=64, seed=0, distinct=400):
    """Ten groups of codes, few bits apart, each code many times."""
    rng = np.random.default_rng(seed)
    centres = rng.random((10, n_bits)) < 0.5
    bits = centres[rng.integers(10, size=distinct)] ^ (rng.random((distinct, n_bits)) < 0.05)
    return codes.pack(bits)[rng.integers(distinct, size=n)]


class PostingsContract(EngineContract):
    def made_with(self, url, base, n_bits, **settings):
        with self.made(url, n_bits, **settings) as engine:
            engine.add(base)
        return path_of(url)

    # ------------------------------------------------------------------------------------------ approximate modes

    def test_approximate_modes_find_repeated_codes(self, url):
        base = learned_like(20_000)
        queries = learned_like(40, seed=0)
        expected = np.sort(distances_between(queries, base, 64), axis=1)[:, :10]
        for mode in self.approximate:
            with self.made(f"{url}-{mode}", 64, mode=mode) as engine:
                engine.add(base[:5_000])
                engine.add(base[5_000:])
                hits = engine.search(queries, 10)
                assert not hits.exact
                assert engine.describe()["exact"] is False
                assert hits.ids.shape == (40, 10)
                assert (hits.distances[:, -1:] >= expected).mean() > 0.95
                assert (hits.distances <= expected).mean() > 0.95
                true = distances_between(queries, base, 64)
                assert np.array_equal(np.take_along_axis(true, hits.ids, 1), hits.distances)
                order = [sorted(zip(d, i, strict=True)) for d, i in zip(hits.distances, hits.ids, strict=True)]
                assert [[i for _, i in row] for row in order] == hits.ids.tolist()
                allowed = engine.search(queries, 10, allowed=np.arange(0, 20_000, 3))
                assert allowed.exact
                assert engine.within(queries[:1], 64).exact
                many = engine.search(queries[:2], 20_000)
                assert len({tuple(row) for row in many.ids.tolist()}) == 2
                assert all(len(set(row)) == len(row) for row in many.ids.tolist())

    def test_approximate_modes_outlive_removals_and_reopening(self, url):
        for mode in self.approximate:
            place = f"{url}-{mode}"
            base = random_codes(1_000, 64)
            with self.made(place, 64, mode=mode) as engine:
                engine.add(base)
                engine.remove(np.arange(0, 1_000, 6))  # codes stay in the graph, without items
                engine.update(base[:1], [1])  # the code of an item that is gone comes back
                assert engine.search(base[:1], 1).ids.tolist() == [[1]]
            with engines.open(place, mode=mode, writable=False) as engine:
                assert engine.count() == 1_000 - 167
                assert engine.search(base[2:3], 3).ids[0, 0] == 2
                assert engine.search(base[6:7], 500).ids.shape[1] <= 500
            with engines.open(place) as engine:
                assert engine.search(base[2:3], 3).exact
                assert engine.describe()["index"] == mode
                engine.remove(np.setdiff1d(np.arange(1_000), np.arange(0, 1_000, 6))[20:])
                assert engine.count() == 20
                assert engine.describe()["index"] == mode  # exact searches leave the graph as it was
            with engines.open(place, mode=mode) as engine:
                assert engine.search(base[:1], 100).ids.shape[1] <= 20

    def test_a_mode_can_be_asked_for_later(self, url):
        path = self.made_with(url, learned_like(500), 64)
        before = path.read_bytes()
        for mode in self.approximate:
            with engines.open(url, mode=mode, writable=False) as engine:
                assert not engine.search(learned_like(2), 5).exact
            assert path.read_bytes() == before
        for mode in self.approximate:
            with engines.open(url, mode=mode):
                pass
            with engines.open(url, writable=False) as engine:
                assert engine.describe()["index"] == mode
                assert engine.count() == 500

    def test_an_empty_place_of_any_mode(self, url):
        for mode in self.approximate:
            with self.made(f"{url}-{mode}", 16, mode=mode) as engine:
                assert engine.search(random_codes(2, 16), 3).ids.shape == (2, 0)
            with engines.open(f"{url}-{mode}", mode=mode) as engine:
                engine.add(random_codes(3, 16))
                assert engine.search(random_codes(2, 16), 3).ids.shape[1] <= 3

    # ------------------------------------------------------------------------------------------ files

    def test_altered_files_are_refused(self, url):
        path = self.made_with(url, repeated_codes(50, 16), 16)
        (items,) = [file for file in Path(f"{path}.items").iterdir() if file.name != "lock"]
        for file in (path, items):
            whole = file.read_bytes()
            flipped = bytearray(whole)
            flipped[-3] ^= 4
            for content in (bytes(flipped), whole[:-1], whole[: len(whole) // 2], b"", whole + b"x", b"something"):
                file.write_bytes(content)
                with pytest.raises(ValueError, match=r"must be") as error:
                    engines.open(url)
                assert "\n" not in str(error.value)
            file.write_bytes(whole)
        with engines.open(url) as engine:
            assert engine.count() == 50

    def test_files_that_are_not_ours(self, url, tmp_path):
        path = path_of(url)
        path.write_bytes(b"something else")
        with pytest.raises(ValueError, match="must be an index that ilhash wrote"):
            engines.open(url, n_bits=8)
        assert path.read_bytes() == b"something else"
        assert not Path(f"{path}.items").exists()
        path.unlink()
        path.mkdir()
        with pytest.raises(ValueError, match="must be a regular file"):
            engines.open(url, n_bits=8)
        path.rmdir()
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ValueError, match="symbolic link"):
            engines.open(url, n_bits=8)

    def test_items_of_another_index_are_refused(self, url):
        path = self.made_with(url, random_codes(20, 16), 16)
        other = self.made_with(f"{url}-other", random_codes(20, 16, seed=1), 16)
        shutil.copy(other, path)
        with pytest.raises(ValueError, match="altered, truncated or replaced"):
            engines.open(url)
        (items,) = [file for file in Path(f"{path}.items").iterdir() if file.name != "lock"]
        (right,) = [file.name for file in Path(f"{other}.items").iterdir() if file.name != "lock"]
        items.rename(items.with_name(right))
        with pytest.raises(ValueError, match="another place"):
            engines.open(url)

    def test_items_without_their_index_are_not_overwritten(self, url):
        path = self.made_with(url, random_codes(20, 16), 16)
        index = path.read_bytes()
        path.unlink()
        with pytest.raises(engines.EngineError, match="for the 20 items"):
            engines.open(url, n_bits=16)
        path.write_bytes(index)
        with engines.open(url) as engine:
            assert engine.count() == 20

    @pytest.mark.parametrize("moment", ["items", "index", "sweep"])
    def test_a_change_that_fails_leaves_one_of_two_pairs(self, url, monkeypatch, moment):
        base = random_codes(30, 64)
        with self.made(url, 64) as engine:
            engine.add(base[:10])

            def fail(*_, **__):
                raise OSError("no room")

            with monkeypatch.context() as patch:
                if moment == "items":
                    patch.setattr(_pair.SealedArrays, "write", fail)
                elif moment == "index":
                    patch.setattr(_pair, "stage", fail)
                else:
                    patch.setattr(_pair.Pair, "sweep", fail)
                with pytest.raises(OSError, match="no room"):
                    engine.add(base[10:20])
            done = 20 if moment == "sweep" else 10
            with engines.open(url, writable=False) as reader:
                assert reader.count() == done
            engine.add(base[20:], np.arange(20, 30))
            assert engine.count() == done + 10
            assert sorted(np.concatenate([ids for ids, _ in engine.blocks()])) == [*range(done), *range(20, 30)]
        assert len(os.listdir(f"{path_of(url)}.items")) == 2

    def test_readers_beside_the_writer(self, url):
        base = random_codes(30, 16)
        with self.made(url, 16) as writer:
            writer.add(base[:10])
            with engines.open(url, writable=False) as reader:
                writer.add(base[10:])
                assert reader.count() == 10  # as it was when it was opened
                with pytest.raises(engines.EngineError, match="read only"):
                    reader.add(base[:1], [99])
            with engines.open(url, writable=False) as reader:
                assert reader.count() == 30
        with pytest.raises(engines.EngineError, match="closed"):
            writer.add(base[:1], [99])

    def test_items_of_known_codes_leave_the_index_as_it_is(self, url):
        path = self.made_with(url, repeated_codes(50, 16), 16)
        before = path.read_bytes()
        with engines.open(url) as engine:
            engine.add(repeated_codes(50, 16), np.arange(100, 150))
        assert path.read_bytes() == before
        with engines.open(url) as engine:
            assert engine.count() == 100
