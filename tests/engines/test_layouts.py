"""Bytes of other tools: what they themselves write of known numbers becomes our codes, bit by bit, and goes back."""

import numpy as np
import pytest
from tests.engines.contract import random_codes

from ilhash import codes, engines

N_BITS = 72
NUMBERS = np.random.default_rng(8).standard_normal((50, N_BITS)).astype(np.float32)
OURS = codes.pack(NUMBERS > 0)
FAR = ((NUMBERS[:, None] > 0) != (NUMBERS[None] > 0)).sum(axis=2)  # the distances that every tool must measure


@pytest.mark.parametrize("layout", codes.layouts())
@pytest.mark.parametrize("n_bits", [1, 7, 8, 100, 256])
def test_there_and_back(layout, n_bits):
    base = random_codes(20, n_bits)
    there = codes.to_layout(base, n_bits, layout)
    np.testing.assert_array_equal(codes.from_layout(there, n_bits, layout), base)


def test_a_layout_of_another_type_is_refused():
    signed = codes.to_layout(OURS, N_BITS, "sentence-transformers:binary")
    for layout in ("sentence-transformers:ubinary", "faiss:lsh", "lancedb"):
        with pytest.raises(ValueError, match="must be a 2-D uint8 array"):
            codes.from_layout(signed, N_BITS, layout)
    with pytest.raises(ValueError, match="must be a 2-D int8 array"):
        codes.from_layout(OURS, N_BITS, "sentence-transformers:binary")
    with pytest.raises(ValueError, match="layout must be one of"):
        codes.from_layout(OURS, N_BITS, "qdrant")


def test_sentence_transformers():
    """The formulas of its quantize_embeddings (the package itself needs torch)."""
    unsigned = np.packbits(NUMBERS > 0).reshape(len(NUMBERS), -1)
    signed = (unsigned.astype(np.int16) - 128).astype(np.int8)
    np.testing.assert_array_equal(codes.from_layout(unsigned, N_BITS, "sentence-transformers:ubinary"), OURS)
    np.testing.assert_array_equal(codes.from_layout(signed, N_BITS, "sentence-transformers:binary"), OURS)


def test_faiss():
    faiss = pytest.importorskip("faiss", reason='pip install "ilhash[faiss]"')
    signs = faiss.IndexLSH(N_BITS, N_BITS, False)  # the sign of each number, as its own encoder packs it
    np.testing.assert_array_equal(codes.from_layout(signs.sa_encode(NUMBERS), N_BITS, "faiss:lsh"), OURS)
    flat = faiss.IndexBinaryFlat(N_BITS)
    flat.add(codes.to_layout(OURS, N_BITS, "faiss"))
    distances, rows = flat.search(OURS[:3], len(OURS))
    for query in range(3):
        np.testing.assert_array_equal(distances[query], FAR[query, rows[query]])
    np.testing.assert_array_equal(faiss.vector_to_array(flat.xb).reshape(-1, N_BITS // 8), OURS)


def test_usearch():
    index = pytest.importorskip("usearch.index", reason='pip install "ilhash[usearch]"')
    own = index.Index(ndim=N_BITS, dtype="b1", metric="hamming")
    own.add(np.arange(50), codes.to_layout(OURS, N_BITS, "usearch"))
    found = own.search(OURS[0], 50, exact=True)
    np.testing.assert_array_equal(found.distances.astype(int), FAR[0, found.keys.astype(int)])
    np.testing.assert_array_equal(codes.from_layout(np.stack(own.get(np.arange(50))), N_BITS, "usearch"), OURS)


def test_sqlite_vec():
    apsw = pytest.importorskip("apsw", reason='pip install "ilhash[sqlite]"')
    vec = pytest.importorskip("sqlite_vec", reason='pip install "ilhash[sqlite]"')
    connection = apsw.Connection(":memory:")
    connection.enable_load_extension(True)
    connection.load_extension(vec.loadable_path())
    written = [next(connection.execute("SELECT vec_quantize_binary(?)", (row.tobytes(),)))[0] for row in NUMBERS]
    rows = np.frombuffer(b"".join(written), np.uint8).reshape(len(NUMBERS), -1)
    np.testing.assert_array_equal(codes.from_layout(rows, N_BITS, "sqlite-vec:quantize"), OURS)
    ours = [row.tobytes() for row in codes.to_layout(OURS, N_BITS, "sqlite-vec")]
    asked = "SELECT vec_distance_hamming(vec_bit(?), vec_bit(?))"
    assert [next(connection.execute(asked, (row, ours[0])))[0] for row in ours] == FAR[0].tolist()
    connection.close()


def test_lancedb(tmp_path):
    lancedb = pytest.importorskip("lancedb", reason='pip install "ilhash[lance]"')
    pyarrow = pytest.importorskip("pyarrow", reason='pip install "ilhash[lance]"')
    flat = pyarrow.array(codes.to_layout(OURS, N_BITS, "lancedb").ravel())
    rows = pyarrow.table({"id": np.arange(50), "code": pyarrow.FixedSizeListArray.from_arrays(flat, N_BITS // 8)})
    table = lancedb.connect(tmp_path).create_table("codes", rows)
    found = table.search(OURS[0].tolist(), vector_column_name="code").distance_type("hamming").limit(50).to_arrow()
    np.testing.assert_array_equal(found["_distance"].to_numpy().astype(int), FAR[0, found["id"].to_numpy()])
    read = np.stack(table.to_arrow()["code"].to_pylist()).astype(np.uint8)
    np.testing.assert_array_equal(codes.from_layout(read, N_BITS, "lancedb"), OURS)


def test_duckdb():
    duckdb = pytest.importorskip("duckdb", reason='pip install "ilhash[duckdb]"')
    with duckdb.connect() as connection:
        texts = codes.to_layout(OURS, N_BITS, "duckdb")
        asked = "SELECT bit_count(xor(CAST($1 AS BIT), CAST($2 AS BIT))), CAST(CAST($1 AS BIT) AS VARCHAR)"
        rows = [connection.execute(asked, [text, texts[0]]).fetchone() for text in texts]
    assert [far for far, _ in rows] == FAR[0].tolist()
    np.testing.assert_array_equal(codes.from_layout([text for _, text in rows], N_BITS, "duckdb"), OURS)


def test_clickhouse(tmp_path):
    pytest.importorskip("chdb", reason='pip install "ilhash[clickhouse]"')
    with engines.open(f"clickhouse:///{tmp_path}/items", n_bits=N_BITS) as engine:
        texts = codes.to_layout(OURS, N_BITS, "clickhouse:hex")
        asked = "SELECT bitHammingDistance(unhex(:a), unhex(:b)), hex(unhex(:a))"
        rows = [engine._rows(asked, {"a": text, "b": texts[0]})[0] for text in texts]
    assert [int(far) for far, _ in rows] == FAR[0].tolist()
    np.testing.assert_array_equal(codes.from_layout([text for _, text in rows], N_BITS, "clickhouse:hex"), OURS)
