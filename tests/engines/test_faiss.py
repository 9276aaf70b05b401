import contextlib

import numpy as np
import pytest
from tests.engines.contract import random_codes, repeated_codes
from tests.engines.postings import PostingsContract

from ilhash import engines
from ilhash.engines.faiss import export_index, import_index

faiss = pytest.importorskip("faiss", reason='faiss is not installed: pip install "ilhash[faiss]"')


class TestFaiss(PostingsContract):
    scheme = "faiss"
    approximate = ("ivf", "hnsw")


def file_of(index, path):
    faiss.write_index_binary(index, str(path))
    return path


def indexes(base, ids):
    """One of every kind that can be imported, with the ids that it has."""
    n_bits, rows = 8 * base.shape[1], np.arange(len(base))
    flat, hnsw = faiss.IndexBinaryFlat(n_bits), faiss.IndexBinaryHNSW(n_bits, 8)
    for index in (flat, hnsw):
        index.add(base)
        yield index, rows
    for nlist in (3, 100):  # lists that are full, and sparse ones
        ivf = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(n_bits), n_bits, nlist)
        ivf.cp.min_points_per_centroid = 1
        ivf.train(base if nlist == 3 else random_codes(100, n_bits, seed=7))
        ivf.add_with_ids(base, ids)
        yield ivf, ids
    for kind in (faiss.IndexBinaryIDMap, faiss.IndexBinaryIDMap2):
        mapped = kind(faiss.IndexBinaryFlat(n_bits))
        mapped.add_with_ids(base, ids)
        yield mapped, ids
    yield faiss.IndexBinaryFlat(n_bits), rows[:0]


def test_indexes_of_others_are_imported(tmp_path):
    base, ids = random_codes(200, 48), np.random.default_rng(0).permutation(10_000)[:200] - 5_000
    for index, expected in indexes(base, ids):
        codes, names, n_bits = import_index(file_of(index, tmp_path / "index"))
        order = np.argsort(expected)
        assert n_bits == 48
        assert names.tolist() == expected[order].tolist()
        assert np.array_equal(codes, base[: len(expected)][order])


def test_hostile_files_crash_nothing(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "index"
    for index, _ in indexes(random_codes(60, 16), np.arange(60) * 3):
        whole = file_of(index, path).read_bytes()
        for cut in rng.integers(len(whole), size=20):
            path.write_bytes(whole[:cut])
            with pytest.raises(ValueError, match="must be a faiss index of codes") as error:
                import_index(path)
            assert "\n" not in str(error.value)
        for _ in range(60):
            flipped = bytearray(whole)
            flipped[rng.integers(len(whole)) if rng.random() < 0.5 else rng.integers(80) % len(whole)] = rng.integers(
                256
            )
            path.write_bytes(flipped)
            with contextlib.suppress(ValueError):  # refused; what is not must hold together
                codes, names, n_bits = import_index(path)
                assert codes.shape == (len(names), n_bits // 8)


def test_other_kinds_are_refused_by_name(tmp_path):
    index = faiss.IndexBinaryHash(16, 4)
    index.add(random_codes(10, 16))
    with pytest.raises(ValueError, match="got one of kind b'IBHh'"):
        import_index(file_of(index, tmp_path / "index"))
    faiss.write_index(faiss.IndexFlatL2(4), str(tmp_path / "floats"))
    with pytest.raises(ValueError, match="got one of kind"):
        import_index(tmp_path / "floats")
    with pytest.raises(FileNotFoundError):
        import_index(tmp_path / "nothing")


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
@pytest.mark.parametrize("scheme", ["faiss", "folder"])
def test_what_is_exported_plain_faiss_opens(tmp_path, kind, scheme):
    base, ids = repeated_codes(300, 20, distinct=200), np.random.default_rng(0).permutation(1_000)[:300]
    with engines.open(f"{scheme}:///{tmp_path}/place", n_bits=20) as engine:
        engine.add(base, ids)
        export_index(engine, tmp_path / "exported", kind)
        expected = engine.search(base[:3], 5)
    index = faiss.read_index_binary(str(tmp_path / "exported"))
    assert index.ntotal == 300
    if kind != "ivf":  # which keeps no way from an id to its list
        assert np.array_equal(index.reconstruct(int(ids[7])), base[7])
    distances, _ = index.search(base[:3], 5)
    if kind == "flat":
        assert np.array_equal(distances, expected.distances)
    codes, names, n_bits = import_index(tmp_path / "exported")
    assert n_bits == 24
    assert names.tolist() == sorted(ids.tolist())
    assert np.array_equal(codes, base[np.argsort(ids)])


def test_what_cannot_be_exported(tmp_path):
    with engines.open(f"faiss:///{tmp_path}/place", n_bits=8) as engine:
        export_index(engine, tmp_path / "exported")
        assert faiss.read_index_binary(str(tmp_path / "exported")).ntotal == 0
        with pytest.raises(ValueError, match="kind must be one of"):
            export_index(engine, tmp_path / "exported", "tree")
        engine.add(random_codes(1, 8), [-1])
        with pytest.raises(ValueError, match="ids other than -1"):
            export_index(engine, tmp_path / "exported")
    texts = engines.open(f"faiss:///{tmp_path}/texts", n_bits=8, ids="str")
    with texts as engine, pytest.raises(ValueError, match="numbers as ids"):
        export_index(engine, tmp_path / "exported")


def test_the_file_is_one_that_plain_faiss_opens(tmp_path):
    base = repeated_codes(100, 16)
    for mode in ("exact", "ivf", "hnsw"):
        with engines.open(f"faiss:///{tmp_path}/{mode}", n_bits=16, mode=mode) as engine:
            engine.add(base)
        index = faiss.read_index_binary(str(tmp_path / mode))
        assert index.ntotal == len(np.unique(base, axis=0))
