"""LanceDB: a folder of Lance tables, in this process; codes as fixed lists of uint8, distances by its own Hamming scan.

::

    <table>_items  id, code, key, ...  the truth: a change is one version of it, wholly there or not at all
    <table>_codes  code, key           every code once; made from the items, and at least all of theirs

The tables themselves are in ``_lance_tables.py``, values of conditions in ``_lance_sql.py``.
Lance has no transaction over two tables. New codes are therefore written before the items that have them, and codes
that no item has any more stay until they are the most: a process that is killed in between leaves a code
too many, which brings no item. ``key`` is the code in hexadecimal digits, by which a scalar index finds its items.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash.engines._bits import BitChange
from ilhash.engines._lance_sql import condition_of, literal, one_sentence
from ilhash.engines._lance_tables import LanceTables, distinct_codes
from ilhash.engines._settings import BLOCK, Codes, Columns, EngineError, Filter, Ids, Settings, absent, taken
from ilhash.search import Hits, RangeHits

LITERALS = 1000  # values that a condition names; more are compared outside of it
FRAGMENTS = 32  # small ones, after which they are put together
KEPT = timedelta(hours=1)  # how long versions stay for those who read them
NPROBES, EF = 20, 100  # partitions, and codes of a graph, that an approximate search looks at, at least
MORE = 256  # rows beyond k that a scan brings: with them the last distance is rarely cut through, which costs a scan
INDEXED = 1000  # distinct codes from which on an approximate mode has an index; fewer are scanned


class Lance(LanceTables):
    """Items in a folder of LanceDB."""

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

    def _open_tables(self, new: Settings | None) -> None:
        super()._open_tables(new)
        if self.writable and self.mode != "exact":
            with self._change():
                self._index_codes()

    # -------------------------------------------------------------------------------------------- reading

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

    def _blocks(self, size: int) -> Iterator[tuple[Ids, Codes]]:
        with one_sentence(f"the tables {self.table} of {self.path} must be readable"):
            items = self._connection.open_table(f"{self.table}_items")  # stays at its version, whatever happens
            self._refuse_other_bits(items)
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

    def _add_codes(self, codes: Codes) -> None:
        """Add codes that are not there yet."""
        distinct = distinct_codes(codes)
        keys = packed.to_hex(distinct, self.n_bits)
        known = set(self._rows_of(self._distinct, "key", keys, ["key"])["key"].to_pylist())
        new = distinct[[key not in known for key in keys]]
        if len(new):
            self._distinct.add(self._rows(new, None, None))

    def _recode(self, change: BitChange) -> None:
        with self._change():
            with self._reading():
                rows = self._items.search().to_arrow().sort_by("id")
            ids, codes = self._ids_in(rows), self._codes_in(rows)
            parts = [slice(first, first + BLOCK) for first in range(0, len(ids), BLOCK)]
            empty = np.zeros((0, packed.bytes_per_code(change.settings.n_bits)), np.uint8)
            new = np.concatenate([empty, *(change.recoded(ids[some], codes[some]) for some in parts)])
            change.finish()
            before = self.settings, self._n_changes
            self.settings, self._n_changes = change.settings, self._n_changes + 1
            try:
                with one_sentence("lance must be able to change the bits of items"):
                    self._write_anew(rows, ids, new)
            except BaseException:
                self.settings, self._n_changes = before
                raise
            self._tidy(len(ids))

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
        near = self._asked(table, query, condition).limit(k + MORE).to_arrow()
        far = np.sort(near["_distance"].to_numpy())
        if len(far) == k + MORE and far[k - 1] == far[-1]:  # there may be more of them
            edge = float(far[-1])
            ties = self._asked(table, query, condition).distance_range(edge, edge + 1).limit(table.count_rows())
            nearer = near.filter(self._compute.less(near["_distance"], edge))
            near = self._arrow.concat_tables([nearer, ties.to_arrow()])
        ids, far = self._in_order(near)
        return ids[:k], far[:k]

    def _nearest_of_codes(self, query: NDArray[np.uint8], k: int) -> tuple[Ids, NDArray[Any]]:
        """Look at codes, as many as it takes: some may have no item any more."""
        n, size = self._distinct.count_rows(), k + MORE * (self.mode == "exact")
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
