"""Tables for engines that speak SQL: distinct codes, and items that name their code.

::

    <table>_about  key, value         settings as JSON, in one row
    <table>_codes  code               every code once: scans are shorter, and graphs over them work
    <table>_items  id, code, ...      one row per item, with the user's columns

Supervised codes repeat massively. A search looks at distinct codes alone, takes all of them up to the distance of the
k-th with its ties, and only then brings the items, in the order (distance, id).

Statements name their values ``:name``; an engine's ``_rows`` puts them into its own form.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.engines._contract import Codes, Columns, Engine, EngineError, Filter, Ids, Settings, absent, taken
from ilhash.search import Hits, RangeHits

FORMAT = 1
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
OWN_COLUMNS = ("id", "code", "far")
Values = Mapping[str, Any]
_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|::|:([A-Za-z_]\w*)""")
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
STAGED, TOUCHED = "ilhash_staged", "ilhash_touched"


def check_condition(condition: str) -> None:
    """Refuse what could end the condition before its end and begin something else, in whatever engine.

    Examples
    --------
    >>> check_condition("(price < :most) AND note <> ';'")
    >>> check_condition("1 = 1) OR (2 = 2")
    Traceback (most recent call last):
    ...
    ValueError: where must be one condition, closed, without ; and comments, got '1 = 1) OR (2 = 2'
    """
    bare = _QUOTED.sub("", condition)
    depth = np.cumsum([(sign == "(") - (sign == ")") for sign in bare] or [0])
    foreign = [sign for sign in (";", "--", "/*", "#", "$$", "`", "'", '"') if sign in bare]
    # Engines read a backslash in a text in different ways: with one, nobody knows where the text ends.
    if foreign or "\\" in condition or depth.min() < 0 or depth[-1]:
        raise ValueError(f"where must be one condition, closed, without ; and comments, got {condition!r}")


def named_values(condition: str, parameters: Values, prefix: str = "user_") -> tuple[str, dict[str, Any]]:
    """Return a condition whose names have a prefix, so that they meet no name of ours, and the values under it.

    Examples
    --------
    >>> named_values("price < :most AND note <> ':no' AND x::int = 1", {"most": 3})
    ("price < :user_most AND note <> ':no' AND x::int = 1", {'user_most': 3})
    """
    check_condition(condition)
    used = {match[1] for match in _TOKENS.finditer(condition) if match[1]}
    if used != set(parameters):
        wanted = sorted(used) or "none"
        raise ValueError(f"parameters must be those that where names ({wanted}), got {sorted(map(str, parameters))}")
    renamed = _TOKENS.sub(lambda match: f":{prefix}{match[1]}" if match[1] else match[0], condition)
    return renamed, {f"{prefix}{name}": value for name, value in parameters.items()}


def replaced_names(statement: str, form: Any) -> str:
    """Return a statement with ``form(name)`` where it says ``:name``.

    Examples
    --------
    >>> replaced_names("SELECT ':a', :a, x::int", lambda name: f"${name}")
    "SELECT ':a', $a, x::int"
    """
    return _TOKENS.sub(lambda match: form(match[1]) if match[1] else match[0], statement)


