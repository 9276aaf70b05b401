"""PostgreSQL with pgvector: codes as ``bit(n)``, distances by ``<~>``, every change a transaction.

Through pg8000, whose licence is permissive. :func:`column_sql` is for people who keep codes in a table of their own.
"""

from __future__ import annotations

import io
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import check_count
from ilhash._extras import require
from ilhash.engines._places import without_password
from ilhash.engines._settings import Codes, Columns, EngineError, Ids, Settings
from ilhash.engines._sql import RECODED, STAGED, SqlEngine
from ilhash.engines._statements import Values

SECONDS = 10  # to wait for a server
SEARCHED = 200  # candidates of the graph at least: hnsw.ef_search
MOST_SEARCHED = 1000  # that pgvector allows
GRAPH_BYTES = 1200  # memory that a code takes while its graph is built, beside its own bytes
MOST_MEMORY = 1 << 20  # kB that building a graph may take of the server, where it has not been given more
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class Postgres(SqlEngine):
    """Tables in a database of PostgreSQL."""

    name = "postgresql"
    modes = ("exact", "hnsw")
    several_writers = True
    promise = (
        "What add, update and remove have done is as durable as the server's commits when they return; a change is "
        "there wholly or not at all. Writers wait for each other, readers for nobody."
    )
    types = {"int": "bigint", "float": "double precision", "text": 'text COLLATE "C"', "bool": "boolean"}  # noqa: RUF012

    def __init__(self, url: str, table: str, mode: str, writable: bool) -> None:
        super().__init__(table, None, mode, writable)
        self._broken_off = False  # whether an answer of the server may be left unread
        self._pg = require("pg8000.native", "postgres", "the engine postgresql")
        shown = without_password(url)
        try:
            self._connection = self._pg.Connection(**_connection_of(url), timeout=SECONDS)
            self._connection._usock.settimeout(None)  # the limit is for reaching the server, not for its work
        except (self._pg.InterfaceError, self._pg.DatabaseError, OSError) as error:
            raise EngineError(f"{shown} must be a database that lets us in, got an error: {_said(error)}") from None

    @classmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> Postgres:
        """Connect, and open the tables or make them."""
        engine = cls(url, table, mode, writable)
        try:
            engine._need_unicode()
            engine._need_pgvector()
            engine._open_tables(new)
            if mode == "hnsw":
                engine._build_graph()
        except BaseException:
            engine.close()
            raise
        return engine

    def _need_unicode(self) -> None:
        ((encoding,),) = self._rows("SHOW server_encoding")
        if encoding != "UTF8":
            raise EngineError(f"the database must be encoded in UTF8, so that all ids are kept, got {encoding}")
        self._rows("SET client_encoding = 'UTF8'")

    def _need_pgvector(self) -> None:
        if not self._rows("SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
            try:
                self._rows("CREATE EXTENSION IF NOT EXISTS vector")
            except EngineError as error:
                raise EngineError(
                    f"the database must have pgvector (CREATE EXTENSION vector), got none: {error}"
                ) from None
        if not self._rows("SELECT 1 FROM pg_operator WHERE oprname = '<~>'"):
            raise EngineError("pgvector must know distances of bits, as from version 0.7 on, got an older one")

    @property
    def _graph(self) -> str:
        return f"{self.distinct}_hnsw"

    def _build_graph(self) -> None:
        """Make the graph over distinct codes, once."""
        if self._exists(self._graph):
            return
        try:
            with self._transaction():
                self._make_graph()
        except EngineError as error:
            if "shared memory" not in str(error):  # by which workers share the graph; containers have little of it
                raise
            with self._transaction():
                self._rows("SET LOCAL max_parallel_maintenance_workers = 0")
                self._make_graph()

    def _make_graph(self) -> None:
        """Make the graph, in memory where it fits: beyond it each code is written to the pages of the index."""
        given = "SELECT setting FROM pg_settings WHERE name = 'maintenance_work_mem'"
        ((n, has),) = self._rows(f"SELECT (SELECT count(*) FROM {self.distinct}), ({given})")
        wanted = min(int(n) * (GRAPH_BYTES + packed.bytes_per_code(self.n_bits)) >> 10, MOST_MEMORY)
        if wanted > int(has):  # both in kB
            self._rows(f"SET LOCAL maintenance_work_mem = {wanted}")
        self._rows(self._graph_statement())

    def _graph_statement(self) -> str:
        return f"CREATE INDEX IF NOT EXISTS {self._graph} ON {self.distinct} USING hnsw (code bit_hamming_ops)"

    def close(self) -> None:
        """Let go of the connection."""
        with suppress(self._pg.InterfaceError, OSError):  # closed before, or gone
            self._connection.close()

    def bytes_on_disk(self) -> int:
        """Return the bytes of the tables and their indexes.

        Returns
        -------
        int
        """
        sizes = ", ".join(f"pg_total_relation_size('{name}')" for name in (self.about, self.distinct, self.items))
        return sum(map(int, self._rows(f"SELECT {sizes}")[0]))

    def _version(self) -> str:
        asked = "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'vector'"
        ((server, vector),) = self._rows(asked)
        return f"PostgreSQL {server}, pgvector {vector}"

    # -------------------------------------------------------------------------------------------- statements

    def _rows(self, statement: str, values: Values | None = None) -> list[Any]:
        given = {name: one.item() if isinstance(one, np.generic) else one for name, one in (values or {}).items()}
        with self._speaking("run a statement"):
            return self._connection.run(statement, **given) or []

    @contextmanager
    def _speaking(self, what: str) -> Iterator[None]:
        """Let the server answer. What breaks off in between, Ctrl-C too, ends the connection.

        An answer that nobody has read would be taken for that of the next statement.
        """
        if self._broken_off:
            raise EngineError(f"PostgreSQL must be connected to {what}, got a connection that broke off: open it again")
        self._broken_off = True
        try:
            yield
            self._broken_off = False
        except self._pg.DatabaseError as error:  # an answer, too
            self._broken_off = False
            raise EngineError(f"PostgreSQL must be able to {what}, got an error: {_said(error)}") from None
        except (self._pg.InterfaceError, OSError) as error:
            raise EngineError(f"PostgreSQL must be able to {what}, got an error: {_said(error)}") from None
        finally:
            if self._broken_off:
                self._hang_up()

    def _hang_up(self) -> None:
        """Shut the line without another word, so that the server takes back what is not committed."""
        with suppress(OSError, AttributeError):  # gone already
            self._connection._usock.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if not self.writable:
            raise EngineError("the engine must be opened with writable=True to be changed, got False")
        # A code that one client takes away because no item has it must not be what another is just adding to. Each
        # statement must see what was committed before it: with the snapshot of a stricter level, which a server may
        # have as its default, a client that waited would still look at the items of before.
        self._rows("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        try:
            self._rows("SELECT pg_advisory_xact_lock(hashtext(:table))", {"table": self.table.lower()})
            yield
            self._rows("COMMIT")
        except BaseException:
            with suppress(EngineError):  # the connection may be gone
                self._rows("ROLLBACK")
            raise

    def _exists(self, table: str) -> bool:
        return bool(self._rows("SELECT to_regclass(:table) IS NOT NULL", {"table": table})[0][0])

    def _declared(self, table: str) -> str:
        kind = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = to_regclass(:table)"
        found = self._rows(f"{kind} AND attname = 'code' AND NOT attisdropped", {"table": table})
        return str(found[0][0]) if found else ""

    def _swap_codes(self) -> None:
        """Change the columns in their tables, so that rights, indexes and columns of others stay."""
        graph, kind = self._exists(self._graph), self._code_type()
        self._rows(f"DROP INDEX IF EXISTS {self._graph}")
        body = f"SELECT code FROM pg_temp.{RECODED} WHERE id = $1"  # ALTER TABLE takes a function, but no subquery
        named = f"pg_temp.{RECODED}_of({self._id_sql_type().partition(' COLLATE')[0]})"
        self._rows(f"CREATE FUNCTION {named} RETURNS bit LANGUAGE sql STABLE AS '{body}'")
        self._rows(f"ALTER TABLE {self.items} ALTER COLUMN code TYPE {kind} USING pg_temp.{RECODED}_of(id)")
        self._rows(f"DROP FUNCTION {named}")
        self._rows(f"TRUNCATE {self.distinct}")
        self._rows(f"ALTER TABLE {self.distinct} ALTER COLUMN code TYPE {kind}")
        self._rows(f"INSERT INTO {self.distinct} SELECT DISTINCT code FROM {self.items}")
        if graph:
            self._make_graph()

    def _stage(self, ids: Ids, codes: Codes | None, columns: Columns) -> None:
        parts = [_as_text(ids)] + ([packed.to_text(codes, self.n_bits)] if codes is not None else [])
        parts += [_as_text(values) for values in columns.values()]
        lines = io.BytesIO("".join("\t".join(row) + "\n" for row in zip(*parts, strict=True)).encode())
        with self._speaking("take rows"):
            self._connection.run(f"COPY {STAGED} FROM STDIN", stream=lines)

    def _refuse_id_values(self, ids: Ids) -> None:
        bad = sum("\0" in one for one in ids.tolist()) if ids.dtype == object else 0
        if bad:
            raise ValueError(f"ids must be texts without NUL for PostgreSQL, got {bad} of {len(ids)} with one")

    def _nearest_statement(self) -> str:
        """Return the statement of the k nearest codes with all ties, joined to their items.

        For ties PostgreSQL sorts all codes, without them it keeps k rows: where most codes are distinct, items are
        looked at themselves, in half of the time.
        """
        if self.mode == "exact" and self._is_mostly_distinct():
            return self._nearest_of_items()
        far = self._distance("code", ":query")
        if self.mode == "hnsw":
            graph = f"SELECT code FROM {self.distinct} ORDER BY code <~> CAST(:query AS {self._code_type()}) LIMIT :k"
            near = f"SELECT code, {far} AS far FROM ({graph}) g"
        else:
            near = f"SELECT code, {far} AS far FROM {self.distinct} ORDER BY far FETCH FIRST (:k) ROWS WITH TIES"
        join = f"SELECT i.id, c.far FROM near c JOIN {self.items} i ON i.code = c.code"
        return f"WITH near AS MATERIALIZED ({near}) {join} ORDER BY c.far, i.id LIMIT :k"

    def _is_mostly_distinct(self) -> bool:
        """Whether most items have a code of their own, by the server's estimate if it has one: counting is a scan."""
        if self._mostly_distinct is None:
            asked = "SELECT reltuples FROM pg_class WHERE oid = to_regclass(:table)"
            codes, items = (self._rows(asked, {"table": name})[0][0] for name in (self.distinct, self.items))
            if codes > 0 and items > 0:
                self._mostly_distinct = 2 * codes > items
        return super()._is_mostly_distinct()

    def _ask(self, queries: Codes, statement: str, values: Values) -> list[tuple[Ids, NDArray[Any]]]:
        if self.mode == "hnsw":
            searched = min(max(SEARCHED, 2 * values.get("k", 0)), MOST_SEARCHED)
            self._rows(f"SET hnsw.ef_search = {searched}")
            self._rows("SET hnsw.iterative_scan = strict_order")  # without it there are no more than ef_search rows
        return super()._ask(queries, statement, values)

    # -------------------------------------------------------------------------------------------- codes

    def _code_type(self) -> str:
        return f"bit({self.n_bits})"

    def _distance(self, code: str, query: str) -> str:
        # The cast also keeps ORDER BY from a graph over the codes, by which it would silently become approximate.
        return f"CAST({code} <~> CAST({query} AS {self._code_type()}) AS integer)"

    def _to_code(self, code: NDArray[np.uint8]) -> str:
        return packed.to_text(code[None], self.n_bits)[0]

    def _from_codes(self, values: list[Any]) -> Codes:
        return packed.from_text(values, self.n_bits)


# ------------------------------------------------------------------------------------------------ connections


def _connection_of(url: str) -> dict[str, Any]:
    """Return what pg8000 wants of a URL of libpq; what it leaves out comes from the variables PGHOST and so on."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"url must be postgresql://user@host:port/database, got {without_password(url)!r}") from None
    asked = dict(parse_qsl(parts.query))
    unknown = sorted(asked.keys() - {"host", "port", "user", "password", "dbname", "sslmode"})
    if unknown:
        raise ValueError(f"url must have parameters host, port, user, password, dbname or sslmode, got {unknown[0]!r}")

    def first(*choices: str | None) -> str | None:
        return next((one for one in choices if one), None)

    host = first(asked.get("host"), parts.hostname and unquote(parts.hostname), os.environ.get("PGHOST"), "localhost")
    user = first(asked.get("user"), unquote(parts.username or ""), os.environ.get("PGUSER"), "postgres")
    base = first(asked.get("dbname"), unquote(parts.path[1:]), os.environ.get("PGDATABASE"), user)
    number = first(asked.get("port"), str(port or ""), os.environ.get("PGPORT"), "5432") or ""
    if not number.isdecimal():
        raise ValueError(f"port must be a whole number, got {number!r}")
    password = first(asked.get("password"), unquote(parts.password or ""), os.environ.get("PGPASSWORD"))
    given: dict[str, Any] = {"user": user, "database": base, "password": password}
    if host and host.startswith("/"):
        return {**given, "unix_sock": f"{host}/.s.PGSQL.{number}"}
    return {**given, "host": host, "port": int(number), "ssl_context": _encryption(asked.get("sslmode", ""))}


def _encryption(mode: str) -> Any:
    """Return how a connection is encrypted, as libpq's sslmode says; without a word, if the server can."""
    modes = ("", "disable", "prefer", "require", "verify-ca", "verify-full")
    if mode not in modes:
        raise ValueError(f"sslmode must be one of {', '.join(modes[1:])}, got {mode!r}")
    if mode in ("", "prefer", "disable"):
        return None if mode != "disable" else False
    context = ssl.create_default_context()
    if mode != "verify-full":
        context.check_hostname = False
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


def _said(error: BaseException) -> str:
    """Return what the server or the driver says, in one line."""
    about = error.args[0] if error.args else ""
    said = about.get("M", about) if isinstance(about, dict) else error
    return " ".join(str(said).split())


def _as_text(values: NDArray[Any]) -> list[str]:
    """Return values in the text format of COPY."""
    if values.dtype == object:
        return ["\\N" if one is None else one.translate(_ESCAPES) for one in values.tolist()]
    if values.dtype == np.bool_:
        return ["t" if one else "f" for one in values.tolist()]
    return list(map(repr, values.tolist()))


# ------------------------------------------------------------------------------------------------ a table of one's own


def column_sql(
    table: str, column: str = "code", *, n_bits: int, id_column: str = "id", k: int = 10, graph: bool = False
) -> str:
    """Return the SQL for a plain column of codes in a table of your own, for people with migrations of their own.

    Parameters
    ----------
    table, column, id_column : str, names in your database; they are quoted
    n_bits : int, bits of a code
    k : int, default 10, how many nearest the query asks for
    graph : bool, default False, whether to make an HNSW index too: approximate, and bad where codes repeat

    Returns
    -------
    str, statements for psql; ``:code`` and ``:id`` are values, a code as ``'0101...'`` (``ilhash.codes.to_text``)

    Examples
    --------
    >>> print(column_sql("products", n_bits=64, id_column="sku"))
    CREATE EXTENSION IF NOT EXISTS vector;
    ALTER TABLE "products" ADD COLUMN "code" bit(64);
    -- fill it, code by code
    UPDATE "products" SET "code" = :code WHERE "sku" = :id;
    -- the 10 nearest, exactly, in the order (distance, sku)
    SELECT "sku", CAST("code" <~> CAST(:code AS bit(64)) AS integer) AS distance
      FROM "products" WHERE "code" IS NOT NULL ORDER BY distance, "sku" LIMIT 10;
    """
    check_count("n_bits", n_bits)
    check_count("k", k)
    wrong = [name for name in (table, column, id_column) if not isinstance(name, str) or not name or "\0" in name]
    if wrong:
        raise ValueError(f"table, column and id_column must be names, got {wrong[0]!r}")
    quoted = '"{}"'.format
    own, code, name = (quoted(one.replace('"', '""')) for one in (table, column, id_column))
    lines = [
        "CREATE EXTENSION IF NOT EXISTS vector;",
        f"ALTER TABLE {own} ADD COLUMN {code} bit({n_bits});",
        "-- fill it, code by code",
        f"UPDATE {own} SET {code} = :code WHERE {name} = :id;",
        f"-- the {k} nearest, exactly, in the order (distance, {id_column})".replace("\n", " "),
        f"SELECT {name}, CAST({code} <~> CAST(:code AS bit({n_bits})) AS integer) AS distance",
        f"  FROM {own} WHERE {code} IS NOT NULL ORDER BY distance, {name} LIMIT {k};",
    ]
    if graph:
        lines += [
            "-- approximate: learned codes repeat, and a graph over rows then misses the nearest (docs/engines.md);",
            "-- only a query that says ORDER BY the operator itself uses it",
            f"CREATE INDEX ON {own} USING hnsw ({code} bit_hamming_ops);",
            "SET hnsw.iterative_scan = strict_order;",
            f"SELECT {name} FROM {own} ORDER BY {code} <~> CAST(:code AS bit({n_bits})) LIMIT {k};",
        ]
    return "\n".join(lines)
