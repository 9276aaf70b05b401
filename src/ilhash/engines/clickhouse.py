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

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._extras import require
from ilhash.engines._contract import Codes, Columns, EngineError, Filter, Ids, Settings, absent, taken
from ilhash.engines._places import path_of, without_password
from ilhash.engines._sql import FORMAT, NAME, OWN_COLUMNS, STAGED, SqlEngine, Values, replaced_names
from ilhash.search import Hits, RangeHits

VERSION, DELETED = "ilhash_version", "ilhash_deleted"
ALL = Filter(where="1 = 1")
ONE_BLOCK = (  # an INSERT of any size is one block, hence one part, which is renamed into place or not there
    "SET min_insert_block_size_rows = 1000000000000, min_insert_block_size_bytes = 0, max_insert_threads = 1"
)
_OPEN: set[tuple[Path, str]] = set()  # folders and tables that this process has open


class ClickHouse(SqlEngine):
    """A table in a folder of chdb."""

    name = "clickhouse"
    promise = (
        "What add, update and remove have done is on disk when they return; each is one block of one INSERT, which is "
        "there wholly or not at all. There are no transactions over several of them. One process at a time can have "
        "the folder open, and a process one folder."
    )
    types = {  # noqa: RUF012
        "int": "Int64",
        "float": "Float64",
        "text": "Nullable(String)",
        "bool": "Bool",
    }
    key_type = "String"

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
            raise EngineError(f"{path} {wanted}, got an error: {_sentence(error)}") from None
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
        given = {name: _typed(name, value) for name, value in (values or {}).items()}
        text = replaced_names(statement, lambda name: f"{{{name}:{given[name][0]}}}" if name in given else f":{name}")
        if self._place is None:
            raise EngineError("ClickHouse must be open to run a statement, got one after close")
        try:
            answer = self._session.query(
                text, "ArrowStream", params={name: value for name, (_, value) in given.items()}
            )
        except RuntimeError as error:
            raise EngineError(f"ClickHouse must be able to run a statement, got an error: {_sentence(error)}") from None
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
        if self._exists(self.items):
            self.settings = self._read_settings()
            return
        if new is None or not self.writable:
            raise ValueError(f"table must be one that ilhash made, or n_bits be given to make it, got {self.table!r}")
        self.settings = new
        refuse_column_names(new)
        self.self_check()
        for statement in self._schema():
            self._rows(statement)

    def _read_settings(self) -> Settings:
        told = "SELECT comment FROM system.tables WHERE database = currentDatabase() AND name = :table"
        ((comment,),) = self._rows(told, {"table": self.items})
        try:
            about = json.loads(comment)
            if about.pop("format") != FORMAT:
                raise ValueError("another format")
            return Settings(**about)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            rule = "must have the settings that ilhash wrote as its comment"
            raise EngineError(f"{self.items} {rule}, got others: {error}") from None

    def _schema(self) -> list[str]:
        comment = json.dumps({"format": FORMAT, **asdict(self.settings)})
        return [_items_sql(self.items, _columns_sql(self.settings), comment)]

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
            raise EngineError(f"ClickHouse must be able to take rows, got an error: {_sentence(error)}") from None

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


_MODULES = ("chdb.session", "pyarrow")


