"""DuckDB: one file, one process that writes or many that read; codes as words or BIT, rows in by NumPy arrays.

A code of at most 64 bits is a UBIGINT, whose highest bit is the code's first: a scan takes a sixth of the time that BIT
takes. A longer one is a BIT, padded with zeros to bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._extras import require
from ilhash.engines._places import path_of
from ilhash.engines._settings import Codes, Columns, EngineError, Ids, Settings
from ilhash.engines._sql import RECODED, STAGED, TOUCHED, SqlEngine
from ilhash.engines._statements import Values, replaced_names

ARRAYS = "ilhash_arrays"  # what arrays are called while they are staged
WORD = 64  # bits
ALONE = {  # a file of SQLite would have an extension fetched and run, a condition could read any file
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
}
_OPEN: set[Path] = set()  # files that this process has open: DuckDB's own lock holds between processes alone


class DuckDb(SqlEngine):
    """Tables in a file of DuckDB."""

    name = "duckdb"
    promise = (
        "What add, update and remove have done is on disk when they return; a change is there wholly or not at all. "
        "One process at a time can have the file open to change it, or several to read it."
    )
    types = {"int": "BIGINT", "float": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN"}  # noqa: RUF012

    def __init__(self, path: Path, table: str, mode: str, writable: bool) -> None:
        super().__init__(table, None, mode, writable)
        self._duckdb = require("duckdb", "duckdb", "the engine duckdb")
        self._path: Path | None = path.resolve()
        if self._path in _OPEN:
            raise EngineError(f"{path} must be open once, got another opening while this process has it open already")
        try:
            self._connection = self._duckdb.connect(str(self._path), read_only=not writable, config=ALONE)
        except self._duckdb.Error as error:
            wanted = "must be a file of DuckDB that no other process changes"
            raise EngineError(f"{path} {wanted}, got an error: {_sentence(error)}") from None
        _OPEN.add(self._path)

    @classmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> DuckDb:
        """Open the file, or make it."""
        path = path_of(url)
        if not path.is_file() and (new is None or not writable):
            raise FileNotFoundError(f"url must name a file that is there, or n_bits be given to make it, got {path}")
        engine = cls(path, table, mode, writable)
        try:
            engine._open_tables(new)
        except BaseException:
            engine.close()
            raise
        return engine

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        if self._path is not None:
            _OPEN.discard(self._path)
            self._path = None

    def _version(self) -> str:
        return f"DuckDB {self._duckdb.__version__}"

    def _rows(self, statement: str, values: Values | None = None) -> list[Any]:
        given = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in (values or {}).items()
        }
        try:
            parsed = self._connection.extract_statements(replaced_names(statement, lambda name: f"${name}"))
            if len(parsed) != 1:  # a condition that closes ours and goes on with another would be run
                raise EngineError(f"DuckDB must be asked one statement at a time, got {len(parsed)}")
            rows: list[Any] = self._connection.execute(parsed[0], given).fetchall()
        except (self._duckdb.Error, RuntimeError) as error:
            raise EngineError(f"DuckDB must be able to run a statement, got an error: {_sentence(error)}") from None
        return rows

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._rows("BEGIN TRANSACTION")
        try:
            yield
            self._rows("COMMIT")
        except BaseException:
            with suppress(EngineError):  # a COMMIT that failed has ended it
                self._rows("ROLLBACK")
            raise

    def _exists(self, table: str) -> bool:
        named = "SELECT 1 FROM information_schema.tables WHERE lower(table_name) = lower(:table)"
        return bool(self._rows(named, {"table": table}))

    def _declared(self, table: str) -> str:
        asked = "SELECT data_type FROM information_schema.columns WHERE lower(table_name) = lower(:table)"
        found = self._rows(f"{asked} AND column_name = 'code'", {"table": table})
        if not found or found[0][0] != "BIT" or self.n_bits <= WORD:
            return str(found[0][0]) if found else ""
        some = self._rows(f"SELECT length(code) FROM {table} LIMIT 1")  # BIT has any width
        right = not some or some[0][0] == 8 * packed.bytes_per_code(self.n_bits)
        return "BIT" if right else f"BIT of {some[0][0]} bits"

    def _refuse_column_names(self) -> None:
        super()._refuse_column_names()
        if "rowid" in map(str.lower, self.settings.columns):
            raise ValueError("columns must have names other than rowid, which DuckDB gives every table, got 'rowid'")

    def _schema(self) -> list[str]:
        """Keys cost memory and time here, and joins use none: ids alone have one, as the last guard."""
        about, _, items, _ = super()._schema()
        return [about, f"CREATE TABLE {self.distinct} (code {self._code_type()} NOT NULL)", items]

    @contextmanager
    def _staged(self, ids: Ids, codes: Codes | None = None, columns: Columns | None = None) -> Iterator[None]:
        self._stage(ids, codes, columns or {})
        yield  # what a failure leaves is replaced by the next rows; a transaction that failed can drop nothing
        self._rows(f"DROP TABLE {STAGED}")

    def _stage(self, ids: Ids, codes: Codes | None, columns: Columns) -> None:
        arrays, parts = {"id": ids}, [f"CAST(id AS {self._id_sql_type()}) AS id"]
        if codes is not None:
            arrays["code"] = self._as_array(codes)
            parts.append(f"CAST(code AS {self._code_type()}) AS code")
        for number, (name, values) in enumerate(columns.items()):
            arrays[f"c{number}"] = values
            parts.append(f'CAST(c{number} AS {self.types[self.settings.columns[name]]}) AS "{name}"')
        self._connection.register(ARRAYS, arrays)
        try:
            self._rows(f"CREATE OR REPLACE TEMPORARY TABLE {STAGED} AS SELECT {', '.join(parts)} FROM {ARRAYS}")
        finally:
            with suppress(self._duckdb.Error):  # in a transaction that failed it goes with the rest
                self._connection.unregister(ARRAYS)

    def _swap_codes(self) -> None:
        """Make the tables anew, with all columns of the items, also those that somebody else has added."""
        asked = "SELECT column_name, data_type FROM information_schema.columns WHERE lower(table_name) = lower(:table)"
        there = self._rows(f"{asked} ORDER BY ordinal_position", {"table": self.items})
        others = [(f'"{name}"', kind) for name, kind in there if name not in ("id", "code")]
        names = "".join(f", {name}" for name, _ in others)
        join = f"SELECT i.id, r.code{names} FROM {self.items} i JOIN {RECODED} r ON r.id = i.id"
        self._rows(f"CREATE OR REPLACE TEMPORARY TABLE {TOUCHED} AS {join}")
        for table in (self.items, self.distinct):
            self._rows(f"DROP TABLE {table}")
        columns = [self._item_columns("PRIMARY KEY", codes=True, columns=False), *(" ".join(one) for one in others)]
        self._rows(f"CREATE TABLE {self.items} ({', '.join(columns)})")
        self._rows(f"INSERT INTO {self.items} (id, code{names}) SELECT id, code{names} FROM {TOUCHED}")
        self._rows(f"CREATE TABLE {self.distinct} (code {self._code_type()} NOT NULL)")
        self._rows(f"INSERT INTO {self.distinct} SELECT DISTINCT code FROM {TOUCHED}")
        self._rows(f"DROP TABLE {TOUCHED}")

    # -------------------------------------------------------------------------------------------- codes

    def _code_type(self) -> str:
        return "UBIGINT" if self.n_bits <= WORD else "BIT"

    def _distance(self, code: str, query: str) -> str:
        return f"CAST(bit_count(xor({code}, CAST({query} AS {self._code_type()}))) AS INTEGER)"

    def _as_array(self, codes: Codes) -> NDArray[Any]:
        """Return codes as DuckDB takes them from an array: numbers, or bytes that it casts to BIT."""
        if self.n_bits <= WORD:
            words = np.zeros((len(codes), 8), np.uint8)
            words[:, : codes.shape[1]] = codes
            return words.view(">u8")[:, 0].astype(np.uint64)
        values = np.empty(len(codes), object)
        values[:] = [code.tobytes() for code in codes]
        return values

    def _to_code(self, code: NDArray[np.uint8]) -> int | bytes:
        value: int | bytes = self._as_array(code[None])[:1].tolist()[0]
        return value

    def _from_codes(self, values: list[Any]) -> Codes:
        width = (self.n_bits + 7) // 8
        if self.n_bits <= WORD:
            return np.array(values, ">u8").view(np.uint8).reshape(-1, 8)[:, :width].copy()
        wrong = sum(len(one) != 8 * width for one in values)
        if wrong:
            rule = f"codes of {self.table} must be BIT of {8 * width} bits"
            raise EngineError(f"{rule}, got {wrong} of {len(values)} others")
        digits = np.frombuffer("".join(values).encode(), np.uint8).reshape(-1, 8 * width)  # BIT comes as 0s and 1s
        return np.packbits(digits == ord("1"), axis=1)


def _sentence(error: Exception) -> str:
    """Return what DuckDB says without the statement that it draws below."""
    return " ".join(str(error).partition("\n\n")[0].split())