class SqlEngine(Engine):
    """Common statements; an engine says how it connects, stages rows and measures a distance."""

    has_columns = True
    types: ClassVar[Mapping[str, str]]  # of columns: int, float, text, bool; "text" is ordered by its bytes
    key_type: ClassVar[str] = ""  # of texts as ids, where that is not "text"

    def __init__(self, table: str, settings: Settings | None, mode: str, writable: bool) -> None:
        if not isinstance(table, str) or not NAME.fullmatch(table):
            raise ValueError(f"table must be a name of at most 40 letters, digits and _, got {table!r}")
        self.table, self.mode, self.writable = table, mode, writable
        self.about, self.distinct, self.items = (f"{table}_{part}" for part in ("about", "codes", "items"))
        if settings is not None:
            self.settings = settings
        self._mostly_distinct: bool | None = None  # not known, or not known any more

    # -------------------------------------------------------------------------------------------- hooks

    @abstractmethod
    def _rows(self, statement: str, values: Values | None = None) -> list[Any]:
        """Run one statement; return its rows, all of them."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Everything inside happens or nothing; one writer at a time."""

    @abstractmethod
    def _stage(self, ids: Ids, codes: Codes | None, columns: Columns) -> None:
        """Put rows into the temporary table STAGED (id, code where there are codes, columns), by the fastest way."""

    @abstractmethod
    def _exists(self, table: str) -> bool:
        """Whether there is such a table."""

    @abstractmethod
    def _code_type(self) -> str:
        """Return the type of a column of codes."""

    @abstractmethod
    def _distance(self, code: str, query: str) -> str:
        """Return the expression of the Hamming distance, a whole number."""

    @abstractmethod
    def _to_code(self, code: NDArray[np.uint8]) -> Any:
        """Return one code as a value of a statement."""

    @abstractmethod
    def _from_codes(self, values: list[Any]) -> Codes:
        """Return codes that rows of a statement hold."""

    def _refuse_id_values(self, ids: Ids) -> None:
        """Refuse ids that the engine cannot hold."""

    # -------------------------------------------------------------------------------------------- places

    def _open_tables(self, new: Settings | None) -> None:
        """Read the settings, or make tables."""
        if self._exists(self.about):
            self.settings = self._read_settings()
        elif new is None:
            raise ValueError(f"table must be one that ilhash made, or n_bits be given to make it, got {self.table!r}")
        elif not self.writable:
            raise ValueError(f"table must be there to be read, got {self.table!r}, of which there is none")
        else:
            self.settings = new
            self._refuse_column_names()
            foreign = [name for name in (self.distinct, self.items) if self._exists(name)]
            if foreign:
                raise ValueError(f"table must be a new name, got {self.table!r}: {foreign[0]} is there and is not ours")
            self.self_check()
            with self._transaction():
                for statement in self._schema():
                    self._rows(statement)
                about = json.dumps({"format": FORMAT, **asdict(new)})
                self._rows(f"INSERT INTO {self.about} VALUES ('ilhash', :about)", {"about": about})

    def _read_settings(self) -> Settings:
        try:
            ((text,),) = self._rows(f"SELECT value FROM {self.about} WHERE key = 'ilhash'")
            about = json.loads(text)
            if about.pop("format") != FORMAT:
                raise ValueError("another format")
            return Settings(**about)
        except (ValueError, TypeError, KeyError, AttributeError, EngineError) as error:
            raise EngineError(f"{self.about} must hold the settings that ilhash wrote, got others: {error}") from None

    def _refuse_column_names(self) -> None:
        wrong = [name for name in self.settings.columns if not NAME.fullmatch(name) or name.lower() in OWN_COLUMNS]
        if wrong:
            rule = f"columns must have names of letters, digits and _ other than {', '.join(OWN_COLUMNS)}"
            raise ValueError(f"{rule}, got {wrong[0]!r}")

    def _schema(self) -> list[str]:
        """Return the statements that make the tables."""
        return [
            f"CREATE TABLE {self.about} (key {self.types['text']} PRIMARY KEY, value {self.types['text']})",
            f"CREATE TABLE {self.distinct} (code {self._code_type()} PRIMARY KEY)",
            f"CREATE TABLE {self.items} ({self._item_columns('PRIMARY KEY', codes=True)})",
            f"CREATE INDEX {self.items}_by_code ON {self.items} (code)",
        ]

    def _id_sql_type(self) -> str:
        return self.types["int"] if self.settings.ids == "int" else self.key_type or self.types["text"]

    def _item_columns(self, key: str, *, codes: bool, columns: bool = True) -> str:
        """Return the columns of a table of items."""
        parts = [f"id {self._id_sql_type()} {key}"] + ([f"code {self._code_type()} NOT NULL"] if codes else [])
        given = self.settings.columns.items() if columns else ()
        return ", ".join([*parts, *(f'"{name}" {self.types[kind]}' for name, kind in given)])

    def count(self) -> int:
        return int(self._rows(f"SELECT count(*) FROM {self.items}")[0][0])

    def describe(self) -> dict[str, Any]:
        distinct = int(self._rows(f"SELECT count(*) FROM {self.distinct}")[0][0])
        return {**super().describe(), "table": self.table, "distinct codes": distinct}

    def _largest_id(self) -> int:
        largest = self._rows(f"SELECT max(id) FROM {self.items}")[0][0]
        return -1 if largest is None else int(largest)

    def _codes(self, ids: Ids) -> tuple[Ids, Codes]:
        with self._staged(ids):
            rows = self._rows(f"SELECT i.id, i.code FROM {STAGED} s JOIN {self.items} i ON i.id = s.id")
        return self._as_ids([row[0] for row in rows]), self._from_codes([row[1] for row in rows])

    def _blocks(self, size: int) -> Iterator[tuple[Ids, Codes]]:
        after, values = "", {"size": size}
        while True:
            rows = self._rows(f"SELECT id, code FROM {self.items} {after} ORDER BY id LIMIT :size", values)
            if not rows:
                return
            yield self._as_ids([row[0] for row in rows]), self._from_codes([row[1] for row in rows])
            after, values = "WHERE id > :last", {"size": size, "last": rows[-1][0]}

    # -------------------------------------------------------------------------------------------- changes

    @contextmanager
    def _staged(self, ids: Ids, codes: Codes | None = None, columns: Columns | None = None) -> Iterator[None]:
        """Have rows in a temporary table for a while."""
        self._refuse_id_values(ids)
        columns = columns or {}
        self._rows(f"DROP TABLE IF EXISTS {STAGED}")
        body = self._item_columns("PRIMARY KEY", codes=codes is not None, columns=bool(columns))
        self._rows(f"CREATE TEMPORARY TABLE {STAGED} ({body})")
        try:
            self._stage(ids, codes, columns)
            yield
        except BaseException:
            with suppress(EngineError):  # in a transaction that failed it goes with the rest
                self._rows(f"DROP TABLE IF EXISTS {STAGED}")
            raise
        self._rows(f"DROP TABLE IF EXISTS {STAGED}")

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        names = "".join(f', "{name}"' for name in columns)
        self._mostly_distinct = None
        with self._transaction(), self._staged(ids, codes, columns):
            ((known,),) = self._rows(f"SELECT count(*) FROM {STAGED} s JOIN {self.items} i ON i.id = s.id")
            if known:
                raise taken(known, len(ids))
            self._add_codes()
            self._rows(f"INSERT INTO {self.items} (id, code{names}) SELECT id, code{names} FROM {STAGED}")

    def _update(self, codes: Codes, ids: Ids) -> None:
        self._mostly_distinct = None
        with self._transaction(), self._staged(ids, codes), self._orphans_go():
            self._refuse_absent(len(ids))
            self._add_codes()
            new = f"SELECT s.code FROM {STAGED} s WHERE s.id = {self.items}.id"
            self._rows(f"UPDATE {self.items} SET code = ({new}) WHERE id IN (SELECT id FROM {STAGED})")

    def _remove(self, ids: Ids) -> None:
        self._mostly_distinct = None
        with self._transaction(), self._staged(ids), self._orphans_go():
            self._refuse_absent(len(ids))
            self._rows(f"DELETE FROM {self.items} WHERE id IN (SELECT id FROM {STAGED})")

    def _add_codes(self) -> None:
        """Add codes that are not there yet."""
        there = f"EXISTS (SELECT 1 FROM {self.distinct} c WHERE c.code = s.code)"
        self._rows(f"INSERT INTO {self.distinct} SELECT DISTINCT code FROM {STAGED} s WHERE NOT {there}")

    def _refuse_absent(self, n: int) -> None:
        ((known,),) = self._rows(f"SELECT count(*) FROM {STAGED} s JOIN {self.items} i ON i.id = s.id")
        if known < n:
            raise absent(n - known, n)

    @contextmanager
    def _orphans_go(self) -> Iterator[None]:
        """After a change, take away codes of the staged items that no item has any more."""
        self._rows(f"DROP TABLE IF EXISTS {TOUCHED}")
        of_items = f"SELECT DISTINCT code FROM {self.items} WHERE id IN (SELECT id FROM {STAGED})"
        self._rows(f"CREATE TEMPORARY TABLE {TOUCHED} AS {of_items}")
        yield
        used = f"EXISTS (SELECT 1 FROM {self.items} i WHERE i.code = {self.distinct}.code)"
        self._rows(f"DELETE FROM {self.distinct} WHERE code IN (SELECT code FROM {TOUCHED}) AND NOT {used}")
        self._rows(f"DROP TABLE {TOUCHED}")

    # -------------------------------------------------------------------------------------------- search

    def _nearest(self, queries: Codes, k: int, wanted: Filter) -> Hits:
        if wanted:
            with self._condition(wanted) as (condition, values):
                found = self._ask(queries, self._filtered(condition, "ORDER BY far, i.id LIMIT :k"), {**values, "k": k})
            return self._hits(found, k, exact=True)
        found = self._ask(queries, self._nearest_statement(), {"k": k})
        return self._hits(found, k, exact=self.mode == "exact")

    def _within(self, queries: Codes, radius: int, wanted: Filter) -> RangeHits:
        if wanted:
            with self._condition(wanted) as (condition, values):
                near = f"({condition}) AND {self._distance('i.code', ':query')} <= :radius"
                values = {**values, "radius": radius}
                found = self._ask(queries, self._filtered(near, "ORDER BY far, i.id"), values)
        else:
            codes = f"SELECT code, {self._distance('code', ':query')} AS far FROM {self.distinct}"
            statement = f"SELECT i.id, c.far FROM ({codes}) c JOIN {self.items} i ON i.code = c.code"
            statement += " WHERE c.far <= :radius ORDER BY c.far, i.id"
            found = self._ask(queries, statement, {"radius": radius})
        return self._range_hits(found)

    def _at_most(self, k: int) -> int:
        return min(k, 2**31 - 1)  # a limit, of which engines take no larger one

    def _nearest_statement(self) -> str:
        """Return the statement of the k nearest: all codes up to the distance of the k-th, then their items.

        That looks at codes twice, for the distance and for its ties; where most are distinct, at items once.
        """
        if self._mostly_distinct is None:
            counts = f"SELECT (SELECT count(*) FROM {self.distinct}), (SELECT count(*) FROM {self.items})"
            ((codes, items),) = self._rows(counts)
            self._mostly_distinct = 2 * codes > items
        if self._mostly_distinct:
            return self._filtered("1 = 1", "ORDER BY far, i.id LIMIT :k")
        far, of_item = self._distance("code", ":query"), self._distance("i.code", ":query")
        edge = f"SELECT max(far) FROM (SELECT {far} AS far FROM {self.distinct} ORDER BY far LIMIT :k) e"
        near = f"WITH near AS MATERIALIZED (SELECT code FROM {self.distinct} WHERE {far} <= ({edge}))"
        join = f"SELECT i.id, {of_item} AS far FROM near c JOIN {self.items} i ON i.code = c.code"
        return f"{near} {join} ORDER BY far, i.id LIMIT :k"

    def _filtered(self, condition: str, rest: str) -> str:
        """Return the statement that looks at the items a condition leaves."""
        return f"SELECT i.id, {self._distance('i.code', ':query')} AS far FROM {self.items} i WHERE {condition} {rest}"

    @contextmanager
    def _condition(self, wanted: Filter) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give a condition on items, and its values, while the ids that are allowed are staged."""
        condition, values = ("1 = 1", {}) if wanted.where is None else named_values(wanted.where, wanted.parameters)
        if wanted.allowed is None:
            yield f"({condition})", values
            return
        with self._staged(wanted.allowed):
            yield f"({condition}) AND i.id IN (SELECT id FROM {STAGED})", values

    def _ask(self, queries: Codes, statement: str, values: Values) -> list[tuple[Ids, NDArray[Any]]]:
        """Run a statement for each query; its rows are ids and distances."""
        out = []
        for query in queries:
            rows = self._rows(statement, {**values, "query": self._to_code(query)})
            out.append((self._as_ids([row[0] for row in rows]), np.array([row[1] for row in rows], np.int32)))
        return out

    def _measured(self, codes: Codes, query: Codes) -> tuple[Codes, list[int]]:
        far = self._distance(f"CAST(:code AS {self._code_type()})", f"CAST(:query AS {self._code_type()})")
        statement = f"SELECT CAST(:code AS {self._code_type()}), {far}"
        asked = self._to_code(query[0])
        rows = [self._rows(statement, {"code": self._to_code(code), "query": asked})[0] for code in codes]
        return self._from_codes([row[0] for row in rows]), [int(row[1]) for row in rows]
