"""ClickHouse: the same engine in a folder (chdb), and the statements for a cluster of servers.

::

    <table>_items  id, code FixedString(bytes), columns, ilhash_version, ilhash_deleted

There are no transactions, so there is one table, and every change is one INSERT of one block, which is there wholly or
not at all: a ReplacingMergeTree, where an update is a row with a higher version and a removal one that says so. The
settings are the table's comment, so that making a place is one statement too. Searches read items as they are last
(FINAL) from the first update or removal on; a scan is so quick that distinct codes have no table of their own.

A folder belongs to one process at a time, and a process can have one folder open: both are chdb's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._extras import require
from ilhash.engines._bits import BitChange
from ilhash.engines._clickhouse_sql import (
    DELETED,
    KEY,
    TYPES,
    VERSION,
    columns_sql,
    distributed_sql,
    items_sql,
    refuse_column_names,
    sentence,
    typed,
)
from ilhash.engines._places import path_of, without_password
from ilhash.engines._settings import BLOCK, Codes, Columns, EngineError, Filter, Ids, Settings, absent, taken
from ilhash.engines._sql import STAGED, SqlEngine
from ilhash.engines._statements import Values, as_json, from_json, replaced_names
from ilhash.search import Hits, RangeHits

__all__ = ["ClickHouse", "distributed_sql"]

NEW, OLD = "_ilhash_new", "_ilhash_old"  # what tables are called while the bits of items change
ALL = Filter(where="1 = 1")
ONE_BLOCK = (  # an INSERT of any size is one block, hence one part, which is renamed into place or not there
    "SET min_insert_block_size_rows = 1000000000000, min_insert_block_size_bytes = 0, max_insert_threads = 1"
)
_MODULES = ("chdb.session", "pyarrow")
_OPEN: set[tuple[Path, str]] = set()  # folders and tables that this process has open


class ClickHouse(SqlEngine):
    """A table in a folder of chdb."""

    name = "clickhouse"
    promise = (
        "What add, update and remove have done is on disk when they return; each is one block of one INSERT, which is "
        "there wholly or not at all. There are no transactions over several of them; other bits are written to a new "
        "table, which then takes the name of the old one. One process at a time can have "
        "the folder open, and a process one folder."
    )
    types = TYPES
    key_type = KEY

    def __init__(self, path: Path, table: str, mode: str, writable: bool) -> None:
        super().__init__(table, None, mode, writable)
        sessions, self._arrow = (require(name, "clickhouse", "the engine clickhouse") for name in _MODULES)
        self._last = 0  # version of the last change; 0 while there were only items that were added
        self._place: tuple[Path, str] | None = (path.resolve(), table)
        if self._place in _OPEN:
            raise EngineError(f"{path} must be open once, got another opening while this process has it open already")
        try:
            self._session = sessions.Session(str(path.resolve()))
        except RuntimeError as error:
            wanted = "must be a folder of chdb, the one of this process, that no other process has open"
            raise EngineError(f"{path} {wanted}, got an error: {sentence(error)}") from None
        _OPEN.add(self._place)

    @classmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> ClickHouse:
        """Open the folder, or make it."""
        path = _folder_of(url, new is not None and writable)
        engine = cls(path, table, mode, writable)
        try:
            engine._rows(ONE_BLOCK)
            engine._rows("SET allow_suspicious_fixed_string_types = 1")  # codes of more than 2,048 bits
            engine._open_tables(new)
            engine._last = int(engine._rows(f"SELECT max({VERSION}) FROM {engine.items}")[0][0])
            engine._read_as_last()
        except BaseException:
            engine.close()
            raise
        return engine

    def close(self) -> None:
        """Let go of the folder."""
        if self._place is not None:
            self._session.close()
            _OPEN.discard(self._place)
            self._place = None

    def _version(self) -> str:
        ((version,),) = self._rows("SELECT version()")
        return f"ClickHouse {version} (chdb)"

    def _rows(self, statement: str, values: Values | None = None) -> list[Any]:
        given = {name: typed(name, value) for name, value in (values or {}).items()}
        text = replaced_names(statement, lambda name: f"{{{name}:{given[name][0]}}}" if name in given else f":{name}")
        if self._place is None:
            raise EngineError("ClickHouse must be open to run a statement, got one after close")
        try:
            answer = self._session.query(
                text, "ArrowStream", params={name: value for name, (_, value) in given.items()}
            )
        except RuntimeError as error:
            raise EngineError(f"ClickHouse must be able to run a statement, got an error: {sentence(error)}") from None
        content = answer.bytes()
        if not content:
            return []
        columns = self._arrow.ipc.open_stream(content).read_all().columns
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    # -------------------------------------------------------------------------------------------- places

    def _exists(self, table: str) -> bool:
        named = "SELECT 1 FROM system.tables WHERE database = currentDatabase() AND name = :table"
        return bool(self._rows(named, {"table": table}))

    def _open_tables(self, new: Settings | None) -> None:
        self._finish_swap()
        if self._exists(self.items):
            self.settings, self._n_changes = self._read_settings()
            found = self._declared(self.items)
            if found != self._code_type():
                rule = f"{self.items} must have a column code of {self._code_type()} for {self.n_bits} bits"
                raise EngineError(f"{rule}, got {found or 'none'}")
            return
        if new is None or not self.writable:
            raise ValueError(f"table must be one that ilhash made, or n_bits be given to make it, got {self.table!r}")
        self.settings = new
        refuse_column_names(new)
        self.self_check()
        for statement in self._schema():
            self._rows(statement)

    def _read_settings(self) -> tuple[Settings, int]:
        try:
            return from_json(self._comment(self.items))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            rule = "must have the settings that ilhash wrote as its comment"
            raise EngineError(f"{self.items} {rule}, got others: {error}") from None

    def _comment(self, table: str) -> str:
        told = "SELECT comment FROM system.tables WHERE database = currentDatabase() AND name = :table"
        ((comment,),) = self._rows(told, {"table": table})
        return str(comment)

    def _declared(self, table: str) -> str:
        asked = "SELECT type FROM system.columns WHERE database = currentDatabase() AND table = :table"
        found = self._rows(f"{asked} AND name = 'code'", {"table": table})
        return str(found[0][0]) if found else ""

    def _schema(self) -> list[str]:
        return [items_sql(self.items, columns_sql(self.settings), as_json(self.settings, self._n_changes))]

    def _item_columns(self, key: str, *, codes: bool, columns: bool = True) -> str:
        return super()._item_columns("", codes=codes, columns=columns).replace(" NOT NULL", "")

    def describe(self) -> dict[str, Any]:
        """Say what this is."""
        distinct = int(self._rows(f"SELECT uniqExact(code) FROM {self.items}")[0][0])
        return {**super(SqlEngine, self).describe(), "table": self.table, "distinct codes": distinct}

    def _largest_id(self) -> int:
        ((largest, n),) = self._rows(f"SELECT max(id), count() FROM {self.items}")
        return int(largest) if n else -1

    def _codes(self, ids: Ids) -> tuple[Ids, Codes]:
        with self._staged(ids):
            rows = self._rows(f"SELECT id, code FROM {self.items} WHERE id IN (SELECT id FROM {STAGED})")
        return self._as_ids([row[0] for row in rows]), self._from_codes([row[1] for row in rows])

    # -------------------------------------------------------------------------------------------- changes

    def _transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _read_as_last(self) -> None:
        """Have every statement read items as they are last, which costs time, once some row is not the only one."""
        if self._last:
            self._rows("SET final = 1")

    @contextmanager
    def _staged(self, ids: Ids, codes: Codes | None = None, columns: Columns | None = None) -> Iterator[None]:
        body = self._item_columns("", codes=codes is not None, columns=bool(columns))
        self._rows(f"DROP TEMPORARY TABLE IF EXISTS {STAGED}")
        self._rows(f"CREATE TEMPORARY TABLE {STAGED} ({body}) ENGINE = Memory")
        try:
            self._stage(ids, codes, columns or {})
            yield
        finally:
            self._rows(f"DROP TEMPORARY TABLE IF EXISTS {STAGED}")

    def _stage(self, ids: Ids, codes: Codes | None, columns: Columns) -> None:
        pa = self._arrow
        arrays = {"id": pa.array(ids, pa.int64() if self.settings.ids == "int" else pa.string())}
        if codes is not None:
            buffers = [None, pa.py_buffer(codes)]
            arrays["code"] = pa.FixedSizeBinaryArray.from_buffers(pa.binary(codes.shape[1]), len(codes), buffers)
        for name, values in columns.items():
            kind = self.settings.columns[name]
            arrays[name] = pa.array(values, pa.string() if kind == "text" else None)
        rows, stream = pa.table(arrays), pa.BufferOutputStream()
        if not len(rows):
            return
        with pa.ipc.new_stream(stream, rows.schema) as writer:
            writer.write_table(rows)
        names = ", ".join(f'"{name}"' for name in arrays)
        try:
            with self._session.send_insert(f"INSERT INTO {STAGED} ({names})", "ArrowStream") as insert:
                insert.append(stream.getvalue().to_pybytes())
                insert.finish()
        except RuntimeError as error:
            raise EngineError(f"ClickHouse must be able to take rows, got an error: {sentence(error)}") from None

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self._refuse_changes()
        with self._staged(ids, codes, columns):
            known = self._n_known()
            if known:
                raise taken(known, len(ids))
            version = self._last and self._last + 1  # an id that was removed comes back above its removal
            self._insert(self._names_of(columns), "", version, deleted=False)

    def _update(self, codes: Codes, ids: Ids) -> None:
        self._refuse_changes()
        with self._staged(ids, codes):
            self._refuse_absent(len(ids))
            if self.settings.columns:
                names = self._names_of(self.settings.columns)
                there = f"SELECT id{names} FROM {self.items} WHERE id IN (SELECT id FROM {STAGED})"
                self._insert(names, f"SELECT id, s.code AS code{names} FROM {STAGED} s JOIN ({there}) i USING (id)")
            else:
                self._insert("", "")

    def _remove(self, ids: Ids) -> None:
        self._refuse_changes()
        with self._staged(ids):
            self._refuse_absent(len(ids))
            names = self._names_of(self.settings.columns)
            there = f"SELECT id, code{names} FROM {self.items} WHERE id IN (SELECT id FROM {STAGED})"
            self._insert(names, there, deleted=True)

    def _recode(self, change: BitChange) -> None:
        """Fill a new table, and let it take the name of the old one: two renames, which an opening can finish."""
        self._refuse_changes()
        new, others = f"{self.items}{NEW}", self._other_columns()
        names = self._names_of(others)
        self._drop_ours(new)
        columns = [columns_sql(replace(change.settings, columns={})), *(f'"{n}" {kind}' for n, kind in others.items())]
        self._rows(items_sql(new, ", ".join(columns), as_json(change.settings, self._n_changes + 1)))
        for ids, codes in self._blocks(BLOCK):
            with self._as(change.settings), self._staged(ids, change.recoded(ids, codes)):
                there = f"SELECT id{names} FROM {self.items} WHERE id IN (SELECT id FROM {STAGED})"
                rows = f"SELECT id, s.code AS code{names}, 0, 0 FROM {STAGED} s JOIN ({there}) i USING (id)"
                self._rows(f"INSERT INTO {new} (id, code{names}, {VERSION}, {DELETED}) {rows}")
        change.finish()
        self._rows(f"RENAME TABLE {self.items} TO {self.items}{OLD}")
        self._finish_swap()
        self.settings, self._last = change.settings, 0
        self._n_changes += 1
        self._rows("SET final = 0")

    def _finish_swap(self) -> None:
        """Give a new table that is complete the name that is free, which is how one knows; drop what is left over."""
        new, old = f"{self.items}{NEW}", f"{self.items}{OLD}"
        if self.writable and self._exists(old):
            if not self._exists(self.items):
                self._rows(f"RENAME TABLE {new if self._exists(new) else old} TO {self.items}")
            self._drop_ours(old)
        if self.writable:
            self._drop_ours(new)

    def _other_columns(self) -> dict[str, str]:
        """Return columns beside id and code with their types, also those that somebody else has added."""
        asked = "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = :table"
        there = self._rows(f"{asked} ORDER BY position", {"table": self.items})
        return {name: kind for name, kind in there if name not in ("id", "code", VERSION, DELETED)}

    def _drop_ours(self, table: str) -> None:
        if self._exists(table):
            try:
                from_json(self._comment(table))
            except (ValueError, TypeError, KeyError, AttributeError):
                raise EngineError(f"{table} must be a name that is free for a while, got a table of others") from None
            self._rows(f"DROP TABLE {table} SYNC")

    def _swap_codes(self) -> None:
        raise NotImplementedError("there is no table of codes here")

    def _insert(self, names: str, rows: str, version: int | None = None, *, deleted: bool = False) -> None:
        """Insert rows, those staged where none are named, as one block; a change has the next version."""
        version = self._last + 1 if version is None else version
        self._last = version
        self._read_as_last()
        source = f"({rows})" if rows else STAGED
        told = f"id, code{names}"
        target = f"INSERT INTO {self.items} ({told}, {VERSION}, {DELETED})"
        self._rows(f"{target} SELECT {told}, {version:d}, {int(deleted)} FROM {source}")

    def _names_of(self, columns: Mapping[str, Any]) -> str:
        return "".join(f', "{name}"' for name in columns)

    def _n_known(self) -> int:
        return int(self._rows(f"SELECT count() FROM {self.items} WHERE id IN (SELECT id FROM {STAGED})")[0][0])

    def _refuse_absent(self, n: int) -> None:
        known = self._n_known()
        if known < n:
            raise absent(n - known, n)

    def _refuse_changes(self) -> None:
        if not self.writable:
            raise EngineError("clickhouse must be opened with writable=True to be changed, got a read-only opening")

    # -------------------------------------------------------------------------------------------- search

    def _nearest(self, queries: Codes, k: int, wanted: Filter) -> Hits:
        return super()._nearest(queries, k, wanted or ALL)

    def _within(self, queries: Codes, radius: int, wanted: Filter) -> RangeHits:
        return super()._within(queries, radius, wanted or ALL)

    def _code_type(self) -> str:
        return f"FixedString({(self.n_bits + 7) // 8})"

    def _distance(self, code: str, query: str) -> str:
        return f"toInt32(bitHammingDistance({code}, {self._code(query)}))"

    def _code(self, value: str) -> str:
        return f"toFixedString(unhex({value}), {(self.n_bits + 7) // 8})"

    def _to_code(self, code: NDArray[np.uint8]) -> str:
        return code.tobytes().hex()

    def _from_codes(self, values: list[Any]) -> Codes:
        width = (self.n_bits + 7) // 8
        return np.frombuffer(b"".join(values), np.uint8).reshape(-1, width).copy()

    def _measured(self, codes: Codes, query: Codes) -> tuple[Codes, list[int]]:
        statement = f"SELECT {self._code(':code')}, {self._distance(self._code(':code'), ':query')}"
        asked = self._to_code(query[0])
        rows = [self._rows(statement, {"code": self._to_code(code), "query": asked})[0] for code in codes]
        return self._from_codes([row[0] for row in rows]), [int(row[1]) for row in rows]


def _folder_of(url: str, make: bool) -> Path:
    """Return the folder that a URL names, if chdb can have it."""
    if not url.partition("://")[2].startswith("/"):
        rule = "url must name a folder, clickhouse:///folder; for servers see ilhash.engines.clickhouse.distributed_sql"
        raise ValueError(f"{rule}, got {without_password(url)!r}")
    path = path_of(url)
    if "?" in str(path.resolve()):
        raise ValueError(
            f"url must name a folder without '?', which chdb reads as the beginning of options, got {path}"
        )
    if path.exists() and not path.is_dir():
        raise EngineError(f"{path} must be a folder of chdb, got a file")
    inside = {part.name for part in path.iterdir()} if path.is_dir() else set()
    if not inside and not make:
        raise FileNotFoundError(f"url must name a folder that is there, or n_bits be given to make it, got {path}")
    if inside and "metadata" not in inside and not inside <= {"data", "store", "tmp", "status", "uuid"}:
        raise EngineError(f"{path} must be a folder of chdb or an empty one, got one of something else")
    return path
