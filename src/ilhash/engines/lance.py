"""LanceDB: a folder of Lance tables, in this process; codes as fixed lists of uint8, distances by its own Hamming scan.

::

    <table>_items  id, code, key, ...  the truth: a change is one version of it, wholly there or not at all
    <table>_codes  code, key           every code once; made from the items, and at least all of theirs

Lance has no transaction over two tables. New codes are therefore written before the items that have them, and codes
that no item has any more stay until they are the most: a process that is killed in between leaves a code
too many, which brings no item. ``key`` is the code in hexadecimal digits, by which a scalar index finds its items.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._extras import require
from ilhash.engines._contract import BLOCK, Codes, Columns, Engine, EngineError, Filter, Ids, Settings, absent, taken
from ilhash.engines._places import path_of
from ilhash.engines._sql import FORMAT, NAME, named_values, replaced_names
from ilhash.search import Hits, RangeHits
from ilhash.storage import StoreLockedError, WriterLock

WAIT = 30.0  # seconds for another writer
LITERALS = 1000  # values that a condition names; more are compared outside of it
FRAGMENTS = 32  # small ones, after which they are put together
KEPT = timedelta(hours=1)  # how long versions stay for those who read them
NPROBES, EF = 20, 100  # partitions, and codes of a graph, that an approximate search looks at, at least
INDEXED = 1000  # distinct codes from which on an approximate mode has an index; fewer are scanned
OWN_COLUMNS = ("id", "code", "key")
_RUST = re.compile(r",? ?(?:LanceError[^,]*, )?/\S+\.rs:\d+(?::\d+)?")


def literal(value: Any) -> str:
    """Return a value as Lance's SQL writes it, which has no parameters: a number, a text or a truth, nothing else.

    Examples
    --------
    >>> [literal(value) for value in (3, 0.5, True, "it's")]
    ['3', '0.5', 'TRUE', "'it''s'"]
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) and -(2**63) < value < 2**63:
        return str(int(value))
    if isinstance(value, int) and value == -(2**63):
        return f"({value + 1} - 1)"  # its digits without the sign are no whole number of 64 bits: it became a float
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise ValueError(f"parameters must be finite numbers of 64 bits, texts or bools with lance, got {value!r}")


def condition_of(where: str, parameters: Mapping[str, Any]) -> str:
    """Return a condition in brackets with its values in it.

    Lance reads the first condition that a text begins with and forgets the rest: brackets make it read all.

    Examples
    --------
    >>> condition_of("price < :most AND note <> ':no; --'", {"most": 3})
    "(price < 3 AND note <> ':no; --')"
    """
    renamed, values = named_values(where, parameters)
    return f"({replaced_names(renamed, lambda name: literal(values[name]))})"


@contextlib.contextmanager
def one_sentence(what: str) -> Iterator[None]:
    """Turn errors of Lance, some of which are panics of Rust, into one sentence."""
    try:
        yield
    except EngineError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        said = _RUST.sub("", " ".join(str(error).split()))
        raise EngineError(f"{what}, got an error: {said[:400]}") from None