def distributed_sql(
    cluster: str, table: str, n_bits: int, *, ids: str = "int", columns: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the statements for a cluster of ClickHouse servers: codes past one machine, searched exactly.

    An item lies on the shard that a hash of its code says, so equal codes lie together. The k nearest come with all
    ties of the last distance: each shard sorts its items, and the server that is asked merges them until the ties are
    complete. An update that gives an item another code may put it on another shard, where no row replaces the old one:
    remove the item with its old code first. The statements are tried in chdb, with the query over two shards inside one
    process; no network of servers was at hand.

    Parameters
    ----------
    cluster : str, name of the cluster in the servers' configuration
    table : str, the Distributed table; the local ones are called ``<table>_local``
    n_bits : int, bits of a code; beyond 2,048 the servers must allow_suspicious_fixed_string_types
    ids : {"int", "str"}, default "int", the kind of ids
    columns : mapping, optional, further columns: name to "int", "float", "text" or "bool"

    Returns
    -------
    dict, "local" and "distributed" (run once), "insert" (rows follow it, in any format: ids, codes as bytes, columns,
    version, whether the item is removed) and "nearest" (parameters ``query``, the code in hexadecimal digits, and
    ``k``)

    Examples
    --------
    >>> distributed_sql("shards", "items", 64)["insert"]
    'INSERT INTO items (id, code, ilhash_version, ilhash_deleted)'
    """
    for name, value in (("cluster", cluster), ("table", table)):
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise ValueError(f"{name} must be a name of at most 40 letters, digits and _, got {value!r}")
    settings = Settings(n_bits, ids, None, dict(columns or {}))
    refuse_column_names(settings)
    width, local = (n_bits + 7) // 8, f"{table}_local"
    comment = json.dumps({"format": FORMAT, **asdict(settings)})
    made = _items_sql(f"{local} ON CLUSTER {cluster}", _columns_sql(settings), comment)
    names = "".join(f', "{name}"' for name in settings.columns)
    far = f"toInt32(bitHammingDistance(code, toFixedString(unhex({{query:String}}), {width})))"
    shards = f"Distributed({cluster}, currentDatabase(), {local}, cityHash64(code))"
    return {
        "local": made,
        "distributed": f"CREATE TABLE {table} ON CLUSTER {cluster} AS {local} ENGINE = {shards}",
        "insert": f"INSERT INTO {table} (id, code{names}, {VERSION}, {DELETED})",
        "nearest": (
            f"SELECT id, far FROM (SELECT id, {far} AS far FROM {table} FINAL "
            "ORDER BY far LIMIT {k:UInt64} WITH TIES) ORDER BY far, id"
        ),
    }


def _columns_sql(settings: Settings) -> str:
    """Return the columns of a table of items."""
    kinds = ClickHouse.types
    key = kinds["int"] if settings.ids == "int" else ClickHouse.key_type
    parts = [f"id {key}", f"code FixedString({(settings.n_bits + 7) // 8})"]
    return ", ".join([*parts, *(f'"{name}" {kinds[kind]}' for name, kind in settings.columns.items())])


def refuse_column_names(settings: Settings) -> None:
    """Refuse names of columns that are not plain or are ours."""
    own = (*OWN_COLUMNS, VERSION, DELETED)
    wrong = [name for name in settings.columns if not NAME.fullmatch(name) or name.lower() in own]
    if wrong:
        rule = f"columns must have names of letters, digits and _ other than {', '.join(own)}"
        raise ValueError(f"{rule}, got {wrong[0]!r}")


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


def _items_sql(name: str, columns: str, comment: str) -> str:
    """Return the statement that makes a table of items, on disk when an INSERT returns."""
    quoted = comment.replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"CREATE TABLE {name} ({columns}, {VERSION} UInt64, {DELETED} UInt8) "
        f"ENGINE = ReplacingMergeTree({VERSION}, {DELETED}) ORDER BY id "
        f"SETTINGS fsync_after_insert = 1, fsync_part_directory = 1 COMMENT '{quoted}'"
    )


def _typed(name: str, value: Any) -> tuple[str, Any]:
    """Return the type of a value, and the value as ClickHouse reads parameters, where a backslash begins an escape."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return "Bool", value
    if isinstance(value, int):
        return "Int64", value
    if isinstance(value, float):
        return "Float64", value
    if isinstance(value, str):
        for letter, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"), ("\0", "\\0")):
            value = value.replace(letter, escaped)
        return "String", value
    raise ValueError(f"parameters must be numbers, texts or truth values, got {type(value).__name__} of {name!r}")


def _sentence(error: Exception) -> str:
    """Return what ClickHouse says without its stack."""
    return " ".join(str(error).partition("Stack trace")[0].split())[:400]
