"""The tables of a place in LanceDB: how they are made, opened, checked, read at one moment, and changed by one writer.

::

    <table>_items         id, code, key, ...  the truth: a change is one version of it, wholly there or not at all
    <table>_codes         code, key           every code once; made from the items, and at least all of theirs
    <table>_codes_<n>     the same, after the bits of all items have changed n times

What a place is, and how often its bits have changed, stands in the metadata of the items' schema: other bits are codes
in a new table first, then one version of the items that names it.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ilhash import codes as packed
from ilhash._extras import require
from ilhash.engines._contract import Engine
from ilhash.engines._lance_sql import one_sentence
from ilhash.engines._places import path_of
from ilhash.engines._settings import Codes, Columns, EngineError, Ids, Settings
from ilhash.engines._statements import NAME, as_json, from_json
from ilhash.storage import StoreLockedError, WriterLock

WAIT = 30.0  # seconds for another writer
OWN_COLUMNS = ("id", "code", "key")


class LanceTables(Engine):
    """Two tables in a folder of LanceDB."""

    def __init__(self, path: Path, table: str, mode: str, writable: bool) -> None:
        if not isinstance(table, str) or not NAME.fullmatch(table):
            raise ValueError(f"table must be a name of at most 40 letters, digits and _, got {table!r}")
        self._lancedb, self._arrow, self._index = (
            require(module, "lance", "the engine lance") for module in ("lancedb", "pyarrow", "lancedb.index")
        )
        self._compute = require("pyarrow.compute", "lance", "the engine lance")
        self._ordering = require("lancedb.query", "lance", "the engine lance").ColumnOrdering
        self.path, self.table, self.mode, self.writable = path, table, mode, writable
        self._n_changes = 0  # of bits
        with one_sentence(f"{path} must be a folder of LanceDB"):
            self._connection = self._lancedb.connect(str(path.resolve()))  # a name such as s3: is no address

    # -------------------------------------------------------------------------------------------- places

    @classmethod
    def at(cls, url: str, *, table: str, new: Settings | None, mode: str, writable: bool) -> LanceTables:
        """Open the folder, or make it."""
        path = path_of(url)
        if path.exists() and not path.is_dir():
            raise EngineError(f"url must name a folder of LanceDB, got {path}, which is a file")
        if not path.exists() and (new is None or not writable):
            raise FileNotFoundError(f"url must name a folder that is there, or n_bits be given to make it, got {path}")
        inside = [part.suffix for part in path.iterdir()] if path.exists() else []
        if inside and not {".lance", ".lock"} & set(inside):  # a lock alone: somebody is just making the first table
            raise EngineError(f"{path} must be a folder of LanceDB or an empty one, got one of something else")
        engine = cls(path, table, mode, writable)
        engine._open_tables(new)
        return engine

    def _open_tables(self, new: Settings | None) -> None:
        with one_sentence(f"{self.path} must be a folder of LanceDB"):
            there = self._names_of_tables()
        items = f"{self.table}_items"
        if items not in there:
            if new is None or not self.writable:
                given = f"table must be one that ilhash made, or n_bits be given to make it, got {self.table!r}"
                raise ValueError(given)
            self._make(new, items)
        with one_sentence(f"{items} must be a table that ilhash wrote"):
            self._items = self._connection.open_table(items)
            self.settings, self._n_changes = self._read_settings()
        if self._name_of_codes() not in self._names_of_tables():
            self._make_codes()
        self._open_codes()
        if self.writable:
            with self._change():
                self._drop_remains()

    def _name_of_codes(self) -> str:
        return f"{self.table}_codes_{self._n_changes}" if self._n_changes else f"{self.table}_codes"

    def _open_codes(self) -> None:
        distinct = self._name_of_codes()
        with one_sentence(f"{distinct} must be a table that ilhash wrote"):
            self._distinct = self._connection.open_table(distinct)
            self._check_columns(self._distinct, self._schema(("code", "key")))

    def _drop_remains(self) -> None:
        """Finish what a killed process may have left: indexes that are missing, codes of other bits."""
        with one_sentence(f"{self.path} must be a folder of LanceDB"):
            self._refuse_other_bits(self._connection.open_table(f"{self.table}_items"))
            self._indexed(self._items, "id", "key")
            for name in self._names_of_tables() - {self._name_of_codes()}:
                if re.fullmatch(rf"{self.table}_codes(_[1-9][0-9]*)?", name):
                    self._drop_codes_called(name)

    def _drop_codes_called(self, name: str) -> None:
        folder = self.path / f"{name}.lance"
        if not any((folder / "_versions").glob("*.manifest")):  # half made or half dropped: no table of anybody
            shutil.rmtree(folder)
            return
        schema = self._connection.open_table(name).schema
        if b"ilhash" in (schema.metadata or {}) and set(schema.names) == {"code", "key"}:
            self._connection.drop_table(name)

    def _names_of_tables(self) -> set[str]:
        return {path.name.removesuffix(".lance") for path in self.path.glob("*.lance")}

    def _make(self, new: Settings, items: str) -> None:
        self.settings = new
        self._refuse_column_names()
        self.self_check()
        distinct = self._name_of_codes()
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
        """See that columns have their scalar index."""
        there = {column for index in table.list_indices() for column in index.columns}
        for column in [one for one in columns if one not in there]:
            table.create_index(column, config=self._index.BTree())

    def _read_settings(self) -> tuple[Settings, int]:
        self.settings, n_changes = from_json((self._items.schema.metadata or {})[b"ilhash"].decode())
        self._check_columns(self._items, self._schema())
        return self.settings, n_changes

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
        about = as_json(self.settings, self._n_changes)
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
                self._refuse_other_bits(self._items)
                version = self._items.version
                self._distinct.checkout_latest()
                self._items.checkout_latest()  # codes may have been dropped after a change in between
                if self._items.version == version:
                    break
            yield

    def _refuse_other_bits(self, items: Any) -> None:
        """Refuse to go on where another client has changed the bits: codes that are known here mean something else."""
        if from_json(items.schema.metadata[b"ilhash"].decode()) != (self.settings, self._n_changes):
            rule = f"the bits of {self.table} must be those with which it was opened"
            raise EngineError(f"{rule}, got others: another client has changed them, open it again")

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

    # -------------------------------------------------------------------------------------------- rows

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

    def _codes_in(self, rows: Any) -> Codes:
        width = packed.bytes_per_code(self.n_bits)
        lists = rows["code"].combine_chunks()
        return np.array(lists.flatten().to_numpy(), np.uint8).reshape(-1, width)

    def _write_anew(self, rows: Any, ids: Ids, codes: Codes) -> None:
        """Write codes of other bits, then one version of the items with these codes and the columns that they had."""
        before, name = self._distinct.name, self._name_of_codes()
        if name in self._names_of_tables():  # of a process that was killed
            self._drop_codes_called(name)
        distinct = self._connection.create_table(name, self._rows(distinct_codes(codes), None, None))
        self._indexed(distinct, "key")
        schema, made = self._schema(), self._rows(codes, ids, None)
        for column in self.settings.columns:
            made = made.append_column(schema.field(column), rows[column])
        made = made.replace_schema_metadata(schema.metadata)
        self._items = self._connection.create_table(f"{self.table}_items", made, mode="overwrite")
        self._distinct = distinct
        self._indexed(self._items, "id", "key")
        self._connection.drop_table(before)

    def _make_codes(self) -> None:
        """Make the table of codes again from the items, which are the truth."""
        name = self._name_of_codes()
        with self._change(), one_sentence(f"{name} must be a table that LanceDB can make"):
            if name not in self._names_of_tables():
                distinct = distinct_codes(self._codes_in(self._items.search().select(["code"]).to_arrow()))
                self._indexed(self._connection.create_table(name, self._rows(distinct, None, None)), "key")


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
