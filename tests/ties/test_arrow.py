"""Columns of codes in Arrow and Parquet, with and without those who know what they are."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from ilhash import StorageError, methods  # noqa: E402
from ilhash.codes import pack  # noqa: E402
from ilhash.ties.arrow import CodesType, from_arrow, to_arrow  # noqa: E402

CODES = pack(np.random.default_rng(0).random((40, 12)) < 0.5)
PRINT = methods.Sign().fit(np.random.default_rng(0).normal(size=(9, 3))).fingerprint()


@pytest.mark.parametrize("n", [0, 1, 40])
def test_codes_come_back(n):
    column = to_arrow(CODES[:n], 12, PRINT)
    assert (column.type.n_bits, column.type.model, len(column)) == (12, PRINT, n)
    assert np.array_equal(from_arrow(column), CODES[:n])
    assert np.array_equal(from_arrow(pa.chunked_array([column, column])), np.concatenate([CODES[:n]] * 2))
    assert np.array_equal(from_arrow(column.slice(n // 3)), CODES[n // 3 : n])
    assert np.array_equal(from_arrow(column.storage, 12), CODES[:n])


def test_parquet_keeps_bits_order_and_model(tmp_path):
    table = pa.table({"sku": np.arange(40), "code": to_arrow(CODES, 12, PRINT)})
    pq.write_table(table, tmp_path / "items.parquet", row_group_size=7)
    column = pq.read_table(tmp_path / "items.parquet")["code"]
    assert isinstance(column.type, CodesType)
    assert (column.type.n_bits, column.type.model) == (12, PRINT)
    assert np.array_equal(from_arrow(column), CODES)
    said = json.loads(column.type.__arrow_ext_serialize__())
    assert said == {"n_bits": 12, "bit_order": "msb_first", "model": PRINT}


def test_streams_keep_them_too():
    sink = pa.BufferOutputStream()
    table = pa.table({"code": to_arrow(CODES, 12)})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    column = pa.ipc.open_stream(sink.getvalue()).read_all()["code"]
    assert (column.type.n_bits, column.type.model) == (12, None)
    assert np.array_equal(from_arrow(column), CODES)


WITHOUT_ILHASH = """
    import sys, pyarrow as pa, pyarrow.parquet as pq
    column = pq.read_table(sys.argv[1])["code"]
    assert column.type == pa.binary(2), column.type
    print(column[3].as_py().hex(), pq.read_schema(sys.argv[1]).field("code").metadata)
    assert "ilhash" not in sys.modules
"""


def test_who_does_not_know_the_type_reads_bytes(tmp_path):
    pq.write_table(pa.table({"code": to_arrow(CODES, 12)}), tmp_path / "items.parquet")
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_ILHASH), str(tmp_path / "items.parquet")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(CODES[3].tobytes().hex())
    assert "ilhash.codes" in said  # what it is, for people


def test_duckdb_and_polars_read_bytes(tmp_path):
    path = tmp_path / "items.parquet"
    pq.write_table(pa.table({"code": to_arrow(CODES, 12)}), path)
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    assert bytes(duckdb.sql(f"SELECT code FROM '{path}'").fetchall()[3][0]) == CODES[3].tobytes()
    assert polars.read_parquet(path)["code"].to_list()[3] == CODES[3].tobytes()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"[]",
        b'{"n_bits": 12}',
        b'{"n_bits": 12, "bit_order": "lsb_first", "model": null}',
        b'{"n_bits": true, "bit_order": "msb_first", "model": null}',
        b'{"n_bits": 99999999999, "bit_order": "msb_first", "model": null}',
        b'{"n_bits": 12, "bit_order": "msb_first", "model": "x"}',
        b'{"n_bits": 20, "bit_order": "msb_first", "model": null}',
    ],
)
def test_forged_descriptions_are_refused(said):
    with pytest.raises(StorageError, match="must"):
        CodesType.__arrow_ext_deserialize__(pa.binary(2), said)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: from_arrow([1]), TypeError, "column must be an array of pyarrow, got list"),
        (lambda: from_arrow(to_arrow(CODES, 12).storage), ValueError, "n_bits must be given for a column"),
        (lambda: from_arrow(to_arrow(CODES, 12), 16), ValueError, r"n_bits must be that of the column \(12\), got 16"),
        (lambda: from_arrow(pa.array([b"ab", None], pa.binary(2)), 16), ValueError, "a code in every row, got 1 of 2"),
        (lambda: from_arrow(pa.array(["a"]), 16), ValueError, "column must be of 2 bytes a row, got string"),
        (lambda: from_arrow(pa.array([b"\xff\xff"], pa.binary(2)), 12), ValueError, "zeros in the 4 padding bits"),
        (lambda: to_arrow(CODES, 40), ValueError, "codes of 40 bits must be"),
        (lambda: CodesType(0), ValueError, "n_bits must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_refused(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