class Lance(Engine):
    """Tables in a folder of LanceDB."""

    name = "lance"
    modes = ("exact", "ivf", "hnsw")
    has_columns = True
    several_writers = True
    rows_at_once = 1 << 20  # every change writes a version of its own, which stays for a while
    promise = (
        "A change is one version of the table of items: when add, update and remove return it is there, wholly, and "
        "after a process was killed wholly or not at all; Lance leaves it to the system when files reach the disk, so "
        "that a power cut may take the last changes. Writers of one machine wait for each other; change the tables "
        "through ilhash alone."
    )

    def __init__(self, path: Path, table: str, mode: str, writable: bool) -> None:
        if not isinstance(table, str) or not NAME.fullmatch(table):
            raise ValueError(f"table must be a name of at most 40 letters, digits and _, got {table!r}")
        self._lancedb, self._arrow, self._index = (
            require(module, "lance", "the engine lance") for module in ("lancedb", "pyarrow", "lancedb.index")
        )
        self._compute = require("pyarrow.compute", "lance", "the engine lance")
        self._ordering = require("lancedb.query", "lance", "the engine lance").ColumnOrdering
        self.path, self.table, self.mode, self.writable = path, table, mode, writable
        with one_sentence(f"{path} must be a folder of LanceDB"):
            self._connection = self._lancedb.connect(str(path))

    # -------------------------------------------------------------------------------------------- places

    @classmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> Lance:
        """Open the folder, or make it."""
        path = path_of(url)
        if path.exists() and not path.is_dir():
            raise EngineError(f"url must name a folder of LanceDB, got {path}, which is a file")
        if not path.exists() and (new is None or not writable):
            raise FileNotFoundError(f"url must name a folder that is there, or n_bits be given to make it, got {path}")
        engine = cls(path, table, mode, writable)
        engine._open_tables(new)
        return engine

    def _open_tables(self, new: Settings | None) -> None:
        with one_sentence(f"{self.path} must be a folder of LanceDB"):
            there = self._names_of_tables()
        items, distinct = f"{self.table}_items", f"{self.table}_codes"
        if items not in there:
            if new is None or not self.writable:
                given = f"table must be one that ilhash made, or n_bits be given to make it, got {self.table!r}"
                raise ValueError(given)
            self._make(new, items, distinct)
        with one_sentence(f"{items} must be a table that ilhash wrote"):
            self._items = self._connection.open_table(items)
            self.settings = self._read_settings()
        if distinct not in self._names_of_tables():
            self._make_codes(distinct)
        with one_sentence(f"{distinct} must be a table that ilhash wrote"):
            self._distinct = self._connection.open_table(distinct)
            self._check_columns(self._distinct, self._schema(("code", "key")))
        if self.writable and self.mode != "exact":
            with self._change():
                self._index_codes()

    def _names_of_tables(self) -> set[str]:
        return {path.name.removesuffix(".lance") for path in self.path.glob("*.lance")}

    def _make(self, new: Settings, items: str, distinct: str) -> None:
        self.settings = new
        self._refuse_column_names()
        self.self_check()
        with self._change(), one_sentence(f"{self.path} must be a folder in which LanceDB can make tables"):
            if items in self._names_of_tables():
                return  # another client was faster
            if distinct in self._names_of_tables():  # of one that was killed here, or somebody else's
                self._check_columns(self._connection.open_table(distinct), self._schema(("code", "key")))
                self._connection.drop_table(distinct)
            self._indexed(self._connection.create_table(distinct, schema=self._schema(("code", "key"))), "key")
            # the place is there from here on: its table and what it says about itself are one version
            self._indexed(self._connection.create_table(items, schema=self._schema()), "id", "key")

    def _indexed(self, table: Any, *columns: str) -> None:
        for column in columns:
            table.create_index(column, config=self._index.BTree())

    def _read_settings(self) -> Settings:
        about = json.loads((self._items.schema.metadata or {})[b"ilhash"])
        if about.pop("format") != FORMAT:
            raise ValueError("another format")
        self.settings = Settings(**about)
        self._check_columns(self._items, self._schema())
        return self.settings

    def _check_columns(self, table: Any, wanted: Any) -> None:
        found = table.schema
        if not found.equals(wanted) or b"ilhash" not in (found.metadata or {}):
            raise ValueError(f"columns must be {_said(wanted)}, got {_said(found)}")

    def _schema(self, names: tuple[str, ...] | None = None) -> Any:
        """Return columns of a table; what the place is stands in the metadata."""
        arrow = self._arrow
        types = {"int": arrow.int64(), "float": arrow.float64(), "text": arrow.string(), "bool": arrow.bool_()}
        fields = [
            arrow.field("id", arrow.int64() if self.settings.ids == "int" else arrow.string(), nullable=False),
            arrow.field("code", arrow.list_(arrow.uint8(), packed.bytes_per_code(self.n_bits)), nullable=False),
            arrow.field("key", arrow.string(), nullable=False),
            *(arrow.field(name, types[kind]) for name, kind in self.settings.columns.items()),
        ]
        about = json.dumps({"format": FORMAT, **asdict(self.settings)})
        return arrow.schema(
            [field for field in fields if names is None or field.name in names], metadata={"ilhash": about}
        )

    def _refuse_column_names(self) -> None:
        names = list(self.settings.columns)
        wrong = [name for name in names if not NAME.fullmatch(name) or name.lower() in OWN_COLUMNS or name[0] == "_"]
        wrong += [name for name in names if sum(name.lower() == other.lower() for other in names) > 1]
        if wrong:
            rule = f"columns must have names of letters, digits and _, each once, other than {', '.join(OWN_COLUMNS)}"
            raise ValueError(f"{rule}, got {wrong[0]!r}")

    def close(self) -> None:
        """Let go of the folder; nothing of it is held open."""

    def _version(self) -> str:
        return f"lancedb {self._lancedb.__version__}"

    def describe(self) -> dict[str, Any]:
        """Say what this is, and how many distinct codes it has or had."""
        told = {**super().describe(), "table": self.table}
        with self._reading():
            return {**told, "distinct codes": self._distinct.count_rows()}

    # -------------------------------------------------------------------------------------------- reading

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Be at the newest version of the items, and at codes that hold all of theirs, until the next reading."""
        with one_sentence(f"the tables {self.table} of {self.path} must be readable"):
            while True:
                self._items.checkout_latest()
                version = self._items.version
                self._distinct.checkout_latest()
                self._items.checkout_latest()  # codes may have been dropped after a change in between
                if self._items.version == version:
                    break
            yield

    def count(self) -> int:
        """Return the number of items."""
        with self._reading():
            return int(self._items.count_rows())

    def _largest_id(self) -> int:
        with self._reading():
            last = self._ordered(self._items.search().select(["id"]), descending=True).limit(1).to_arrow()
        return int(last["id"][0].as_py()) if len(last) else -1

    def _ordered(self, query: Any, *, descending: bool = False) -> Any:
        return query.order_by([self._ordering(column_name="id", ascending=not descending)])

    def _codes(self, ids: Ids) -> tuple[Ids, Codes]:
        with self._reading():
            rows = self._rows_of(self._items, "id", ids.tolist(), ["id", "code"])
        return self._ids_in(rows), self._codes_in(rows)

    def _rows_of(self, table: Any, by: str, values: list[Any], columns: list[str], also: str | None = None) -> Any:
        """Return columns of the rows that have one of these values, of many without a condition that names them."""
        query = table.search().select(columns)
        if len(values) <= LITERALS:
            return query.where(self._is_one_of(by, values, also)).to_arrow()
        wanted = self._arrow.array(values, table.schema.field(by).type)
        query = query if also is None else query.where(also)
        parts = [batch.filter(self._compute.is_in(batch[by], wanted)) for batch in query.to_batches()]
        return self._arrow.Table.from_batches(parts) if parts else query.limit(0).to_arrow()

    def _is_one_of(self, column: str, values: list[Any], also: str | None = None) -> str:
        one_of = f"{column} IN ({', '.join(map(literal, values))})" if values else "FALSE"
        return one_of if also is None else f"{one_of} AND {also}"

    def _ids_in(self, rows: Any) -> Ids:
        return self._as_ids(rows["id"].to_numpy() if self.settings.ids == "int" else rows["id"].to_pylist())

    def _codes_in(self, rows: Any) -> Codes:
        width = packed.bytes_per_code(self.n_bits)
        lists = rows["code"].combine_chunks()
        return np.array(lists.flatten().to_numpy(), np.uint8).reshape(-1, width)

    def _blocks(self, size: int) -> Iterator[tuple[Ids, Codes]]:
        with one_sentence(f"the tables {self.table} of {self.path} must be readable"):
            items = self._connection.open_table(f"{self.table}_items")  # stays at its version, whatever happens
        after = None
        while True:
            with one_sentence(f"the tables {self.table} of {self.path} must be readable"):
                query = self._ordered(items.search().select(["id", "code"])).limit(size)
                rows = (query if after is None else query.where(f"id > {literal(after)}")).to_arrow()
            if not len(rows):
                return
            ids = self._ids_in(rows)
            yield ids, self._codes_in(rows)
            after = ids[-1]

    # -------------------------------------------------------------------------------------------- changes

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        """Be the one writer of this table."""
        if not self.writable:
            raise EngineError("lance must be opened with writable=True to be changed, got False")
        until = time.monotonic() + WAIT
        while True:
            try:
                lock = WriterLock(self.path / f"{self.table}.lock")
                break
            except StoreLockedError as error:
                if time.monotonic() > until:
                    raise EngineError(str(error)) from None
                time.sleep(0.002)
        try:
            yield
        finally:
            lock.release()

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        with self._change():
            known = self._n_known(ids)
            if known:
                raise taken(known, len(ids))
            with one_sentence("lance must be able to add items"):
                rows = self._rows(codes, ids, columns)
                self._add_codes(codes)
                self._items.add(rows)
            self._tidy(len(ids))

    def _update(self, codes: Codes, ids: Ids) -> None:
        with self._change():
            self._refuse_absent(ids)
            with one_sentence("lance must be able to change items"):
                self._add_codes(codes)
                self._items.merge_insert("id").when_matched_update_all().execute(self._rows(codes, ids, None))
            self._tidy(len(ids))

    def _remove(self, ids: Ids) -> None:
        with self._change():
            self._refuse_absent(ids)
            with one_sentence("lance must be able to remove items"):
                self._items.delete(self._is_one_of("id", ids.tolist()))
            self._tidy(len(ids))

    def _n_known(self, ids: Ids) -> int:
        with self._reading():
            return len(self._rows_of(self._items, "id", ids.tolist(), ["id"]))

    def _refuse_absent(self, ids: Ids) -> None:
        known = self._n_known(ids)
        if known < len(ids):
            raise absent(len(ids) - known, len(ids))

    def _rows(self, codes: Codes, ids: Ids | None, columns: Columns | None) -> Any:
        """Return an Arrow table of items, of their ids and codes where columns are None, of codes without ids."""
        names = None if columns is not None else ("code", "key") if ids is None else ("id", "code", "key")
        schema = self._schema(names)
        keys = self._arrow.array(packed.to_hex(codes, self.n_bits), self._arrow.string())
        lists = self._arrow.FixedSizeListArray.from_arrays(self._arrow.array(codes.ravel()), codes.shape[1])
        given = [] if ids is None else [self._arrow.array(ids.tolist(), schema.field("id").type)]
        others = [
            self._arrow.array(values.tolist(), schema.field(name).type) for name, values in (columns or {}).items()
        ]
        return self._arrow.table([*given, lists, keys, *others], schema=schema)

    def _add_codes(self, codes: Codes) -> None:
        """Add codes that are not there yet."""
        distinct = distinct_codes(codes)
        keys = packed.to_hex(distinct, self.n_bits)
        known = set(self._rows_of(self._distinct, "key", keys, ["key"])["key"].to_pylist())
        new = distinct[[key not in known for key in keys]]
        if len(new):
            self._distinct.add(self._rows(new, None, None))

    def _make_codes(self, name: str) -> None:
        """Make the table of codes again from the items, which are the truth."""
        with self._change(), one_sentence(f"{name} must be a table that LanceDB can make"):
            if name not in self._names_of_tables():
                distinct = distinct_codes(self._codes_in(self._items.search().select(["code"]).to_arrow()))
                self._indexed(self._connection.create_table(name, self._rows(distinct, None, None)), "key")

    def _tidy(self, n_changed: int) -> None:
        """Put small fragments together, bring indexes up to date, drop codes and versions that nobody needs.

        The change before it has been done: what goes wrong here goes wrong again when it matters.
        """
        with contextlib.suppress(EngineError), one_sentence("lance must be able to tidy up"):
            n_items, n_codes = self._items.count_rows(), self._distinct.count_rows()
            if n_codes > 2 * n_items + INDEXED:
                self._drop_codes()
            for table in (self._items, self._distinct):
                small = table.stats()["fragment_stats"]["num_small_fragments"]
                if n_changed >= BLOCK or small > FRAGMENTS:
                    table.optimize(cleanup_older_than=KEPT)
            self._index_codes()

    def _drop_codes(self) -> None:
        keys = self._compute.unique(self._items.search().select(["key"]).to_arrow()["key"])
        unused = self._distinct.merge_insert("key").when_not_matched_by_source_delete()
        unused.execute(self._arrow.table({"key": keys}, schema=self._schema(("key",))))

    def _index_codes(self) -> None:
        """See that the approximate mode has its index; codes that come later are scanned until they are in it."""
        n = self._distinct.count_rows()
        kind = {"ivf": "IvfFlat", "hnsw": "IvfHnswFlat"}.get(self.mode)
        if kind is None or n < INDEXED:
            return
        if kind in [str(index.index_type) for index in self._distinct.list_indices()]:
            return
        of_mode = {
            "ivf": lambda: self._index.IvfFlat(distance_type="hamming", num_partitions=max(1, round(n**0.5 / 4))),
            "hnsw": lambda: self._index.HnswFlat(
                distance_type="hamming", m=12, ef_construction=64, num_partitions=max(1, n // 20_000)
            ),
        }
        self._distinct.create_index("code", config=of_mode[self.mode]())

    # -------------------------------------------------------------------------------------------- search

    def _nearest(self, queries: Codes, k: int, wanted: Filter) -> Hits:
        if wanted:
            with self._wanted(wanted) as (table, condition):
                found = [self._nearest_rows(table, query, k, condition) for query in queries]
            return self._hits(found, k, exact=True)
        with self._reading():
            found = [self._nearest_of_codes(query, k) for query in queries]
        return self._hits(found, k, exact=self.mode == "exact")

    def _within(self, queries: Codes, radius: int, wanted: Filter) -> RangeHits:
        found = []
        with self._wanted(wanted) as (table, condition):
            for query in queries:
                asked = self._asked(table, query, condition).distance_range(None, radius + 1.0)
                found.append(self._in_order(asked.limit(max(table.count_rows(), 1)).to_arrow()))
        return self._range_hits(found)

    def _asked(self, table: Any, query: NDArray[np.uint8], condition: str | None = None, column: str = "id") -> Any:
        """Return a search that looks at all rows, those that meet a condition alone."""
        asked = table.search(query, vector_column_name="code").distance_type("hamming").bypass_vector_index()
        asked = asked.select([column, "_distance"])
        return asked if condition is None else asked.where(condition, prefilter=True)

    def _in_order(self, rows: Any) -> tuple[Ids, NDArray[Any]]:
        rows = rows.sort_by([("_distance", "ascending"), ("id", "ascending")])
        return self._ids_in(rows), rows["_distance"].to_numpy().astype(np.int32)

    @contextlib.contextmanager
    def _wanted(self, wanted: Filter) -> Iterator[tuple[Any, str | None]]:
        """Give a table and a condition: the items, or in memory those of many allowed ids."""
        condition = None if wanted.where is None else condition_of(wanted.where, wanted.parameters)
        with self._reading(), one_sentence("where must be a condition that lance understands"):
            if wanted.allowed is None:
                yield self._items, condition
            elif len(wanted.allowed) <= LITERALS:
                yield self._items, self._is_one_of("id", wanted.allowed.tolist(), condition)
            else:
                rows = self._rows_of(self._items, "id", wanted.allowed.tolist(), ["id", "code"], condition)
                yield self._in_memory(rows), None

    def _in_memory(self, rows: Any) -> Any:
        return self._lancedb.connect("memory://").create_table("some", rows)

    def _nearest_rows(self, table: Any, query: NDArray[np.uint8], k: int, condition: str | None) -> Any:
        """Look at items: the k nearest, then all that are as far as the last of them."""
        near = self._asked(table, query, condition).limit(k).to_arrow()
        if len(near) == k:
            edge = float(self._compute.max(near["_distance"]).as_py())
            ties = self._asked(table, query, condition).distance_range(edge, edge + 1).limit(table.count_rows())
            nearer = near.filter(self._compute.less(near["_distance"], edge))
            near = self._arrow.concat_tables([nearer, ties.to_arrow()])
        ids, far = self._in_order(near)
        return ids[:k], far[:k]

    def _nearest_of_codes(self, query: NDArray[np.uint8], k: int) -> tuple[Ids, NDArray[Any]]:
        """Look at codes, as many as it takes: some may have no item any more."""
        n, size = self._distinct.count_rows(), k
        while True:
            ids, far, seen = self._items_of_codes(query, k, size)
            if len(ids) >= k or seen < size or size >= n:
                return ids, far
            size *= 4

    def _items_of_codes(self, query: NDArray[np.uint8], k: int, size: int) -> tuple[Ids, NDArray[Any], int]:
        """Return the nearest items of so many codes, distance by distance, and how many codes were found."""
        asked = self._asked(self._distinct, query, column="key")
        if self.mode != "exact":
            asked = self._distinct.search(query, vector_column_name="code").distance_type("hamming")
            asked = asked.select(["key", "_distance"]).nprobes(NPROBES).ef(max(EF, 2 * size))
        near = asked.limit(size).to_arrow()
        keys, far = np.array(near["key"].to_pylist(), object), near["_distance"].to_numpy()
        levels = np.unique(far)
        found: list[Ids] = []
        missing = k
        for level in levels:
            some = keys[far == level]
            if level == levels[-1] and len(near) == size and self.mode == "exact":  # there may be more of them
                ties = self._asked(self._distinct, query, column="key").distance_range(float(level), float(level) + 1)
                some = ties.limit(self._distinct.count_rows()).to_arrow()["key"].to_pylist()
            found.append(self._ids_with(list(some), missing))
            missing -= len(found[-1])
            if missing <= 0:
                break
        distances = np.repeat(levels[: len(found)], [len(ids) for ids in found]).astype(np.int32)
        return np.concatenate([self._as_ids([]), *found]), distances, len(near)

    def _ids_with(self, keys: list[str], n: int) -> Ids:
        """Return the n smallest ids of items with these codes."""
        parts = []
        for first in range(0, len(keys), LITERALS):
            query = self._items.search().where(self._is_one_of("key", keys[first : first + LITERALS]))
            parts.append(self._ids_in(self._ordered(query.select(["id"])).limit(n).to_arrow()))
        return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))[:n]

    def _measured(self, codes: Codes, query: Codes) -> tuple[Codes, list[int]]:
        with one_sentence("lance must be able to search"):
            rows = self._rows(codes, None, None).append_column("id", self._arrow.array(range(len(codes))))
            table = self._in_memory(rows)
            found = self._asked(table, query[0]).limit(len(codes)).to_arrow().sort_by("id")
            read = table.search().select(["id", "code"]).to_arrow().sort_by("id")
            return self._codes_in(read), found["_distance"].to_pylist()


def _said(schema: Any) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def distinct_codes(codes: Codes) -> Codes:
    """Return every code once."""
    wide = np.zeros((len(codes), -(-codes.shape[1] // 8) * 8), np.uint8)
    wide[:, : codes.shape[1]] = codes
    words = wide.view(np.uint64)
    order = np.lexsort(words.T)
    new = np.ones(len(codes), np.bool_)
    new[1:] = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    return codes[order[new]]
