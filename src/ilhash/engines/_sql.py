"""Tables for engines that speak SQL: distinct codes, and items that name their code.

::

    <table>_about  key, value         settings as JSON, in one row, and how often their bits have changed
    <table>_codes  code               every code once: scans are shorter, and graphs over them work
    <table>_items  id, code, ...      one row per item, with the user's columns

Supervised codes repeat massively. A search looks at distinct codes alone, takes all of them up to the distance of the
k-th with its ties, and only then brings the items, in the order (distance, id).

Statements name their values ``:name``; an engine's ``_rows`` puts them into its own form.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash.engines._bits import BitChange
from ilhash.engines._contract import Engine
from ilhash.engines._settings import BLOCK, Codes, Columns, EngineError, Filter, Ids, Settings, absent, taken
from ilhash.engines._statements import NAME, OWN_COLUMNS, Values, as_json, from_json, named_values
from ilhash.search import Hits, RangeHits

STAGED, TOUCHED, RECODED = "ilhash_staged", "ilhash_touched", "ilhash_recoded"  # temporary tables


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
        self._n_changes = 0  # of bits

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

    @abstractmethod
    def _declared(self, table: str) -> str:
        """Return the type of the column of codes that a table has, empty where it has none."""

    def _refuse_id_values(self, ids: Ids) -> None:
        """Refuse ids that the engine cannot hold."""

    # -------------------------------------------------------------------------------------------- places

    def _open_tables(self, new: Settings | None) -> None:
        """Read the settings, or make tables."""
        if self._exists(self.about):
            self.settings, self._n_changes = self._read_settings()
            self._refuse_other_columns()
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
                about = as_json(new, self._n_changes)
                self._rows(f"INSERT INTO {self.about} VALUES ('ilhash', :about)", {"about": about})

    def _read_settings(self) -> tuple[Settings, int]:
        try:
            ((text,),) = self._rows(f"SELECT value FROM {self.about} WHERE key = 'ilhash'")
            return from_json(text)
        except (ValueError, TypeError, KeyError, AttributeError, EngineError) as error:
            raise EngineError(f"{self.about} must hold the settings that ilhash wrote, got others: {error}") from None

    def _refuse_other_columns(self) -> None:
        for table in (self.distinct, self.items):
            found = self._declared(table)
            if found != self._code_type():
                rule = f"{table} must have a column code of {self._code_type()} for {self.n_bits} bits"
                raise EngineError(f"{rule}, got {found or 'none'}")

    def _refuse_other_bits(self) -> None:
        """Refuse to go on where another client has changed the bits: codes that are known here mean something else."""
        if self.several_writers and self._read_settings() != (self.settings, self._n_changes):
            rule = f"the bits of {self.table} must be those with which it was opened"
            raise EngineError(f"{rule}, got others: another client has changed them, open it again")

    @contextmanager
    def _same_bits(self) -> Iterator[None]:
        """Have what is read here be of the bits that are known: looked up afterwards, when it can no longer change."""
        try:
            yield
        except (EngineError, ValueError):
            self._refuse_other_bits()  # which says why
            raise
        self._refuse_other_bits()

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
        with self._same_bits():
            with self._staged(ids):
                rows = self._rows(f"SELECT i.id, i.code FROM {STAGED} s JOIN {self.items} i ON i.id = s.id")
            return self._as_ids([row[0] for row in rows]), self._from_codes([row[1] for row in rows])

    def _blocks(self, size: int) -> Iterator[tuple[Ids, Codes]]:
        after, values = "", {"size": size}
        while True:
            with self._same_bits():
                rows = self._rows(f"SELECT id, code FROM {self.items} {after} ORDER BY id LIMIT :size", values)
                ids, codes = self._as_ids([row[0] for row in rows]), self._from_codes([row[1] for row in rows])
            if not rows:
                return
            yield ids, codes
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

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Everything inside happens or nothing, to items of the bits that are known."""
        self._mostly_distinct = None
        with self._transaction():
            self._refuse_other_bits()
            yield

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        names = "".join(f', "{name}"' for name in columns)
        with self._change(), self._staged(ids, codes, columns):
            ((known,),) = self._rows(f"SELECT count(*) FROM {STAGED} s JOIN {self.items} i ON i.id = s.id")
            if known:
                raise taken(known, len(ids))
            self._add_codes()
            self._rows(f"INSERT INTO {self.items} (id, code{names}) SELECT id, code{names} FROM {STAGED}")

    def _update(self, codes: Codes, ids: Ids) -> None:
        with self._change(), self._staged(ids, codes), self._orphans_go():
            self._refuse_absent(len(ids))
            self._add_codes()
            new = f"SELECT s.code FROM {STAGED} s WHERE s.id = {self.items}.id"
            self._rows(f"UPDATE {self.items} SET code = ({new}) WHERE id IN (SELECT id FROM {STAGED})")

    def _remove(self, ids: Ids) -> None:
        with self._change(), self._staged(ids), self._orphans_go():
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

    # -------------------------------------------------------------------------------------------- other bits

    def _recode(self, change: BitChange) -> None:
        """Make all new codes in a temporary table, then let them take the place of the old ones, in one transaction."""
        before = self.settings
        try:
            with self._change():
                self._make_recoded(change)
                self.settings = change.settings
                self._swap_codes()
                self._rows(f"DROP TABLE {RECODED}")
                about = {"about": as_json(change.settings, self._n_changes + 1)}
                self._rows(f"UPDATE {self.about} SET value = :about WHERE key = 'ilhash'", about)
        except BaseException:
            self.settings = before
            raise
        self._n_changes += 1

    def _make_recoded(self, change: BitChange) -> None:
        """Fill the temporary table of ids and new codes."""
        self._rows(f"DROP TABLE IF EXISTS {RECODED}")
        with self._as(change.settings):
            body = self._item_columns("PRIMARY KEY", codes=True, columns=False)
            self._rows(f"CREATE TEMPORARY TABLE {RECODED} ({body})")
        for ids, codes in self._blocks(BLOCK):
            with self._as(change.settings), self._staged(ids, change.recoded(ids, codes)):
                self._rows(f"INSERT INTO {RECODED} SELECT id, code FROM {STAGED}")
        change.finish()

    @contextmanager
    def _as(self, settings: Settings) -> Iterator[None]:
        """Have other settings for a while, by which types and codes are written."""
        before, self.settings = self.settings, settings
        try:
            yield
        finally:
            self.settings = before

    @abstractmethod
    def _swap_codes(self) -> None:
        """Give items the codes of the table RECODED, and columns their new type; the table of codes follows."""

    # -------------------------------------------------------------------------------------------- search

    def _nearest(self, queries: Codes, k: int, wanted: Filter) -> Hits:
        if wanted:
            with self._same_bits(), self._condition(wanted) as (condition, values):
                found = self._ask(queries, self._filtered(condition, "ORDER BY far, i.id LIMIT :k"), {**values, "k": k})
            return self._hits(found, k, exact=True)
        with self._same_bits():
            found = self._ask(queries, self._nearest_statement(), {"k": k})
        return self._hits(found, k, exact=self.mode == "exact")

    def _within(self, queries: Codes, radius: int, wanted: Filter) -> RangeHits:
        if wanted:
            with self._same_bits(), self._condition(wanted) as (condition, values):
                near = f"({condition}) AND {self._distance('i.code', ':query')} <= :radius"
                values = {**values, "radius": radius}
                found = self._ask(queries, self._filtered(near, "ORDER BY far, i.id"), values)
        else:
            codes = f"SELECT code, {self._distance('code', ':query')} AS far FROM {self.distinct}"
            statement = f"SELECT i.id, c.far FROM ({codes}) c JOIN {self.items} i ON i.code = c.code"
            statement += " WHERE c.far <= :radius ORDER BY c.far, i.id"
            with self._same_bits():
                found = self._ask(queries, statement, {"radius": radius})
        return self._range_hits(found)

    def _at_most(self, k: int) -> int:
        return min(k, 2**31 - 1)  # a limit, of which engines take no larger one

    def _nearest_statement(self) -> str:
        """Return the statement of the k nearest: all codes up to the distance of the k-th, then their items.

        That looks at codes twice, for the distance and for its ties; where most are distinct, at items once.
        """
        if self._is_mostly_distinct():
            return self._nearest_of_items()
        far, of_item = self._distance("code", ":query"), self._distance("i.code", ":query")
        edge = f"SELECT max(far) FROM (SELECT {far} AS far FROM {self.distinct} ORDER BY far LIMIT :k) e"
        near = f"WITH near AS MATERIALIZED (SELECT code FROM {self.distinct} WHERE {far} <= ({edge}))"
        join = f"SELECT i.id, {of_item} AS far FROM near c JOIN {self.items} i ON i.code = c.code"
        return f"{near} {join} ORDER BY far, i.id LIMIT :k"

    def _is_mostly_distinct(self) -> bool:
        """Whether most items have a code of their own."""
        if self._mostly_distinct is None:
            counts = f"SELECT (SELECT count(*) FROM {self.distinct}), (SELECT count(*) FROM {self.items})"
            ((codes, items),) = self._rows(counts)
            self._mostly_distinct = 2 * codes > items
        return self._mostly_distinct

    def _nearest_of_items(self) -> str:
        return self._filtered("1 = 1", "ORDER BY far, i.id LIMIT :k")

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
