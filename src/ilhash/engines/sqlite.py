"""SQLite: one file, many readers, one writer at a time; codes as BLOB, distances by sqlite-vec.

Through apsw, whose SQLite can load extensions, which that of many a Python cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._extras import require
from ilhash.engines._places import path_of
from ilhash.engines._settings import Codes, Columns, EngineError, Ids, Settings
from ilhash.engines._sql import RECODED, STAGED, SqlEngine
from ilhash.engines._statements import Values

WAIT = 30_000  # milliseconds for another writer


class Sqlite(SqlEngine):
    """Tables in a file of SQLite."""

    name = "sqlite"
    several_writers = True
    promise = (
        "What add, update and remove have done is on disk when they return; a change is there wholly or not at all."
    )
    types = {"int": "INTEGER", "float": "REAL", "text": "TEXT", "bool": "INTEGER"}  # noqa: RUF012

    def __init__(self, path: Path, table: str, mode: str, writable: bool) -> None:
        super().__init__(table, None, mode, writable)
        self._apsw, vec = (require(name, "sqlite", "the engine sqlite") for name in ("apsw", "sqlite_vec"))
        flags = self._apsw.SQLITE_OPEN_READWRITE | self._apsw.SQLITE_OPEN_CREATE
        try:
            self._connection = self._apsw.Connection(
                str(path.resolve()), flags=flags if writable else self._apsw.SQLITE_OPEN_READONLY
            )
            self._connection.setbusytimeout(WAIT)
            self._connection.enable_load_extension(True)
            self._connection.load_extension(vec.loadable_path())
            self._connection.enable_load_extension(False)
            self._connection.config(self._apsw.SQLITE_DBCONFIG_DQS_DML, 0)  # "no_such" is no text but an error
            list(self._connection.execute("SELECT count(*) FROM sqlite_master"))  # which looks into the file
            if writable:
                self._rows("PRAGMA journal_mode = WAL")  # readers beside a writer
                self._rows("PRAGMA synchronous = FULL")
        except self._apsw.Error as error:
            raise EngineError(f"{path} must be a file of SQLite, got an error: {error}") from None

    @classmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> Sqlite:
        """Open the file, or make it."""
        path = path_of(url)
        if new is None and not path.is_file():
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

    def _version(self) -> str:
        ((vec,),) = self._rows("SELECT vec_version()")
        return f"SQLite {self._apsw.sqlite_lib_version()}, sqlite-vec {vec}"

    def _rows(self, statement: str, values: Values | None = None) -> list[Any]:
        try:
            return list(self._connection.execute(statement, values))
        except (self._apsw.Error, KeyError) as error:
            raise EngineError(f"SQLite must be able to run a statement, got an error: {error}") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._rows("BEGIN IMMEDIATE")
        try:
            yield
            self._rows("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._rows("ROLLBACK")
            raise

    def _exists(self, table: str) -> bool:
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE lower(name) = lower(:table)", {"table": table}))

    def _declared(self, table: str) -> str:
        found = self._rows("SELECT type FROM pragma_table_info(:table) WHERE name = 'code'", {"table": table})
        if not found or not self._rows(f"SELECT 1 FROM {table} LIMIT 1"):
            return str(found[0][0]) if found else ""
        ((size, kind),) = self._rows(f"SELECT length(code), typeof(code) FROM {table} LIMIT 1")  # BLOBs have any width
        right = (size, kind) == (packed.bytes_per_code(self.n_bits), "blob")
        return str(found[0][0]) if right else f"{kind} of {size} bytes"

    def _schema(self) -> list[str]:
        about, codes, *others = super()._schema()
        return [about, codes + " WITHOUT ROWID", *others]

    def _stage(self, ids: Ids, codes: Codes | None, columns: Columns) -> None:
        parts = [ids.tolist()] + ([[code.tobytes() for code in codes]] if codes is not None else [])
        parts += [values.tolist() for values in columns.values()]
        marks = ", ".join("?" * len(parts))
        self._connection.executemany(f"INSERT INTO {STAGED} VALUES ({marks})", zip(*parts, strict=True))

    def _swap_codes(self) -> None:
        of_item = f"SELECT r.code FROM {RECODED} r WHERE r.id = {self.items}.id"
        self._rows(f"DROP INDEX {self.items}_by_code")  # entry by entry it would cost most of the time
        self._rows(f"UPDATE {self.items} SET code = ({of_item})")
        self._rows(f"CREATE INDEX {self.items}_by_code ON {self.items} (code)")
        self._rows(f"DELETE FROM {self.distinct}")
        self._rows(f"INSERT INTO {self.distinct} SELECT DISTINCT code FROM {self.items} ORDER BY code")

    def _code_type(self) -> str:
        return "BLOB"

    def _distance(self, code: str, query: str) -> str:
        return f"CAST(vec_distance_hamming(vec_bit({code}), vec_bit({query})) AS INTEGER)"

    def _to_code(self, code: NDArray[np.uint8]) -> bytes:
        return code.tobytes()

    def _from_codes(self, values: list[Any]) -> Codes:
        width = packed.bytes_per_code(self.n_bits)
        wrong = sum(not isinstance(one, bytes) or len(one) != width for one in values)
        if wrong:
            raise EngineError(
                f"codes of {self.table} must be BLOBs of {width} bytes, got {wrong} of {len(values)} others"
            )
        return np.frombuffer(b"".join(values), np.uint8).reshape(-1, width).copy()
